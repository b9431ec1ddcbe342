"""The tables of an event store in SQLite, and the statements that only SQLite needs."""

__all__ = ["APPLICATION_ID", "CHANGES", "COUNT_CHANGE", "SCHEMA", "START_CHANGES", "TABLES"]

APPLICATION_ID = 0x6F6E6570  # "onep": tells the file from other SQLite databases

# Rows of forgotten events stay, without payload and blob: their numbers and keys are taken for good. Those of erased
# events have a payload and no blob. `pruned` has the number up to which the events of a stream were deleted, and
# `changes` the number of transactions that have changed anything.
SCHEMA = {
    "events": """CREATE TABLE events (
    stream TEXT NOT NULL,
    number INTEGER NOT NULL,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    time REAL NOT NULL,
    payload TEXT,
    blob BLOB,
    checksum BLOB NOT NULL,
    UNIQUE (stream, number),
    UNIQUE (stream, key, kind)
)""",
    "snapshots": """CREATE TABLE snapshots (
    stream TEXT NOT NULL,
    after INTEGER NOT NULL,
    time REAL NOT NULL,
    content BLOB NOT NULL,
    pinned INTEGER NOT NULL,
    checksum BLOB NOT NULL,
    UNIQUE (stream, after)
)""",
    "pruned": """CREATE TABLE pruned (
    stream TEXT NOT NULL UNIQUE,
    number INTEGER NOT NULL
)""",
    "changes": "CREATE TABLE changes (number INTEGER NOT NULL)",
}

TABLES = "SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY name"

START_CHANGES = "INSERT INTO changes VALUES (0)"
COUNT_CHANGE = "UPDATE changes SET number = number + 1"
CHANGES = "SELECT ifnull(max(number), 0) FROM changes"
