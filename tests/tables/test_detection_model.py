"""Scores of the series of files: the same at once and in parts, saved between them, and only once."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onepass.files.checkpoint import from_bytes, to_bytes
from onepass.forecasting import AnomalyScorer
from onepass.tables.columns.errors import SchemaError
from onepass.tables.detection_model import DetectionModel
from onepass.tables.readers.registry import open_source
from onepass.tables.series import SeriesTable, read_series
from onepass.tables.series_rows import SeriesColumns

HOURS = np.arange("2024-01-01", "2024-01-21", dtype="datetime64[h]")
N = len(HOURS)
VALUES = 50 + 10 * np.sin(2 * np.pi * np.arange(N) / 24) + np.random.default_rng(0).normal(size=N)
VALUES[400] += 40.0


def table(folder: Path, *places: int, known: DetectionModel | None = None, names: str = "ts,cpu,host") -> SeriesTable:
    file = folder / "series.csv"
    rows = [f"{HOURS[i]},{VALUES[i] * scale},{key}\n" for key, scale in (("a", 1.0), ("b", 2.0)) for i in places]
    file.write_text(f"{names}\n" + "".join(rows))
    sources = [open_source(str(file))]
    time, target, by = names.split(",")
    if known is None:
        return read_series(sources, SeriesColumns(time, target, by))
    return known.read(sources)


def model(read: SeriesTable, **options: Any) -> DetectionModel:
    return DetectionModel(read, **options)


def test_scores_are_those_of_a_scorer_per_series(tmp_path: Path) -> None:
    read = table(tmp_path, *range(N))
    for one, scale in zip(model(read).score_then_learn(read), (1.0, 2.0), strict=True):
        expected = AnomalyScorer(read.seasons).score_then_learn(VALUES * scale)
        np.testing.assert_allclose(one.scores.score, expected.score, atol=1e-12)
        assert one.alarms == [400]


def test_going_on_after_a_gap_gives_what_scoring_at_once_does(tmp_path: Path) -> None:
    kept = [*range(340), *range(350, N)]
    read = table(tmp_path, *kept)
    whole = model(read, false_alarms=1e-3, side="above", quiet=5)
    expected = whole.score_then_learn(read)
    first = table(tmp_path, *range(340))
    parts = model(first, false_alarms=1e-3, side="above", quiet=5)
    parts.score_then_learn(first)
    parts = from_bytes(to_bytes(parts))
    found = parts.score_then_learn(table(tmp_path, *range(350, N), known=parts))
    assert parts.n_seen == whole.n_seen == 2 * len(kept)
    for own, other in zip(found, expected, strict=True):
        for name in ("expected", "low", "high", "tail", "score", "kind"):
            np.testing.assert_array_equal(getattr(own.scores, name), getattr(other.scores, name)[350:])


def test_values_are_scored_only_once(tmp_path: Path) -> None:
    first = table(tmp_path, *range(100))
    known = model(first)
    known.score_then_learn(first)
    with pytest.raises(SchemaError) as failed:
        known.score_then_learn(table(tmp_path, *range(90, 110), known=known))
    assert (failed.value.reason.code, failed.value.reason.value) == ("scored_times", 10)
    assert known.n_seen == 200


def test_the_table_has_a_row_per_step(tmp_path: Path) -> None:
    read = table(tmp_path, *range(200), *range(203, N))
    found = model(read).table(model(read).score_then_learn(read))
    assert found.column_names == ["ts", "host", "cpu", "expected", "low", "high", "tail", "score", "alarm"]
    assert found.num_rows == 2 * N
    assert found["cpu"].to_pylist()[199:204].count(None) == 3
    assert found["score"].to_pylist()[201] is None
    assert [i for i, kind in enumerate(found["alarm"].to_pylist()) if kind] == [400, N + 400]


def test_columns_with_the_names_of_the_output_are_refused(tmp_path: Path) -> None:
    read = table(tmp_path, *range(50), names="ts,score,host")
    with pytest.raises(SchemaError) as failed:
        model(read)
    assert "'score' has the name of a column of the scores" in str(failed.value)


def test_inputs_may_have_the_names_of_the_output(tmp_path: Path) -> None:
    names = ("expected", "low", "high", "tail", "score", "alarm")
    file = tmp_path / "inputs.csv"
    lines = (f"{hour},{i % 5}" + f",{i % 2}" * len(names) for i, hour in enumerate(HOURS[:60]))
    file.write_text("\n".join([",".join(("ts", "cpu", *names)), *lines]) + "\n")
    read = read_series([open_source(str(file))], SeriesColumns("ts", "cpu", inputs=names))
    known = model(read)
    assert known.table(known.score_then_learn(read)).column_names == ["ts", "cpu", *names]


def test_a_value_that_is_refused_leaves_all_series_as_they_were(tmp_path: Path) -> None:
    first = table(tmp_path, *range(100))
    known = model(first)
    known.score_then_learn(first)
    before, ends = to_bytes(known), dict(known.ends)
    further = table(tmp_path, *range(103, 110), known=known)
    further.series[1].values[3] = 1e120
    with pytest.raises(ValueError, match="1e"):
        known.score_then_learn(further)
    assert (known.ends, known.n_seen) == (ends, 200)
    assert to_bytes(known) == before
    further.series[1].values[3] = 50.0
    assert len(known.score_then_learn(further)) == 2
