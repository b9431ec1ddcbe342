"""One independent perceptron for each key: users, sensors, shops; a million of them in one array.

A row ``(key, x, y)`` teaches the perceptron of its key alone, by the very kernel that `BayesianPerceptron` learns with,
so that a fleet is as exact as so many perceptrons, without their objects. A key that was never seen starts from a
shared prior, which can be learned from the keys there are (`PerceptronFleet.population`).
"""

from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onepass._typing import FloatArray
from onepass._validation import as_count, as_rows, as_targets
from onepass.activations import Activation
from onepass.beliefs.full import FullGaussian
from onepass.beliefs.records import (
    AT_EVIDENCE,
    AT_NOISE,
    AT_NOISE_WEIGHT,
    AT_PRIOR,
    AT_SEEN,
    AT_TOUCHED,
    check_records,
    make_record,
    means_of,
    natural_of,
    record_width,
    roots_of,
)
from onepass.files.state import Arrays, Parameters, as_tally, sized
from onepass.likelihoods.univariate import (
    EVIDENCE,
    NOISE,
    NOISE_START_ROWS,
    NOISE_WEIGHT,
    NOISE_WINDOW,
    SEEN,
    Gaussian,
)
from onepass.models.fleet.keys import KeyIndex, Keys, Spill, as_keys, make_index, parts_of
from onepass.models.perceptron import BayesianPerceptron, Prediction

__all__ = ["PerceptronFleet"]

Slots = NDArray[np.int64]

_NO_RECORD = np.empty((0, 3))
_FIRST_ROOM = 1024
_POPULATION = 20_000  # keys that a population is learned from at most
_STEPS = 50  # of expectation maximisation
_SLACK = 16  # one in so many keys is evicted beyond need, so that the next need comes later


