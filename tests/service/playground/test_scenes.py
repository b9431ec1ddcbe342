"""What each scene shows, against the library asked directly."""

import base64
import json
from typing import Any

import numpy as np
import pytest

from onepass import BayesianPerceptron
from onepass._typing import FloatArray
from onepass.service.playground.scenes.bandit import true_rates
from onepass.service.playground.scenes.drift import DriftRequest, readings
from onepass.service.playground.session import Session

NUMBERS = [[-2.0, -0.4], [-1.0, -0.9], [0.2, 0.3], [1.0, 1.2], [2.1, 0.8]]
LINE = [[x, 0.5 * x + 0.1 * (-1) ** k] for k, x in enumerate(np.linspace(-2.5, 2.5, 12).round(2).tolist())]


def asked(session: Session | None = None, **request: Any) -> dict[str, Any]:
    answer = json.loads((session or Session()).answer(json.dumps({"id": 5, **request})))
    assert answer["id"] == 5, answer
    view: dict[str, Any] = answer["view"]
    return view


def numbers(text: str) -> FloatArray:
    return np.frombuffer(base64.b64decode(text), dtype="<f4").astype(np.float64)


def test_the_band_is_the_librarys_own_prediction_and_one_more_point_changes_it_by_that_point() -> None:
    session, model = Session(), BayesianPerceptron(1, "linear", noise=0.04)
    grid = np.linspace(-3.0, 3.0, 121)[:, None]
    for n in range(1, len(NUMBERS) + 1):
        view = asked(session, scene="curve", model="perceptron", noise=0.2, points=NUMBERS[:n], draws=2)
        (x, y) = NUMBERS[n - 1]
        before = model.predict([x]).epistemic ** 0.5
        after = model.learn([x], y).predict([x]).epistemic ** 0.5
        wanted = model.predict(grid)
        np.testing.assert_allclose(numbers(view["band"]["mean"]), wanted.mean, atol=1e-6)
        np.testing.assert_allclose(numbers(view["band"]["std"]), wanted.epistemic**0.5, rtol=1e-6)
        np.testing.assert_allclose(numbers(view["band"]["total"]), (wanted.epistemic + 0.04) ** 0.5, rtol=1e-6)
        assert view["says"] == (
            f"Point {n} at x = {x:.2f}, y = {y:.2f}: one step, and the band there shrank from "
            f"±{1.96 * before:.2f} to ±{1.96 * after:.2f}."
        )
    assert [weight["mean"] for weight in view["weights"]] == pytest.approx(model.mean)
    assert (view["n_seen"], view["log_evidence"]) == (5, pytest.approx(model.log_evidence))
    assert len(view["draws"]) == 2


def test_words_for_the_prior_for_many_points_and_for_a_changed_past() -> None:
    session = Session()
    assert asked(session, scene="curve")["says"].startswith("Nothing is learned yet")
    assert asked(session, scene="curve", points=NUMBERS)["says"] == "5 points learned, one step each."
    assert asked(session, scene="curve", points=NUMBERS, draws=0)["says"].startswith("Nothing new to learn")
    assert "4 points were learned again" in asked(session, scene="curve", points=NUMBERS[1:])["says"]
    assert "1 point was learned again" in asked(session, scene="curve", points=NUMBERS[:1])["says"]
    assert asked(session, scene="curve")["says"].startswith("Nothing is learned yet")


def test_forgetting_opens_the_band_where_old_points_were() -> None:
    old = [[-2.0, 0.5]] * 8 + [[2.0, -0.5]] * 8
    widths = [numbers(asked(scene="curve", points=old, forgetting=keep)["band"]["std"])[20] for keep in (1.0, 0.7)]
    assert widths[1] > 2.0 * widths[0]


def test_the_robust_model_does_not_believe_an_outlier_and_the_plain_one_follows_it() -> None:
    request: dict[str, Any] = {"scene": "outliers", "model": "perceptron", "noise": 0.1}
    clean = asked(**request, points=LINE)
    view = asked(**request, points=[*LINE, [2.9, -2.9]])
    moved = {
        name: np.abs(numbers(view[name]["mean"]) - numbers(clean[name]["mean"])).max() for name in ("plain", "robust")
    }
    assert moved["plain"] > 0.5
    assert moved["robust"] < 0.02
    assert view["doubts"][-1] > 0.99
    assert max(view["doubts"][:-1]) < 0.5
    assert view["says"].endswith("The robust model does not trust 1 point.")
    assert clean["says"].endswith("The robust model trusts all points.")
    assert view["share"] > clean["share"]


