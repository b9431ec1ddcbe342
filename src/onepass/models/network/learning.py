"""A pass of learning: how rows, one at a time or several as one step, update the belief about a network's weights.

`propagation` turns a row and the belief into the mean of the outputs and their expected derivative in every weight;
`onepass.likelihoods` turns that and the target into one rank-K step; the belief takes it. `Learner._learn_row`
combines the three: the readable reference for the kernels of `onepass.engine`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from onepass._typing import FloatArray
from onepass.activations import Activation, compiled_activation
from onepass.beliefs.forgetting import Forgetting
from onepass.beliefs.network import NetworkBelief
from onepass.engine.network_records import CompiledPass, NetworkRule
from onepass.engine.network_rows import NetworkRow
from onepass.engine.outliers import jump_probability
from onepass.engine.threads import threads_for
from onepass.engine.vector_matches import (
    ROUNDING,
    SCALE_CLIP,
    OutputMatch,
    OutputRecord,
    VectorLikelihood,
    site_removal,
)
from onepass.layers.layout import Layout
from onepass.likelihoods.calibration import excess_var
from onepass.models.network.propagation import Signals, propagate
from onepass.models.network.state import State
from onepass.models.prediction import RowScores

__all__ = ["Learner", "Pass"]

# While rows are new, early ones fade from the noise's estimate: their errors came of the network's own ignorance.
_FIRST_GAIN, _LATER_GAIN = 3.0, 1.0
# By so many a pass must predict better to be kept: the best of many is better by chance, and refined derivatives of the
# other rows still have something of the row that is predicted.
_STANDARD_ERRORS = 3.0
_NO_SHARE = 1e-9  # of the noise in a variance, as good as none


class _Site(NamedTuple):
    """The contribution of a row to the belief, so that it can be removed."""

    signals: Signals
    precision: FloatArray
    h: FloatArray


@dataclass(frozen=True)
class Pass:
    """One pass over rows: inputs and targets, and the memory for what each row was predicted to be."""

    rows: FloatArray  # (n, d)
    targets: FloatArray  # (n, columns)
    order: Any  # of the rows
    number: int  # how many passes were before
    batch: int  # rows that make one step
    sites: Any  # refine="ep": what each row contributed, which is removed before the row is learned again; else None
    densities: FloatArray  # log densities of the targets, (n,)
    gains: FloatArray  # what rows add to the log evidence: the log densities of all their copies, (n,)
    trust: FloatArray  # how far each row was distrusted, and the log odds of a jump after it, (2, n)
    record: FloatArray | None = None  # what rows were predicted from, (n, 7, K): see `OutputRecord`
    outputs: FloatArray | None = None  # what their densities follow from, (n, numbers): see `VectorLikelihood.keep`
    is_scaled: bool = False  # whether the densities are those with the predictive scale
    weights: FloatArray | None = None  # of the rows, (n,), above 0

    @property
    def is_new(self) -> bool:
        """Whether the rows are learned for the first time, and not to be learned again."""
        return self.number == 0 and self.sites is None

    def part(self, start: int, stop: int) -> CompiledPass:
        """Some of the rows, as kernels take them."""
        return CompiledPass(self, self.order[start:stop])

    def predicts_better_than(self, other: "Pass") -> bool:
        """Whether rows were predicted better than in another pass, by more than three standard errors.

        Only the last third of the rows counts: in a first pass those before are predicted from too few others.
        """
        late = slice(2 * len(self.rows) // 3, None)
        differences = (self.gains - other.gains)[late]
        return bool(differences.mean() > _STANDARD_ERRORS * differences.std() / np.sqrt(len(differences)))

    @property
    def scores(self) -> RowScores:
        """How well the rows were predicted, as a mixture sees it, by the calibration of each moment."""
        outliers = self.trust[0]
        copies = self.gains - self.densities
        seen = RowScores(self.densities, outliers, jump_probability(self.trust[1]), copies=copies, gains=self.gains)
        if self.record is None:
            return seen
        mean, var, noise, scale, _, _, usual_var = OutputRecord.of(self.record)
        total = scale * (var + noise) + excess_var(var, scale, usual_var, alone=False)
        observed = ~np.isnan(self.targets)
        with np.errstate(over="ignore"):  # a target may be beyond all bounds, and not trusted
            ratios = np.minimum((self.targets - mean) ** 2 / total, SCALE_CLIP)
        densities = self.densities
        if not self.is_scaled:
            # What calibration changes in the log density of a Gaussian; clipped as in the scale, for one wild row.
            wider = total / (var + noise)
            densities = densities + 0.5 * ((wider - 1.0) * ratios - np.log(wider)).sum(axis=1, where=observed)
        # A row that is not trusted, or not observed, says nothing about the noise.
        trusted = (outliers[:, None] < 0.5) & observed
        shares = np.where(trusted, scale * noise / total, _NO_SHARE)
        return seen._replace(log_densities=densities, ratios=np.where(trusted, ratios, 1.0), noise_shares=shares)

    @property
    def noise_learning(self) -> tuple[float, float]:
        """Gain and bound, see `onepass.engine.vector_matches.VectorLikelihood.learn_noise`."""
        return (_LATER_GAIN, float(len(self.rows))) if self.number else (_FIRST_GAIN, np.inf)


def _without_widening(match: OutputMatch, cov: FloatArray) -> OutputMatch:
    """Explain no negative share of any variance: see `onepass.engine.vector_matches.VectorMatch.leave_out_widening`."""
    variances, axes = np.linalg.eigh(cov)
    root = axes * np.sqrt(np.maximum(variances, 0.0))
    shares, vectors = np.linalg.eigh(root.T @ match.information @ root)
    if shares.min() >= -ROUNDING:
        return match
    directions = np.linalg.pinv(root).T @ vectors
    information = directions @ (np.maximum(shares, 0.0)[:, None] * directions.T)
    left = np.eye(len(cov)) - information @ cov
    precision, shift = np.linalg.solve(left, information), np.linalg.solve(left, match.score)
    return match._replace(information=information, precision=precision, shift=shift)


@dataclass(frozen=True)
class Learner:
    """The settings of a network's learning, which do not change while it learns."""

    layout: Layout
    outputs: VectorLikelihood
    activation: Activation
    forgetting: Forgetting
    drift: float  # share by which the weights move before each row
    drifting: Forgetting  # when they move, if that is done for many rows at once, and by how much
    compiled: bool  # or by the readable steps below

    def run(self, state: State, work: Pass) -> int:
        """Learn a pass into the state, in place; return the number of rows learned."""
        block = state.open_block() if self.compiled and work.is_new and len(work.order) == 1 else None
        n_rows = len(work.order)
        before = state.seen + max(work.number - 1, 0) * n_rows  # the first pass is among those seen when others follow
        for start, stop in self._segments(state, before, n_rows, work.batch):
            learned = start
            while learned < stop:
                if work.is_new:
                    state.answer_alarm(self.outputs.n_outputs)
                if not self.compiled:
                    more = self._learn_by_reference(state, work, learned, stop)
                elif block is not None:
                    with threads_for(0):
                        more = block.learn(work.part(learned, stop), self._rule_of(state), state.noise)
                else:
                    how = (self._rule_of(state), work.part(learned, stop), work.batch, work.sites)
                    more = state.belief.learn_pass(state.noise, *how)
                self.outputs.raise_pending()
                learned += more
                if more == 0 or (learned < stop and not state.noise.trust.is_alarmed()):
                    return learned
        return n_rows

    def ahead(self, state: State, rows: int) -> State:
        """The state in which a row so many ahead is predicted: the same, or a copy if something changes before it."""
        due = self.forgetting.steps(state.seen, rows) or self.drifting.steps(state.seen, rows)
        if not rows or not (due or self.drift or state.noise.trust.is_alarmed()):
            return state
        later = state.copy()
        for start, stop in self._segments(later, later.seen, rows, 1):
            if start == 0:  # as in `run`: after what fades before the next row
                later.answer_alarm(self.outputs.n_outputs)
            if self.drift:
                with self._many_numbers():
                    later.belief.drift(1.0 - (1.0 - self.drift) ** (stop - start), later.prior)
        return later

    def _segments(self, state: State, before: int, n_rows: int, batch: int) -> Iterator[tuple[int, int]]:
        """Rows from one number to another, between steps that the whole belief takes: it forgets, and it drifts."""
        for faded in self.forgetting.segments(before, n_rows, batch):
            if faded.steps:
                with self._many_numbers():
                    state.belief.forget(self.forgetting.keep**faded.steps, state.prior)
            for moved in self.drifting.segments(before + faded.start, faded.stop - faded.start, batch):
                if moved.steps:
                    with self._many_numbers():
                        state.belief.drift(1.0 - self.drifting.keep**moved.steps, state.prior)
                yield faded.start + moved.start, faded.start + moved.stop

    @contextmanager
    def _many_numbers(self) -> Iterator[None]:
        """For steps that touch all numbers; what is not finite is found by the check of what was learned."""
        with threads_for(self.layout.size), np.errstate(over="ignore", invalid="ignore"):
            yield

    def changes_first(self, state: State) -> bool:
        """Whether the belief changes before the next row is looked at."""
        due = self.forgetting.is_due(state.seen) or self.drifting.is_due(state.seen)
        return due or self.drift > 0.0 or state.noise.trust.is_alarmed()

    def one_row(self, state: State) -> NetworkRow | None:
        """What learns and predicts a single row of the state with the least overhead; None where nothing does."""

        def make(belief: NetworkBelief) -> NetworkRow | None:
            if not self.compiled:
                return None
            return belief.row_learner(self._rule_of(state), state.noise, _FIRST_GAIN, self.forgetting, state.prior)

        return state.one_row(make)

    def look(self, state: State, row: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Means ``(K,)`` and covariance ``(K, K)`` of the outputs of a row ``(d,)``, by compiled code if there is any.

        Nothing changes by it of what was or will be learned: an open block stays open.
        """
        if not self.compiled:
            return None
        block = state.open_block()
        if block is None:
            return state.belief.look(self._rule_of(state), row)
        with threads_for(0):
            return block.look(row, self._rule_of(state))

    def _learn_by_reference(self, state: State, work: Pass, start: int, stop: int) -> int:
        with np.errstate(over="ignore", invalid="ignore"):  # answered by the check of what was learned
            for first in range(start, stop, work.batch):
                taken = work.order[first : min(first + work.batch, stop)]
                if self.drift:
                    state.belief.drift(1.0 - (1.0 - self.drift) ** len(taken), state.prior)
                if work.batch == 1:
                    self._learn_row(state, work, taken[0])
                else:
                    self._learn_together(state, work, taken)
                if work.is_new and state.noise.trust.is_alarmed():
                    return first + len(taken) - start
        return stop - start

    def _rule_of(self, state: State) -> NetworkRule:
        """The rule of the kernels, which is made again only where the prior has changed."""
        if self._rules.get("prior") is not state.prior:
            activation = compiled_activation(self.activation)
            rule = NetworkRule(activation, self.outputs, self.drift, state.prior.variance)
            self._rules.update(prior=state.prior, rule=rule)
        return self._rules["rule"]  # type: ignore[no-any-return]

    @cached_property
    def _rules(self) -> dict[str, Any]:
        return {}

    def _learn_row(self, state: State, work: Pass, i: int) -> None:
        belief, noise, target = state.belief, state.noise, work.targets[i]
        noise.row_weight = 1.0 if work.weights is None else float(work.weights[i])
        signals = propagate(belief, self.activation, work.rows[i : i + 1])
        jacobian = signals.weight_jacobian(self.layout)[0]
        mean = signals.mean[0]
        if work.sites is not None and work.number:
            # Linearised where the belief is with the row, then seen from where it is without it.
            offset, site = mean - jacobian @ belief.mean, work.sites[i]
            old = site.signals.weight_jacobian(self.layout)[0]
            old_gain, old_cov = belief.project_outputs(old)
            removal = site_removal(old_cov, site.precision, site.h, old @ belief.mean)
            if removal is None:
                cov = belief.project_outputs(jacobian)[1]
                kept = self.outputs.moment_match(mean, cov, target, noise)
                self._write_down(state, work, i, mean, cov, kept.log_density)
                return
            belief.step(old_gain, old, *removal)
            mean = offset + jacobian @ belief.mean
        gain, cov = belief.project_outputs(jacobian)
        match = self.outputs.moment_match(mean, cov, target, noise)
        self._write_down(state, work, i, mean, cov, match.log_density)
        if work.sites is not None:
            if noise.trust.active or self.outputs.may_widen:
                match = _without_widening(match, cov)
            h = match.precision @ jacobian @ belief.mean + match.shift
            work.sites[i] = _Site(signals, match.precision, h)
        belief.step(gain, jacobian, match.score, match.information)
        self._learn_noise(state, work, i, mean, cov)

    def _learn_together(self, state: State, work: Pass, taken: Any) -> None:
        """Learn several rows as one step: all linearised at the belief before the first of them.

        Among their outputs the rows are still matched one after the other, so that with derivatives that don't depend
        on the belief, as without hidden layers, nothing is lost.
        """
        belief, layout = state.belief, self.layout
        signals = propagate(belief, self.activation, work.rows[taken])
        jacobian = signals.weight_jacobian(layout).reshape(-1, layout.size)
        gains, joint = belief.project_outputs(jacobian)
        score, information, n_outputs = np.zeros(len(joint)), np.zeros_like(joint), signals.mean.shape[1]
        for at, i in enumerate(taken):
            own = slice(at * n_outputs, (at + 1) * n_outputs)
            mean = signals.mean[at] + joint[own] @ score
            # What is left of the joint covariance after the rows before.
            left = joint[own] - joint[own] @ information @ joint
            cov = np.ascontiguousarray(left[:, own])
            state.noise.row_weight = 1.0 if work.weights is None else float(work.weights[i])
            match = self.outputs.moment_match(mean, cov, work.targets[i], state.noise)
            self._write_down(state, work, i, mean, cov, match.log_density)
            through = np.eye(len(joint))[:, own] - information @ joint[:, own]
            score += through @ match.score
            information += through @ match.information @ through.T
            self._learn_noise(state, work, i, mean, cov)
        belief.step(gains, jacobian, score, information)

    def _learn_noise(self, state: State, work: Pass, i: int, mean: FloatArray, cov: FloatArray) -> None:
        noise = state.noise
        self.outputs.learn_noise(mean, cov, work.targets[i], noise, *work.noise_learning)
        work.trust[:, i] = noise.trust.distrust, noise.trust.suspicion

    def _write_down(
        self, state: State, work: Pass, i: int, mean: FloatArray, cov: FloatArray, log_density: float
    ) -> None:
        """Record the prediction of a row."""
        work.densities[i], work.gains[i] = log_density, state.noise.row_evidence
        if work.record is not None:
            work.record[i] = self.outputs.records(mean[None], cov[None], state.noise)[0]
        if work.outputs is not None:
            work.outputs[i] = self.outputs.kept(mean[None], cov[None], state.noise)[0]

    def start_sites(self, state: State, n: int) -> Any:
        """Memory for the contributions of ``n`` rows."""
        return state.belief.start_sites(n) if self.compiled else [None] * n
