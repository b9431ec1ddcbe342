import copy
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onepass
from onepass import BayesianPerceptron, CheckpointError, PerceptronFleet, Quadrature
from onepass.models.fleet.index import IntIndex
from onepass.models.fleet.keys import as_keys
from onepass.models.fleet.spill import Spill

N, D, KEYS = 600, 3, 40

SETTINGS: list[dict[str, Any]] = [
    {},
    {"activation": "linear", "noise": "learn"},
    {"activation": "relu", "noise": 0.1, "bias": False, "mean": [1.0, 0.0, -1.0], "cov": [1.0, 2.0, 3.0]},
    {"activation": "linear", "noise": "learn", "noise_window": 5, "forgetting": 0.95},
    {"activation": "exp"},
    {"activation": "probit", "update": "kalman"},
]


def stream(options: dict[str, Any], seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    keys, X = rng.integers(-KEYS // 2, KEYS // 2, size=N) * 10**15, rng.normal(size=(N, D))
    scores = X[:, 0] - X[:, 1] + rng.normal(size=N)
    activation = options.get("activation", "sigmoid")
    if activation in ("sigmoid", "probit"):
        return keys, X, (scores > 0).astype(float)
    return keys, X, np.floor(np.abs(scores)) if activation == "exp" else scores


def same(one: BayesianPerceptron, other: BayesianPerceptron) -> None:
    np.testing.assert_array_equal(one.mean, other.mean)
    np.testing.assert_array_equal(one.cov, other.cov)
    assert (one.n_seen, one.noise, one.log_evidence) == (other.n_seen, other.noise, other.log_evidence)


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
    found = fleet.predict_then_learn(named, X, y)
    for part, rows in zip(found, zip(*seen, strict=True), strict=True):
        np.testing.assert_allclose(part, rows, rtol=1e-12, atol=1e-14)
    for key, model in apart.items():
        alike(fleet.perceptron(key), model)
    after = fleet.predict(named, X)
    for i, key in enumerate(named):
        for part, other in zip(after, apart[key].predict(X[i]), strict=True):
            assert part[i] == pytest.approx(other, rel=1e-12, abs=1e-12)
    assert len(fleet) == len(apart)
    assert sorted(fleet.keys()) == sorted(apart)
    assert fleet.nbytes == len(apart) * 8 * (6 + 4 + 10 - 5 * (not options.get("bias", True)))


def test_the_split_of_calls_makes_no_difference_and_one_row_will_do() -> None:
    keys, X, y = stream({})
    whole, parts, single = (PerceptronFleet(D) for _ in range(3))
    whole.learn(keys, X, y)
    for cut in np.array_split(np.arange(N), 7):
        parts.learn(keys[cut], X[cut], y[cut])
    for key, x, target in zip(keys, X, y, strict=True):
        single.learn(key, x, target)
    for key in np.unique(keys):
        same(parts.perceptron(key), whole.perceptron(key))
        same(single.perceptron(key), whole.perceptron(key))
    assert isinstance(single.predict(keys[0], X[0]).mean, float)


def test_unknown_keys_are_predicted_by_the_prior_and_not_made() -> None:
    fleet = PerceptronFleet(D, "linear", noise=1.0, mean=[1.0, 2.0, 3.0, 4.0])
    assert fleet.predict([7], np.ones((1, D))).mean == pytest.approx([10.0])
    assert len(fleet) == 0
    fleet.learn([7], np.ones((1, D)), [3.0])
    assert fleet.predict([8], np.ones((1, D))).mean == pytest.approx([10.0])
    assert 7 in fleet
    assert 8 not in fleet
    assert "7" not in fleet
    with pytest.raises(KeyError):
        fleet.perceptron(8)


def test_a_batch_with_a_bad_row_teaches_nobody() -> None:
    keys, X, y = stream({"activation": "linear"})
    fleet = PerceptronFleet(D, "linear", noise=1.0).learn(keys[:300], X[:300], y[:300])
    before = fleet.export_state()
    X[590] = 1e200
    for bad in ((keys + 7, X, y), (keys, X, y)):
        with pytest.raises(ValueError, match="row at index 590 overflows float64"):
            fleet.learn(*bad)
    for name, array in fleet.export_state()[1].items():
        np.testing.assert_array_equal(array, before[1][name])
    X[590] = np.nan
    with pytest.raises(ValueError, match="X must be finite"):
        fleet.learn(keys, X, y)
    with pytest.raises(ValueError, match="labels 0 and 1"):
        PerceptronFleet(D).learn(keys[:2], X[:2], [0, 2])


def test_keys_of_all_sorts() -> None:
    row = np.ones((1, D))
    fleet = PerceptronFleet(D).learn(np.array([5], dtype=np.uint8), row, [1])
    fleet.learn(np.array([5], dtype=object), row, [1])
    assert fleet.perceptron(5).n_seen == 2
    with pytest.raises(TypeError, match="whole numbers as before, got 'a'"):
        fleet.learn(["a"], row, [1])
    with pytest.raises(TypeError, match="texts as before"):
        PerceptronFleet(D).learn(["a"], row, [1]).learn([1], row, [1])
    for bad in ([1.5], [True], [None], ["a", 1]):
        with pytest.raises(TypeError, match="all whole numbers or all texts"):
            PerceptronFleet(D).learn(np.array(bad, dtype=object), np.ones((len(bad), D)), np.ones(len(bad)))
    with pytest.raises(ValueError, match=r"keys must have shape \(2,\)"):
        fleet.learn([1], np.ones((2, D)), [1, 1])
    with pytest.raises(ValueError, match=r"below 2\^63"):
        fleet.learn(np.array([2**63], dtype=np.uint64), row, [1])
    with pytest.raises(TypeError, match="function of its own"):
        PerceptronFleet(D, Quadrature(np.sin), noise=0.1)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.booleans(), st.integers(-40, 40)), max_size=200), st.sampled_from([1, 4096, 2**40]))
