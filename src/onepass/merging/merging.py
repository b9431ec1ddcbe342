"""Beliefs that were learned apart and are put together: by adding what each shard's rows changed.

A Gaussian in natural parameters, precision ``P`` and ``h = P m``, turns learning into addition, so models that started
from one prior merge by adding their changes over it. That is exact where a row's change does not depend on the belief
it meets, as for a linear output with fixed noise. Elsewhere it does, and `Rounds` mends it by expectation propagation
over shards: every shard keeps its change as its *site*, learns again from the merged belief without that site (the
*cavity*), and replaces the site by what it changed this time.

Everything here works on the plain data of `export_state`, so that one piece of code serves perceptrons, networks and
estimators. All that adds up is in a `Site`; sites are a commutative group.
"""

import copy
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from onepass._typing import FloatArray
from onepass._validation import as_count
from onepass.beliefs.diagonal import DiagonalGaussian
from onepass.beliefs.full import FullGaussian
from onepass.beliefs.structures import make_structure
from onepass.engine.vector_matches import NoiseState
from onepass.files.state import Arrays, Parameters, decode_posterior, encode_posterior, nested, under
from onepass.likelihoods.outputs import choose_outputs
from onepass.likelihoods.univariate import EVIDENCE, NOISE, NOISE_WEIGHT, NOISE_WINDOW, SEEN

__all__ = ["Merging", "Rounds", "Site", "merge"]

_HALVINGS = 30


def merge(prior: Any, models: Iterable[Any]) -> Any:
    """Put models together that learned different rows from one prior; neither is changed.

    Adds each model's change over the prior, in natural parameters. Exact, to rounding, for perceptrons with a linear
    output and fixed noise: the same as learning all rows in one model. For everything else an approximation, which gets
    better the more rows the prior has learned already, and by `onepass.merging.Rounds`. The order of the models makes
    no difference but for rounding, nor does merging some of them first.

    What becomes of the rest:

    - ``n_seen``: the rows that each learned since the prior add up.
    - ``noise="learn"``: the mean of the models' estimates, each weighted by the rows it rests on since the prior. So
      are a network's predictive scale and the weights of an estimator's ``prior_scale="auto"``.
    - ``log_evidence``: not the sum of the models' own, since each was surprised by what the others knew. The sum is
      corrected in closed form by how well their beliefs agree, which gives the evidence of all rows: exact where the
      merged belief is, else the approximation of expectation propagation.

    Parameters
    ----------
    prior : BayesianPerceptron, BayesianNetwork or a fitted perceptron or network estimator
        What all models were when they parted; it may have learned rows before.
    models : list (or any iterable) of models of the same class and settings
        Copies of the prior that learned more rows. Forgetting, process noise and a noise window are refused: they give
        more weight to the last rows, and rows of different models have no order.

    Examples
    --------
    >>> import copy, onepass
    >>> prior = onepass.BayesianPerceptron(1, "linear", noise=0.1)
    >>> X, y = np.array([[1.0], [2.0], [3.0], [4.0]]), np.array([1.1, 1.9, 3.2, 3.9])
    >>> parts = [copy.deepcopy(prior).learn(X[rows], y[rows]) for rows in (slice(0, 2), slice(2, 4))]
    >>> merged, whole = onepass.merge(prior, parts), copy.deepcopy(prior).learn(X, y)
    >>> bool(np.allclose(merged.mean, whole.mean)), merged.n_seen
    (True, 4)
    >>> print(f"{merged.log_evidence:.6f} {whole.log_evidence:.6f}")
    -3.735462 -3.735462
    """
    if not isinstance(models, Iterable):
        raise TypeError(f"models must be a list of models, got {type(models).__name__}")
    merging = Merging(prior)
    total, places = None, dict[int, int]()
    kept = []  # a model that is gone could leave its identity to the next
    for i, model in enumerate(models):
        if (first := places.setdefault(id(model), i)) != i:
            raise ValueError(f"model {i} is model {first} again, and its rows would count twice")
        kept.append(model)
        site = merging.site(prior, model, f"model {i}")
        total = site if total is None else total + site
    if total is None:
        raise ValueError("models must hold at least one model to be merged, got none")
    return merging.merged(total)


