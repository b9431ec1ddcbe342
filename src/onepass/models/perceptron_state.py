"""All that learning changes in a perceptron: its belief, and what runs along with it."""

import hashlib
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from onepass._validation import as_count, as_nonnegative
from onepass.beliefs.base import PerceptronBelief, Weights
from onepass.beliefs.full import FullGaussian
from onepass.engine.outliers import Trust
from onepass.engine.step import PerceptronProgress
from onepass.files.state import Arrays, Parameters, decode_prior, decode_progress
from onepass.likelihoods import Likelihood
from onepass.models.prediction import Posterior

__all__ = ["PerceptronState", "expected_square", "start_learning"]


@dataclass
class PerceptronState:
    """The belief about the weights, the running quantities, and the prior."""

    belief: Any  # a PerceptronBelief; in predictions of rows ahead also a MovedGaussian
    progress: PerceptronProgress
    prior: Any  # what is forgotten towards; replaced, never changed

    def copy(self) -> "PerceptronState":
        """Make an independent copy."""
        return PerceptronState(self.belief.copy(), self.progress.copy(), self.prior)

    @property
    def trust(self) -> Trust:
        """The trust in targets."""
        return self.progress.trust

    @property
    def log_noise_var(self) -> float:
        """Variance of the belief about the log of a learned noise; 0 if the noise is fixed."""
        return 2.0 / self.progress.noise_weight if self.progress.noise_weight > 0.0 else 0.0

    def asked(self) -> PerceptronProgress:
        """The running quantities with the noise re-estimated from all rows, or these themselves if it is not."""
        belief, progress = self.belief, self.progress
        if progress.reference and progress.n_seen > progress.last_seen:
            assert isinstance(belief, FullGaussian)
            return belief.asked(progress, self.prior)
        return progress

    def posterior(self) -> Posterior:
        """Return the posterior of the weights, averaged over what is known of a learned noise."""
        if not self.progress.reference or not self.progress.weight:
            return Posterior(np.array(self.belief.mean), np.asarray(self.belief.cov))
        return Posterior(*self.belief.averaged(self.progress, self.prior))

    def reweigh_if_due(self) -> bool:
        """Re-weigh all rows so far if their noise is now thought to be another; whether that was done."""
        if not self.progress.is_due(len(self.belief.mean)):
            return False
        assert isinstance(self.belief, FullGaussian)
        self.belief.reweigh(self.progress, self.prior)
        return True

    def answer_alarm(self) -> None:
        """Return to the prior's covariance if too many rows in a row were distrusted: the truth has jumped.

        If that is not enough, or where no outliers are expected and too many rows were set aside, nothing holds any
        more but the prior, which is widened until it reaches targets of their size. Without a jump, it is the scale of
        the weights that moves.
        """
        trust = self.trust
        if not trust.is_alarmed():
            return
        if not trust.has_jumped():
            self.belief.rescale(trust, self.prior)
            return
        if trust.starts_over():
            self.prior = self.prior.scaled(max(trust.far_square / expected_square(self.prior), 1.0))
            self.belief.mean[...] = self.prior.mean
        self.belief.drift(1.0, self.prior)
        self.progress.begin_anew()

    def export(self) -> tuple[Parameters, Arrays]:
        """Return the form of the belief as JSON can hold it, and all arrays."""
        form, arrays = self.belief.export()
        arrays["running"] = self.progress.to_array()
        arrays["prior_variances"] = self.prior.marginal_variances()
        if self.prior.mean.any():
            arrays["prior_mean"] = self.prior.mean.copy()
        if isinstance(self.prior, FullGaussian):
            arrays["prior_root"] = self.prior.to_root().copy()
        return form, arrays

    @classmethod
    def restore(cls, belief: PerceptronBelief, arrays: Arrays, outliers: float) -> Self:
        """Make the state of this belief whose other arrays `export` returned."""
        prior = decode_prior(arrays, len(belief.mean), belief.mean.dtype)
        return cls(belief, decode_progress(arrays["running"], outliers), prior)

    def prior_fingerprint(self) -> str:
        """Tell priors apart, so that only models of one prior are merged: see `onepass.merge`."""
        form = self.prior.to_root() if isinstance(self.prior, FullGaussian) else self.prior.cov
        digest = hashlib.blake2b(digest_size=8)
        for array in (self.prior.mean, form):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()


def start_learning(likelihood: Likelihood, noise: Any, noise_window: int | None) -> PerceptronProgress:
    """The state of learning before the first row, for a user's choice of the noise."""
    if noise_window is not None and noise != "learn":
        raise ValueError(f"noise_window needs noise='learn', got noise={noise!r}")
    chosen = likelihood.choose_noise(noise)
    chosen = likelihood.usual_noise if chosen is None else chosen
    if not isinstance(chosen, str):
        return PerceptronProgress(as_nonnegative(chosen, "noise"))
    if chosen != "learn":
        raise ValueError(f"noise must be a number that is not negative, or 'learn', got {chosen!r}")
    window = np.inf if noise_window is None else float(as_count(noise_window, "noise_window"))
    start, weight = likelihood.noise_start
    return PerceptronProgress(start, min(weight, window), window)


def expected_square(prior: Weights) -> float:
    """Variance of ``x'w`` that a prior expects, for an input whose values are about 1."""
    return float(prior.marginal_variances().sum())
