"""Reading in batches from a database whose index is out of order: it ends, and says so."""

from typing import Any, cast

import pytest

from onepass.events import EventStoreError
from onepass.events.database import Database
from onepass.events.reading import event_rows, open_rows


class OutOfOrder:
    """Gives one event again, whatever it is asked to begin after."""

    address = "events.sqlite"

    def rows(self, statement: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
        return [("s", 19, "kind", "key", 0.0)] if "payload" in statement else [(19, "key", 0.0)]


@pytest.mark.parametrize("read", [lambda db: event_rows(db, "s"), lambda db: open_rows(db, "s", "kind", "other")])
def test_an_index_that_gives_an_event_again_is_damaged(read: Any) -> None:
    with pytest.raises(EventStoreError, match="out of order: 19 comes after 19"):
        list(read(cast(Database, OutOfOrder())))
