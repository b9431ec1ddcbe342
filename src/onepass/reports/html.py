"""One HTML file that tells a story and opens offline: text, figures and tables, nothing fetched from anywhere.

Text may carry a little mark-up, ``mu_{a}``, ``sigma^{2}`` and ```code```, which `plain` takes out for the terminal.
"""

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from html import escape

__all__ = ["Claim", "Picture", "Report", "Section", "Table", "Verdict", "plain", "render_html"]

_ONE_LINE = 30  # characters of a cell


@dataclass(frozen=True)
class Table:
    """A table whose first column names its rows; a name that begins with a space belongs to the row above."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"a row of {self.caption!r} has {len(row)} cells, but {len(self.columns)} columns")


class Verdict(Enum):
    """What became of a claim, in the words that the page shows."""

    HOLDS = "holds"
    IN_PART = "holds in part"
    FAILS = "does not hold"
    TOO_FEW = "too few rows to tell"


@dataclass(frozen=True)
class Claim:
    """What others say, what we found, and whether that is the same."""

    said: str
    found: str
    verdict: Verdict


@dataclass(frozen=True)
class Picture:
    """A figure: its file's name without the ending, what it shows, and the drawing itself."""

    name: str
    caption: str
    svg: bytes = field(repr=False)
    is_wide: bool = True
    """Whether it has panels next to each other, for which a phone is too narrow."""


@dataclass(frozen=True)
class Section:
    """One question and its answer."""

    name: str
    title: str
    question: str
    setup: tuple[str, ...]
    pictures: tuple[Picture, ...]
    tables: tuple[Table, ...]
    reading: str
    answer: str = ""
    """In a few words, for the table of contents."""
    claims: tuple[Claim, ...] = ()
    """What is checked; all claims of a report are listed at its top."""
    departures: tuple[str, ...] = ()
    """What did not come out as claimed or hoped; empty if everything did."""


@dataclass(frozen=True)
class Report:
    """A title, an opening paragraph, the sections, and the facts of the run for the foot of the page."""

    title: str
    lead: str
    sections: tuple[Section, ...]
    facts: tuple[tuple[str, str], ...] = ()
    claims: tuple[Claim, ...] = ()
    """What is checked of the whole; those of the sections come after them."""
    claims_title: str = "Claims and findings"


def plain(text: str) -> str:
    """Text without its mark-up, for the terminal.

    Examples
    --------
    >>> plain("the variance sigma_{a}^{2} of `a`")
    'the variance sigma_a^2 of a'
    """
    return re.sub(r"([_^])\{([^{}]*)\}", r"\1\2", text).replace("`", "")


def render_html(report: Report) -> str:
    """Write the whole page."""
    links = "\n".join(_entry(section) for section in report.sections)
    facts = "\n".join(f"<dt>{_rich(name)}</dt><dd>{_rich(value)}</dd>" for name, value in report.facts)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(plain(report.title))}</title>
