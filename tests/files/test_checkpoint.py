import copy
import json
import os
import pickle
import random
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file
from sklearn.pipeline import make_pipeline

import onepass
from onepass import BayesianPerceptron, CheckpointError, PiecewiseLinear, Quadrature
from onepass.activations import Rescaled, Sigmoid, as_activation
from onepass.engine.step import LARGEST, STATE_SIZE
from onepass.files.checkpoint import _arrays, _checked_header, _checksum, _encoded
from onepass.files.registry import exported, savable_names
from onepass.layers import Conv2D
from onepass.models.mixture import with_drift
from onepass.river import MLPClassifier, PerceptronClassifier, PerceptronRegressor, SoftmaxClassifier
from tests.helpers.savable_models import LINES, models, n_learned, predicted

COUPLED = 4.0 * np.eye(6) + 1.0
MODELS: list[dict[str, Any]] = [
    {},
    {"activation": "linear", "noise": "learn"},
    {"activation": "relu", "noise": "learn", "noise_window": 30, "bias": False},
    {"activation": "exp"},
    {"activation": "tanh", "noise": 0.1, "moments": "paper", "update": "kalman"},
    {"activation": PiecewiseLinear([0.0, 0.3, 1.0], [-1.0, 0.1], 0.2), "noise": 0.3},
    {"activation": Rescaled(Sigmoid(), 0.7, 1.3, -0.1), "noise": 0.3},
    {"covariance": "diagonal", "forgetting": 0.98},
    {"forgetting": 0.99, "cov": 4.0},
    {"process_noise": 1e-4},
    {"dtype": "float32"},
    {"kernel": "blocks"},
    {"kernel": "reference", "activation": "probit"},
    {"outliers": 0.05},
    {"activation": "linear", "noise": "learn", "outliers": 0.05, "cov": 9.0},
    {"activation": "relu", "noise": 0.1, "outliers": 0.2, "forgetting": 0.99, "cov": COUPLED},
    {"activation": "linear", "noise": "learn", "outliers": 0.05, "covariance": "diagonal", "dtype": "float32"},
    {"activation": "exp", "outliers": 0.05, "kernel": "blocks", "drift": 1e-3},
    {"activation": "linear", "noise": "learn", "drift": "auto"},
    {"activation": "linear", "noise": "learn", "drift": "auto", "outliers": 0.05},
]


def targets(options: dict[str, Any], scores: np.ndarray) -> np.ndarray:
    if options.get("activation", "sigmoid") in ("sigmoid", "probit"):
        return (scores > 0).astype(float)
    return np.floor(np.abs(scores)) if options["activation"] == "exp" else scores


def taught(options: dict[str, Any], n_features: int = 5) -> tuple[Any, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, n_features))
    y = targets(options, X[:, 0] - X[:, 1] + rng.normal(size=120))
    return with_drift(BayesianPerceptron, n_features, **options).learn(X[:80], y[:80]), X[80:], y[80:]


def same(one: Any, other: Any) -> None:
    parameters, arrays = exported(one)
    others, other_arrays = exported(other)
    assert parameters == others
    assert set(arrays) == set(other_arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, other_arrays[name], strict=True, err_msg=name)


@pytest.mark.parametrize("options", MODELS, ids=str)
def test_a_loaded_model_goes_on_bit_for_bit(options: dict[str, Any], tmp_path: Path) -> None:
    model, X, y = taught(options)
    onepass.save(model, tmp_path / "model")
    loaded = onepass.load(tmp_path / "model")
    same(model, loaded)
    for one in (model, loaded):
        one.learn(X, y)
        for x, target in zip(X, y, strict=True):
            one.learn(x, float(target))
    same(model, loaded)
    assert loaded.log_evidence == model.log_evidence
    for part, other in zip(model.predict(X).moments, loaded.predict(X).moments, strict=True):
        np.testing.assert_array_equal(part, other)


