"""The tables of an event store in PostgreSQL, and the statements that only PostgreSQL needs."""

from hashlib import blake2b

from onepass.files.events.statements import VERSION

__all__ = ["TABLES", "lock_number"]

# As in SQLite. Names are compared byte by byte, whatever language the database is in.
TABLES = {
    "events": """CREATE TABLE events (
    stream TEXT COLLATE "C" NOT NULL,
    number BIGINT NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    time DOUBLE PRECISION NOT NULL,
    payload TEXT,
    blob BYTEA,
    checksum BYTEA NOT NULL,
    UNIQUE (stream, number),
    UNIQUE (stream, key, kind)
)""",
    "snapshots": """CREATE TABLE snapshots (
    stream TEXT COLLATE "C" NOT NULL,
    after BIGINT NOT NULL,
    time DOUBLE PRECISION NOT NULL,
    content BYTEA NOT NULL,
    pinned INTEGER NOT NULL,
    checksum BYTEA NOT NULL,
    UNIQUE (stream, after)
)""",
    "pruned": """CREATE TABLE pruned (
    stream TEXT COLLATE "C" NOT NULL UNIQUE,
    number BIGINT NOT NULL
)""",
    "event_log_version": f"CREATE TABLE event_log_version AS SELECT {VERSION} AS version",
}

SCHEMA = "SELECT 1 FROM pg_namespace WHERE nspname = 'onepass'"
CREATE_SCHEMA = "CREATE SCHEMA onepass"
TABLES_THERE = """SELECT relname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE nspname = 'onepass' AND relkind IN ('r', 'p', 'v', 'm', 'f')"""
STORE_VERSION = "SELECT version FROM onepass.event_log_version"

SETTINGS = """SELECT current_setting('server_encoding'), current_setting('fsync'),
    current_setting('synchronous_commit'), set_config('search_path', 'onepass', false),
    set_config('lock_timeout', :milliseconds, false)"""
SET_DURABILITY = "SELECT set_config('synchronous_commit', :value, false)"

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