class PerceptronFleet:
    """Perceptrons by key, which learn and predict side by side.

    Keys are whole numbers or texts. All perceptrons have full covariances and the same settings.

    Parameters
    ----------
    n_features : int
        Length of an input row, without the bias. Made for few: memory and time grow with its square.
    activation, bias, mean, cov, observation, noise, noise_window, update, moments, forgetting :
        As for `BayesianPerceptron`; ``mean`` and ``cov`` are the prior of every new key.
    capacity : int, optional
        Keys held in memory at most; beyond it those learned longest ago are evicted to ``spill``, and come back exactly
        as they were when they are next learned.
    spill : path of a folder, needed with ``capacity``
        For the working file of evicted keys, which ends with the fleet. It must not hold another fleet's.

    Examples
    --------
    >>> fleet = PerceptronFleet(1, "linear", noise=0.1)
    >>> fleet = fleet.learn(["ann", "bob", "ann"], [[1.0], [1.0], [2.0]], [1.0, -1.0, 2.0])
    >>> fleet.predict(["ann", "bob", "new"], [[3.0], [3.0], [3.0]]).mean.round(1)
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
        observation: str = "auto",
        noise: float | Literal["learn"] | None = None,
        noise_window: int | None = None,
        update: str = "auto",
        moments: str = "exact",
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
            forgetting=forgetting,
        )
        self._begin(prior)
        if capacity is not None or spill is not None:
            self.bound(capacity, spill)

    def _begin(self, prior: BayesianPerceptron) -> None:
        from onepass import engine

        self._settings, arrays = prior.export_state()
        self.n_features, self.activation, self._bias = prior.n_features, prior.activation, prior.bias
        self._size = self.n_features + self._bias
        trace = float(np.sum(arrays["prior_variances"]))
        options = (prior.activation, prior.observation, prior.update, prior.bias, prior.forgetting, trace)
        rule = engine.encode(*options)
        if rule is None:
            raise TypeError(f"activation {prior.activation!r} is a function of its own, which a fleet can't learn with")
        self._rule = rule
        self._window = float(arrays["running"][NOISE_WINDOW])
        self._observation = prior.observation
        self._template = arrays
        self._records = np.zeros((0, record_width(self._size)))
        self._priors = _packed(prior)[None]
        self._index: KeyIndex | None = None
        self._free: list[int] = []
        self._count = 0  # slots in use or free
        self._clock = 0
        self._capacity: int | None = None
        self._spill: Spill | None = None

    # What is there.

    def __len__(self) -> int:
        return self._resident + (0 if self._spill is None else len(self._spill))

    def __contains__(self, key: Any) -> bool:
        try:
            keys = as_keys([key], 1)
        except (TypeError, ValueError):  # what can be no key is none of them
            return False
        if self._index is None or isinstance(keys, np.ndarray) != isinstance(self._index.held(_slots([])), np.ndarray):
            return False
        return bool(self._index.find(keys)[0] >= 0) or bool(self._spill is not None and self._spill.find(keys)[0])

    def __repr__(self) -> str:
        return f"PerceptronFleet({self.n_features}, {self.activation!r}, keys={len(self)})"

    @property
    def _resident(self) -> int:
        return self._count - len(self._free)

    @property
    def nbytes(self) -> int:
        """Bytes of the perceptrons in memory: their beliefs, and a few numbers that run along with each."""
        return self._resident * self._records.shape[1] * 8

    def keys(self) -> list[Any]:
        """All keys, evicted ones too."""
        if self._index is None:
            return []
        held = self._index.held(self._used())
        keys: list[Any] = held.tolist() if isinstance(held, np.ndarray) else held
        return keys + ([] if self._spill is None else [key for key, _ in self._spill.all()])

    def perceptron(self, key: Any) -> BayesianPerceptron:
        """Make a `BayesianPerceptron` of a key's: a copy, which goes its own way."""
        keys = as_keys([key], 1)
        if key not in self:
            raise KeyError(key)
        (slots, records) = self._seen(keys)
        return self._unpacked(records[slots[0]])

    # The prior.

    @property
    def prior(self) -> BayesianPerceptron:
        """What new keys start from, as a perceptron of its own; may be set, for keys to come."""
        return self._unpacked(self._priors[-1])

    @prior.setter
    def prior(self, value: BayesianPerceptron) -> None:
        if not isinstance(value, BayesianPerceptron):
            raise TypeError(f"prior must be a BayesianPerceptron, got {type(value).__name__}")
        settings = value.export_state()[0]
        for name in ("n_features", "activation", "bias", "observation", "update", "forgetting"):
            if settings[name] != self._settings[name]:
                raise ValueError(f"prior has {name}={settings[name]!r} where the fleet has {self._settings[name]!r}")
        if settings["belief"]["form"] != "full" or value.mean.dtype != np.float64:
            raise ValueError("prior must have a full covariance in float64")
        self._check_noise(value)
        record = _packed(value)
        record[AT_PRIOR] = len(self._priors)
        self._priors = np.vstack([self._priors, record])

    def _check_noise(self, prior: BayesianPerceptron) -> None:
        """Refuse a prior that learns its noise otherwise."""
        noise, weight, window = prior.export_state()[1]["running"][[NOISE, NOISE_WEIGHT, NOISE_WINDOW]].tolist()
        own_noise, own_weight = self._priors[-1, [AT_NOISE, AT_NOISE_WEIGHT]].tolist()
        if (weight > 0.0) != (own_weight > 0.0):
            given, wanted = ("'learn'" if w > 0.0 else f"{v:g}" for v, w in ((noise, weight), (own_noise, own_weight)))
            raise ValueError(f"prior has noise={given} where the fleet has noise={wanted}")
        if window != self._window:
            given, wanted = (f"{rows:g}" if np.isfinite(rows) else "None" for rows in (window, self._window))
            raise ValueError(f"prior has noise_window={given} where the fleet has {wanted}")

    def population(self) -> BayesianPerceptron:
        """Learn what keys have in common: the Gaussian that their weights are most probably drawn from.

        Empirical Bayes, by expectation maximisation over what each key's rows said beyond its prior. Set it as the
        `prior`, and new keys start as one of this population rather than from nothing. Up to 20,000 keys in memory are
        used, spread evenly. A learned noise is pooled by the rows it rests on. For labels, what a key's few rows said
        under a vague prior is an approximation that reaches too far out, and so does the population's mean, somewhat.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> weights = rng.normal([5.0, -3.0], 0.5, size=(200, 2))
        >>> keys, X = rng.integers(200, size=4000), rng.normal(size=(4000, 2))
        >>> y = (X * weights[keys]).sum(axis=1) + rng.normal(size=4000)
        >>> fleet = PerceptronFleet(2, "linear", bias=False, noise=1.0, cov=100.0).learn(keys, X, y)
        >>> fleet.prior = fleet.population()
        >>> fleet.prior.mean.round(1), np.sqrt(np.diag(fleet.prior.cov)).round(1)
        (array([ 5., -3.]), array([0.5, 0.5]))
        """
        used = self._used()
        used = used[self._records[used, AT_SEEN] > 0]
        if len(used) < 2:
            raise ValueError(f"a population needs two keys with rows at least, got {len(used)}")
        records = self._records[used[:: -(-len(used) // _POPULATION)]]
        began = self._priors[records[:, AT_PRIOR].astype(int)]
        natural = zip(natural_of(records, self._size), natural_of(began, self._size), strict=True)
        precisions, pulls = (after - before for after, before in natural)
        # What a key's rows said of several peaks is no likelihood on its own.
        sound = np.linalg.eigvalsh(precisions)[:, 0] > -1e-9 * np.abs(precisions).max(axis=(1, 2))
        mean, cov = _em(precisions[sound], pulls[sound], self.prior.mean, self.prior.cov)
        noise, weight = self._priors[-1, [AT_NOISE, AT_NOISE_WEIGHT]]
        if weight > 0.0:
            noise = np.average(records[:, AT_NOISE], weights=records[:, AT_NOISE_WEIGHT])
            weight = NOISE_START_ROWS
        record = make_record(mean, FullGaussian(mean, cov).root, noise, weight)
        record[AT_PRIOR] = len(self._priors)
        return self._unpacked(record)

    # Learning and predicting.

    def learn(self, keys: Any, X: Any, y: ArrayLike) -> Self:
        """Learn rows, each by the perceptron of its key, in their order: all of them or, if anything is wrong, none.

        Parameters
        ----------
        keys : (n,) whole numbers or texts, or one
        X : (n, d) array, or one row (d,)
        y : (n,) targets, or one
        """
        self._learn(keys, X, y, recording=False)
        return self

    def predict(self, keys: Any, X: Any) -> Prediction:
        """Predict rows, each by the perceptron of its key; a key that was never learned by the prior."""
        from onepass.engine.fleet import project_fleet

        rows, single = as_rows(X, self.n_features)
        slots, records = self._seen(as_keys(keys, len(rows)))
        return self._prediction(project_fleet(rows, slots, self._bias, records, self._priors[-1]), single)

    def predict_then_learn(self, keys: Any, X: Any, y: ArrayLike) -> Prediction:
        """Predict every row just before learning it: test-then-train evaluation, at the speed of learning alone."""
        return self._prediction(*self._learn(keys, X, y, recording=True))

    def _learn(self, keys: Any, X: Any, y: ArrayLike, *, recording: bool) -> tuple[FloatArray, bool]:
        from onepass.engine.fleet import learn_fleet

        rows, single = as_rows(X, self.n_features)
        targets = as_targets(y, len(rows), single)
        self._observation.check(targets)
        checked = as_keys(keys, len(rows))
        slots, new = self._settled(checked)
        order = np.argsort(slots, kind="stable")  # rows of a key together, in their order
        grouped = slots[order]
        touched = grouped[np.diff(grouped, prepend=-1) > 0]
        before = self._records[touched]
        record = np.empty((len(rows), 3)) if recording else _NO_RECORD
        learned = -1
        try:
            options = (self._rule, self._window, float(self._clock + 1))
            learned = learn_fleet(rows, targets, slots, order, *options, self._records, record)
        finally:  # Ctrl-C too leaves nothing half learned
            if learned != len(rows):
                self._records[touched] = before
                self._leave(new)
        if learned != len(rows):
            raise ValueError(
                f"the row at index {order[learned]} overflows float64: the largest magnitudes of X and y are "
                f"{np.abs(rows).max():.3g} and {np.abs(targets).max():.3g}; rescale them. Nothing was learned."
            )
        self._clock += 1
        return record, single

    def _prediction(self, seen: FloatArray, single: bool) -> Prediction:
        pre_mean, pre_var, noise = seen.T.copy()
        output = self.activation.moments(pre_mean, pre_var)
        observation = Gaussian(noise) if isinstance(self._observation, Gaussian) else self._observation
        columns = (output.mean, output.var, pre_mean, pre_var, observation.noise_var(output))
        return Prediction(*(float(column[0]) if single else column for column in columns))

    # Slots.

    def _used(self) -> Slots:
        mask = np.ones(self._count, dtype=bool)
        mask[self._free] = False
        return np.flatnonzero(mask)

    def _seen(self, keys: Keys) -> tuple[Slots, FloatArray]:
        """Slots to read, and the records they are in; evicted keys are read where they are."""
        if self._index is None:
            return np.full(len(keys), -1, dtype=np.int64), self._records
        self._index.check(keys)
        slots = self._index.find(keys)
        if self._spill is None or not (slots < 0).any():
            return slots, self._records
        missing = np.flatnonzero(slots < 0)
        names, back = _unique(_take(keys, missing))
        found, records = self._spill.find(names)
        place = np.full(len(names), -1, dtype=np.int64)
        place[found] = np.arange(len(found))
        # What is read from the file stands after what is needed of the memory.
        resident, own = np.unique(slots[slots >= 0], return_inverse=True)
        slots[slots >= 0] = own
        slots[missing] = np.where(place[back] >= 0, place[back] + len(resident), -1)
        return slots, np.vstack([self._records[resident], records])

    def _settled(self, keys: Keys) -> tuple[Slots, Slots]:
        """Slots of all keys, which are made or brought back where need be; those that were made."""
        index = self._index if self._index is not None else make_index(keys)
        index.check(keys)
        slots = index.find(keys)
        missing = np.flatnonzero(slots < 0)
        if not len(missing):
            return slots, _slots([])
        names, back = _unique(_take(keys, missing))
        held = np.unique(slots[slots >= 0])
        self._make_room(len(names), held)
        found, records = ([], np.empty((0, 0))) if self._spill is None else self._spill.find(names)
        given = self._take_slots(len(names))
        new = np.delete(given, found)
        self._records[given] = self._priors[-1]
        if found:
            self._records[given[found]] = records
        self._index = index
        try:
            index.put(names, given)
            if found:
                assert self._spill is not None
                self._spill.remove(_take(names, np.array(found)))
        except BaseException:  # Ctrl-C too leaves every key in one place: in the file, as long as it is there
            back_in_file = self._spill is not None and bool(self._spill.find(names)[0])
            leaving = np.arange(len(given)) if back_in_file else np.setdiff1d(np.arange(len(given)), found)
            self._give_back(_take(names, leaving), given[leaving])
            raise
        slots[missing] = given[back]
        return slots, new

    def _take_slots(self, n: int) -> Slots:
        """Give slots that nobody uses."""
        reused = self._free[max(len(self._free) - n, 0) :]
        del self._free[max(len(self._free) - n, 0) :]
        more = n - len(reused)
        need = self._count + more
        if need > len(self._records):
            room = max(need, len(self._records) * 9 // 8, _FIRST_ROOM)
            room = room if self._capacity is None else max(min(room, self._capacity), need)
            # In place where the system can, so that there is never a second copy.
            self._records.resize((room, self._records.shape[1]), refcheck=False)
        fresh = np.arange(self._count, need)
        self._count = need
        return np.concatenate([_slots(reused), fresh])

    def _leave(self, slots: Slots) -> None:
        """Give slots back, and forget their keys."""
        if len(slots):
            assert self._index is not None
            self._index.remove(slots)
            self._free += slots.tolist()

    def _give_back(self, keys: Keys, slots: Slots) -> None:
        """Give slots back whose keys may not all have been entered yet."""
        assert self._index is not None
        entered = self._index.find(keys) == slots
        self._leave(slots[entered])
        self._free += slots[~entered].tolist()

    # Eviction.

    def bound(self, capacity: int | None, spill: str | PathLike[str] | None) -> None:
        """Hold at most so many keys in memory from now on, and the others in a file in the folder ``spill``."""
        if capacity is None or spill is None:
            raise ValueError(f"capacity and spill need each other, got capacity={capacity} and spill={spill}")
        if self._spill is not None:
            raise ValueError("the fleet is bounded already")
        limit = as_count(capacity, "capacity")
        self._spill = Spill(Path(spill), self._records.shape[1])
        self._capacity = limit
        self._make_room(0, _slots([]))

    def _make_room(self, n: int, kept: Slots) -> None:
        """Evict as many keys as ``n`` new ones need, those learned longest ago first, but none that is ``kept``."""
        if self._capacity is None or self._resident + n <= self._capacity:
            return
        if n + len(kept) > self._capacity:
            raise ValueError(
                f"keys holds {n + len(kept)} different keys, more than the capacity of {self._capacity}; "
                "learn the rows in smaller batches, or raise it"
            )
        assert self._spill is not None
        assert self._index is not None
        used = np.setdiff1d(self._used(), kept, assume_unique=True)
        excess = self._resident + n - self._capacity
        excess = min(excess + self._capacity // _SLACK, len(used))
        oldest = used[np.argsort(self._records[used, AT_TOUCHED], kind="stable")[:excess]]
        names = self._index.held(oldest)
        try:
            self._spill.put(names, self._records[oldest])
            self._leave(oldest)
        except BaseException:  # Ctrl-C too leaves no key in both places
            self._spill.remove(_take(names, np.flatnonzero(self._index.find(names) >= 0)))
            raise

    # Records.

    def _unpacked(self, record: FloatArray) -> BayesianPerceptron:
        running = np.zeros(5)
        running[NOISE_WINDOW] = self._window
        running[[NOISE, NOISE_WEIGHT, EVIDENCE, SEEN]] = record[[AT_NOISE, AT_NOISE_WEIGHT, AT_EVIDENCE, AT_SEEN]]
        belief = {"mean": means_of(record[None], self._size)[0], "root": roots_of(record[None], self._size)[0]}
        settings = self._settings if record[AT_PRIOR] == 0 else {**self._settings, "start": ""}
        return BayesianPerceptron.from_state(settings, {**self._template, **belief, "running": running})

    # Files, copies, and fleets that part and join.

    def export_state(self) -> tuple[Parameters, Arrays]:
        """Give all that the fleet is, evicted keys too, as parameters that JSON can hold and arrays."""
        used = self._used()
        records = self._records[used]
        keys = None if self._index is None else self._index.held(used)
        if self._spill is not None and len(self._spill):
            spilled = list(self._spill.all())
            records = np.vstack([records, *(record[None] for _, record in spilled)])
            names = [key for key, _ in spilled]
            keys = np.append(keys, names).astype(np.int64) if isinstance(keys, np.ndarray) else keys + names  # type: ignore[operator]
        arrays = {"records": records, "priors": self._priors.copy()}
        arrays |= {"prior_variances": self._template["prior_variances"].copy(), "window": np.array([self._window])}
        if isinstance(keys, np.ndarray):
            arrays["keys"] = keys
        elif keys is not None:
            texts = [key.encode("utf-8", "surrogatepass") for key in keys]
            arrays["key_text"] = np.frombuffer(b"".join(texts), dtype=np.uint8)
            arrays["key_ends"] = np.cumsum([len(text) for text in texts], dtype=np.int64)
        settings = {key: value for key, value in self._settings.items() if key != "belief"}
        return {"settings": settings, "clock": self._clock}, arrays

    @classmethod
    def from_state(cls, parameters: Parameters, arrays: Arrays) -> Self:
        """Make the fleet that `export_state` described, all of its keys in memory; `bound` it anew if need be."""
        settings = parameters["settings"]
        size = as_count(settings["n_features"], "n_features") + int(bool(settings["bias"]))
        width = record_width(size)
        priors = sized(arrays, "priors", (len(arrays["priors"]), width))
        records = sized(arrays, "records", (len(arrays["records"]), width))
        check_records(np.vstack([priors, records]), len(priors))
        fleet = object.__new__(cls)
        fleet._begin(_first_prior(settings, arrays, priors[0], size))
        fleet._priors, fleet._clock = priors, as_tally(parameters["clock"], "clock")
        if len(records):
            keys = _decoded_keys(arrays, len(records))
            slots = fleet._settled(keys)[0]
            if len(np.unique(slots)) != len(records):
                raise ValueError("keys must differ from each other")
            fleet._records[slots] = records
        return fleet

    def __reduce__(self) -> Any:
        # A copy is whole, and holds no file: so all keys of a bounded fleet come to memory in it.
        return type(self).from_state, self.export_state()

    def split(self, n_parts: int) -> list["PerceptronFleet"]:
        """Make fleets of which each has a part of the keys; which part is a key's depends on the key alone."""
        as_count(n_parts, "n_parts")
        parameters, arrays = self.export_state()
        records = arrays["records"]
        keys = _decoded_keys(arrays, len(records)) if len(records) else _slots([])
        whose, fleets = parts_of(keys, n_parts), []
        bare = {name: array for name, array in arrays.items() if not name.startswith("key")}
        for part in range(n_parts):
            own = np.flatnonzero(whose == part)
            fleets.append(type(self).from_state(parameters, {**bare, "records": records[:0]}))
            if len(own):
                fleets[-1]._records[fleets[-1]._settled(_take(keys, own))[0]] = records[own]
        return fleets

    def absorb(self, others: Iterable["PerceptronFleet"]) -> Self:
        """Take over the keys of fleets with the same settings and prior; no key may be in two of them."""
        fleets = list(others)
        for other in fleets:
            if not isinstance(other, PerceptronFleet):
                raise TypeError(f"others must hold PerceptronFleets, got {type(other).__name__}")
            if other._settings != self._settings or not np.array_equal(other._priors, self._priors):
                raise ValueError("fleets must have the same settings and prior to be joined")
        moving = [_exported_records(other) for other in fleets if len(other)]
        self._check_apart([keys for keys, _ in moving])
        for keys, records in moving:
            step = self._capacity or len(records)
            for places in np.split(np.arange(len(records)), range(step, len(records), step)):
                self._records[self._settled(_take(keys, places))[0]] = records[places]
        self._clock = max([self._clock, *(other._clock for other in fleets)])
        return self

    def _check_apart(self, groups: list[Keys]) -> None:
        """Refuse groups of keys that share one, with each other or with the fleet."""
        met: set[Any] = set()
        for keys in groups:
            make_index(groups[0]).check(keys)
            for key, slot in zip(keys, self._seen(keys)[0].tolist(), strict=True):
                if slot >= 0 or key in met:
                    name = key if isinstance(key, str) else int(key)
                    raise ValueError(f"the key {name!r} is in two fleets, which must share none to be joined")
                met.add(key)


def _em(precisions: FloatArray, pulls: FloatArray, mean: FloatArray, cov: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and covariance of the Gaussian that weights with these likelihoods are drawn from."""
    for _ in range(_STEPS):
        base = np.linalg.inv(cov)
        covs = np.linalg.inv(base + precisions)
        means = np.einsum("nij,nj->ni", covs, base @ mean + pulls)
        mean = means.mean(axis=0)
        gaps = means - mean
        old, cov = cov, (covs.sum(axis=0) + gaps.T @ gaps) / len(means)
        cov = 0.5 * (cov + cov.T)
        if np.abs(cov - old).max() < 1e-4 * np.abs(cov).max():
            break
    return mean, cov


def _slots(values: list[int]) -> Slots:
    return np.array(values, dtype=np.int64)


def _take(keys: Keys, places: Slots) -> Keys:
    return keys[places] if isinstance(keys, np.ndarray) else [keys[place] for place in places.tolist()]


def _unique(keys: Keys) -> tuple[Keys, Slots]:
    """The different keys among some, and for each of these which one it is."""
    if isinstance(keys, np.ndarray):
        names, back = np.unique(keys, return_inverse=True)
        return names, back
    places: dict[str, int] = {}
    which = _slots([places.setdefault(key, len(places)) for key in keys])
    return list(places), which


def _packed(model: BayesianPerceptron) -> FloatArray:
    """Put a perceptron's belief into a record, as one that has learned nothing yet."""
    arrays = model.export_state()[1]
    root = arrays["root"] if "root" in arrays else FullGaussian(model.mean, model.cov).root
    return make_record(model.mean, root, *arrays["running"][[NOISE, NOISE_WEIGHT]])


def _first_prior(settings: Any, arrays: Arrays, record: FloatArray, size: int) -> BayesianPerceptron:
    running = np.zeros(5)
    running[NOISE_WINDOW] = arrays["window"][0]
    running[[NOISE, NOISE_WEIGHT]] = record[[AT_NOISE, AT_NOISE_WEIGHT]]
    numbers = {
        "mean": means_of(record[None], size)[0],
        "root": roots_of(record[None], size)[0],
        "running": running,
        "process_noise": np.zeros(size),
        "prior_variances": arrays["prior_variances"],
    }
    return BayesianPerceptron.from_state({**settings, "belief": {"form": "full", "fragile": False}}, numbers)


def _exported_records(fleet: PerceptronFleet) -> tuple[Keys, FloatArray]:
    arrays = fleet.export_state()[1]
    return _decoded_keys(arrays, len(arrays["records"])), arrays["records"]


def _decoded_keys(arrays: Arrays, n: int) -> Keys:
    if "keys" in arrays:
        return as_keys(sized(arrays, "keys", (n,), np.int64), n)
    ends = sized(arrays, "key_ends", (n,), np.int64)
    text = arrays["key_text"].astype(np.uint8).tobytes()
    if (np.diff(ends, prepend=0) < 0).any() or ends[-1] != len(text):
        raise ValueError("key_ends do not cut key_text into keys")
    begins = [0, *ends[:-1].tolist()]
    return [text[a:b].decode("utf-8", "surrogatepass") for a, b in zip(begins, ends.tolist(), strict=True)]