def test_a_large_covariance_goes_on_in_the_form_it_was_held_in(tmp_path: Path) -> None:
    model, X, y = taught({}, n_features=160)
    assert model.export_state()[0]["belief"]["needs_square_root"] is False
    assert "covariance" in model.export_state()[1]
    onepass.save(model, tmp_path / "model")
    loaded = onepass.load(tmp_path / "model")
    same(model.learn(X, y), loaded.learn(X, y))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copy_learns_by_itself(copied: Callable[[Any], Any]) -> None:
    model, X, y = taught({})
    model.learn(X[0], float(y[0]))
    twin = copied(model)
    mean = model.mean
    twin.learn(X[1], float(y[1]))
    np.testing.assert_array_equal(model.mean, mean)
    assert twin.n_seen == model.n_seen + 1


def test_other_tools_can_read_the_file(tmp_path: Path) -> None:
    model, _, _ = taught({})
    file = tmp_path / "model.safetensors"
    onepass.save(model, file)
    np.testing.assert_array_equal(load_file(file)["mean"], model.mean)
    with safe_open(file, "numpy") as opened:
        metadata = opened.metadata()
    assert metadata["class"] == "BayesianPerceptron"
    assert metadata["library_version"] == onepass.__version__
    assert json.loads(metadata["parameters"])["n_features"] == 5


def test_a_function_of_its_own_cannot_be_saved(tmp_path: Path) -> None:
    for activation in (Quadrature(np.sin), Rescaled(Quadrature(np.sin), 1.0, 2.0, 0.0)):
        with pytest.raises(TypeError, match="is not built in, so a model with it can't be saved"):
            onepass.save(BayesianPerceptron(1, activation), tmp_path / "model")
    with pytest.raises(TypeError, match=r"model must be one of .*BayesianPerceptron, .*got dict"):
        onepass.save({}, tmp_path / "model")
    with pytest.raises(TypeError, match=r"got Pipeline; save the estimator inside a pipeline .*pipeline\[-1\]"):
        onepass.save(make_pipeline(onepass.BayesianPerceptronRegressor()), tmp_path / "model")
    assert os.listdir(tmp_path) == []


def test_a_place_that_cannot_be_written_is_named_as_it_was_given(tmp_path: Path) -> None:
    model, _, _ = taught({})
    with pytest.raises(IsADirectoryError, match=f"this is a folder: '{tmp_path}'"):
        onepass.save(model, tmp_path)
    with pytest.raises(FileNotFoundError, match=r"the folder '.*/none' does not exist: '.*/none/model'"):
        onepass.save(model, tmp_path / "none" / "model")
    assert os.listdir(tmp_path) == []


def test_every_class_is_loaded_as_it_was_saved(tmp_path: Path) -> None:
    numbers = np.random.default_rng(1).normal(size=(5, 3)).tolist()
    saved = models()
    for name, model in saved.items():
        X = LINES[:12] if name == "table-of-texts" else numbers
        onepass.save(model, tmp_path / "model")
        loaded = onepass.load(tmp_path / "model")
        same(loaded, model)
        assert n_learned(loaded) == 40, name
        np.testing.assert_array_equal(predicted(loaded, X), predicted(model, X), err_msg=name)
    assert {type(model).__name__ for model in saved.values()} == set(savable_names())


# What is not a model must be refused, before its own figures make the loader allocate memory.


def content(options: dict[str, Any] | None = None) -> bytes:
    model, _, _ = taught(options or {})
    return _encoded(type(model).__name__, *model.export_state())


def refused(file: Path, data: bytes, words: str) -> None:
    file.write_bytes(data)
    tracemalloc.start()
    try:
        with pytest.raises(CheckpointError, match=words):
            onepass.load(file)
        assert tracemalloc.get_traced_memory()[1] < 20 * len(data) + 2**22
    finally:
        tracemalloc.stop()


def with_header(change: Callable[[dict[str, Any]], None], data: bytes) -> bytes:
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    change(header)
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data[8 + length :]


def with_state(change: Callable[[dict[str, Any], dict[str, np.ndarray]], None], options: Any = None) -> bytes:
    """A file whose checksum is right and whose state is not."""
    parameters, arrays = taught(options or {})[0].export_state()
    change(parameters, arrays)
    return _encoded("BayesianPerceptron", parameters, arrays)


