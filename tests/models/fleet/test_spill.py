"""Records in a temporary file."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onepass.models.fleet.spill import Spill

RECORDS = np.arange(12.0).reshape(4, 3)


@pytest.mark.parametrize("keys", [np.array([7, -1, 3, 10**12]), ["b", "ä", "\ud800", ""]], ids=["numbers", "texts"])
def test_what_is_put_is_found_by_its_key(tmp_path: Path, keys: Any) -> None:
    spill = Spill(tmp_path / "new" / "folder", 3)
    spill.put(keys, RECORDS)
    spill.put(keys[:1], 10.0 + RECORDS[:1])
    assert len(spill) == 4
    asked = keys[[2, 0]] if isinstance(keys, np.ndarray) else [keys[2], keys[0]]
    places, records = spill.find(asked)
    by_place = dict(zip(places, records.tolist(), strict=True))
    assert by_place == {0: [6.0, 7.0, 8.0], 1: [10.0, 11.0, 12.0]}
    assert sorted(key for key, _ in spill.all()) == sorted(keys)
    spill.remove(keys[1:])
    assert len(spill) == 1
    assert spill.find(keys[1:])[0] == []


def test_more_keys_than_one_query_takes(tmp_path: Path) -> None:
    spill, keys = Spill(tmp_path, 1), np.arange(1201)
    spill.put(keys, keys[:, None].astype(float))
    places, records = spill.find(keys[::-1].copy())
    np.testing.assert_array_equal(records[:, 0], 1200 - np.array(places))
    assert len(places) == 1201


def test_a_failure_in_the_middle_writes_nothing(tmp_path: Path) -> None:
    spill = Spill(tmp_path, 3)
    with pytest.raises(ValueError, match="zip"):
        spill.put(np.array([1, 2, 3]), RECORDS[:2])
    assert len(spill) == 0


def test_the_file_is_of_one_fleet_and_goes_with_it(tmp_path: Path) -> None:
    spill = Spill(tmp_path, 3)
    (path,) = tmp_path.iterdir()
    with pytest.raises(FileExistsError, match="give spill a folder of its own"):
        Spill(tmp_path, 3)
    del spill
    assert not path.exists()
