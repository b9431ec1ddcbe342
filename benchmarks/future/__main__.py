"""How well `onepass fit` predicts the future of a table: fitted on the first 80 % of the rows, tested on the rest.

    python -m benchmarks.future --data FOLDER             # every table, and how long a fit takes
    python -m benchmarks.future --data FOLDER --half development
    python -m benchmarks.future co2 abalone               # some
    python -m benchmarks.future --only in-time            # tables whose rows have a time, fitted with it
    python -m benchmarks.future --only page               # the page alone, from the stored results

Tables keep the order that they have in their files. Next to the coverage of the 95 % intervals, the root mean squared
error and the log score of the last fifth are those of ridge regression on the same features, of the value one period
ago and of every candidate that `fit` chooses among, and the coverage after random splits. Tables with a time are also
fitted with ``time=``. FOLDER has ``uci``,
``tables``, ``streams`` and ``forecasting``. Results go to benchmarks/future.json, and from there to
docs/evidence/future.md and docs/images/future.png.
"""

import argparse
import tempfile
import warnings
from pathlib import Path

from benchmarks.future import page
from benchmarks.future.measure import (
    MOST,
    fit_times,
    measured,
    measured_in_time,
    read,
    tables,
    write,
    write_in_time,
)

PARTS = ("tables", "in-time", "time", "page")


def main() -> None:
    """Measure, keep the results, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.future", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", nargs="*", help="these tables alone")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="more tables")
    parser.add_argument("--rows", type=int, default=MOST, help="rows of a table that are used")
    parser.add_argument("--half", choices=["development", "report", "both"], default="both")
    parser.add_argument("--only", choices=PARTS, help="measure this part alone, and keep the rest")
    parser.add_argument("--missing", action="store_true", help="measure only tables of which nothing is stored")
    given = parser.parse_args()
    parts = PARTS if given.only is None else (given.only,)
    warnings.simplefilter("ignore")
    stored = {one.name for one in read()["tables"]} if given.missing else set()
    with tempfile.TemporaryDirectory() as folder:
        for table in tables(given.data):
            if not (table.name in given.names if given.names else given.half in ("both", table.half)):
                continue
            if "tables" in parts and table.name not in stored:
                outcome = measured(table, Path(folder), given.rows)
                write([outcome])
                print(page.line(outcome), flush=True)
            if "in-time" in parts and (in_time := measured_in_time(table, Path(folder), given.rows)) is not None:
                write_in_time(in_time)
                print(in_time, flush=True)
        if "time" in parts and not given.names:
            write([], times=fit_times(Path(folder)))
    page.write(read())


if __name__ == "__main__":
    main()
