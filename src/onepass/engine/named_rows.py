"""Rows that come as dictionaries of named numbers, put in the order of a model's columns.

A row of ten features is learned in half a microsecond; a loop in Python over its dictionary would take several.
"""

import cython
import numpy as np
from cython.cimports.libc.math import fabs, isfinite, isnan


def named_row(x, columns, n_columns, largest, absent) -> tuple["FloatArray", int, float] | None:
    """The numbers of ``x`` in their columns ``(n_columns,)``, and what has no column.

    Of the latter the number of names, and the sum of their squares, where no number counts as more than ``largest``.
    A column that ``x`` has no number for gets ``absent``, and one without a name 0. If ``absent`` is NaN, a value may
    be None or NaN, which is no number. None if some value is neither that nor a finite number.
    """
    row = np.zeros(n_columns)
    view: cython.double[::1] = row
    n_new: cython.Py_ssize_t = 0
    column: cython.Py_ssize_t
    squares: cython.double = 0.0
    number: cython.double
    gaps: cython.bint = isnan(absent)
    if gaps:
        if len(columns) > n_columns:
            raise IndexError(f"there is no column {n_columns}")
        for column in range(len(columns)):
            view[column] = absent
    try:
        for name, value in x.items():
            if gaps and value is None:
                continue
            number = value
            if not isfinite(number):
                if gaps and isnan(number):
                    continue
                return None
            place = columns.get(name)
            if place is None:
                n_new += 1
                number = min(fabs(number), largest)
                squares += number * number
            else:
                column = place
                if column >= n_columns:
                    raise IndexError(f"there is no column {column}")
                view[column] = number
    except (TypeError, ValueError, OverflowError):
        return None
    return row, n_new, squares
