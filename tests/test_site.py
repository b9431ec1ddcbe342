"""The site without building it: no page is an orphan, no link is broken, and every public name is documented."""

import doctest
import io
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from runpy import run_path

import pytest

from tests.helpers.markdown import ROOT

DOCS = ROOT / "docs"
EXAMPLES = ROOT / "examples" / "gallery"
MADE = ("gallery", "reference/api/generated", "_")  # folders that Sphinx writes, and those that are no pages
PAGES = [
    page
    for suffix in ("md", "rst")
    for page in sorted(DOCS.rglob(f"*.{suffix}"))
    if not page.relative_to(DOCS).as_posix().startswith(MADE)
]
GENERATED = {DOCS / "gallery" / "index.rst", DOCS / "reference" / "http-requests.md"}
FROM_OUTSIDE = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
MODULES = (
    "onepass",
    "onepass.activations",
    "onepass.client",
    "onepass.decisions",
    "onepass.distributed",
    "onepass.export",
    "onepass.events",
    "onepass.paper.kalman_network",
    "onepass.likelihoods",
    "onepass.layers",
    "onepass.merging",
    "onepass.river",
)


def prose(page: Path) -> str:
    """A page without its code."""
    text = re.sub(r"^```(?!\{toctree).*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "", text) if page.suffix == ".md" else text


def children(page: Path) -> Iterator[Path]:
    """The pages in the tables of contents of a page."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^```\{toctree\}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    blocks += re.findall(r"^\.\. toctree::\n((?:[ \t]+.*\n|\n)*)", text, re.MULTILINE)
    for line in "\n".join(blocks).splitlines():
        if (entry := line.strip()) and not entry.startswith(":"):
            found = [page.parent / f"{entry}.{suffix}" for suffix in ("md", "rst")]
            yield next((one for one in found if one in GENERATED or one.exists()), found[0])


def anchors(page: Path) -> set[str]:
    """What a link may name on a page: headings as MyST and GitHub slug them, and targets."""
    text = page.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}
    return slugs | set(re.findall(r"^\(([\w-]+)\)=$", text, re.MULTILINE))


def links(page: Path) -> list[str]:
    """What a page links to within the repository."""
    found = re.findall(r"\]\(([^)\s]+)\)", prose(page))
    return [target for target in found if not target.startswith(("http:", "https:", "mailto:"))]


def is_made(path: Path) -> bool:
    """Whether Sphinx makes what a link leads to, from something that is there."""
    if path in GENERATED:
        return True
    example = re.fullmatch(r"(?:sphx_glr_)?(plot_\w+?)(?:_\d{3}\.png|\.rst)", path.name)
    return path.is_relative_to(DOCS / "gallery") and example is not None and (EXAMPLES / f"{example[1]}.py").exists()


def test_every_page_is_in_a_table_of_contents() -> None:
    reached, waiting = set(), [DOCS / "index.md"]
    while waiting:
        page = waiting.pop()
        reached.add(page)
        assert page in GENERATED or page.exists(), f"a table of contents names {page}, which is not there"
        waiting += [] if page in GENERATED else [one for one in children(page) if one not in reached]
    assert sorted(set(PAGES) - GENERATED - reached) == []


@pytest.mark.parametrize("page", [*FROM_OUTSIDE, *PAGES], ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for link in links(page):
        target, _, anchor = link.partition("#")
        path = (page.parent / target).resolve() if target else page
        if is_made(path):
            continue
        if not path.exists() or (anchor and path.suffix == ".md" and anchor not in anchors(path)):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_has_an_entry(name: str) -> None:
    page = (DOCS / "reference" / "api" / f"{name}.rst").read_text(encoding="utf-8")
    entries = set(re.findall(r"^(?:   |\.\. py:data:: )(?:\w+\.)?(\w+)$", page, re.MULTILINE))
    assert entries == set(import_module(name).__all__)


def own_docs(name: str) -> Iterator[tuple[str, str]]:
    """The docstrings of a module's public names and of their public members."""
    module = import_module(name)
    for entry in module.__all__:
        found = getattr(module, entry)
        if isinstance(found, type) or callable(found):
            yield entry, found.__doc__ or ""
        for member in vars(found) if isinstance(found, type) else ():
            if not member.startswith("_"):
                yield f"{entry}.{member}", getattr(found, member).__doc__ or ""


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_public_names_run_as_pasted(name: str) -> None:
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    broken = []
    for entry, text in own_docs(name):
        examples = doctest.DocTestParser().get_examples(text)
        said: list[str] = []
        case = doctest.DocTest(examples, {}, entry, None, 0, text)  # with nothing imported
        doctest.DocTestRunner(verbose=False, optionflags=flags).run(case, out=said.append)
        broken += said
    assert broken == [], "".join(broken)


@pytest.mark.parametrize(
    ("tags", "found"),
    [
        ([], {}),
        (["nightly", "v1.0.0rc1"], {}),
        (["v0.9.5", "v0.10.1", "v0.10.0"], {"0.10": "v0.10.1"}),
    ],
)
def test_the_site_of_the_newest_release_is_published_with_that_of_main(tags: list[str], found: dict[str, str]) -> None:
    newest = run_path(str(ROOT / "scripts" / "build_versions.py"))["newest"]
    assert newest(tags) == found


def test_formulas_have_a_font_of_the_site() -> None:
    style = (DOCS / "_static" / "site.css").read_text(encoding="utf-8")
    (path,) = re.findall(r'url\("([^"]+)"\)', style)
    assert (DOCS / "_static" / path).read_bytes()[:4] == b"wOF2"
    assert (DOCS / "_static" / path).with_name("OFL.txt").exists()


NOTEBOOKS = ("bandit", "drift-and-outliers", "fleet", "intervals", "labels")


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_tutorials_run_as_notebooks(name: str) -> None:
    notebook = run_path(str(DOCS / "_extensions" / "notebooks.py"))["notebook"]
    page = (DOCS / "tutorials" / f"{name}.md").read_text(encoding="utf-8")
    made = notebook(page)
    code = [cell["source"] for cell in made["cells"] if cell["cell_type"] == "code"]
    assert len(code) == len(re.findall(r"^```python\n>>>", page, re.MULTILINE))
    names: dict[str, object] = {}
    with redirect_stdout(io.StringIO()):
        for source in code:
            exec(source, names)


def test_pages_without_sessions_are_not_notebooks() -> None:
    assert run_path(str(DOCS / "_extensions" / "notebooks.py"))["notebook"]("# Title\n\n    a command\n") is None


def test_signs_in_the_help_of_commands_are_no_markup() -> None:
    names = run_path(str(DOCS / "_extensions" / "click_help.py"))
    lines = ["addresses such as https://... or s3://... and a*b, but https://example.org", ".. code-block:: console"]
    names["_escape"](None, None, lines)
    assert lines == [
        r"addresses such as https\://... or s3\://... and a\*b, but https://example.org",
        ".. code-block:: console",
    ]
