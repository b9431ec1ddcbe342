"""Rows that come as dictionaries of named numbers, put in the order of a model's columns.

A row of ten features is learned in half a microsecond; a loop in Python over its dictionary would take several.
"""

import cython
import numpy as np
from cython.cimports.libc.math import fabs, isfinite


def named_row(x, columns, n_columns, largest):
    """The numbers of ``x`` in their columns ``(n_columns,)``, zero where it has none; and what has no column.

    Of the latter the number of names, and the sum of their squares, where no number counts as more than ``largest``.
    None if some value is not a finite number.
    """
    row = np.zeros(n_columns)
    view: cython.double[::1] = row
    n_new: cython.Py_ssize_t = 0
    column: cython.Py_ssize_t
    squares: cython.double = 0.0
    number: cython.double
    try:
        for name, value in x.items():
            number = value
            if not isfinite(number):
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
