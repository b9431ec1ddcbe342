"""Columns of text: a feature for every word and every pair of neighbouring words, shared by a hash.

Nearly every row has another text, but the words of a text were seen before. There are many of them and a row has few,
so the features are sparse. They are nearly uncorrelated, too: on sentences of documentation 65,536 features with
independent weights predicted their origin far better than 1,024 or 2,048 with all correlations, in much less time.

Words count by the logarithm of their number, pairs less than the words they are made of, and every text has the same
length as a vector, so that a long text is not more certain than a short one and one prior suits all.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import csr_array

from onepass._typing import FloatArray
from onepass.files.state import Parameters, as_number
from onepass.tables.columns.category import MOST_BUCKETS
from onepass.tables.columns.column import Column
from onepass.tables.columns.values import as_texts, is_text, plain

if TYPE_CHECKING:
    from onepass.tables.columns.inference import FirstValues, InferenceOptions

__all__ = ["Text", "TextSize", "has_words_to_learn", "is_prose"]

_BETWEEN_WORDS = r"[^\pL\pM\pN_]+"  # anything but letters, marks, digits and underscores, of any script
_WORD_OF_LETTERS = r"(^|\s)\S*\pL{2}"
_FEW_WORDS = 5  # with fewer it may be a name or an address
_OWN_WORDS = 0.5  # share of words that occur in one text alone, or nearly so, if texts are names
_PAIR = 0.3  # of the weight of a word; more of it made words count too little
_MOST_TERMS = 4_000  # words and pairs that are kept for the names of features
_MOST_NAMED = 3  # in the name of one feature


@dataclass(frozen=True)
class TextSize:
    """The number of features of a text, and the length of its vector."""

    buckets: int = 2**16
    norm: float = 1.0


@dataclass(frozen=True)
class Text(Column):
    """Words and pairs of neighbouring words, hashed; a text without words has none of the features on."""

    buckets: int
    norm: float
    """Length of the vector of every text."""
    typical: float
    """The feature of a word that a text of the first rows has once, on average."""
    terms: tuple[str, ...]
    """Words and pairs that were frequent among the first rows, the most frequent first."""
    kind: ClassVar[str] = "text"
    is_sparse: ClassVar[bool] = True
    step: ClassVar[str] = "a word in a text of average length"

    @cached_property
    def features(self) -> list[str]:
        """Names of the numbers made of it: the most frequent words that share one, as far as they are known."""
        named: dict[int, list[str]] = {}
        for term, bucket in zip(self.terms, self._buckets_of_terms(), strict=True):
            named.setdefault(bucket, []).append(repr(term))
        names = [f"{self.name}#{bucket}" for bucket in range(self.buckets)]
        for bucket, terms in named.items():
            more = ", ..." if len(terms) > _MOST_NAMED else ""
            names[bucket] = f"{self.name}: {', '.join(terms[:_MOST_NAMED])}{more}"
        return names

    def words(self) -> str:
        """Say what is done with it."""
        return f"text, its words and pairs of words hashed into {self.buckets:,} features; missing: none of them"

    def rows(self, array: Any) -> csr_array:
        """The features of all rows, ``(n, buckets)``."""
        found = _counted(array, self.name, self.buckets)
        found.data *= np.repeat(self.norm / _lengths(found), np.diff(found.indptr))
        return found

    @classmethod
    def inferred(cls, values: "FirstValues", asked: "InferenceOptions") -> "Text":
        """What is usual among the texts of some rows."""
        return cls.of_texts(values.name, values.texts.drop_null(), asked.text)

    @classmethod
    def of_texts(cls, name: str, known: Any, size: TextSize) -> "Text":
        """What is usual among these texts."""
        found = _counted(known, name, size.buckets)
        filled = np.diff(found.indptr) > 0
        typical = float((size.norm / _lengths(found)[filled]).mean()) if filled.any() else size.norm
        return cls(name, size.buckets, size.norm, typical, _frequent_terms(known, name))

    def state(self) -> Parameters:
        """All of it as data that JSON can hold."""
        return {**asdict(self), "terms": list(self.terms)}

    @classmethod
    def from_state(cls, state: Parameters) -> "Text":
        """Make the column that `state` described."""
        buckets = state["buckets"]
        if isinstance(buckets, bool) or not isinstance(buckets, int) or not 1 <= buckets <= MOST_BUCKETS:
            raise ValueError(f"buckets must be a whole number from 1 to {MOST_BUCKETS}, got {str(buckets)[:40]}")
        sizes = {size: as_number(state[size], size) for size in ("norm", "typical")}
        for size, value in sizes.items():
            if value <= 0.0:
                raise ValueError(f"{size} must be positive, got {value}")
        terms = tuple(state["terms"])
        if not all(isinstance(term, str) and term and len(term.split(" ")) <= 2 for term in terms):
            raise ValueError(f"the column {state['name']!r} has terms that are not words or pairs of words")
        return cls(**{**state, **sizes, "terms": terms})

    def _buckets_of_terms(self) -> list[int]:
        hashes = [[_word_hash(word) for word in term.split(" ")] for term in self.terms]
        return [(one[0] if len(one) == 1 else int(_pair_hashes(*map(np.uint64, one)))) % self.buckets for one in hashes]


def is_prose(known: Any, name: str, levels: int) -> bool:
    """Whether texts, of which so many differ, have several words each and are seldom the same."""
    if levels <= 0.5 * len(known):
        return False
    words = pc.count_substring_regex(as_texts(known, name), _WORD_OF_LETTERS).to_numpy(zero_copy_only=False)
    return bool(np.median(words) >= _FEW_WORDS)


def has_words_to_learn(array: Any) -> bool:
    """Whether a column is of texts that share words: of names and keys every one is of its own."""
    known = plain(array)
    known = known.drop_null() if is_text(known) else known[:0]
    if not len(known):
        return False
    place = _words_of(known, "").place
    return len(place) > 0 and len(np.unique(place)) < _OWN_WORDS * len(place)


@dataclass(frozen=True)
class _Words:
    """The words of some texts, one after the other."""

    row: Any  # of each word
    place: Any  # of each word in `known`
    known: Sequence[str]  # the different words

    @cached_property
    def before_another(self) -> Any:
        """Which words are followed by another one of the same text."""
        return np.flatnonzero(self.row[1:] == self.row[:-1])


def _words_of(array: Any, name: str) -> _Words:
    lists = pc.split_pattern_regex(pc.utf8_lower(as_texts(array, name).cast(pa.large_string())), _BETWEEN_WORDS)
    coded = pc.list_flatten(lists).dictionary_encode()
    row, place = (one.to_numpy(zero_copy_only=False) for one in (pc.list_parent_indices(lists), coded.indices))
    known = coded.dictionary.to_pylist()
    kept = np.flatnonzero(place != known.index("")) if "" in known else slice(None)
    return _Words(row[kept], place[kept], known)


def _counted(array: Any, name: str, buckets: int) -> csr_array:
    """Logarithmic counts of words and pairs, ``(n, buckets)``."""
    words = _words_of(array, name)
    hashes = np.array([_word_hash(word) for word in words.known], dtype=np.uint64)[words.place]
    first = words.before_another
    pairs = _pair_hashes(hashes[first], hashes[first + 1])
    parts = [_log_counts(words.row, hashes, buckets), _log_counts(words.row[first], pairs, buckets)]
    # 32 bits, since scikit-learn takes no others.
    rows, columns = (np.concatenate([part[k] for part in parts]).astype(np.int32) for k in (0, 1))
    counts = np.concatenate([parts[0][2], _PAIR * parts[1][2]])
    return csr_array((counts, (rows, columns)), shape=(len(array), buckets))


def _log_counts(row: Any, hashes: Any, buckets: int) -> tuple[Any, Any, FloatArray]:
    """Rows, buckets and ``1 + log`` of how often a row has something in a bucket."""
    keys, counts = np.unique(
        row * np.int64(buckets) + (hashes % np.uint64(buckets)).astype(np.int64), return_counts=True
    )
    return keys // buckets, keys % buckets, 1.0 + np.log(counts)


def _lengths(counted: csr_array) -> FloatArray:
    """Lengths of the rows as vectors; 1 for those without words."""
    squares = np.bincount(
        np.repeat(np.arange(counted.shape[0]), np.diff(counted.indptr)), counted.data**2, counted.shape[0]
    )
    return np.sqrt(np.where(squares > 0.0, squares, 1.0))


@lru_cache(maxsize=2**16)
def _word_hash(word: str) -> int:
    """A number of 64 bits that is the same everywhere and always.

    Examples
    --------
    >>> _word_hash("free") % 65536
    4584
    """
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8, person=b"onepass").digest(), "little")


def _pair_hashes(first: Any, second: Any) -> Any:
    """Hashes of pairs from those of their words; other than those of the pairs the other way round."""
    with np.errstate(over="ignore"):
        mixed = (first ^ (first >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15) + second
        return mixed ^ (mixed >> np.uint64(32))


def _frequent_terms(array: Any, name: str) -> tuple[str, ...]:
    """Words and pairs that occur several times, the most frequent first and then by the alphabet."""
    words = _words_of(array, name)
    singles, counts = np.unique(words.place, return_counts=True)
    found = [(-count, words.known[place]) for place, count in zip(singles.tolist(), counts.tolist(), strict=True)]
    first, size = words.before_another, max(len(words.known), 1)
    pairs, counts = np.unique(words.place[first] * np.int64(size) + words.place[first + 1], return_counts=True)
    often = counts > 1
    for pair, count in zip(pairs[often].tolist(), counts[often].tolist(), strict=True):
        found.append((-count, f"{words.known[pair // size]} {words.known[pair % size]}"))
    return tuple(term for count, term in sorted(found)[:_MOST_TERMS] if count < -1)
