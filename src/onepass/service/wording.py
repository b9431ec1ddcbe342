"""What does not fit its type, in words: which field it is, what may be there, and what was.

The decoder tells where it stopped; what is allowed there is looked up in the type. A type whose limits are not obvious
describes itself by ``Meta(description=...)``, such as "a number between 0 and 1".
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect

__all__ = ["mismatch_in_words"]

_PATH = re.compile(r" - at `(key in )?\$([^`]*)`$")
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")
_MISSING = re.compile(r"Object missing required field `(.*)`")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`")
_GOT = re.compile(r"Invalid (?:enum )?value (.*)")
_EXPECTED = re.compile(r"Expected `([^`]*)`, got `([^`]*)`")
_LIMIT = re.compile(r"Expected `([^`]*)` (of length )?(>=|<=|>|<)? ?(\S+?)(?:, got (.*))?")
_OUT_OF_RANGE = "Number out of range"
_KINDS = {
    "bool": "true, false",
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "object": "an object",
    "array": "an array",
}
_LIMITS = {">=": "at least", "<=": "at most", ">": "above", "<": "below", "": ""}
_UNITS = {"str": "characters", "array": "values", "object": "fields"}
_UNREADABLE = {"Invalid RFC3339 encoded datetime": 'a date and time such as "2026-01-31T00:00:00Z"'}


def mismatch_in_words(error: msgspec.ValidationError, kind: Any, whole: str, given: Any = None) -> tuple[str, str]:
    """What is wrong with something of a type, and the path to it, such as ``.columns[0].kind``.

    Parameters
    ----------
    error : as the decoder has raised it
    kind : the type
    whole : name of the thing itself
    given : the thing, if it is at hand: of a field that may have several kinds, it tells which is meant

    Examples
    --------
    >>> class Line(msgspec.Struct, forbid_unknown_fields=True):
    ...     width: int = 1
    >>> try:
    ...     msgspec.convert({"with": 2}, Line)
    ... except msgspec.ValidationError as error:
    ...     mismatch_in_words(error, Line, "the line")
    ("there is no field 'with'; there are width", '.with')
    """
    said, found = str(error), _PATH.search(str(error))
    said, path = _PATH.sub("", said), found[2] if found else ""
    types = _at(kind, path, given)
    name = path.removesuffix("[...]").rpartition(".")[2]
    name = whole + name if not name or name[0] == "[" else name
    if said == _OUT_OF_RANGE:
        return f"a number in {name} is out of range", path.replace("[...]", "")
    name = f"a value of {name}" if path.endswith("[...]") else name
    path = path.replace("[...]", "")
    if (missing := _MISSING.fullmatch(said)) is not None:
        return f"{missing[1]} is missing", f"{path}.{missing[1]}"
    if (unknown := _UNKNOWN.fullmatch(said)) is not None:
        return _no_field(unknown[1], types), f"{path}.{unknown[1]}"
    return _unfit(name, said, types), path


def _no_field(name: str, types: list[Any]) -> str:
    structs = [one for one in types if isinstance(one, inspect.StructType)]
    fields = [one.tag_field for one in structs if one.tag_field is not None]
    fields += [field.encode_name for one in structs for field in one.fields]
    words = f"there is no field {name!r}; there are {', '.join(dict.fromkeys(fields))}"
    return f'{words}; columns go into x: {{"x": {{"{name}": ...}}}}' if "x" in fields and name != "y" else words


def _unfit(name: str, said: str, types: list[Any]) -> str:
    described = [one.extra_json_schema["description"] for one in types if _is_described(one)]
    got = _GOT.fullmatch(said)
    allowed = [str(value) for one in types if isinstance(one, inspect.LiteralType) for value in one.values]
    if described:
        return f"{name} must be {_either([described[0], *(one for one in allowed if one not in described[0])])}"
    if got is not None and allowed:
        return f"{name} must be {_either(allowed)}, got {got[1]}"
    expected = _EXPECTED.fullmatch(said)
    if expected is None:
        return f"{name} must be {_limit_words(said)}"
    kinds = ", ".join(_KINDS.get(one, one) for one in expected[1].split(" | ")).split(", ")  # true and false are two
    return f"{name} must be {_either(kinds)}, got {_KINDS.get(expected[2], expected[2])}".replace(
        "got true, false", "got a boolean"
    )


def _limit_words(said: str) -> str:
    """What is said of a value that is too small, too large, too short, too long, or can't be read."""
    if said in _UNREADABLE:
        return _UNREADABLE[said]
    limit = _LIMIT.fullmatch(said)
    if limit is None:
        return f"something else: {said[:1].lower()}{said[1:].replace('`', '')}"
    kind, is_length, sign, number, got = limit.groups()
    words = [_KINDS.get(kind, kind), "of" if is_length else "", _LIMITS[sign or ""], number]
    if is_length:
        words.append(_UNITS.get(kind, "values").removesuffix("s" if number == "1" else " "))
    return " ".join(word for word in words if word) + (f", got {got}" if got else "")


def _is_described(one: Any) -> bool:
    return isinstance(one, inspect.Metadata) and "description" in (one.extra_json_schema or {})


def _either(words: list[str]) -> str:
    return " or ".join(part for part in (", ".join(words[:-1]), words[-1]) if part)


def _at(kind: Any, path: str, given: Any) -> list[Any]:
    """The types that are allowed at a path; more than one for a union."""
    types = _meant(list(_members(inspect.type_info(kind))), given)
    for field, place in _STEP.findall(path):
        types = [member for one in types for inner in _inside(one, field) for member in _members(inner)]
        given = _part(given, field, place)
        types = _meant(types, given)
    return types


def _meant(types: list[Any], given: Any) -> list[Any]:
    """The types without those of other kinds than what was given says it is; all of them if it says none of these."""
    if not isinstance(given, dict):
        return types
    others = [
        one
        for one in types
        if isinstance(one, inspect.StructType) and one.tag_field and given.get(one.tag_field, one.tag) != one.tag
    ]
    found = [one for one in types if one not in others]
    return found if any(isinstance(one, inspect.StructType) for one in found) else types


def _part(given: Any, field: str, place: str) -> Any:
    """What was given one step further; None where that can't be said."""
    if field:
        return given.get(field) if isinstance(given, dict) else None
    return given[int(place)] if place.isdigit() and isinstance(given, list) and int(place) < len(given) else None


def _members(one: Any) -> Iterator[Any]:
    yield one
    if isinstance(one, inspect.Metadata):
        yield from _members(one.type)
    elif isinstance(one, inspect.UnionType):
        for member in one.types:
            yield from _members(member)


def _inside(one: Any, field: str) -> Iterator[Any]:
    if isinstance(one, inspect.StructType) and field:
        yield from (inner.type for inner in one.fields if inner.encode_name == field)
        if one.tag_field == field:
            yield inspect.LiteralType((one.tag,))
    elif isinstance(one, inspect.ListType | inspect.VarTupleType) and not field:
        yield one.item_type
    elif isinstance(one, inspect.DictType) and not field:
        yield one.value_type
