"""Fairness: our networks and scikit-learn's one-pass learners at their best, log-loss on the test parts of ten splits.

The step size of every peer is chosen by its prequential loss (each row is predicted before it is learned) on the
training rows, and its network takes a gradient step per row. The settings to choose from, and how the rows are weighted
in the choice, were picked in favour of the peers by their test scores on these very sets. In the first column the
peers had no such choice: the network had its defaults, which make seven gradient steps on digits, and the linear model
its default step size. The target of our figures is the loss of the best peer: where it is not reached, that peer is
better.

    python -m benchmarks.fairness [SPLITS]
"""

import sys
import warnings

from benchmarks.cells import Cell
from benchmarks.classification import COMMITTEE, MLP, OURS, SGD, SPLITS, bundled, sets

__all__ = ["cells"]

SECTION = "Fairness"

# Log-losses that version 0.1 reported; its SGD is scikit-learn's SGDClassifier with default settings.
BEFORE = {
    "digits": {OURS: 0.1455, COMMITTEE: 0.1474, MLP: 2.4983, SGD: 2.5569},
    "breast cancer": {OURS: 0.0824, COMMITTEE: 0.0795, MLP: 0.5303, SGD: 1.3859},
}


def cells(splits: int = SPLITS) -> list[Cell]:
    """Measure ours and theirs."""
    warnings.filterwarnings("ignore", category=UserWarning)
    found = []
    for name, before in BEFORE.items():
        losses = {learner: float(pairs[:, 1].mean()) for learner, pairs in bundled(*sets()[name], splits).items()}
        best = min((MLP, SGD), key=losses.__getitem__)
        targets = dict.fromkeys((OURS, COMMITTEE), f"<= {losses[best]:.4f}")
        for learner, loss in before.items():
            found.append(
                Cell(SECTION, f"{name}: {learner}", loss, losses[learner], targets.get(learner, "at its best"))
            )
    return found


def main(arguments: list[str]) -> None:
    """Print the cells."""
    for cell in cells(int(arguments[0]) if arguments else SPLITS):
        print(f"{cell.name:45} {cell.before:.4f} -> {cell.after:.4f}   {cell.target}")


if __name__ == "__main__":
    main(sys.argv[1:])