def test_files_that_are_none_of_ours_are_refused(tmp_path: Path) -> None:
    file, data = tmp_path / "model", content()
    refused(file, b"", "not a model file of onepass.*or it is cut short")
    refused(file, b"PK\x03\x04" + bytes(100), "not a model file of onepass.*or it is cut short")
    refused(file, pickle.dumps({"a": 1}), "not a model file of onepass.*or it is cut short")
    refused(file, (2**63).to_bytes(8, "little") + data[8:], "not a model file of onepass.*or it is cut short")
    refused(file, data[:-1], "cut short or corrupted")
    refused(file, data + b"\0", "cut short or corrupted")
    refused(file, data[:100], "not a model file of onepass.*or it is cut short")
    refused(file, data[:-20] + bytes([data[-20] ^ 1]) + data[-19:], "checksum does not match")
    from safetensors.numpy import save

    refused(file, save({"mean": np.zeros(3)}), "not a model file of onepass")
    refused(file, save({"mean": np.zeros(3)}, {"format": "np"}), "not a model file of onepass")
    deep = b"[" * 200_000
    refused(file, len(deep).to_bytes(8, "little") + deep, "no JSON header")
    deep = b'{"a":' * 200_000
    refused(file, len(deep).to_bytes(8, "little") + deep, "JSON")
    with file.open("wb") as sparse:
        sparse.write((2**30).to_bytes(8, "little"))
        sparse.truncate(2**31)
    with pytest.raises(CheckpointError, match="has a header of 1073741824 bytes"):
        onepass.load(file)
    with pytest.raises(CheckpointError, match="is not a file"):
        onepass.load(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CheckpointError, match="is not a file"):
        onepass.load(tmp_path / "pipe")
    with pytest.raises(FileNotFoundError):
        onepass.load(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        (
            "format_version",
            "3",
            f"format version 3, written by onepass '{onepass.__version__}'.*reads version 2 only: upgrade onepass",
        ),
        ("format_version", "1", "format version 1, written by onepass .*reads version 2 only: learn the model again"),
        ("format_version", "9" * 5000, "no format version"),
        ("format_version", None, "no format version"),
        ("class", "os.system", "checksum"),
        ("parameters", 3, "metadata must have the text fields"),
        ("extra", "3", "metadata must have the text fields"),
    ],
)
def test_metadata_that_cannot_be(field: str, value: Any, words: str, tmp_path: Path) -> None:
    refused(tmp_path / "model", with_header(lambda head: head["__metadata__"].update({field: value}), content()), words)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"shape": [2**40, 2**40]}, "does not begin where the one before it ends"),
        ({"shape": [2**60]}, "impossible shape"),
        ({"shape": [-6]}, "impossible shape"),
        ({"shape": [0, 2**40, 2**40], "data_offsets": [0, 0]}, "bytes|does not begin|read"),
        ({"shape": "6"}, "impossible shape"),
        ({"shape": [1] * 1000}, "impossible shape"),
        ({"dtype": "F16"}, "dtype 'F16'; allowed"),
        ({"dtype": ["F64"]}, "dtype"),
        ({"data_offsets": [0, 2**62]}, "does not begin where"),
        ({"data_offsets": [0.0, 48.0]}, "invalid data_offsets"),
        ({"data_offsets": None}, "invalid data_offsets"),
        ({"more": 1}, "not described by"),
    ],
)
def test_arrays_that_cannot_be(entry: dict[str, Any], words: str, tmp_path: Path) -> None:
    refused(tmp_path / "model", with_header(lambda header: header["mean"].update(entry), content()), words)


