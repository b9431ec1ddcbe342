"""Which files are meant: patterns expanded to paths."""

import glob
import os
from collections.abc import Iterable

from onepass.tables.readers.errors import StreamError

__all__ = ["STDIN", "expand"]

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
