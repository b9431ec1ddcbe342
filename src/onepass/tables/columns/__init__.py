"""Columns as numbers, the same way for ever."""
