"""Every table that ships inside scikit-learn, River, statsmodels and vega_datasets.

    python -m benchmarks.shipped            # all of them, written to docs/evidence/shipped-tables.md
    python -m benchmarks.shipped cars iris  # some, printed only

Ours is `onepass fit` and `onepass evaluate` with every default: nothing is said but the target, and whether it is a
class.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.shipped.catalogue import LEFT_OUT, shipped_tables
from benchmarks.shipped.peers import BOOSTING, LINEAR
from benchmarks.shipped.scores import SPLITS, Result, score
from onepass.evaluation.prequential import OURS

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "shipped-tables.md"
_LEARNERS = (OURS, LINEAR, BOOSTING)
_CLOSE = 0.02  # losses that differ by less than this share are as good as each other


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
        PAGE.write_text(_page(results))


def _line(result: Result) -> str:
    covered = "" if result.coverage is None else f"{100.0 * result.coverage:.1f} %"
    first, second = _cells(result.after_split), _cells(result.row_by_row)
    return f"| {result.package} | {result.name} | {result.rows:,} | {first} | {covered} | {second} |"


def _cells(losses: dict[str, float]) -> str:
    good = _as_good_as_the_best(losses)
    return " | ".join(f"**{losses[name]:.3f}**" if name in good else f"{losses[name]:.3f}" for name in _LEARNERS)


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


def _summary(all_losses: Sequence[dict[str, float]]) -> str:
    good = [_as_good_as_the_best(losses) for losses in all_losses]
    counts = ", ".join(f"{name} on {sum(name in one for one in good)}" for name in _LEARNERS)
    ratios = ", ".join(
        f"{np.median([losses[OURS] / losses[name] for losses in all_losses]):.3f} of that of {name}"
        for name in _LEARNERS[1:]
    )
    return f"of {len(good)} tables best or as good, {counts}; our loss is in the median {ratios}"


def _table(results: Sequence[Result]) -> str:
    learners = " | ".join(_LEARNERS)
    head = f"| package | table | rows | {learners} | our 95 % intervals | {learners} |"
    return "\n".join([head, "|---|---|---:|" + "---:|" * 7, *map(_line, results)])


def _page(results: Sequence[Result]) -> str:
    return f"""# Tables that ship inside other packages

Written by `python -m benchmarks.shipped`: every table that comes with scikit-learn, River, statsmodels and
vega_datasets and needs no download. Ours is the command line with every default, in one pass; only the target is named,
and whether it is a class. Ridge and logistic regression get the features that onepass made of the columns, and
gradient boosting, scikit-learn's, the columns themselves. Both may look at the rows as often as they like, and have the
settings that cross-validation on the whole table finds best: a penalty of several, and one of three forms of trees.

The first three losses are for 80/20: predictions of the last fifth of a series, or of a random fifth, the mean of
{SPLITS} splits. The last three are row by row: ours predicts each row before it learns it, the others learn anew from
all rows so far at every tenth of the table. Rows of the first tenth, by which onepass infers what the columns hold, are
not scored. Losses within {100.0 * _CLOSE:.0f} % of the best are bold.

{chr(10).join(f"- {words}." for words in _summaries(results))}

## Numbers

Root mean squared error over that of the mean of the targets seen before: 1 is no better than the mean.

{_table([one for one in results if one.task == "regression"])}

## Classes

Log-loss in nats.

{_table([one for one in results if one.task == "classification"])}

## Left out

{chr(10).join(f"- {package}: {which}." for package, which in LEFT_OUT.items())}
"""


if __name__ == "__main__":
    main(sys.argv[1:])
