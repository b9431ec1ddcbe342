"""Where each kind of model keeps its beliefs: adapters between a model's exported state and snapshots.

Merging works on the plain data of ``export_state``, so it needs no model class, only to know where in that data the
Gaussians, the counts and the running means are. An adapter knows that for one kind of model. To make another kind
mergeable, write an adapter with the names of its classes and add it to `ADAPTERS`.
"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from onepass._typing import FloatArray
from onepass.beliefs.choice import belief_type, start_belief
from onepass.beliefs.diagonal import DiagonalGaussian
from onepass.beliefs.full import FullGaussian
from onepass.beliefs.network import NetworkBelief
from onepass.engine.outliers import Trust
from onepass.engine.step import LOG_EVIDENCE, N_SEEN, NOISE, NOISE_WEIGHT, NOISE_WINDOW, STATE_SIZE, PerceptronProgress
from onepass.engine.vector_matches import NetworkProgress
from onepass.files.registry import savable, savable_names
from onepass.files.state import Arrays, Parameters, decode_belief, decode_layout, decode_prior, nested, under
from onepass.layers.layout import Layout
from onepass.likelihoods import named
from onepass.merging.snapshots import N_SUMS, Snapshot

__all__ = ["ADAPTERS", "Adapter", "EstimatorAdapter", "NetworkAdapter", "PerceptronAdapter", "adapter_for"]


class Adapter(Protocol):
    """Reads snapshots from the exported state of one kind of model, and writes them back."""

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes, as in files, whose state it reads."""
        ...

    def settings(self, parameters: Parameters, arrays: Arrays) -> dict[str, Any]:
        """Return what must be equal for two models to be merged, by the names that users know."""
        ...

    def overshoots(self, parameters: Parameters) -> bool:
        """Whether corrections of a merged belief by many shards at once have to be made smaller to be right."""
        ...

    def read(self, parameters: Parameters, arrays: Arrays) -> list[Snapshot]:
        """Read the beliefs; a ValueError if the model can't be merged."""
        ...

    def write(self, parameters: Parameters, arrays: Arrays, snapshots: list[Snapshot]) -> tuple[Parameters, Arrays]:
        """Replace the beliefs in a state; the state given is not changed."""
        ...


def adapter_for(cls: type) -> Adapter:
    """Find the adapter of a model's class; a TypeError if its models can't be merged."""
    names = sorted(name for adapter in ADAPTERS for name in adapter.classes)
    _refuse_hypotheses(cls.__name__)
    if cls.__name__ not in names or savable(cls.__name__) is not cls:
        raise TypeError(f"prior must be one of {', '.join(names)}, got {cls.__name__}")
    return _adapter_named(cls.__name__)


def _adapter_named(name: str) -> Adapter:
    _refuse_hypotheses(name)
    return next(adapter for adapter in ADAPTERS if name in adapter.classes)


