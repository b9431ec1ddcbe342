"""Rounds of expectation propagation as Dask tasks: shards learned from their cavities, sites summed along a tree.

The same steps as `onepass.merging.Rounds`, with the sites left on the workers. Sums are taken in an order that depends
only on the number of shards, so the result does not depend on which worker finishes first.
"""

import copy
from collections.abc import Callable
from typing import Any

from onepass.integrations.dask.client import placements, send, wait_for
from onepass.integrations.dask.models import update
from onepass.integrations.dask.shards import Shard, batches_of_at_most
from onepass.merging import Merging, Site

__all__ = ["NO_ROWS", "ROWS_AT_ONCE", "count_rows", "learn_in_rounds", "learn_shard", "replace_sites"]

ROWS_AT_ONCE = 8192  # so that the temporary arrays of a batch fit a core's own cache
NO_ROWS = "data has no rows, so there is nothing to learn"
_FAN_IN = 8  # sites added by one task


def learn_in_rounds(
    client: Any, prior: Any, shards: list[Any], rounds: int, report: Callable[[int], None]
) -> tuple[Any, Any]:
    """Learn every shard so many times; returns futures of the `Merging` and of the sum of all sites."""
    # Made here rather than by a task, so that a model that can't be merged raises its error at once.
    merging = send(client, Merging(prior))
    total = client.submit(Merging.nothing, merging, pure=False)
    sites = [total] * len(shards)
    for number in range(rounds):
        places = placements(client, shards)
        learned = [
            client.submit(learn_shard, merging, total, site, shard, k, pure=False, **place)
            for k, (site, shard, place) in enumerate(zip(sites, shards, places, strict=True))
        ]
        wait_for(learned, report, number * len(shards))
        sites, total = replace_sites(client, merging, (sites, total), learned)
    return merging, total


def replace_sites(client: Any, merging: Any, old: tuple[list[Any], Any], new: list[Any]) -> tuple[list[Any], Any]:
    """Replace futures of sites and of their sum by new ones, or by a damped step, see `Merging.step_size`."""
    total = _sum_sites(client, new)
    share = client.submit(Merging.step_size, merging, old[1], total, len(new), pure=False).result()
    if share == 1.0:
        return new, total
    sites = [client.submit(Site.toward, a, b, share, pure=False) for a, b in zip(old[0], new, strict=True)]
    return sites, client.submit(Site.toward, old[1], total, share, pure=False)


def _sum_sites(client: Any, sites: list[Any]) -> Any:
    while len(sites) > 1:
        groups = [sites[begin : begin + _FAN_IN] for begin in range(0, len(sites), _FAN_IN)]
        sites = [client.submit(_sum, group, pure=False) for group in groups]
    return sites[0]


# Tasks, which run on the workers.


def learn_shard(merging: Merging, total: Site, site: Site, shard: Shard, number: int) -> Site:
    """Learn a shard from its cavity; returns its new site, or the old one if there is no cavity or no row."""
    start = merging.cavity(total, site)
    if start is None:
        return site
    model, learned = copy.deepcopy(start), 0
    try:
        for X, y in batches_of_at_most(ROWS_AT_ONCE, shard):
            update(model, X, y)
            learned += len(y)
    except (TypeError, ValueError) as error:
        # Some subclasses, such as UnicodeDecodeError, can't be made from a message alone.
        kind = ValueError if isinstance(error, ValueError) else TypeError
        raise kind(f"shard {number}, after {learned} rows: {error}") from error
    return merging.site(start, model) if learned else site


def count_rows(site: Site) -> int:
    """Return the number of rows that a site represents."""
    return site.rows


def _sum(sites: list[Site]) -> Site:
    return sum(sites[1:], sites[0])
