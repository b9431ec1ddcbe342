"""The sections of a report that look at single rows and columns, once all rows are scored.

Predictions against targets, the confusion of classes, what each column is good for, the rows that were predicted worst
and why, and what was read. Files are named without the folders they lie in: the page is made to be passed on.
"""

from collections.abc import Iterator, Sequence
from os.path import basename
from typing import Any

import numpy as np

from onepass.evaluation.importance import Importance, column_importance
from onepass.evaluation.kept_rows import Kept
from onepass.evaluation.prequential import Trial
from onepass.reports.html import Picture, Section, Table
from onepass.reports.plots import GREY, PAPER, TRUTH, drawn, short
from onepass.tables.explanation import Explanation, explain

__all__ = ["importance", "predictions", "reading", "worst_rows"]

_MOST_CLASSES = 12  # of a confusion matrix
_MOST_COLUMNS = 20
_REASONS = 2  # columns that are named for each of the worst rows
_ALL_REJECTS = 10


def predictions(trial: Trial) -> Section:
    """What was predicted, and what came."""
    kept = trial.drawn.kept
    assert kept is not None
    name = trial.model.target.name
    if trial.task == "classes":
        table, right = _confusion(trial)
        share = 100.0 * right / trial.rows
        reading = f"{right:,} of {trial.rows:,} rows, {share:.1f} %, were predicted right."
        return _section("predictions", "What it takes for what", f"Which {name} is taken for which?", reading, (table,))
    caption = (
        f"Predicted and actual {name} of {len(kept):,} rows"
        + (" drawn at random" if len(kept) < trial.rows else "")
        + "; on the dotted line they agree. Bars reach one standard deviation of the prediction to either side."
    )
    error = np.abs(kept.target - kept.mean)
    inside = int((error <= 2.0 * kept.std).sum())
    median = trial.worst.metric.text(float(np.median(error)))
    reading = (
        f"Half of these predictions are less than {median} off; {inside:,} of {len(kept):,} lie within two of their "
        "standard deviations."
    )
    picture = Picture(
        "predicted", caption, drawn(1, lambda axes: _draw_predicted(axes[0], kept, name), 5.2, 4.2), is_wide=False
    )
    return _section(
        "predictions", "Predicted and actual", f"How close is each prediction of {name}?", reading, (), picture
    )


def _section(
    name: str, title: str, question: str, reading: str, tables: tuple[Table, ...], *pictures: Picture, answer: str = ""
) -> Section:
    return Section(
        name=name,
        title=title,
        question=question,
        setup=(),
        pictures=pictures,
        tables=tables,
        reading=reading,
        answer=answer or reading,
    )


def _draw_predicted(panel: Any, kept: Kept, name: str) -> None:
    # An absurd target would squeeze all others into a corner.
    both = np.concatenate([kept.target, kept.mean])
    low, high = np.quantile(both, (0.002, 0.998))
    room = 0.04 * (high - low) or 1.0
    low, high = low - room, high + room
    few = len(kept) <= 400
    bars = {"elinewidth": 0.7, "ecolor": GREY, "alpha": 0.9} if few else {"elinewidth": 0.0}
    panel.errorbar(
        kept.mean, kept.target, xerr=kept.std, fmt="o", markersize=3.0 if few else 2.0, color=PAPER["color"], **bars
    )
    panel.plot([low, high], [low, high], zorder=5, **TRUTH)
    panel.set(xlim=(low, high), ylim=(low, high), xlabel=f"predicted {short(name)}", ylabel=f"actual {short(name)}")


