"""What a network hands to compiled code, for each structure of its belief."""

from typing import Any, Protocol

import numpy as np

from onepass._typing import FloatArray
from onepass.beliefs.blocks import BlockGaussian, LayeredDiagonal
from onepass.engine.network import learn_blocks
from onepass.engine.network_batch import learn_batch
from onepass.engine.network_diagonal import learn_independent
from onepass.engine.threads import threads_for

__all__ = ["NetworkPlan"]

_NO_RECORD = np.empty((0, 4, 1))


class Work(Protocol):
    """A pass as `onepass.models.network.learning.Pass` describes it."""

    @property
    def rows(self) -> FloatArray: ...
    @property
    def targets(self) -> FloatArray: ...
    @property
    def order(self) -> Any: ...
    @property
    def batch(self) -> int: ...
    @property
    def sites(self) -> Any: ...
    @property
    def densities(self) -> FloatArray: ...
    @property
    def record(self) -> FloatArray | None: ...


class NetworkPlan:
    """All of a network that does not change while it learns, laid out for the kernels."""

    def __init__(self, rule: FloatArray, belief: BlockGaussian | LayeredDiagonal) -> None:
        self._rule, layout = rule, belief.layout
        self._widths, self._starts = np.array(layout.widths, dtype=np.int64), layout.starts
        if isinstance(belief, BlockGaussian):
            block = np.searchsorted(belief.cuts, layout.unit_starts[:-1], side="right") - 1
            stride = np.diff(belief.cuts)[block]
            local = layout.unit_starts[:-1] - belief.cuts[block]
            unit_cov = belief.offsets[block] + local * (stride + 1)
            unit_layer = np.repeat(np.arange(layout.n_layers), layout.widths[1:])
            first_unit = np.searchsorted(layout.unit_starts, belief.cuts[:-1])
            places = (self._widths, self._starts, unit_cov, stride, belief.cuts, belief.offsets)
            self._shape = (*places, unit_layer, first_unit)

    def start_sites(self, n: int) -> tuple[FloatArray, ...]:
        """Room for the sites of ``n`` rows: ``(z, D)`` of all layers in one piece, precisions, ``h``."""
        widths = self._widths
        n_outputs = int(widths[-1])
        length = int(widths[:-1].sum() + n_outputs * widths[1:-1].sum())
        return np.zeros((n, length)), np.zeros((n, n_outputs, n_outputs)), np.zeros((n, n_outputs))

    def learn(
        self, belief: BlockGaussian | LayeredDiagonal, scales: FloatArray, work: Work, settings: FloatArray
    ) -> int:
        """Learn a pass into the belief and the scales, in place; how many rows could be."""
        record = _NO_RECORD if work.record is None else work.record
        given = (work.rows, work.targets, work.order)
        if isinstance(belief, LayeredDiagonal):
            changing = (belief.mean, belief.variance, scales, record, work.densities)
            return int(learn_independent(*given, self._widths, self._starts, self._rule, settings, *changing))
        if work.batch > 1:
            with threads_for(len(belief.mean)):
                return self._learn_batches(belief, scales, work, settings, record)
        sites = self.start_sites(0) if work.sites is None else work.sites
        beliefs, notes = (belief.mean, belief.values, scales), (record, work.densities)
        return int(learn_blocks(*given, self._shape, self._rule, settings, *beliefs, sites, *notes))

    def _learn_batches(
        self, belief: BlockGaussian, scales: FloatArray, work: Work, settings: FloatArray, record: FloatArray
    ) -> int:
        for start in range(0, len(work.order), work.batch):
            taken = work.order[start : start + work.batch]
            shared = (self._shape, self._rule, settings, belief, scales, record, work.densities)
            learned = learn_batch(work.rows, work.targets, taken, *shared)
            if learned < len(taken):
                return start + learned
        return len(work.order)
