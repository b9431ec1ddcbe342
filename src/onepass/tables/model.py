"""A model of tables: what the columns mean, what is foretold, and the estimator that learns it, in one file.

`TabularModel` takes rows as they stand in files and answers in the target's own units and labels. Everything that the
meaning of a row depends on is part of it, so whoever has the file can go on learning or predict.
"""

import copy
import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from onepass._typing import FloatArray
from onepass.beliefs.blocks import choose_structure
from onepass.estimators import (
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    BayesianPerceptronClassifier,
    BayesianPerceptronRegressor,
)
from onepass.files.state import Arrays, Parameters, as_number, as_tally, nested, under
from onepass.tables.columns.encoding import (
    Bad,
    Encoding,
    SchemaError,
    as_numbers,
    as_texts,
    listed,
    note_far,
    number_text,
)
from onepass.tables.readers.stream import Piece

__all__ = [
    "ClassTarget",
    "NumberTarget",
    "Reject",
    "Rows",
    "Settings",
    "TabularModel",
    "Target",
    "Weight",
    "rejects_of",
]

_ESTIMATORS: dict[str, Any] = {
    cls.__name__: cls
    for cls in (
        BayesianMLPClassifier,
        BayesianMLPRegressor,
        BayesianPerceptronClassifier,
        BayesianPerceptronRegressor,
    )
}
_FULL = 500  # features up to which all correlations between weights are kept by default
_MOST_FULL = 10_000  # and those up to which they may be asked for
_REHEARSED = 256  # rows, enough for blocks
_BLOCK = 2**23  # numbers of a block of rows
_DRAWS = 400  # functions that stand for a network's belief
_MOST_DRAWN = 200  # features that it is worth drawing them for


class Reject(NamedTuple):
    """A record that was not learned or predicted, and why."""

    line: int
    reason: str
    text: str = ""


@dataclass(frozen=True)
class NumberTarget:
    """A number, learned in units of the spread that it had among the first rows."""

    name: str
    centre: float
    spread: float
    kind: ClassVar[str] = "number"

    def encode(self, array: Any, bad: Bad) -> FloatArray:
        """Targets as the estimator learns them; what is none goes to ``bad``."""
        values = as_numbers(array, self.name, bad)
        for row in np.flatnonzero(np.isnan(values)).tolist():
            bad.setdefault(row, f"the target {self.name} is missing")
        with np.errstate(over="ignore"):
            scaled = (values - self.centre) / self.spread
        note_far(scaled, values, f"the target {self.name}", bad)
        return np.asarray(scaled)


@dataclass(frozen=True)
class ClassTarget:
    """One of several labels, all of them known beforehand."""

    name: str
    labels: tuple[str, ...]
    numeric: bool
    kind: ClassVar[str] = "class"

    def encode(self, array: Any, bad: Bad) -> FloatArray:
        """Indices of the labels; what is none of them goes to ``bad``."""
        if self.numeric:
            values = as_numbers(array, self.name, bad)
            index, known = self._found(values)
        else:
            places = pc.index_in(self._texts(array), value_set=pa.array(self.labels, pa.string()))
            known = places.is_valid().to_numpy(zero_copy_only=False)
            index = places.fill_null(0).to_numpy(zero_copy_only=False)
        if not known.all():
            for row in np.flatnonzero(~known).tolist():
                bad.setdefault(row, self._complaint(array[row].as_py()))
        return np.asarray(index, dtype=np.float64)

    def _found(self, values: FloatArray) -> tuple[Any, Any]:
        labels = np.array([float(label) for label in self.labels])
        order = np.argsort(labels)
        index = order[np.searchsorted(labels[order], values).clip(max=len(labels) - 1)]
        return index, labels[index] == values

    def _texts(self, array: Any) -> Any:
        texts = as_texts(array, self.name)
        return pc.utf8_lower(texts) if self.labels == ("false", "true") else texts

    def _complaint(self, value: Any) -> str:
        if value is None or value != value:
            return f"the target {self.name} is missing"
        shown = number_text(value) if isinstance(value, float) and np.isfinite(value) else str(value)[:40]
        return f"the target {self.name} is {shown!r}, none of the known classes {listed(self.labels, 8)}"


Target = NumberTarget | ClassTarget


