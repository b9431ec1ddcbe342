from typing import Any

import pytest

from onepass.service.listing import Only, Sort, page_of


class Model:
    """What a list sees of a model."""

    def __init__(self, name: str, kind: str = "table", **state: Any) -> None:
        idle = {"n_seen": 1, "created": 0.0, "pending": 0, "waiting": 0, "alarms": 0, "shadow": None}
        learns = {"writable": True, "why_not_writable": None}
        self._state = {"name": name, "kind": kind, **idle, **learns, **state}

    def glance(self) -> dict[str, Any]:
        return self._state

    def status(self) -> dict[str, Any]:
        return {**self._state, "schema": {}}


MODELS = [
    Model("Alpha", n_seen=30, created=5.0, pending=1, writable=False),  # as on a replica
    Model("beta", "bandit", n_seen=0, created=7.0, waiting=3),
    Model("gamma", n_seen=30, created=6.0, alarms=2, shadow={"n_seen": 1}),
    Model("zeta-beta", created=1.0, writable=False, why_not_writable="the disk is full"),
]


def names(**wanted: Any) -> list[str]:
    return [one["name"] for one in page_of(MODELS, **wanted).models]


@pytest.mark.parametrize(
    ("search", "expected"),
    [
        ("", ["Alpha", "beta", "gamma", "zeta-beta"]),
        ("BETA", ["beta", "zeta-beta"]),
        ("beta bandit", ["beta"]),
        ("beta  et", ["beta", "zeta-beta"]),
        ("delta", []),
    ],
)
def test_every_word_must_be_in_the_name_or_kind(search: str, expected: list[str]) -> None:
    assert names(search=search) == expected


@pytest.mark.parametrize(
    ("only", "expected"),
    [
        ("alarms", ["gamma"]),
        ("shadow", ["gamma"]),
        ("waiting", ["Alpha", "beta"]),
        ("new", ["beta"]),
        ("blocked", ["zeta-beta"]),
    ],
)
def test_a_state_leaves_the_models_in_it(only: Only, expected: list[str]) -> None:
    assert names(only=only) == expected


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("name", ["Alpha", "beta", "gamma", "zeta-beta"]),
        ("-name", ["zeta-beta", "gamma", "beta", "Alpha"]),
        ("rows", ["beta", "zeta-beta", "Alpha", "gamma"]),
        ("-rows", ["Alpha", "gamma", "zeta-beta", "beta"]),
        ("-created", ["beta", "gamma", "Alpha", "zeta-beta"]),
        ("-waiting", ["beta", "Alpha", "gamma", "zeta-beta"]),
        ("-alarms", ["gamma", "Alpha", "beta", "zeta-beta"]),
    ],
)
def test_models_that_are_equal_stay_in_the_order_of_their_names(sort: Sort, expected: list[str]) -> None:
    assert names(sort=sort) == expected


def test_pages_together_are_the_list_and_each_tells_how_many_there_are() -> None:
    pages = [page_of(MODELS, sort="-created", offset=offset, limit=3) for offset in (0, 3, 6)]
    assert [one["name"] for page in pages for one in page.models] == names(sort="-created")
    assert [page.found for page in pages] == [4, 4, 4]
    assert page_of(MODELS, search="beta", limit=1).found == 2
    assert all("schema" in one for one in pages[0].models)
