"""Anomalies put into real series: who ranks and finds them, and how often there are false alarms.

    python -m benchmarks.anomalies --data FOLDER [--choose]

FOLDER has ``m4-weekly.csv.gz`` and ``m4-hourly.csv.gz``: ``series,part,value`` in the order of time; only ``train`` is
used. Spikes, new levels, runs, changed variances and dropped seasons are put into the series, several into each.
``--choose`` prints the results of the first half of the series, on which settings were chosen: those of onepass, and of
every other detector its inputs and the threshold with the best F1. Without it the other half is measured, and
WaterFlow and TrumpApproval of River, with these settings. Results go to benchmarks/anomalies.json, and from there to
docs/evidence/anomalies.md and docs/images/evidence-anomalies.png. It takes five minutes of one core.
"""

import argparse
import csv
import gzip
from collections.abc import Callable, Iterator
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from river import anomaly, compose, linear_model, optim, preprocessing, time_series
from sklearn.metrics import average_precision_score, roc_auc_score

from benchmarks.charts import IMAGES, dots
from benchmarks.stored import keep, stored
from onepass import BayesianForecaster
from onepass._typing import FloatArray
from onepass.files.atomic import write_atomically
from onepass.forecasting import AnomalyScorer

__all__ = ["KINDS", "Event", "Found", "Series", "alarms_of", "clean_noise", "inject", "judge", "series"]

STORED = Path(__file__).parent / "anomalies.json"
PAGE = Path(__file__).parents[1] / "docs" / "evidence" / "anomalies.md"
KINDS = ("spike", "level", "run", "variance", "season")
WORDS = {
    "spike": "one or two values 5 to 20 deviations away",
    "level": "all later values moved by 5 to 20 deviations; the first five count",
    "run": "6 to 20 values moved by 3 to 6 deviations",
    "variance": "15 to 40 values with noise of 3 to 6 deviations added",
    "season": "the mean of a season in the place of its values",
}
WARM_UP = 150  # values that are not scored
LATE = 3  # values after an event in which an alarm is still in time
AFTERMATH = 60  # values after an event in which an alarm is not counted as false
QUIET = 20  # values after an alarm without another one, for all detectors
RATES = (1e-2, 1e-3, 1e-4)
CHOSEN = "AnomalyScorer, chosen threshold"
SMOOTHED = "smoothed log density"
MARKED = (CHOSEN, SMOOTHED, "HalfSpaceTrees", "PredictiveAnomalyDetection", "GaussianScorer")


class Series(NamedTuple):
    """A series, and its seasons in steps."""

    name: str
    seasons: tuple[float, ...]
    y: FloatArray


class Event(NamedTuple):
    """An anomaly that was put into a series."""

    kind: str
    start: int
    length: int


class Found(NamedTuple):
    """What a detector says of a series: scores, and where it raises alarms."""

    score: FloatArray
    alarm: np.ndarray


_ANOMALY: Any = anomaly  # not typed
Detector = Callable[[Series], FloatArray]


def series(folder: Path, half: int) -> list[Series]:
    """Series to choose on (0), or to report (1)."""
    hourly = [Series(f"hourly {name}", (24, 168), y) for name, y in _m4(folder / "m4-hourly.csv.gz")]
    weekly = [Series(f"weekly {name}", (52.18,), y[-1500:]) for name, y in _m4(folder / "m4-weekly.csv.gz")]
    found = hourly[half::8] + [one for one in weekly[half::2] if len(one.y) > 500][::4]
    if half:
        data = files("river.datasets")
        with (data / "water-flow.csv").open(encoding="utf-8") as lines:
            flow = [float(row["Water flow [l/s]"] or "nan") for row in csv.DictReader(lines)]
        with gzip.open(str(data / "trump_approval.csv.gz"), "rt", encoding="utf-8") as lines:
            approval = [float(row["five_thirty_eight"]) for row in csv.DictReader(lines)]
        found += [Series("WaterFlow", (24,), np.array(flow)), Series("TrumpApproval", (1,), np.array(approval))]
    return found


