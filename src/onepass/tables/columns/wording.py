"""Values of columns in messages: shortened, quoted where they would be mistaken for something else, and listed."""

from collections.abc import Sequence

import numpy as np

__all__ = ["listed", "number_text", "quoted", "standardised"]

_LONGEST = 40  # characters of a text in a message


def quoted(text: str) -> str:
    """A text in quotes, cut to a length that can be shown."""
    return repr(text if len(text) <= _LONGEST else text[:_LONGEST] + "...")


def listed(texts: Sequence[str], most: int) -> str:
    """The first of some texts in one line, in quotes where they would be taken for something else.

    Examples
    --------
    >>> print(listed(["van", "big, old", "x" * 50], 3), listed("abc", 2))
    van, 'big, old', 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...' a, b, ...
    """
    shown = []
    for text in texts[:most]:
        plain = 0 < len(text) <= _LONGEST and text == text.strip() and text.isprintable() and "," not in text
        shown.append(text if plain else quoted(text))
    return ", ".join(shown) + (", ..." if len(texts) > most else "")


def number_text(value: float) -> str:
    """Write a number as one would by hand.

    Examples
    --------
    >>> number_text(3.0), number_text(0.25)
    ('3', '0.25')
    """
    return str(int(value)) if value == np.floor(value) and abs(value) < 2**53 else repr(float(value))


def standardised(name: str, centre: float, scale: float) -> str:
    """The formula that centres and scales a number.

    Examples
    --------
    >>> standardised("x", 2.5, 3.0), standardised("y", -0.07307, 1.0)
    ('(x - 2.5) / 3', '(y + 0.07307) / 1')
    """
    return f"({name} {'+' if centre < 0.0 else '-'} {abs(centre):.4g}) / {scale:.4g}"
