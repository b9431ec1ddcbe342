"""Every table that ships inside scikit-learn, River, statsmodels and vega_datasets.

    python -m benchmarks.shipped            # all of them, written to docs/evidence/shipped-tables.md
    python -m benchmarks.shipped cars iris  # some, printed only
    python -m benchmarks.shipped --page     # the page, from what was measured last

Ours is `onepass fit` and `onepass evaluate` with every default: nothing is said but the target, and whether it is a
class.
"""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from benchmarks.charts import IMAGES, dots
from benchmarks.shipped.catalogue import LEFT_OUT, shipped_tables
from benchmarks.shipped.peers import BOOSTING, LINEAR
from benchmarks.shipped.scores import SPLITS, Result, score
from benchmarks.stored import keep, stored
from onepass.evaluation.prequential import OURS
from onepass.files.atomic import write_atomically

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "shipped-tables.md"
STORED = Path(__file__).parents[1] / "shipped.json"
CHARTS = {"regression": "evidence-tables-numbers.png", "classification": "evidence-tables-classes.png"}
_LEARNERS = (OURS, LINEAR, BOOSTING)
_CLOSE = 0.02  # losses that differ by less than this share are as good as each other
_LEAST = 0.0005  # losses below it differ by nothing that matters
_NARROW = 0.8  # 95 % intervals that hold a smaller share need an explanation


def main(wanted: Sequence[str]) -> None:
    """Measure, print, and write the page if all were measured."""
    results = []
    for table in shipped_tables():
        if not wanted or table.name in wanted:
            results.append(score(table))
            print(_line(results[-1]), flush=True)
    for words in _summaries(results):
        print(words)
    if not wanted:
        keep(STORED, {"rows": [asdict(result) for result in results]})
        write()


def read() -> list[Result]:
    """What was measured last."""
    return [Result(**one) for one in stored(STORED)["rows"]]


def write() -> None:
    """Write the page and its charts from what was measured last."""
    results = read()
    PAGE.write_text(page(results), encoding="utf-8")
    for task, name in CHARTS.items():
        write_atomically(IMAGES / name, chart([one for one in results if one.task == task]))


def chart(results: Sequence[Result]) -> bytes:
    """Draw losses over ours, row by row."""
    rows = {
        one.name: {
            "80/20: gradient boosting": _ratio(one.after_split, BOOSTING, OURS),
            "80/20: linear": _ratio(one.after_split, LINEAR, OURS),
            "row by row: gradient boosting": _ratio(one.row_by_row, BOOSTING, OURS),
            "row by row: linear": _ratio(one.row_by_row, LINEAR, OURS),
        }
        for one in results
    }
    label = "loss of the others divided by that of onepass (above 1: onepass is better)"
    return dots(rows, label, reference=1.0, log=True, limits=(0.2, 5.0))


def _line(result: Result) -> str:
    covered = "" if result.coverage is None else f"{100.0 * result.coverage:.1f} %"
    first, second = _cells(result.after_split), _cells(result.row_by_row)
    return f"| {result.package} | {result.name} | {result.rows:,} | {first} | {covered} | {second} |"


def _cells(losses: dict[str, float]) -> str:
    good = _as_good_as_the_best(losses)
    return " | ".join(f"**{losses[name]:.3f}**" if name in good else f"{losses[name]:.3f}" for name in _LEARNERS)


def _ratio(losses: dict[str, float], above: str, below: str) -> float:
    return max(losses[above], _LEAST) / max(losses[below], _LEAST)


def _as_good_as_the_best(losses: dict[str, float]) -> set[str]:
    best = min(losses.values())
    return {name for name, loss in losses.items() if loss <= best * (1.0 + _CLOSE)}


def _summaries(results: Sequence[Result]) -> list[str]:
    """Who is best how often, and by how much on average."""
    out = []
    for task, what in (("regression", "Numbers"), ("classification", "Classes")):
        chosen = [one for one in results if one.task == task]
        if chosen:
            out.append(f"{what}, 80/20: {_summary([one.after_split for one in chosen])}")
            out.append(f"{what}, row by row: {_summary([one.row_by_row for one in chosen])}")
    return out


def _counts(results: Sequence[Result], way: str) -> str:
    """On how many tables ours is as good as the best, and how often gradient boosting is."""
    words = []
    for task, what in (("regression", "numbers"), ("classification", "classes")):
        good = [_as_good_as_the_best(getattr(one, way)) for one in results if one.task == task]
        ours, boosting = (sum(name in one for one in good) for name in (OURS, BOOSTING))
        words.append(f"{ours} of {len(good)} tables of {what} (gradient boosting {boosting})")
    return " and ".join(words)


