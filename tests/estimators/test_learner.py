"""The way of a row from a table to the engine: short, and with nothing done twice."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import onepass
from onepass import (
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    BayesianNetwork,
    BayesianPerceptron,
    BayesianPerceptronClassifier,
    BayesianPerceptronRegressor,
)
from onepass.beliefs import block, diagonal, full
from onepass.estimators import learner_of
from onepass.estimators.rows import Rows
from onepass.estimators.scaling import Scaling
from tests.helpers.savable_models import table

MOST_FRAMES = 7
FRAMES_OF_A_MIXTURE = 2  # more, where several models learn side by side and are weighed row by row
SOURCE = str(Path(onepass.__file__).parent)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 3))
Y = X @ [1.0, -2.0, 0.5]
LABELS = (Y > 0).astype(float)


KERNELS = {
    full: ("rows_root", "rows_dense", "learn_block"),
    diagonal: ("rows_diagonal", "rows_sparse", "learn_diagonal"),
    block: ("learn_blocks", "learn_batches"),
}


def frames_to_the_engine(monkeypatch: pytest.MonkeyPatch, learn: Callable[[], Any]) -> list[str]:
    """Python functions of the package that were running when a kernel was called, in the longest such chain."""
    longest: list[str] = []

    def watched(kernel: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            nonlocal longest
            chain, above = [], sys._getframe().f_back
            while above is not None:
                if above.f_code.co_filename.startswith(SOURCE):
                    chain.append(above.f_code.co_qualname)
                above = above.f_back
            longest = max(longest, chain[::-1], key=len)
            return kernel(*arguments)

        return call

    with monkeypatch.context() as patch:
        for module, names in KERNELS.items():
            for name in names:
                patch.setattr(module, name, watched(getattr(module, name)))
        learn()
    return longest


@pytest.mark.parametrize(
    ("estimator", "y"),
    [
        (BayesianPerceptronRegressor(standardize=False), Y),
        (BayesianPerceptronRegressor(prior_scale="auto", standardize=False), Y),
        (BayesianPerceptronRegressor(covariance="diagonal", standardize=False), Y),
        (BayesianPerceptronRegressor(standardize=True, warm_up=20), Y),
        (BayesianPerceptronClassifier(), LABELS),
        (BayesianPerceptronClassifier(prior_scale="auto"), LABELS),
        (BayesianMLPRegressor((4,), standardize=False), Y),
        (BayesianMLPRegressor((4,), prior_scale="auto", standardize=False), Y),
        (BayesianMLPClassifier((4,), standardize=False), LABELS),
    ],
    ids=lambda value: repr(value) if hasattr(value, "fit") else "",
)
@pytest.mark.parametrize("n", [1, 50])
def test_few_frames_lie_between_a_table_and_the_engine(
    estimator: Any, y: np.ndarray, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = table(X, Y)
    model.estimator = clone(estimator).fit(X, y)
    rows = Rows(X[:n], y[:n])
    chain = frames_to_the_engine(monkeypatch, lambda: model.learn(rows))
    assert chain[0] == "TabularModel.learn"
    mixture = FRAMES_OF_A_MIXTURE if estimator.prior_scale == "auto" else 0
    assert len(chain) <= MOST_FRAMES + mixture, chain
    assert model.estimator.n_seen_ == 50 + n


def test_an_identity_scales_nothing() -> None:
    rows = np.array([[1.0, -0.0], [2.0, 3.0]])
    assert Scaling.none(2)(rows) is rows
    loaded = Scaling.from_arrays(Scaling.none(2).arrays, 2)
    assert loaded(rows) is rows
    assert not Scaling(np.zeros(2), np.array([1.0, 2.0])).is_identity
    assert not Scaling(np.array([0.0, 1.0]), np.ones(2)).is_identity


@pytest.mark.parametrize(
    "estimator",
    [
        BayesianPerceptronRegressor(standardize=False),
        BayesianPerceptronRegressor(prior_scale="auto", standardize=False),
    ],
)
def test_rows_reach_the_models_as_they_were_given(estimator: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    estimator.fit(X, Y)
    seen: list[Any] = []
    mixture = estimator._learner.state.mixtures[0]
    monkeypatch.setattr(mixture, "learn", lambda rows, column: seen.append((rows, column)))
    learner_of(estimator).learn(Rows(X[:5], Y[:5]))
    ((rows, column),) = seen
    assert rows.base is X  # a view: neither copied nor scaled
    assert np.shares_memory(column, Y)


@pytest.mark.parametrize("standardize", [False, True])
def test_fit_builds_every_network_once(standardize: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[Any] = []
    start = BayesianNetwork.__init__

    def counted(self: Any, *args: Any, **options: Any) -> None:
        built.append(self)
        start(self, *args, **options)

    monkeypatch.setattr(BayesianNetwork, "__init__", counted)
    BayesianMLPRegressor((4,), standardize=standardize, warm_up=20, passes=1).fit(X, np.column_stack([Y, -Y]))
    assert len(built) == 2


def test_weights_of_nothing_but_zeros_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        BayesianPerceptronRegressor(standardize=False).fit(X, Y, sample_weight=np.zeros(50))


def test_a_fit_that_fails_leaves_no_fitted_estimator() -> None:
    model = BayesianPerceptronClassifier(standardize=True, covariance="block")
    with pytest.raises(ValueError, match="covariance must be one of"):
        model.fit(X, Y > 0)
    assert not model.__sklearn_is_fitted__()


@pytest.mark.parametrize("passes", [1, 3])
def test_a_warm_up_that_fails_is_as_if_it_had_not_been(passes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = BayesianPerceptronRegressor(standardize=True, warm_up=20, passes=passes).fit(X[:10], Y[:10])
    learn = BayesianPerceptron.learn

    def failing(self: Any, rows: Any, *args: Any, **options: Any) -> Any:
        if len(rows) != 20:  # those of the warm-up itself
            raise KeyboardInterrupt
        return learn(self, rows, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(BayesianPerceptron, "learn", failing)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(X[10:45], Y[10:45])
    assert (model.n_seen_, model.log_evidence_) == (10, 0.0)
    whole = BayesianPerceptronRegressor(standardize=True, warm_up=20).fit(X[:45], Y[:45])
    np.testing.assert_array_equal(model.partial_fit(X[10:45], Y[10:45]).coef_, whole.coef_)
    assert model.log_evidence_ == whole.log_evidence_
    with monkeypatch.context() as patch:
        patch.setattr(BayesianPerceptron, "learn", failing)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, Y)
    assert not model.__sklearn_is_fitted__()


def test_rows_with_weights_that_fail_leave_the_noise_as_it_was() -> None:
    model = BayesianPerceptronRegressor(noise=0.5, standardize=False).fit(X, Y)
    with pytest.raises(ValueError, match="overflow"):
        model.partial_fit([[1.0, 1.0, 1.0], [1e300, 1e300, 1e300]], [1.0, 1e300], sample_weight=[1.0, 0.25])
    assert model.noise_ == 0.5


@pytest.mark.parametrize("options", [{}, {"noise": 0.5}, {"standardize": True, "warm_up": 20}])
def test_rows_seen_count_once_whatever_their_weight(options: dict[str, Any], tmp_path: Path) -> None:
    weights = np.tile([0.0, 0.5, 1.0, 2.0, 3.5], 10)
    for method in ("partial_fit", "predict_then_learn"):
        model = BayesianPerceptronRegressor(**{"standardize": False, **options})
        getattr(model, method)(X, Y, sample_weight=weights)
        assert model.n_seen_ == 40, method
        assert model.weight_sum_ == pytest.approx(70.0)
        onepass.save(model, tmp_path / "model")
        again = onepass.load(tmp_path / "model").partial_fit(X[:5], Y[:5])
        assert again.n_seen_ == 45


def test_rows_around_one_of_weight_0_are_learned_all_or_none() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(320, 2)), rng.normal(size=320)
    model = BayesianPerceptronRegressor().fit(X[:300], y[:300])
    before, bad, weights = model.predict(X), X[300:].copy(), np.ones(20)
    bad[15], weights[10] = 1e200, 0.0
    with pytest.raises(ValueError, match=r"too large|finite|overflow"):
        model.predict_then_learn(bad, y[300:], sample_weight=weights)
    np.testing.assert_array_equal(model.predict(X), before)