@dataclass(frozen=True)
class _Change:
    """What rows did to one belief; all of it adds up."""

    precisions: tuple[FloatArray, ...]  # of each block
    pulls: tuple[FloatArray, ...]
    evidence: FloatArray  # (): log of the factor that the site has beside its Gaussian
    rows: FloatArray  # ()
    weights: FloatArray  # (t,): what running means rest on
    weighted: FloatArray  # (t,): the same times the means

    def numbers(self) -> Iterator[FloatArray]:
        yield from self.precisions
        yield from self.pulls
        yield from (self.evidence, self.rows, self.weights, self.weighted)

    def with_numbers(self, numbers: Sequence[Any]) -> "_Change":
        n = len(self.precisions)
        return _Change(tuple(numbers[:n]), tuple(numbers[n : 2 * n]), *numbers[2 * n :])


@dataclass(frozen=True)
class Site:
    """What a shard's rows changed. Sites add and subtract; they hold no rows.

    Examples
    --------
    >>> import onepass
    >>> prior = onepass.BayesianPerceptron(1, "linear", noise=1.0)
    >>> merging = Merging(prior)
    >>> site = merging.site(prior, onepass.BayesianPerceptron(1, "linear", noise=1.0).learn([[2.0]], [1.0]))
    >>> merging.merged(site + site - site).n_seen
    1
    """

    changes: tuple[_Change, ...]  # one a belief; estimators may have several

    def __add__(self, other: "Site") -> "Site":
        return self._joined(other, 1.0)

    def __sub__(self, other: "Site") -> "Site":
        return self._joined(other, -1.0)

    def toward(self, new: "Site", share: float) -> "Site":
        """Go part of the way to a new site; rows, and what running means rest on, are those of the new one at once."""
        if share == 1.0:
            return new
        mixed = []
        for old, change in zip(self.changes, new.changes, strict=True):
            pairs = zip(old.numbers(), change.numbers(), strict=True)
            part = change.with_numbers([(1.0 - share) * a + share * b for a, b in pairs])
            mixed.append(replace(part, rows=change.rows, weights=change.weights, weighted=change.weighted))
        return Site(tuple(mixed))

    def _joined(self, other: "Site", sign: float) -> "Site":
        pairs = zip(self.changes, other.changes, strict=True)
        changes = tuple(
            mine.with_numbers([a + sign * b for a, b in zip(mine.numbers(), theirs.numbers(), strict=True)])
            for mine, theirs in pairs
        )
        return Site(changes)

    @property
    def rows(self) -> int:
        """Rows that the site stands for."""
        return round(float(self.changes[0].rows))

    @property
    def nbytes(self) -> int:
        """Bytes of its numbers: what is sent from worker to worker."""
        return sum(np.asarray(one).nbytes for change in self.changes for one in change.numbers())


