"""All SQL of the event store: its tables, and each statement under a name that says what it does."""

__all__ = ["APPLICATION_ID", "SCHEMA", "VERSION"]

APPLICATION_ID = 0x6F6E6570  # "onep": tells the file from other SQLite databases
VERSION = 2

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

START_CHANGES = "INSERT INTO changes VALUES (0)"
COUNT_CHANGE = "UPDATE changes SET number = number + 1"
CHANGES = "SELECT ifnull(max(number), 0) FROM changes"

TABLES = "SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY name"

_EVENT = "SELECT stream, number, kind, key, time, payload, blob, checksum FROM events"
FIND = f"{_EVENT} WHERE stream = :stream AND key = :key AND kind = :kind"
FIND_KEY = f"{_EVENT} WHERE stream = :stream AND key = :key AND payload IS NOT NULL"
READ = f"""{_EVENT} WHERE stream = :stream AND number > :after AND number <= :until
    ORDER BY number LIMIT :limit"""
OPEN_KEYS = """SELECT number, key, time FROM events AS open
    WHERE stream = :stream AND number > :after AND kind = :kind AND blob IS NOT NULL AND NOT EXISTS
        (SELECT 1 FROM events WHERE stream = :stream AND key = open.key AND kind = :without)
    ORDER BY number LIMIT :limit"""
INSERT = "INSERT INTO events VALUES (:stream, :number, :kind, :key, :time, :payload, :blob, :checksum)"
ERASE = """UPDATE events SET payload = :payload, blob = NULL, checksum = :checksum
    WHERE stream = :stream AND number = :number"""
DELETE_UP_TO = "DELETE FROM events WHERE stream = :stream AND number <= :number"

PRUNED = "SELECT ifnull((SELECT number FROM pruned WHERE stream = :stream), 0)"
SET_PRUNED = "INSERT OR REPLACE INTO pruned VALUES (:stream, :number)"
LAST = f"SELECT max(ifnull((SELECT max(number) FROM events WHERE stream = :stream), 0), ({PRUNED}))"
STREAMS = """SELECT stream FROM events UNION SELECT stream FROM snapshots UNION SELECT stream FROM pruned
    ORDER BY stream"""

SNAPSHOT_UNTIL = """SELECT after, time, content, pinned, checksum FROM snapshots
    WHERE stream = :stream AND after <= :until ORDER BY after DESC LIMIT 1"""
INSERT_SNAPSHOT = "INSERT OR REPLACE INTO snapshots VALUES (:stream, :after, :time, :content, :pinned, :checksum)"
KEEP_SNAPSHOTS = """DELETE FROM snapshots WHERE stream = :stream AND pinned = 0 AND after NOT IN
    (SELECT after FROM snapshots WHERE stream = :stream AND pinned = 0 ORDER BY after DESC LIMIT :keep)"""
DELETE_SNAPSHOTS = "DELETE FROM snapshots WHERE stream = :stream AND pinned = 0 AND after < :number"
DELETE_SNAPSHOT = "DELETE FROM snapshots WHERE stream = :stream AND after = :after"
