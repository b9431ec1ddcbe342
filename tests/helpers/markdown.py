"""Code in the documentation, so that a test runs what a reader copies."""

import re
from pathlib import Path

__all__ = ["ROOT", "code_blocks"]

ROOT = Path(__file__).parents[2]


def code_blocks(page: Path, language: str) -> list[str]:
    """Return the fenced blocks of a page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
