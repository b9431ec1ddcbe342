"""What a reader found out or mended by itself, for the user to know."""

from dataclasses import dataclass

__all__ = ["Note"]


@dataclass(frozen=True)
class Note:
    """A sentence about a file, and the setting that would have it otherwise."""

    words: str
    setting: str | None = None  # a field of ReadOptions
