"""The tables of an event store in PostgreSQL, and the statements that only PostgreSQL needs."""

from hashlib import blake2b

from onepass.events.statements import VERSION, tables

__all__ = ["TABLES", "lock_number"]

_NAME = 'TEXT COLLATE "C"'  # compared byte by byte, whatever language the database is in
TABLES = {
    **tables(name=_NAME, whole="BIGINT", real="DOUBLE PRECISION", text="TEXT", data="BYTEA"),
    "event_log_version": f"CREATE TABLE event_log_version AS SELECT {VERSION} AS version",
}

SCHEMA = "SELECT 1 FROM pg_namespace WHERE nspname = 'onepass'"
CREATE_SCHEMA = "CREATE SCHEMA onepass"
TABLES_THERE = """SELECT relname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE nspname = 'onepass' AND relkind IN ('r', 'p', 'v', 'm', 'f')"""
STORE_VERSION = "SELECT version FROM onepass.event_log_version"

# A client that is gone without a word, and the locks it had, are noticed within a minute.
SETTINGS = """SELECT current_setting('server_encoding'), current_setting('fsync'),
    current_setting('synchronous_commit'), set_config('search_path', 'onepass', false),
    set_config('lock_timeout', :milliseconds, false), set_config('tcp_keepalives_idle', '20', false),
    set_config('tcp_keepalives_interval', '10', false), set_config('tcp_keepalives_count', '3', false)"""
SET_DURABILITY = "SELECT set_config('synchronous_commit', :value, false)"

SET_READ_ONLY = "SET default_transaction_read_only = on"

LOCK = "SELECT pg_advisory_xact_lock(CAST(:lock AS BIGINT))"
LOCK_WRITER = "SELECT pg_try_advisory_lock(CAST(:lock AS BIGINT))"
UNLOCK_WRITER = "SELECT pg_advisory_unlock(CAST(:lock AS BIGINT))"
WRITER = """SELECT application_name FROM pg_locks JOIN pg_stat_activity USING (pid)
    WHERE locktype = 'advisory' AND granted AND pg_locks.database = pg_stat_activity.datid
    AND (CAST(CAST(classid AS BIGINT) << 32 AS BIGINT) | CAST(objid AS BIGINT)) = CAST(:lock AS BIGINT)"""
NOTIFY = "SELECT pg_notify('onepass_events', :stream)"
LISTEN = "LISTEN onepass_events"


def lock_number(purpose: str, name: str) -> int:
    """The number by which the server knows a lock, from -2**63 to 2**63 - 1.

    Examples
    --------
    >>> lock_number("stream", "price") == lock_number("writer", "price")
    False
    """
    digest = blake2b(f"{purpose}\0{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