def test_the_hash_table_is_a_dictionary(steps: list[tuple[bool, int]], stride: int) -> None:
    """Keys a multiple of the table's size apart come near each other, so that removal has to move some."""
    index, wanted, free = IntIndex(), {}, list(range(200, -1, -1))
    index._table = np.zeros(256, dtype=np.int32)
    for adding, number in steps:
        key = number * stride
        if adding and key not in wanted:
            wanted[key] = free.pop()
            index.put(np.array([key]), np.array([wanted[key]]))
        elif not adding and key in wanted:
            index.remove(np.array([wanted[key]]))
            free.append(wanted.pop(key))
        everyone = np.arange(-40, 41) * stride
        assert index.find(everyone).tolist() == [wanted.get(int(one), -1) for one in everyone]


def test_the_hash_table_grows() -> None:
    index, keys = IntIndex(), np.random.default_rng(0).integers(-(2**62), 2**62, size=100_000)
    for part in np.array_split(np.arange(100_000), 9):
        index.put(keys[part], part)
    assert (index.find(keys) == np.arange(100_000)).all()
    assert (index.find(keys + 1) == -1).all()


@pytest.mark.parametrize("texts", [False, True])
def test_evicted_keys_come_back_exactly_as_they_were(texts: bool, tmp_path: Path) -> None:
    keys, X, y = stream({})
    named: Any = np.array([f"k{key}" for key in keys]) if texts else keys
    free, bounded = PerceptronFleet(D), PerceptronFleet(D, capacity=17, spill=tmp_path / "spill")
    for cut in np.array_split(np.arange(N), 60):
        seen = [fleet.predict_then_learn(named[cut], X[cut], y[cut]) for fleet in (free, bounded)]
        np.testing.assert_array_equal(seen[0].mean, seen[1].mean)
        np.testing.assert_array_equal(
            free.predict(named[:200], X[:200]).mean, bounded.predict(named[:200], X[:200]).mean
        )
        assert bounded._store.resident <= 17
    assert len(bounded) == len(free) > 17
    assert sorted(bounded.keys()) == sorted(free.keys())
    for key in free.keys():  # noqa: SIM118 (it is no dictionary)
        assert key in bounded
        same(bounded.perceptron(key), free.perceptron(key))


