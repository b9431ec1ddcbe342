"""Saving models, written atomically and safe to load, and storing the events they learn from, durably."""
