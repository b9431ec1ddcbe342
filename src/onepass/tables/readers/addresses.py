"""Addresses of tables in databases, such as ``sqlite:///trips.db?table=trips`` or ``postgresql://user@host/data``.

An address may end with ``?table=`` and the name of a table, or with ``?sql=`` and a query. Both say what the options of
the same names say: what is left of the address is a file, or a server and its database.
"""

from collections.abc import Iterable
from dataclasses import replace
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from onepass.tables.readers.errors import StreamError
from onepass.tables.readers.options import AS_FOUND, ReadOptions
from onepass.tables.readers.paths import FilePath, expand, listed

__all__ = ["SERVERS", "located", "scheme_of"]

SERVERS = ("postgresql", "postgres")
"""Schemes of databases that a server has."""
_FILES = ("sqlite", "duckdb")  # of databases that are files
_SETTINGS = ("table", "sql")


def scheme_of(file: str) -> str:
    """The scheme of an address; empty for a path.

    Examples
    --------
    >>> scheme_of("sqlite:///trips.db"), scheme_of("trips.db")
    ('sqlite', '')
    """
    return urlsplit(file).scheme.lower() if "://" in file else ""


def located(
    patterns: FilePath | Iterable[FilePath], reading: ReadOptions = AS_FOUND
) -> tuple[tuple[str, ...], ReadOptions]:
    """The files that are meant, and how they are read: what addresses of databases say is an option then.

    Examples
    --------
    >>> files, reading = located("postgresql://ann@host/data?table=trips")
    >>> files, reading.table
    (('postgresql://ann@host/data',), 'trips')
    """
    found = [_split(one) for one in listed(patterns)]
    asked = {tuple(said.items()) for _, said in found if said is not None}
    if len(asked) > 1:
        raise StreamError("the addresses name different tables, and one is read at a time; a query can join them")
    said = dict(next(iter(asked), ()))
    for setting in _SETTINGS if said else ():
        given = getattr(reading, setting)
        if given is not None and given != said.get(setting):
            raise StreamError(f"the address says already which table or query is read; leave out {given!r}", setting)
    reading = replace(reading, table=said.get("table", reading.table), sql=said.get("sql", reading.sql))
    return tuple(expand([file for file, _ in found])), reading


def _split(address: str) -> tuple[str, dict[str, str] | None]:
    """A file or a server, and what an address of a database says of the table; None for any other file."""
    scheme = scheme_of(address)
    if scheme not in (*_FILES, *SERVERS):
        return address, None
    parts = urlsplit(address)
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    said = {name: value for name, value in pairs if name in _SETTINGS}
    others = [(name, value) for name, value in pairs if name not in _SETTINGS]
    if len(said) == len(_SETTINGS):
        raise StreamError(f"{scheme}:{parts.path} names a table and a query; give one of them", "table")
    if scheme in SERVERS:
        return parts._replace(query=urlencode(others)).geturl(), said
    if parts.netloc or not parts.path.strip("/"):
        raise StreamError(f"{address} has no path; write {scheme}:///trips.db, or {scheme}:////data/trips.db")
    if others:
        raise StreamError(f"{scheme}:{parts.path} can be followed by ?table= or ?sql=, got {others[0][0]!r}")
    return unquote(parts.path[1:]), said
