from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, log_expit

from onepass._typing import FloatArray
from onepass.activations import PaperSigmoid
from onepass.likelihoods import Gaussian
from onepass.paper import NAMES, classification, comparison, gradient, load, regression, sigmoid
from onepass.paper.base import mean_and_std, short, trial_rng
from onepass.paper.gradient import Recipe, Score
from onepass.reports.plots import house_style
from tests.helpers.experiments import without_times


def nothing() -> None:
    pass


def test_an_unknown_experiment_is_named_with_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"one of 'sigmoid', 'comparison'.*got 'warp'"):
        load("warp")


@pytest.mark.parametrize("name", NAMES)
def test_an_experiment_ticks_as_often_as_it_announces_and_tells_its_story(name: str) -> None:
    experiment, ticks = load(name), []
    outcome = experiment.run(1, 2, lambda: ticks.append(1))
    assert len(ticks) == experiment.steps(2)
    with house_style():
        figures = experiment.draw(outcome)
    section = experiment.section(outcome, dict.fromkeys(figures, b"<svg/>"))
    assert {picture.name for picture in section.pictures} == figures.keys()
    assert section.tables[0].columns == ("", "paper", "reproduced", "onepass exact")
    assert section.reading.endswith(".")


@pytest.mark.parametrize("name", ["classification", "regression"])
def test_the_same_seed_gives_the_same_numbers_and_another_seed_others(name: str) -> None:
    first, again, other = (without_times(load(name).run(seed, 1, nothing).numbers()) for seed in (4, 4, 5))
    assert first == again
    assert first != other


def test_a_trial_is_the_same_whatever_the_number_of_trials() -> None:
    few, many = (regression.Trials.draw(5, 2, trials) for trials in (1, 3))
    assert np.array_equal(few.x[0], many.x[0])
    assert np.array_equal(few.y_test[0], many.y_test[0])
    assert not np.array_equal(many.x[0], many.x[1])
    assert trial_rng(0, 1).random() != trial_rng(1, 1).random()


def test_numbers_are_written_short() -> None:
    assert short(0.12345) == "0.1235"
    assert short(6.4e-10) == "6.4e-10"
    assert short(9.7e-8) == "9.7e-8"
    assert mean_and_std(0.0952, 0.0708) == "0.0952 ± 0.0708"


class TestSigmoid:
    def test_the_errors_are_those_known(self) -> None:
        numbers = sigmoid.run(0, 1, nothing).numbers()
        # Largest at the roots of s' = lambda phi(lambda a): found by hand at |a| = 2.7.
        assert numbers["probit_max_error"] == pytest.approx(0.01767, abs=1e-5)
        assert numbers["mixture_max_error"] == pytest.approx(9.7e-8, abs=1e-9)
        assert numbers["probit_slope_max_error"] == pytest.approx(0.0116, abs=1e-4)

    def test_slopes_are_those_of_the_values(self) -> None:
        outcome = sigmoid.run(0, 1, nothing)
        for value, slope in (
            (outcome.sigmoid, outcome.slope),
            (outcome.probit.value, outcome.probit.slope),
            (outcome.mixture.value, outcome.mixture.slope),
        ):
            assert np.gradient(value, outcome.a) == pytest.approx(slope, abs=1e-6)


