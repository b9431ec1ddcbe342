"""The client that work is sent to, and what is reported while it works."""

import subprocess
import sys

import pytest
from distributed import Client

from onepass.integrations.dask.client import connected, placements, progress_report, send


def test_without_dask_one_line_says_what_to_install() -> None:
    code = "import sys; sys.modules['dask'] = None; import onepass.distributed"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "MissingExtraError: onepass.distributed needs dask: pip install 'onepass-learn[dask]'" in out.stderr


def test_a_client_is_the_one_given_or_the_current_one() -> None:
    with pytest.raises(TypeError, match=r"client must be a distributed\.Client, got str"), connected("tcp://here"):
        raise AssertionError
    with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as own:
        with connected(None) as found:
            assert found is own
        with connected(own) as found:
            assert found is own
        value = send(own, {"a": 1})
        assert value.result() == {"a": 1}
        (options,) = placements(own, [value])
        assert options["allow_other_workers"]
        assert list(options["workers"]) == list(own.scheduler_info()["workers"])


def test_progress_is_told_to_the_function_given_or_to_nobody() -> None:
    told: list[tuple[int, int]] = []
    with progress_report(lambda done, total: told.append((done, total)), 3) as report:
        report(2)
    assert told == [(2, 3)]
    with progress_report(False, 3) as report:
        report(1)
    with progress_report(True, 3) as report:  # a bar, which a terminal would show
        report(3)
