"""The pages of the documentation are run as tests; that of the service has a service to talk to."""

import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

collect_ignore = ["conf.py", "_extensions"]  # of the site, for which Sphinx need not be there
_COMMAND = [sys.executable, "-c", "from onepass.cli.main import main; main()"]


@pytest.fixture(autouse=True)
def service(
    request: pytest.FixtureRequest,
    doctest_namespace: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[None]:
    """Address and token of a service with the model of the page's first lines, for that page alone.

    What the page has done by other means than Python is done here: the requests of curl at the beginning, and the
    export at the end.
    """
    if request.path.name != "service.md":
        yield
        return
    _write_trips(tmp_path / "trips.csv")
    files = {"--target": "price", "--model": "price.onepass", "--model-kind": "perceptron"}
    options = [word for pair in files.items() for word in pair]
    subprocess.run([*_COMMAND, "fit", "trips.csv", *options, "--quiet"], cwd=tmp_path, check=True)
    serve = ["serve", "--data", "state", "--model", "price=price.onepass", "--port", "0"]
    with subprocess.Popen([*_COMMAND, *serve], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            name, _, value = line.partition(": ")
            doctest_namespace[name] = value.strip()
            if "page" in doctest_namespace:
                break
        _label_trip_17(doctest_namespace["address"], doctest_namespace["token"])
        _export_when_read(tmp_path, monkeypatch)
        yield
        process.terminate()


def _label_trip_17(address: str, token: str) -> None:
    from onepass.client import Client  # here, because other pages don't need what it needs

    with Client(address, token) as client:
        price = client.model("price")
        price.predict({"km": 12.5, "car": "van", "rain": False}, id="trip 17")
        assert price.label("trip 17", 33.5) == ("trip 17", "learned", 3, 501)  # as the page has it


def _export_when_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the command of the page before its result is read."""
    import pandas as pd

    real = pd.read_parquet

    def exported(path: str) -> Any:
        subprocess.run([*_COMMAND, "serve", "--data", "state", "--export", path], check=True, capture_output=True)
        return real(path)

    monkeypatch.chdir(folder)
    monkeypatch.setattr(pd, "read_parquet", exported)


def _write_trips(path: Path) -> None:
    dice = random.Random(1)
    extra = {"compact": 0.0, "van": 6.0, "limousine": 15.0}
    lines = ["km,car,rain,price"]
    for _ in range(500):
        km, car, rain = dice.uniform(1, 30), dice.choice(sorted(extra)), dice.random() < 0.2
        price = 4.0 + 1.8 * km + extra[car] + 3.0 * rain + dice.gauss(0, 2)
        lines.append(f"{km:.1f},{car},{str(rain).lower()},{price:.2f}")
    path.write_text("\n".join(lines) + "\n")