def spoiled(name: str, value: float, index: Any = -1) -> Callable[[Any, Any], None]:
    def change(parameters: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        arrays[name][index] = value

    return change


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        (spoiled("mean", np.nan), {}, "mean holds numbers that are not finite"),
        (spoiled("root", np.inf), {}, "root holds numbers that are not finite"),
        (spoiled("root", 1.0, (0, 1)), {}, "root has entries above its diagonal"),
        (spoiled("root", 1e200, (0, 0)), {}, "root has entries above .*, whose squares are beyond float64"),
        (spoiled("running", np.nan, STATE_SIZE - 1), {}, "running holds numbers that are not finite"),
        (spoiled("running", np.nan), {}, "trust holds numbers that are not finite"),
        (spoiled("running", -1.0), {}, "trust holds numbers that are not finite, or negative"),
        (spoiled("running", -1.0, LARGEST), {}, "largest -1, which must not be negative"),
        (spoiled("running", -1.0, 0), {}, "noise -1, which must not be negative"),
        (spoiled("process_noise", -1.0), {}, "process_noise must not be negative"),
        (spoiled("prior_variances", np.nan), {}, "prior_variances holds"),
        (spoiled("variance", -1.0), {"covariance": "diagonal"}, "variance has the entry -1"),
        (spoiled("covariance", -1.0, (2, 2)), {"kernel": "blocks"}, "diagonal of the covariance has the entry -1"),
        (spoiled("covariance", 50.0, (2, 1)), {"kernel": "blocks"}, "covariance is not positive semi-definite"),
        (lambda p, a: p.update(n_features=10**12), {}, "mean has shape"),
        (lambda p, a: p.update(n_features="5"), {}, "n_features must be a whole number"),
        (lambda p, a: p.pop("bias"), {}, "it lacks 'bias'"),
        (lambda p, a: p.update(activation={"kind": "eval"}), {}, "unknown kind 'eval'"),
        (lambda p, a: p.update(activation="sigmoid"), {}, "activation must be a table, got 'sigmoid'"),
        (lambda p, a: p.update(forgetting=7), {}, "forgetting must be in"),
        (lambda p, a: p.update(belief={"form": "kronecker"}), {}, "unknown form 'kronecker'"),
        (lambda p, a: p.update(belief=None), {}, "belief must be a table, got 'None'"),
        (lambda p, a: a.update(mean=np.zeros(6, dtype=np.int64)), {}, "mean has dtype int64"),
        (lambda p, a: a.update(mean=np.zeros(6, dtype=np.float32)), {}, "root has dtype float64 where float32"),
        (lambda p, a: a.pop("mean"), {}, "it lacks 'mean'"),
        (spoiled("running", np.nan), {"outliers": 0.1}, "trust holds numbers that are not finite"),
        (spoiled("running", np.inf, STATE_SIZE + 1), {"outliers": 0.1}, "trust holds numbers that are not finite"),
        (spoiled("running", 0.0, STATE_SIZE), {"outliers": 0.1}, "trust holds numbers"),
        (spoiled("running", -1.0, STATE_SIZE + 6), {"outliers": 0.1}, "trust holds .*, or negative"),
        (
            lambda p, a: a.update(running=a["running"][:-5]),
            {"outliers": 0.1},
            r"trust has shape \((4|12),\) where \(17,\)",
        ),
        (lambda p, a: a.update(running=a["running"][:STATE_SIZE]), {"outliers": 0.1}, r"trust has shape \(0,\)"),
        (lambda p, a: a.update(running=a["running"][:STATE_SIZE]), {}, r"trust has shape \(0,\) where \(4,\)"),
        (lambda p, a: a.update(running=a["running"][:5]), {}, "running has shape"),
        (lambda p, a: p.update(outliers=0.1), {}, r"trust has shape \((4|12),\) where \(17"),
        (lambda p, a: p.update(outliers=0.0), {"outliers": 0.1}, r"trust has shape \(17,\) where \(4,\)"),
        (lambda p, a: p.pop("outliers"), {}, "it lacks 'outliers'"),
        (lambda p, a: p.pop("drift"), {}, "it lacks 'drift'"),
        (lambda p, a: a.pop("prior_variances"), {}, "it lacks 'prior_variances'"),
        (lambda p, a: p.update(outliers=0.7), {"outliers": 0.1}, r"outliers must be a number in \[0, 0.5\)"),
        (lambda p, a: p.update(outliers="few"), {"outliers": 0.1}, "outliers must be"),
        (lambda p, a: p.update(outliers=None), {"outliers": 0.1}, "outliers must be"),
        (spoiled("prior_mean", np.nan), {"mean": np.ones(6)}, "prior_mean holds numbers that are not finite"),
        (lambda p, a: p.update(drift=-1.0), {}, "drift must be"),
    ],
)
def test_states_that_cannot_be(change: Any, options: dict[str, Any], words: str, tmp_path: Path) -> None:
    refused(tmp_path / "model", with_state(change, options), words)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda p, a: p.update(hidden=[10**12]), "mean has shape"),
        (lambda p, a: p.update(n_features=10**12), "mean has shape"),
        (lambda p, a: p.update(covariance="full"), "covariance has shape"),
        (lambda p, a: p.update(covariance="magic"), "covariance must be one of"),
        (lambda p, a: p.update(n_seen=-1), "n_seen must be a whole number"),
        (lambda p, a: p.update(log_evidence="much"), "log_evidence must be a finite number"),
        (spoiled("mean", np.nan), "mean holds numbers that are not finite"),
        (spoiled("covariance", -1.0, 0), "diagonal of the covariance has the entry -1"),
        (spoiled("covariance", 1e3, 4), "not positive semi-definite"),
        (spoiled("scales", -1.0, (0, 0)), "scales has the entry -1"),
        (spoiled("scales", 0.0, (0, 0)), "scales has a noise or a predictive scale of 0"),
        (spoiled("scales", 0.0, (2, 0)), "scales has a noise or a predictive scale of 0"),
        (spoiled("scales", np.inf, (4, 0)), "scales holds numbers that are not finite"),
        (lambda p, a: p["prior"].update(weight_std=-1.0), "weight_std must be"),
        (lambda p, a: p["prior"].update(output_std="wide"), "output_std must be"),
        (lambda p, a: p["prior"].update(noise=0.0), "noise must be"),
        (lambda p, a: p["prior"].update(most_inputs=0), "most_inputs must be"),
        (lambda p, a: p["prior"].update(fan_in=2), "fan_in must be"),
        (lambda p, a: p["prior"].update(depth=2), "depth"),
        (lambda p, a: p.update(prior=[1.0]), "prior must be a table"),
        (lambda p, a: p.update(calibrate="often"), "calibrate must be True, False or 'auto'"),
        (spoiled("trust", -1.0, 2), "trust holds numbers that are not finite, or negative"),
        (spoiled("trust", np.nan), "trust holds numbers that are not finite"),
        (lambda p, a: a.update(trust=a["trust"].astype(np.float32)), "trust has dtype float32"),
        (lambda p, a: a.pop("trust"), "it lacks 'trust'"),
        (lambda p, a: p.update(outliers=0.0), r"trust has shape \(17,\) where \(4,\)"),
    ],
)
def test_networks_that_cannot_be(change: Any, words: str, tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(40, 3))
    network = onepass.BayesianNetwork(3, (4,), covariance="neuron", outliers=0.05).learn(rows, rows[:, 0])
    parameters, arrays = network.export_state()
    onepass.save(network, tmp_path / "model")
    same(network.learn(rows, rows[:, 1]), onepass.load(tmp_path / "model").learn(rows, rows[:, 1]))
    change(parameters, arrays)
    refused(tmp_path / "model", _encoded("BayesianNetwork", parameters, arrays), words)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda p, a: p.update(n_features=[10**6, 10**6]), "mean has shape"),
        (lambda p, a: p.update(n_features=[5, 4, 1, 1]), "n_features of images must be .height, width. or"),
        (lambda p, a: p.update(n_features=[20]), "n_features of images must be .height"),
        (lambda p, a: p.update(n_features=[5, -4]), "must be a whole number of at least 1, got -4"),
        (lambda p, a: p.update(n_features=[5, "4"]), "must be a whole number of at least 1"),
        (lambda p, a: p.update(n_features=[5, [4]]), "must be a whole number of at least 1"),
        (lambda p, a: p.update(n_features=20), "needs images, got rows of 20 numbers"),
        (lambda p, a: p["hidden"][0].update(filters=10**12), "mean has shape"),
        (lambda p, a: p["hidden"][0].update(kernel=10**12), "is too large for an image"),
        (lambda p, a: p["hidden"][0].update(kernel=-2), "kernel must be a whole number"),
        (lambda p, a: p["hidden"][0].update(pool=2.0), "pool must be a whole number"),
        (lambda p, a: p["hidden"][0].update(padding=1), "padding"),
        (lambda p, a: p["hidden"][0].pop("kernel"), "kernel"),
        (lambda p, a: p["hidden"].reverse(), "put convolutions before"),
        (lambda p, a: p.update(hidden=5), "hidden must be a list of layers"),
        (lambda p, a: p.update(covariance="full"), "convolutions need covariance='auto'"),
        (lambda p, a: p.update(covariance=["full", "kronecker"]), "one form for each of the 3 layers"),
        (lambda p, a: p.update(covariance=["kronecker"] * 3), r"covariance\[0\] must be 'full' for Conv2D"),
        (lambda p, a: p.update(covariance=["full", "full", 3]), r"covariance\[2\] must be one of"),
        (lambda p, a: p.update(covariance=["full", "full", "full"]), "covariance has shape"),
        (lambda p, a: p.update(covariance={"full": 1}), "covariance must be one of"),
        (lambda p, a: p["prior"].update(variance_share=-1.0), r"variance_share must be in \(0, 1\]"),
        (lambda p, a: p["prior"].update(variance_share="all"), "variance_share must be a number"),
        (spoiled("covariance", np.inf), "covariance holds numbers that are not finite"),
        (lambda p, a: a.update(covariance=a["covariance"].astype(np.float32)), "covariance has dtype float32"),
    ],
)
def test_layered_networks_that_cannot_be(change: Any, words: str, tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(40, 20))
    network = onepass.BayesianNetwork((5, 4), (Conv2D(3, 2), 4)).learn(rows, rows[:, 0])
    parameters, arrays = network.export_state()
    parameters = json.loads(json.dumps(parameters))
    change(parameters, arrays)
    refused(tmp_path / "model", _encoded("BayesianNetwork", parameters, arrays), words)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (spoiled("weights", -0.5, 0), "weights of a mixture must not be negative"),
        (spoiled("weights", np.nan, 0), "weights holds numbers that are not finite"),
        (spoiled("count", 0.0, 0), "must be above 0"),
        (spoiled("noise", 0.0, (0, 0)), "must be above 0"),
        (spoiled("recent", np.inf, (0, 0)), "recent holds numbers that are not finite"),
        (lambda p, a: a.update(recent=np.zeros((2, 51))), "recent has shape"),
        (lambda p, a: a.update(recent=np.zeros(2)), "recent has shape"),
        (lambda p, a: p.update(weighting="switching"), "hypotheses of drift"),
        (lambda p, a: p["members"].pop(), "weights has shape"),
        (lambda p, a: p["members"][0]["state"].update(n_outputs=2), "mean has shape"),
        (lambda p, a: p.update(members={"0": 1}), "members"),
        (lambda p, a: p.update(members=[1, 2]), "member"),
    ],
)
def test_committees_that_cannot_be(change: Any, words: str, tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(40, 3))
    committee = onepass.BayesianCommittee(3, (4,), members=2).learn(rows, rows[:, 0])
    parameters, arrays = committee.export_state()
    parameters = json.loads(json.dumps(parameters))
    change(parameters, arrays)
    refused(tmp_path / "model", _encoded("Mixture", parameters, arrays), words)