def _summary(all_losses: Sequence[dict[str, float]]) -> str:
    good = [_as_good_as_the_best(losses) for losses in all_losses]
    counts = {name: sum(name in one for one in good) for name in _LEARNERS}
    others = ", ".join(f"{name} on {counts[name]}" for name in _LEARNERS[1:])
    ratios = " and ".join(
        f"{np.median([_ratio(losses, OURS, name) for losses in all_losses]):.3f} ({name})" for name in _LEARNERS[1:]
    )
    return (
        f"of {len(good)} tables, {OURS} is best or within {100.0 * _CLOSE:.0f} % of the best on {counts[OURS]}, "
        f"{others}; its loss divided by that of the others has a median of {ratios}"
    )


def _table(results: Sequence[Result]) -> str:
    after_split, row_by_row = (" | ".join(f"{name}, {way}" for name in _LEARNERS) for way in ("80/20", "row by row"))
    head = f"| package | table | rows | {after_split} | 95 % intervals of onepass, 80/20 | {row_by_row} |"
    return "\n".join([head, "|---|---|---:|" + "---:|" * 7, *map(_line, results)])


def _too_narrow(results: Sequence[Result]) -> str:
    """Tables whose intervals hold far too few targets, the worst first."""
    found = sorted((one.coverage, one.name) for one in results if one.coverage is not None and one.coverage < _NARROW)
    return ", ".join(f"{name} ({100.0 * coverage:.1f} %)" for coverage, name in found)


def page(results: Sequence[Result]) -> str:
    return f"""# Tables that ship inside other packages

How good is `onepass fit` with every default, next to tuned models of scikit-learn? Rows that are predicted one by one
are predicted best, or within 2 % of the best, on {_counts(results, "row_by_row")}. On a fifth that is predicted at
once, gradient boosting is level for numbers and better for classes: onepass is best or within 2 % of the best on
{_counts(results, "after_split")}.

![Losses of the others divided by those of onepass, numbers](../images/{CHARTS["regression"]})

Written by `python -m benchmarks.shipped`, on every table that comes with scikit-learn, River, statsmodels and
vega_datasets and needs no download; [evidence](index.md) has the date and the machine.

onepass is the command line with every default, in one pass; only the target is named, and whether it is a class. Ridge
regression (for numbers) and logistic regression (for classes) get the features that onepass made of the columns;
gradient boosting gets the columns themselves. These have no limit on passes, and the settings that cross-validation on
the whole table finds best: the penalty, and one of three settings of trees.

The first three losses of a line ("80/20") are for predicting the last fifth of a series, or a random fifth, the mean of
{SPLITS} splits, together with the share of targets inside 95 % intervals of onepass. The last three ("row by row")
are for predicting each row before it is learned; the others are fitted anew to all rows so far at every tenth of the
table. Rows of the first tenth, from which onepass infers what the columns hold, are not scored. Lower is better;
losses within {100.0 * _CLOSE:.0f} % of the best are bold.

{chr(10).join(f"- {words}." for words in _summaries(results))}

## Numbers

The loss is the root mean squared error, divided by that of always predicting the mean of the targets seen before: 1 is
as good as the mean.

{_table([one for one in results if one.task == "regression"])}

## Intervals that are too narrow

Fewer than {100.0 * _NARROW:.0f} % of the targets lie inside 95 % intervals of onepass on these tables:
{_too_narrow(results)}.

All of them are series whose last fifth is predicted without learning any of it, and which move on meanwhile. A model
without drift assumes that the relation it has learned stays as it is, so it is as sure of the time to come as of the
past, and wrong. Two remedies, tried by hand on water-flow (on the others they have not been measured):

- `--drift auto` expects the weights to change. The network that the command chose contains 94.9 % with it instead of
  79.5 %; the perceptron that it chooses when `--drift auto` is given alone contains 100 %, more than it should.
- Learn rows as they come, as `onepass learn` and a service do: predicted row by row, as `onepass evaluate` does, 94.1 %
  lie inside at the defaults.

`--drift auto` is not the default, since most tables are not series. [Check calibration](../how-to/calibration.md) says
how to find out whether a table needs one of them.

## Classes

The loss is the log-loss in nats.

![Losses of the others divided by those of onepass, classes](../images/{CHARTS["classification"]})

{_table([one for one in results if one.task == "classification"])}

## Left out

{chr(10).join(f"- {package}: {which}." for package, which in LEFT_OUT.items())}
"""


if __name__ == "__main__":
    if sys.argv[1:] == ["--page"]:
        write()
    else:
        main(sys.argv[1:])
