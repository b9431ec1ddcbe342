"""Files and names that the documentation mentions exist."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from onepass._extras import MissingExtraError
from tests.helpers.markdown import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PLACES = (ROOT, ROOT / "src" / "onepass")  # tables of modules leave the beginning out


def quoted(page: Path, pattern: str) -> set[str]:
    """What stands in backticks and begins with a pattern."""
    return set(re.findall(rf"`({pattern})", page.read_text(encoding="utf-8")))


def exists(name: str) -> bool:
    """Whether a dotted name can be imported, as a module or from one."""
    found = import_module("onepass")
    for part in name.split(".")[1:]:
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = import_module(f"{found.__name__}.{part}")
            except MissingExtraError:
                return True  # it is there, and what it needs is not
            except ModuleNotFoundError:
                return False
    return True


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_lead_somewhere(page: Path) -> None:
    paths = {path.rstrip("`") for path in quoted(page, r"[a-z_]+/(?:[a-z_]+/)*(?:\w+\.py)?`")}
    assert [path for path in sorted(paths) if not any((place / path).exists() for place in PLACES)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_names_can_be_imported(page: Path) -> None:
    assert [name for name in sorted(quoted(page, r"onepass(?:\.[A-Za-z_]\w*)+")) if not exists(name)] == []