class PerceptronAdapter:
    """One belief, and the running quantities in the array ``running``."""

    classes: tuple[str, ...] = ("BayesianPerceptron",)

    def settings(self, parameters: Parameters, arrays: Arrays) -> dict[str, Any]:
        """Return what must be equal for two perceptrons to be merged."""
        running = arrays["running"]
        named = {key: parameters[key] for key in ("n_features", "activation", "bias", "observation", "update")}
        fixed = running[NOISE_WEIGHT] == 0.0
        return {
            **named,
            "covariance": parameters["belief"]["form"],
            "dtype": str(arrays["mean"].dtype),
            "noise": float(running[NOISE]) if fixed else "learn",
            "outliers": parameters["outliers"],
            "prior": parameters["start"],
        }

    def overshoots(self, parameters: Parameters) -> bool:
        """No."""
        return False

    def read(self, parameters: Parameters, arrays: Arrays) -> list[Snapshot]:
        """Read the belief; a ValueError if later rows count more than earlier ones."""
        _refuse_drift(parameters)
        if arrays["process_noise"].any():
            raise ValueError("process_noise lets the weights wander from row to row, and shards have no common order")
        running = arrays["running"]
        if np.isfinite(running[NOISE_WINDOW]):
            raise ValueError("noise_window favours the last rows, which shards don't have in common; leave it out")
        belief = decode_belief(parameters["belief"], arrays, len(arrays["mean"]))
        assert isinstance(belief, (FullGaussian, DiagonalGaussian))
        state = PerceptronProgress.from_array(running)
        sums = _at_common_noise(belief, state, arrays) if state.reference else np.zeros(N_SUMS)
        noise, trust = (running[[NOISE]], running[[NOISE_WEIGHT]]), Trust(running[STATE_SIZE:])
        return [Snapshot((belief,), float(running[LOG_EVIDENCE]), float(running[N_SEEN]), *noise, trust, sums)]

    def write(self, parameters: Parameters, arrays: Arrays, snapshots: list[Snapshot]) -> tuple[Parameters, Arrays]:
        """Replace the belief in a perceptron's state."""
        (snapshot,) = snapshots
        (belief,) = snapshot.blocks
        assert isinstance(belief, (FullGaussian, DiagonalGaussian))
        dtype = arrays["mean"].dtype
        state = PerceptronProgress.from_array(arrays["running"])
        state.noise, state.noise_weight = snapshot.means[0], snapshot.weights[0]
        state.log_evidence, state.n_seen, state.trust = snapshot.evidence, snapshot.rows, snapshot.trust
        if state.reference:
            belief = belief.copy()
            _at_learned_noise(belief, state, arrays, snapshot.sums)
        data, numbers = belief.export()
        running = state.to_array()
        kept = {name: array for name, array in arrays.items() if name.startswith("prior_") or name == "process_noise"}
        numbers = {name: array.astype(dtype) for name, array in numbers.items()}
        return {**parameters, "belief": data}, {**kept, **numbers, "running": running}


def _at_common_noise(belief: Any, state: PerceptronProgress, arrays: Arrays) -> FloatArray:
    """Re-weigh a belief's rows to the noise that all shards started with; returns sums that add up over shards."""
    prior, start = decode_prior(arrays, len(belief.mean), belief.mean.dtype), float(np.exp(state.log_start))
    squares = state.squares + state.reference * _squared_distance(belief, prior)  # the same at any noise
    belief.forget(state.reference / start, prior)
    return np.array([squares, state.weight, state.copies, state.total - state.log_evidence])


def _at_learned_noise(belief: Any, state: PerceptronProgress, arrays: Arrays, sums: FloatArray) -> None:
    """Re-weigh the rows of all shards to what they say together about their noise."""
    prior = decode_prior(arrays, len(belief.mean), arrays["mean"].dtype)
    state.reference = float(np.exp(state.log_start))
    squares, state.weight, state.copies, unscored = sums.tolist()
    state.squares = max(squares - state.reference * _squared_distance(belief, prior), 0.0)
    belief.reweigh(state, prior)
    state.log_evidence = state.total - unscored


def _squared_distance(belief: Any, prior: Any) -> float:
    """``(m - m0)'P (m - m0)``, in the belief's own precision."""
    centre = np.asarray(prior.mean, dtype=np.float64)
    natural = belief.natural(centre)
    return float(natural.precision_mean @ (belief.mean - centre))