def _confusion(trial: Trial) -> tuple[Table, int]:
    """The confusion matrix, with the rarest classes taken together, and the number of rows that are right."""
    counts, labels = np.asarray(trial.confusion), list(trial.model.labels)
    right = int(np.trace(counts))
    if len(labels) > _MOST_CLASSES:
        order = np.argsort(-counts.sum(axis=1), kind="stable")
        first, rest = np.sort(order[: _MOST_CLASSES - 1]), np.sort(order[_MOST_CLASSES - 1 :])
        groups = [*([k] for k in first.tolist()), rest.tolist()]
        counts = np.array([[counts[np.ix_(a, b)].sum() for b in groups] for a in groups])
        labels = [*(labels[k] for k in first), f"{len(rest)} others"]
    rows: list[tuple[str, ...]] = []
    for label, row in zip(labels, counts.tolist(), strict=True):
        own = row[len(rows)]
        recall = f"{100.0 * own / sum(row):.1f} %" if sum(row) else "-"
        rows.append((label, *(f"{count:,}" for count in row), f"{sum(row):,}", recall))
    head = ("actual", *(f"as {label}" for label in labels), "rows", "right")
    return Table("Rows by their actual class (down) and the most probable one (across)", head, tuple(rows)), right


# What columns are good for.


def importance(trial: Trial) -> Iterator[Section]:
    """How much worse predictions are without each column."""
    kept, model = trial.drawn.kept, trial.model
    assert kept is not None
    if model.by is not None or len(kept) < 2 or not model.encoding.columns:
        return
    loss = trial.worst.metric
    found = column_importance(model, kept, loss)
    shown = found[:_MOST_COLUMNS]
    clear = [one for one in found if one.rise > 2.0 * one.std]
    seen = "" if trial.split is not None else " It has learned these rows meanwhile."
    caption = (
        f"Rise of the {loss.title} if the values of a column change places at random, with bars of two standard errors."
    )
    reading = f"Predictions rely on {len(clear)} of {len(found)} columns, by more than two standard errors."
    if clear:
        reading += f" Most on {clear[0].column}: without it, the {loss.title} rises by {loss.text(clear[0].rise)}."
    left = found[_MOST_COLUMNS:]
    if left:
        reading += f" {len(left):,} less important columns are not shown."
    rows = tuple((one.column, f"{loss.text(one.rise)} ± {loss.text(2.0 * one.std)}") for one in shown)
    picture = Picture(
        "importance",
        caption,
        drawn(1, lambda axes: _draw_importance(axes[0], shown, loss.title), 5.2, 0.9 + 0.27 * max(len(shown), 3)),
        is_wide=False,
    )
    yield Section(
        name="importance",
        title="What each column is good for",
        question="Which columns do the predictions rely on?",
        setup=(
            f"The model predicts {len(kept):,} rows again, with the values of one column in another order.{seen} "
            "A column counts as a whole, however many categories, words or buckets it has. Two columns that say the "
            "same stand in for each other, and each may seem to matter little.",
        ),
        pictures=(picture,),
        tables=(Table(f"Rise of the {loss.title}", ("column", "rise, ± two standard errors"), rows),),
        reading=reading,
        answer=reading,
    )


def _draw_importance(panel: Any, found: Sequence[Importance], title: str) -> None:
    places = np.arange(len(found))[::-1]
    rises, errors = (np.array([getattr(one, name) for one in found]) for name in ("rise", "std"))
    panel.axvline(0.0, color=GREY, linewidth=0.8)
    panel.errorbar(rises, places, xerr=2.0 * errors, fmt="o", color=PAPER["color"], ecolor=GREY, elinewidth=1.1)
    panel.set_yticks(places, [short(one.column) for one in found])
    panel.set_ylim(-0.7, len(found) - 0.3)
    panel.grid(False, axis="y")
    panel.set_xlabel(f"rise of the {title}")


# The worst rows.


