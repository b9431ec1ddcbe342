"""A pass of learning: how rows, one at a time or several as one step, update the belief about a network's weights.

`propagation` turns a row and the belief into the mean of the outputs and their expected derivative in every weight;
`onepass.likelihoods.outputs` turns that and the target into one rank-K step; the belief takes it. `Learner._learn_row`
combines the three: the readable reference for the kernels of `onepass.engine`.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from onepass._typing import FloatArray
from onepass.activations import Activation, compiled_activation
from onepass.beliefs.diagonal import DiagonalGaussian
from onepass.beliefs.forgetting import Forgetting, Segment
from onepass.beliefs.structures import Structure
from onepass.engine.network_records import NetworkRule, TrainingPass
from onepass.engine.threads import threads_for
from onepass.engine.vector_matches import SCALE_CLIP, NoiseState, site_removal
from onepass.likelihoods.outputs import OutputLikelihood
from onepass.models.network.propagation import Signals, propagate

__all__ = ["Learner", "Pass", "RowScores", "State"]

# While rows are new, early ones fade from the noise's estimate: their errors came of the network's own ignorance.
_FIRST_GAIN, _LATER_GAIN = 3.0, 1.0


class _Site(NamedTuple):
    """The contribution of a row to the belief, so that it can be removed."""

    signals: Signals
    precision: FloatArray
    h: FloatArray


@dataclass
class State:
    """All that learning changes."""

    belief: Any
    noise: NoiseState
    evidence: float
    seen: int

    def copy(self) -> "State":
        """Make an independent copy."""
        return State(self.belief.copy(), self.noise.copy(), self.evidence, self.seen)


class RowScores(NamedTuple):
    """How well each row of a pass was predicted before it was learned; the last two only with a learned noise."""

    log_densities: FloatArray  # of the targets, (n,)
    ratios: FloatArray | None = None  # squared errors over their predicted variances, (n, K)
    noise_shares: FloatArray | None = None  # of the noise in these variances, (n, K)


@dataclass(frozen=True)
class Pass:
    """One pass over rows: inputs and targets, and the memory for what each row was predicted to be."""

    rows: FloatArray  # (n, d)
    targets: FloatArray  # (n, columns)
    order: Any  # of the rows
    number: int  # how many passes were before
    batch: int  # rows that make one step
    sites: Any  # refine="ep": what each row contributed, which is removed before the row is learned again; else None
    densities: FloatArray  # (n,)
    record: FloatArray | None = None  # what rows were predicted from, (n, 5, K)

    @property
    def scores(self) -> RowScores:
        """How well the rows were predicted, by the predictive scale of each moment."""
        if self.record is None:
            return RowScores(self.densities)
        mean, var, noise, scale, _ = self.record.swapaxes(0, 1)
        ratios = np.minimum((self.targets - mean) ** 2 / (scale * (var + noise)), SCALE_CLIP)
        # What the scale changes in the log density of a Gaussian; clipped as in the scale, for one wild row.
        scaled = self.densities + 0.5 * ((scale - 1.0) * ratios - np.log(scale)).sum(axis=1)
        return RowScores(scaled, ratios, noise / (var + noise))

    @property
    def noise_learning(self) -> tuple[float, float]:
        """Gain and bound, see `onepass.engine.vector_matches.VectorLikelihood.learn_noise`."""
        return (_LATER_GAIN, float(len(self.rows))) if self.number else (_FIRST_GAIN, np.inf)


@dataclass(frozen=True)
class Learner:
    """The settings of a network's learning, which do not change while it learns."""

    structure: Structure
    likelihood: OutputLikelihood
    activation: Activation
    forgetting: Forgetting
    drift: float
    prior: DiagonalGaussian
    compiled: bool  # or by the readable steps below

    def run(self, state: State, work: Pass) -> int:
        """Learn a pass into the state, in place; return the number of rows learned."""
        n_rows = len(work.order)
        before = state.seen + max(work.number - 1, 0) * n_rows  # the first pass is among those seen when others follow
        for segment in self.forgetting.segments(before, n_rows, work.batch):
            if segment.steps:
                # What is not finite is found by the check of what was learned.
                with threads_for(len(self.prior.mean)), np.errstate(over="ignore", invalid="ignore"):
                    state.belief.forget(self.forgetting.keep**segment.steps, self.prior)
            if self.compiled:
                order = work.order[segment.start : segment.stop]
                passed = TrainingPass(work.rows, work.targets, order, work.densities, work.record, *work.noise_learning)
                learned = self.structure.learn(state.belief, state.noise, self._rule, passed, work.batch, work.sites)
            else:
                learned = self._learn_by_reference(state, work, segment)
            if learned < segment.stop - segment.start:
                return segment.start + learned
        return n_rows

    def _learn_by_reference(self, state: State, work: Pass, segment: Segment) -> int:
        with np.errstate(over="ignore", invalid="ignore"):  # answered by the check of what was learned
            for start in range(segment.start, segment.stop, work.batch):
                taken = work.order[start : min(start + work.batch, segment.stop)]
                if self.drift:
                    state.belief.drift(1.0 - (1.0 - self.drift) ** len(taken), self.prior)
                if work.batch == 1:
                    self._learn_row(state, work, taken[0])
                else:
                    self._learn_together(state, work, taken)
        return segment.stop - segment.start

    @cached_property
    def _rule(self) -> NetworkRule:
        activation, likelihood = compiled_activation(self.activation), self.likelihood.compiled
        return NetworkRule(activation, likelihood, self.drift, self.prior.variance)

    def _learn_row(self, state: State, work: Pass, i: int) -> None:
        belief, noise, target = state.belief, state.noise, work.targets[i]
        signals = propagate(self.structure, belief, self.activation, work.rows[i : i + 1])
        jacobian = signals.weight_jacobian(self.structure.layout)[0]
        mean = signals.mean[0]
        if work.sites is not None and work.number:
            # Linearised where the belief is with the row, then seen from where it is without it.
            offset, site = mean - jacobian @ belief.mean, work.sites[i]
            old = site.signals.weight_jacobian(self.structure.layout)[0]
            old_gain, old_cov = belief.project_outputs(old)
            removal = site_removal(old_cov, site.precision, site.h, old @ belief.mean)
            if removal is None:
                cov = belief.project_outputs(jacobian)[1]
                kept = self.likelihood.moment_match(mean, cov, target, noise)
                self._write_down(state, work, i, mean, cov, kept.log_density)
                return
            belief.step(old_gain, old, *removal)
            mean = offset + jacobian @ belief.mean
        gain, cov = belief.project_outputs(jacobian)
        match = self.likelihood.moment_match(mean, cov, target, noise)
        self._write_down(state, work, i, mean, cov, match.log_density)
        if work.sites is not None:
            h = match.precision @ jacobian @ belief.mean + match.shift
            work.sites[i] = _Site(signals, match.precision, h)
        belief.step(gain, jacobian, match.score, match.information)
        self.likelihood.compiled.learn_noise(mean, cov, target, noise, *work.noise_learning)

    def _learn_together(self, state: State, work: Pass, taken: Any) -> None:
        """Learn several rows as one step: all linearised at the belief before the first of them.

        Among their outputs the rows are still matched one after the other, so that with derivatives that don't depend
        on the belief, as without hidden layers, nothing is lost.
        """
        belief, layout = state.belief, self.structure.layout
        signals = propagate(self.structure, belief, self.activation, work.rows[taken])
        jacobian = signals.weight_jacobian(layout).reshape(-1, layout.size)
        gains, joint = belief.project_outputs(jacobian)
        score, information, n_outputs = np.zeros(len(joint)), np.zeros_like(joint), signals.mean.shape[1]
        for at, i in enumerate(taken):
            own = slice(at * n_outputs, (at + 1) * n_outputs)
            mean = signals.mean[at] + joint[own] @ score
            # What is left of the joint covariance after the rows before.
            left = joint[own] - joint[own] @ information @ joint
            cov = np.ascontiguousarray(left[:, own])
            match = self.likelihood.moment_match(mean, cov, work.targets[i], state.noise)
            self._write_down(state, work, i, mean, cov, match.log_density)
            through = np.eye(len(joint))[:, own] - information @ joint[:, own]
            score += through @ match.score
            information += through @ match.information @ through.T
            self.likelihood.compiled.learn_noise(mean, cov, work.targets[i], state.noise, *work.noise_learning)
        belief.step(gains, jacobian, score, information)

    def _write_down(
        self, state: State, work: Pass, i: int, mean: FloatArray, cov: FloatArray, log_density: float
    ) -> None:
        """Record the prediction of a row."""
        work.densities[i] = log_density
        if work.record is not None:
            work.record[i] = self.likelihood.compiled.records(mean[None], cov[None], state.noise)[0]

    def start_sites(self, n: int) -> Any:
        """Memory for the contributions of ``n`` rows."""
        return self.structure.start_sites(n) if self.compiled else [None] * n
