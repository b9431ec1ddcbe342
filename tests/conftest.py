import os
from collections.abc import Iterator

# Before NumPy is imported. A worker per core is enough: threads of BLAS and OpenMP on top only wait for each other.
# The processes that tests start inherit this.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings

from tests.helpers.postgres_server import OwnPostgresServer, PostgresServer, own, running

# The first call of compiled code takes as long as compiling it; how fast things are is for the benchmarks to say.
settings.register_profile("short", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("long", settings.get_profile("short"), max_examples=300)
settings.load_profile("short")


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One server for all tests of a process."""
    with running() as started:
        yield started


@pytest.fixture
def server(postgres: PostgresServer) -> OwnPostgresServer:
    """The same, for tests that kill it, change its settings and users, or name databases as they like."""
    return own(postgres)
