"""Images as rows of estimators, and the forms of covariance that are for wide layers."""

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_digits

import onepass
from onepass import BayesianCommittee, BayesianMLPClassifier, BayesianMLPRegressor, BayesianNetwork, Conv2D

X, Y = load_digits(return_X_y=True)
IMAGES = X.reshape(-1, 8, 8)
LAYERS = (Conv2D(4, 3, stride=2), 8)


def classifier(**options: Any) -> BayesianMLPClassifier:
    return BayesianMLPClassifier(LAYERS, image_shape=(8, 8), **options)


def test_an_estimator_learns_what_the_network_learns_from_standardised_images() -> None:
    model = classifier(warm_up=50, shuffle=False).fit(X[:150], Y[:150])
    scaled = (IMAGES - X[:50].mean()) / X[:50].std()
    network = BayesianNetwork((8, 8), LAYERS, 10, observation="categorical", intercept_scale=4.0)
    expected = network.learn(scaled[:150], Y[:150]).predict(scaled[150:170]).mean
    np.testing.assert_allclose(model.predict_proba(X[150:170]), expected, rtol=1e-6)


@pytest.mark.parametrize(
    "form",
    [
        lambda rows: rows.reshape(-1, 8, 8),
        lambda rows: rows.reshape(-1, 8, 8, 1),
        lambda rows: rows.reshape(-1, 8, 8).tolist(),
        lambda rows: pd.DataFrame(rows, columns=[f"p{i}" for i in range(64)]),
        csr_array,
    ],
    ids=["images", "with-channel", "lists", "frame", "sparse"],
)
def test_images_come_as_a_table_or_in_their_shape(form: Any) -> None:
    plain = classifier().fit(X[:120], Y[:120])
    model = classifier().fit(form(X[:120]), Y[:120])
    assert model.n_features_in_ == 64
    np.testing.assert_array_equal(model.predict_proba(form(X[120:130])), plain.predict_proba(X[120:130]))


def test_each_channel_has_one_scale() -> None:
    rng = np.random.default_rng(0)
    images = rng.normal([1.0, 50.0], [2.0, 30.0], size=(60, 4, 4, 2))
    images[:, 0, 0] = 0.0  # a dark corner
    model = BayesianMLPClassifier((3,), image_shape=(4, 4, 2), warm_up=40, shuffle=False).fit(images, np.arange(60) % 2)
    centre, scale = (
        values.reshape(4, 4, 2) for values in (model._learner.state.inputs.centre, model._learner.state.inputs.scale)
    )
    for channel in range(2):
        np.testing.assert_allclose(centre[:, :, channel], images[:40, :, :, channel].mean())
        np.testing.assert_allclose(scale[:, :, channel], images[:40, :, :, channel].std())


def test_a_bad_pixel_does_not_set_the_scale() -> None:
    wild = X[:100].copy()
    wild[3, 7] = 1e6
    model = classifier(outliers=0.05).fit(wild, Y[:100])
    assert model._learner.state.inputs.scale[0] == pytest.approx(X[:100].std(), rel=0.01)


def test_pixels_of_different_brightness_are_no_reason_to_warn_but_channels_are() -> None:
    bright = np.where(np.arange(64) == 0, 1e-6, 1.0)  # the corner
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classifier(standardize=False, shuffle=False).fit(X[:30] / 16 * bright, Y[:30])
    colours = np.stack([IMAGES[:30], IMAGES[:30] / 1e5], axis=-1)
    model = BayesianMLPClassifier((3,), image_shape=(8, 8, 2), standardize=False)
    with pytest.warns(UserWarning, match="differ in scale by a factor of 1e\\+05") as caught:
        model.fit(colours, Y[:30])
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"members": 2},
        {"drift": "auto"},
        {"prior_scale": "auto"},
        {"outliers": 0.05, "forgetting": 0.999},
        {"covariance": ("full", "kronecker", "full")},
        {"warm_up": 200},
    ],
    ids=lambda options: next(iter(options), "plain"),
)
def test_files_and_copies_learn_on_as_the_model_would(options: dict[str, Any], tmp_path: Path) -> None:
    model = classifier(**options).fit(X[:110], Y[:110])
    onepass.save(model, tmp_path / "model")
    others = [onepass.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))]
    expected = model.partial_fit(IMAGES[110:140], Y[110:140]).predict_proba(X[140:160])
    for other in others:
        assert other.get_params() == model.get_params()
        np.testing.assert_array_equal(other.partial_fit(X[110:140], Y[110:140]).predict_proba(X[140:160]), expected)
    again = clone(model)
    assert again.get_params() == model.get_params()
    assert again.fit(X[:110], Y[:110]).covariance_ == options.get("covariance", "kronecker")


