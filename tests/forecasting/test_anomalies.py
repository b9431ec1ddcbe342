"""Scores of a series: rare as asked for, in any split, saved in the middle, and the kinds of alarms."""

import copy
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import onepass
from onepass import BayesianForecaster
from onepass.forecasting import AnomalyScorer, AnomalyScores, Member

COLUMNS = ("expected", "low", "high", "tail", "score", "kind")


def seasonal(n: int, seed: int = 0) -> np.ndarray:
    return np.asarray(50 + 10 * np.sin(2 * np.pi * np.arange(n) / 24) + np.random.default_rng(seed).normal(size=n))


def assert_same(first: AnomalyScores, second: AnomalyScores) -> None:
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name), err_msg=name)


def joined(parts: list[AnomalyScores]) -> AnomalyScores:
    return AnomalyScores(*(np.concatenate([getattr(part, name) for part in parts]) for name in COLUMNS))


@pytest.mark.parametrize(
    "noise",
    [
        pytest.param(lambda rng, n: rng.normal(size=n), id="gauss"),
        pytest.param(lambda rng, n: rng.laplace(size=n), id="laplace"),
        pytest.param(lambda rng, n: rng.standard_t(3, size=n), id="heavy tails"),
        pytest.param(lambda rng, n: rng.poisson(2.0, size=n).astype(float), id="counts"),
        pytest.param(lambda rng, n: rng.normal(size=n).cumsum(), id="random walk"),
    ],
)
@pytest.mark.parametrize("side", ["both", "above"])
def test_false_alarms_are_as_rare_as_asked_for(noise, side: str) -> None:  # type: ignore[no-untyped-def]
    y = noise(np.random.default_rng(1), 40_000)
    found = AnomalyScorer(1, false_alarms=1e-3, side=side, quiet=0).score_then_learn(y)
    assert 0.3e-3 < found.alarm.mean() < 3e-3
    scores = found.score[200:]
    for level in (0.1, 0.01):
        assert np.mean(scores > 1.0 - level) == pytest.approx(level, rel=0.3)


def test_learning_in_any_split_gives_the_same_scores() -> None:
    y, X = seasonal(300), np.random.default_rng(1).normal(size=(300, 2))
    y[100:104], y[200] = np.nan, 200.0
    whole = AnomalyScorer(24).score_then_learn(y, X)
    scorer = AnomalyScorer(24)
    cuts = [0, 1, 30, 102, 200, 201, 300]
    assert_same(joined([scorer.score_then_learn(y[a:b], X[a:b]) for a, b in pairwise(cuts)]), whole)
    single = AnomalyScorer(24)
    assert_same(joined([single.score_then_learn(value, row) for value, row in zip(y, X, strict=True)]), whole)


def test_scoring_alone_says_the_same_and_changes_nothing() -> None:
    y = seasonal(200)
    scorer = AnomalyScorer(24).learn(y[:150])
    before = scorer.score(y[150:])
    assert_same(scorer.score(y[150:]), before)
    assert scorer.n_seen == 150
    assert_same(scorer.score_then_learn(y[150:]), before)
    empty = AnomalyScorer()
    assert np.isnan(empty.score(y[:1]).score).all()
    assert empty.n_seen == 0


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_copies_are_apart(copied: Callable[[AnomalyScorer], AnomalyScorer]) -> None:
    y = seasonal(200)
    scorer = AnomalyScorer(24).learn(y[:150])
    own, expected = copied(scorer), scorer.score(y[150:])
    assert_same(own.score_then_learn(y[150:]), expected)
    assert (scorer.n_seen, own.n_seen) == (150, 200)
    assert_same(scorer.score_then_learn(y[150:]), expected)


@pytest.mark.parametrize("side", ["both", "above", "below"])
def test_a_series_that_never_changes_keeps_to_the_options(side: str) -> None:
    for n, y in ((30, 6.0), (30, 4.0), (60, 6.0), (60, 4.0)):
        found = AnomalyScorer(1, false_alarms=0.05, side=side).score_then_learn([5.0] * n + [y])
        suspicious = side == "both" or (side == "above") == (y > 5.0)
        assert found.kind[-1] == ("spike" if suspicious and n >= 50 else "")
        assert (found.tail[-1] == 1.0) == (not suspicious)
        assert found.low[-1] == (-np.inf if side == "above" else 5.0)
        assert found.high[-1] == (np.inf if side == "below" else 5.0)


