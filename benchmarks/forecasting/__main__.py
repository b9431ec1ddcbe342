"""Forecasts of time series, next to the best of a competition and to other libraries.

    python -m benchmarks.forecasting --data FOLDER [--only m4|peers|streams|fleet|rollout|counts|page] [--window N]

FOLDER has ``m4-weekly.csv.gz`` and ``m4-hourly.csv.gz``: ``series,part,value`` in the order of time, where ``part`` is
``train`` or ``test``. ``--only`` measures a part again and keeps the rest; ``page`` measures nothing. ``--window N``
prints the scores of values in ``train``, N horizons before its end, and keeps nothing: settings were chosen there.
The peers of statsforecast need ``pip install statsforecast`` in an environment of its own, since it asks for an older
pandas. Results go to benchmarks/forecasting.json, and from there to docs/evidence/forecasting.md and
docs/images/forecasting.png. The peers take an hour of one core, the rest five minutes.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.forecasting import competition, counts, fleet, page, peers, rollout, streams
from benchmarks.stored import keep, stored

STORED = Path(__file__).parents[1] / "forecasting.json"
PARTS = ("m4", "peers", "streams", "fleet", "rollout", "counts", "page")


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.forecasting", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="folder with the competition's series")
    parser.add_argument("--only", choices=PARTS, help="measure this part alone, and keep the rest")
    parser.add_argument("--window", type=int, metavar="N", help="print the scores of a window in train")
    found = parser.parse_args()
    if found.data is None and (found.window or found.only in (None, "m4", "peers")):
        parser.error("the competition's series need --data")
    return found


def _peers(folder: Path) -> dict[str, Any]:
    if not peers.HAS_STATSFORECAST:
        print("statsforecast is not installed: its models keep their stored results")
    found: dict[str, Any] = {kind: dict(methods) for kind, methods in stored(STORED).get("peers", {}).items()}
    for kind, method, scores in peers.measure(folder):
        found.setdefault(kind, {})[method] = scores
        print(kind, method, scores, flush=True)
    return found


def main() -> None:
    """Measure, keep the results, and write the page."""
    options = arguments()
    if options.window:
        print(competition.measure(options.data, options.window))
        return
    measures: dict[str, Callable[[], dict[str, Any]]] = {
        "fleet": fleet.measure,  # first, since the peak of memory is that of the process
        "m4": lambda: competition.measure(options.data),
        "peers": lambda: _peers(options.data),
        "streams": streams.measure,
        "rollout": rollout.measure,
        "counts": counts.measure,
    }
    for part, measure in measures.items():
        if options.only in (None, part):
            keep(STORED, stored(STORED) | {part: measure()})
            print(part, flush=True)
    page.write(stored(STORED))


if __name__ == "__main__":
    main()
