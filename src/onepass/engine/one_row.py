"""One row at a time with next to no overhead: what models learn a single row with, and mixtures of these.

Such a learner refers to the belief's own arrays and has memory of its own, so that a call acquires one buffer and makes
none. For any input that needs more than the simplest checks, and before any row that needs more than the plain step, a
call changes nothing and returns False: the caller then goes through the complete validation.
"""

import cython
import numpy as np


class OneRow:
    """Learns a row in two steps, so that of several models all learn it or none."""

    def attempt(self, x, y):
        """Learn a row ``(d,)`` as far as it can be undone; whether that was possible. If not, nothing has changed."""
        return False

    def score(self):
        """Log density of the row that was attempted under what the model alone predicted for it."""
        return 0.0

    def finish(self):
        """Learn the rest of the row that was attempted."""

    def undo(self):
        """Go back to before the row that was attempted."""

    def describe(self, x):
        """What a row of the right type is predicted from, in the form that its model takes; None for the long way."""
        return None

    def predict(self, x):
        """What the next row, ``(d,)``, is predicted from: see `describe`."""
        try:
            return self.describe(x)
        except (TypeError, ValueError):  # not float64, not contiguous
            return None

    def raise_pending(self):
        """Raise the exception of a function in Python that was stored because compiled loops can't raise."""

    def __call__(self, x, y):
        """Learn a row, ``(d,)``, and its target; whether that was done."""
        try:
            learned = self.attempt(x, y)
        except (TypeError, ValueError, OverflowError):  # not float64, not contiguous, no number: the long way
            return False
        if learned:
            self.finish()
        else:
            self.raise_pending()  # here, or it would be raised after the long way had succeeded
        return learned


class RowMixture:
    """Lets several learn a row, and weighs them by what each predicted: all of them or, on the terms above, none.

    The beliefs of all are more than a processor's nearest cache has room for. So those looked at last finish first, and
    are asked first about the next row.
    """

    def __init__(self, learners, switching):
        self.learners, self.switching, self.last_first = learners, switching, False
        self.log_densities = np.empty(len(learners))

    def call(self, x, y):
        """Learn a row of the right type."""
        k: cython.Py_ssize_t
        count: cython.Py_ssize_t = len(self.learners)
        for k in range(count):
            learner: OneRow = self.learners[k]
            if not learner.attempt(x, y):
                self.undo(k)
                learner.raise_pending()
                return False
            self.log_densities[k] = learner.score()
        for k in range(count - 1, -1, -1):
            learner = self.learners[k]
            learner.finish()
        self.switching.learn_row(self.log_densities)
        return True

    def describe(self, x):
        """Ask all about a row of the right type."""
        j: cython.Py_ssize_t
        count: cython.Py_ssize_t = len(self.learners)
        found = [None] * count
        last_first: cython.bint = self.last_first
        self.last_first = not last_first
        for j in range(count):
            k: cython.Py_ssize_t = count - 1 - j if last_first else j
            learner: OneRow = self.learners[k]
            seen = learner.describe(x)
            if seen is None:
                return None
            found[k] = seen
        return found

    def predict(self, x):
        """What each predicts the next row, ``(d,)``, from; None if one of them goes the long way."""
        try:
            return self.describe(x)
        except (TypeError, ValueError):
            return None

    def undo(self, count):
        """Undo what the first ``count`` have attempted."""
        k: cython.Py_ssize_t
        for k in range(count):
            learner: OneRow = self.learners[k]
            learner.undo()

    def __call__(self, x, y):
        """Learn a row, ``(d,)``, and its target; whether that was done."""
        try:
            return self.call(x, y)
        except (TypeError, ValueError, OverflowError):  # not float64, not contiguous, no number: the long way
            return False
