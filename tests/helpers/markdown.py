"""Code that stands in the documentation, so that a test runs what a reader copies."""

import re
from pathlib import Path

__all__ = ["ROOT", "code_block"]

ROOT = Path(__file__).parents[2]


def code_block(page: str, heading: str, language: str = "python") -> str:
    """Return the first fenced block of code below a heading of a page in the repository."""
    _, _, text = (ROOT / page).read_text(encoding="utf-8").partition(f"# {heading}\n")
    assert text, f"{page} has no heading {heading!r}"
    section = re.split(r"^#+ ", text, maxsplit=1, flags=re.MULTILINE)[0] if language != "text" else text
    found = re.search(rf"^```{language}\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert found, f"{page} has no block of {language} below {heading!r}"
    return found[1]
