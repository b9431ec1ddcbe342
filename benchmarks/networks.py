"""What each choice of the networks is worth: one change at a time, on splits that are not reported.

    python -m benchmarks.networks FOLDER [SET ...]

FOLDER is as for ``benchmarks.uci``. The choices were made on splits 10 to 19, and this looks at the first of them.
A Markdown table comes out: RMSE / log-likelihood / coverage of the 95 % interval.
"""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.uci.splits import Score, Split, evaluate_on, find_datasets, load_split
from onepass import BayesianCommittee, BayesianNetwork
from onepass.models.network.priors import REGRESSION
from onepass.paper.kalman_network import KalmanNetwork

__all__ = ["VARIANTS"]

SPLITS = (10, 11, 12)
WIDTH = 50

# Name, passes, refinement, and how the model differs; without "members" it is one network.
VARIANTS: list[tuple[str, int, str, dict[str, Any]]] = [
    ("one network", 1, "reuse", {}),
    ("hidden biases start at zero", 1, "reuse", {"prior": replace(REGRESSION, bias_means=0.0)}),
    ("output weights start small", 1, "reuse", {"prior": replace(REGRESSION, output_means=0.5)}),
    ("hidden units start as twins", 1, "reuse", {"prior": replace(REGRESSION, paired=True)}),
    ("all prior deviations halved", 1, "reuse", {"prior_scale": 0.5}),
    ("all prior deviations doubled", 1, "reuse", {"prior_scale": 2.0}),
    ("noise fixed at 0.1", 1, "reuse", {"noise": 0.1, "calibrate": True}),
    ("no predictive scale", 1, "reuse", {"calibrate": False}),
    ("layer blocks", 1, "reuse", {"covariance": "layer"}),
    ("neuron blocks", 1, "reuse", {"covariance": "neuron"}),
    ("diagonal", 1, "reuse", {"covariance": "diagonal"}),
    ("noise by a second output", 1, "reuse", {"observation": "heteroscedastic"}),
    ("batches of 8 rows", 1, "reuse", {"batch": 8}),
    ("batches of 32 rows", 1, "reuse", {"batch": 32}),
    ("two hidden layers of 25", 1, "reuse", {"hidden": (25, 25)}),
    ("the same with the prior of one", 1, "reuse", {"hidden": (25, 25), "prior": REGRESSION}),
    ("three hidden layers of 20", 1, "reuse", {"hidden": (20, 20, 20)}),
    ("classic Kalman network", 1, "reuse", {"kalman": True}),
    ("committee of 5, stacked", 1, "reuse", {"members": 5}),
    ("committee of 5, uniform", 1, "reuse", {"members": 5, "weighting": "uniform"}),
    ("committee of 5, all evidence", 1, "reuse", {"members": 5, "weighting": "evidence"}),
    ("committee of 5, evidence of 50 rows", 1, "reuse", {"members": 5, "weighting": "window"}),
    ("one network, 10 passes reused", 10, "reuse", {}),
    ("one network, 10 passes EP", 10, "ep", {}),
    ("two hidden layers, 10 passes EP", 10, "ep", {"hidden": (25, 25)}),
    ("second output, 10 passes EP", 10, "ep", {"observation": "heteroscedastic"}),
    ("committee of 5, 10 passes EP", 10, "ep", {"members": 5}),
]


def score_variant(split: Split, passes: int, refine: str, options: dict[str, Any]) -> Score:
    """Learn one split with one variant."""
    given = {"hidden": (WIDTH,), **options}
    batch = given.pop("batch", 1)
    model: Any
    if given.pop("kalman", False):
        model = KalmanNetwork(split.X.shape[1], **given)
    elif "members" in given:
        model = BayesianCommittee(split.X.shape[1], **given)
    else:
        model = BayesianNetwork(split.X.shape[1], **given)
    return evaluate_on(split, model, passes, refine, batch)


def main(arguments: list[str]) -> None:
    """Print the table, a row at a time."""
    folder = Path(arguments[0])
    names = arguments[1:] or find_datasets(folder)
    splits = {name: [load_split(folder / name, number) for number in SPLITS] for name in names}
    print("| passes | variant | " + " | ".join(names) + " |")
    print("|---|---|" + "---|" * len(names))
    for label, passes, refine, options in VARIANTS:
        cells = []
        for name in names:
            table = np.array([score_variant(split, passes, refine, options) for split in splits[name]])
            rmse, likelihood, coverage, _ = table.mean(axis=0)
            cells.append(f"{rmse:.3f} / {likelihood:.2f} / {coverage:.0f}")
        print(f"| {passes} | {label} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
