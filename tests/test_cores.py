import os

import pytest

from onepass._cores import available_cores


def test_only_the_cores_that_the_process_may_use_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 3}, raising=False)
    assert available_cores() == 2


@pytest.mark.parametrize(("known", "expected"), [(8, 8), (None, 1)])
def test_where_the_system_cannot_say_all_cores_count(
    monkeypatch: pytest.MonkeyPatch, known: int | None, expected: int
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: known)
    assert available_cores() == expected
