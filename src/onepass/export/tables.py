"""Turn models made by ``onepass fit`` into programs: one number per column in, the target in its own units out.

A category is given as its position among the known ones, a date as days since 1970, so every input is a number. Text
columns, which are hashed word by word, can't be exported.
"""

import re
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np

from onepass.estimators import FleetEstimator
from onepass.export.expressions import (
    Expression,
    concat,
    constant,
    cos,
    equals,
    exp,
    expm1,
    floor,
    is_nan,
    log,
    maximum,
    minimum,
    part,
    row,
    row_sum,
    sin,
    where,
)
from onepass.export.models import LABEL_STD, Classes, Numbers, predicted, shown_parts
from onepass.export.programs import Input, Learning, NotExportableError, Program
from onepass.tables.better_of_two import BetterOfTwo
from onepass.tables.columns.boolean import Boolean
from onepass.tables.columns.category import Category, Hashed
from onepass.tables.columns.column import Column
from onepass.tables.columns.date import YEAR, Date
from onepass.tables.columns.number import Number
from onepass.tables.columns.number_format import NumberFormat
from onepass.tables.model import TabularModel
from onepass.tables.targets import LARGEST_LOG, ClassTarget, LogTarget, NumberTarget

__all__ = ["table_program"]

_SPACES = r" \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"  # of Unicode, all that separate


def table_program(model: TabularModel, origin: str) -> Program:
    """The program of the model of a table; of a comparison that of its leader."""
    estimator = model.estimator.leader if isinstance(model.estimator, BetterOfTwo) else model.estimator
    if isinstance(estimator, FleetEstimator):
        raise NotExportableError(
            f"a model per {model.by!r} can't be exported, because it has weights for every key: fit one model for all "
            "keys together, or for the rows of one key"
        )
    if model.has_level:
        raise NotExportableError(
            "a level that moves with time can't be exported, because predictions depend on the distance from the last "
            "row: fit without a time, or ask onepass or its service for predictions"
        )
    for column in model.encoding.columns:
        if not column.is_exportable:
            raise NotExportableError(
                f"column {column.name!r} is {column.kind}, which can't be exported: fit without it, or as a category"
            )
    columns = model.encoding.columns
    x = row(len(columns))
    found = predicted(estimator, _features(columns, x).called("features"))
    inputs = tuple(map(_input, columns))
    if isinstance(found, Classes):
        assert isinstance(model.target, ClassTarget)
        shown = shown_parts(found.learning, found.limits)
        return Program(
            origin, x, inputs, found.probabilities, found.std, tuple(model.target.labels), std_words=LABEL_STD, **shown
        )
    assert isinstance(model.target, NumberTarget)
    found = _widened(found, model.widening)
    mean, std = _moments(model.target, found)
    limits = None if found.limits is None else tuple(_decoded(model.target, one) for one in found.limits)
    shown = shown_parts(_in_units(found.learning, model.target), limits)
    return Program(origin, x, inputs, mean, std, single=True, **shown)


def _input(column: Column) -> Input:
    words = tuple(
        getattr(column, "missing_words", ()) or getattr(getattr(column, "written", None), "missing_words", ())
    )
    levels = column.levels if isinstance(column, Category) else ()
    buckets = column.buckets if isinstance(column, Hashed) else 0
    return Input(column.name, column.kind, levels, buckets, words, _written(column))


def _written(column: Column) -> dict[str, str]:
    """How texts are written, where that is not the plain way."""
    if not isinstance(column, Number | Date) or column.written.is_plain:
        return {}
    own = replace(column.written, unsure=False)
    found = {"pattern": _in_python(own.regex), "words": own.words()}
    return found | {"decimal": own.decimal, "unit": own.unit} if isinstance(own, NumberFormat) else found


def _in_python(regex: str) -> str:
    """A regular expression of Arrow as Python's ``re`` has it, for ASCII."""
    classes = {r"\s+": r"[ \t\n\f\r]+", r"\s": r" \t\n\f\r", r"\p{Z}": _SPACES}
    for name, signs in classes.items():
        regex = regex.replace(name, signs)
    return re.sub(r"\\x\{(\w{4})\}", r"\\u\1", regex)


