"""Explained predictions for people: a few lines per row, the columns that matter most first."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onepass.tables.model import TabularModel
    from onepass.tables.readers.batches import RowBatch

__all__ = ["explained_rows"]

_SHOWN = 10  # columns of a row
_LONGEST = 24  # characters of a value


def explained_rows(
    model: "TabularModel", file: str, batch: "RowBatch", predicted: Any, levels: Sequence[float] = (0.95,)
) -> Iterator[str]:
    """What is predicted for each row of a batch, and what its columns add to that, in words."""
    for line, given, row in zip(batch.lines, batch.record_batch.to_pylist(), predicted.to_pylist(), strict=True):
        found = {name: row[name] for name in model.prediction_names(levels)}
        yield f"{file}, line {line}: " + ", ".join(f"{name} {_number(value)}" for name, value in found.items())
        if row["baseline"] is not None:
            yield from (f"  {words}" for words in _aligned(_parts(model, given, row)))


def _parts(model: "TabularModel", given: dict[str, Any], row: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Name, number and standard deviation of each part, the largest first."""
    yield _baseline_words(model, row), f"{row['baseline']:.4g}", f"{row['std_baseline']:.2g}"
    names = [column.name for column in model.encoding.columns]
    names.sort(key=lambda name: -abs(row[f"add_{name}"]))
    for name in names[:_SHOWN]:
        yield f"{name} = {_value(given.get(name))}", f"{row[f'add_{name}']:+.4g}", f"{row[f'std_{name}']:.2g}"
    if rest := names[_SHOWN:]:
        count = f"{len(rest)} more column{'s' if len(rest) > 1 else ''}"
        yield count, f"{sum(row[f'add_{name}'] for name in rest):+.4g}", ""


def _baseline_words(model: "TabularModel", row: dict[str, Any]) -> str:
    from onepass.tables.weights import unit_of_weights

    if model.labels:
        label = model.labels[1] if len(model.labels) == 2 else row["label"]
        return f"average row, log odds of {label}"
    unit = unit_of_weights(model).removeprefix("the ")
    return "average row" if unit == model.target.name else f"average row, {unit}"


def _aligned(parts: Iterator[tuple[str, str, str]]) -> Iterator[str]:
    rows = list(parts)
    widths = [max(len(row[i]) for row in rows) for i in range(2)]
    for name, number, std in rows:
        yield f"{name.ljust(widths[0])}  {number.rjust(widths[1])}" + (f" ± {std}" if std else "")


def _value(value: Any) -> str:
    text = "missing" if value is None else str(value)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
