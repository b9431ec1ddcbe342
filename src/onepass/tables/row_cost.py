"""What a row of a table costs in time, and how many are learned or predicted at once.

Between two blocks a run hears that it is to stop, saves its progress and shows it, so a block must not take long,
whatever the model. Its size follows from the model alone and not from a clock: a run that was cut and resumed then
learns the very same blocks. The times are those of a slow core of a busy machine.
"""

from dataclasses import dataclass

from onepass.beliefs.choice import Covariance, multiply_adds
from onepass.beliefs.network import NetworkBelief
from onepass.beliefs.prior import perceptron_belief
from onepass.layers.layout import Layout

__all__ = ["LONGEST_ROW", "RowCost"]

LONGEST_ROW = 1.0
"""Seconds; a model whose rows take longer is of no use, and could not be interrupted."""
_BLOCK_TIME = 0.1  # seconds
_MULTIPLY_ADDS = 0.4e3 * NetworkBelief.per_millisecond  # per second, of a slow core
# Seconds for matching a target of several classes. Those of a perceptron are tied together by their number, and when
# they are predicted by pairs; those of a network by the inverse of their covariance.
_CLASS, _PAIR, _TRIPLE = 17e-6, 0.15e-6, 3e-9
_MEMBERS = 10  # models side by side, at most, that "auto" stands for
_FEWEST = 64  # rows that share the work on a large covariance


@dataclass(frozen=True)
class RowCost:
    """Seconds per row of a model.

    Parameters
    ----------
    covariance : str or tuple of str
    widths : of all layers, from the features to the outputs
    several : bool
        Whether models with several settings are learned side by side.

    Examples
    --------
    >>> RowCost("full", (20, 1), several=False).rows_to_learn(8192)
    8192
    >>> RowCost("neuron", (20, 953), several=False).rows_to_learn(8192)
    4
    >>> RowCost("diagonal", (20, 50, 953), several=False).to_learn > LONGEST_ROW
    True
    """

    covariance: Covariance
    widths: tuple[int, ...]
    several: bool

    @property
    def to_learn(self) -> float:
        """Seconds for predicting and learning a row."""
        return self._steps + (self._match if self._has_hidden else self._members * _CLASS * self._classes)

    @property
    def to_predict(self) -> float:
        """Seconds for predicting a row."""
        return self._steps + (self._match if self._has_hidden else self._members * _PAIR * self._classes**2)

    def rows_to_learn(self, most: int) -> int:
        """Rows of a block that is learned, a power of two if they are not the most."""
        return _rows(self.to_learn, most, self._fewest)

    def rows_to_predict(self, most: int) -> int:
        """Rows of a block that is predicted, a power of two if they are not the most."""
        return _rows(self.to_predict, most, self._fewest)

    @property
    def _members(self) -> int:
        return _MEMBERS if self.several else 1

    @property
    def _classes(self) -> int:
        return self.widths[-1] if self.widths[-1] > 1 else 0

    @property
    def _has_hidden(self) -> bool:
        return len(self.widths) > 2

    @property
    def _steps(self) -> float:
        return self._members * multiply_adds(self.covariance, Layout(self.widths)) / _MULTIPLY_ADDS

    @property
    def _match(self) -> float:
        return self._members * _TRIPLE * self._classes**3

    @property
    def _fewest(self) -> int:
        kind = None if self._has_hidden or self.widths[-1] > 1 else perceptron_belief(self.covariance)
        return _FEWEST if kind is not None and kind.learns_in_blocks else 1


def _rows(seconds: float, most: int, fewest: int) -> int:
    rows = int(min(_BLOCK_TIME / max(seconds, 1e-12), most))
    return most if rows >= most else max(2 ** max(rows.bit_length() - 1, 0), min(fewest, most))
