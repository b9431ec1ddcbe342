"""From files with columns to a model that knows what they mean, in constant memory.

The way of a row: `readers` (file to Arrow batches), `columns` (batches to numbers), `model` (numbers to the estimator).
`schema` makes a new model by the first rows of some files, `training` learns files into it, `writing` writes
predictions.
"""

from onepass._extras import require

require("cli", "onepass.tables", "pyarrow")