def test_those_learned_longest_ago_are_evicted_first(tmp_path: Path) -> None:
    fleet = PerceptronFleet(D, capacity=3, spill=tmp_path)
    for key in (1, 2, 3, 1, 4):
        fleet.learn(key, np.ones(D), 1)
    assert fleet._store._index is not None
    assert fleet._store._index.find(np.array([1, 2, 3, 4])).tolist()[1] == -1
    assert (fleet._store._index.find(np.array([1, 3, 4])) >= 0).all()


def test_a_bounded_fleet_takes_batches_within_its_capacity_and_its_own_folder(tmp_path: Path) -> None:
    fleet = PerceptronFleet(D, capacity=3, spill=tmp_path)
    with pytest.raises(ValueError, match="4 different keys, more than the capacity of 3"):
        fleet.learn([1, 2, 3, 4], np.ones((4, D)), np.ones(4))
    assert len(fleet) == 0
    with pytest.raises(FileExistsError, match="folder of its own"):
        PerceptronFleet(D, capacity=3, spill=tmp_path)
    with pytest.raises(ValueError, match="need each other"):
        PerceptronFleet(D, capacity=3)
    with pytest.raises(ValueError, match="bounded already"):
        fleet.bound(3, tmp_path / "other")
    del fleet
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("texts", [False, True])
def test_a_saved_fleet_goes_on_bit_for_bit(texts: bool, tmp_path: Path) -> None:
    keys, X, y = stream({"activation": "linear"})
    named: Any = [f"ключ {key}" for key in keys] if texts else keys
    fleet = PerceptronFleet(D, "linear", noise="learn", capacity=15, spill=tmp_path / "spill")
    for cut in np.array_split(np.arange(300), 30):
        fleet.learn([named[i] for i in cut], X[cut], y[cut])
    fleet.prior = fleet.population()
    onepass.save(fleet, tmp_path / "fleet")
    loaded = onepass.load(tmp_path / "fleet")
    twin = pickle.loads(pickle.dumps(fleet))
    for one in (loaded, twin, copy.deepcopy(fleet)):
        assert sorted(one.keys()) == sorted(fleet.keys())
        one.learn(named[300:], X[300:], y[300:])
    for cut in np.array_split(np.arange(300, N), 30):
        fleet.learn([named[i] for i in cut], X[cut], y[cut])
    for key in set(named):
        same(loaded.perceptron(key), fleet.perceptron(key))
        same(twin.perceptron(key), fleet.perceptron(key))
    loaded.bound(5, tmp_path / "anew")
    assert loaded._store.resident <= 5
    same(loaded.perceptron(named[0]), fleet.perceptron(named[0]))


def test_an_empty_fleet_can_be_saved(tmp_path: Path) -> None:
    onepass.save(PerceptronFleet(D), tmp_path / "fleet")
    assert len(onepass.load(tmp_path / "fleet").learn([1], np.ones((1, D)), [1])) == 1


