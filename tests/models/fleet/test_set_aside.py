"""Absurd targets in fleets: each key judges its own, and the fleet counts them all."""

import pickle
from typing import Any

import numpy as np
import pytest

from onepass import PerceptronFleet

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
Y = X @ [1.0, 2.0] + RNG.normal(size=60)


def taught(noise: Any = "learn") -> PerceptronFleet:
    return PerceptronFleet(2, "linear", noise=noise).learn(
        np.vstack([X, X]), np.tile(Y, 2), keys=["a"] * 60 + ["b"] * 60
    )


def test_rows_are_counted_wherever_the_keys_go() -> None:
    fleet = taught()
    before = fleet.predict(X[:2], keys=["a", "b"])
    fleet.learn(X[:4], [1e12, 0.5, 1e12, -1e12], keys=["a", "b", "new", "a"])
    assert fleet.n_set_aside == 2
    assert [fleet.perceptron(key).n_set_aside for key in ("a", "b", "new")] == [2, 0, 0]
    after = fleet.predict(X[:2], keys=["a", "b"])
    assert after.mean[0] == before.mean[0]
    assert pickle.loads(pickle.dumps(fleet)).n_set_aside == 2
    first, *others = fleet.split(3)
    assert first.n_set_aside + sum(other.n_set_aside for other in others) == 2
    assert first.join(others).n_set_aside == 2


def test_what_is_undone_is_not_counted() -> None:
    fleet = taught()

    def interrupted() -> None:
        with fleet.all_or_none(["a"]):
            assert fleet.learn(X[:1], [1e12], keys=["a"]).n_set_aside == 1
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        interrupted()
    assert fleet.n_set_aside == fleet.perceptron("a").n_set_aside == 0
    with pytest.raises(ValueError, match="overflows"):
        fleet.learn([[0.0, 0.0], [1e300, 1e300]], [1e12, 1.0], keys=["a", "b"])
    assert fleet.n_set_aside == 0


@pytest.mark.parametrize("noise", [1.0, "learn"])
def test_many_in_succession_lead_back_to_the_prior(noise: float | str) -> None:
    fleet = taught(noise)
    fleet.learn(X[:12], np.full(12, 1e8), keys=["a"] * 12)
    assert fleet.n_set_aside == 12
    assert fleet.predict(X[:1], keys=["a"]).pre_mean == pytest.approx(0.0)
    assert fleet.predict(X[:1], keys=["b"]).pre_mean != pytest.approx(0.0)
    fleet.learn(X[:30], np.full(30, 1e8), keys=["a"] * 30)
    assert fleet.n_set_aside == 12


def test_a_fleet_that_doubts_its_targets_sets_none_aside() -> None:
    fleet = PerceptronFleet(2, "linear", noise="learn", outliers=0.05).learn(X, Y, keys=["a"] * 60)
    assert fleet.learn(X[:1], [1e12], keys=["a"]).n_set_aside == 0
