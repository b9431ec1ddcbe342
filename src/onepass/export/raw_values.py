"""Python source that reads raw values, as they are in a CSV file, just as the model of a table does.

A module gets a function for each kind of column that it has, and no other. What the model would reject is refused: an
error is better than another number.
"""

from collections.abc import Sequence
from typing import NamedTuple

from onepass.export.programs import Input

__all__ = ["reader_imports", "reader_source"]


class _Reader(NamedTuple):
    """A function of a value and of what is known of its column."""

    source: str
    needs: tuple[str, ...] = ()  # other readers
    imports: tuple[str, ...] = ()


_TEXT = '''def read_text(value):
    """A value as its text in a file."""
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, np.bool_)):
        return str(value).lower()
    if isinstance(value, (float, np.floating)):
        is_whole = value == np.floor(value) and abs(value) < 2**53
        return str(int(value)) if is_whole else repr(float(value))
    if isinstance(value, (int, np.integer)):
        return str(value)
    raise ValueError(value)'''

_NUMBER = '''def read_number(value, about):
    """A number as programs write it."""
    if isinstance(value, str) and "_" in value:
        raise ValueError(value)
    number = float(value)
    if math.isinf(number):
        raise ValueError(value)
    return number'''

_WRITTEN_NUMBER = r'''def read_written_number(value, about):
    """A number in the format of its column."""
    if not isinstance(value, str):
        return read_number(value, about)
    text, decimal = value.strip(), about["decimal"]
    if not re.fullmatch(about["pattern"], text, re.ASCII):
        raise ValueError(value)
    text = text.replace(about["unit"], "").strip()
    sign = "-" if re.search("^[^0-9]*[(\u2212-]|[\u2212-][^0-9]*$", text) else ""
    digits = re.sub("[^0-9.,eE+-]", "", text).strip("+-")
    digits = digits.replace("," if decimal == "." else ".", "").replace(",", ".")
    return read_number(sign + digits, about)'''

_BOOLEAN = '''def read_boolean(value, about):
    """1 for true, 0 for false."""
    word = read_text(value).strip().lower()
    if word not in ("true", "t", "yes", "y", "1", "false", "f", "no", "n", "0"):
        raise ValueError(value)
    return float(word in ("true", "t", "yes", "y", "1"))'''

_CATEGORY = '''def read_category(value, about):
    """The place of a category among the known ones; -1 for any other."""
    text = read_text(value)
    return float(about["levels"].index(text)) if text in about["levels"] else -1.0'''

_HASHED = '''def read_hashed(value, about):
    """The bucket of a category."""
    digest = hashlib.blake2b(read_text(value).encode(), digest_size=8, person=b"onepass").digest()
    return float(int.from_bytes(digest, "little") % about["buckets"])'''

_DATE = '''def read_date(value, about):
    """Days since 1970 in UTC, of a date in ISO 8601."""
    if not isinstance(value, (str, date)):
        raise ValueError(value)
    moment = datetime.fromisoformat(value.strip()) if isinstance(value, str) else value
    moment = moment if isinstance(moment, datetime) else datetime(moment.year, moment.month, moment.day)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
    return (moment - datetime(1970, 1, 1, tzinfo=timezone.utc)).total_seconds() / 86400.0'''

_WRITTEN_DATE = '''def read_written_date(value, about):
    """Days since 1970 in UTC, of a date in the format of its column; or in ISO 8601, as programs write it."""
    if isinstance(value, (int, np.integer)):
        value = str(value)  # 20240131
    if not isinstance(value, str):
        return read_date(value, about)
    try:
        return days_by_format(value, about["pattern"])
    except ValueError:
        if not re.match("[0-9]{4}-[0-9]{2}-[0-9]{2}", value.strip()):
            raise
        return read_date(value, about)


def days_by_format(value, pattern):
    """Days since 1970 in UTC, of a text that this regular expression takes apart."""
    found = re.fullmatch(pattern, value.strip(), re.ASCII)
    if found is None:
        raise ValueError(value)
    texts = found.groupdict()
    parts = {name: int(text) for name, text in texts.items() if text.isdigit()}
    limits = {"m": (1, 12), "d": (1, 31), "j": (1, 366), "H": (0, 23), "I": (1, 12), "M": (0, 59), "S": (0, 59)}
    if any(not least <= parts.get(name, least) <= most for name, (least, most) in limits.items()):
        raise ValueError(value)
    year = parts["Y"] if "Y" in parts else parts["y"] + (2000 if parts["y"] < 69 else 1900)
    months = "jan feb mar apr may jun jul aug sep oct nov dec".split()
    named = texts.get("b", texts.get("B", "jan"))[:3].lower()
    month = parts.get("m", months.index(named) + 1)
    day = date(year, 1, 1) + timedelta(parts["j"] - 1) if "j" in parts else date(year, month, parts.get("d", 1))
    if day.year != year:
        raise ValueError(value)
    hours = parts["I"] % 12 + 12 * (texts.get("p", "a")[0] in "pP") if "I" in parts else parts.get("H", 0)
    seconds = 3600.0 * hours + 60.0 * parts.get("M", 0) + parts.get("S", 0)
    seconds += 1e-9 * int(texts.get("f", "0").ljust(9, "0"))
    zone = texts.get("z", "Z").replace("Z", "+0000").replace(":", "")
    ahead = 3600 * int(zone[1:3]) + 60 * int(zone[3:])
    seconds += ahead if zone[0] == "-" else -ahead
    return (day - date(1970, 1, 1)).days + seconds / 86400.0'''

_DATETIME = "from datetime import date, datetime, timezone"
_READERS = {
    "text": _Reader(_TEXT),
    "number": _Reader(_NUMBER),
    "written number": _Reader(_WRITTEN_NUMBER, ("number",), ("import re",)),
    "boolean": _Reader(_BOOLEAN, ("text",)),
    "category": _Reader(_CATEGORY, ("text",)),
    "hashed": _Reader(_HASHED, ("text",), ("import hashlib",)),
    "date": _Reader(_DATE, (), (_DATETIME,)),
    "written date": _Reader(_WRITTEN_DATE, ("date",), ("import re", "from datetime import timedelta")),
}

_CODE = '''def code(column, value):
    """A raw value of a column as a number; NaN where it is missing."""
    about = COLUMNS[column]
    kind = about["kind"]
    if value is None or value != value:
        return math.nan
    if isinstance(value, str) and kind != "category":
        text = value if kind == "hashed" else value.strip()
        if text in ("", *about.get("missing", ())):
            return math.nan
    try:
        return READERS[kind](value, about)
    except (ValueError, TypeError, OverflowError):
        raise ValueError(f"{column} is {value!r}, no {kind.split()[-1]}{about.get('words', '')}") from None'''


def _needed(inputs: Sequence[Input]) -> list[str]:
    """The kinds of columns, and what their readers build on, in an order in which each can be defined."""
    kinds = {one.reader for one in inputs}
    kinds |= {other for kind in kinds for other in _READERS[kind].needs}
    return [kind for kind in _READERS if kind in kinds]


def reader_imports(inputs: Sequence[Input]) -> set[str]:
    """Import statements of the functions."""
    return {line for kind in _needed(inputs) for line in _READERS[kind].imports}


def reader_source(inputs: Sequence[Input]) -> list[str]:
    """Functions of a module, the last of which is ``code``."""
    kinds = sorted({one.reader for one in inputs})
    table = [f'    "{kind}": read_{kind.replace(" ", "_")},' for kind in kinds]
    return [*(_READERS[kind].source for kind in _needed(inputs)), "\n".join(["READERS = {", *table, "}"]), _CODE]
