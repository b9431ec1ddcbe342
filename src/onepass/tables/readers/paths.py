"""Which files are meant: patterns expanded to paths."""

import glob
import os
import re
from collections.abc import Iterable
from difflib import get_close_matches
from urllib.parse import unquote

from onepass.tables.readers.errors import StreamError

__all__ = ["STDIN", "FilePath", "expand", "is_url", "listed", "shown", "size_of"]

FilePath = str | os.PathLike[str]
STDIN = "-"
_LOCAL = "file://"
_URL = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)


def is_url(file: str) -> bool:
    """Whether a file is remote.

    Examples
    --------
    >>> is_url("https://example.org/a.csv"), is_url("data/a.csv")
    (True, False)
    """
    return bool(_URL.match(file))


def shown(file: str) -> str:
    """A file for messages: a URL without its secrets.

    Examples
    --------
    >>> shown("https://me:secret@example.org/a.csv?key=1"), shown("data/a.csv")
    ('https://example.org/a.csv', 'data/a.csv')
    """
    if not is_url(file):
        return file
    from onepass.tables.readers.remote import remote_address

    return remote_address(file)


def size_of(file: str) -> int:
    """Bytes of a file; 0 if a server does not tell."""
    if is_url(file):
        from onepass.tables.readers.remote import remote_fingerprint  # what few need takes a while to load

        return int(remote_fingerprint(file)["size"])
    return os.stat(file).st_size


def listed(patterns: FilePath | Iterable[FilePath]) -> list[str]:
    """One path or several, as a list of texts.

    Examples
    --------
    >>> listed("a.csv"), listed(["a.csv", "b.csv"])
    (['a.csv'], ['a.csv', 'b.csv'])
    """
    if hasattr(patterns, "columns") or not isinstance(patterns, (str, os.PathLike, Iterable)):
        raise TypeError(
            f"files must be a path or a list of paths, got {type(patterns).__name__}; write a data frame to a file "
            "first, such as with to_parquet"
        )
    return [os.fspath(one) for one in ([patterns] if isinstance(patterns, (str, os.PathLike)) else patterns)]


def expand(patterns: FilePath | Iterable[FilePath]) -> list[str]:
    """Files that are named, or match a pattern, in this order; those of one pattern sorted.

    Examples
    --------
    >>> expand(["-"])
    ['-']
    """
    files: list[str] = []
    for given in listed(patterns):
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
                what = "matches no file" if glob.has_magic(pattern) else f"does not exist{_similar(pattern)}"
                raise StreamError(f"{pattern} {what}")
        files += found
    for file in files:
        if os.path.isdir(file) and not is_url(file):
            raise StreamError(f"{file} is a folder; give its files, such as '{os.path.join(file, '*.parquet')}'")
    if STDIN in files and len(files) > 1:
        raise StreamError("standard input ('-') can't be mixed with files")
    return files


def _similar(file: str) -> str:
    """Which file of the same folder may have been meant, if one has a similar name."""
    folder, name = os.path.split(file)
    try:
        there = os.listdir(folder or os.curdir)
    except OSError:
        return ""
    by_name = {one.lower(): one for one in there}
    close = get_close_matches(name.lower(), by_name, 1, 0.75)
    return f"; did you mean {os.path.join(folder, by_name[close[0]])!r}?" if close else ""
