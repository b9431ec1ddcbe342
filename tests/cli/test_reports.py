"""What a person is told by `evaluate` and its report, and by `show --diff`."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

import onepass
from onepass.estimators.rows import Rows
from onepass.evaluation.metrics import RootMeanSquaredError, Scores
from onepass.evaluation.metrics.predictions import NumberPredictions
from onepass.evaluation.prequential import Trial
from onepass.evaluation.worst_row import WorstRow
from onepass.reports import model_report, plots
from onepass.tables.inputs import Inputs, steps
from onepass.tables.schema import SchemaOptions, infer_model
from onepass.tables.settings import Settings
from tests.cli.conftest import Run
from tests.helpers.browser import needs_browser, open_in_browser
from tests.helpers.tables import trips, write_csv


@pytest.fixture(scope="module")
def ruined(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trips of which one costs a million."""
    rows = trips(800)
    rows[500]["price"] = 1e6
    return write_csv(tmp_path_factory.mktemp("ruined") / "trips.csv", rows)


def test_the_row_that_ruined_a_score_is_named(run: Run, ruined: Path, tmp_path: Path) -> None:
    html = tmp_path / "report.html"
    code, out, _ = run("evaluate", ruined, "--target", "price", "--html", html)
    assert code == 0
    assert f"one row, {ruined}, line 502, makes" in out
    assert "(--outliers 0.05 has such rows do little harm)" in out
    assert f"One row, {ruined.name}, line 502" in html.read_text()
    assert str(ruined.parent) not in html.read_text()
    assert "one row" not in run("evaluate", ruined, "--target", "price", "--outliers", "0.05", "--quiet").out


def test_no_row_is_blamed_where_none_is_to_blame() -> None:
    worst = WorstRow(RootMeanSquaredError)
    worst.update(NumberPredictions(np.ones(100), np.zeros(100)), "a.csv", lambda: range(2, 102))
    assert worst.words() == ""
    targets = np.ones(100)
    targets[7] = 50.0
    worst.update(NumberPredictions(targets, np.zeros(100)), "b.csv", lambda: range(2, 102))
    assert worst.words() == (
        "one row, b.csv, line 9, makes 93 % of the sum of squared errors; without it the RMSE is 1.0000"
    )


def test_the_score_without_an_absurd_row_does_not_cancel() -> None:
    worst = WorstRow(RootMeanSquaredError)
    for target in (2.0, 1e12, 2.0):
        worst.update(NumberPredictions(np.array([target, *[2.0] * 29]), np.zeros(30)), "a.csv", lambda: range(2, 32))
    assert worst.words().endswith("makes 100 % of the sum of squared errors; without it the RMSE is 2.0000")


def test_neither_one_of_few_rows_nor_an_early_one_is_blamed() -> None:
    errors = np.ones(29)
    errors[20] = 4.0  # 36 % of the sum, but no more than 16 others
    few = WorstRow(RootMeanSquaredError)
    few.update(NumberPredictions(errors, np.zeros(29)), "a.csv", lambda: range(2, 31))
    assert few.share > 0.3
    assert few.words() == ""
    errors = np.ones(200)
    errors[1], errors[30] = 100.0, 50.0
    for early, line in ((0, 3), (2, 32)):
        for size in (1, 200):  # in one batch, and in many
            worst = WorstRow(RootMeanSquaredError, early=early)
            for start in range(0, 200, size):
                part, lines = errors[start : start + size], range(start + 2, start + size + 2)
                worst.update(NumberPredictions(part, np.zeros(len(part))), "a.csv", partial(list, lines))
            assert worst.line == line
            assert bool(worst.words()) == (early == 0)


def test_quarters_are_means_over_a_quarter_of_the_rows_each() -> None:
    scores = Scores([RootMeanSquaredError])
    errors = np.repeat([1.0, 2.0, 3.0, 4.0], 256)
    scores.update(NumberPredictions(errors, np.zeros(1024)))
    np.testing.assert_allclose(scores.quarters()["rmse"], [1.0, 2.0, 3.0, 4.0])
    few = Scores([RootMeanSquaredError])
    few.update(NumberPredictions(errors[:20], np.zeros(20)))
    np.testing.assert_allclose(few.quarters()["rmse"], [1.0, 1.0])