def test_values_are_scored_before_they_are_learned() -> None:
    y, other = seasonal(300), seasonal(300)
    other[250:] += 100.0
    first, second = (AnomalyScorer(24).score_then_learn(values) for values in (y, other))
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(first, name)[:250], getattr(second, name)[:250])
    for name in ("expected", "low", "high"):
        assert getattr(first, name)[250] == getattr(second, name)[250]


def test_what_is_expected_is_the_forecast_of_the_next_value() -> None:
    y, same = 50.0 + np.random.default_rng(0).normal(size=240), 0
    only = [Member(lags=(1, 2))]
    forecaster, scorer = BayesianForecaster(1, members=only), AnomalyScorer(1, members=only, false_alarms=1e-6)
    for value in y:
        known = forecaster.forecast(1).mean[0] if forecaster.n_seen > 30 else np.nan
        found = scorer.score_then_learn(value)
        forecaster.learn(value)
        same += bool(abs(found.expected[0] - known) < 1e-9)
    assert same >= 20  # a member's weights are the newest where a test of the members begins


@pytest.mark.parametrize("size", [20.0, -20.0, 100.0])
def test_spikes_are_told_from_new_levels(size: float) -> None:
    y = seasonal(700, seed=1)
    y[400] += size
    y[500:] += size
    scorer = AnomalyScorer(24)
    found = scorer.score_then_learn(y)
    assert {int(i): str(found.kind[i]) for i in np.flatnonzero(found.alarm)} == {
        400: "spike",
        500: "spike",
        502: "level",
    }
    assert np.abs(found.expected[510:] - (y[510:])).mean() < 3.0  # the new level is followed, season included
    assert np.abs(found.expected[401:420] - y[401:420]).mean() < 3.0  # and the spike is not


def test_a_run_of_slightly_odd_values_is_found_though_none_is_beyond_its_limits() -> None:
    is_run = []
    for seed in range(20):
        y = np.random.default_rng(seed).normal(size=1200)
        y[1000:1015] = 2.8 * np.where(np.arange(15) % 2, 1.0, -1.0)
        found = AnomalyScorer(1, false_alarms=1e-3).score_then_learn(y)
        if ((found.low < y) & (y < found.high))[1000:1015].all():
            is_run.append(bool((found.kind[1000:1016] == "run").any()))
    assert len(is_run) >= 10
    assert np.mean(is_run) >= 0.8


def test_one_event_raises_one_alarm() -> None:
    y = seasonal(800)
    y[600:640] += np.random.default_rng(2).normal(0.0, 15.0, size=40)
    kinds = AnomalyScorer(24, false_alarms=1e-3).score_then_learn(y).kind[600:660]
    assert np.sum((kinds == "spike") | (kinds == "run")) == 1
    loud = AnomalyScorer(24, false_alarms=1e-3, quiet=0).score_then_learn(y).kind[600:660]
    assert np.sum(loud != "") > 5


def test_only_one_side_is_suspicious() -> None:
    y = seasonal(600, 1)
    y[400] += 30.0
    y[500] -= 30.0
    above, below = (AnomalyScorer(24, side=side).score_then_learn(y) for side in ("above", "below"))
    assert np.flatnonzero(above.alarm).tolist() == [400]
    assert np.flatnonzero(below.alarm).tolist() == [500]
    assert (above.low[30:] == -np.inf).all()
    assert above.score[500] < 0.9


def test_missing_values_have_no_score_and_raise_no_alarm() -> None:
    y = seasonal(400)
    y[300:320] = np.nan
    found = AnomalyScorer(24).score_then_learn(y)
    assert np.isnan(found.score[300:320]).all()
    assert not found.alarm[295:330].any()
    assert np.isfinite(found.expected[300:320]).all()
    assert found.high[320] - found.low[320] > 3.0 * (found.high[299] - found.low[299])


def test_gaps_in_times_are_missing_values_and_scores_belong_to_the_values_given() -> None:
    t, y = np.arange("2024-01-01", "2024-01-15", dtype="datetime64[h]"), seasonal(14 * 24)
    kept = np.ones(len(y), dtype=bool)
    kept[[30, 31, 150]] = False
    gaps = AnomalyScorer(24)
    first = gaps.score_then_learn(y[kept][:1], times=t[kept][:1])
    assert np.isnan(first.score).all()
    rest = gaps.score_then_learn(y[kept][1:], times=t[kept][1:])
    marked = AnomalyScorer(24).score_then_learn(np.where(kept, y, np.nan))
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(rest, name), getattr(marked, name)[kept][1:], err_msg=name)