<link rel="icon" href="data:,">
<style>{_STYLE}</style>
</head>
<body>
<header>
<h1>{_rich(report.title)}</h1>
<p class="lead">{_rich(report.lead)}</p>
</header>
{_verdicts(report)}<nav aria-label="Contents"><h2>Contents</h2><ol>
{links}
</ol></nav>
<main>
{"".join(_section(section) for section in report.sections)}</main>
<footer><h2>This run</h2><dl>
{facts}
</dl></footer>
</body>
</html>
"""


def _link(section: Section) -> str:
    return f'<a href="#{escape(section.name)}">{_rich(section.title)}</a>'


def _entry(section: Section) -> str:
    answer = f'<br><span class="answer">{_rich(section.answer)}</span>' if section.answer else ""
    return f"<li>{_link(section)}{answer}</li>"


def _verdicts(report: Report) -> str:
    """Every claim, what was found, and the verdict, in a box; nothing if nothing is claimed."""
    found: list[tuple[Claim, Section | None]] = [(claim, None) for claim in report.claims]
    found += [(claim, section) for section in report.sections for claim in section.claims]
    rows = "\n".join(_claim(claim, section) for claim, section in found)
    if not rows:
        return ""
    heads = "".join(f'<th scope="col">{name}</th>' for name in ("Claim", "Found", "Verdict"))
    return (
        '<section class="verdicts" aria-label="Verdicts"><h2>'
        f"{escape(report.claims_title)}</h2>"
        f"<table><thead><tr>{heads}</tr></thead>\n<tbody>{rows}</tbody></table></section>\n"
    )


def _claim(claim: Claim, section: Section | None) -> str:
    link = "" if section is None else f"<br><small>{_link(section)}</small>"
    kind = claim.verdict.name.lower().replace("_", "-")
    return (
        f'<tr><th scope="row">{_rich(claim.said)}{link}</th>'
        f'<td class="words">{_rich(claim.found)}</td>'
        f'<td class="verdict"><span class="{kind}">{claim.verdict.value}</span></td></tr>'
    )


def _section(section: Section) -> str:
    parts = [
        f'<section id="{escape(section.name)}">\n<h2>{_rich(section.title)}</h2>',
        f'<p class="question">{_rich(section.question)}</p>',
        *(f"<p>{_rich(paragraph)}</p>" for paragraph in section.setup),
        *(_figure(picture) for picture in section.pictures),
        *(_table(table) for table in section.tables),
        f'<p class="reading"><strong>Reading.</strong> {_rich(section.reading)}</p>',
    ]
    if section.departures:
        items = "".join(f"<li>{_rich(item)}</li>" for item in section.departures)
        parts.append(f'<div class="departures"><h3>What does not hold</h3><ul>{items}</ul></div>')
    return "\n".join([*parts, "</section>\n"])


def _figure(picture: Picture) -> str:
    # As an image of its own, not as elements of the page: the ids inside two drawings must not meet.
    data = base64.b64encode(picture.svg).decode("ascii")
    alt = escape(plain(picture.caption), quote=True)
    kind = "" if picture.is_wide else ' class="narrow"'
    return (
        f'<figure><img{kind} id="figure-{escape(picture.name)}" src="data:image/svg+xml;base64,{data}" alt="{alt}">'
        f"<figcaption>{_rich(picture.caption)}</figcaption></figure>"
    )


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{_rich(column)}</th>' for column in table.columns)
    body = "\n".join(_row(row) for row in table.rows)
    return (
        f'<div class="table"><table><caption>{_rich(table.caption)}</caption>'
        f"<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>"
    )


def _row(cells: Sequence[str]) -> str:
    first, *rest = cells
    part = ' class="part"' if first.startswith(" ") else ""
    return f'<tr><th scope="row"{part}>{_rich(first)}</th>' + "".join(map(_cell, rest)) + "</tr>"


def _cell(text: str) -> str:
    """A cell; one that is a sentence may break, so that no table is cut by the edge of the page."""
    kind = ' class="words"' if len(text) > _ONE_LINE else ""
    return f"<td{kind}>{_rich(text)}</td>"


def _rich(text: str) -> str:
    """Text as HTML, with the mark-up turned into tags."""
    html = escape(text, quote=False)
    html = re.sub(r"_\{([^{}]*)\}", r"<sub>\1</sub>", html)
    html = re.sub(r"\^\{([^{}]*)\}", r"<sup>\1</sup>", html)
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", html)


_STYLE = """
:root { color-scheme: light dark; --page: #fff; --ink: #1c1c1c; --soft: #5a5a5a; --line: #d9d9d9; --faint: #efefef;
  --code: #f3f3f3; --blue: #0072B2; --warm: #fdf4ec; --orange: #D55E00; --yes: #00664b; --yes-back: #e3f4ee;
  --part: #7a5200; --part-back: #fdf1d8; --no: #9c3d00; --no-back: #fde8dc; }
@media (prefers-color-scheme: dark) { :root { --page: #15181c; --ink: #e8e8e8; --soft: #a9b0b8; --line: #3a4048;
  --faint: #2a2f36; --code: #262b32; --blue: #6cb8e8; --warm: #2b211a; --orange: #f08a4b; --yes: #6fd7b4;
  --yes-back: #12312a; --part: #f0c36a; --part-back: #362a10; --no: #ffa677; --no-back: #3a2015; } }
* { box-sizing: border-box; }
html { scroll-behavior: smooth; background: var(--page); }
body { margin: 0 auto; max-width: 58rem; padding: 2.5rem 1.25rem 4rem; background: var(--page); color: var(--ink);
  font: 1.0625rem/1.6 "Iowan Old Style", "Palatino Linotype", Palatino, "Liberation Serif", Georgia, serif; }
h1, h2, h3 { line-height: 1.25; font-weight: 600; }
h1 { font-size: clamp(1.7rem, 4.5vw, 2.4rem); margin: 0 0 .75rem; }
h2 { font-size: 1.45rem; margin: 0 0 .5rem; }
h3 { font-size: 1.05rem; margin: 0 0 .35rem; }
p { margin: 0 0 1rem; max-width: 46rem; }
sub, sup { font-size: .72em; line-height: 0; }
code { font: .88em ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; background: var(--code);
  padding: .1em .3em; border-radius: 3px; }
a { color: var(--blue); }
.lead { font-size: 1.15rem; color: var(--soft); }
.verdicts { border: 1.5px solid var(--line); border-radius: 8px; padding: 1.1rem 1.25rem .4rem; margin: 1.5rem 0; }
.verdicts h2 { font-size: 1.15rem; }
.verdicts table { border-bottom: 0; }
.verdicts thead th { border-top: 0; color: var(--soft); font-size: .9rem; }
.verdicts tbody th { width: 36%; }
.verdicts small { color: var(--soft); }
td.verdict { width: 8.5rem; padding-right: 0; }
td.verdict span { display: inline-block; padding: .05rem .6rem; border-radius: 1rem; font-size: .9rem;
  font-weight: 600; }
.holds { color: var(--yes); background: var(--yes-back); }
.in-part { color: var(--part); background: var(--part-back); }
.fails { color: var(--no); background: var(--no-back); }
.too-few { color: var(--soft); background: var(--faint); }
nav { border: 1px solid var(--line); border-width: 1px 0; padding: 1rem 0; margin: 1.75rem 0 2.75rem; }
nav h2, footer h2 { font-size: 1rem; color: var(--soft); }
nav ol { margin: 0; padding-left: 1.4rem; }
nav li { margin-bottom: .35rem; }
.answer { color: var(--soft); font-size: .95rem; }
main > section { margin: 0 0 3.5rem; padding-top: .5rem; }
.question { font-size: 1.15rem; font-style: italic; }
figure { margin: 1.75rem 0; }
figure img { display: block; width: 100%; height: auto; }
figure img.narrow { max-width: 38rem; }
figcaption, caption { font-size: .92rem; color: var(--soft); text-align: left; line-height: 1.45; }
figcaption { margin-top: .6rem; max-width: 50rem; }
.table { overflow-x: auto; margin: 1.5rem 0; }
table { border-collapse: collapse; font-size: .95rem; min-width: 100%; border-bottom: 1.5px solid var(--ink);
  font-variant-numeric: tabular-nums; }
caption { padding-bottom: .5rem; }
thead th { border-top: 1.5px solid var(--ink); border-bottom: 1px solid var(--ink); vertical-align: bottom; }
th, td { padding: .4rem .9rem .4rem 0; text-align: left; vertical-align: top; }
td, thead th + th { padding-left: .9rem; }
td { white-space: nowrap; }
td.words { white-space: normal; overflow-wrap: anywhere; }
th { font-weight: 600; }
tbody th { font-weight: 400; min-width: 12rem; }
th.part { padding-left: 1.25rem; }
tbody tr + tr > * { border-top: 1px solid var(--faint); }
.reading { border-left: 4px solid var(--blue); padding: .1rem 0 .1rem 1rem; margin: 1.5rem 0; }
.departures { border-left: 4px solid var(--orange); background: var(--warm); padding: .9rem 1rem .6rem;
  max-width: 47rem; }
.departures ul { margin: 0; padding-left: 1.2rem; }
.departures li { margin-bottom: .45rem; }
footer { border-top: 1px solid var(--line); padding-top: 1rem; font-size: .92rem; color: var(--soft); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1.25rem; margin: 0; }
dd { margin: 0; overflow-wrap: anywhere; }
@media (max-width: 40rem) {
  body { padding-top: 1.5rem; font-size: 1rem; }
  dl { grid-template-columns: 1fr; }
  .verdicts thead { display: none; }
  .verdicts tr, .verdicts tbody th, .verdicts tbody td { display: block; width: auto; padding: .15rem 0; }
  figure { overflow-x: auto; }
  figure img:not(.narrow) { min-width: 36rem; }
  tbody th { min-width: 7rem; }
  caption { max-width: calc(100vw - 2.5rem); }
  .verdicts tbody tr { padding: .6rem 0; }
  .verdicts tbody tr > * { border-top: 0; }
  .verdicts tbody tr + tr { border-top: 1px solid var(--faint); }
}
@media print { nav { display: none; } figure, .table tr, .departures, .verdicts { break-inside: avoid; }
  h2, h3, caption, .question { break-after: avoid; } .table { overflow: visible; }
  main > section { margin-bottom: 2rem; }
  figure img { min-width: 0 !important; max-height: 16cm; object-fit: contain; object-position: left; }
  body { max-width: none; padding: 0; font-size: 10.5pt; } }
"""
