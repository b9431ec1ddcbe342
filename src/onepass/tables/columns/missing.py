"""Words that mean a missing value, which depend on the column.

`NA` among numbers is a missing one. As a frequent answer of a column of texts it is a value like any other: no alley
at the house, no internet service, no damage. So readers keep words as they are, and each column knows its own.
"""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from onepass.files.state import Parameters
from onepass.tables.columns.wording import listed

__all__ = [
    "MISSING_WORDS",
    "frequent_words",
    "has_words",
    "missing_words_from_state",
    "missing_words_state",
    "notable_words",
    "values_note",
    "with_placeholders",
    "without_words",
]

MISSING_WORDS = ("NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "#N/A")
"""What most programs write for a missing value; files of models that say nothing else mean these."""

# What also stands for a missing value where numbers or dates are expected, and is a value anywhere else.
_PLACEHOLDERS = (
    *("na", "#NA", "<NA>", "n.a.", "n.a", "N.A.", "NaT", "nat", "none", "NONE", "Null", "nil", "(null)", r"\N"),
    *("?", "??", "-", "--", "---", "\u2013", "\u2014", ".", "..", "...", "*", "#DIV/0!", "#VALUE!", "#REF!"),
    *("missing", "Missing", "MISSING", "unknown", "Unknown", "UNKNOWN", "not available", "Not available"),
)
_FEWEST = 5  # rows that have to have a word before it is taken for a value


def without_words(texts: Any, words: Sequence[str]) -> Any:
    """Texts without surrounding space, null where one is among the words or empty."""
    trimmed = pc.utf8_trim_whitespace(texts)
    return pc.if_else(_among(trimmed, ["", *words]), pa.scalar(None, trimmed.type), trimmed)


def with_placeholders(texts: Any) -> tuple[str, ...]:
    """The usual words, and those among the texts that can only stand for a missing number or date."""
    trimmed = pc.utf8_trim_whitespace(texts)
    seen = set(trimmed.filter(_among(trimmed, _PLACEHOLDERS)).unique().to_pylist())
    return (*MISSING_WORDS, *(word for word in _PLACEHOLDERS if word in seen))


def frequent_words(texts: Any, words: Sequence[str]) -> tuple[str, ...]:
    """Those of the words that are values: at least half as frequent as the other texts are on average.

    Examples
    --------
    >>> frequent_words(pa.array(["Grvl"] * 9 + ["Pave"] * 11 + ["NA"] * 80 + ["null"]), MISSING_WORDS)
    ('NA',)
    """
    if not has_words(texts, words):
        return ()
    counts = {one["values"]: one["counts"] for one in pc.value_counts(texts.drop_null()).to_pylist()}
    others = [count for text, count in counts.items() if text not in words]
    if not others:
        return ()
    fewest = max(_FEWEST, 0.5 * sum(others) / len(others))
    return tuple(word for word in words if counts.get(word, 0) >= fewest)


def has_words(texts: Any, words: Sequence[str]) -> bool:
    """Whether any of the texts is among the words."""
    return bool(pc.any(_among(texts, words)).as_py())


def _among(texts: Any, words: Sequence[str]) -> Any:
    return pc.is_in(texts, value_set=pa.array(words, texts.type))


def notable_words(words: Sequence[str]) -> tuple[str, ...]:
    """Those of a column's words that are worth reporting: all, or those besides the usual ones."""
    usual = len(MISSING_WORDS)
    return tuple(words[usual:] if tuple(words[:usual]) == MISSING_WORDS else words)


def values_note(values: Sequence[str]) -> str:
    """Say which words that mean a missing value elsewhere are values here."""
    words = [word for word in MISSING_WORDS if word in values]
    return f"; {listed(words, 3)} {'is a value' if len(words) == 1 else 'are values'}, not missing" if words else ""


def missing_words_state(words: Sequence[str]) -> Parameters:
    """The words as an entry of a state; nothing for the usual ones."""
    return {} if tuple(words) == MISSING_WORDS else {"missing_words": list(words)}


def missing_words_from_state(state: Parameters) -> tuple[str, ...]:
    """Take the words out of a state."""
    words = state.pop("missing_words", MISSING_WORDS)
    if isinstance(words, str) or not all(isinstance(word, str) for word in words):
        raise ValueError(f"missing_words must be texts, got {str(words)[:40]}")
    return tuple(words)