def worst_rows(trial: Trial) -> Section:
    """The rows whose predictions were furthest off, and which columns led there."""
    kept, model, loss = trial.worst_rows.kept, trial.model, trial.worst.metric
    assert kept is not None
    kept = kept.at(np.argsort(-kept.priority, kind="stable"))
    found = explain(model, kept.X, kept.keys)
    rows = []
    for k in range(len(kept)):
        file, line = kept.origins[k]
        actual, predicted, how_far = _as_words(trial, kept, k)
        rows.append((f"{basename(file)}, line {line}", actual, predicted, how_far, _reasons(found, k)))
    head = ("row", "actual", "predicted", "surprise", "what moved the prediction most")
    part = 100.0 * float(kept.priority.sum()) / max(_total(trial), 1e-300)
    surprises = _surprises(trial, kept)
    reading = (
        f"These {len(kept)} rows make {part:.0f} % of the sum that the {loss.title} is the mean of. {surprises} "
        "A typing error, a unit that changed, or a kind of row that the columns do not tell apart shows here first."
    )
    return _section(
        "worst-rows",
        "The worst rows",
        "Which rows are predicted worst, and why?",
        reading,
        (Table("Rows with the largest loss; contributions are those of the model at the end", head, tuple(rows)),),
        answer=f"{len(kept)} rows make {part:.0f} % of the loss.",
    )


def _total(trial: Trial) -> float:
    return trial.ours.sums()[trial.worst.metric.name]


def _surprises(trial: Trial, kept: Kept) -> str:
    if trial.task == "classes":
        return ""
    n = int((np.abs(kept.target - kept.mean) > 3.0 * kept.std).sum())
    return f"{n} of them lay more than three standard deviations off: the model was sure and wrong."


def _as_words(trial: Trial, kept: Kept, k: int) -> tuple[str, str, str]:
    """The target, its prediction, and how surprising the one is after the other."""
    labels = trial.model.labels
    if labels:
        y, best = int(kept.target[k]), int(kept.mean[k].argmax())
        return (
            labels[y],
            f"{labels[best]} ({100.0 * kept.mean[k, best]:.1f} %)",
            f"given {100.0 * kept.mean[k, y]:.2g} %",
        )
    gap = (kept.target[k] - kept.mean[k]) / max(float(kept.std[k]), 1e-300)
    return f"{kept.target[k]:.5g}", f"{kept.mean[k]:.5g} ± {kept.std[k]:.2g}", f"{gap:+.1f} std"


def _reasons(found: Explanation, k: int) -> str:
    """The columns that add most to the prediction of a row."""
    order = np.argsort(-np.abs(found.add[k]), kind="stable")[:_REASONS]
    parts = [f"{found.columns[c]} {found.add[k, c]:+.3g} ± {found.std[k, c]:.2g}" for c in order if found.add[k, c]]
    return ", ".join(parts) or "no column: it looks like an average row"


# What was read.


def reading(trial: Trial, files: Sequence[str]) -> Section:
    """What became of the rows that were read, and what to ask about the columns."""
    read = trial.read
    counts = [("read", f"{read.n_read:,}"), ("scored", f"{trial.rows:,}"), ("rejected", f"{read.n_rejected:,}")]
    counts += [("left out: no target", f"{read.n_without_target:,}")] if read.n_without_target else []
    counts += [("set aside: target absurdly far off", f"{trial.n_set_aside:,}")] if trial.n_set_aside else []
    tables = [Table(f"Rows of {', '.join(map(basename, files))}", ("", "rows"), tuple(counts))]
    kinds = read.kinds
    if kinds:
        rows = tuple(
            (str(kind.reject.reason), f"{kind.n:,}", f"{kind.file}, line {kind.reject.line}") for kind in kinds
        )
        tables.append(Table("Why rows were rejected", ("reason, at the first", "rows", "first"), rows[:_ALL_REJECTS]))
    questions = trial.model.advice
    if questions:
        asked = tuple((advice.reason.column or "all columns", str(advice)) for advice in questions)
        tables.append(Table("To ask about the columns", ("column", "question"), asked))
    words = f"{read.n_rejected:,} of {read.n_read:,} rows were rejected."
    if questions:
        words += (
            f" {len(questions)} question{'s' if len(questions) > 1 else ''} about columns should be answered first."
        )
    return _section(
        "reading", "What was read", "Which rows and columns were used, and which were not?", words, tuple(tables)
    )