class Merging:
    """A prior, and how models that start from it turn into sites and sites into models.

    Made for code that spreads the work itself; `merge` and `Rounds` are the easy ways.

    Parameters
    ----------
    prior : model
    """

    def __init__(self, prior: Any) -> None:
        self._class = type(prior)
        self._kind = _kind(self._class)
        if hasattr(prior, "__sklearn_is_fitted__") and not prior.__sklearn_is_fitted__():
            raise ValueError("the prior has not been fitted; fit it to some rows before copies of it part")
        self._parameters, self._arrays = _exported(prior)
        self._prior = self._read(self._parameters, self._arrays, "the prior")
        # All beliefs are seen from the prior's mean, so that a prior far from zero costs no digits.
        self._centres = [
            [np.asarray(block.mean, dtype=np.float64) for block in belief.blocks] for belief in self._prior
        ]

    def site(self, start: Any, learned: Any, name: str = "the model") -> Site:
        """What ``learned`` changed over ``start``, the model it began as."""
        if type(learned) is not self._class:
            raise TypeError(f"{name} must be a {self._class.__name__} as the prior is, got {type(learned).__name__}")
        parameters, arrays = _exported(learned)
        _same_settings(self._settings(parameters, arrays), self._settings(self._parameters, self._arrays), name)
        after = self._read(parameters, arrays, name)
        before = self._read(*_exported(start), "the start")
        if any(b.rows < a.rows for a, b in zip(before, after, strict=True)):
            raise ValueError(
                f"{name} has learned {after[0].rows:g} rows, fewer than the {before[0].rows:g} of its prior, "
                "so it did not start from it"
            )
        if any(map(_strayed, before, after)):
            raise ValueError(
                f"{name} has learned no more rows than its prior but believes something else, "
                "so it did not start from it"
            )
        return Site(tuple(map(_change, before, after, self._centres)))

    def merged(self, total: Site) -> Any:
        """Make the model of the prior and all sites together; a ValueError if there is no such Gaussian."""
        return self._model(self._with(total))

    def cavity(self, total: Site, site: Site) -> Any | None:
        """Make the model that a shard learns from: all sites but its own; None if there is no such Gaussian.

        A learned noise starts from that of all shards, and is held for as many rows as the shard has: its rows decide
        anew, now that the weights are known better.
        """
        try:
            beliefs = self._with(total - site)
        except ValueError:
            return None
        everyone = [_pooled(prior, change) for prior, change in zip(self._prior, total.changes, strict=True)]
        own = [_pooled(prior, change) for prior, change in zip(self._prior, site.changes, strict=True)]
        return self._model(
            [
                replace(belief, means=all_.means, weights=one.weights, rows=all_.rows)
                for belief, all_, one in zip(beliefs, everyone, own, strict=True)
            ]
        )

    def nothing(self) -> Site:
        """Give the site of no rows."""
        return Site(tuple(map(_change, self._prior, self._prior, self._centres)))

    def settled(self, old: Site, new: Site) -> float:
        """How far to go from the old sites to the new ones: all the way, or as far as their sum is a Gaussian.

        Sites that see several peaks, as with a ReLU, may have negative precision, and all of them together too much.
        """
        share = 1.0
        for _ in range(_HALVINGS):
            try:
                self._with(old.toward(new, share))
                return share
            except ValueError:
                share /= 2.0
        raise ValueError("no part of what the shards learned leaves a covariance; learn some rows before sharing them")

    def _with(self, total: Site) -> list["_Belief"]:
        return [
            _changed(prior, change, centres)
            for prior, change, centres in zip(self._prior, total.changes, self._centres, strict=True)
        ]

    def _model(self, beliefs: list["_Belief"]) -> Any:
        return self._class.from_state(*self._kind.write(self._parameters, self._arrays, beliefs))

    def _settings(self, parameters: Parameters, arrays: Arrays) -> dict[str, Any]:
        settings: dict[str, Any] = self._kind.settings(parameters, arrays)
        return settings

    def _read(self, parameters: Parameters, arrays: Arrays, name: str) -> list["_Belief"]:
        try:
            beliefs: list[_Belief] = self._kind.read(parameters, arrays)
        except ValueError as error:
            raise ValueError(f"{name} can't be merged: {error}") from None
        return beliefs


class Rounds:
    """Expectation propagation over shards, wherever these are.

    In every round each shard learns its rows from the merged belief without its own contribution. One round is `merge`;
    after two the result is usually within the rounding that the order of the rows makes. A shard without a cavity (one
    whose own contribution can't be taken out) keeps what it said.

    Parameters
    ----------
    prior : model
        As for `onepass.merge`.
    n_shards : int

    Examples
    --------
    >>> import onepass
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(3000, 2))
    >>> y = (X @ [2.0, -1.0] + rng.logistic(size=3000) > 0).astype(float)
    >>> shards = [(X[k::10], y[k::10]) for k in range(10)]
    >>> prior = onepass.BayesianPerceptron(2)
    >>> rounds = Rounds(prior, n_shards=10)
    >>> whole = onepass.BayesianPerceptron(2).learn(X, y)
    >>> for _ in range(2):
    ...     learned = [start and start.learn(*shard) for start, shard in zip(rounds.starts(), shards)]
    ...     model = rounds.take(learned)
    ...     gaps = (model.mean - whole.mean) / np.sqrt(np.diag(whole.cov))
    ...     print(f"{np.sqrt(np.mean(gaps**2)):.2f}")
    0.29
    0.02
    """

    def __init__(self, prior: Any, n_shards: int) -> None:
        self._merging = Merging(prior)
        self._sites = [self._merging.nothing()] * as_count(n_shards, "n_shards")
        self._total = self._merging.nothing()
        self._starts: list[Any | None] | None = None

    def starts(self) -> list[Any | None]:
        """Give the model that each shard is to learn its rows from this round; None for one that keeps its site."""
        self._starts = [self._merging.cavity(self._total, site) for site in self._sites]
        return copy.deepcopy(self._starts)

    def take(self, learned: Sequence[Any | None]) -> Any:
        """Take back the models of `starts`, taught, in their order; the merged model is returned."""
        if self._starts is None:
            raise RuntimeError("take is for what starts gave out: call that first")
        if len(learned) != len(self._sites):
            raise ValueError(f"learned must hold one model for each of {len(self._sites)} shards, got {len(learned)}")
        sites = [
            site if start is None or model is None else self._merging.site(start, model, f"the model of shard {k}")
            for k, (site, start, model) in enumerate(zip(self._sites, self._starts, learned, strict=True))
        ]
        total = sum(sites[1:], sites[0])
        share = self._merging.settled(self._total, total)
        self._sites = [old.toward(new, share) for old, new in zip(self._sites, sites, strict=True)]
        self._total, self._starts = self._total.toward(total, share), None
        return self.merged()

    def merged(self) -> Any:
        """Make the model of all shards as they are now."""
        return self._merging.merged(self._total)