def test_a_layer_that_files_do_not_know_is_refused_when_it_is_saved(tmp_path: Path) -> None:
    class Wide(Conv2D):
        pass

    network = onepass.BayesianNetwork((4, 4), (Wide(2, 2),))
    with pytest.raises(TypeError, match=r"Wide is a layer that files don't know.*onepass\.layers\.register"):
        onepass.save(network, tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_small_file_cannot_make_a_large_convolution(tmp_path: Path) -> None:
    network = onepass.BayesianNetwork((4, 4), (Conv2D(1, 1, pool=4),))
    parameters, arrays = network.export_state()
    parameters.update(n_features=[10**6, 10**6])
    for own in ({"pool": 10**6}, {"pool": 1, "stride": 10**6}):
        parameters["hidden"][0].update(own)
        refused(tmp_path / "model", _encoded("BayesianNetwork", parameters, arrays), "use a larger stride or smaller")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda p, a: p.update(n_features=10**12), "centre has shape"),
        (lambda p, a: p["arguments"].update(code="print()"), "code"),
        (lambda p, a: p["arguments"].update(prior_scale=-1), "prior_scale must be"),
        (lambda p, a: p.update(feature_names=["a"]), "feature names must be 3 strings"),
        (lambda p, a: p.update(classes=[1, 1]), "classes must be at least two different ones"),
        (lambda p, a: p.update(classes_dtype="V8"), "classes must be numbers or strings"),
        (lambda p, a: p["mixtures"][0].update(members=[]), "must have members"),
        (lambda p, a: p["mixtures"][0].update(weighting="Popen"), "weighting must be"),
        (lambda p, a: p["mixtures"][0]["members"][0].update({"class": "Popen"}), "it lacks 'Popen'"),
        (spoiled("inputs/scale", 0.0), "scale has the entry 0"),
        (spoiled("mixture/0/evidence", np.nan), "evidence holds numbers that are not finite"),
        (spoiled("waiting/rows", np.inf), "rows holds numbers that are not finite"),
    ],
)
def test_estimators_that_cannot_be(change: Any, words: str, tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(40, 3))
    model = onepass.BayesianPerceptronClassifier(standardize=True, prior_scale="auto").fit(rows, rows[:, 0] > 0)
    parameters, arrays = exported(model)
    change(parameters, arrays)
    refused(tmp_path / "model", _encoded("BayesianPerceptronClassifier", parameters, arrays), words)


