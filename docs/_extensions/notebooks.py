"""Every tutorial in Python as a notebook to download: its prose as Markdown cells, its sessions as code cells."""

import json
import re
from pathlib import Path
from typing import Any

_SESSION = re.compile(r"^```python\n(.*?)^```\n?", re.MULTILINE | re.DOTALL)
_NEED_MORE = ("service",)  # pages whose code needs a service that runs
_LINK = """
<p class="notebook"><a href="../_notebooks/{name}.ipynb" download>Download this page as a notebook</a></p>
"""


def notebook(page: str) -> dict[str, Any] | None:
    """A page as a notebook; None if it has no session in Python."""
    cells: list[dict[str, Any]] = []
    end = 0
    for found in _SESSION.finditer(page):
        code = [line[4:] for line in found[1].splitlines() if line.startswith((">>> ", "... ", ">>>", "..."))]
        if not code:
            continue
        _add(cells, "markdown", page[end : found.start()])
        _add(cells, "code", "\n".join(code))
        end = found.end()
    if not cells:
        return None
    _add(cells, "markdown", page[end:])
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def _add(cells: list[dict[str, Any]], kind: str, text: str) -> None:
    if text.strip():
        cell: dict[str, Any] = {"cell_type": kind, "id": f"cell-{len(cells)}", "metadata": {}, "source": text.strip()}
        cells.append(cell | ({"execution_count": None, "outputs": []} if kind == "code" else {}))


def _tutorials(source: Path) -> dict[str, dict[str, Any]]:
    found = [page for page in (source / "tutorials").glob("*.md") if page.stem not in _NEED_MORE]
    pages = {page.stem: notebook(page.read_text(encoding="utf-8")) for page in found}
    return {name: made for name, made in pages.items() if made is not None}


def _link(app: Any, name: str, source: list[str]) -> None:
    folder, _, page = name.partition("/")
    if folder == "tutorials" and page in _tutorials(Path(app.srcdir)):
        source[0] += _LINK.format(name=page)


def _write(app: Any, error: Exception | None) -> None:
    folder = Path(app.outdir) / "_notebooks"
    folder.mkdir(exist_ok=True)
    for name, made in _tutorials(Path(app.srcdir)).items():
        (folder / f"{name}.ipynb").write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("source-read", _link)
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
