"""What a network hands to compiled code, for each structure of its belief."""

from typing import Any

import numpy as np

from onepass.belief import Blocks, Independent
from onepass.engine.network import learn_blocks
from onepass.engine.network_diagonal import learn_independent
from onepass.gaussian import FloatArray

__all__ = ["NetworkPlan"]

_NO_RECORD = np.empty((0, 4, 1))


class NetworkPlan:
    """All of a network that does not change while it learns, laid out for the kernels."""

    def __init__(self, rule: FloatArray, belief: Blocks | Independent) -> None:
        self._rule, layout = rule, belief.layout
        self._widths, self._starts = np.array(layout.widths, dtype=np.int64), layout.starts
        if isinstance(belief, Blocks):
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
        self,
        belief: Blocks | Independent,
        scales: FloatArray,
        rows: FloatArray,
        targets: FloatArray,
        order: Any,
        settings: FloatArray,
        sites: Any,
        record: FloatArray | None,
        densities: FloatArray,
    ) -> int:
        """Learn rows in order into the belief and the scales, in place; how many could be."""
        seen = _NO_RECORD if record is None else record
        if isinstance(belief, Independent):
            shared = (self._rule, settings, belief.mean, belief.variance, scales, seen, densities)
            return int(learn_independent(rows, targets, order, self._widths, self._starts, *shared))
        kept = self.start_sites(0) if sites is None else sites
        changing = (belief.mean, belief.values, scales, kept, seen, densities)
        return int(learn_blocks(rows, targets, order, self._shape, self._rule, settings, *changing))