def _m4(path: Path) -> Iterator[tuple[str, FloatArray]]:
    found: dict[str, list[float]] = {}
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            if row["part"] == "train":
                found.setdefault(row["series"], []).append(float(row["value"]))
    return ((name, np.array(values)) for name, values in found.items())


def inject(one: Series, rng: np.random.Generator) -> tuple[Series, list[Event]]:
    """Put anomalies into a series; deviations are those of its seasonal changes, by their median."""
    y, n, m = one.y.copy(), len(one.y), max(round(one.seasons[0]), 1)
    changes = np.diff(y)
    changes = changes[m:] - changes[:-m] if m > 1 else changes
    size = 1.4826 * float(np.nanmedian(np.abs(changes - np.nanmedian(changes)))) / (2**0.5 if m > 1 else 1.0)
    size = size or float(np.nanstd(changes)) / 3.0
    start = max(WARM_UP, n // 4)
    edges = np.linspace(start, n - 5, max(2, min(8, (n - start) // 120)) + 1).astype(int)
    events = []
    for first, last in pairwise(edges.tolist()):
        kind = str(rng.choice(KINDS if m >= 4 else KINDS[:-1]))
        at, sign = int(rng.integers(first + 10, max(first + 11, last - 60))), rng.choice([-1.0, 1.0])
        length = int(rng.integers(*{"spike": (1, 3), "run": (6, 20), "variance": (15, 40)}.get(kind, (5, 6))))
        if kind == "season":
            length = min(m, 24)
            y[at : at + length] = np.nanmean(y[at - m : at])
        elif kind == "variance":
            y[at : at + length] += rng.normal(size=length) * size * rng.uniform(3.0, 6.0)
        else:
            stop = n if kind == "level" else at + length
            y[at:stop] += sign * size * (rng.uniform(3.0, 6.0) if kind == "run" else rng.uniform(5.0, 20.0))
        events.append(Event(kind, at, length))
    return one._replace(y=y), events


def alarms_of(score: FloatArray, threshold: float) -> np.ndarray:
    """Values above the threshold, each after `QUIET` values in a row below it."""
    alarm, quiet = np.zeros(len(score), dtype=bool), 0
    for i, value in enumerate(score):
        if value > threshold:
            alarm[i], quiet = quiet == 0, QUIET
        else:
            quiet = max(quiet - 1, 0)
    return alarm


def judge(found: list[tuple[Series, list[Event], Found]]) -> dict[str, float]:
    """AUC and average precision of values, mean over series; precision, recall and F1 of events over all series."""
    areas, precisions, false = [], [], 0
    hits: dict[str, list[bool]] = {}
    for one, events, (score, alarm) in found:
        odd, near = np.zeros(len(one.y), dtype=bool), np.arange(len(one.y)) < WARM_UP
        for event in events:
            odd[event.start : event.start + event.length] = True
            near[event.start : event.start + event.length + AFTERMATH] = True
            in_time = alarm[event.start : event.start + event.length + LATE]
            hits.setdefault(event.kind, []).append(bool(in_time.any()))
        counted = np.isfinite(one.y) & (np.arange(len(one.y)) >= WARM_UP)
        areas.append(roc_auc_score(odd[counted], np.nan_to_num(score[counted])))
        precisions.append(average_precision_score(odd[counted], np.nan_to_num(score[counted])))
        false += int((alarm & ~near).sum())
    true, missed = sum(map(sum, hits.values())), sum(len(own) - sum(own) for own in hits.values())
    return {
        "auc": float(np.mean(areas)),
        "ap": float(np.mean(precisions)),
        "f1": 2.0 * true / (2.0 * true + false + missed),
        "precision": true / max(true + false, 1),
        "recall": true / (true + missed),
        **{kind: float(np.mean(hits[kind])) for kind in KINDS if kind in hits},
    }


def clean_rate(found: list[tuple[Series, Found]]) -> float:
    """Alarms per value of series into which nothing was put."""
    return sum(int(own.alarm[WARM_UP:].sum()) for _, own in found) / sum(len(one.y) - WARM_UP for one, _ in found)


def clean_noise(rng: np.random.Generator, n: int = 30_000) -> dict[str, FloatArray]:
    """Series in which nothing happens."""
    return {
        "Gaussian noise": rng.normal(size=n),
        "Laplace noise": rng.laplace(size=n),
        "Student noise, 3 degrees": rng.standard_t(3, size=n),
        "counts of mean 2": rng.poisson(2.0, size=n).astype(np.float64),
        "random walk": np.cumsum(rng.normal(size=n)),
    }


# The detectors.


def scored(one: Series, false_alarms: float = 1e-4) -> Found:
    """`AnomalyScorer` at its defaults."""
    found = AnomalyScorer(one.seasons, false_alarms=false_alarms, quiet=QUIET).score_then_learn(one.y)
    return Found(found.score, found.alarm)


def log_density(one: Series) -> FloatArray:
    """The smoothed negative log density of each value one step ahead, by `BayesianForecaster`, in its own scale."""
    model, evidence = BayesianForecaster(one.seasons), []
    for value in one.y:
        evidence.append(model.learn(value).log_evidence)
    surprise, mean, size, smooth = -np.diff(evidence, prepend=0.0), 0.0, 1.0, np.zeros(len(one.y))
    for i, value in enumerate(surprise):
        rate = max(1.0 / (i + 1.0), 0.005)
        mean += rate * (value - mean)
        size += rate * (abs(value - mean) - size)
        smooth[i] = 0.75 * smooth[i - 1] + 0.25 * (value - mean) / max(size, 1e-9)
    return smooth


def _inputs(one: Series, values_alone: bool) -> Iterator[dict[str, float]]:
    """The value, its change, and its change from a season before; a missing value is the one before."""
    m, past = max(round(one.seasons[0]), 1), [0.0]
    for value in one.y:
        past.append(past[-1] if np.isnan(value) else float(value))
        row = {"value": past[-1]}
        if not values_alone:
            row |= {"change": past[-1] - past[-2], "season": past[-1] - past[max(len(past) - 1 - m, 0)]}
        yield row


def _of_rows(make: Callable[[], Any], values_alone: bool) -> Detector:
    def run(one: Series) -> FloatArray:
        model, scores = make(), []
        for row in _inputs(one, values_alone):
            scores.append(float(model.score_one(row)))
            model.learn_one(row)
        return np.array(scores)

    return run


def _of_values(make: Callable[[Series], Any]) -> Detector:
    def run(one: Series) -> FloatArray:
        model, scores = make(one), []
        for row in _inputs(one, values_alone=True):
            scores.append(float(model.score_one(None, row["value"])))
            model.learn_one(None, row["value"])
        return np.nan_to_num(scores)

    return run


def _predictive(one: Series) -> Any:
    season = max(round(one.seasons[0]), 1)
    regressor = preprocessing.StandardScaler() | linear_model.LinearRegression(optimizer=optim.SGD(0.005))
    forecaster = time_series.SNARIMAX(p=4, d=0, q=0, m=season, sp=1 if season > 1 else 0, regressor=regressor)
    return anomaly.PredictiveAnomalyDetection(forecaster, horizon=1, n_std=3.5, warmup_period=WARM_UP)


def _trees() -> Any:
    return compose.Pipeline(preprocessing.MinMaxScaler(), anomaly.HalfSpaceTrees(seed=0))


def _vectors() -> Any:
    return compose.Pipeline(preprocessing.StandardScaler(), anomaly.OneClassSVM(nu=0.05))


PEERS: dict[str, dict[str, Detector]] = {
    CHOSEN: {"": lambda one: np.nan_to_num(scored(one).score)},
    SMOOTHED: {"": log_density},
    "HalfSpaceTrees": {"values": _of_rows(_trees, True), "changes too": _of_rows(_trees, False)},
    "OneClassSVM": {"values": _of_rows(_vectors, True), "changes too": _of_rows(_vectors, False)},
    "GaussianScorer": {
        "all values": _of_values(lambda one: _ANOMALY.GaussianScorer()),
        "the last 200": _of_values(lambda one: _ANOMALY.GaussianScorer(window_size=200)),
    },
    "StandardAbsoluteDeviation": {"": _of_values(lambda one: anomaly.StandardAbsoluteDeviation())},
    "PredictiveAnomalyDetection": {"SNARIMAX": _of_values(_predictive)},
}


def _with_events(given: list[Series]) -> list[tuple[Series, list[Event]]]:
    return [inject(one, np.random.default_rng(k)) for k, one in enumerate(given)]


def choose(folder: Path) -> dict[str, Any]:
    """Results on the first half, and the best inputs and threshold of every other detector."""
    odd = _with_events(series(folder, 0))
    found: dict[str, Any] = {}
    for rate in RATES:
        print(rate, judge([(one, events, scored(one, rate)) for one, events in odd]), flush=True)
    for name, variants in PEERS.items():
        results = {}
        for variant, detector in variants.items():
            scores = [detector(one) for one, _ in odd]
            every = np.concatenate([score[WARM_UP:] for score in scores])
            thresholds = np.unique(np.quantile(every, 1.0 - np.geomspace(3e-4, 0.05, 12)))
            judged = {
                float(t): judge([(*own, Found(s, alarms_of(s, t))) for own, s in zip(odd, scores, strict=True)])
                for t in (*thresholds, every.max() * (1.0 - 1e-12))
            }
            best = max(judged, key=lambda t: judged[t]["f1"])
            results[variant] = judged[best] | {"threshold": best}
        variant = max(results, key=lambda v: results[v]["ap"])
        found[name] = results[variant] | {"variant": variant}
        print(name, found[name], flush=True)
    return found


def measure(folder: Path, chosen: dict[str, Any]) -> dict[str, Any]:
    """Results on the second half, with the settings chosen on the first."""
    clean = series(folder, 1)
    odd = _with_events(clean)
    judged, rates = {}, {}
    for rate in RATES[::-1]:
        name = f"AnomalyScorer, {1e4 * rate:g} in 10,000"
        judged[name] = judge([(one, events, scored(one, rate)) for one, events in odd])
        rates[name] = clean_rate([(one, scored(one, rate)) for one in clean])
    for name, variants in PEERS.items():
        detector, threshold = variants[chosen[name]["variant"]], chosen[name]["threshold"]
        after = [(one, events, detector(one)) for one, events in odd]
        judged[name] = judge([(one, events, Found(s, alarms_of(s, threshold))) for one, events, s in after])
        scores = [(one, detector(one)) for one in clean]
        rates[name] = clean_rate([(one, Found(s, alarms_of(s, threshold))) for one, s in scores])
        print(name, judged[name], flush=True)
    nominal = {
        name: {str(rate): clean_rate([(own := Series(name, (1,), y), scored(own, rate))]) for rate in RATES}
        for name, y in clean_noise(np.random.default_rng(0)).items()
    }
    n = {"series": len(clean), "values": sum(len(one.y) for one in clean), "events": sum(len(e) for _, e in odd)}
    return {"judged": judged, "clean": rates, "nominal": nominal, "n": n}


# The page.


def text(results: dict[str, Any]) -> str:
    """The whole page."""
    judged, clean, n = results["judged"], results["clean"], results["n"]
    header = ["detector", "average precision", "AUC", "F1", "precision", "recall", "false alarms per 10,000"]
    rows = [
        [name, *(f"{own[key]:.2f}" for key in ("ap", "auc", "f1", "precision", "recall")), f"{1e4 * clean[name]:.1f}"]
        for name, own in judged.items()
    ]
    kinds = [[name, *(f"{own[kind]:.2f}" for kind in KINDS)] for name, own in judged.items()]
    nominal = [[name, *(f"{1e4 * own[str(rate)]:.1f}" for rate in RATES)] for name, own in results["nominal"].items()]
    chosen = "; ".join(f"{name}: {own['variant']}" for name, own in results["chosen"].items() if own.get("variant"))
    return f"""\
# Anomalies

{_answer(results)}

![Average precision by detector, and recall by kind of anomaly](../images/evidence-anomalies.png)

{n["events"]} anomalies were put into {n["series"]} real series with {n["values"]:,} values: hourly and weekly ones
of the M4 competition, WaterFlow and TrumpApproval of River. Deviations are those of the series' own seasonal changes:

{chr(10).join(f"- {kind}: {words}" for kind, words in WORDS.items())}

Average precision and AUC rank the values of each series, mean over series; precision, recall and F1 count events. All
detectors see each value once, score it before they learn it, and are quiet for {QUIET} values after an alarm.
`AnomalyScorer` runs at its defaults but for `false_alarms`. The other detectors have no such rate: each has the inputs
and the one threshold with the best F1 on other series of the same kind, and the fourth row has its threshold chosen in
the same way. The last column counts alarms in the same series before anything was put into them. Real series have
oddities of their own, so these are not all false.

{_table(header, rows)}

## What is found

Recall by kind of anomaly:

{_table(["detector", *KINDS], kinds)}

## Alarms as rare as asked for

Alarms of `AnomalyScorer` per 10,000 values of series in which nothing happens:

{_table(["series", *(f"asked for: {1e4 * rate:g}" for rate in RATES)], nominal)}

## How it was measured

Written by `python -m benchmarks.anomalies --data FOLDER`; [evidence](index.md) has the date and the machine. The inputs
chosen for the others were: {chosen}. The smoothed log density is that of the library's own forecaster, for
comparison.
"""


def _answer(results: dict[str, Any]) -> str:
    judged = results["judged"]
    own, plain = judged[CHOSEN], judged[SMOOTHED]
    others = [name for name in judged if name != SMOOTHED and not name.startswith("AnomalyScorer")]
    keys = (("ap", "average precision"), ("auc", "AUC"), ("f1", "F1 of events"))
    sentences = []
    for key, words in keys:
        best = max(others, key=lambda name: judged[name][key])
        sentences.append(f"{words} {own[key]:.2f} (the best of River, {best}: {judged[best][key]:.2f})")
    sides = ", ".join(f"{words} {plain[key]:.2f}" for key, words in keys)
    ahead = []
    for kind in KINDS:
        better = [f"{name} {judged[name][kind]:.2f}" for name in (SMOOTHED, *others) if judged[name][kind] > own[kind]]
        ahead += [f"{kind} ({', '.join(better)}, against {own[kind]:.2f})"] if better else []
    more = f" At the chosen thresholds others find more of these kinds: {'; '.join(ahead)}." if ahead else ""
    return (
        f"`AnomalyScorer` next to River's detectors, its threshold chosen as theirs: {'; '.join(sentences)}. A simpler "
        f"score of the same forecaster, its smoothed log density, is about as good where a threshold can be chosen "
        f"({sides}); it has no rate of false alarms, limits or kinds.{more}"
    )


def _table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def draw(results: dict[str, Any]) -> bytes:
    """The chart: average precision, F1, and recall of every kind, by detector."""
    shown = {name.partition(",")[0]: results["judged"][name] for name in MARKED}
    rows = {"average precision": "ap", "F1 of events": "f1"} | {f"recall: {kind}": kind for kind in KINDS}
    marks = {label: {name: own[key] for name, own in shown.items()} for label, key in rows.items()}
    return dots(marks, "higher is better")


def main() -> None:
    """Measure, keep the results, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.anomalies", description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--data", type=Path, required=True, metavar="FOLDER", help="folder with the competition's series"
    )
    parser.add_argument(
        "--choose", action="store_true", help="choose settings on the other half of the series, and keep them"
    )
    parser.add_argument("--page", action="store_true", help="write the page again from what is stored")
    options = parser.parse_args()
    known = stored(STORED)
    if options.choose:
        keep(STORED, known | {"chosen": choose(options.data)})
        return
    if not options.page:
        keep(STORED, known | measure(options.data, known["chosen"]))
    results = stored(STORED)
    write_atomically(PAGE, text(results).encode())
    write_atomically(IMAGES / "evidence-anomalies.png", draw(results))


if __name__ == "__main__":
    main()