# Columns.


def _features(columns: tuple[Column, ...], x: Expression) -> Expression:
    """The numbers that a model learns from; neighbouring columns of plain numbers are scaled together."""
    parts, at = [], 0
    for is_plain, run in groupby(columns, lambda one: isinstance(one, Number) and not one.missing):
        own = list(run)
        if is_plain:
            parts.append(_scaled(own, part(x, at, at + len(own))))
        else:
            parts += [_encoded(column, part(x, at + k, at + k + 1)) for k, column in enumerate(own)]
        at += len(own)
    return concat(parts)


def _scaled(columns: list[Any], x: Expression) -> Expression:
    centre, inverse = [one.centre for one in columns], [1.0 / one.scale for one in columns]
    return (x - constant(centre, "column_centre")) * constant(inverse, "column_inverse_scale")


def _encoded(column: Column, x: Expression) -> Expression:
    missing = is_nan(x)
    flag = where(missing, 1.0, 0.0)
    if isinstance(column, Number):
        return concat([(x - column.centre) * (1.0 / column.scale), flag])
    if isinstance(column, Boolean):
        return where(missing, 0.5, x)
    if isinstance(column, Category):
        known = _indicator(x, len(column.levels))
        return concat([known, 1.0 - row_sum(known)])
    if isinstance(column, Hashed):
        return _indicator(x, column.buckets)
    assert isinstance(column, Date)
    weekday = floor(x) + 3.0  # 1970 began on a Thursday
    weekday = weekday - 7.0 * floor(weekday / 7.0)
    waves = []
    for turn in column.turns:
        angle = 2.0 * np.pi * (x / turn.period)
        waves += [sin(angle), cos(angle)] if turn.size == 1.0 else [turn.size * sin(angle), turn.size * cos(angle)]
    known = where(missing, 0.0, concat([(x - column.centre) / YEAR, _indicator(weekday, 7), *waves]))
    return concat([known, flag]) if column.missing else known


def _indicator(x: Expression, count: int) -> Expression:
    """1 in the place that a number says, 0 in all others."""
    return where(equals(x, constant(np.arange(float(count)))), 1.0, 0.0)


def _widened(found: Numbers, factor: float) -> Numbers:
    """The same predictions with deviations and intervals wider by a factor: see `TabularModel.widening`."""
    if factor == 1.0:
        return found
    limits = found.limits
    if limits is not None:
        low, high = limits
        limits = found.mean + factor * (low - found.mean), found.mean + factor * (high - found.mean)
    return replace(found, std=found.std * factor, limits=limits)


# Targets.


def _decoded(target: NumberTarget, scaled: Expression) -> Expression:
    """What the estimator predicts in the target's own units."""
    value = scaled * target.scale + target.centre
    return exp(minimum(value, LARGEST_LOG)) if isinstance(target, LogTarget) else value


def _moments(target: NumberTarget, found: Numbers) -> tuple[Expression, Expression]:
    """Mean and standard deviation of new targets, as the target's own ``moments`` have them."""
    if not isinstance(target, LogTarget):
        return _decoded(target, found.mean), found.std * target.scale
    log_mean = (found.mean * target.scale + target.centre).called("log_mean")
    noise, total = (minimum(var, 1.0) * target.scale**2 for var in (found.noise_var, found.std * found.std))
    bounded = minimum(log_mean, target.largest_mean - noise / 2.0)
    log_std = bounded + total + 0.5 * log(-expm1(-maximum(total, 1e-300)))
    return exp(minimum(bounded + noise / 2.0, LARGEST_LOG)), exp(minimum(log_std, LARGEST_LOG))


def _in_units(learning: Learning | str, target: NumberTarget) -> Learning | str:
    """Learning from targets in their own units."""
    if not isinstance(learning, Learning):
        return learning
    centre = target.centre + target.scale * learning.target_centre
    scale = target.scale * learning.target_scale
    return replace(learning, target_centre=centre, target_scale=scale, is_log=isinstance(target, LogTarget))