def mutant(rng: random.Random, data: bytes) -> bytes:
    """Bytes changed, cut, added or moved; in every other one the checksum is put right, so that it gets further."""
    damaged = bytearray(data)
    length = 8 + int.from_bytes(data[:8], "little")
    for _ in range(rng.choice([1, 1, 2, 5, 30])):
        where = rng.randrange(len(damaged) if rng.random() < 0.4 else min(length, len(damaged)))
        kind = rng.randrange(5)
        if kind == 0:
            damaged[where] = rng.randrange(256)
        elif kind == 1:
            damaged[where] ^= 1 << rng.randrange(8)
        elif kind == 2:
            del damaged[where : where + rng.randrange(1, 20)]
        elif kind == 3:
            damaged[where:where] = rng.choice(
                [b"0", b"9999", b"-", b"[", b'"', b"\0" * 8, b"\xff" * 8, b"1e999", b"NaN"]
            )
        else:
            piece = damaged[where : where + rng.randrange(1, 40)]
            goal = rng.randrange(len(damaged))
            damaged[goal : goal + len(piece)] = piece
        if len(damaged) < 20:
            break
    return mended(bytes(damaged)) if rng.random() < 0.5 else bytes(damaged)


def mended(data: bytes) -> bytes:
    length = int.from_bytes(data[:8], "little")
    try:
        metadata, table = _checked_header(data[8 : 8 + length], len(data) - 8 - length)
        checksum = _checksum(metadata, _arrays(data[8 + length :], table))
        return with_header(lambda header: header["__metadata__"].update(checksum=checksum), data)
    except (CheckpointError, ValueError):
        return data


