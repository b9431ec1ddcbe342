"""Events in one SQLite file."""

from onepass.events.sqlite.store import EventStore

__all__ = ["EventStore"]
