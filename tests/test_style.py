"""The worst patterns of docs/_style.md don't come back, in pages, docstrings, comments, help texts and messages."""

import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.helpers.markdown import ROOT

# What to write instead is in docs/_style.md.
PATTERNS = {
    "beside": r"\bbeside\b",
    "by default by": r"\bby default by\b",
    "for want of": r"\bfor want of\b",
    "hold, for contain": r"\bintervals? (?:that )?(?:hold|holds|held) (?:only |about )?\d",
    "in the net": r"\bin the net\b|\bfrom the net\b",
    "is no X": r"(?<!there )\b(?:is|are) no (?!longer|such|more|less|later|earlier|better|worse|larger|smaller)[a-z]+",
    "ours": r"(?<!\")\bours\b",
    "stands, for is": r"\bstands?\b(?![- ](?:in|for|in for|still|out|alone|up)\b)|\bstands? in (?!for\b)",
    "told": r"\btold\b(?! apart)",
    "whoever": r"\bwhoever\b",
}
# What is compiled, and explained to those who change it; pages that
# Sphinx writes; and the page with the examples of what not to write.
_LEFT_OUT = (
    *("docs/evidence/forecasting.md", "src/onepass/engine/", "docs/reference/api/generated/", "docs/gallery/"),
    "docs/_style.md",
)
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "RELEASING.md")),
    *(ROOT / "docs").rglob("*.md"),
]
SOURCES = [*(ROOT / "src").rglob("*.py"), *(ROOT / "src").rglob("*.js")]
FILES = [one for one in PAGES + SOURCES if not one.relative_to(ROOT).as_posix().startswith(_LEFT_OUT)]


@cache
def prose(path: Path) -> list[tuple[int, str]]:
    """The lines of a file that people read, with their numbers."""
    return list(_prose(path))


def _prose(path: Path) -> Iterator[tuple[int, str]]:
    """No code in pages, no names in sources."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type in (tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", -1)):
                words = re.sub(r"\{[^{}]*\}", "", token.string)  # names between the words of a message
                yield from enumerate(words.splitlines(), start=token.start[0])
        return
    if path.suffix == ".md":
        text = re.sub(r"^( *)```.*?^\1```", lambda code: "\n" * code[0].count("\n"), text, flags=re.M | re.S)
    for number, line in enumerate(text.splitlines(), start=1):
        yield number, re.sub(r"`[^`]*`", "", line)


def found(name: str) -> list[str]:
    pattern = re.compile(PATTERNS[name], re.IGNORECASE)
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in FILES
        for number, line in prose(path)
        if pattern.search(line)
    ]


@pytest.mark.parametrize("name", PATTERNS)
def test_texts_read_as_plain_english(name: str) -> None:
    assert found(name) == []


def test_the_patterns_find_what_they_are_for() -> None:
    examples = {
        "beside": "its scores beside the others'",
        "by default by": "by default by the ending",
        "for want of": "refused, for want of a token",
        "hold, for contain": "95 % intervals hold 93 % of the targets",
        "in the net": "nothing from the net",
        "is no X": "A jump is no outlier",
        "ours": "an error of ours",
        "stands, for is": "a link stands at the foot",
        "told": "the model is told the reward",
        "whoever": "whoever can write the file",
    }
    fine = "There is no wheel; it is no longer there, stands for a class, stands in for it; they are told apart."
    for name, text in examples.items():
        assert re.search(PATTERNS[name], text), name
        assert not re.search(PATTERNS[name], fine, re.IGNORECASE), name


def test_the_page_of_examples_has_thirty_pairs() -> None:
    rows = re.findall(r"^\| (.+?) \| (.+?) \|$", (ROOT / "docs" / "_style.md").read_text(encoding="utf-8"), re.M)
    pairs = [(before, after) for before, after in rows if before != "before" and not before.startswith("---")]
    assert len(pairs) >= 30
    assert all(before != after for before, after in pairs)