# One belief, taken out of a model's state.


@dataclass(frozen=True)
class _Belief:
    blocks: tuple[FullGaussian | DiagonalGaussian, ...]
    evidence: float
    rows: float
    means: FloatArray  # (t,): running means beside the belief, such as a learned noise
    weights: FloatArray  # (t,): what they rest on; 0 for what is fixed


def _strayed(before: _Belief, after: _Belief) -> bool:
    """Whether a belief differs that has learned nothing."""
    pairs = zip(before.blocks, after.blocks, strict=True)
    return after.rows == before.rows and not all(np.array_equal(a.mean, b.mean) for a, b in pairs)


def _change(before: _Belief, after: _Belief, centres: list[FloatArray]) -> _Change:
    pairs = [
        (a.natural(centre), b.natural(centre))
        for a, b, centre in zip(before.blocks, after.blocks, centres, strict=True)
    ]
    volume = sum(b.log_volume - a.log_volume for a, b in pairs)
    weights = np.maximum(after.weights - before.weights, 0.0)
    return _Change(
        tuple(b.precision - a.precision for a, b in pairs),
        tuple(b.pull - a.pull for a, b in pairs),
        np.asarray(after.evidence - before.evidence - volume),
        np.asarray(after.rows - before.rows),
        weights,
        weights * after.means,
    )


def _changed(prior: _Belief, change: _Change, centres: list[FloatArray]) -> _Belief:
    blocks, volume = [], 0.0
    for block, precision, pull, centre in zip(prior.blocks, change.precisions, change.pulls, centres, strict=True):
        before = block.natural(centre)
        blocks.append(type(block).from_natural(before.precision + precision, before.pull + pull, centre))
        volume += blocks[-1].natural(centre).log_volume - before.log_volume
    evidence = prior.evidence + float(change.evidence) + volume
    return replace(_pooled(prior, change), blocks=tuple(blocks), evidence=evidence)


def _pooled(prior: _Belief, change: _Change) -> _Belief:
    """The prior's counts and running means with those of a change, its Gaussian left as it is."""
    some = change.weights > 0.0
    means = np.where(some, change.weighted / np.where(some, change.weights, 1.0), prior.means)
    return replace(prior, rows=prior.rows + float(change.rows), means=means, weights=prior.weights + change.weights)


# Where the beliefs are in each kind of model.