class NetworkAdapter:
    """One belief of one or more covariance blocks, and noise and predictive scale per output in ``scales``."""

    classes: tuple[str, ...] = ("BayesianNetwork",)

    _NOT_SETTINGS = ("log_evidence", "n_seen", "kernel")

    def settings(self, parameters: Parameters, arrays: Arrays) -> dict[str, Any]:
        """Return what must be equal for two networks to be merged."""
        return {name: value for name, value in parameters.items() if name not in self._NOT_SETTINGS}

    def overshoots(self, parameters: Parameters) -> bool:
        """Where a belief does not know that a change of one layer makes that of another needless."""
        return (
            bool(parameters["hidden"]) and not belief_type(parameters["covariance"], _layout(parameters)).couples_layers
        )

    def read(self, parameters: Parameters, arrays: Arrays) -> list[Snapshot]:
        """Read the belief; a ValueError if later rows count more than earlier ones."""
        _refuse_drift(parameters)
        belief = _belief(parameters, arrays)
        noise = NetworkProgress(*arrays["scales"])
        means = np.concatenate([noise.noise, noise.scale, noise.usual_var])
        weights = np.concatenate([noise.noise_weight, noise.scale_weight, noise.scale_weight])
        counts = (parameters["log_evidence"], parameters["n_seen"])
        return [Snapshot(belief.parts(), *counts, means, weights, Trust(arrays["trust"]))]

    def write(self, parameters: Parameters, arrays: Arrays, snapshots: list[Snapshot]) -> tuple[Parameters, Arrays]:
        """Replace the belief in a network's state."""
        (snapshot,) = snapshots
        dtype = arrays["mean"].dtype
        numbers = _belief(parameters, arrays).join(snapshot.blocks).arrays()
        noise, scale, usual_var = snapshot.means.reshape(3, -1)
        noise_weight, scale_weight, _ = snapshot.weights.reshape(3, -1)
        scales = NetworkProgress(noise, noise_weight, scale, scale_weight, usual_var, arrays["scales"][-1]).to_array()
        counts = {"log_evidence": snapshot.evidence, "n_seen": round(snapshot.rows)}
        numbers = {name: values.astype(dtype) for name, values in numbers.items()}
        kept = {name: array for name, array in arrays.items() if name.startswith("prior_")}
        kept["trust"] = snapshot.trust.to_array()
        return {**parameters, **counts}, {**kept, **numbers, "scales": scales}


@dataclass(frozen=True)
class _Member:
    """One model of an estimator's mixtures."""

    mixture: int
    number: int
    adapter: Adapter
    parameters: Parameters
    arrays: Arrays

    @property
    def place(self) -> str:
        """Prefix of its arrays."""
        return f"mixture/{self.mixture}/{self.number}"


class EstimatorAdapter:
    """Mixtures of perceptrons or networks, all on the same standardised rows."""

    @property
    def classes(self) -> tuple[str, ...]:
        """All savable estimators: they share one base class, which writes their state."""
        return savable_names("onepass.estimators")

    def settings(self, parameters: Parameters, arrays: Arrays) -> dict[str, Any]:
        """Return what must be equal for two estimators to be merged, with their standardisation and members."""
        counts = ("n_rows", "unscored_rows", "unscored_evidence", "short_weights")
        counted = ("arguments", "mixtures", *counts)
        named = {name: value for name, value in parameters.items() if name not in counted}
        for side in ("inputs", "targets"):
            for name, array in under(side, arrays).items():
                named[f"standardisation ({name} of the {side})"] = array.tolist()
        for member in _members(parameters, arrays):
            own = member.adapter.settings(member.parameters, member.arrays)
            named |= {f"{name} of {member.place}": value for name, value in own.items()}
        return {**parameters["arguments"], **named}

    def overshoots(self, parameters: Parameters) -> bool:
        """If any of its members do."""
        entries = [entry for mixture in parameters["mixtures"] for entry in mixture["members"]]
        return any(_adapter_named(entry["class"]).overshoots(entry["state"]) for entry in entries)

    def read(self, parameters: Parameters, arrays: Arrays) -> list[Snapshot]:
        """Read the belief of every member; a ValueError if the estimator still collects rows to standardise by."""
        if "waiting/rows" in arrays:
            raise ValueError(
                f"it is still in its warm-up of {parameters['arguments']['warm_up']} rows, whose statistics standardise"
                " all that come after; let the prior learn so many rows before it is copied"
            )
        if "calibration" in parameters:
            raise ValueError(
                "with probabilities='adaptive' a map follows the last rows, and shards have no common order of rows; "
                "merge classifiers with probabilities='model'"
            )
        rows, snapshots = float(parameters["n_rows"]), []
        for member in _members(parameters, arrays):
            (snapshot,) = member.adapter.read(member.parameters, member.arrays)
            # Tracked limits of intervals are running means too, and so is a member's weight in its mixture, or the
            # fading evidence behind it.
            tracked, total = _tracked_means(under(f"tracker/{member.mixture}", arrays))
            weighting = arrays[_weighting_array(member.mixture, arrays)][member.number]
            means = np.concatenate([snapshot.means, tracked, [weighting]])
            weights = np.concatenate([snapshot.weights, np.full(len(tracked), total), [rows]])
            snapshots.append(replace(snapshot, means=means, weights=weights))
        return snapshots

    def write(self, parameters: Parameters, arrays: Arrays, snapshots: list[Snapshot]) -> tuple[Parameters, Arrays]:
        """Replace the beliefs of all members in an estimator's state."""
        numbers = {name: array.copy() for name, array in arrays.items()}
        mixtures, rows = copy.deepcopy(parameters["mixtures"]), parameters["n_rows"]
        for member, snapshot in zip(_members(parameters, arrays), snapshots, strict=True):
            tracker = under(f"tracker/{member.mixture}", arrays)
            n_own = len(snapshot.means) - 1 - len(_tracked_means(tracker)[0])
            if tracker:
                tracked, total = snapshot.means[n_own:-1], snapshot.weights[n_own]
                more = {**tracker, "ends": tracked[:-2], "state": np.append(tracked[-2:], total)}
                numbers |= nested(f"tracker/{member.mixture}", more)
            own = replace(snapshot, means=snapshot.means[:n_own], weights=snapshot.weights[:n_own])
            state, new = member.adapter.write(member.parameters, member.arrays, [own])
            mixtures[member.mixture]["members"][member.number]["state"] = state
            for name in under(member.place, arrays):
                del numbers[f"{member.place}/{name}"]
            numbers |= nested(member.place, new)
            numbers[_weighting_array(member.mixture, arrays)][member.number] = snapshot.means[-1]
            rows = round(snapshot.weights[-1])
            count = f"mixture/{member.mixture}/count"
            if count in arrays:  # rows behind the weights of the members
                numbers[count] = arrays[count] + rows - parameters["n_rows"]
        return {**parameters, "mixtures": mixtures, "n_rows": rows}, numbers


