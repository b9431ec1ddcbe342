"""A list of many models cut to what was asked for: by words, by state, in an order, page by page."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

__all__ = ["Listable", "Only", "Page", "Sort", "page_of"]

Only: TypeAlias = Literal["alarms", "shadow", "waiting", "new", "blocked"]
"""States that models can be chosen by; see ``_IS``."""
Sort: TypeAlias = Literal[
    "name", "-name", "rows", "-rows", "created", "-created", "waiting", "-waiting", "alarms", "-alarms"
]
"""Orders; a minus puts the largest first."""

_IS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "alarms": lambda found: found["alarms"] > 0,
    "shadow": lambda found: found["shadow"] is not None,
    "waiting": lambda found: found["pending"] + found["waiting"] > 0,
    "new": lambda found: found["n_seen"] == 0,
    "blocked": lambda found: found["why_not_writable"] is not None,  # a replica never learns, and is not blocked
}
_BY: dict[str, Callable[[dict[str, Any]], Any]] = {
    "name": lambda found: found["name"].casefold(),
    "rows": lambda found: found["n_seen"],
    "created": lambda found: found["created"],
    "waiting": lambda found: found["pending"] + found["waiting"],
    "alarms": lambda found: found["alarms"],
}


class Listable(Protocol):
    """A model that can be listed."""

    def glance(self) -> dict[str, Any]:
        """What there is to know about it without its schema, which takes longer."""

    def status(self) -> dict[str, Any]:
        """All of it."""


class Page(NamedTuple):
    """Some of the models that were asked for, and how many there are of them."""

    models: list[dict[str, Any]]
    found: int


def page_of(
    models: Sequence[Listable],
    *,
    search: str = "",
    only: Only | None = None,
    sort: Sort = "name",
    offset: int = 0,
    limit: int | None = None,
) -> Page:
    """The states of the models that were asked for.

    Parameters
    ----------
    models : by name; models that are equal in the order asked for stay in this one
    search : words, each of which must be in the name or kind of a model, however they are capitalised
    only : the state that models must be in
    sort : the order
    offset, limit : which of them; None for all
    """
    words = search.casefold().split()
    glances = [(model.glance(), model) for model in models]
    found = [
        (glance, model)
        for glance, model in glances
        if (only is None or _IS[only](glance))
        and all(word in f"{glance['name']} {glance['kind']}".casefold() for word in words)
    ]
    by = _BY[sort.removeprefix("-")]
    found.sort(key=lambda pair: by(pair[0]), reverse=sort.startswith("-"))
    chosen = found[offset : None if limit is None else offset + limit]
    return Page([model.status() for _, model in chosen], len(found))
