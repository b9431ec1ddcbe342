"""Which files are meant: patterns expanded to paths, and the fingerprint by which a file is recognised again."""

import glob
import hashlib
import os
from collections.abc import Iterable
from typing import Any

from onepass.tables.readers.errors import StreamError

__all__ = ["STDIN", "expand", "fingerprint"]

STDIN = "-"


def expand(patterns: Iterable[str]) -> list[str]:
    """Files that are named, or match a pattern, in this order; those of one pattern sorted.

    Examples
    --------
    >>> expand(["-"])
    ['-']
    """
    files: list[str] = []
    for pattern in patterns:
        if pattern == STDIN or os.path.exists(pattern):
            found = [pattern]
        else:
            found = sorted(glob.glob(pattern, recursive=True))
            if not found:
                what = "matches no file" if glob.has_magic(pattern) else "does not exist"
                raise StreamError(f"{pattern} {what}")
        files += found
    for file in files:
        if os.path.isdir(file):
            raise StreamError(f"{file} is a folder; name its files, e.g. '{os.path.join(file, '*.parquet')}'")
    if STDIN in files and len(files) > 1:
        raise StreamError("standard input ('-') can't be mixed with files")
    return files


def fingerprint(file: str) -> dict[str, Any]:
    """Name and size of a file, and a digest of its beginning: what tells whether it is still the same."""
    try:
        with open(file, "rb") as opened:
            digest = hashlib.blake2b(opened.read(2**20), digest_size=16).hexdigest()
            return {"name": os.path.basename(file), "size": os.fstat(opened.fileno()).st_size, "digest": digest}
    except OSError as error:
        raise StreamError(f"{file} can't be read: {error.strerror}") from None
