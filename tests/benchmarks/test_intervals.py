"""Measures of intervals against other definitions of the same, and the page against what is stored."""

import numpy as np
import pytest
from benchmarks.intervals import measure, page, peers
from benchmarks.intervals.scores import LEVELS, MAIN, WINDOW, scored, winkler
from benchmarks.intervals.streams import WARM_UP, Stream, synthetic

SHORT = WARM_UP + 60


@pytest.fixture(scope="module")
def stream() -> Stream:
    full = next(synthetic(np.random.default_rng(1)))
    return full._replace(X=full.X[:SHORT], y=full.y[:SHORT])


def test_the_interval_score_is_made_of_the_quantile_losses_of_both_limits() -> None:
    rng = np.random.default_rng(0)
    low, high, y = -1.0 + rng.normal(size=50), 1.0 + rng.random(50), 3.0 * rng.normal(size=50)
    losses = sum(np.maximum(p * (y - q), (p - 1.0) * (y - q)) for p, q in ((0.1, low), (0.9, high)))
    np.testing.assert_allclose(np.asarray(winkler(low, high, y, 0.8))[low < high], np.asarray(losses / 0.1)[low < high])


def test_windows_widths_and_crossings_are_counted() -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=2 * WINDOW)
    y[WINDOW:] *= 2.0
    limits = {level: (np.full(len(y), -1.0 - level), np.full(len(y), 1.0 + level)) for level in LEVELS}
    limits[0.9][1][3] = 5.0  # higher than the limit of 95 %
    found = scored(limits, y)
    shares = [np.mean(np.abs(y[k : k + WINDOW]) <= 1.0 + MAIN) for k in range(WINDOW + 1)]
    assert (found["worst"], found["best"]) == pytest.approx((min(shares), max(shares)))
    assert found["width"] == pytest.approx(2.0 * (1.0 + MAIN))
    assert found["crossings"] == 1


def test_streams_made_by_formula_are_standardised_by_their_first_rows_and_always_the_same() -> None:
    made = list(synthetic(np.random.default_rng(0)))
    assert len({one.name for one in made}) == 5
    for one, again in zip(made, synthetic(np.random.default_rng(0)), strict=True):
        np.testing.assert_array_equal(one.y, again.y)
        np.testing.assert_allclose(one.X[:WARM_UP].std(axis=0), 1.0)
        assert (one.y[:WARM_UP].mean(), one.y[:WARM_UP].std()) == pytest.approx((0.0, 1.0))


def test_split_conformal_intervals_are_quantiles_of_the_errors_before() -> None:
    rng = np.random.default_rng(0)
    y, predicted = rng.normal(size=SHORT), np.zeros(SHORT)
    low, high = peers._split(y, predicted, None)[0.8]
    for row in (0, 30):
        errors = np.abs(y[peers.FIRST : WARM_UP + row])
        inside = (errors <= high[row]).sum()
        assert inside == int(np.ceil(0.8 * (len(errors) + 1)))
        assert low[row] == -high[row]


def test_a_refitted_model_never_predicts_a_row_that_it_has_learned(stream: Stream) -> None:
    seen: list[tuple[int, float]] = []

    class Recorder:
        def fit(self, X: np.ndarray, y: np.ndarray) -> "Recorder":
            self.last = float(X[-1, 0])
            return self

        def predict(self, X: np.ndarray) -> np.ndarray:
            seen.extend((int(row), self.last) for row in X[:, 0])
            return X[:, 0]

    numbered = stream._replace(X=np.arange(float(SHORT))[:, None])
    found = peers._refits(numbered, Recorder, None)
    np.testing.assert_array_equal(found[peers.FIRST :], np.arange(peers.FIRST, SHORT))
    assert all(row > last for row, last in seen)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_all_methods_can_be_measured(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    own = measure.measure_own(stream)
    assert set(own) == {
        f"{name} {kind}".strip() for name in measure.MODELS for kind in (measure.PLAIN, measure.ADAPTIVE)
    }
    assert not any(found["crossings"] for found in own.values())
    monkeypatch.setattr(peers, "_refitted", lambda one: {"last": np.append(0.0, one.y[:-1])})
    monkeypatch.setattr(peers, "_quantile_boosting", lambda one, memory: peers._between(np.zeros((SHORT, 10))))
    others = measure.measure_peers(stream)
    assert set(others) == {method for method in peers.METHODS if peers.HAS_MAPIE or method != peers.ACI}
    assert all(np.isfinite(measure.score(found)) for found in (own | others).values())


def test_the_page_is_that_of_the_stored_results() -> None:
    assert (page.DOCS / "evidence" / "intervals.md").read_text() == page.text(measure.read())


def test_fifteen_streams_have_results_of_every_method() -> None:
    found = measure.read()["streams"]
    assert len(found) == 15
    for stream in found.values():
        assert set(stream["methods"]) >= {*page.SHOWN, *page.INFORMATIVE}


def test_the_page_says_where_others_are_better_and_where_a_window_is_outside() -> None:
    results = measure.read()
    name, first = next(iter(results["streams"].items()))
    results["streams"] = {name: first}
    own = first["methods"][measure.ADAPTIVE]
    own["worst"] = 0.929
    rival = first["methods"][peers.ACI]
    rival["winkler"] = [0.5 * score for score in own["winkler"]]
    text = page.text(results).split("![")[0]
    assert f"{name} ({peers.ACI}: {measure.score(rival):.3f}, adaptive {measure.score(own):.3f})" in text
    assert f"occur on {name} (92.9 to" in text
    assert page.draw(page._methods(results)).startswith(b"\x89PNG")
