import re

import numpy as np
import pandas as pd
import pytest

from onepass import PerceptronFleet, Quadrature
from onepass.models.fleet.keys import as_keys
from tests.helpers.fleets import D


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
        with pytest.raises(ValueError, match=f"keys must be integers between -2.63 and 2.63, got {large}"):
            as_keys([1, large], 2)
    with pytest.raises(ValueError, match=r"shape \(2,\), one key per row of X, got shape \(0,\)"):
        as_keys([], 2)


def test_keys_of_all_sorts() -> None:
    row = np.ones((1, D))
    fleet = PerceptronFleet(D).learn(row, [1], keys=np.array([5], dtype=np.uint8))
    fleet.learn(row, [1], keys=np.array([5], dtype=object))
    assert fleet.perceptron(5).n_seen == 2
    with pytest.raises(TypeError, match="keys must be integers, as the fleet's first keys were, got 'a'"):
        fleet.learn(row, [1], keys=["a"])
    with pytest.raises(TypeError, match="strings, as the fleet's first keys were"):
        PerceptronFleet(D).learn(row, [1], keys=["a"]).learn(row, [1], keys=[1])
    for bad in ([1.5], [True], [None], ["a", 1]):
        with pytest.raises(TypeError, match="all integers or all strings"):
            PerceptronFleet(D).learn(np.ones((len(bad), D)), np.ones(len(bad)), keys=np.array(bad, dtype=object))
    with pytest.raises(ValueError, match=r"keys must have shape \(2,\)"):
        fleet.learn(np.ones((2, D)), [1, 1], keys=[1])
    with pytest.raises(ValueError, match=r"between -2\^63"):
        fleet.learn(row, [1], keys=np.array([2**63], dtype=np.uint64))
    with pytest.raises(TypeError, match="a fleet takes named activations and PiecewiseLinear only"):
        PerceptronFleet(D, Quadrature(np.sin), noise=0.1)


@pytest.mark.parametrize("texts", [False, True])
def test_what_can_be_no_key_is_in_no_fleet(texts: bool) -> None:
    fleet = PerceptronFleet(1).learn([[1.0]], [1.0], keys="a" if texts else 1)
    for key in (None, 1.5, ("a",), 2**70, b"a", 7, "b"):
        assert key not in fleet
    assert ("a" if texts else 1) in fleet
