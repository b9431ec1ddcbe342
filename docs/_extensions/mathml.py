"""Formulas as MathML, which browsers draw themselves: no script, nothing from the net, and search engines read them."""

from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util.math import get_node_equation_number

# What the converter does not know, in words that it does.
_SPELLED = {
    r"\boldsymbol": r"\mathbf",
    r"\operatorname{tr}": r"\mathrm{tr}\,",
    r"\dfrac": r"\frac",
    r"\tfrac": r"\frac",
}


def _mathml(formula: str, as_block: bool) -> str:
    for word, known in _SPELLED.items():
        formula = formula.replace(word, known)
    return str(tex2mathml(formula, as_block=as_block))


def _inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(_mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def _display(translator: Any, node: nodes.math_block) -> None:
    translator.body.append(translator.starttag(node, "div", CLASS="formula"))
    if node["number"]:
        number = get_node_equation_number(translator, node)
        translator.body.append(f'<span class="eqno">({number})</span>')
    translator.body.append(_mathml(node.astext(), as_block=True) + "</div>\n")
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_html_math_renderer("mathml", (_inline, None), (_display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