def test_coverage_is_told_for_every_quarter(run: Run, tmp_path: Path) -> None:
    """A stream that becomes calm: the intervals of its last half hold all targets, which the average hides."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=2000)
    noise = np.where(np.arange(2000) < 1000, 5.0, 0.1) * rng.normal(size=2000)
    rows = [{"x": a, "y": b} for a, b in zip(x, x + noise, strict=True)]
    html = tmp_path / "report.html"
    _, out, _ = run("evaluate", write_csv(tmp_path / "calm.csv", rows), "--target", "y", "--html", html)
    (line,) = [line for line in out.splitlines() if "quarter by quarter" in line]
    shares = [float(share) for share in line.partition("rows: ")[2].rstrip(" %").split(",")]
    assert len(shares) == 4
    assert max(shares[:2]) < 99.0
    assert min(shares[2:]) > 99.5
    assert "first quarter" in html.read_text()


def a_trial(folder: Path) -> Trial:
    inputs = Inputs((str(write_csv(folder / "trips.csv", trips(400))),))
    sources = inputs.sources()
    model, _ = infer_model(sources, SchemaOptions("price"), rereadable=True)
    trial = Trial(model, compare=True)
    trial.add(model.rows(list(sources[0].batches(model.types(target=True), 0))), "trips.csv")
    return trial


def test_a_contender_off_the_scale_is_named(tmp_path: Path) -> None:
    trial = a_trial(tmp_path)
    baseline, scores = trial.baselines[0]
    assert baseline.name not in model_report._learning_caption(trial, ("rmse", "log_likelihood"))
    scores.update(NumberPredictions(np.full(400, 1e6), np.zeros(400)))
    caption = model_report._learning_caption(trial, ("rmse", "log_likelihood"))
    assert f"{baseline.name} (7.071e+05 at the end)" in caption


def test_no_legend_covers_a_curve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Legends of the report lie outside of every panel."""
    figures: list[Figure] = []

    def keep(figure: Figure, kind: str) -> bytes:
        figure.draw_without_rendering()
        figures.append(figure)
        return b"<svg/>"

    monkeypatch.setattr(plots, "render", keep)
    model_report.evaluation_report(a_trial(tmp_path), ["trips.csv"])
    legends = [(legend, figure) for figure in figures for legend in figure.legends]
    assert len(legends) == 3
    for legend, figure in legends:
        box = legend.get_window_extent()
        assert not any(panel.get_legend() for panel in figure.axes)
        assert not any(box.overlaps(panel.get_window_extent()) for panel in figure.axes)


def test_the_report_says_what_a_bucket_is(run: Run, tmp_path: Path) -> None:
    html = tmp_path / "report.html"
    run("evaluate", write_csv(tmp_path / "trips.csv", trips(400)), "--target", "price", "--html", html)
    assert "the categories of a bucket share its weight" in html.read_text()


@needs_browser
def test_no_table_is_cut(run: Run, tmp_path: Path) -> None:
    rows = [{f"a rather long name of a column {k}": v for k, v in enumerate(row.values())} for row in trips(300)]
    for k, row in enumerate(rows):
        row["kind"] = f"one of several categories with a long name, {k % 6}"
    file, html = write_csv(tmp_path / "t.csv", rows), tmp_path / "report.html"
    run("evaluate", file, "--target", "a rather long name of a column 7", "--compare", "--html", html)
    seen, console = open_in_browser(html.read_text(), tmp_path)
    assert (seen["overflow"], seen["cut"], console) == ("false", "false", [])


def test_the_difference_of_two_models_is_shown(run: Run, tmp_path: Path) -> None:
    first, second = (write_csv(tmp_path / f"{name}.csv", trips(300, seed)) for seed, name in enumerate("ab"))
    run("fit", first, "--target", "price", "--model", tmp_path / "old.onepass")
    run("fit", first, "--target", "price", "--model", tmp_path / "new.onepass")
    same = run("show", "--diff", tmp_path / "old.onepass", tmp_path / "new.onepass", "--json")
    assert [(event["name"], event["value"]) for event in same.events] == [("differences", "none")]
    run("learn", tmp_path / "new.onepass", second)
    found = run("show", "--diff", tmp_path / "old.onepass", tmp_path / "new.onepass", "--json").events
    facts = {event["name"]: event for event in found if event["event"] == "difference"}
    assert facts["rows learned"]["value"] == "300 -> 600"
    moves = [event for event in found if event["event"] == "move"]
    assert len(moves) == 10
    far = [abs(move["deviations"]) for move in moves]
    assert far == sorted(far, reverse=True)
    one = moves[0]
    gap = one["new"]["mean"] - one["old"]["mean"]
    assert one["deviations"] == pytest.approx(gap / one["old"]["std"])


