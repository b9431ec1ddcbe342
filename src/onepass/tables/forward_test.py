"""How a new model is tested forward: what it learns from the first of the rows at hand predicts the rows after them.

Rows that are predicted right before they are learned, and rows drawn at random, lie among those that were learned. What
is predicted with a model comes after all of them, and a relation that moves makes errors there that no earlier score
shows. So the models that may be chosen learn the rows at hand up to three origins, and predict from each the rows that
follow, a quarter as many as were learned: as far ahead as the last fifth of a file is.

Two things follow. The model with the best log score ahead is chosen, by the worst of the last two tests, if the order
of the rows matters: a network that learns rows in their order follows the latest, one that learns them shuffled
averages. And if the targets ahead lie farther off than 95 % intervals allow, the intervals of the model are widened by
the factor that would have held them.
"""

import copy
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone

from onepass._typing import FloatArray
from onepass.estimators.rows import Rows
from onepass.tables.better_of_two import BetterOfTwo
from onepass.tables.forward_record import (
    CANDIDATES,
    GAIN,
    IN_ORDER,
    LEVEL,
    PERCEPTRON,
    SHUFFLED,
    Candidate,
    ForwardTest,
    widened,
)
from onepass.tables.model import TabularModel
from onepass.tables.targets import CountTarget, NumberTarget

__all__ = ["forward_test", "fresh", "is_possible", "thinned"]

ORIGINS = (0.512, 0.64, 0.8)
"""Shares of the rows that are learned before each test."""
AHEAD = 0.25
"""Rows that are predicted, for each row learned."""
FEWEST = 50
"""Rows below which there is no test: the parts say too little."""
MOST = 2**11
"""Rows that are looked at; of more, every second, fourth, ... one."""
_USUAL = 1.96  # deviations that 95 % of a normal distribution are within
_WIDER = 1.1  # a factor below this is chance
_MOST_WIDER, _TRIED = 4.0, 57  # how much more a factor may be where it widens only a share, and the steps to there


class _Ahead(NamedTuple):
    """Rows that were predicted from an origin."""

    z: FloatArray
    share: FloatArray
    """Of the variance, what a wider interval widens: see `TabularModel.factors`."""
    log_density: FloatArray
    mean: FloatArray  # in the target's own units

    @classmethod
    def of(cls, model: TabularModel, rows: Rows) -> "_Ahead":
        predicted, target = model.predict_and_score(rows), model.target
        if not isinstance(target, NumberTarget):
            return cls(np.zeros(0), np.zeros(0), predicted.log_density, np.zeros(0))
        mean, _ = target.moments(predicted.mean, predicted.std, predicted.aleatoric)
        z = (rows.y - predicted.mean) / predicted.std
        return cls(z, model.share_ahead(rows.X), predicted.log_density, mean)

    def inside(self, widening: float) -> float:
        """The share of the targets inside their 95 % intervals, these widened."""
        return float(np.mean(np.abs(self.z) <= _USUAL * widened(widening, self.share)))


def thinned(parts: Iterable[Rows]) -> Rows | None:
    """At most `MOST` rows at even distances, in their order; None if there are none."""
    kept: list[Rows] = []
    step, seen, n = 1, 0, 0
    for part in parts:
        places = np.arange(-seen % step, len(part.y), step)
        seen += len(part.y)
        if len(places):
            kept.append(part.at(places))
            n += len(places)
        while n > MOST:
            joined = Rows.joined(kept)
            kept, step = [joined.at(np.arange(0, n, 2))], 2 * step
            n = len(kept[0].y)
    return Rows.joined(kept) if kept else None


def forward_test(model: TabularModel, rows: Rows, seed: int) -> ForwardTest | None:
    """Test what a model that has learned nothing may become; None if the rows are too few to say.

    Parameters
    ----------
    model : one that is to choose between a perceptron and a network
    rows : in their order
    seed : of the order in which rows are shuffled
    """
    n = len(rows.y)
    if n < FEWEST or not isinstance(model.estimator, BetterOfTwo):
        return None
    origins = [round(share * n) for share in ORIGINS]
    found: dict[Candidate, list[_Ahead]] = {}
    by_row: dict[Candidate, float] = {}
    for candidate in CANDIDATES.values():
        if candidate is SHUFFLED:
            found[candidate] = [_shuffled(model, rows, origin, seed) for origin in origins[1:]]
        elif is_possible(model, candidate):
            found[candidate], by_row[candidate] = _in_order(model, candidate, rows, origins)
    # The worst of the last two tests: one lucky stretch must not decide.
    worst = {one: min(float(ahead.log_density.mean()) for ahead in tests[-2:]) for one, tests in found.items()}
    worst = {one: score for one, score in worst.items() if np.isfinite(score)}
    first = PERCEPTRON if model.time is None else LEVEL
    if first not in worst:
        return None
    chosen = max(worst, key=lambda one: worst[one] - (GAIN if _has_to_be_better(one, first) else 0.0))
    tests = found[chosen]
    if chosen is SHUFFLED:  # in the end it is refined, which takes longest and so is tested once
        tests = [*tests[:-1], _shuffled(model, rows, origins[-1], seed, refine=True)]
    ends = origins[-1], _end(origins[-1], n)
    test = ForwardTest(chosen.name, {one.name: score for one, score in worst.items()}, ends[0], ends[1] - ends[0], 1.0)
    if not isinstance(model.target, NumberTarget):
        return test
    follows = isinstance(model.target, CountTarget) or model.tracks_intervals  # limits need no factor
    widening = 1.0 if follows else _widening(tests)
    return replace(
        test,
        widening=widening,
        coverage=tests[-1].inside(widening),
        plain_coverage=tests[-1].inside(1.0),
        row_by_row=by_row.get(chosen, by_row[IN_ORDER]),
        errors=_errors(model.target, rows, *ends, tests[-1].mean),
    )


