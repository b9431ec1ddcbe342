"""Reading tables: from paths to blocks of rows, in constant memory.

`addresses` finds out which files or databases are meant. `registry` opens a file in the format that its content shows,
one module per format (`csv_file`, `json_lines`, `parquet_file`, `workbook`, `database_file`, `zip_file`), or a table of
a server (`postgresql`); `batches` has what they all produce, `prefetch` reads ahead in a thread.
Bytes come from `origins` or `remote`, and `byte_stream` has them decompressed (`compression`) and decoded (`encoding`).
"""
