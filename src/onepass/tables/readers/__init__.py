"""Reading tables: from paths to blocks of rows, in constant memory.

`registry` opens a file in the format that its content shows, one module per format (`csv_file`, `json_lines`,
`parquet_file`, `database_file`, `zip_file`); `batches` has what they all produce, `prefetch` reads ahead in a thread.
Bytes come from `origins` or `remote`, and `byte_stream` has them decompressed (`compression`) and decoded (`encoding`).
"""
