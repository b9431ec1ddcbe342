"""Networks on regression sets with published train/test splits: RMSE, log-likelihood, coverage and time.

    python -m benchmarks.uci --data FOLDER --splits 10 --json benchmarks/uci-1.json
    python -m benchmarks.uci --data FOLDER --splits 10 --passes 10 --json benchmarks/uci-10.json
    python -m benchmarks.uci --data FOLDER --splits 10 --members 1 --json benchmarks/uci-1-single.json
    python -m benchmarks.uci --data FOLDER --splits 10 --passes 10 --members 1 --json benchmarks/uci-10-single.json
    python -m benchmarks.uci --write

The first four measure, on the first ten splits of every set in the folder: on two cores about two minutes, twenty-five,
half a minute and five. The last writes docs/evidence/uci.md and its figure from what they found. The defaults were
chosen on splits 10 to 19, so that the figures to quote are those of splits 0 to 9.
"""

import argparse
import json
from pathlib import Path

from benchmarks.uci import page
from benchmarks.uci.splits import Result, Setting, bench, find_datasets
from onepass.files.atomic import write_atomically


def main() -> None:
    """Measure the sets of a folder, or write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.uci", description=(__doc__ or "").partition("\n")[0])
    job = parser.add_mutually_exclusive_group(required=True)
    job.add_argument("--data", type=Path, help="folder with one folder per set")
    job.add_argument("--write", action="store_true", help="write the page from the stored results")
    parser.add_argument("--datasets", nargs="+", help="names of sets; all by default")
    parser.add_argument("--splits", type=int, help="number of splits, from the first; all by default")
    parser.add_argument("--passes", type=int, default=1, help="passes over the training rows")
    parser.add_argument("--hidden", type=int, nargs="+", default=[50], help="units of the hidden layers")
    parser.add_argument("--members", type=int, default=5, help="networks per committee")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random numbers")
    parser.add_argument("--json", type=Path, help="write the scores to this file")
    options = parser.parse_args()
    if options.write:
        page.write()
        return
    there = find_datasets(options.data)
    asked = options.datasets or there
    missing = [name for name in asked if name not in there]
    if missing or not asked:
        parser.error(f"no set {', '.join(missing)} in {options.data}; there are: {', '.join(there) or 'none'}")
    setting = Setting(options.passes, tuple(options.hidden), options.members, options.seed)
    results = []
    print(f"{'':20} {'RMSE':>16} {'log-likelihood':>16} {'95 %':>6} {'s/pass':>9}")
    for result in bench(options.data, asked, options.splits, setting):
        print(_line(result), flush=True)
        results.append(result.numbers())
    if options.json is not None:
        write_atomically(options.json, (json.dumps(results, indent=2) + "\n").encode())


def _line(result: Result) -> str:
    rmse = f"{result.rmse_mean:.3f} ± {result.rmse_se:.3f}"
    likelihood = f"{result.ll_mean:.3f} ± {result.ll_se:.3f}"
    return f"{result.dataset:20} {rmse:>16} {likelihood:>16} {result.coverage_mean:6.1f} {result.seconds_per_pass:9.3f}"


if __name__ == "__main__":
    main()
