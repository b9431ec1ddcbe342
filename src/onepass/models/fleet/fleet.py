"""One independent perceptron for each key, such as users, sensors or shops: a million of them in one array.

A row ``(key, x, y)`` updates only the perceptron of its key, with the same compiled code as `BayesianPerceptron`. So a
fleet is as exact as that many perceptrons, without the memory of that many objects. A key that was never seen starts
from a shared prior, which can be learned from the other keys (`PerceptronFleet.population`).
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from onepass._typing import FloatArray
from onepass._validation import (
    as_count,
    as_floats,
    as_nonnegative,
    as_row_weights,
    as_rows,
    as_rows_ahead,
    as_targets,
)
from onepass.activations import Activation, activation_text
from onepass.beliefs.full import FullGaussian
from onepass.engine.fleet import (
    N_REWEIGHED,
    OF_REFERENCE,
    OF_SQUARES,
    OF_START_WEIGHT,
    Projection,
    distrust_fleet,
    learn_fleet,
    project_fleet,
)
from onepass.engine.outliers import TRUST_WAYS, Trust
from onepass.engine.rows import PerceptronRule
from onepass.engine.step import RECORD_SIZE, PerceptronProgress, RowRecord
from onepass.files.state import Arrays, Parameters, as_tally, checked_trusts, sized
from onepass.likelihoods import Likelihood
from onepass.models.ahead import RowsAhead
from onepass.models.distribution import Family, Prediction
from onepass.models.fleet.keys import Keys, Slots, as_keys, decode_keys, encode_keys, parts_of, take_keys
from onepass.models.fleet.population import fit_population, rebased, widened
from onepass.models.fleet.records import (
    AT_EVIDENCE,
    AT_NOISE,
    AT_NOISE_WEIGHT,
    AT_PRIOR,
    AT_SEEN,
    HEAD,
    check_records,
    make_record,
    means_of,
    packed_mixtures,
    record_width,
    reweighed_of,
    roots_of,
    running_of,
    trusts_of,
)
from onepass.models.fleet.store import RecordStore
from onepass.models.fleet.template import Template, fresh_state, pack, restore_prior
from onepass.models.perceptron import BayesianPerceptron
from onepass.models.prediction import PredictedMoments, RowScores, log_noise_var, one_or_many

__all__ = ["PerceptronFleet"]

_NO_RECORD = np.empty((0, RECORD_SIZE))
_POPULATION_NOISE_WEIGHT = 10.0  # rows that the noise of a new key rests on, once the others have informed it
_POPULATION = 20_000  # keys that a population is learned from at most
_POPULATION_NUMBERS = 2**25  # and numbers in their covariances
_POOL_WORK = 2**20  # multiplications of a step of expectation maximisation, or for five keys per weight
_AT_ONCE = 2**22  # numbers in covariances that are changed together


class PerceptronFleet:
    """Perceptrons by key, which learn and predict independently of each other.

    Keys are integers or strings. All perceptrons have full covariances and the same settings.

    Parameters
    ----------
    n_features : int
        Length of an input row, without the bias. Memory and time grow with its square, so keep it small.
    activation, bias, mean, cov, observation, noise, noise_window, update, moments, outliers, forgetting :
        As for `BayesianPerceptron`; ``mean`` and ``cov`` are the prior of every new key.
    capacity : int, optional
        Maximum number of keys in memory. Beyond it, the keys learned longest ago are moved to a file in ``spill``; they
        come back exactly as they were when they are next learned.
    spill : path of a folder, required with ``capacity``
        Folder for the temporary file of the keys that are not in memory. The file is deleted with the fleet. Every
        fleet needs a folder of its own.

    Examples
    --------
    >>> from onepass import PerceptronFleet
    >>> fleet = PerceptronFleet(1, "linear", noise=0.1)
    >>> fleet = fleet.learn([[1.0], [1.0], [2.0]], [1.0, -1.0, 2.0], keys=["ann", "bob", "ann"])
    >>> fleet.predict([[3.0], [3.0], [3.0]], keys=["ann", "bob", "new"]).mean.round(1)
    array([ 2.8, -1.9,  0. ])
    >>> len(fleet), "bob" in fleet, fleet.perceptron("ann").n_seen
    (2, True, 2)
    """

    def __init__(
        self,
        n_features: int,
        activation: str | Activation = "sigmoid",
        *,
        bias: bool = True,
        mean: ArrayLike | None = None,
        cov: ArrayLike | None = None,
        observation: str | Likelihood = "auto",
        noise: float | Literal["learn"] | None = None,
        noise_window: int | None = None,
        update: str = "auto",
        moments: str = "exact",
        outliers: float = 0.0,
        forgetting: float = 1.0,
        capacity: int | None = None,
        spill: str | PathLike[str] | None = None,
    ) -> None:
        prior = BayesianPerceptron(
            n_features,
            activation,
            bias=bias,
            mean=mean,
            cov=cov,
            observation=observation,
            noise=noise,
            noise_window=noise_window,
            update=update,
            moments=moments,
            outliers=outliers,
            forgetting=forgetting,
        )
        self._start_from(prior)
        if capacity is not None or spill is not None:
            self.bound(capacity, spill)

    def _start_from(self, prior: BayesianPerceptron) -> None:
        self.n_features: int = prior.n_features
        self.activation: Activation = prior.activation
        self._bias = prior.bias
        self._likelihood = prior.observation
        self._template = Template.of(prior)
        record = pack(prior)
        self._store = RecordStore(len(record))
        self._set_priors(record[None])
        self._clock = 0  # calls of learn, by which keys are evicted
        self._n_set_aside = 0

    def _set_priors(self, priors: FloatArray) -> None:
        """Set all priors that keys have started from, the current one last."""
        self._priors = priors
        template, forgetting = self._template, self._template.forgetting
        matcher = self._likelihood.compiled(self.activation, template.settings["update"])
        beliefs = priors[:, HEAD : record_width(template.size)]
        # Alarms, and many far targets in succession, lead back to them, and rows are re-weighed against them.
        self._rule = PerceptronRule(matcher, self._bias, forgetting.period, forgetting.keep, beliefs)

    def __len__(self) -> int:
        return len(self._store)

    def __contains__(self, key: Any) -> bool:
        try:
            return self._store.contains(as_keys([key], 1))
        except (TypeError, ValueError):  # not a valid key
            return False

    def __repr__(self) -> str:
        return f"PerceptronFleet({self.n_features}, {activation_text(self.activation)}, keys={len(self)})"

    @property
    def n_set_aside(self) -> int:
        """Number of rows of all keys that were counted but not learned, since their target was absurdly far off."""
        return self._n_set_aside

    @property
    def nbytes(self) -> int:
        """Bytes of the perceptrons in memory: their beliefs and running quantities."""
        return self._store.resident * self._store.records.shape[1] * 8

    def keys(self) -> list[Any]:
        """Return all keys, evicted ones too."""
        keys = self._store.keys()
        return [] if keys is None else list(keys.tolist() if isinstance(keys, np.ndarray) else keys)

    def perceptron(self, key: Any) -> BayesianPerceptron:
        """Make an independent `BayesianPerceptron` with the belief of a key; a KeyError if the key is unknown."""
        keys = as_keys([key], 1)
        if key not in self:
            raise KeyError(key)
        slots, records = self._store.find(keys)
        record = records[slots[0]]
        return self._template.unpack(record, self._priors[int(record[AT_PRIOR])])

    def belief(self, key: Any, *, rows_ahead: int = 0) -> tuple[FloatArray, FloatArray]:
        """Mean ``(p,)`` and covariance ``(p, p)`` of the weights of a key; for an unknown key, of the prior.

        With ``rows_ahead=1`` they are those by which the next row of the key is predicted.

        Examples
        --------
        >>> from onepass import PerceptronFleet
        >>> fleet = PerceptronFleet(1, "linear", noise=0.1).learn([[1.0]], [1.0], keys=["ann"])
        >>> fleet.belief("ann")[0].round(2), fleet.belief("new")[0]
        (array([0.48, 0.48]), array([0., 0.]))
        """
        if key in self:
            model = self.perceptron(key).ahead(rows_ahead)
            return model.mean, model.cov
        root = roots_of(self._priors[-1:], self._template.size)[0]
        return means_of(self._priors[-1:], self._template.size)[0].copy(), root.T @ root

    def bound(self, capacity: int | None, spill: str | PathLike[str] | None) -> None:
        """Keep at most ``capacity`` keys in memory from now on, and the others in a file in the folder ``spill``."""
        if capacity is None or spill is None:
            raise ValueError(f"capacity and spill must be given together, got capacity={capacity} and spill={spill}")
        self._store.bound(as_count(capacity, "capacity"), Path(spill))

    @property
    def log_evidence(self) -> float:
        """Sum of the log densities of all rows of all keys, each before it was learned."""
        return float(self._store.all_records()[:, AT_EVIDENCE].sum())

    @property
    def n_seen(self) -> int:
        """Number of rows learned, by all keys."""
        return int(self._store.all_records()[:, AT_SEEN].sum())

    @property
    def has_number_keys(self) -> bool:
        """Whether its keys are integers; False for strings, or if there are no keys yet."""
        return self._store.has_number_keys

    # The prior.

    @property
    def prior(self) -> BayesianPerceptron:
        """A copy of the perceptron that new keys start from; assign another to change it for future keys."""
        return self._template.unpack(self._priors[-1], self._priors[-1])

    @prior.setter
    def prior(self, value: BayesianPerceptron) -> None:
        self._template.check_prior(value, self._priors[-1])
        record = pack(value)
        record[AT_PRIOR] = len(self._priors)
        self._set_priors(np.vstack([self._priors, record]))

    def population(self) -> BayesianPerceptron:
        """Learn what keys have in common: the Gaussian from which their weights were most probably drawn.

        This is empirical Bayes, by expectation maximisation over what each key's rows have changed since its prior.
        Assign the result to `prior`, and new keys start from it instead of a vague belief. It uses up to 20,000 of the
        keys in memory, evenly spaced. A learned noise is averaged over keys, weighted by rows. For labels the mean is
        approximate and somewhat too extreme, because the update from a vague prior with few rows per key is.

        Examples
        --------
        >>> import numpy as np
        >>> from onepass import PerceptronFleet
        >>> rng = np.random.default_rng(0)
        >>> weights = rng.normal([5.0, -3.0], 0.5, size=(200, 2))
        >>> keys, X = rng.integers(200, size=4000), rng.normal(size=(4000, 2))
        >>> y = (X * weights[keys]).sum(axis=1) + rng.normal(size=4000)
        >>> fleet = PerceptronFleet(2, "linear", bias=False, noise=1.0, cov=100.0).learn(X, y, keys=keys)
        >>> fleet.prior = fleet.population()
        >>> fleet.prior.mean.round(1), np.sqrt(np.diag(fleet.prior.cov)).round(1)
        (array([ 5., -3.]), array([0.5, 0.5]))
        """
        records = self._some_records(max(_POPULATION_NUMBERS // self._template.size**2, 2))
        current = self.prior
        mean, cov = fit_population(records, self._priors_of(records), current.mean, current.cov)
        record = self._population_record(mean, cov, records)
        return self._template.unpack(record, record)

    def pool(self, noise: float | None = None) -> Self:
        """Let keys learn from each other: replace the prior of all keys by the population's.

        New keys start from it, and existing keys are changed as if they had started from it: each keeps what its own
        rows have shown and takes the rest from the others. With few keys the population's covariance is widened
        compared to `population`. Keys that are not in memory stay as they are.

        Parameters
        ----------
        noise : float, optional
            New variance of the noise of all keys, for a fleet with a fixed noise. Rows that were learned before count
            as if they had come with this noise.

        Examples
        --------
        >>> import numpy as np
        >>> from onepass import PerceptronFleet
        >>> rng = np.random.default_rng(0)
        >>> weights = rng.normal([5.0, -3.0], 0.5, size=(200, 2))
        >>> keys, X = rng.integers(200, size=1000), rng.normal(size=(1000, 2))
        >>> y = (X * weights[keys]).sum(axis=1) + rng.normal(size=1000)
        >>> fleet = PerceptronFleet(2, "linear", bias=False, noise=1.0, cov=100.0).learn(X, y, keys=keys)
        >>> fleet.pool().prior.mean.round(1)
        array([ 5., -3.])
        """
        size = self._template.size
        records = self._some_records(max(_POOL_WORK // size**3, 5 * size))
        current, start = self.prior, self._template.unpack(self._priors[0], self._priors[0])
        mean, cov = fit_population(records, self._priors_of(records), current.mean, current.cov)
        record = self._population_record(mean, widened(cov, start.cov, len(records)), records)
        if noise is not None:
            if record[AT_NOISE_WEIGHT] > 0.0:
                raise ValueError(f"noise can't be set in a fleet with noise='learn', got noise={noise}; leave it out")
            record[AT_NOISE] = as_nonnegative(noise, "noise")
        self._set_priors(np.vstack([self._priors, record]))
        used = self._store.slots()
        step = max(_AT_ONCE // size**2, 1)
        for places in np.split(used, range(step, len(used), step)):
            old = self._store.records[places]
            self._store.records[places] = rebased(old, self._priors_of(old), record, size)
        return self

    def _some_records(self, most: int) -> FloatArray:
        """The records of keys with rows that a population is learned from, at most so many."""
        used = self._store.slots()
        used = used[self._store.records[used, AT_SEEN] > 0]
        if len(used) < 2:
            raise ValueError(f"a population needs at least two keys that have learned rows, got {len(used)}")
        return np.asarray(self._store.records[used[:: -(-len(used) // min(most, _POPULATION))]])

    def _priors_of(self, records: FloatArray) -> FloatArray:
        return np.asarray(self._priors[records[:, AT_PRIOR].astype(int)])

    def _population_record(self, mean: FloatArray, cov: FloatArray, records: FloatArray) -> FloatArray:
        """The record of a new key of a population, with the noise and the trust of these keys, pooled."""
        size, window = self._template.size, self._template.noise_window
        state = PerceptronProgress.from_array(running_of(self._priors[-1], size, window))
        if state.learns_noise:
            state.noise = np.average(records[:, AT_NOISE], weights=records[:, AT_NOISE_WEIGHT])
            state.noise_weight = _POPULATION_NOISE_WEIGHT
        if self._template.outliers:
            state.trust = self._pooled_trust(records)
        record = make_record(mean, FullGaussian(mean, cov).to_root(), fresh_state(state))
        record[AT_PRIOR] = len(self._priors)
        return record

    def _pooled_trust(self, records: FloatArray) -> Trust:
        """The trust of a new key, by the shares of all rows of these; it has the weight of one before any row."""
        counts = trusts_of(records, self._template.size)[:, :TRUST_WAYS].sum(axis=0)
        firm = self._rule.likelihood.continuous
        start = Trust.start(self._template.outliers, firm).to_array()[:TRUST_WAYS]
        return Trust.after(counts / counts.sum() * start.sum())

    # Learning and predicting.

    def learn(self, X: Any, y: ArrayLike, *, keys: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn rows in the order given, each by the perceptron of its key: all of them or, after an error, none.

        Parameters
        ----------
        X : (n, d) array, or one row (d,)
        y : (n,) targets, or one
        keys : (n,) integers or strings, or one
        sample_weight : number or (n,) array, optional
            Weights above 0, as for `BayesianPerceptron.learn`: a row of weight ``w`` counts as ``w`` copies of it.
        """
        self._learn(X, y, keys, sample_weight, recording=False)
        return self

    def predict(self, X: Any, *, keys: Any, rows_ahead: RowsAhead = 1) -> Prediction:
        """Predict rows, each by the perceptron of its key; unknown keys are predicted by the prior.

        ``rows_ahead`` counts the rows of each key: 1 for its next row, see `BayesianPerceptron.predict`.
        """
        rows, single = as_rows(X, self.n_features)
        return self._prediction(self._projected(rows, keys, rows_ahead), single)

    def _projected(self, rows: FloatArray, keys: Any, rows_ahead: RowsAhead) -> Projection:
        slots, records = self._store.find(as_keys(keys, len(rows)))
        return project_fleet(rows, slots, _each_row(rows_ahead, rows), self._rule, records, self._priors[-1])

    def interval(self, X: Any, level: float = 0.95, *, keys: Any, rows_ahead: RowsAhead = 1) -> tuple[Any, Any]:
        """Limits that contain a new target with probability ``level``: see `BayesianPerceptron.interval`.

        Examples
        --------
        >>> from onepass import PerceptronFleet
        >>> fleet = PerceptronFleet(1, "linear", noise=0.1).learn([[1.0]], [1.0], keys=["ann"])
        >>> low, high = fleet.interval([[1.0], [1.0]], keys=["ann", "new"])
        >>> low.round(1), high.round(1)
        (array([ 0.1, -2.8]), array([1.8, 2.8]))
        """
        return self.predict(X, keys=keys, rows_ahead=rows_ahead).interval(level)

    def outlier_probability(self, X: Any, y: ArrayLike, *, keys: Any, rows_ahead: RowsAhead = 1) -> Any:
        """Probability that each target can't be trusted, before its key learns it; 0 with ``outliers=0``.

        For labels it is the probability that the label is wrong. For an unknown key the prior is used.

        Examples
        --------
        >>> from onepass import PerceptronFleet
        >>> fleet = PerceptronFleet(1, "linear", noise=0.1, outliers=0.05)
        >>> fleet = fleet.learn([[1.0], [2.0]] * 10, [1.0, 2.0] * 10, keys=["ann"] * 20)
        >>> fleet.outlier_probability([[1.0], [1.0]], [1.1, 40.0], keys=["ann", "ann"]).round(2)
        array([0.01, 1.  ])
        """
        rows, single = as_rows(X, self.n_features)
        targets = as_targets(y, len(rows), single)
        self._likelihood.check(targets)
        slots, records = self._store.find(as_keys(keys, len(rows)))
        ahead = _each_row(rows_ahead, rows)
        found = distrust_fleet(rows, targets, slots, ahead, self._rule, records, self._priors[-1])
        return one_or_many(found, single)

    def predict_then_learn(
        self,
        X: Any,
        y: ArrayLike,
        *,
        keys: Any,
        sample_weight: ArrayLike | None = None,
        return_outlier_probability: bool = False,
    ) -> Any:
        """Predict every row just before learning it: test-then-train evaluation, at the speed of learning alone.

        Returns the `Prediction` or, with ``return_outlier_probability``, a pair: the prediction, and for each row the
        probability that its target can't be trusted, ``(n,)``.
        """
        prediction, scores = self.predict_score_learn(X, y, keys=keys, sample_weight=sample_weight)
        return (prediction, scores.outliers) if return_outlier_probability else prediction

    def predict_score_learn(
        self, X: Any, y: ArrayLike, *, keys: Any, sample_weight: ArrayLike | None = None
    ) -> tuple[Prediction, RowScores]:
        """Predict every row just before learning it; returns the predictions and how well they scored."""
        record, single = self._learn(X, y, keys, sample_weight, recording=True)
        return self._prediction(RowRecord.of(record), single), RowScores.of(record)

    def learn_and_score(self, X: Any, y: ArrayLike, *, keys: Any, sample_weight: ArrayLike | None = None) -> RowScores:
        """Learn as `learn` does, and return how well each row was predicted before it was learned."""
        return RowScores.of(self._learn(X, y, keys, sample_weight, recording=True)[0])

    def drift(self, keys: Any, share: ArrayLike) -> Self:
        """Make keys less certain: a key's covariance ``C`` becomes ``(1 - share) C + share C_0``.

        ``C_0`` is the covariance of the present `prior`; means stay, and unknown keys don't change. Use it for weights
        that change with time, even while their keys get no rows.

        Parameters
        ----------
        keys : (n,) integers or strings, all different
        share : number or (n,) array in [0, 1]

        Examples
        --------
        >>> from onepass import PerceptronFleet
        >>> fleet = PerceptronFleet(1, "linear", noise=0.1).learn([[1.0], [1.0]], [1.0, -1.0], keys=["ann", "bob"])
        >>> before = fleet.predict([[1.0], [1.0]], keys=["ann", "bob"]).epistemic
        >>> after = fleet.drift(["ann"], 0.5).predict([[1.0], [1.0]], keys=["ann", "bob"]).epistemic
        >>> before.round(3), after.round(3)
        (array([0.095, 0.095]), array([1.048, 0.095]))
        """
        given = as_floats(np.atleast_1d(share), "share")
        if (given < 0.0).any() or (given > 1.0).any():
            raise ValueError(f"share must be in [0, 1], got {given.min():g} to {given.max():g}")
        found = as_keys(keys, np.size(keys))
        shares = np.broadcast_to(given, len(found))
        moving = np.flatnonzero((self._store.find(found)[0] >= 0) & (shares > 0.0))
        if not len(moving):
            return self
        slots, shares = self._store.assign(take_keys(found, moving), self._priors[-1])[0], shares[moving]
        size = self._template.size
        roots, start = roots_of(self._store.records[slots], size), roots_of(self._priors[-1:], size)
        packed = packed_mixtures(roots, np.broadcast_to(start, roots.shape), shares)
        self._store.records[slots, HEAD + size : record_width(size)] = packed
        if reweighed_of(self._priors, size).size:  # what is left of rows is not theirs alone: they can't be re-weighed
            self._store.records[slots, record_width(size) + OF_REFERENCE] = 0.0
        return self

    @contextmanager
    def all_or_none(self, keys: Any) -> Iterator[None]:
        """As a context: if anything in the block fails, undo all changes that it made to these keys."""
        found = as_keys(keys, np.size(keys))
        slots, records = self._store.find(found)
        known = np.flatnonzero(slots >= 0)
        before, clock, n_set_aside = records[slots[known]].copy(), self._clock, self._n_set_aside
        try:
            yield
        except BaseException:  # also Ctrl-C
            self._put(take_keys(found, known), before)
            entered = self._store.find(found)[0]
            self._store.release(np.unique(entered[(slots < 0) & (entered >= 0)]))
            self._clock, self._n_set_aside = clock, n_set_aside
            raise

    def _learn(
        self, X: Any, y: ArrayLike, keys: Any, sample_weight: ArrayLike | None, *, recording: bool
    ) -> tuple[FloatArray, bool]:
        rows, single = as_rows(X, self.n_features)
        targets = as_targets(y, len(rows), single)
        self._likelihood.check(targets)
        weights = as_row_weights(sample_weight, len(rows))
        slots, new = self._store.assign(as_keys(keys, len(rows)), self._priors[-1])
        order = np.argsort(slots, kind="stable")  # rows of a key together, in their order
        grouped = slots[order]
        touched = grouped[np.diff(grouped, prepend=-1) > 0]
        before = self._store.records[touched]
        record = np.empty((len(rows), RECORD_SIZE)) if recording else _NO_RECORD
        learned = -1
        try:
            options = (self._rule, self._template.noise_window, float(self._clock + 1))
            learned = learn_fleet(rows, targets, weights, slots, order, *options, self._store.records, record)
        finally:  # also after Ctrl-C nothing is half learned
            if learned != len(rows):
                self._store.records[touched] = before
                self._store.release(new)
        if learned != len(rows):
            raise ValueError(
                f"the row at index {order[learned]} overflows float64: the largest magnitudes of X and y are "
                f"{np.abs(rows).max():.3g} and {np.abs(targets).max():.3g}; rescale them. Nothing was learned."
            )
        self._clock += 1
        self._n_set_aside += self._set_aside_in(self._store.records[touched]) - self._set_aside_in(before)
        return record, single

    def _set_aside_in(self, records: FloatArray) -> int:
        """Number of rows that the keys of these records have set aside."""
        return 0 if self._template.outliers else int(trusts_of(records, self._template.size)[:, 0].sum())

    def _prediction(self, seen: Projection | RowRecord, single: bool) -> Prediction:
        output = self._likelihood.output_moments(self.activation, seen.mean, seen.var)
        noise_var = self._likelihood.with_noise(seen.noise).noise_var(output)
        moments = PredictedMoments.of((output.mean, output.var, seen.mean, seen.var, noise_var), single)
        log_var = one_or_many(log_noise_var(seen.noise_weight), single)
        return Prediction(Family(self._likelihood, self.activation), moments, log_var)

    # Files, copies, and fleets that are divided and joined.

    def export_state(self) -> tuple[Parameters, Arrays]:
        """Return the complete state, evicted keys too, as JSON-compatible parameters and arrays."""
        keys = self._store.keys()
        size, records = self._template.size, self._store.all_records()
        arrays = {
            "records": np.ascontiguousarray(records[:, : record_width(size)]),  # the same array, if that is all
            "priors": self._priors[:, : record_width(size)].copy(),
            "prior_variances": self._template.arrays["prior_variances"].copy(),
            "window": np.array([self._template.noise_window]),
            **({} if keys is None or not len(keys) else encode_keys(keys)),
        }
        for name, given in (("", records), ("prior_", self._priors)):
            arrays[f"{name}trust"] = trusts_of(given, size).copy()
            if reweighed_of(given, size).shape[1]:
                arrays[f"{name}reweighed"] = reweighed_of(given, size).copy()
        settings = {key: value for key, value in self._template.settings.items() if key != "belief"}
        return {"settings": settings, "clock": self._clock}, arrays

    @classmethod
    def from_state(cls, parameters: Parameters, arrays: Arrays) -> Self:
        """Make the fleet that `export_state` described, with all keys in memory; `bound` it again if necessary."""
        settings = parameters["settings"]
        size = as_count(settings["n_features"], "n_features") + int(bool(settings["bias"]))
        width = record_width(size)
        priors = sized(arrays, "priors", (len(arrays["priors"]), width))
        records = sized(arrays, "records", (len(arrays["records"]), width))
        check_records(np.vstack([priors, records]), len(priors))
        priors = _with_rest(settings, arrays, "prior_", priors)
        records = _with_rest(settings, arrays, "", records)
        if records.shape[1] != priors.shape[1]:
            raise ValueError("the numbers by which rows are re-weighed are there for the priors or the keys only")
        fleet = object.__new__(cls)
        fleet._start_from(restore_prior(settings, arrays, priors[0], size))
        fleet._set_priors(priors)
        fleet._clock = as_tally(parameters["clock"], "clock")
        if len(records):
            fleet._put(decode_keys(arrays, len(records)), records)
            if len(fleet) != len(records):
                raise ValueError("the saved keys must all be different")
        return fleet

    def __reduce__(self) -> Any:
        # A copy has no file of its own, so all keys of a bounded fleet are in memory in it.
        return type(self).from_state, self.export_state()

    def split(self, n_parts: int) -> list["PerceptronFleet"]:
        """Divide the keys among new fleets; the part of a key depends on the key alone."""
        as_count(n_parts, "n_parts")
        parameters, arrays = self.export_state()
        records = self._store.all_records()
        keys = decode_keys(arrays, len(records)) if len(records) else np.empty(0, dtype=np.int64)
        part_of, fleets = parts_of(keys, n_parts), []
        bare = {name: array for name, array in arrays.items() if not name.startswith("key")}
        bare |= {name: array[:0] for name, array in bare.items() if name in ("records", "trust", "reweighed")}
        for part in range(n_parts):
            own = np.flatnonzero(part_of == part)
            fleets.append(type(self).from_state(parameters, bare))
            if len(own):
                fleets[-1]._put(take_keys(keys, own), records[own])
        return fleets

    def join(self, others: Iterable["PerceptronFleet"]) -> Self:
        """Add the keys of fleets with the same settings and prior; no key may be in two of them."""
        fleets = list(others)
        for other in fleets:
            if not isinstance(other, PerceptronFleet):
                raise TypeError(f"others must contain PerceptronFleets, got {type(other).__name__}")
            same_settings = other._template.settings == self._template.settings
            if not same_settings or not np.array_equal(other._priors, self._priors):
                raise ValueError(
                    "fleets can be joined only if they have the same settings and prior; split one fleet, or make both "
                    "with the same arguments"
                )
        moving = [(other._store.keys(), other._store.all_records()) for other in fleets if len(other)]
        self._store.check_distinct([keys for keys, _ in moving])
        for keys, records in moving:
            step = self._store.capacity or len(records)
            for places in np.split(np.arange(len(records)), range(step, len(records), step)):
                self._put(take_keys(keys, places), records[places])
        self._clock = max([self._clock, *(other._clock for other in fleets)])
        return self

    def _put(self, keys: Keys, records: FloatArray) -> None:
        """Add keys with these records."""
        slots, _ = self._store.assign(keys, self._priors[-1])
        self._store.records[slots] = records
        self._n_set_aside += self._set_aside_in(records)


def _each_row(rows_ahead: RowsAhead, rows: FloatArray) -> Slots:
    """How many rows ahead each row is, ``(n,)``."""
    return np.full(len(rows), as_rows_ahead(rows_ahead, len(rows)), dtype=np.int64)


def _with_rest(settings: Parameters, arrays: Arrays, name: str, records: FloatArray) -> FloatArray:
    """Put behind records what files have apart, where there is any: how rows are re-weighed, the trust in targets."""
    n, none = len(records), np.empty((len(records), 0))
    reweighed = arrays.get(f"{name}reweighed", none)
    if reweighed.shape[1]:
        reweighed = sized(arrays, f"{name}reweighed", (n, N_REWEIGHED))
        if (reweighed[:, [OF_REFERENCE, OF_SQUARES]] < 0.0).any() or (reweighed[:, OF_START_WEIGHT] <= 0.0).any():
            raise ValueError(f"{name}reweighed holds a noise or squares below 0, or a weight that is not above 0")
    trusts = checked_trusts(arrays.get(f"{name}trust", none), n, settings["outliers"])
    return np.hstack([records, reweighed, trusts])
