from typing import Any

import pytest

from onepass.tables.readers.errors import StreamError
from onepass.tables.readers.prefetch import prefetch


def test_a_thread_ahead_passes_on_everything_and_stops_when_nobody_listens() -> None:
    assert list(prefetch(range(1000))) == list(range(1000))

    def failing() -> Any:
        yield 1
        raise StreamError("broken")

    coming = prefetch(failing())
    assert next(coming) == 1
    with pytest.raises(StreamError, match="broken"):
        next(coming)
    made: list[int] = []
    endless = prefetch(made.append(i) or i for i in range(10**9))  # type: ignore[func-returns-value]
    assert next(iter(endless)) == 0
    endless.close()  # type: ignore[attr-defined]
    assert len(made) < 100