def composites() -> list[bytes]:
    """Files of networks, estimators and River's models."""
    rows = np.random.default_rng(0).normal(size=(40, 3))
    labels, classes = (rows[:, 0] > 0).astype(int), np.digitize(rows[:, 0], [-0.5, 0.5])
    estimators: list[Any] = [
        onepass.BayesianPerceptronClassifier(standardize=True, prior_scale="auto").fit(rows, labels),
        onepass.BayesianPerceptronRegressor(standardize=True, warm_up=20).fit(rows, rows),
        onepass.BayesianPerceptronClassifier().fit(rows, classes),
        onepass.BayesianMLPRegressor((3,)).fit(rows, rows[:, 0]),
        onepass.BayesianNetwork(3, (4,), covariance="neuron").learn(rows, rows[:, 0]),
        onepass.BayesianNetwork(3, (4,), outliers=0.05).learn(rows, rows[:, 0]),
        onepass.Mixture.over_drift(onepass.BayesianNetwork, 3, (4,)).learn(rows, rows[:, 0]),
        onepass.BayesianNetwork((3, 1), (Conv2D(2, 1), 2)).learn(rows, rows[:, 0]),
        onepass.PerceptronFleet(3, outliers=0.05).learn(rows, labels, keys=labels),
    ]
    river: list[Any] = [
        PerceptronClassifier(missing="mean"),
        PerceptronRegressor(standardize=True),
        SoftmaxClassifier(),
        MLPClassifier((3,), members=2),
        MLPClassifier((3,)),
    ]
    for model, label in zip(river, (True, 5.0, "yes", True), strict=False):  # the last has learned nothing
        model.learn_one({"a": 1.0, "b": -1.0}, label)
    return [_encoded(type(model).__name__, *exported(model)) for model in [*estimators, *river]]


