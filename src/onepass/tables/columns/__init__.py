"""Columns as numbers: what each column of a table holds, inferred once and then fixed.

One module per kind of column (`number`, `boolean`, `category`, `date`, `text`), all of them together in `encoding`, and
`inference`, which chooses them by the first rows.
"""
