"""Help texts of commands, which are plain text: signs that reStructuredText takes for markup are escaped.

Each command ends with its examples, which `onepass.cli.options.Command` keeps apart from the help.
"""

import re
from typing import Any

# The last is the colon of https://..., which is no address to go to.
_MARKUP = re.compile(r"[*_`|\\]|:(?=//\.\.\.)")


def _escape(app: Any, context: Any, lines: list[str]) -> None:
    lines[:] = [line if re.match(r"\s*(\.\.|:)", line) else _MARKUP.sub(r"\\\g<0>", line) for line in lines]


def _examples(app: Any, context: Any, lines: list[str]) -> None:
    examples = getattr(context.command, "examples", ())
    if examples:
        lines += ["", ".. code-block:: console", "", *(f"    $ {example}" for example in examples), ""]


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.setup_extension("sphinx_click")
    for part in ("description", "options", "arguments", "envvars"):
        app.connect(f"sphinx-click-process-{part}", _escape)
    app.connect("sphinx-click-process-epilog", _examples)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