class TestComparison:
    grid = comparison.Grid.of_the_paper()

    def test_the_grid_is_the_papers(self) -> None:
        assert len(self.grid.mean) == 61 * 11
        assert set(np.round(self.grid.var, 12)) == {0, 0.2, 0.4, 0.6, 0.8, 1, 1.2, 1.4, 1.6, 1.8, 2}
        assert self.grid.mean.min() == -3.0
        assert self.grid.mean.max() == 3.0
        assert not self.grid.label[self.grid.mean == 0.0].any()

    def test_the_formulas_as_printed_are_what_the_library_computes(self) -> None:
        match = Gaussian(0.01).moment_match(PaperSigmoid(), self.grid.mean, self.grid.var, self.grid.label, "kalman")
        points = zip(self.grid.mean, self.grid.var, self.grid.label, strict=True)
        printed = np.array([comparison.printed_update(*point, noise=0.01) for point in points])
        assert printed[:, 0] == pytest.approx(self.grid.mean + match.score * self.grid.var, abs=1e-12)
        assert printed[:, 1] == pytest.approx(self.grid.var - match.information * self.grid.var**2, abs=1e-12)

    @pytest.mark.parametrize(
        "log_likelihood",
        [
            lambda a, y: log_expit((2 * y - 1) * a),
            lambda a, y: -50.0 * (y - expit(a)) ** 2,
        ],
        ids=["coin toss", "noisy sigmoid"],
    )
    def test_the_truth_agrees_with_adaptive_integration(
        self, log_likelihood: Callable[[FloatArray, FloatArray], FloatArray]
    ) -> None:
        mean, var = comparison.tilted_moments(log_likelihood, self.grid)
        for i in (0, 100, 335, 670):
            m, v, y = self.grid.mean[i], self.grid.var[i], self.grid.label[i]
            if v == 0.0:
                assert (mean[i], var[i]) == (m, 0.0)
                continue

            def moment(power: int, m: Any = m, v: Any = v, y: Any = y) -> float:
                def density(a: float) -> float:
                    return float(a**power * np.exp(log_likelihood(np.asarray(a), y) - 0.5 * (a - m) ** 2 / v))

                return float(quad(density, m - 10 * v**0.5, m + 10 * v**0.5, epsabs=1e-13, epsrel=1e-12, limit=200)[0])

            mass, first, second = (moment(power) for power in range(3))
            assert mean[i] == pytest.approx(first / mass, abs=1e-8)
            assert var[i] == pytest.approx(second / mass - (first / mass) ** 2, abs=1e-8)


class TestClassification:
    def test_the_perceptron_turns_round_and_learns_the_line(self) -> None:
        numbers = classification.run(3, 4, nothing).numbers()
        assert numbers["n"] == list(range(1, 26))
        assert numbers["prior_accuracy"] == pytest.approx(0.25, abs=0.03)  # the angle between the two lines
        for prefix in ("", "exact_"):
            assert numbers[f"{prefix}accuracy_mean"][-1] > 0.9
            assert numbers[f"{prefix}logloss_mean"][-1] < 0.5 * numbers[f"{prefix}logloss_mean"][0]

    def test_the_map_is_of_the_points_shown(self) -> None:
        outcome = classification.run(3, 1, nothing)
        last = outcome.maps["exact"].probability[-1]
        assert last[0, 0] < 0.05  # x1 = x2 = -4
        assert last[-1, -1] > 0.95
        assert outcome.maps["exact"].pre_var[80, 80] == pytest.approx(0.0, abs=1e-12)  # nothing is unknown at x = 0
        assert len(outcome.points) == 25


