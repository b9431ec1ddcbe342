"""The tables of an event store in SQLite, and the statements that only SQLite needs."""

from onepass.files.events.statements import tables

__all__ = ["APPLICATION_ID", "CHANGES", "COUNT_CHANGE", "SCHEMA", "START_CHANGES", "TABLES"]

APPLICATION_ID = 0x6F6E6570  # "onep": tells the file from other SQLite databases

SCHEMA = {
    **tables(name="TEXT", whole="INTEGER", real="REAL", text="TEXT", data="BLOB"),
    "changes": "CREATE TABLE changes (number INTEGER NOT NULL)",  # transactions that have changed anything
}

TABLES = "SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY name"

START_CHANGES = "INSERT INTO changes VALUES (0)"
COUNT_CHANGE = "UPDATE changes SET number = number + 1"
CHANGES = "SELECT ifnull(max(number), 0) FROM changes"
