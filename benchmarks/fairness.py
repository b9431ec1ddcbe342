"""Fairness: our networks and scikit-learn's one-pass learners at their best, log-loss on the test parts of ten splits.

The step size of every peer is chosen by its prequential loss (each row is predicted before it is learned) on the
training rows, and its network takes a gradient step per row. The settings to choose from, and how the rows are weighted
in the choice, were picked in favour of the peers by their test scores on these very sets.

    python -m benchmarks.fairness [SPLITS]
"""

import sys
import warnings

from benchmarks.cells import Cell
from benchmarks.classification import COMMITTEE, MLP, OURS, SGD, SPLITS, bundled, sets

__all__ = ["cells"]

SECTION = "log-loss"


def cells(splits: int = SPLITS) -> list[Cell]:
    """Measure ours and theirs."""
    warnings.filterwarnings("ignore", category=UserWarning)
    found = []
    for name in ("digits", "breast cancer"):
        losses = {learner: float(pairs[:, 1].mean()) for learner, pairs in bundled(*sets()[name], splits).items()}
        best = min((MLP, SGD), key=losses.__getitem__)
        bounds = dict.fromkeys((OURS, COMMITTEE), f"<= {losses[best]:.4f}")
        for learner in (OURS, COMMITTEE, MLP, SGD):
            found.append(Cell(SECTION, f"{name}: {learner}", losses[learner], bounds.get(learner, "")))
    return found


def main(arguments: list[str]) -> None:
    """Print the cells."""
    for cell in cells(int(arguments[0]) if arguments else SPLITS):
        print(cell.line)


if __name__ == "__main__":
    main(sys.argv[1:])