class _PerceptronState:
    @staticmethod
    def settings(parameters: Parameters, arrays: Arrays) -> dict[str, Any]:
        running = arrays["running"]
        named = {key: parameters[key] for key in ("n_features", "activation", "bias", "observation", "update")}
        fixed = running[NOISE_WEIGHT] == 0.0
        return {
            **named,
            "covariance": parameters["belief"]["form"],
            "dtype": str(arrays["mean"].dtype),
            "noise": float(running[NOISE]) if fixed else "learn",
            "prior": parameters["start"],
        }

    @staticmethod
    def read(parameters: Parameters, arrays: Arrays) -> list[_Belief]:
        if parameters["forgetting"] < 1.0:
            raise ValueError(
                f"forgetting={parameters['forgetting']:g} favours the last rows, which shards don't have in common; "
                "use forgetting=1"
            )
        if arrays["process_noise"].any():
            raise ValueError("process_noise lets the weights wander from row to row, and shards have no common order")
        running = arrays["running"]
        if np.isfinite(running[NOISE_WINDOW]):
            raise ValueError("noise_window favours the last rows, which shards don't have in common; leave it out")
        posterior = decode_posterior(parameters["belief"], arrays, len(arrays["mean"]))
        assert isinstance(posterior, (FullGaussian, DiagonalGaussian))
        noise = running[[NOISE]], running[[NOISE_WEIGHT]]
        return [_Belief((posterior,), float(running[EVIDENCE]), float(running[SEEN]), *noise)]

    @staticmethod
    def write(parameters: Parameters, arrays: Arrays, beliefs: list[_Belief]) -> tuple[Parameters, Arrays]:
        (belief,) = beliefs
        data, numbers = encode_posterior(belief.blocks[0])
        dtype = arrays["mean"].dtype
        running = arrays["running"].copy()
        running[NOISE], running[NOISE_WEIGHT] = belief.means[0], belief.weights[0]
        running[EVIDENCE], running[SEEN] = belief.evidence, belief.rows
        kept = {name: arrays[name] for name in ("prior_variances", "process_noise")}
        numbers = {name: array.astype(dtype) for name, array in numbers.items()}
        return {**parameters, "belief": data}, {**kept, **numbers, "running": running}


