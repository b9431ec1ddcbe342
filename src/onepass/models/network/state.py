"""All that learning changes in a network: its belief, and what runs along with it."""

from collections.abc import Callable
from typing import Any

from onepass.beliefs.choice import start_belief
from onepass.beliefs.diagonal import DiagonalGaussian
from onepass.beliefs.network import NetworkBelief
from onepass.engine.network_layers import OpenBlock
from onepass.engine.network_rows import NetworkRow
from onepass.engine.outliers import Trust
from onepass.engine.threads import threads_for
from onepass.engine.vector_matches import NetworkProgress
from onepass.files.state import Arrays, decode_trust
from onepass.layers.layout import Layout

__all__ = ["State", "output_variances"]


class State:
    """All that learning changes.

    Rows that come one per call may wait in an open block, where the form of the covariance has one. Reading
    `belief` closes the block first, so it has all rows learned; later rows may then differ by rounding.
    """

    def __init__(
        self,
        belief: NetworkBelief,
        noise: NetworkProgress,
        prior: DiagonalGaussian,
        evidence: float = 0.0,
        seen: int = 0,
    ) -> None:
        self._belief = belief
        self.prior = prior
        self._block: OpenBlock | None = None
        self.noise = noise
        self.evidence, self.seen = evidence, seen

    @property
    def belief(self) -> NetworkBelief:
        """The belief about the weights."""
        if self._block is not None:
            with threads_for(0):
                self._block.close()
        return self._belief

    @property
    def prior(self) -> DiagonalGaussian:
        """What is forgotten towards; replaced, never changed."""
        return self._prior

    @prior.setter
    def prior(self, prior: DiagonalGaussian) -> None:
        self._prior = prior
        self._one_row: tuple[NetworkRow | None, ...] = ()  # with this prior; empty until it was asked for

    @property
    def evidence(self) -> float:
        """Sum of the log predictive densities of all rows."""
        return self.noise.log_evidence

    @evidence.setter
    def evidence(self, evidence: float) -> None:
        self.noise.log_evidence = evidence

    @property
    def seen(self) -> int:
        """Rows learned."""
        return self.noise.n_seen

    @seen.setter
    def seen(self, seen: int) -> None:
        self.noise.n_seen = seen

    @property
    def trust(self) -> Trust:
        """The trust in targets."""
        return self.noise.trust

    def open_block(self) -> OpenBlock | None:
        """The block for single rows, if the belief has one."""
        if self._block is None:
            self._block = self._belief.open_block()
        return self._block

    def one_row(self, make: Callable[[NetworkBelief], NetworkRow | None]) -> NetworkRow | None:
        """What learns and predicts single rows with the least overhead, which is made once; None if nothing does."""
        if not self._one_row:
            self._one_row = (make(self._belief),)
        return self._one_row[0]

    def copy(self) -> "State":
        """Make an independent copy."""
        return State(self.belief.copy(), self.noise.copy(), self.prior, self.evidence, self.seen)

    def __reduce__(self) -> Any:
        return State, (self.belief, self.noise, self.prior, self.evidence, self.seen)

    def answer_alarm(self, n_outputs: int) -> None:
        """Return to the prior's covariance if too many rows in a row were distrusted: the truth has jumped.

        If that is not enough, or where no outliers are expected and too many rows were set aside, the network starts
        over, and the prior of the outputs' weights is widened until it reaches targets of their size.
        """
        if not self.trust.is_alarmed():
            return
        if self.trust.starts_over():
            self.prior = self.prior.copy()
            outputs = output_variances(self.belief.layout, self.prior)[:n_outputs]
            outputs *= max(self.trust.far_square / float(outputs.sum(axis=1).mean()), 1.0)
            self.belief.mean[...] = self.prior.mean
        self.belief.drift(1.0, self.prior)
        self.noise.begin_anew()

    def take_over(self, smaller: "State") -> None:
        """Take over what a smaller network has learned; if the covariance has another form, without correlations."""
        prior, known = self.prior, smaller.belief
        positions = self._belief.layout.positions_of(known.layout)
        prior.mean[positions], prior.variance[positions] = smaller.prior.mean, smaller.prior.variance
        if self._belief.covariance == known.covariance:
            self._belief.take_over(known, positions)
        else:
            mean, variance = prior.mean.copy(), prior.variance.copy()
            mean[positions], variance[positions] = known.mean, known.marginal_variances()
            self._belief = start_belief(self._belief.covariance, self._belief.layout, mean, variance)
        numbers, own = self.noise.to_array(), smaller.noise.to_array()
        numbers[:, : own.shape[1]] = own
        self.noise.assign(numbers)
        self.noise.trust = smaller.trust.copy()
        self.evidence, self.seen = smaller.evidence, smaller.seen

    def export(self, with_prior: bool) -> Arrays:
        """Return all arrays; the prior's only if it may differ from what the network's arguments make."""
        arrays = {name: values.copy() for name, values in self.belief.arrays().items()}
        if with_prior:
            arrays |= {"prior_mean": self.prior.mean.copy(), "prior_variances": self.prior.cov}
        return {**arrays, "trust": self.trust.to_array(), "scales": self.noise.to_array()}

    def restore(self, arrays: Arrays, outliers: float) -> None:
        """Check and take what `export` returned."""
        for name, values in self._belief.arrays().items():
            values[...] = arrays[name]
        self.noise.assign(arrays["scales"])
        self.noise.trust = decode_trust(arrays["trust"], outliers)
        if "prior_mean" in arrays:
            self.prior = DiagonalGaussian(arrays["prior_mean"], arrays["prior_variances"])
        self._belief.check()


def output_variances(layout: Layout, prior: DiagonalGaussian) -> Any:
    """Prior variances of the weights of each output, ``(K, n + 1)``, to be changed in place."""
    return layout.layers(prior.variance)[-1]