def test_a_damaged_fleet_is_refused(tmp_path: Path) -> None:
    keys, X, y = stream({})
    parameters, arrays = PerceptronFleet(D).learn(keys, X, y).export_state()

    def refused(changed: dict[str, Any], words: str) -> None:
        with pytest.raises(ValueError, match=words):
            PerceptronFleet.from_state(parameters, {**arrays, **changed})

    refused({"records": arrays["records"][:, :-1]}, "records has shape")
    refused({"keys": np.zeros_like(arrays["keys"])}, "keys must differ")
    for column, value, words in (
        (3, -1.0, "must not be negative"),
        (4, 1.0, "prior that is not there"),
        (9, np.nan, "finite"),
    ):
        broken = arrays["records"].copy()
        broken[0, column] = value
        refused({"records": broken}, words)
    texts = PerceptronFleet(D).learn([str(key) for key in keys], X, y).export_state()[1]
    with pytest.raises(ValueError, match="key_ends"):
        PerceptronFleet.from_state(parameters, {**texts, "key_ends": texts["key_ends"][::-1].copy()})
    onepass.save(PerceptronFleet(D).learn(keys, X, y), tmp_path / "fleet")
    content = bytearray((tmp_path / "fleet").read_bytes())
    content[-9] ^= 1
    (tmp_path / "fleet").write_bytes(content)
    with pytest.raises(CheckpointError, match="checksum"):
        onepass.load(tmp_path / "fleet")


MEANS, STDS = [1.0, -2.0, 0.5, 1.5], [0.3, 0.5, 0.2, 0.4]


def shops(n_keys: int, rows: int, seed: int, labels: bool = True) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Keys whose weights are drawn from one population."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(MEANS, STDS, size=(n_keys, 4))
    keys = rng.permutation(np.repeat(np.arange(n_keys), rows)) + 1000 * seed
    X = rng.normal(size=(len(keys), 3))
    a = weights[keys - 1000 * seed, 0] + (X * weights[keys - 1000 * seed, 1:]).sum(axis=1)
    if not labels:
        return keys, X, a + rng.normal(size=len(a))
    return keys, X, (rng.random(len(keys)) < 1 / (1 + np.exp(-a))).astype(float)


def test_new_keys_do_better_from_the_population_than_from_a_flat_prior() -> None:
    fleet = PerceptronFleet(3, cov=4.0).learn(*shops(400, 30, seed=1))
    losses = []
    flat, rich = copy.deepcopy(fleet), fleet
    rich.prior = fleet.population()
    for one in (flat, rich):
        keys, X, y = shops(200, 10, seed=2)
        p = one.predict_then_learn(keys, X, y).mean
        losses.append(-np.mean(np.log(np.where(y > 0.5, p, 1 - p))))
    assert losses[1] < losses[0] - 0.05
    same(rich.perceptron(1000), flat.perceptron(1000))  # keys there were keep what they are


@pytest.mark.parametrize("noise", [1.0, "learn"])
def test_the_population_is_found_again_also_from_keys_of_different_priors(noise: Any) -> None:
    fleet = PerceptronFleet(3, "linear", noise=noise, cov=100.0).learn(*shops(300, 30, seed=1, labels=False))
    first = fleet.population()
    fleet.prior = first
    fleet.learn(*shops(700, 10, seed=2, labels=False))
    for population, tolerance in ((first, 0.1), (fleet.population(), 0.07)):
        np.testing.assert_allclose(population.mean, MEANS, atol=tolerance)
        np.testing.assert_allclose(np.sqrt(np.diag(population.cov)), STDS, atol=tolerance)
        assert population.n_seen == 0
    if noise == "learn":
        keys = [fleet.perceptron(key) for key in fleet.keys()]  # noqa: SIM118 (it is no dictionary)
        weights = [model.export_state()[1]["running"][1] for model in keys]
        pooled = np.average([model.noise for model in keys], weights=weights)
        assert fleet.population().noise == pytest.approx(pooled)


def test_a_prior_must_suit_the_fleet() -> None:
    fleet = PerceptronFleet(D, "linear", noise="learn")
    with pytest.raises(ValueError, match="two keys with rows at least, got 0"):
        fleet.population()
    with pytest.raises(ValueError, match="known exactly"):
        PerceptronFleet(D, cov=0.0).learn([1, 2], np.ones((2, D)), [1, 0]).population()
    with pytest.raises(TypeError, match="must be a BayesianPerceptron"):
        fleet.prior = 1.0  # type: ignore[assignment]
    with pytest.raises(ValueError, match="prior has n_features=2 where the fleet has 3"):
        fleet.prior = BayesianPerceptron(2, "linear", noise="learn")
    with pytest.raises(ValueError, match="prior has activation="):
        fleet.prior = BayesianPerceptron(D, "relu", noise="learn")
    with pytest.raises(ValueError, match="full covariance"):
        fleet.prior = BayesianPerceptron(D, "linear", noise="learn", covariance="diagonal")


