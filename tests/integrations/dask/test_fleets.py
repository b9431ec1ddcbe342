"""A model per key, each learned by one worker."""

import copy
from typing import Any

import dask.dataframe as dd
import numpy as np
import pytest

from onepass import PerceptronFleet, distributed
from tests.helpers.dask_rows import D, N, close, frame


def test_a_fleet_learns_by_key_as_one_process_would(client: Any) -> None:
    table = frame().assign(shop=np.random.default_rng(3).integers(50, size=N).astype(str))
    before = PerceptronFleet(D).learn(table[["a", "b", "c"]][:500], table["y"][:500], keys=table["shop"][:500])
    data = dd.from_pandas(table[500:], npartitions=4)
    fleet = distributed.fit_fleet(before, data, "shop", "y", client=client)
    whole = copy.deepcopy(before).learn(table[["a", "b", "c"]][500:], table["y"][500:], keys=table["shop"][500:])
    assert len(fleet) == len(whole) == 50
    for key in whole.keys():  # noqa: SIM118 (it is no dictionary)
        close(fleet.perceptron(key), whole.perceptron(key))
    assert before.perceptron("7").n_seen < fleet.perceptron("7").n_seen
    with pytest.raises(ValueError, match="no column 'user'"):
        distributed.fit_fleet(before, data, "user", "y", client=client)
    with pytest.raises(TypeError, match="must be a Dask data frame"):
        distributed.fit_fleet(before, table, "shop", "y", client=client)
