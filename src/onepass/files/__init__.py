"""Models as files: safe to load, written whole or not at all."""
