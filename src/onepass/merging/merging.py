"""Merge models that started from one prior and learned different rows, by adding what each has changed.

If a Gaussian is written in natural parameters, precision ``P`` and ``h = P m``, learning a row is an addition. So
models that started from one prior are merged by adding their changes since that prior. This is exact if the change by a
row does not depend on the belief, as for a linear output with fixed noise; otherwise `onepass.merging.rounds` corrects
it.

Everything here works on the exported state of models, by way of `onepass.merging.adapters`, so one implementation
serves perceptrons, networks and estimators.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from onepass.files.registry import exported, restored
from onepass.files.state import Arrays, Parameters
from onepass.merging.adapters import adapter_for
from onepass.merging.sites import Site
from onepass.merging.snapshots import (
    Snapshot,
    apply_change,
    change_between,
    diverged_without_rows,
    jumped_between,
    pool_means,
)

__all__ = ["Merging", "merge"]

_HALVINGS = 30
_CORRECTIONS = 2.0  # shards whose full corrections a network with independent layers bears at once


def merge(prior: Any, models: Iterable[Any]) -> Any:
    """Merge models that learned different rows from one prior; none of them is changed.

    What each model has learned since the prior is added up, in natural parameters (precision, and precision times
    mean). For perceptrons with a linear output and a full covariance the result is the same as learning all rows in one
    model: up to rounding with a fixed noise, and nearly with a learned one. Otherwise it is an approximation, which
    improves with the number of rows that the prior has learned, and with `onepass.merging.Rounds`. Layers with a
    Kronecker covariance keep that form; the merged one has the right mean precision of inputs and of outputs. Up to
    rounding, neither the order of the models nor merging some of them first makes a difference.

    The other quantities of the merged model:

    - ``n_seen``: the rows of the prior plus those that each model learned since.
    - ``noise="learn"``: for linear outputs with a full covariance the noise, the belief and the evidence are those of
      all rows. Otherwise the mean of the models' estimates, each weighted by its rows since the prior. The same holds
      for a network's predictive scale and for the weights of an estimator's ``prior_scale="auto"``.
    - ``outliers``: the share of targets that can't be trusted is estimated from the rows of all models. A model that
      took the relation for changed, because it distrusted many rows in succession, raises a ValueError: it has returned
      to the prior's covariance, so what it learned is no longer a sum over rows.
    - ``log_evidence``: the sum of the models' own, corrected in closed form, because each model predicted its rows
      without knowing those of the others. The result is the evidence of all rows: exact if the merged belief is,
      otherwise the approximation of expectation propagation.

    Parameters
    ----------
    prior : BayesianPerceptron, BayesianNetwork or a fitted perceptron or network estimator
        The model from which the others were copied; it may have learned rows before.
    models : list (or any iterable) of models of the same class and settings
        Copies of the prior that learned more rows. Models with forgetting, drift, process noise or a noise window raise
        a ValueError: these give more weight to later rows, and rows of different models have no common order.

    Examples
    --------
    >>> import copy, onepass
    >>> import numpy as np
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
    kept = []  # while a model is alive, no other object has its id
    for i, model in enumerate(models):
        if (first := places.setdefault(id(model), i)) != i:
            raise ValueError(f"models[{i}] is the same object as models[{first}], so its rows would count twice")
        kept.append(model)
        site = merging.site(prior, model, f"model {i}")
        total = site if total is None else total + site
    if total is None:
        raise ValueError("models must contain at least one model to be merged, got none")
    return merging.merged(total)


