"""Models in files: atomic to write, safe to load."""