@pytest.mark.parametrize("later", [0, 1, 150])
def test_saved_scorers_go_on_as_if_nothing_had_happened(tmp_path: Path, later: int) -> None:
    t, y = np.arange("2024-01-01", "2024-01-15", dtype="datetime64[h]"), seasonal(14 * 24)
    y[200:] += 40.0
    scorer = AnomalyScorer(false_alarms=1e-3, side="above", quiet=7).learn(y[:later], times=t[:later])
    onepass.save(scorer, tmp_path / "scorer.onepass")
    loaded = onepass.load(tmp_path / "scorer.onepass")
    assert isinstance(loaded, AnomalyScorer)
    more = {"y": y[later:], "times": t[later:]}
    assert_same(loaded.score_then_learn(**more), scorer.score_then_learn(**more))
    assert (loaded.false_alarms, loaded.side, loaded.quiet) == (1e-3, "above", 7)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"false_alarms": 0.0}, "false_alarms"),
        ({"false_alarms": 0.2}, "at most 0.1"),
        ({"side": "left"}, "'both', 'above', 'below'"),
        ({"quiet": -1}, "quiet"),
    ],
)
def test_bad_options_are_refused(options: dict[str, object], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        AnomalyScorer(**options)  # type: ignore[arg-type]


def test_a_refused_call_scores_and_learns_nothing() -> None:
    scorer = AnomalyScorer(24).learn(seasonal(100))
    state = {name: array.copy() for name, array in scorer.export_state()[1].items()}
    for wrong in ([1.0, np.inf], [[1.0]], "x", [1e200]):
        with pytest.raises((ValueError, TypeError)):
            scorer.score_then_learn(wrong)
    for name, array in scorer.export_state()[1].items():
        np.testing.assert_array_equal(array, state[name])
    assert len(scorer.score_then_learn([])) == 0


@pytest.mark.parametrize(
    "y",
    [
        np.full(200, 7.0),
        np.arange(200.0),
        np.where(np.arange(200) % 2, 1.0, np.nan),
        1e80 * np.random.default_rng(0).normal(size=200),
        -np.exp(0.1 * np.arange(200.0)),
        np.random.default_rng(0).poisson(0.1, 400).astype(float),
    ],
)
def test_awkward_series_have_scores_from_0_to_1(y: np.ndarray) -> None:
    found = AnomalyScorer(7).score_then_learn(y)
    scored = found.score[50:][~np.isnan(y[50:])]
    assert ((scored >= 0.0) & (scored <= 1.0)).all()
    assert (found.low[50:] <= found.high[50:]).all()


def promoted(n: int = 730) -> tuple[np.ndarray, np.ndarray]:
    """Items sold on days with and without a promotion; the last but 30 are as on a promotion, but without one."""
    rng = np.random.default_rng(3)
    promotion = rng.random(n) < 0.2
    promotion[[n - 130, n - 30]] = True, False
    sold = 100.0 + 60.0 * promotion + rng.normal(size=n)
    sold[n - 30] += 60.0
    return sold, promotion[:, None].astype(float)


def test_an_input_explains_a_jump(tmp_path: Path) -> None:
    sold, promotion = promoted()
    scorer = AnomalyScorer(7, inputs=["promotion"])
    scorer.score_then_learn(sold[:500], promotion[:500])
    onepass.save(scorer, tmp_path / "scorer.onepass")
    loaded = onepass.load(tmp_path / "scorer.onepass")
    assert loaded.forecaster.inputs == ("promotion",)
    found = loaded.score_then_learn(sold[500:], promotion[500:])
    assert_same(found, scorer.score_then_learn(sold[500:], promotion[500:]))
    assert (np.flatnonzero(found.alarm) + 500).tolist() == [700]
    np.testing.assert_allclose(found.expected[[100, 200]], [160.0, 100.0], atol=3.0)
    assert not AnomalyScorer(7).score_then_learn(sold).alarm[700]


def test_the_number_of_inputs_is_that_of_their_names() -> None:
    with pytest.raises(ValueError, match="X must have 2 inputs"):
        AnomalyScorer(7, inputs=["promotion", "price"]).score_then_learn([1.0, 2.0], [[1.0], [0.0]])
