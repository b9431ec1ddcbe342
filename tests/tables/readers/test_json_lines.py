from pathlib import Path

import pytest

from onepass.tables.readers.errors import StreamError
from onepass.tables.readers.registry import open_source
from tests.helpers.tables import malformed, read_rows


def test_json_lines_take_what_they_can(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"a": 1, "b": "x"}\n\n{"a": 2.5, "c": true}\n[1]\n{"a": \n{"a": null, "b": "NA"}\n')
    assert read_rows(file) == [
        {"a": "1", "b": "x", "c": None},
        {"a": "2.5", "b": None, "c": "true"},
        {"a": None, "b": "NA", "c": None},
    ]
    assert [(bad.line, bad.reason.code) for bad in malformed(file)] == [
        (4, "not_an_object"),
        (5, "not_json"),
    ]


_FEATURES = '"features": [{"type": "Feature", "properties": {"a": 1}, "geometry": null}]'


@pytest.mark.parametrize("text", [f'{{"type": "FeatureCollection", {_FEATURES}}}', f"{{\n{_FEATURES}\n}}"])
def test_geojson_is_refused_by_its_name(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.geojson").write_text(text)
    with pytest.raises(StreamError, match=r"is GeoJSON.*\.features\[\]\.properties"):
        open_source(str(tmp_path / "a.geojson"))


def test_one_object_over_several_lines_is_no_table_and_rows_with_features_are(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{\n  "a": 1,\n  "b": 2\n}\n')
    with pytest.raises(StreamError, match="one JSON object over several lines"):
        open_source(str(tmp_path / "a.json"))
    (tmp_path / "b.json").write_text('{"type": "van", "features": 3}\n{"type": "bike", "features": 1}\n')
    assert len(read_rows(tmp_path / "b.json")) == 2
