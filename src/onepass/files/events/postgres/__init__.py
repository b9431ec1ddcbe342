"""Events in a PostgreSQL database, for learners and predicting replicas on several machines."""

try:
    import psycopg as psycopg
except ImportError:
    raise ImportError("events in PostgreSQL need psycopg: pip install 'onepass[postgres]'") from None

from onepass.files.events.postgres.store import PostgresEventStore

__all__ = ["PostgresEventStore"]
