"""A pass of learning: how rows, one at a time or several as one step, move the belief over a network's weights.

`propagation` turns a row and the belief into the mean of the outputs and their expected slope in every weight;
`onepass.likelihoods.multivariate` turns that and the target into one rank-K step; the belief takes it. `_learn_row`
joins the three, readably: the reference for `onepass.engine.networks`, which does the same compiled.
"""

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from onepass._typing import FloatArray
from onepass.activations import Activation
from onepass.beliefs.blocks import BlockGaussian, LayeredDiagonal
from onepass.likelihoods.multivariate import NOISE, SCALE, expected_noise, learn_scales, marginals, read, removal
from onepass.likelihoods.univariate import Gaussian
from onepass.models.network.propagation import Signals, propagate, slopes

__all__ = ["Learner", "Pass", "State", "compile_plan"]

# While rows are new, early ones fade from the noise's estimate: their errors came of the network's own ignorance.
_FIRST_GAIN, _LATER_GAIN = 3.0, 1.0


class _Site(NamedTuple):
    """What a row once said about the outputs, so that it can be taken back."""

    signals: Signals
    precision: FloatArray
    h: FloatArray


@dataclass
class State:
    """All that learning changes."""

    belief: BlockGaussian | LayeredDiagonal
    scales: FloatArray  # see onepass.likelihoods.multivariate
    evidence: float
    seen: int

    def copy(self) -> "State":
        """Make an independent copy."""
        return State(self.belief.copy(), self.scales.copy(), self.evidence, self.seen)

    def is_finite(self) -> bool:
        """Whether all numbers are."""
        return all(bool(np.isfinite(values).all()) for values in (*self.belief.arrays.values(), self.scales))


@dataclass(frozen=True)
class Pass:
    """One pass over rows: what comes in, and what is written down about each row before it was learned."""

    rows: FloatArray  # (n, d)
    targets: FloatArray  # (n, K), or (n, 1) labels
    order: Any  # of the rows
    number: int  # how many passes were before
    batch: int  # rows that make one step
    sites: Any  # what rows have said, to be taken back; None where that is not wanted
    densities: FloatArray  # (n,)
    record: FloatArray | None = None  # mean, variance, noise and scale, (n, 4, K)

    @property
    def noise_learning(self) -> tuple[float, float]:
        """Gain and bound of what the noise rests on, see `onepass.likelihoods.multivariate.learn_scales`."""
        return (_LATER_GAIN, float(len(self.rows))) if self.number else (_FIRST_GAIN, np.inf)