def test_fleets_that_share_no_key_join() -> None:
    keys, X, y = stream({})
    whole = PerceptronFleet(D).learn(keys, X, y)
    even = keys // 10**15 % 2 == 0
    one, other = (PerceptronFleet(D).learn(keys[part], X[part], y[part]) for part in (even, ~even))
    joined = PerceptronFleet(D).join([one, other, PerceptronFleet(D)])
    for key in np.unique(keys):
        same(joined.perceptron(key), whole.perceptron(key))
    with pytest.raises(ValueError, match="is in two fleets"):
        joined.join([one])
    with pytest.raises(ValueError, match="same settings and prior"):
        joined.join([PerceptronFleet(D, cov=2.0)])
    with pytest.warns(DeprecationWarning, match="now called join"):
        assert len(PerceptronFleet(D).absorb([one])) == len(one)


@pytest.mark.parametrize("texts", [False, True])
def test_a_split_fleet_has_every_key_once(texts: bool) -> None:
    keys, X, y = stream({})
    named: Any = [str(key) for key in keys] if texts else keys
    whole = PerceptronFleet(D).learn(named, X, y)
    parts = whole.split(3)
    assert sorted(key for part in parts for key in part.keys()) == sorted(whole.keys())  # noqa: SIM118
    assert all(len(part) > 3 for part in parts)
    joined = PerceptronFleet(D).join(parts)
    for key in set(named):
        same(joined.perceptron(key), whole.perceptron(key))


def test_keys_are_what_they_were_given_as() -> None:
    assert as_keys(["a", "a\x00"], 2) == ["a", "a\x00"]
    assert as_keys(np.array(["a", "b"]), 2) == ["a", "b"]
    assert as_keys("one", 1) == ["one"]
    assert as_keys(7, 1).tolist() == as_keys(np.int32(7), 1).tolist() == [7]
    assert as_keys(range(3), 3).tolist() == as_keys(pd.Series([0, 1, 2]), 3).tolist() == [0, 1, 2]
    assert len(as_keys([], 0)) == 0
    for keys, odd in (
        ([1, "a"], "'a' (str)"),
        (["a", 1], "1 (int)"),
        ([1, True], "True (bool)"),
        ([1.5], "1.5 (float)"),
    ):
        with pytest.raises(TypeError, match=re.escape(f"got {odd}")):
            as_keys(keys, len(keys))
        with pytest.raises(TypeError, match=re.escape(f"got {odd}")):
            as_keys(np.array(keys, dtype=object), len(keys))
    for large in (2**70, -(2**70), 2**63):
        with pytest.raises(ValueError, match=f"keys must be whole numbers below 2.63 in size, got {large}"):
            as_keys([1, large], 2)
    with pytest.raises(ValueError, match=r"shape \(2,\), one key per row of X, got shape \(0,\)"):
        as_keys([], 2)


@pytest.mark.parametrize("texts", [False, True])
def test_what_can_be_no_key_is_in_no_fleet(texts: bool) -> None:
    fleet = PerceptronFleet(1).learn("a" if texts else 1, [[1.0]], [1.0])
    for key in (None, 1.5, ("a",), 2**70, b"a", 7, "b"):
        assert key not in fleet
    assert ("a" if texts else 1) in fleet


def test_texts_that_are_no_unicode_go_to_the_file_and_come_back(tmp_path: Path) -> None:
    fleet = PerceptronFleet(1, capacity=1, spill=tmp_path)
    names = ["\ud800", "b", "b\x00", "é"]
    for key in names * 2:
        fleet.learn([key], [[1.0]], [1.0])
    assert sorted(fleet.keys()) == sorted(names)
    assert [fleet.perceptron(key).n_seen for key in names] == [2] * 4