@dataclass(frozen=True)
class Settings:
    """What the user may say of the model."""

    hidden: tuple[int, ...] = ()
    activation: str | None = None
    covariance: str | None = None
    noise: float | None = None  # None: learned
    forgetting: float = 1.0
    prior_scale: float | str = 1.0
    seed: int = 0


@dataclass(frozen=True)
class Rows:
    """Rows made ready for learning."""

    X: FloatArray  # (n, d)
    y: FloatArray  # (n,)
    rejects: tuple[Reject, ...]
    lines: int  # records that they were made of, bad ones among them


@dataclass(frozen=True)
class Weight:
    """What a feature does to the target, and how sure that is."""

    feature: str
    mean: float
    std: float


class TabularModel:
    """An estimator together with what its inputs and targets mean.

    Parameters
    ----------
    encoding : Encoding
    target : NumberTarget or ClassTarget
    settings : Settings
    """

    def __init__(self, encoding: Encoding, target: Target, settings: Settings | None = None) -> None:
        self.encoding = encoding
        self.target = target
        self.estimator = _estimator(len(encoding.features), target, settings or Settings())
        self.n_rows = 0
        self.n_rejected = 0
        self.progress: Parameters | None = None
        """Where in its input a run stands that has not ended."""
        self.last_run: Parameters | None = None
        """By what the input of the last run that ended is known again."""

    @property
    def is_network(self) -> bool:
        """Whether there are hidden layers."""
        return hasattr(self.estimator, "hidden_layer_sizes")

    @property
    def block(self) -> int:
        """Rows of one step: fewer for a network, where a step takes longer, and for many features, which take room."""
        most = 1024 if self.is_network else 8192
        return max(min(most, _BLOCK // len(self.encoding.features)), 64)

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes, or none."""
        return self.target.labels if isinstance(self.target, ClassTarget) else ()

    # Rows.

    def types(self, *, target: bool) -> dict[str, Any]:
        """Names and Arrow types of the columns to read."""
        types = self.encoding.types()
        if target:
            numeric = isinstance(self.target, NumberTarget) or self.target.numeric
            types[self.target.name] = pa.float64() if numeric else pa.string()
        return types

    def rows(self, pieces: Sequence[Piece]) -> Rows:
        """Make rows ready for learning; what can't be learned is left out and named."""
        parts = [self._rows_of(piece) for piece in pieces]
        if len(parts) == 1:
            return parts[0]
        return Rows(
            np.concatenate([part.X for part in parts]),
            np.concatenate([part.y for part in parts]),
            tuple(reject for part in parts for reject in part.rejects),
            sum(part.lines for part in parts),
        )

    def _rows_of(self, piece: Piece) -> Rows:
        encoded = self.encoding.encode(piece.batch)
        bad = encoded.bad
        place = piece.batch.schema.get_field_index(self.target.name)
        column = piece.batch.column(place) if place >= 0 else pa.nulls(len(piece))
        y = self.target.encode(column, bad)
        X = encoded.X
        if bad:
            kept = np.setdiff1d(np.arange(len(piece)), list(bad))
            X, y = X[kept], y[kept]
        return Rows(X, y, rejects_of(piece, bad), len(piece) + len(piece.malformed))

    # Learning and predicting.

    def learn(self, rows: Rows) -> None:
        """Learn rows, in their order."""
        if len(rows.y) and self.n_rows:
            self.estimator.learn_encoded(rows.X, rows.y)
        elif len(rows.y):
            self._begin("partial_fit", rows)
        self._count(rows)

    def predict_then_learn(self, rows: Rows) -> Any:
        """Predict every row just before learning it; None if there is no row."""
        foretold = None
        if len(rows.y) and self.n_rows:
            foretold = self.estimator.predict_then_learn_encoded(rows.X, rows.y)
        elif len(rows.y):
            foretold = self._begin("predict_then_learn", rows)
        self._count(rows)
        return foretold

    def rehearse(self) -> None:
        """Have a copy learn some rows and one row, so that all code for it is there."""
        rng = np.random.default_rng(0)
        copied = copy.deepcopy(self)
        for n in (min(_REHEARSED, self.block), 1):
            X = rng.standard_normal((n, len(self.encoding.features)))
            copied.learn(Rows(X, np.zeros(n), (), n))

    def _begin(self, method: str, rows: Rows) -> Any:
        """Have the estimator look at its first rows and classes."""
        classes = {"classes": np.arange(len(self.labels))} if self.labels else {}
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "features differ in scale")  # the encoding has seen to that
            return getattr(self.estimator, method)(rows.X, rows.y, **classes)

    def _count(self, rows: Rows) -> None:
        self.n_rows += len(rows.y)
        self.n_rejected += len(rows.rejects)

    @property
    def prediction_names(self) -> tuple[str, ...]:
        """Columns of a table of predictions."""
        if self.labels:
            return ("label", *(f"p_{label}" for label in self.labels))
        return ("mean", "std", "lower", "upper")

    def predictions(self, X: FloatArray, level: float) -> dict[str, Any]:
        """Columns of a table of predictions for encoded rows, in their order."""
        if isinstance(self.target, ClassTarget):
            probabilities = self.estimator.predict_proba(X)
            best = probabilities.argmax(axis=1)
            columns = (np.array(self.labels, dtype=object)[best], *probabilities.T)
            return dict(zip(self.prediction_names, columns, strict=True))
        mean, std = self.estimator.predict(X, return_std=True)
        low, high = self.estimator.predict_interval(X, level=level)
        spread, centre = self.target.spread, self.target.centre
        columns = (mean * spread + centre, std * spread, low * spread + centre, high * spread + centre)
        return dict(zip(self.prediction_names, columns, strict=True))

    # What it has learned.

    @property
    def noise(self) -> float | None:
        """Standard deviation of the target's noise, in its own units; None for classes."""
        if not isinstance(self.target, NumberTarget):
            return None
        return float(np.sqrt(self.estimator.noise_) * self.target.spread)

    def weights(self) -> dict[str, list[Weight]]:
        """What each feature does, for the target or for each class, the largest first.

        For numbers the change of the target, for classes of the log odds, that one standard deviation of a number, or a
        category in place of an average row's, brings about; in a network, and for more than two classes, for a row in
        the middle of the first rows, and of very many features for the foremost.
        """
        # What softmax weights have in common moves no probability, and no data can tell it: odds do without.
        features: Any = range(len(self.encoding.features))
        if self.is_network or len(self.labels) > 2:
            features = self._foremost() if len(features) > _MOST_DRAWN else features
            means, stds = self._effects(features)
        else:
            means, stds = self._coefficients()
        every = self.encoding.features
        names = [every[k] for k in features]
        keys = self.labels if len(means) > 1 else (self.labels[1] if self.labels else self.target.name,)
        out = {}
        for key, mean, std in zip(keys, means, stds, strict=True):
            found = [Weight(*one) for one in zip(names, mean.tolist(), std.tolist(), strict=True)]
            out[key] = sorted(found, key=lambda weight: -abs(weight.mean))
        return out

    def _coefficients(self) -> tuple[FloatArray, FloatArray]:
        mean = np.atleast_2d(self.estimator.coef_)
        cov = self.estimator.coef_cov_
        whole = cov.ndim == 2 and cov.shape[0] == cov.shape[1]
        effect, var = mean.copy(), np.array(np.diag(cov) if whole else cov).reshape(mean.shape)
        for group, shares in self.encoding.groups():
            average = np.atleast_2d(cov[group, group] @ shares if whole else var[:, group] * shares)
            effect[:, group] -= mean[:, group] @ shares
            var[:, group] += (average @ shares if whole else np.sum(average * shares)) - 2.0 * average
        scale = self.target.spread if isinstance(self.target, NumberTarget) else 1.0
        return effect * scale, np.sqrt(np.maximum(var, 0.0)) * scale

    def _effects(self, features: Any) -> tuple[FloatArray, FloatArray]:
        """Mean and deviation, ``(K, k)``, of what features do in functions drawn from the belief."""
        means, stds = [], []
        for band in self.encoding.contrasts(features):
            change = self._change(band, lambda rows: self.estimator.sample_y(rows, _DRAWS, random_state=0))
            change = change[:, None] if change.ndim == 2 else change
            means.append(change.mean(axis=-1).T)
            stds.append(change.std(axis=-1).T)
        return np.hstack(means), np.hstack(stds)

    def _foremost(self) -> Any:
        """Features that change most what is foretold, as many as are worth drawing functions for."""
        foretell = self.estimator.predict_proba if self.labels else self.estimator.predict
        every = range(len(self.encoding.features))
        changes = [self._change(band, foretell) for band in self.encoding.contrasts(every)]
        largest = np.abs(np.concatenate(changes)).reshape(len(every), -1).max(axis=1)
        return np.argsort(-largest)[:_MOST_DRAWN]

    def _change(self, band: FloatArray, foretell: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Between half a step to either side of the middle: of the target in its own units, or of log odds."""
        found = foretell(0.5 * np.vstack([band, -band]))
        if isinstance(self.target, NumberTarget):
            found = found * self.target.spread
        else:
            safe = np.clip(found, 1e-12, 1.0 - 1e-12)
            found = np.log(safe / (1.0 - safe))
        return np.asarray(found[: len(band)] - found[len(band) :])

    def facts(self) -> Iterator[tuple[str, str]]:
        """What has come of it so far, a line each."""
        yield "rows learned", f"{self.n_rows:,}"
        yield "rows rejected", f"{self.n_rejected:,}"
        if self.noise is not None:
            yield "noise now", f"standard deviation {self.noise:.4g} of {self.target.name}"
        evidence = self.estimator.log_evidence_ / max(self.n_rows, 1)
        if isinstance(self.target, NumberTarget):
            evidence -= float(np.log(self.target.spread))
        yield "evidence", f"{evidence:.4f}, the mean log density of a row before it was learned"
        if self.estimator.prior_scale == "auto":
            shares = np.atleast_2d(self.estimator.prior_weights_)[0]
            yield "prior weights", ", ".join(f"{share:.2f}" for share in shares)
        if self.last_run is not None:
            yield "last run", ", ".join(str(file["name"]) for file in self.last_run["files"])
        if self.progress is not None:
            yield "progress", "of a run that has not ended"

    def choices(self) -> Iterator[tuple[str, str]]:
        """All that was chosen for the model, a line each."""
        if isinstance(self.target, NumberTarget):
            yield "target", f"{self.target.name}, (y - {self.target.centre:.4g}) / {self.target.spread:.4g}"
        else:
            yield "target", f"{self.target.name}, one of {_listed(self.labels)}"
        for column in self.encoding.columns:
            yield f"column {column.name}", column.words()
        for name, why in self.encoding.ignored.items():
            yield f"column {name}", f"ignored: {why}"
        estimator = self.estimator
        features = len(self.encoding.features)
        if self.is_network:
            layers = "-".join(map(str, (features, *estimator.hidden_layer_sizes, self._n_outputs)))
            yield "model", f"network {layers}"
            yield "activation", f"{estimator.activation} in the hidden layers"
        else:
            yield "model", f"perceptron with {features} features"
            output = "softmax" if len(self.labels) > 2 else estimator.activation
            yield "activation", output
        yield "covariance", _COVARIANCE[self.structure]
        if isinstance(self.target, NumberTarget):
            fixed = (
                "learned on the way" if estimator.noise == "learn" else f"variance {self._noise_given:.4g}, as given"
            )
            yield "noise", fixed
        scale = estimator.prior_scale
        yield (
            "prior",
            "several scales side by side" if scale == "auto" else f"standard deviation {scale:g} of each weight",
        )
        if estimator.forgetting < 1.0:
            yield "forgetting", f"{estimator.forgetting:g}: the past fades"

    @property
    def structure(self) -> str:
        """Which correlations between weights are kept."""
        covariance = str(self.estimator.covariance)
        if covariance != "auto":
            return covariance
        return choose_structure((len(self.encoding.features), *self.estimator.hidden_layer_sizes, self._n_outputs))

    @property
    def _n_outputs(self) -> int:
        return len(self.labels) if len(self.labels) > 2 else 1

    @property
    def _noise_given(self) -> float:
        assert isinstance(self.target, NumberTarget)
        return float(self.estimator.noise) * self.target.spread**2

    # Files: see onepass.files.checkpoint.

    def export_state(self) -> tuple[Parameters, Arrays]:
        """Give all that the model is, as parameters that JSON can hold and arrays: see `onepass.save`."""
        state, arrays = self.estimator.export_state()
        parameters: Parameters = {
            "encoding": self.encoding.state(),
            "target": {"kind": self.target.kind, **asdict(self.target)},
            "estimator": {"class": type(self.estimator).__name__, "state": state},
            "n_rows": self.n_rows,
            "n_rejected": self.n_rejected,
            "progress": self.progress,
            "last_run": self.last_run,
        }
        return parameters, nested("estimator", arrays)

    @classmethod
    def from_state(cls, parameters: Parameters, arrays: Arrays) -> Self:
        """Make the model that `export_state` described; it goes on learning as that one would."""
        model = cls.__new__(cls)
        model.encoding = Encoding.from_state(parameters["encoding"])
        model.target = _target(parameters["target"])
        kind = _ESTIMATORS[parameters["estimator"]["class"]]
        model.estimator = kind.from_state(parameters["estimator"]["state"], under("estimator", arrays))
        if model.estimator.n_features_in_ != len(model.encoding.features):
            raise ValueError("the encoding does not make the features that the model has learned from")
        if len(getattr(model.estimator, "classes_", ())) != len(model.labels):
            raise ValueError("the model has not learned the classes of the target")
        model.n_rows = as_tally(parameters["n_rows"], "n_rows")
        model.n_rejected = as_tally(parameters["n_rejected"], "n_rejected")
        model.progress, model.last_run = (_record(parameters, name) for name in ("progress", "last_run"))
        return model


_COVARIANCE = {
    "full": "full: all correlations between weights are kept",
    "layer": "layer: correlations between weights of one layer are kept",
    "neuron": "neuron: correlations between weights of one unit are kept",
    "diagonal": "diagonal: no correlations between weights are kept",
}


def rejects_of(piece: Piece, bad: Bad) -> tuple[Reject, ...]:
    """Everything wrong with a piece, in the order of its lines."""
    found = [Reject(one.line, one.reason, one.text) for one in piece.malformed]
    if bad:
        lines = piece.lines
        found += [Reject(lines[row], reason, _as_json(piece, row)) for row, reason in bad.items()]
    return tuple(sorted(found))


def _as_json(piece: Piece, row: int) -> str:
    """What was read of a row, as a line that can be mended and learned."""
    (values,) = piece.batch.slice(row, 1).to_pylist()
    return json.dumps(values, default=str, ensure_ascii=False)


def _estimator(n_features: int, target: Target, settings: Settings) -> Any:
    classes = isinstance(target, ClassTarget)
    options: dict[str, Any] = {
        "prior_scale": settings.prior_scale,
        "forgetting": settings.forgetting,
        "standardize": False,  # the encoding has done so
    }
    if settings.activation is not None:
        options["activation"] = settings.activation
    if isinstance(target, NumberTarget):
        options["noise"] = "learn" if settings.noise is None else settings.noise / target.spread**2
    if settings.hidden:
        options |= {"hidden_layer_sizes": settings.hidden, "random_state": settings.seed}
        options["covariance"] = settings.covariance or "auto"
        return (BayesianMLPClassifier if classes else BayesianMLPRegressor)(**options)
    options["covariance"] = settings.covariance or ("full" if n_features <= _FULL else "diagonal")
    if options["covariance"] == "full" and n_features > _MOST_FULL:
        raise SchemaError(
            f"a full covariance of {n_features:,} features is too much work (at most {_MOST_FULL:,}); "
            "leave out --covariance, or hash into fewer --buckets"
        )
    return (BayesianPerceptronClassifier if classes else BayesianPerceptronRegressor)(**options)


def _record(parameters: Parameters, name: str) -> Parameters | None:
    """What is kept of a run; no number of the model depends on it."""
    found: Parameters | None = parameters[name]
    if found is not None:
        files = (found if name == "last_run" else found["input"])["files"]
        if not isinstance(files, list) or not all(isinstance(file, dict) and "name" in file for file in files):
            raise ValueError(f"{name} is no record of a run")
    return found


def _target(state: Any) -> Target:
    given = dict(state)
    kind = given.pop("kind")
    if kind == "number":
        target = NumberTarget(
            str(given["name"]), as_number(given["centre"], "centre"), as_number(given["spread"], "spread")
        )
        if target.spread <= 0.0:
            raise ValueError(f"the target has the spread {target.spread}, which must be positive")
        return target
    if kind != "class":
        raise ValueError(f"the target is of the unknown kind {str(kind)[:40]!r}")
    labels = tuple(str(label) for label in given["labels"])
    return ClassTarget(str(given["name"]), labels, bool(given["numeric"]))


def _listed(labels: Sequence[str]) -> str:
    return f"{len(labels)} classes ({listed(labels, 8)})"
