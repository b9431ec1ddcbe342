"""The kinds of columns, by name; the command line lists them without waiting for NumPy.

To add one, put its class into a module of this package and its name here.
"""

__all__ = ["COLUMN_KINDS"]

COLUMN_KINDS = {
    "number": "number.Number",
    "boolean": "boolean.Boolean",
    "category": "category.Category",
    "hashed": "category.Hashed",
    "date": "date.Date",
    "text": "text.Text",
}
"""Module of `onepass.tables.columns` and class."""
