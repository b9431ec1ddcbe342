"""Events in a PostgreSQL database, for learners and predicting replicas on several machines."""

from onepass._extras import MissingExtraError, require

require("postgres", "an event store in PostgreSQL")

try:
    import psycopg as psycopg
except ImportError as error:  # installed, but without the library of PostgreSQL that it calls
    raise MissingExtraError(f"{error}; pip install 'onepass-learn[postgres]' installs it") from None

from onepass.events.postgres.store import PostgresEventStore

__all__ = ["PostgresEventStore"]
