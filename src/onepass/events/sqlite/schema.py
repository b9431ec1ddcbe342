"""The tables of an event store in SQLite, and the statements that only SQLite needs."""

from onepass.events.statements import LAST, tables

__all__ = [
    "APPLICATION_ID",
    "CHANGES",
    "COUNT_CHANGE",
    "END",
    "SCHEMA",
    "SET_END",
    "START_CHANGES",
    "STREAMS",
    "TABLES",
]

APPLICATION_ID = 0x6F6E6570  # "onep": tells the file from other SQLite databases

SCHEMA = {
    **tables(name="TEXT", whole="INTEGER", real="REAL", text="TEXT", data="BLOB"),
    "changes": "CREATE TABLE changes (number INTEGER NOT NULL)",  # transactions that have changed anything
    # The last number of each stream once more: events are found by an index, which has no checksum. One that has lost
    # an event in the middle shows by the numbers, one that has lost the last by this alone.
    "ends": """CREATE TABLE ends (
    stream TEXT NOT NULL UNIQUE,
    last INTEGER NOT NULL,
    checksum BLOB NOT NULL
)""",
}

TABLES = "SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY name"

START_CHANGES = "INSERT INTO changes VALUES (0)"
COUNT_CHANGE = "UPDATE changes SET number = number + 1"
CHANGES = "SELECT ifnull(max(number), 0) FROM changes"

END = f"""SELECT ({LAST}), ends.stream, ends.last, ends.checksum
    FROM (SELECT 1) LEFT JOIN ends ON ends.stream = :stream"""
SET_END = """INSERT INTO ends VALUES (:stream, :last, :checksum)
    ON CONFLICT (stream) DO UPDATE SET last = excluded.last, checksum = excluded.checksum"""

# From each name in the index of events to the next, without a look at all events of a stream.
STREAMS = """WITH RECURSIVE names (stream) AS (SELECT min(stream) FROM events
    UNION SELECT (SELECT min(stream) FROM events WHERE stream > names.stream) FROM names WHERE stream IS NOT NULL)
    SELECT stream FROM names WHERE stream IS NOT NULL UNION SELECT stream FROM ends
    UNION SELECT stream FROM snapshots UNION SELECT stream FROM pruned ORDER BY stream"""
