import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onepass.tables.readers.errors import StreamError
from onepass.tables.readers.json_array import elements_as_lines
from tests.helpers.tables import malformed, read_rows, trips, write_jsonl

ROWS = trips(3000)


@pytest.mark.parametrize("indent", [None, 2])
def test_an_array_is_read_as_lines_are(indent: int | None, tmp_path: Path) -> None:
    lines, array = write_jsonl(tmp_path / "lines", ROWS), tmp_path / "array"
    array.write_text(json.dumps(ROWS, indent=indent))
    assert read_rows(array) == read_rows(lines)
    numbers = {"km": pa.float64()}
    assert read_rows(array, skip=2500, types=numbers) == read_rows(lines, skip=2500, types=numbers)


def test_a_bad_element_costs_itself_and_is_named_by_its_number(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text('[{"a": 1},\n {"a": nothing}, 3,\n {"a": "]},{"}, [], {"a": 4}\n]\n')
    assert read_rows(file) == [{"a": "1"}, {"a": "]},{"}, {"a": "4"}]
    assert [(bad.line, bad.reason.code) for bad in malformed(file)] == [
        (2, "not_json"),
        (3, "not_an_object"),
        (5, "not_an_object"),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"a": 1}, {"a": 2}', "is cut short: its JSON array has no end"),
        ('[{"a": 1}, {"a": "2', "is cut short: its JSON array has no end"),
        ('[{"a": 1}]\n[{"a": 2}]', "has content after the end of its JSON array"),
    ],
)
def test_an_array_without_end_or_with_more_behind_it_is_an_error(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text(text)
    with pytest.raises(StreamError, match=message):
        read_rows(file)


values = st.recursive(
    st.none() | st.integers() | st.text(st.sampled_from('a"\\[]{},:\né')),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(st.dictionaries(st.text(max_size=3), values, max_size=3), max_size=5), st.integers(1, 9), st.booleans())
def test_any_array_cut_anywhere_gives_its_elements(rows: list[dict[str, Any]], size: int, pretty: bool) -> None:
    text = json.dumps(rows, indent=1 if pretty else None, ensure_ascii=False).encode()
    parts = (text[i : i + size] for i in range(0, len(text), size))
    lines = b"".join(elements_as_lines(iter(parts), "it")).split(b"\n")
    assert [json.loads(line) for line in lines if line.strip()] == rows
