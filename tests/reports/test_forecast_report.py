import re
from pathlib import Path

import numpy as np
import pytest

from onepass.evaluation.backtesting import LEVELS, NAIVE, OURS, Backtest
from onepass.reports.forecast_report import forecast_report
from onepass.reports.html import Verdict, render_html
from onepass.tables.readers.registry import open_source
from onepass.tables.series import read_series
from onepass.tables.series_model import SeriesModel
from onepass.tables.series_rows import SeriesColumns


def model(folder: Path, shops: str) -> SeriesModel:
    days = np.arange("2024-01-01", "2024-03-01", dtype="datetime64[D]")
    lines = [f"{day},{i % 7},{shop}" for i, day in enumerate(days) for shop in shops]
    file = folder / "sales.csv"
    file.write_text("\n".join(["date,sold,shop", *lines]) + "\n")
    return SeriesModel(read_series([open_source(str(file))], SeriesColumns("date", "sold", "shop")), 5)


def scored(mase: float, inside: float) -> Backtest:
    scores = {OURS: {"mase": mase, "smape": 5.0, "crps": 0.7, "in_80": 0.8, "in_95": inside}}
    scores[NAIVE] = {"mase": 1.0, "smape": 6.0, "crps": 0.9, "in_80": 0.8, "in_95": 0.95}
    coverage = {name: np.full((len(LEVELS), 5), 0.9) for name in scores}
    return Backtest(5, 10, 10, scores, coverage, {"ETS": "it did not converge"})


@pytest.mark.parametrize(
    ("mase", "inside", "verdicts"),
    [
        (0.8, 0.94, [Verdict.HOLDS, Verdict.HOLDS]),
        (0.99, 0.90, [Verdict.IN_PART, Verdict.IN_PART]),
        (1.2, 0.80, [Verdict.FAILS, Verdict.FAILS]),
        (1.2, 1.00, [Verdict.FAILS, Verdict.IN_PART]),
    ],
)
def test_the_verdict_follows_the_backtest(tmp_path: Path, mase: float, inside: float, verdicts: list[Verdict]) -> None:
    known = model(tmp_path, "a")
    report = forecast_report(known, list(known.forecasts(5)), None, scored(mase, inside), [str(tmp_path / "sales.csv")])
    assert [claim.verdict for claim in report.claims] == verdicts
    page = render_html(report)
    assert "ETS could not be compared: it did not converge" in page
    assert str(tmp_path) not in page


def test_the_first_of_many_series_are_drawn_and_listed(tmp_path: Path) -> None:
    known = model(tmp_path, "abcdefgh")
    report = forecast_report(known, list(known.forecasts(5)), None, None, [])
    (section,) = report.sections
    assert "The first 6 of 8 series" in section.pictures[0].caption
    assert section.tables[0].caption.startswith("The first 31 of 40 values")
    assert report.claims == ()


def test_series_are_below_each_other_as_wide_as_one(tmp_path: Path) -> None:
    sizes = []
    for shops in ("a", "abc"):
        known = model(tmp_path, shops)
        (picture,) = forecast_report(known, list(known.forecasts(5)), None, None, []).sections[0].pictures
        found = re.search(rb'viewBox="0 0 ([\d.]+) ([\d.]+)"', picture.svg)
        assert found is not None
        assert not picture.is_wide
        sizes.append([float(part) for part in found.groups()])
    (one_width, one_height), (width, height) = sizes
    assert width == one_width
    assert height > 2 * one_height
