import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onepass
from onepass import BayesianPerceptron, CheckpointError, PerceptronFleet
from onepass.engine.fleet import AT_LARGEST, AT_PRIOR, AT_SEEN, HEAD
from tests.helpers.fleets import D, N, same, stream

SETTINGS: list[dict[str, Any]] = [
    {},
    {"activation": "linear", "noise": "learn"},
    {"activation": "relu", "noise": 0.1, "bias": False, "mean": [1.0, 0.0, -1.0], "cov": [1.0, 2.0, 3.0]},
    {"activation": "linear", "noise": "learn", "noise_window": 5, "forgetting": 0.95},
    {"activation": "exp"},
    {"activation": "probit", "update": "kalman"},
]


def alike(one: BayesianPerceptron, other: BayesianPerceptron) -> None:
    """The same but for what a compiler may reorder in a sum."""
    np.testing.assert_allclose(one.mean, other.mean, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(one.cov, other.cov, rtol=1e-11, atol=1e-13)
    assert one.n_seen == other.n_seen
    assert (one.noise, one.log_evidence) == pytest.approx((other.noise, other.log_evidence), rel=1e-11)


@pytest.mark.parametrize("options", SETTINGS, ids=str)
@pytest.mark.parametrize("texts", [False, True])
def test_a_fleet_is_so_many_perceptrons_row_by_row(options: dict[str, Any], texts: bool) -> None:
    keys, X, y = stream(options)
    named = [f"key {key} é" for key in keys] if texts else keys
    apart = {key: BayesianPerceptron(D, **options) for key in named}
    seen = [apart[key].predict_then_learn(x, target) for key, x, target in zip(named, X, y, strict=True)]
    fleet = PerceptronFleet(D, **options)
    found = fleet.predict_then_learn(X, y, keys=named)
    # Re-weighing makes rounding errors grow: a last bit of the inputs moves predictions of few rows by 1e-12.
    reweighs = options == {"activation": "linear", "noise": "learn"}
    for part, rows in zip(found.moments, zip(*(one.moments for one in seen), strict=True), strict=True):
        np.testing.assert_allclose(part, rows, rtol=1e-10 if reweighs else 1e-12, atol=1e-14)
    for key, model in apart.items():
        alike(fleet.perceptron(key), model)
    after = fleet.predict(X, keys=named)
    for i, key in enumerate(named):
        for part, other in zip(after.moments, apart[key].predict(X[i]).moments, strict=True):
            assert part[i] == pytest.approx(other, rel=1e-10 if reweighs else 1e-12, abs=1e-12)
    assert len(fleet) == len(apart)
    assert sorted(fleet.keys()) == sorted(apart)
    # Running quantities, mean and root, what was set aside, and how rows are re-weighed.
    belief = 4 + 10 if options.get("bias", True) else 3 + 6
    assert fleet.nbytes == len(apart) * 8 * (7 + belief + 4 + 11 * reweighs)


def test_the_split_of_calls_makes_no_difference_and_one_row_will_do() -> None:
    keys, X, y = stream({})
    whole, parts, single = (PerceptronFleet(D) for _ in range(3))
    whole.learn(X, y, keys=keys)
    for cut in np.array_split(np.arange(N), 7):
        parts.learn(X[cut], y[cut], keys=keys[cut])
    for key, x, target in zip(keys, X, y, strict=True):
        single.learn(x, target, keys=key)
    for key in np.unique(keys):
        same(parts.perceptron(key), whole.perceptron(key))
        same(single.perceptron(key), whole.perceptron(key))
    assert isinstance(single.predict(X[0], keys=keys[0]).mean, float)


@pytest.mark.parametrize("options", SETTINGS)
def test_intervals_are_those_of_the_perceptrons_and_of_the_prior(options: dict[str, Any]) -> None:
    keys, X, y = stream(options)
    fleet = PerceptronFleet(D, **options).learn(X, y, keys=keys)
    asked = [*keys[:10].tolist(), 7]  # the last one never came
    low, high = fleet.interval(X[:11], 0.8, keys=asked)
    for i, key in enumerate(asked):
        expected = (fleet.perceptron(key) if key in fleet else fleet.prior).interval(X[i], 0.8)
        assert (low[i], high[i]) == pytest.approx(expected, rel=1e-9)
    assert fleet.n_seen == len(y)


def test_unknown_keys_are_predicted_by_the_prior_and_not_made() -> None:
    fleet = PerceptronFleet(D, "linear", noise=1.0, mean=[1.0, 2.0, 3.0, 4.0])
    assert fleet.predict(np.ones((1, D)), keys=[7]).mean == pytest.approx([10.0])
    assert len(fleet) == 0
    fleet.learn(np.ones((1, D)), [3.0], keys=[7])
    assert fleet.predict(np.ones((1, D)), keys=[8]).mean == pytest.approx([10.0])
    assert 7 in fleet
    assert 8 not in fleet
    assert "7" not in fleet
    with pytest.raises(KeyError):
        fleet.perceptron(8)


def test_a_batch_with_a_bad_row_teaches_nobody() -> None:
    keys, X, y = stream({"activation": "linear"})
    fleet = PerceptronFleet(D, "linear", noise=1.0).learn(X[:300], y[:300], keys=keys[:300])
    before = fleet.export_state()
    X[590] = 1e200
    for bad in (keys + 7, keys):
        with pytest.raises(ValueError, match="row at index 590 overflows float64"):
            fleet.learn(X, y, keys=bad)
    for name, array in fleet.export_state()[1].items():
        np.testing.assert_array_equal(array, before[1][name])
    X[590] = np.nan
    with pytest.raises(ValueError, match="X must be finite"):
        fleet.learn(X, y, keys=keys)
    with pytest.raises(ValueError, match="labels 0 and 1"):
        PerceptronFleet(D).learn(X[:2], [0, 2], keys=keys[:2])


@pytest.mark.parametrize("texts", [False, True])
def test_a_saved_fleet_goes_on_bit_for_bit(texts: bool, tmp_path: Path) -> None:
    keys, X, y = stream({"activation": "linear"})
    named: Any = [f"ключ {key}" for key in keys] if texts else keys
    fleet = PerceptronFleet(D, "linear", noise="learn", capacity=15, spill=tmp_path / "spill")
    for cut in np.array_split(np.arange(300), 30):
        fleet.learn(X[cut], y[cut], keys=[named[i] for i in cut])
    fleet.prior = fleet.population()
    onepass.save(fleet, tmp_path / "fleet")
    loaded = onepass.load(tmp_path / "fleet")
    twin = pickle.loads(pickle.dumps(fleet))
    for one in (loaded, twin, copy.deepcopy(fleet)):
        assert sorted(one.keys()) == sorted(fleet.keys())
        one.learn(X[300:], y[300:], keys=named[300:])
    for cut in np.array_split(np.arange(300, N), 30):
        fleet.learn(X[cut], y[cut], keys=[named[i] for i in cut])
    for key in set(named):
        same(loaded.perceptron(key), fleet.perceptron(key))
        same(twin.perceptron(key), fleet.perceptron(key))
    loaded.bound(5, tmp_path / "anew")
    assert loaded._store.resident <= 5
    same(loaded.perceptron(named[0]), fleet.perceptron(named[0]))


def test_an_empty_fleet_can_be_saved(tmp_path: Path) -> None:
    onepass.save(PerceptronFleet(D), tmp_path / "fleet")
    assert len(onepass.load(tmp_path / "fleet").learn(np.ones((1, D)), [1], keys=[1])) == 1


def test_a_damaged_fleet_is_refused(tmp_path: Path) -> None:
    keys, X, y = stream({})
    parameters, arrays = PerceptronFleet(D).learn(X, y, keys=keys).export_state()

    def refused(changed: dict[str, Any], words: str) -> None:
        with pytest.raises(ValueError, match=words):
            PerceptronFleet.from_state(parameters, {**arrays, **changed})

    refused({"records": arrays["records"][:, :-1]}, "records has shape")
    refused({"keys": np.zeros_like(arrays["keys"])}, "keys must all be different")
    for column, value, words in (
        (AT_SEEN, -1.0, "must not be negative"),
        (AT_LARGEST, -1.0, "must not be negative"),
        (AT_PRIOR, 1.0, "prior that is not there"),
        (HEAD + 2, np.nan, "finite"),
    ):
        broken = arrays["records"].copy()
        broken[0, column] = value
        refused({"records": broken}, words)
    refused({"trust": arrays["trust"][:, :-1]}, "trust has shape")
    refused({"trust": np.full_like(arrays["trust"], -1.0)}, "trust holds numbers that are not finite, or negative")
    texts = PerceptronFleet(D).learn(X, y, keys=[str(key) for key in keys]).export_state()[1]
    with pytest.raises(ValueError, match="key_ends"):
        PerceptronFleet.from_state(parameters, {**texts, "key_ends": texts["key_ends"][::-1].copy()})
    onepass.save(PerceptronFleet(D).learn(X, y, keys=keys), tmp_path / "fleet")
    content = bytearray((tmp_path / "fleet").read_bytes())
    content[-9] ^= 1
    (tmp_path / "fleet").write_bytes(content)
    with pytest.raises(CheckpointError, match="checksum"):
        onepass.load(tmp_path / "fleet")


def test_fleets_that_share_no_key_join() -> None:
    keys, X, y = stream({})
    whole = PerceptronFleet(D).learn(X, y, keys=keys)
    even = keys // 10**15 % 2 == 0
    one, other = (PerceptronFleet(D).learn(X[part], y[part], keys=keys[part]) for part in (even, ~even))
    joined = PerceptronFleet(D).join([one, other, PerceptronFleet(D)])
    for key in np.unique(keys):
        same(joined.perceptron(key), whole.perceptron(key))
    with pytest.raises(ValueError, match="is in two of the fleets"):
        joined.join([one])
    with pytest.raises(ValueError, match="same settings and prior"):
        joined.join([PerceptronFleet(D, cov=2.0)])


@pytest.mark.parametrize("texts", [False, True])
def test_a_split_fleet_has_every_key_once(texts: bool) -> None:
    keys, X, y = stream({})
    named: Any = [str(key) for key in keys] if texts else keys
    whole = PerceptronFleet(D).learn(X, y, keys=named)
    parts = whole.split(3)
    assert sorted(key for part in parts for key in part.keys()) == sorted(whole.keys())  # noqa: SIM118
    assert all(len(part) > 3 for part in parts)
    joined = PerceptronFleet(D).join(parts)
    for key in set(named):
        same(joined.perceptron(key), whole.perceptron(key))


def test_fleets_are_joined_all_or_none(tmp_path: Path) -> None:
    def of(*keys: Any) -> PerceptronFleet:
        return PerceptronFleet(1).learn(np.ones((len(keys), 1)), np.ones(len(keys)), keys=list(keys))

    joined = of(1, 2)
    for others, words in (([of(3), of(2)], "key 2 is in two"), ([of(3), of(4, 3)], "key 3 is in two")):
        with pytest.raises(ValueError, match=words):
            joined.join(others)
        assert sorted(joined.keys()) == [1, 2]
    with pytest.raises(TypeError, match="keys must be integers"):
        joined.join([of(3), of("a")])
    with pytest.raises(TypeError, match="keys must be strings"):
        PerceptronFleet(1).join([of("a"), of(3)])
    assert sorted(joined.keys()) == [1, 2]
    bounded = PerceptronFleet(1, capacity=2, spill=tmp_path).join(one for one in (joined, of(*range(3, 10))))
    assert sorted(bounded.keys()) == list(range(1, 10))
    assert bounded._store.resident <= 2