ADAPTERS: tuple[Adapter, ...] = (PerceptronAdapter(), NetworkAdapter(), EstimatorAdapter())


def _refuse_hypotheses(name: str) -> None:
    if name in savable_names("onepass.models.mixture"):
        raise ValueError(
            "a mixture of models (drift='auto', or a committee) weighs its members row after row, and shards have no "
            "common order of rows; merge single models, with drift=0"
        )


def _refuse_drift(parameters: Parameters) -> None:
    if parameters["forgetting"] < 1.0:
        raise ValueError(
            f"forgetting={parameters['forgetting']:g} favours the last rows, which shards don't have in common; "
            "use forgetting=1"
        )
    if parameters["drift"] > 0.0:
        raise ValueError(
            f"drift={parameters['drift']:g} lets the weights move from row to row, and shards have no common order; "
            "use drift=0"
        )


def _layout(parameters: Parameters) -> Layout:
    outputs = named(parameters["observation"])().outputs(parameters["n_outputs"])
    return decode_layout(parameters, outputs.size)


def _belief(parameters: Parameters, arrays: Arrays) -> NetworkBelief:
    """A network's belief."""
    covariance, layout = parameters["covariance"], _layout(parameters)
    layout = replace(layout, input_major=belief_type(covariance, layout).input_major)
    belief = start_belief(covariance, layout, arrays["mean"], np.zeros(len(arrays["mean"])))
    belief.values[:] = arrays["covariance"]
    return belief


def _members(parameters: Parameters, arrays: Arrays) -> Iterator[_Member]:
    for i, mixture in enumerate(parameters["mixtures"]):
        for k, entry in enumerate(mixture["members"]):
            numbers = under(f"mixture/{i}/{k}", arrays)
            yield _Member(i, k, _adapter_named(entry["class"]), entry["state"], numbers)


def _tracked_means(tracker: Arrays) -> tuple[FloatArray, float]:
    """What a tracker of intervals has, as running means, and the rows behind them; nothing where there is none."""
    if not tracker:
        return np.empty(0), 0.0
    location, total = tracker["state"][:-1], float(tracker["state"][-1])
    return np.concatenate([tracker["ends"], location]), total


def _weighting_array(mixture: int, arrays: Arrays) -> str:
    """Name of the array that the weights of a mixture's members are computed from."""
    return next(name for own in ("evidence", "weights") if (name := f"mixture/{mixture}/{own}") in arrays)
