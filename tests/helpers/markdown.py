"""Code that stands in the documentation, so that a test runs what a reader copies."""

import re
from pathlib import Path

__all__ = ["ROOT", "code_block"]

ROOT = Path(__file__).parents[2]


def code_block(page: str, heading: str) -> str:
    """Return the first fenced block of Python below a heading of a page in the repository."""
    _, _, below = (ROOT / page).read_text(encoding="utf-8").partition(f"# {heading}\n")
    found = re.search(r"^```python\n(.*?)^```$", below, re.MULTILINE | re.DOTALL)
    assert found, f"{page} has no block of Python below {heading!r}"
    return found[1]