def test_models_of_different_targets_are_not_compared(run: Run, tmp_path: Path) -> None:
    file = write_csv(tmp_path / "a.csv", trips(100))
    for target in ("price", "km"):
        run("fit", file, "--target", target, "--model", tmp_path / f"{target}.onepass")
    code, _, err = run("show", "--diff", tmp_path / "km.onepass", tmp_path / "price.onepass")
    assert code == 2
    assert "different targets, 'km' and 'price'" in err


def test_rows_that_are_held_out_are_scored_by_a_model_of_all_others(run: Run, tmp_path: Path) -> None:
    file = write_csv(tmp_path / "trips.csv", trips(600))
    done = run("evaluate", file, "--target", "price", "--test-split", "25%", "--seed", "3", "--json").events[-1]
    inputs = Inputs((str(file),))
    model, _ = infer_model(inputs.sources(), SchemaOptions("price", settings=Settings(seed=3)), rereadable=True)
    rows = Rows.joined([step.rows for step in steps(model, inputs, inputs.sources())])
    tests = np.random.default_rng(3).random(600) < 0.25
    model.learn(rows.at(np.flatnonzero(~tests)))
    predicted = model.predictions(rows.X[tests], 0.95)
    y = np.array([row["price"] for row in trips(600)])[tests]
    assert done["rows"] == tests.sum()
    scores = done["scores"]["onepass"]
    assert scores["rmse"] == pytest.approx(np.sqrt(np.mean((predicted["mean"] - y) ** 2)))
    inside = np.mean((predicted["lower"] <= y) & (y <= predicted["upper"]))
    assert scores["coverage_95"] == pytest.approx(inside, abs=1.0 / tests.sum())


def test_the_last_rows_are_scored_by_the_model_that_fit_makes_of_the_others(run: Run, tmp_path: Path) -> None:
    file, path = write_csv(tmp_path / "trips.csv", trips(300)), tmp_path / "first.onepass"
    done = run("evaluate", file, "--target", "price", "--test-split", "last:30%", "--json").events[-1]
    first = write_csv(tmp_path / "first.csv", trips(300)[:210])
    assert run("fit", first, "--target", "price", "--model", path, "-q").code == 0
    last = write_csv(tmp_path / "last.csv", trips(300)[210:])
    predicted = onepass.tables.predict(path, str(last))["mean"].to_numpy()
    y = np.array([row["price"] for row in trips(300)[210:]])
    assert done["rows"] == 90
    assert done["scores"]["onepass"]["rmse"] == pytest.approx(np.sqrt(np.mean((predicted - y) ** 2)))
    again = run("evaluate", last, "--model", path, "--test-split", "last:50%", "--json").events[-1]
    assert again["rows"] == 45
    html = tmp_path / "page.html"
    for share, words in (
        ("last:30%", "The last 90 rows were predicted by a model that had learned the 210 before them."),
        ("30%", "rows, drawn at random, were predicted by a model that had learned the "),
    ):
        run("report", file, "--target", "price", "--test-split", share, "--out", html)
        assert words in html.read_text()
    assert "nor the last rows such as last:20%" in run("evaluate", file, "--test-split", "first:20%").err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--target", "price", "--compare"], "can't be given with --compare"),
        (["--target", "price", "--by", "town"], "can't be given with a model per key"),
    ],
)
def test_what_can_not_be_held_out_is_said(run: Run, tmp_path: Path, options: list[str], words: str) -> None:
    file = write_csv(tmp_path / "trips.csv", trips(100))
    done = run("evaluate", file, "--test-split", "20%", *options)
    assert done.code == 2
    assert words in done.err
    assert "neither a percentage such as 20%" in run("evaluate", file, "--target", "km", "--test-split", "0").err


def test_weights_in_different_units_are_not_compared(run: Run, tmp_path: Path) -> None:
    file = write_csv(tmp_path / "a.csv", trips(200))
    for name, option in (("plain", "--no-log-target"), ("log", "--log-target")):
        run("fit", file, "--target", "price", "--where", "price > 0", option, "--model", tmp_path / f"{name}.onepass")
    found = run("show", "--diff", tmp_path / "plain.onepass", tmp_path / "log.onepass", "--json").events
    assert not [event for event in found if event["event"] == "move"]
    (told,) = [event["value"] for event in found if event["name"] == "weights"]
    assert told == "changes of price -> the logarithm of price: not compared"
    out = run("predict", tmp_path / "log.onepass", file, "--where", "id == 3", "--explain").out
    assert "baseline" in out
