"""The SQL of an event log, each statement under a name that says what it does, in words that all databases know."""

__all__ = ["LAST", "VERSION", "tables"]

VERSION = 4  # of the tables, in every database


def tables(name: str, whole: str, real: str, text: str, data: str) -> dict[str, str]:
    """The statements that create the tables, with a database's own words for the types of columns.

    Rows of forgotten events stay, without payload and blob: their numbers and keys are taken for good. Those of erased
    events have a payload and no blob. `pruned` has the number up to which the events of a stream were deleted.
    """
    return {
        "events": f"""CREATE TABLE events (
    stream {name} NOT NULL,
    number {whole} NOT NULL,
    kind {name} NOT NULL,
    key {name} NOT NULL,
    time {real} NOT NULL,
    payload {text},
    blob {data},
    checksum {data} NOT NULL,
    UNIQUE (stream, number),
    UNIQUE (stream, key, kind)
)""",
        "snapshots": f"""CREATE TABLE snapshots (
    stream {name} NOT NULL,
    after {whole} NOT NULL,
    time {real} NOT NULL,
    content {data} NOT NULL,
    pinned {whole} NOT NULL,
    checksum {data} NOT NULL,
    UNIQUE (stream, after)
)""",
        "pruned": f"""CREATE TABLE pruned (
    stream {name} NOT NULL UNIQUE,
    number {whole} NOT NULL
)""",
    }


_EVENT = "SELECT stream, number, kind, key, time, payload, blob, checksum FROM events"
FIND = f"{_EVENT} WHERE stream = :stream AND key = :key AND kind = :kind"
FIND_KEY = f"{_EVENT} WHERE stream = :stream AND key = :key AND payload IS NOT NULL ORDER BY number"
READ = f"""{_EVENT} WHERE stream = :stream AND number > :after AND number <= :until
    ORDER BY number LIMIT :limit"""
OPEN_KEYS = """SELECT number, key, time FROM events AS waiting
    WHERE stream = :stream AND number > :after AND kind = :kind AND blob IS NOT NULL AND NOT EXISTS
        (SELECT 1 FROM events WHERE stream = :stream AND key = waiting.key AND kind = :without)
    ORDER BY number LIMIT :limit"""
INSERT = "INSERT INTO events VALUES (:stream, :number, :kind, :key, :time, :payload, :blob, :checksum)"
ERASE = """UPDATE events SET payload = :payload, blob = NULL, checksum = :checksum
    WHERE stream = :stream AND number = :number"""
DELETE_AFTER = "DELETE FROM events WHERE stream = :stream AND number > :number"
DELETE_UP_TO = "DELETE FROM events WHERE stream = :stream AND number <= :number"

PRUNED = "SELECT coalesce((SELECT number FROM pruned WHERE stream = :stream), 0)"
SET_PRUNED = """INSERT INTO pruned VALUES (:stream, :number)
    ON CONFLICT (stream) DO UPDATE SET number = excluded.number"""
LAST = """SELECT max(number) FROM (SELECT max(number) AS number FROM events WHERE stream = :stream
    UNION ALL SELECT number FROM pruned WHERE stream = :stream UNION ALL SELECT 0) AS numbers"""
STREAMS = """SELECT stream FROM events UNION SELECT stream FROM snapshots UNION SELECT stream FROM pruned
    ORDER BY stream"""

SNAPSHOT_UNTIL = """SELECT after, time, content, pinned, checksum FROM snapshots
    WHERE stream = :stream AND after <= :until ORDER BY after DESC LIMIT 1"""
INSERT_SNAPSHOT = """INSERT INTO snapshots VALUES (:stream, :after, :time, :content, :pinned, :checksum)
    ON CONFLICT (stream, after) DO UPDATE
    SET time = excluded.time, content = excluded.content, pinned = excluded.pinned, checksum = excluded.checksum"""
KEEP_SNAPSHOTS = """DELETE FROM snapshots WHERE stream = :stream AND pinned = 0 AND after NOT IN
    (SELECT after FROM snapshots WHERE stream = :stream AND pinned = 0 ORDER BY after DESC LIMIT :keep)"""
DELETE_SNAPSHOTS = "DELETE FROM snapshots WHERE stream = :stream AND pinned = 0 AND after < :number"
DELETE_SNAPSHOT = "DELETE FROM snapshots WHERE stream = :stream AND after = :after"
