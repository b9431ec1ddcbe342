import base64
from html.parser import HTMLParser
from pathlib import Path

import pytest

from onepass.reports.html import Claim, Picture, Report, Section, Table, Verdict, plain, render_html
from tests.helpers.browser import needs_browser, open_in_browser

SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="8" height="4"><rect width="8" height="4"/></svg>'


def a_report(svg: bytes = SVG) -> Report:
    section = Section(
        name="first",
        title="First & foremost",
        question="Is sigma_{a}^{2} < 1?",
        setup=("Run `it`.",),
        pictures=(Picture("curve", "A curve, 1 < 2.", svg),),
        tables=(Table("All of it", ("", "paper"), (("error", "0.1"), ("  largest", "0.2"))),),
        reading="Yes.",
        answer="Holds.",
        claims=(Claim("a < b", "0.1 < 0.2", Verdict.IN_PART), Claim("b < a", "not so", Verdict.FAILS)),
        departures=("Not always.",),
    )
    return Report("Title", "Lead.", (section,), (("seed", "7"),))


class Tags(HTMLParser):
    """Collects what would be fetched, and checks that tags close."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.sources: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.sources += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "link", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_well_formed_and_fetches_nothing() -> None:
    tags = Tags()
    tags.feed(render_html(a_report()))
    assert tags.open == []
    assert tags.sources
    assert all(source.startswith(("data:", "#")) for source in tags.sources)


def test_claims_and_verdicts_come_first_in_words() -> None:
    html = render_html(a_report())
    box = html[html.index('<section class="verdicts"') : html.index("<nav")]
    assert [box.count(word) for word in (">holds in part<", ">does not hold<", ">holds<")] == [1, 1, 0]
    assert '<a href="#first">' in box
    assert "a &lt; b" in box
    assert 'class="verdicts"' not in render_html(Report("Title", "Lead.", ()))


def test_text_is_escaped_and_marked_up() -> None:
    html = render_html(a_report())
    assert "First &amp; foremost" in html
    assert "sigma<sub>a</sub><sup>2</sup> &lt; 1" in html
    assert "<code>it</code>" in html
    assert 'alt="A curve, 1 &lt; 2."' in html
    assert '<th scope="row" class="part">' in html
    assert base64.b64encode(SVG).decode() in html
    assert plain("sigma_{a}^{2} in {1, 2}") == "sigma_a^2 in {1, 2}"


def test_a_section_without_departures_says_nothing_of_them() -> None:
    assert "What does not hold" in render_html(a_report())
    section = Section("s", "S", "?", (), (), (), "Yes.")
    assert "What does not hold" not in render_html(Report("T", "L", (section,)))


def test_a_row_of_the_wrong_length_is_refused() -> None:
    with pytest.raises(ValueError, match=r"a row of 'Errors' has 1 cells, but 2 columns"):
        Table("Errors", ("", "paper"), (("only one",),))


@needs_browser
def test_a_browser_shows_the_page(tmp_path: Path) -> None:
    seen, console = open_in_browser(render_html(a_report()), tmp_path)
    assert seen == {"figure-curve": "true", "overflow": "false", "cut": "false"}
    assert console == []


@needs_browser
def test_the_browser_test_sees_what_is_broken(tmp_path: Path) -> None:
    html = render_html(a_report(svg=b"no drawing")).replace("</body>", "<script>missing()</script></body>")
    seen, console = open_in_browser(html, tmp_path)
    assert seen["figure-curve"] == "false"
    assert any("missing is not defined" in line for line in console)