def fuzz(file: Path, seed: int, n: int) -> int:
    """Return the number of mutants that were refused."""
    rng = random.Random(seed)
    originals = [content(options) for options in MODELS] + composites()
    count = 0
    for _ in range(n):
        data = mutant(rng, rng.choice(originals))
        file.write_bytes(data)
        try:
            model = onepass.load(file)
        except CheckpointError:
            count += 1
        else:
            arrays = exported(model)[1]  # a change that left a model, such as another weight
            for name, array in arrays.items():
                unbounded = name.endswith(("running", "trust", "window"))  # rows since an alarm, or behind a noise
                assert np.isfinite(array).all() or (unbounded and not np.isnan(array).any())
    return count


def test_damaged_files_are_refused_or_hold_a_model(tmp_path: Path) -> None:
    assert fuzz(tmp_path / "model", seed=1, n=500) > 400


@pytest.mark.slow
def test_ten_thousand_damaged_files_are_refused_or_hold_a_model(tmp_path: Path) -> None:
    assert fuzz(tmp_path / "model", seed=2, n=10_000) > 8_000


def under_fire(file: Path, rounds: int) -> list[int]:
    script = Path(__file__).parents[1] / "helpers" / "saving_under_fire.py"
    done = subprocess.run(
        [sys.executable, str(script), str(file), str(rounds)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return [int(word) for word in done.stdout.split()]


def test_a_kill_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    old, new = under_fire(tmp_path / "model", 40)
    assert old + new == 40
    assert new >= 20  # the rounds that await a save


@pytest.mark.slow
def test_two_hundred_kills_leave_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    old, new = under_fire(tmp_path / "model", 200)
    assert old + new == 200
    assert new >= 100


def test_named_activations_are_those_they_were() -> None:
    from onepass.activations import NAMES
    from onepass.files.state import decode_activation, encode_activation

    for name in NAMES:
        for moments in ("exact", "paper"):
            activation = as_activation(name, moments)
            again = decode_activation(json.loads(json.dumps(encode_activation(activation))))
            assert type(again) is type(activation)
            np.testing.assert_array_equal(activation.moments(0.3, 0.7), again.moments(0.3, 0.7))


def test_the_parameters_of_an_activation_are_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    from onepass.files import state

    @dataclass(frozen=True)
    class Wave(Sigmoid):
        rate: float = 1.0

    monkeypatch.setitem(state._ACTIVATIONS, "Wave", Wave)
    again = state.decode_activation(json.loads(json.dumps(state.encode_activation(Wave(3.0)))))
    assert again == Wave(3.0)
