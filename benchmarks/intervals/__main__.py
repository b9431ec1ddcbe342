"""Intervals that hold whatever the stream does: fifteen streams, and other intervals at their best.

    python -m benchmarks.intervals [--data FOLDER] [--only onepass|peers|cost|page] [--stream NAME ...]

FOLDER has ``streams/elec.csv.gz``, ``tables/abalone.csv`` and ``uci/kin8nm``; without it, streams of these keep the
results that are stored. ``--only`` measures a part again and keeps the rest; ``page`` measures nothing.
``--stream`` measures these streams alone. Results go to benchmarks/intervals.json, and from there to
docs/evidence/intervals.md and docs/images/intervals.png. All of it takes about ten minutes of one core.
"""

import argparse
import warnings
from pathlib import Path

from benchmarks.intervals import page, peers
from benchmarks.intervals.measure import cost, measured, read, write
from benchmarks.intervals.streams import streams

PARTS = ("onepass", "peers", "cost", "page")


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.intervals", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="folder with streams, tables and uci")
    parser.add_argument("--only", choices=PARTS, help="measure this part alone, and keep the rest")
    parser.add_argument("--stream", nargs="+", metavar="NAME", help="measure these streams alone, and keep the rest")
    return parser.parse_args()


def main() -> None:
    """Measure, keep the results, and write the page."""
    options = arguments()
    warnings.filterwarnings("ignore", category=UserWarning)
    if options.only in (None, "peers") and not peers.HAS_MAPIE:
        print(f"{peers.ACI} is skipped and keeps its stored results: pip install mapie")
    parts = PARTS if options.only is None else (options.only,)
    if "onepass" in parts or "peers" in parts:
        chosen = (one for one in streams(options.data) if options.stream is None or one.name in options.stream)
        for name in measured(chosen, "onepass" in parts, "peers" in parts):
            print(name, flush=True)
    if "cost" in parts:
        write(read() | {"cost": cost()})
    page.write(read())


if __name__ == "__main__":
    main()