def _widening(tests: list[_Ahead]) -> float:
    """The factor that makes 95 % intervals contain 95 % of the targets ahead, in the last two tests.

    The first test is left out: a jump in the rows that it predicts is among those that later ones have learned.
    """
    z = np.abs(np.concatenate([ahead.z for ahead in tests[-2:]]))
    share = np.concatenate([ahead.share for ahead in tests[-2:]])
    most = float(np.quantile(z, 0.95)) / _USUAL
    if not np.isfinite(most) or most < _WIDER:
        return 1.0
    # Where only a share of the variance is widened, it takes more.
    factors = most * np.geomspace(1.0, _MOST_WIDER, _TRIED)
    inside = [np.quantile(z / widened(factor, share), 0.95) <= _USUAL * (1.0 + 1e-9) for factor in factors.tolist()]
    return float(factors[int(np.argmax(inside))] if any(inside) else factors[-1])


def _end(origin: int, n: int) -> int:
    """The row up to which rows are predicted from an origin."""
    return min(origin + max(round(AHEAD * origin), 1), n)


def is_possible(model: TabularModel, candidate: Candidate) -> bool:
    """Whether a model can learn in this way.

    Only what has a time has a level in it. One of the level's hypotheses is that there is none, so no other perceptron
    is asked then. Only numbers can drift.
    """
    if candidate.level or (model.time is not None and not candidate.is_network):
        return candidate.level and model.time is not None
    return not candidate.drift or isinstance(model.target, NumberTarget)


def _has_to_be_better(candidate: Candidate, first: Candidate) -> bool:
    """Whether a candidate has to be better by a margin.

    A relation that stays is learned best from rows in a random order, and a perceptron minds none. With a level,
    intervals depend on how far ahead a row is: that is given up only for a better model.
    """
    return candidate is not first and (candidate.in_order or first is LEVEL)


def fresh(model: TabularModel, candidate: Candidate) -> TabularModel:
    """A model that learns in one way alone, and has learned nothing yet."""
    new = copy.copy(model)
    new.estimator = clone(model.estimator.candidates[int(candidate.is_network)])
    if candidate.drift:
        new.estimator.set_params(drift="auto")
    new.n_rows = new.n_rejected = 0
    return new


def _in_order(model: TabularModel, candidate: Candidate, rows: Rows, origins: list[int]) -> tuple[list[_Ahead], float]:
    """Tests of a model that learns the rows once in their order, and its coverage row by row after the last origin."""
    new, done, tests, n = fresh(model, candidate), 0, [], len(rows.y)
    for origin in origins:
        new.learn(rows.at(np.arange(done, origin)))
        tests.append(_Ahead.of(new, rows.at(np.arange(origin, _end(origin, n)))))
        done = origin
    last = rows.at(np.arange(done, _end(done, n)))
    predicted = new.predict_then_learn(last)
    if not isinstance(model.target, NumberTarget):
        return tests, 0.0
    return tests, float(np.mean(np.abs(last.y - predicted.mean) <= _USUAL * predicted.std))


def _shuffled(model: TabularModel, rows: Rows, origin: int, seed: int, *, refine: bool = False) -> _Ahead:
    """The test of a network that learns the rows up to an origin in a random order."""
    new, known = fresh(model, SHUFFLED), rows.at(np.arange(origin))
    new.learn(known.at(np.random.default_rng(seed).permutation(origin)))
    if refine and new.can_refine:
        new.refine(known)
    return _Ahead.of(new, rows.at(np.arange(origin, _end(origin, len(rows.y)))))


def _errors(target: NumberTarget, rows: Rows, start: int, end: int, mean: FloatArray) -> dict[str, float]:
    """Errors of the model and of what it has to beat, in the target's own units."""
    y = target.decode(rows.y)
    known, ahead = y[:start], y[start:end]
    guesses = {"model": mean, "the mean": known.mean(), "the last value": known[-1]}
    if not issparse(rows.X):
        from sklearn.ensemble import HistGradientBoostingRegressor  # takes a while to load

        boosting = HistGradientBoostingRegressor(random_state=0).fit(rows.X[:start], known)
        guesses["gradient boosting"] = boosting.predict(rows.X[start:end])
    with np.errstate(over="ignore"):
        errors = {name: float(np.sqrt(np.mean((ahead - guess) ** 2))) for name, guess in guesses.items()}
    return {name: error for name, error in errors.items() if np.isfinite(error)}
