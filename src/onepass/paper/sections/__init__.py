"""The sections of the report, one module per experiment: figures, tables and text from what was measured."""
