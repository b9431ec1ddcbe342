"""The way of one row from the application to the model is short, and gives what the long way through columns gives."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onepass.files.checkpoint import from_bytes
from onepass.service.declared import declared_content
from onepass.service.served import RowModel, serve
from onepass.service.wire import Declared
from tests.service.frames import chains

FRAMES = 20
"""From the application to the kernel, both included."""


def described() -> Declared:
    rows = [
        {"km": float(i % 7), "n": i if i % 3 else None, "car": "abc"[i % 3], "new": i % 2 == 0, "code": f"z{i}", "y": i}
        for i in range(80)
    ]
    return Declared(rows=rows, target="y", learn=True, options={"model_kind": "perceptron"})


@pytest.fixture(scope="module")
def model() -> RowModel:
    served = serve(from_bytes(declared_content(described())))
    assert isinstance(served, RowModel)
    return served


def test_a_row_passes_few_frames_before_it_reaches_the_kernel(tmp_path: Path) -> None:
    for what, parts in asyncio.run(chains(tmp_path)).items():
        assert all(parts), what
        assert sum(map(len, parts)) <= FRAMES, (what, parts)


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["a", "c", "z1", "other", "", "NA", "true", "1.5", "1,5", " a "]),
)


@given(st.dictionaries(st.sampled_from(["km", "n", "car", "new", "code", "no such column"]), VALUES))
def test_a_row_alone_means_what_it_means_among_many(model: RowModel, row: dict[str, Any]) -> None:
    alone, problems = model.read([row], [None])
    among, all_problems = model.read([row] * 100, [None] * 100)  # so many are read as columns
    assert {i: str(problem) for i, problem in problems.items()} == {
        i: str(problem) for i, problem in all_problems.items() if i == 0
    }
    if not problems:
        np.testing.assert_array_equal(alone.X, among.X[:1], strict=True)
