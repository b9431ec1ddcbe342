from pathlib import Path

import pytest

from onepass.tables.readers.errors import StreamError
from onepass.tables.readers.paths import expand


def test_patterns_are_sorted_and_must_match(tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv"):
        (tmp_path / name).touch()
    assert expand([str(tmp_path / "*.csv")]) == [str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]
    for asked, message in (("*.json", "matches no file"), ("c.csv", "does not exist"), ("", "is a folder")):
        with pytest.raises(StreamError, match=message):
            expand([str(tmp_path / asked)])
    with pytest.raises(StreamError, match="can't be mixed"):
        expand(["-", str(tmp_path / "a.csv")])


def test_a_file_with_a_similar_name_is_proposed(tmp_path: Path) -> None:
    for name in ("Codes.csv", "trips.csv"):
        (tmp_path / name).touch()
    with pytest.raises(StreamError) as caught:
        expand([str(tmp_path / "cods.csv")])
    assert str(caught.value).endswith(f"does not exist; did you mean {str(tmp_path / 'Codes.csv')!r}?")
    for other in ("sales.csv", "none/trips.csv"):
        with pytest.raises(StreamError, match=r"does not exist$"):
            expand([str(tmp_path / other)])
