"""The first line of a CSV file: missing and repeated names are mended, and a line of numbers is reported."""

import math
from collections.abc import Sequence
from itertools import count

__all__ = ["is_row_of_numbers", "mended_names"]


def mended_names(names: Sequence[str]) -> tuple[list[str], str]:
    """Names that are all different and not empty, and a sentence about what was changed, if anything.

    Examples
    --------
    >>> mended_names(["price", "", "price"])[0]
    ['price', 'column_2', 'price_2']
    >>> mended_names(["price", "", "km"])[1]
    "column 2 has no name and is called 'column_2'"
    """
    taken = set(names) - {""}
    seen: set[str] = set()
    out: list[str] = []
    changes: list[str] = []
    for place, name in enumerate(names, 1):
        if name and name not in seen:
            new = name
        else:
            new = _free(name, 2, taken) if name else _free("column", place, taken)
            changes.append(
                f"another column {name!r} is called {new!r}"
                if name
                else f"column {place} has no name and is called {new!r}"
            )
        out.append(new)
        seen.add(new)
        taken.add(new)
    shown = changes[:3] + ([f"{len(changes) - 3} more are mended likewise"] if len(changes) > 3 else [])
    return out, "; ".join(shown)


def _free(name: str, number: int, taken: set[str]) -> str:
    return next(new for n in count(number) if (new := f"{name}_{n}") not in taken)


def is_row_of_numbers(fields: Sequence[str]) -> bool:
    """Whether a line has nothing but numbers, and is more likely a row than a header.

    Examples
    --------
    >>> is_row_of_numbers(["5.1", "3.5"]), is_row_of_numbers(["2019", "2020"]), is_row_of_numbers(["km", "3"])
    (True, True, False)
    """
    return all(map(_is_number, fields))


def _is_number(field: str) -> bool:
    try:
        return math.isfinite(float(field))
    except ValueError:
        return False
