"""Models in files: atomic to write, safe to load; and the events they learn from, durable."""
