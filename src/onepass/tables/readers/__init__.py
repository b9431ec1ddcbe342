"""Files and standard input as blocks of rows."""