def test_a_record_that_cannot_be_written_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    spill = Spill(tmp_path, 2)
    spill.put(["a"], np.ones((1, 2)))
    with pytest.raises(ValueError, match="zip"):
        spill.put(["a", "b", "c"], np.zeros((2, 2)))
    assert [(key, record.tolist()) for key, record in spill.all()] == [("a", [1.0, 1.0])]
    spill.put(["d"], np.ones((1, 2)))
    assert len(spill) == 2
    with pytest.raises(FileExistsError, match="folder of its own"):
        Spill(tmp_path, 2)


@pytest.mark.parametrize("texts", [False, True])
@pytest.mark.parametrize("step", ["put", "remove", "leave", "enter"])
def test_an_interrupt_between_memory_and_file_loses_no_key(
    step: str, texts: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys: list[Any] = ["a", "b", "c"] if texts else [1, 2, 3]
    fleet = PerceptronFleet(1, capacity=2, spill=tmp_path)
    for key in keys:
        fleet.learn([key], [[1.0]], [1.0])
    store = fleet._store
    holder = store._spill if step in ("put", "remove") else store._index if step == "enter" else store
    name = {"leave": "release", "enter": "put"}.get(step, step)

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(holder, name, interrupted)
    with pytest.raises(KeyboardInterrupt):
        fleet.learn([keys[0]], [[1.0]], [1.0])
    monkeypatch.undo()
    assert sorted(fleet.keys()) == keys
    assert len(fleet) == 3
    fleet.learn([keys[0]], [[1.0]], [1.0])
    assert [fleet.perceptron(key).n_seen for key in keys] == [2, 1, 1]


def test_fleets_are_joined_all_or_none(tmp_path: Path) -> None:
    def of(*keys: Any) -> PerceptronFleet:
        return PerceptronFleet(1).learn(list(keys), np.ones((len(keys), 1)), np.ones(len(keys)))

    joined = of(1, 2)
    for others, words in (([of(3), of(2)], "key 2 is in two"), ([of(3), of(4, 3)], "key 3 is in two")):
        with pytest.raises(ValueError, match=words):
            joined.join(others)
        assert sorted(joined.keys()) == [1, 2]
    with pytest.raises(TypeError, match="whole numbers"):
        joined.join([of(3), of("a")])
    with pytest.raises(TypeError, match="texts"):
        PerceptronFleet(1).join([of("a"), of(3)])
    assert sorted(joined.keys()) == [1, 2]
    bounded = PerceptronFleet(1, capacity=2, spill=tmp_path).join(one for one in (joined, of(*range(3, 10))))
    assert sorted(bounded.keys()) == list(range(1, 10))
    assert bounded._store.resident <= 2


def test_a_prior_must_have_the_noise_of_the_fleet() -> None:
    learned = PerceptronFleet(D, "linear", noise="learn", noise_window=50)
    with pytest.raises(ValueError, match=r"prior has noise=0\.1 where the fleet has noise='learn'"):
        learned.prior = BayesianPerceptron(D, "linear", noise=0.1)
    with pytest.raises(ValueError, match="prior has noise_window=20 where the fleet has 50"):
        learned.prior = BayesianPerceptron(D, "linear", noise="learn", noise_window=20)
    with pytest.raises(ValueError, match="prior has noise_window=None where the fleet has 50"):
        learned.prior = BayesianPerceptron(D, "linear", noise="learn")
    with pytest.raises(ValueError, match=r"prior has noise='learn' where the fleet has noise=0\.1"):
        PerceptronFleet(D, "linear", noise=0.1).prior = BayesianPerceptron(D, "linear", noise="learn")
    learned.prior = BayesianPerceptron(D, "linear", noise="learn", noise_window=50, cov=2.0)