@pytest.mark.parametrize("model", ["perceptron", "network", "deep"])
def test_classes_are_told_apart_in_maps_of_the_plane(model: str) -> None:
    points = [[-1.5, 0.3, 0], [1.5, -0.2, 1], [-2.0, -1.0, 0], [2.0, 1.0, 1], [-1.0, 1.5, 0], [1.0, -1.5, 1]] * 3
    view = asked(scene="classes", model=model, points=points)
    cells = view["cells"]
    maps = {name: numbers(view[name]).reshape(cells, cells) for name in ("probability", "std")}
    assert maps["probability"][cells // 2, 5] < 0.3 < 0.7 < maps["probability"][cells // 2, -6]
    assert maps["std"].min() >= 0.0
    assert view["correct"] == 1.0
    untaught = asked(scene="classes", model=model)
    assert untaught["correct"] is None
    assert numbers(untaught["std"]).mean() > maps["std"].mean()


def test_a_class_says_how_its_probability_rose() -> None:
    model = BayesianPerceptron(2, "sigmoid", cov=2.25)
    after = model.learn([1.0, -0.5], 1.0).predict([1.0, -0.5]).mean
    view = asked(scene="classes", points=[[1.0, -0.5, 1]])
    assert view["says"] == (
        "Point 1 at (1.00, -0.50) is orange: one step, and the probability of orange there went from 50% to "
        f"{after:.0%}."
    )
    assert "blue there went from 50% to" in asked(scene="classes", points=[[1.0, -0.5, 0]])["says"]


def test_a_wrong_label_is_doubted_where_some_are_expected() -> None:
    right = [[x, y, int(x > 0)] for x in (-2.0, -1.5, -1.0, 1.0, 1.5, 2.0) for y in (-1.0, 0.0, 1.0)] * 3
    view = asked(scene="classes", prior_scale=5.0, wrong_labels=0.05, points=[*right, [2.0, 0.2, 0]])
    assert view["doubts"][-1] > 0.5
    assert max(view["doubts"][:-1]) < 0.1


def test_merged_halves_are_the_whole_for_a_linear_model_and_nearly_so_for_a_network() -> None:
    points = [[x, y, k % 2] for k, (x, y) in enumerate(LINE)]
    for model in ("perceptron", "bumps"):
        view = asked(scene="merging", model=model, points=points)
        for part in ("mean", "std"):
            np.testing.assert_allclose(numbers(view["merged"][part]), numbers(view["whole"][part]), atol=1e-6)
        assert view["exact"]
        assert view["difference"] < 1e-10
        assert "up to rounding" in view["says"]
    halves = [numbers(half["mean"]) for half in view["halves"]]
    assert np.abs(halves[0] - halves[1]).max() > 0.01
    view = asked(scene="merging", model="network", activation="tanh", points=points)
    assert not view["exact"]
    assert view["difference"] > 0.0
    assert "approximation" in view["says"]


def test_halves_that_can_not_be_merged_say_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise ValueError("no covariance is left")

    monkeypatch.setattr("onepass.service.playground.scenes.merging.merge", refuse)
    view = asked(scene="merging")
    assert (view["merged"], view["difference"], view["exact"]) == (None, None, False)
    assert view["says"].endswith("They can't be merged: no covariance is left.")


def test_every_reading_is_predicted_before_it_is_learned_however_the_steps_are_taken() -> None:
    session = Session()
    for steps in (1, 2, 40, 90):
        view = asked(session, scene="drift", steps=steps)
    assert view == asked(scene="drift", steps=90)
    plain = numbers(view["tracks"][0]["mean"])
    model = BayesianPerceptron(2, "linear", cov=4.0, noise=0.15**2)
    angle = 2 * np.pi * np.arange(90) / 24
    rows = np.stack([np.sin(angle), np.cos(angle)], axis=1)
    wanted = model.predict_then_learn(rows, readings(DriftRequest())[1][:90]).mean
    np.testing.assert_allclose(plain, wanted, atol=1e-6)


def test_the_world_so_far_does_not_depend_on_what_comes_later() -> None:
    longer, shorter = asked(scene="drift", steps=200), asked(scene="drift", steps=100)
    np.testing.assert_array_equal(numbers(longer["readings"])[:100], numbers(shorter["readings"]))
    assert len(shorter["readings"]) < len(longer["readings"])


def test_after_a_jump_the_one_that_finds_out_is_nearest_and_the_plain_one_farthest() -> None:
    view = asked(scene="drift", world="jumps", steps=120)
    miss = {track["name"]: track["miss"] for track in view["tracks"]}
    assert miss["auto"] < miss["forgetting"] < miss["plain"]
    assert sum(view["rates"].values()) == pytest.approx(1.0)
    still = asked(scene="drift", world="still", steps=400)
    assert sum(share for rate, share in still["rates"].items() if rate in ("0.0", "1e-05")) > 0.9


def test_spikes_harm_the_plain_models_more_than_the_robust_ones() -> None:
    misses = [
        asked(scene="drift", world="still", spikes=0.1, robust=robust, steps=300)["tracks"][0]["miss"]
        for robust in (False, True)
    ]
    assert misses[1] < 0.5 * misses[0]


def test_a_bandit_is_the_same_however_its_visitors_come_and_starts_again_with_another_policy() -> None:
    session = Session()
    for steps in (1, 2, 30, 120):
        view = asked(session, scene="bandit", steps=steps)
    assert view == asked(scene="bandit", steps=120)
    assert asked(session, scene="bandit", steps=50) == asked(scene="bandit", steps=50)
    assert asked(session, scene="bandit", policy="greedy", steps=50) == asked(scene="bandit", policy="greedy", steps=50)


def test_what_is_lost_is_counted_against_the_best_offer_and_exploring_loses_less_than_chance() -> None:
    view = asked(scene="bandit", steps=300)
    visitors, regret = numbers(view["visitors"]), numbers(view["regret"])
    rates = true_rates(visitors)
    lost = [rates[i].max() - rates[i, shown] for i, shown in enumerate(view["shown"])]
    np.testing.assert_allclose(regret, np.cumsum(lost), rtol=1e-4, atol=1e-5)
    assert regret[-1] < 0.3 * numbers(view["regret_at_random"])[-1]
    chosen = sum(numbers(offer["chosen"]) for offer in view["offers"])
    np.testing.assert_allclose(chosen, 1.0, atol=1e-4)
    assert sum(offer["n_shown"] for offer in view["offers"]) == 300


@pytest.mark.parametrize(
    "settings",
    [
        {"policy": "ucb", "level": 0.9},
        {"policy": "epsilon_greedy", "epsilon": 0.3},
        {"policy": "greedy"},
        {"model": "network"},
    ],
)
def test_every_policy_and_model_serves(settings: dict[str, Any]) -> None:
    assert asked(scene="bandit", steps=40, **settings)["says"].startswith("40 visitors")
