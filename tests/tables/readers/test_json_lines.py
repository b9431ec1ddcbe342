from pathlib import Path

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
