"""Rows of networks with a block covariance that come one per call: see `one_row`.

The steps are those of `network`. A row is looked at, matched and checked first, which writes nothing of the belief.
"""

from threading import Lock

import cython
import numpy as np
from cython.cimports.libc.math import INFINITY, isfinite
from cython.cimports.libc.string import memcpy
from cython.cimports.onepass.engine.network import Workspace, forward, magnitude, project, step
from cython.cimports.onepass.engine.network_records import Signals
from cython.cimports.onepass.engine.one_row import OneRow
from cython.cimports.onepass.engine.vector_matches import VectorMatch


class _Space:
    """Memory for a row that is looked at."""

    def __init__(self, shape: BlockShape):
        self.space, self.signals, self.match = Workspace(shape), Signals(shape), VectorMatch(shape.n_outputs)


class NetworkRow(OneRow):
    """Learns and predicts one row at a time, in double precision.

    Parameters
    ----------
    shape : BlockShape
    rule : NetworkRule
    noise : NetworkProgress
    mean, cov : the numbers of a belief, which are changed in place
    noise_gain : of the noise's learning, see `onepass.engine.vector_matches.VectorLikelihood.learn_noise`
    period : rows between two steps of forgetting; 0 for none
    fade : function that returns mean and covariance after such a step, in arrays of their own
    """

    def __init__(self, shape, rule, noise, mean, cov, noise_gain, period, fade):
        self.shape, self.rule, self.noise, self.mean, self.cov = shape, rule, noise, mean, cov
        self.noise_gain, self.period, self.fade, self.faded_at = noise_gain, period, fade, -1
        self.target = np.empty(rule.likelihood.n_columns)
        self.learning, self.looking, self.lock = _Space(shape), _Space(shape), Lock()
        self.kept = rule.likelihood.memory_of(1, noise)[0]
        self.scored_noise, self.scored = noise.copy(), VectorMatch(shape.n_outputs)

    def attempt(self, x, y):
        """Look at a row, match it and check that its step is finite."""
        likelihood, space, noise = self.rule.likelihood, self.learning, self.noise
        if not self.is_next(x) or not self.take_target(y):
            return False
        target = cython.address(self.target[0])
        noise.row_weight = 1.0
        with cython.nogil:
            self.see(x, space)
            mean = space.signals.mean
            cov = space.space.cov
            self.density = likelihood.match(mean, cov, target, noise, space.match)
            finite: cython.bint = isfinite(self.density) and isfinite(magnitude(space.space, space.match.score))
        return finite

    def score(self):
        """That with calibrated variances, if errors calibrate them; else that of the match."""
        likelihood, space = self.rule.likelihood, self.learning
        if not self.noise.is_calibrated():
            return self.density
        kept = cython.address(self.kept[0])
        target = cython.address(self.target[0])
        likelihood.keep(space.signals.mean, space.space.cov, self.noise, kept)
        return likelihood.score_kept(kept, cython.NULL, target, self.scored_noise, self.scored)

    def finish(self):
        """Take the step of the row that was attempted."""
        space, rule, noise = self.learning, self.rule, self.noise
        mean = cython.address(self.mean[0])
        cov = cython.address(self.cov[0])
        with cython.nogil:
            if self.faded_at == noise.n_seen:
                memcpy(mean, self.now_mean, self.mean.shape[0] * cython.sizeof(cython.double))
                memcpy(cov, self.now_cov, self.cov.shape[0] * cython.sizeof(cython.double))
            step(self.shape, rule.kept, cython.address(rule.added[0]), mean, cov, space.space, space.match)
            rule.likelihood.update_noise(
                space.signals.mean,
                space.space.cov,
                cython.address(self.target[0]),
                noise,
                self.noise_gain,
                INFINITY,
            )
        noise.log_evidence += noise.row_evidence
        noise.n_seen += 1
        self.faded_mean, self.faded_cov, self.faded_at = None, None, -1

    def raise_pending(self):
        """Those of activation and likelihood."""
        self.rule.activation.raise_pending()
        self.rule.likelihood.raise_pending()

    def is_next(self, x):
        """Whether a row can be looked at here; finds the belief as it is before the row, but for drift."""
        if x.shape[0] != self.shape.width[0] or self.noise.trust.is_alarmed():
            return False
        seen = self.noise.n_seen
        if self.period == 0 or seen == 0 or seen % self.period != 0:
            self.now_mean = cython.address(self.mean[0])
            self.now_cov = cython.address(self.cov[0])
            return True
        if self.faded_at != seen:  # once for all that is asked before the row is learned
            self.faded_mean, self.faded_cov = self.fade()
            self.faded_at = seen
        self.now_mean = cython.address(self.faded_mean[0])
        self.now_cov = cython.address(self.faded_cov[0])
        return True

    def take_target(self, y):
        """Keep a target of the right type; whether it is one that can be learned."""
        i: cython.Py_ssize_t
        if type(y) is np.ndarray:
            values: cython.const[cython.double][::1] = y
            if values.shape[0] != self.target.shape[0]:
                return False
            for i in range(values.shape[0]):
                self.target[i] = values[i]
        elif self.target.shape[0] > 1:
            return False
        else:
            self.target[0] = y
        return self.rule.likelihood.accepts(cython.address(self.target[0]))

    def see(self, x, space):
        """Moments of the outputs of a row, after the weights have moved."""
        kept = self.rule.kept
        added = cython.address(self.rule.added[0])
        row = cython.address(x[0])
        forward(self.shape, self.rule.activation, kept, added, self.now_mean, self.now_cov, row, space.signals)
        project(self.shape, kept, added, self.now_cov, space.signals, space.space)

    def describe(self, x):
        """What the network alone predicts a row of the right type from, ``(1, 7, K)``: see `OutputRecord`."""
        space, noise = self.looking, self.noise
        n: cython.Py_ssize_t = self.rule.likelihood.n_outputs
        size: cython.Py_ssize_t = self.shape.n_outputs
        i: cython.Py_ssize_t
        record = np.empty((1, 7, n))
        numbers: cython.double[:, :, ::1] = record
        total: cython.double = 0.0
        with self.lock:  # others may predict at the same time
            if not self.is_next(x):
                return None
            with cython.nogil:
                self.see(x, space)
                mean = space.signals.mean
                cov = space.space.cov
                self.rule.likelihood.describe(mean, cov, noise, cython.address(numbers[0, 0, 0]), space.match)
                for i in range(size):
                    total += mean[i]
                for i in range(size * size):
                    total += cov[i]
                for i in range(n):
                    total += numbers[0, 0, i]
                    numbers[0, 3, i] = noise.widened_scale(i)
        self.raise_pending()
        return record if isfinite(total) else None
