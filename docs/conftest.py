"""The pages of the documentation are run as tests; those of the service have a service to talk to."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

collect_ignore = ["conf.py", "_extensions"]  # of the site, for which Sphinx need not be there
collect_ignore += [f"how-to/{one}.md" for one in ("skpro", "sktime") if not find_spec(one)]
_COMMAND = [sys.executable, "-c", "from onepass.cli.main import main; main()"]


@pytest.fixture(autouse=True)
def service(
    request: pytest.FixtureRequest,
    doctest_namespace: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[None]:
    """Address and token of a service with the models of a page's first lines, for that page alone.

    What the page has done by other means than Python is done here: the requests of curl at the beginning, and the
    export at the end.
    """
    if request.path.name in ("python.md", "forecast.md"):  # its table, as downloaded
        monkeypatch.chdir(Path(__file__).parent / "tutorials" / "tables")
    page = request.path.parts[-2:]
    if page == ("how-to", "forecast-service.md"):
        with _served(tmp_path, doctest_namespace):
            yield
        return
    if page != ("tutorials", "service.md"):
        yield
        return
    shutil.copy(request.path.parent / "tables" / "trips.csv", tmp_path)
    fit = ["fit", "trips.csv", "--target", "price", "--model", "price.onepass", "--quiet"]
    fitted = subprocess.run([*_COMMAND, *fit], cwd=tmp_path, check=False)
    assert fitted.returncode == 3, "two lines are damaged"
    with _served(tmp_path, doctest_namespace, "--model", "price=price.onepass"):
        _label_trip_17(doctest_namespace["address"], doctest_namespace["token"])
        _export_when_read(tmp_path, monkeypatch)
        yield


@contextmanager
def _served(folder: Path, namespace: dict[str, Any], *options: str) -> Iterator[None]:
    """A service, whose address and token the page knows."""
    serve = ["serve", "--data", "state", *options, "--port", "0"]
    with subprocess.Popen([*_COMMAND, *serve], cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            name, _, value = line.partition(": ")
            namespace[name] = value.strip()
            if name == "page file":
                break
        namespace["token"] = Path(namespace["token file"]).read_text().strip()
        try:
            yield
        finally:
            process.terminate()


def _label_trip_17(address: str, token: str) -> None:
    from onepass.client import Client  # here, because other pages don't need what it needs

    with Client(address, token) as client:
        price = client.model("price")
        price.predict({"km": 12.5, "car": "van", "vip": False}, id="trip 17")
        assert price.label("trip 17", 33.5) == ("trip 17", "learned", 3, 4999)  # as the page has it


def _export_when_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the command of the page before its result is read."""
    import pandas as pd

    real = pd.read_parquet

    def exported(path: str) -> Any:
        subprocess.run([*_COMMAND, "admin", "export-events", "state", path], check=True, capture_output=True)
        return real(path)

    monkeypatch.chdir(folder)
    monkeypatch.setattr(pd, "read_parquet", exported)
