"""Keys of a fleet: validated, compared, divided into parts, and converted to arrays that a file can hold.

Keys are whole numbers, in an int64 array, or texts, in a list; a fleet has only one of the two kinds.
"""

from numbers import Integral
from typing import Any, TypeAlias
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from onepass.files.state import Arrays, sized

__all__ = ["Keys", "Slots", "as_keys", "decode_keys", "encode_keys", "parts_of", "take_keys", "unique_keys"]

Keys: TypeAlias = Any  # (n,) int64 array, or a list of str
Slots: TypeAlias = NDArray[np.int64]


def as_keys(value: Any, n: int) -> Keys:
    """Validate ``n`` keys: all whole numbers, which become an int64 array, or all texts, which become a list.

    Examples
    --------
    >>> as_keys(["a", "b"], 2), as_keys([3, 4], 2)
    (['a', 'b'], array([3, 4]))
    """
    # Not through an array of texts: NumPy would convert numbers to texts and drop NUL characters at the end of a text.
    given = value if isinstance(value, list) else _listed(value)
    shape = given.shape if isinstance(given, np.ndarray) else (len(given),)
    if shape != (n,):
        raise ValueError(f"keys must have shape ({n},), one key per row of X, got shape {shape}")
    if isinstance(given, np.ndarray):
        if given.dtype.kind == "i" or (given.dtype.kind == "u" and given.dtype.itemsize < 8):
            return given.astype(np.int64)
        given = given.tolist()
    kinds = [_kind_of(key) for key in given]
    if None in kinds or len(set(kinds)) > 1:
        odd = given[next(place for place, kind in enumerate(kinds) if kind is None or kind is not kinds[0])]
        raise TypeError(f"keys must be all integers or all strings, got {odd!r} ({type(odd).__name__})")
    if kinds[:1] == [str]:
        return [str(key) for key in given]
    numbers = [int(key) for key in given]
    for number in numbers:
        if not -(2**63) <= number < 2**63:
            raise ValueError(f"keys must be integers between -2^63 and 2^63, got {number}")
    return np.array(numbers, dtype=np.int64)


def _listed(value: Any) -> Any:
    """Convert keys to a list, unless they are in an array."""
    if isinstance(value, (str, bytes)) or np.ndim(value) == 0:
        return [value[()] if isinstance(value, np.ndarray) else value]
    return np.asarray(value) if hasattr(value, "__array__") else list(value)


def _kind_of(key: Any) -> type | None:
    if isinstance(key, str):
        return str
    return int if isinstance(key, Integral) and not isinstance(key, bool) else None


def parts_of(keys: Keys, n_parts: int) -> Slots:
    """Assign each key to one of ``n_parts`` parts, ``(n,)``; depends on the key alone, so every process agrees."""
    if isinstance(keys, np.ndarray):
        mixed = keys.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        return ((mixed >> np.uint64(32)) % np.uint64(n_parts)).astype(np.int64)
    return np.array([crc32(key.encode("utf-8", "surrogatepass")) % n_parts for key in keys], dtype=np.int64)


def take_keys(keys: Keys, places: Slots) -> Keys:
    """Select the keys at these places."""
    return keys[places] if isinstance(keys, np.ndarray) else [keys[place] for place in places.tolist()]


def unique_keys(keys: Keys) -> tuple[Keys, Slots]:
    """Return the distinct keys in the order in which they come first, and for each key its place among them.

    Examples
    --------
    >>> unique_keys(["b", "a", "b"])
    (['b', 'a'], array([0, 1, 0]))
    """
    if isinstance(keys, np.ndarray):
        names, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        order = np.argsort(first)
        return names[order], np.argsort(order)[inverse]
    places: dict[str, int] = {}
    inverse = np.array([places.setdefault(key, len(places)) for key in keys], dtype=np.int64)
    return list(places), inverse


def encode_keys(keys: Keys) -> Arrays:
    """Convert keys to arrays: numbers as they are, texts joined in UTF-8 with the end of each.

    Examples
    --------
    >>> encode_keys(["ann", "bo"])["key_ends"]
    array([3, 5])
    """
    if isinstance(keys, np.ndarray):
        return {"keys": keys}
    texts = [key.encode("utf-8", "surrogatepass") for key in keys]
    return {
        "key_text": np.frombuffer(b"".join(texts), dtype=np.uint8),
        "key_ends": np.cumsum([len(text) for text in texts], dtype=np.int64),
    }


def decode_keys(arrays: Arrays, n: int) -> Keys:
    """Restore ``n`` keys from the arrays of `encode_keys`."""
    if "keys" in arrays:
        return as_keys(sized(arrays, "keys", (n,), np.int64), n)
    ends = sized(arrays, "key_ends", (n,), np.int64)
    text = arrays["key_text"].astype(np.uint8).tobytes()
    if (np.diff(ends, prepend=0) < 0).any() or ends[-1] != len(text):
        raise ValueError("key_ends do not cut key_text into keys")
    begins = [0, *ends[:-1].tolist()]
    return [text[a:b].decode("utf-8", "surrogatepass") for a, b in zip(begins, ends.tolist(), strict=True)]