@dataclass(frozen=True)
class Learner:
    """All about a network's learning that does not change while it learns."""

    kind: int  # of head
    activation: Activation
    forgetting: float
    prior_trace: float
    plan: Any  # the compiled steps, or None to go by the readable ones

    def run(self, state: State, work: Pass) -> int:
        """Learn a pass into the state, in place; how many rows could be."""
        if self.plan is not None:
            refine = 0 if work.sites is None else 1 + (work.number > 0)
            settings = np.array([self.kind, self.forgetting, self.prior_trace, *work.noise_learning, refine])
            return int(self.plan.learn(state.belief, state.scales, work, settings))
        with np.errstate(over="ignore", invalid="ignore"):  # answered by the check of what was learned
            for start in range(0, len(work.order), work.batch):
                taken = work.order[start : start + work.batch]
                self._forget(state.belief, len(taken))
                if work.batch == 1:
                    self._learn_row(state, work, taken[0])
                else:
                    self._learn_together(state, work, taken)
        return len(work.rows)

    def _learn_row(self, state: State, work: Pass, i: int) -> None:
        belief, scales, target = state.belief, state.scales, work.targets[i]
        signals = propagate(belief, self.activation, work.rows[i : i + 1])
        slope = slopes(belief, signals)[0]
        mean = signals.mean[0]
        if work.sites is not None and work.number:
            # Linearised where the belief is with the row, then seen from where it is without it.
            offset, site = mean - slope @ belief.mean, work.sites[i]
            old = slopes(belief, site.signals)[0]
            old_gain, old_cov = belief.project(old)
            back = removal(old_cov, site.precision, site.h, old @ belief.mean)
            if back is None:
                cov = belief.project(slope)[1]
                work.densities[i] = read(self.kind, mean, cov, target, scales[NOISE]).log_density
                return
            belief.step(old_gain, old, *back)
            mean = offset + slope @ belief.mean
        gains, cov = belief.project(slope)
        reading = read(self.kind, mean, cov, target, scales[NOISE])
        self._note(state, work, i, mean, cov, reading.log_density)
        if work.sites is not None:
            h = reading.precision @ slope @ belief.mean + reading.shift
            work.sites[i] = _Site(signals, reading.precision, h)
        belief.step(gains, slope, reading.pull, reading.drop)
        learn_scales(self.kind, scales, mean, cov, target, *work.noise_learning)

    def _learn_together(self, state: State, work: Pass, taken: Any) -> None:
        """Learn several rows as one step: all linearised at the belief before the first of them.

        Among their outputs the rows still speak one after the other, so that with slopes that don't depend on the
        belief, as without hidden layers, nothing is lost.
        """
        belief, scales = state.belief, state.scales
        signals = propagate(belief, self.activation, work.rows[taken])
        together = slopes(belief, signals).reshape(-1, belief.layout.size)
        gains, joint = belief.project(together)
        pull, drop, n_outputs = np.zeros(len(joint)), np.zeros_like(joint), signals.mean.shape[1]
        for at, i in enumerate(taken):
            own = slice(at * n_outputs, (at + 1) * n_outputs)
            mean = signals.mean[at] + joint[own] @ pull
            # What is left of the joint covariance after the rows before.
            left = joint[own] - joint[own] @ drop @ joint
            cov = left[:, own]
            reading = read(self.kind, mean, cov, work.targets[i], scales[NOISE])
            self._note(state, work, i, mean, cov, reading.log_density)
            through = np.eye(len(joint))[:, own] - drop @ joint[:, own]
            pull += through @ reading.pull
            drop += through @ reading.drop @ through.T
            learn_scales(self.kind, scales, mean, cov, work.targets[i], *work.noise_learning)
        belief.step(gains, together, pull, drop)

    def _note(self, state: State, work: Pass, i: int, mean: FloatArray, cov: FloatArray, log_density: float) -> None:
        """Write down what a row was predicted to be."""
        work.densities[i] = log_density
        if work.record is not None:
            centre, var = (values[0] for values in marginals(self.kind, mean[None], cov[None]))
            k = work.record.shape[2]
            noise = expected_noise(self.kind, centre, var, state.scales[NOISE])
            work.record[i] = centre[:k], var[:k], noise, state.scales[SCALE]

    def _forget(self, belief: BlockGaussian | LayeredDiagonal, n_rows: int) -> None:
        fading = self.forgetting**n_rows
        if fading < 1.0 and belief.marginal_variances().sum() <= fading * self.prior_trace:
            belief.inflate(1.0 / fading)

    def start_sites(self, n: int) -> Any:
        """Room for what ``n`` rows will say."""
        return [None] * n if self.plan is None else self.plan.start_sites(n)


def compile_plan(activation: Activation, belief: BlockGaussian | LayeredDiagonal) -> Any:
    """The compiled steps for a network, or None where only the reference can take them."""
    try:
        from onepass import engine
        from onepass.engine.networks import NetworkPlan
    except ImportError as error:
        warnings.warn(f"Numba can't be imported, learning is slow ({error})", stacklevel=6)
        return None
    rule = engine.encode(activation, Gaussian(1.0), "kalman", 0, 1.0, 1.0)
    return None if rule is None else NetworkPlan(rule, belief)