class _NetworkState:
    _CHANGING = ("log_evidence", "n_seen", "engine")

    @classmethod
    def settings(cls, parameters: Parameters, arrays: Arrays) -> dict[str, Any]:
        return {name: value for name, value in parameters.items() if name not in cls._CHANGING}

    @classmethod
    def read(cls, parameters: Parameters, arrays: Arrays) -> list[_Belief]:
        if parameters["forgetting"] < 1.0:
            raise ValueError(
                f"forgetting={parameters['forgetting']:g} favours the last rows, which shards don't have in common; "
                "use forgetting=1"
            )
        mean, values, scales = (arrays[name].astype(np.float64) for name in ("mean", "covariance", "scales"))
        blocks: list[FullGaussian | DiagonalGaussian] = []
        if parameters["covariance"] == "diagonal":
            blocks = [DiagonalGaussian(mean, values)]
        else:
            for part, block in cls._blocks(parameters, values):
                blocks.append(FullGaussian(mean[part], np.tril(block) + np.tril(block, -1).T))
        noise = NoiseState(*scales)
        means = np.concatenate([noise.noise, noise.scale])
        weights = np.concatenate([noise.noise_weight, noise.scale_weight])
        return [_Belief(tuple(blocks), parameters["log_evidence"], parameters["n_seen"], means, weights)]

    @classmethod
    def write(cls, parameters: Parameters, arrays: Arrays, beliefs: list[_Belief]) -> tuple[Parameters, Arrays]:
        (belief,) = beliefs
        dtype = arrays["mean"].dtype
        values = np.empty(len(arrays["covariance"]))
        if parameters["covariance"] == "diagonal":
            values[:] = belief.blocks[0].cov
        else:
            for (_, view), block in zip(cls._blocks(parameters, values), belief.blocks, strict=True):
                view[...] = block.cov
        (noise, scale), (noise_weight, scale_weight) = (part.reshape(2, -1) for part in (belief.means, belief.weights))
        scales = NoiseState(noise, noise_weight, scale, scale_weight).to_array()
        mean = np.concatenate([block.mean for block in belief.blocks])
        changing = {"log_evidence": belief.evidence, "n_seen": round(belief.rows)}
        numbers = {"mean": mean.astype(dtype), "covariance": values.astype(dtype), "scales": scales}
        return {**parameters, **changing}, numbers

    @staticmethod
    def _blocks(parameters: Parameters, values: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
        """The weights of each block, and a view of it."""
        likelihood = choose_outputs(parameters["observation"], parameters["noise"])(parameters["n_outputs"])
        widths = (parameters["n_features"], *parameters["hidden"], likelihood.size)
        cuts, offset = make_structure(parameters["covariance"], widths).cuts.tolist(), 0
        for begin, end in pairwise(cuts):
            size = end - begin
            yield slice(begin, end), values[offset : offset + size * size].reshape(size, size)
            offset += size * size


class _EstimatorState:
    """Committees of perceptrons or networks, all on the same standardised rows."""

    @classmethod
    def settings(cls, parameters: Parameters, arrays: Arrays) -> dict[str, Any]:
        named = {name: value for name, value in parameters.items() if name not in ("arguments", "committees", "n_rows")}
        for member in ("inputs", "targets"):
            for name, array in under(member, arrays).items():
                named[f"standardisation ({name} of the {member})"] = array.tolist()
        for place, kind, state, numbers in cls._members(parameters, arrays):
            named |= {f"{name} of {place}": value for name, value in kind.settings(state, numbers).items()}
        return {**parameters["arguments"], **named}

    @classmethod
    def read(cls, parameters: Parameters, arrays: Arrays) -> list[_Belief]:
        if "waiting/rows" in arrays:
            raise ValueError(
                f"it is still in its warm-up of {parameters['arguments']['warm_up']} rows, whose statistics standardise"
                " all that come after; teach the prior so many rows before copies of it part"
            )
        rows, beliefs = float(parameters["n_rows"]), []
        for place, kind, state, numbers in cls._members(parameters, arrays):
            (belief,) = kind.read(state, numbers)
            _, i, k = place.split("/")
            # What a member is weighed by runs along as one more mean: its fading evidence, or its weight itself.
            weighed = arrays[f"{cls._weighing(i, arrays)}/{i}"][[int(k)]]
            means, weights = np.append(belief.means, weighed), np.append(belief.weights, rows)
            beliefs.append(replace(belief, means=means, weights=weights))
        return beliefs

    @classmethod
    def write(cls, parameters: Parameters, arrays: Arrays, beliefs: list[_Belief]) -> tuple[Parameters, Arrays]:
        members = list(cls._members(parameters, arrays))
        numbers = {name: array.copy() for name, array in arrays.items() if not name.startswith("member/")}
        committees = [[dict(entry) for entry in committee] for committee in parameters["committees"]]
        rows = parameters["n_rows"]
        for (place, kind, state, old), belief in zip(members, beliefs, strict=True):
            _, i, k = place.split("/")
            own = replace(belief, means=belief.means[:-1], weights=belief.weights[:-1])
            committees[int(i)][int(k)]["state"], new = kind.write(state, old, [own])
            numbers |= nested(place, new)
            numbers[f"{cls._weighing(i, arrays)}/{i}"][int(k)] = belief.means[-1]
            rows = round(belief.weights[-1])
            if f"count/{i}" in arrays:  # rows that a committee's weights rest on
                numbers[f"count/{i}"] = arrays[f"count/{i}"] + rows - parameters["n_rows"]
        return {**parameters, "committees": committees, "n_rows": rows}, numbers

    @staticmethod
    def _weighing(number: str, arrays: Arrays) -> str:
        return "evidence" if f"evidence/{number}" in arrays else "weights"

    @staticmethod
    def _members(parameters: Parameters, arrays: Arrays) -> Iterator[tuple[str, Any, Parameters, Arrays]]:
        for i, committee in enumerate(parameters["committees"]):
            for k, entry in enumerate(committee):
                place = f"member/{i}/{k}"
                yield place, _KINDS[entry["class"]], entry["state"], under(place, arrays)


_KINDS: dict[str, Any] = {
    "BayesianPerceptron": _PerceptronState,
    "BayesianNetwork": _NetworkState,
    "BayesianPerceptronClassifier": _EstimatorState,
    "BayesianPerceptronRegressor": _EstimatorState,
    "BayesianMLPClassifier": _EstimatorState,
    "BayesianMLPRegressor": _EstimatorState,
}


def _kind(cls: type) -> Any:
    if cls.__name__ not in _KINDS or not cls.__module__.startswith("onepass."):
        raise TypeError(f"prior must be one of {', '.join(sorted(_KINDS))}, got {cls.__name__}")
    return _KINDS[cls.__name__]


def _exported(model: Any) -> tuple[Parameters, Arrays]:
    try:
        exported: tuple[Parameters, Arrays] = model.export_state()
    except TypeError as error:
        raise TypeError(f"only what can be saved can be compared, and so be merged: {error}") from None
    return exported


def _same_settings(given: dict[str, Any], wanted: dict[str, Any], name: str) -> None:
    for key in wanted | given:
        mine, theirs = given.get(key), wanted.get(key)
        if mine == theirs or (key == "prior" and "" in (mine, theirs)):
            continue
        if key == "prior":
            raise ValueError(f"{name} did not start from the prior given: its weights had another mean or covariance")
        raise ValueError(f"{name} has {key}={_short(mine)} where the prior has {_short(theirs)}; all must be the same")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
