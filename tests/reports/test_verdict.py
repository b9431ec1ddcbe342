"""The verdict of a report: only what chance doesn't explain counts, and a leak is never green."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from onepass.evaluation.metrics import ClassCalibrationError, ClassPredictions
from onepass.evaluation.prequential import Trial
from onepass.reports.html import Verdict
from onepass.reports.verdict import claims, intervals_claim, probabilities_claim, summary
from onepass.tables.inputs import Inputs
from onepass.tables.schema import SchemaOptions, infer_model


@pytest.mark.parametrize(
    ("inside", "rows", "verdict"),
    [
        ((20, 28, 29), 29, Verdict.TOO_FEW),
        ((5, 8, 10), 29, Verdict.FAILS),
        ((57, 92, 107), 116, Verdict.HOLDS),  # 1.4 standard errors
        ((43, 66, 80), 80, Verdict.HOLDS),  # chance in one of 60 cases
        ((599, 599, 599), 600, Verdict.FAILS),  # the 95 % level is off by 5, that of 50 % by 50
        ((5_100, 8_000, 9_540), 10_000, Verdict.HOLDS),  # beyond chance, but not by much
        ((5_700, 8_600, 9_600), 10_000, Verdict.IN_PART),
        ((5_000, 8_000, 8_800), 10_000, Verdict.FAILS),
    ],
)
def test_intervals_are_blamed_only_beyond_chance(inside: tuple[int, ...], rows: int, verdict: Verdict) -> None:
    assert intervals_claim([count / rows for count in inside], rows).verdict is verdict


def test_right_intervals_are_rarely_blamed() -> None:
    random = np.random.default_rng(0)
    places = random.random((400, 200, 1))
    shares = (np.abs(places - 0.5) < np.array([0.25, 0.4, 0.475])).mean(axis=1)
    blamed = [intervals_claim(list(found), 200).verdict is not Verdict.HOLDS for found in shares]
    assert np.mean(blamed) < 0.07


def test_what_is_wrong_with_intervals_is_said_and_counts_may_be_wide() -> None:
    shares = [0.7, 0.9, 0.97]
    words = intervals_claim(shares, 1000).found
    assert "700 (70.0 %) in the 50 % intervals, which are too wide" in words
    assert "too narrow" in intervals_claim([0.5, 0.8, 0.85], 1000).found
    assert intervals_claim(shares, 1000, are_counts=True).verdict is Verdict.HOLDS


@pytest.mark.parametrize(
    ("power", "rows", "verdict"),
    [(1.0, 20, Verdict.TOO_FEW), (1.0, 100, Verdict.HOLDS), (3.0, 100, Verdict.FAILS), (1.3, 20_000, Verdict.IN_PART)],
)
def test_probabilities_are_blamed_only_beyond_chance(power: float, rows: int, verdict: Verdict) -> None:
    """Events whose true probability is said, or one that is too extreme: a power of its odds."""
    random = np.random.default_rng(1)
    true = random.random(rows)
    said = 1.0 / (1.0 + (1.0 / true - 1.0) ** power)
    y = (random.random(rows) < true).astype(float)
    error = ClassCalibrationError().update(ClassPredictions(y, np.stack([1.0 - said, said], axis=1)))
    assert probabilities_claim(error.reliability()).verdict is verdict


def _trial(folder: Path, frame: Any, target: str) -> Trial:
    file = folder / "a.csv"
    frame.to_csv(file, index=False)
    sources = Inputs((str(file),)).sources()
    options = SchemaOptions.of(target, model_kind="perceptron")
    trial = Trial(infer_model(sources, options, rereadable=True)[0])
    types = trial.model.types(target=True)
    trial.add(trial.model.rows(list(sources[0].batches(types, 0))), str(file))
    return trial


def _frame(n: int) -> Any:
    random = np.random.default_rng(2)
    size = random.normal(size=n)
    return pd.DataFrame({"size": size, "price": 10.0 + size + 0.5 * random.normal(size=n)})


def test_a_leak_is_part_of_the_verdict(tmp_path: Path) -> None:
    frame = _frame(300)
    assert {claim.verdict for claim in claims(_trial(tmp_path, frame, "price"))} == {Verdict.HOLDS}
    leaking = _trial(tmp_path, frame.assign(paid=1.19 * frame["price"]), "price")
    (leak,) = (claim for claim in claims(leaking) if claim.said == "No column gives the target away")
    assert leak.verdict is Verdict.FAILS
    assert "'paid' alone explains 100 % of 'price'" in leak.found


def test_few_rows_are_said_to_be_few(tmp_path: Path) -> None:
    few = _trial(tmp_path, _frame(29), "price")
    assert "Scores of 29 rows are mostly chance." in summary(few)
    assert {claim.verdict for claim in claims(few)} == {Verdict.TOO_FEW}
    assert "chance" not in summary(_trial(tmp_path, _frame(300), "price"))