class Merging:
    """Converts models that started from one prior to sites, and sites to models.

    A site is what one model has learned since the prior. This class is for code that distributes the work itself; in
    other cases use `merge` or `Rounds`.

    Parameters
    ----------
    prior : model
    """

    def __init__(self, prior: Any) -> None:
        self._class = type(prior)
        self._adapter = adapter_for(self._class)
        if hasattr(prior, "__sklearn_is_fitted__") and not prior.__sklearn_is_fitted__():
            raise ValueError("the prior has not been fitted; fit it to some rows before you copy it")
        self._parameters, self._arrays = _exported(prior)
        self._overshoots = self._adapter.overshoots(self._parameters)
        self._prior = self._read(self._parameters, self._arrays, "the prior")
        # Means are taken relative to the prior's, so that a prior far from zero costs no digits.
        self._centres = [
            [np.asarray(block.mean, dtype=np.float64) for block in snapshot.blocks] for snapshot in self._prior
        ]

    def site(self, start: Any, learned: Any, name: str = "the model") -> Site:
        """Compute what ``learned`` changed over ``start``, the model it was a copy of; errors call it ``name``."""
        if type(learned) is not self._class:
            raise TypeError(f"{name} must be a {self._class.__name__} as the prior is, got {type(learned).__name__}")
        parameters, arrays = _exported(learned)
        wanted = self._adapter.settings(self._parameters, self._arrays)
        _check_settings(self._adapter.settings(parameters, arrays), wanted, name)
        after = self._read(parameters, arrays, name)
        before = self._read(*_exported(start), "the start")
        if any(b.rows < a.rows for a, b in zip(before, after, strict=True)):
            raise ValueError(
                f"{name} has learned {after[0].rows:g} rows, fewer than the {before[0].rows:g} of the prior, so it "
                "is not a copy of the prior that learned more rows"
            )
        if any(map(diverged_without_rows, before, after)):
            raise ValueError(
                f"{name} has learned no more rows than the prior but has a different belief, so it is not a copy of "
                "the prior"
            )
        if any(map(jumped_between, before, after)):
            raise ValueError(
                f"{name} distrusted so many rows in succession that it took the relation for changed and returned to "
                "the prior's covariance; after that it can't be merged. Learn all rows in one model, let the prior "
                "learn more rows first, or use outliers=0"
            )
        return Site(tuple(map(change_between, before, after, self._centres)))

    def merged(self, total: Site) -> Any:
        """Make the model of the prior and the sum of all sites; a ValueError if that is not a Gaussian."""
        return self._model(self._with(total))

    def cavity(self, total: Site, site: Site) -> Any | None:
        """Make the model that a shard learns from, all sites but its own; None if that is not a Gaussian.

        A learned noise starts from the estimate of all shards, with the weight of the shard's own rows only: they
        estimate it again, now that the weights are known better.
        """
        try:
            snapshots = self._with(total - site)
        except ValueError:
            return None
        pooled = [pool_means(prior, change) for prior, change in zip(self._prior, total.changes, strict=True)]
        own = [pool_means(prior, change) for prior, change in zip(self._prior, site.changes, strict=True)]
        return self._model(
            [
                replace(snapshot, means=all_.means, weights=one.weights, rows=all_.rows)  # the trust is the cavity's
                for snapshot, all_, one in zip(snapshots, pooled, own, strict=True)
            ]
        )

    def nothing(self) -> Site:
        """Return the site of no rows."""
        return Site(tuple(map(change_between, self._prior, self._prior, self._centres)))

    def step_size(self, old: Site, new: Site, n_shards: int = 1) -> float:
        """Find how far to go from an old sum of sites to a new one: 1, or a fraction for which it is a Gaussian.

        The posterior of a ReLU can have several modes, and a site then negative precision; the sum of many such sites
        may have no covariance.

        After the first round every shard corrects the same errors of the merged belief. In networks whose layers are
        independent of each other each does so in every layer, and all ``n_shards`` together go too far: there, the
        largest step is ``2 / n_shards``.
        """
        share = min(1.0, _CORRECTIONS / n_shards) if self._overshoots and old.rows else 1.0
        for _ in range(_HALVINGS):
            try:
                self._with(old.toward(new, share))
                return share
            except ValueError:
                share /= 2.0
        raise ValueError(
            "what the shards learned does not add up to a valid covariance, however small the step; let the prior "
            "learn some rows before they are divided into shards"
        )

    def _with(self, total: Site) -> list[Snapshot]:
        return [
            apply_change(prior, change, centres)
            for prior, change, centres in zip(self._prior, total.changes, self._centres, strict=True)
        ]

    def _model(self, snapshots: list[Snapshot]) -> Any:
        return restored(self._class, *self._adapter.write(self._parameters, self._arrays, snapshots))

    def _read(self, parameters: Parameters, arrays: Arrays, name: str) -> list[Snapshot]:
        try:
            return self._adapter.read(parameters, arrays)
        except ValueError as error:
            raise ValueError(f"{name} can't be merged: {error}") from None


def _exported(model: Any) -> tuple[Parameters, Arrays]:
    try:
        return exported(model)
    except TypeError as error:
        raise TypeError(f"only models that can be saved can be merged: {error}") from None


def _check_settings(given: dict[str, Any], wanted: dict[str, Any], name: str) -> None:
    for key in wanted | given:
        mine, theirs = given.get(key), wanted.get(key)
        if mine == theirs or (key == "prior" and "" in (mine, theirs)):
            continue
        if key == "prior":
            raise ValueError(
                f"{name} did not start from the given prior: its weights started with another mean or covariance"
            )
        raise ValueError(f"{name} has {key}={_short(mine)} where the prior has {_short(theirs)}; all must be the same")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
