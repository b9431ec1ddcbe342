"""Targets that vary by factors, from the user's side: all that is printed and written is in their own units."""

import csv
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Run
from tests.helpers.tables import write_csv

WILD = 500  # the row whose price is far too large


def rows_of_prices() -> list[dict[str, float]]:
    rng = np.random.default_rng(0)
    size, noise = rng.normal(size=(2, 600))
    price = np.exp(3.0 + size + 0.3 * noise)
    return [{"size": a, "price": b} for a, b in zip(size.tolist(), price.tolist(), strict=True)]


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "prices.csv", rows_of_prices())


@pytest.fixture
def wild_prices(tmp_path: Path) -> Path:
    rows = rows_of_prices()
    rows[WILD]["price"] *= 1e4
    return write_csv(tmp_path / "wild.csv", rows)


def test_the_logarithm_is_chosen_told_and_overruled(prices: Path, run: Run, tmp_path: Path) -> None:
    model = tmp_path / "p.onepass"
    done = run("fit", prices, "--target", "price", "--sample", "400", "--model", model)
    assert done.code == 0
    assert "--no-log-target would learn the target itself" in done.out
    assert "price, learned as its logarithm" in done.out
    shown = run("show", model, "--html", tmp_path / "a.html").out
    assert "(logarithm of price)" in shown
    assert "A change of a logarithm by 0.01 is about 1 %" in (tmp_path / "a.html").read_text()
    assert run("predict", model, prices, "--level", "0.5", "--out", tmp_path / "out.csv").code == 0
    with (tmp_path / "out.csv").open() as file:
        rows = [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]
    with prices.open() as file:
        targets = [float(row["price"]) for row in csv.DictReader(file)]
    inside = [row["lower"] < y < row["upper"] for row, y in zip(rows, targets, strict=True)]
    assert abs(np.mean(inside) - 0.5) < 0.1
    assert all(0.0 < row["lower"] < row["mean"] for row in rows)
    done = run("fit", prices, "--target", "price", "--no-log-target", "--model", model)
    assert "learned as its logarithm" not in done.out


def test_targets_far_away_are_told_with_the_option_against_them(wild_prices: Path, run: Run, tmp_path: Path) -> None:
    words = "if targets far away are errors, --outliers 0.05"
    fit = ("fit", wild_prices, "--target", "price", "--model", tmp_path / "p.onepass")
    assert words in run(*fit).out
    assert words not in run(*fit, "--outliers", "0.01").out


def test_scores_and_alarms_are_in_the_target_s_units(wild_prices: Path, run: Run, tmp_path: Path) -> None:
    found = {}
    for choice in ("--log-target", "--no-log-target"):
        done = run("evaluate", wild_prices, "--target", "price", choice, "--outliers", "0.01", "--json")
        (found[choice],) = [event for event in done.events if "scores" in event]
    ours, plain = (found[choice]["scores"]["onepass"] for choice in ("--log-target", "--no-log-target"))
    assert ours["log_likelihood"] > plain["log_likelihood"] + 0.2
    assert 0.9 < ours["coverage_95"] < 0.99
    alarms = tmp_path / "alarms.csv"
    options = ("--log-target", "--outliers", "0.01", "--alarms", alarms, "--model", tmp_path / "p.onepass")
    assert run("fit", wild_prices, "--target", "price", *options).code == 0
    with alarms.open() as file:
        told = {int(row["line"]): row for row in csv.DictReader(file)}
    assert float(told[WILD + 2]["target"]) > 1e3 * float(told[WILD + 2]["predicted"]) > 0.0


def test_what_has_no_logarithm_is_refused_or_rejected(prices: Path, run: Run, tmp_path: Path) -> None:
    model = tmp_path / "p.onepass"
    assert run("fit", prices, "--target", "price", "--log-target", "--model", model).code == 0
    more = write_csv(tmp_path / "more.csv", [{"size": 1.0, "price": 0.0}, {"size": 1.0, "price": 9.0}])
    done = run("learn", model, more, "--rejects", tmp_path / "rejects.csv")
    assert done.code == 3
    assert "price is 0, but its logarithm is learned" in (tmp_path / "rejects.csv").read_text()
    done = run("fit", prices, "--target", "size", "--log-target", "--model", tmp_path / "s.onepass")
    assert done.code == 1
    assert "--log-target: the target 'size' has values such as" in done.err


def test_a_logarithm_that_was_tried_and_not_taken_is_told(run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    size, noise = rng.exponential(size=600), rng.normal(size=600)
    price = 3.0 + 5.0 * size + 0.1 * noise  # skewed, but a plain sum
    rows = [{"size": a, "price": b} for a, b in zip(size.tolist(), price.tolist(), strict=True)]
    file, model = write_csv(tmp_path / "plain.csv", rows), tmp_path / "p.onepass"
    done = run("fit", file, "--target", "price", "--model", model)
    assert "its logarithm was tried and not taken: the first rows are" in done.out
    assert "nats per row less probable so" in done.out
    assert "--log-target would learn its logarithm" in done.out
    assert "its logarithm was tried and not taken" in run("show", model).out
    silent = run("fit", file, "--target", "price", "--no-log-target", "--model", model)
    assert "its logarithm" not in silent.out