class TestGradient:
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-4, 2, 6), rng.uniform(0, 3, 6)

    def loss(self, weights: FloatArray) -> float:
        return float(np.mean((gradient.output(weights, self.x) - self.y) ** 2))

    def test_a_step_goes_down_the_slope_of_the_mean_squared_error(self) -> None:
        weights, h = np.array([1.0, 0.3]), 1e-6
        slope = [(self.loss(weights + h * e) - self.loss(weights - h * e)) / (2 * h) for e in np.eye(2)]
        stepped = gradient.descend(weights, self.x, self.y, 0.05, 1)
        assert stepped == pytest.approx(weights - 0.05 * np.array(slope), abs=1e-8)

    def test_trials_side_by_side_learn_as_one_by_one(self) -> None:
        start = self.rng.standard_normal((3, 2))
        x, y = self.rng.uniform(-4, 2, (3, 6)), self.rng.uniform(0, 3, (3, 6))
        together = gradient.descend(start, x, y, 0.03, 50)
        for i in range(3):
            assert together[i] == pytest.approx(gradient.descend(start[i], x[i], y[i], 0.03, 50), abs=1e-12)

    def test_a_relu_that_lets_nothing_through_never_learns(self) -> None:
        dead = np.array([-1.0, 0.0])
        assert np.array_equal(gradient.descend(dead, self.x, self.y, 0.1, 100), dead)

    def test_the_search_scores_each_recipe_as_if_it_were_alone(self) -> None:
        data = regression.Trials.draw(0, 3, 2)
        scores = gradient.search(data.x[:, :4], data.y[:, :4], data.x_test, data.y_test, data.start, nothing)
        assert len(scores) == len(gradient.STARTS) * len(gradient.LEARNING_RATES) * (1 + len(gradient.EPOCHS))
        for score in scores[:: len(scores) // 7]:
            start = gradient.initial_weights(score.recipe.start, data.start)
            with np.errstate(over="ignore", invalid="ignore"):
                trained = gradient.train(score.recipe, start, data.x[:, :4], data.y[:, :4])
                rmse = [gradient.rmse(weights, data.x_test, data.y_test).mean() for weights in trained]
            assert score.rmse == pytest.approx(np.mean(rmse), rel=1e-9)

    def test_one_pass_takes_one_step_per_point_in_order(self) -> None:
        start, rate = np.array([0.3, -0.2]), 0.05
        by_hand = start
        for x, y in zip(self.x, self.y, strict=True):
            a = by_hand[0] + by_hand[1] * x
            by_hand = by_hand - (2 * rate * (a - y) * np.array([1.0, x]) if a > 0 else 0.0)
        *_, last = gradient.train(Recipe("small", rate, None), start, self.x, self.y)
        assert last == pytest.approx(by_hand, abs=1e-12)

    def test_batches_begin_again_with_every_point(self) -> None:
        start = np.array([0.5, 0.1])
        trained = list(gradient.train(Recipe("small", 0.05, 10), start, self.x, self.y))
        assert len(trained) == len(self.x)
        assert trained[2] == pytest.approx(gradient.descend(start, self.x[:3], self.y[:3], 0.05, 10), abs=1e-12)

    def test_nobody_pays_for_a_gain_below_one_percent(self) -> None:
        scores = [
            Score(Recipe("live", 0.1, 1000), 0.500),
            Score(Recipe("live", 0.1, 100), 0.504),
            Score(Recipe("live", 0.1, 10), 0.600),
        ]
        assert gradient.cheapest_of_the_best(scores).recipe.epochs == 100


class TestRegression:
    def test_all_learn_and_the_numbers_are_complete(self) -> None:
        numbers = regression.run(0, 4, nothing).numbers()
        assert numbers["n"] == list(range(1, 21))
        for name in ("bp", "exact", *gradient.BASELINES):
            curve = numbers[f"{name}_rmse_mean"]
            assert len(curve) == len(numbers[f"{name}_rmse_std"]) == 20
            assert curve[-1] < 0.5 * curve[0]
            assert len(numbers[f"{name}_seconds_by_n"]) == 20
            assert numbers[f"{name}_seconds"] == numbers[f"{name}_seconds_by_n"][-1]
        assert len(numbers["gradient_grid"]) == 84
        for name, baseline in gradient.BASELINES.items():
            recipe = numbers[f"{name}_recipe"]
            assert recipe["start"] in baseline.starts
            assert (recipe["epochs"] is None) == baseline.one_pass

    def test_the_recipe_is_chosen_on_other_trials_than_those_reported(self, monkeypatch: pytest.MonkeyPatch) -> None:
        searched: list[FloatArray] = []
        reported: list[FloatArray] = []

        def search(x: FloatArray, *_: Any) -> list[Score]:
            searched.append(x)
            return [Score(Recipe(start, 0.1, epochs), 1.0) for start in gradient.STARTS for epochs in (None, 1)]

        def curve(recipe: Recipe, data: regression.Trials) -> FloatArray:
            reported.append(data.x)
            return np.ones(data.x.shape)

        monkeypatch.setattr(gradient, "search", search)
        monkeypatch.setattr(regression, "_gradient_curve", curve)
        regression.run(0, 2, nothing)
        assert searched
        assert reported
        assert not np.isin(reported[0], searched[0]).any()

    def test_targets_are_the_papers_softplus_with_its_noise(self) -> None:
        data = regression.Trials.draw(0, 2, 200)
        rest = data.y - np.log1p(np.exp(2 * data.x + 1))
        assert rest.var() == pytest.approx(0.01, rel=0.06)
        assert (data.x.min(), data.x.max()) == pytest.approx((-4, 2), abs=0.01)
        assert (data.x_test.min(), data.x_test.max()) == pytest.approx((-4, 4), abs=0.01)
