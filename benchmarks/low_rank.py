"""What a covariance of low rank keeps of the full one, beside the cheaper forms: errors, and rows per second.

    python -m benchmarks.low_rank FOLDER [SET ...]

FOLDER is as for ``benchmarks.uci``. Two Markdown tables come out: the RMSE of one network with 50 or 200 ReLU units
after one pass, the mean over splits 0 to 9 (the rank was chosen on splits 10 to 19 and on random functions), and rows
per second of networks of 500, 2,000 and 8,000 weights, which take turns.
"""

import sys
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.timing import race
from benchmarks.uci.splits import evaluate_on, find_datasets, load_split
from onepass import BayesianNetwork

__all__ = ["FORMS"]

FORMS = ("full", "low_rank", "kronecker", "layer", "neuron")
SPLITS = range(10)
_MOST_WEIGHTS = 2_500  # of a covariance of which most is one block
_SHAPES = ((8, 50), (18, 100), (38, 200))  # features and units
_ROUNDS = 5


def error(folder: Path, name: str, units: int, form: str) -> str:
    """RMSE in the target's own unit, the mean over the splits and its standard error."""
    scores = []
    for number in SPLITS:
        split = load_split(folder / name, number)
        network = BayesianNetwork(split.X.shape[1], (units,), covariance=form)
        scores.append(evaluate_on(split, network, 1, "reuse").rmse)
    return f"{np.mean(scores):.3g} ± {np.std(scores) / np.sqrt(len(scores)):.1g}"


def rows_per_second(features: int, units: int, n: int = 400) -> dict[str, float]:
    """The fastest round of every form that a network of this size bears."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, features))
    y = np.sin(X @ rng.normal(size=features) / np.sqrt(features))
    networks = {form: BayesianNetwork(features, (units,), covariance=form) for form in FORMS if _bears(form, X, units)}
    networks["low_rank, float32"] = BayesianNetwork(features, (units,), covariance="low_rank", dtype="float32")
    seconds = race({form: partial(network.learn, X, y) for form, network in networks.items()}, _ROUNDS)
    return {form: n / min(times) for form, times in seconds.items()}


def _bears(form: str, X: np.ndarray, units: int) -> bool:
    return form not in ("full", "layer") or units * (X.shape[1] + 2) < _MOST_WEIGHTS


def main(arguments: list[str]) -> None:
    """Print both tables, a row at a time."""
    folder = Path(arguments[0])
    names = arguments[1:] or find_datasets(folder)
    print("| set | units | " + " | ".join(FORMS) + " |")
    print("|---|---|" + "---|" * len(FORMS))
    for name in names:
        for units in (50, 200):
            forms = [form for form in FORMS if units == 50 or form not in ("full", "layer")]
            cells = [error(folder, name, units, form) if form in forms else "" for form in FORMS]
            print(f"| {name} | {units} | " + " | ".join(cells) + " |", flush=True)
    shown = (*FORMS, "low_rank, float32")
    print("\n| weights | " + " | ".join(shown) + " |")
    print("|---|" + "---|" * len(shown))
    for features, units in _SHAPES:
        speeds = rows_per_second(features, units)
        cells = [f"{speeds[form]:,.0f}" if form in speeds else "" for form in shown]
        print(f"| {units * (features + 2) + 1:,} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
