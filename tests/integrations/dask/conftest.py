"""One cluster of two processes for all tests of a process."""

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="package")
def client() -> Iterator[Any]:
    from distributed import Client, LocalCluster

    options: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        yield client