def test_one_convolution_need_not_stand_in_a_tuple(tmp_path: Path) -> None:
    sizes: Any = np.array([4, 3, 8])
    model = BayesianMLPClassifier(Conv2D(sizes[0], sizes[1]), image_shape=(sizes[2], sizes[2])).fit(X[:20], Y[:20])
    onepass.save(model, tmp_path / "model")
    loaded = onepass.load(tmp_path / "model")
    assert (loaded.hidden_layer_sizes, loaded.image_shape) == (Conv2D(4, 3), (8, 8))


def test_regressors_take_images() -> None:
    brightness = np.column_stack([X.mean(axis=1), X[:, 20]])
    model = BayesianMLPRegressor(LAYERS, image_shape=(8, 8)).fit(IMAGES[:500], brightness[:500])
    assert model.score(X[500:], brightness[500:]) > 0.8


def test_a_committee_takes_images() -> None:
    committee = BayesianCommittee((8, 8), LAYERS, 10, members=2, observation="categorical")
    committee.learn(IMAGES[:50] / 16, Y[:50])
    flat = committee.predict(X[50:53] / 16).mean
    np.testing.assert_array_equal(committee.predict(IMAGES[50:53] / 16).mean, flat)
    np.testing.assert_allclose(committee.predict(IMAGES[50] / 16).mean, flat[0], rtol=1e-12)


@pytest.mark.parametrize("members", [1, 2])
@pytest.mark.parametrize("covariance", ["kronecker", ("kronecker", "full"), ["full", "kronecker"]])
def test_wide_layers_have_forms_of_their_own(covariance: Any, members: int) -> None:
    model = BayesianMLPClassifier((4,), covariance=covariance, members=members).fit(X[:150, 20:40], Y[:150])
    assert model.covariance_ == (covariance if isinstance(covariance, str) else tuple(covariance))
    assert model.score(X[150:400, 20:40], Y[150:400]) > 0.4


def test_the_structure_that_was_chosen_is_told() -> None:
    assert BayesianMLPClassifier((5,)).fit(X[:20], Y[:20]).covariance_ == "full"
    with pytest.raises(AttributeError, match="not fitted"):
        BayesianMLPClassifier((5,)).covariance_  # noqa: B018


@pytest.mark.parametrize(
    ("options", "rows", "message"),
    [
        ({"image_shape": None}, X, r"Conv2D\(.*\) needs images: pass their image_shape, such as \(28, 28\)"),
        (
            {"image_shape": (7, 8)},
            X,
            r"X must have shape \(n, 56\) or \(n, 7, 8\) with image_shape=\(7, 8\), got shape",
        ),
        ({"image_shape": (8, 8, 3)}, IMAGES, r"\(n, 192\) or \(n, 8, 8, 3\) .* got shape \(1797, 8, 8\)"),
        ({"image_shape": 64}, X, r"image_shape must be \(height, width\) or \(height, width, channels\), got 64"),
        ({"image_shape": (0, 8)}, X, "each number in image_shape must be a whole number of at least 1, got 0"),
        ({"hidden_layer_sizes": (5,), "image_shape": None}, IMAGES, r"for images pass image_shape=\(8, 8\)"),
        ({"hidden_layer_sizes": (5, Conv2D(4, 3))}, X, "put convolutions before dense layers"),
        ({"hidden_layer_sizes": (Conv2D(4, 9),)}, X, "is too large for an image of 8 x 8"),
        ({"covariance": "full"}, X, "convolutions need covariance='auto', 'kronecker' or a form per layer"),
        ({"covariance": ("kronecker", "full")}, X, "one form for each of the 3 layers of weights"),
        ({"covariance": ("full", "neuron", "full")}, X, r"covariance\[1\] must be one of 'kronecker', 'full'"),
        ({"covariance": "kron"}, X, "covariance must be one of .*'kronecker'"),
        ({"passes": 2, "refine": "ep"}, X, "refine='ep' needs covariance='full', got covariance='kronecker'"),
    ],
)
def test_mistakes_are_named(options: dict[str, Any], rows: Any, message: str) -> None:
    model = classifier().set_params(**options)
    with pytest.raises(ValueError, match=message):
        model.fit(rows, Y)


def test_a_network_names_the_shape_of_its_images() -> None:
    network = BayesianNetwork((8, 8), LAYERS)
    with pytest.raises(ValueError, match=r"\(8, 8\) for one image or \(n, 8, 8\), got shape \(2, 7, 8\)"):
        network.predict(np.zeros((2, 7, 8)))
    with pytest.raises(ValueError, match=r"n_features of images must be \(height, width\) or"):
        BayesianNetwork((8,), LAYERS)
