"""Keys beyond the capacity, in memory and in the file."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onepass import PerceptronFleet
from onepass.models.fleet.spill import Spill
from tests.helpers.fleets import D, N, same, stream


@pytest.mark.parametrize("texts", [False, True])
def test_evicted_keys_come_back_exactly_as_they_were(texts: bool, tmp_path: Path) -> None:
    keys, X, y = stream({})
    named: Any = np.array([f"k{key}" for key in keys]) if texts else keys
    free, bounded = PerceptronFleet(D), PerceptronFleet(D, capacity=17, spill=tmp_path / "spill")
    for cut in np.array_split(np.arange(N), 60):
        seen = [fleet.predict_then_learn(X[cut], y[cut], keys=named[cut]) for fleet in (free, bounded)]
        np.testing.assert_array_equal(seen[0].mean, seen[1].mean)
        np.testing.assert_array_equal(
            free.predict(X[:200], keys=named[:200]).mean, bounded.predict(X[:200], keys=named[:200]).mean
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
        fleet.learn(np.ones(D), 1, keys=key)
    assert fleet._store._index is not None
    assert fleet._store._index.find(np.array([1, 2, 3, 4])).tolist()[1] == -1
    assert (fleet._store._index.find(np.array([1, 3, 4])) >= 0).all()


def test_a_bounded_fleet_takes_batches_within_its_capacity_and_its_own_folder(tmp_path: Path) -> None:
    fleet = PerceptronFleet(D, capacity=3, spill=tmp_path)
    with pytest.raises(ValueError, match="4 different keys, more than the capacity of 3"):
        fleet.learn(np.ones((4, D)), np.ones(4), keys=[1, 2, 3, 4])
    assert len(fleet) == 0
    with pytest.raises(FileExistsError, match="folder of its own"):
        PerceptronFleet(D, capacity=3, spill=tmp_path)
    with pytest.raises(ValueError, match="must be given together"):
        PerceptronFleet(D, capacity=3)
    with pytest.raises(ValueError, match="has a capacity already"):
        fleet.bound(3, tmp_path / "other")
    del fleet
    assert not list(tmp_path.iterdir())


def test_texts_that_are_no_unicode_go_to_the_file_and_come_back(tmp_path: Path) -> None:
    fleet = PerceptronFleet(1, capacity=1, spill=tmp_path)
    names = ["\ud800", "b", "b\x00", "é"]
    for key in names * 2:
        fleet.learn([[1.0]], [1.0], keys=[key])
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
        fleet.learn([[1.0]], [1.0], keys=[key])
    store = fleet._store
    holder = store._spill if step in ("put", "remove") else store._index if step == "enter" else store
    name = {"leave": "release", "enter": "put"}.get(step, step)

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(holder, name, interrupted)
    with pytest.raises(KeyboardInterrupt):
        fleet.learn([[1.0]], [1.0], keys=[keys[0]])
    monkeypatch.undo()
    assert sorted(fleet.keys()) == keys
    assert len(fleet) == 3
    fleet.learn([[1.0]], [1.0], keys=[keys[0]])
    assert [fleet.perceptron(key).n_seen for key in keys] == [2, 1, 1]
