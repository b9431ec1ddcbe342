"""Saving models: written whole or not at all, safe to load, one writer at a time."""
