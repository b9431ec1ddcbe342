"""Events in one SQLite file."""

from onepass.files.events.sqlite.store import EventStore

__all__ = ["EventStore"]
