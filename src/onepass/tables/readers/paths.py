"""Which files are meant: patterns expanded to paths, and the fingerprint by which a file is recognised again."""

import glob
import hashlib
import os
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote

from onepass.tables.readers.errors import StreamError

__all__ = ["STDIN", "expand", "fingerprint", "is_url", "size_of"]

STDIN = "-"
_LOCAL = "file://"
_URL = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)


def is_url(file: str) -> bool:
    """Whether a file is in the net.

    Examples
    --------
    >>> is_url("https://example.org/a.csv"), is_url("data/a.csv")
    (True, False)
    """
    return bool(_URL.match(file))


def size_of(file: str) -> int:
    """Bytes of a file, and 1 if they can't be known: what its share of several files is reckoned by."""
    if file == STDIN:
        return 1
    return max(fingerprint(file)["size"] if is_url(file) else os.stat(file).st_size, 1)


def expand(patterns: Iterable[str]) -> list[str]:
    """Files that are named, or match a pattern, in this order; those of one pattern sorted.

    Examples
    --------
    >>> expand(["-"])
    ['-']
    """
    files: list[str] = []
    for given in patterns:
        pattern = unquote(given[len(_LOCAL) :]) if given.lower().startswith(_LOCAL) else given
        if is_url(pattern):
            from onepass.tables.readers.remote import remote_matches

            files += remote_matches(pattern)
            continue
        if pattern == STDIN or os.path.exists(pattern):
            found = [pattern]
        else:
            found = sorted(glob.glob(pattern, recursive=True))
            if not found:
                what = "matches no file" if glob.has_magic(pattern) else "does not exist"
                raise StreamError(f"{pattern} {what}")
        files += found
    for file in files:
        if os.path.isdir(file) and not is_url(file):
            raise StreamError(f"{file} is a folder; name its files, e.g. '{os.path.join(file, '*.parquet')}'")
    if STDIN in files and len(files) > 1:
        raise StreamError("standard input ('-') can't be mixed with files")
    return files


def fingerprint(file: str) -> dict[str, Any]:
    """Name and size of a file, and a digest of its beginning: what tells whether it is still the same."""
    if is_url(file):
        from onepass.tables.readers.remote import remote_fingerprint

        return remote_fingerprint(file)
    try:
        with open(file, "rb") as opened:
            digest = hashlib.blake2b(opened.read(2**20), digest_size=16).hexdigest()
            return {"name": os.path.basename(file), "size": os.fstat(opened.fileno()).st_size, "digest": digest}
    except OSError as error:
        raise StreamError(f"{file} can't be read: {error.strerror}") from None
