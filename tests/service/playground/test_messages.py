"""Messages: what is refused and how, and the knobs as the page is told of them, against the page itself."""

import json
import re
from html import unescape
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onepass.service.playground.messages import MAX_SIZE, catalogue, decode
from onepass.service.playground.plane import MAX_POINTS
from onepass.service.playground.session import Session

STATIC = files("onepass.service.playground") / "static"
PAGE = (STATIC / "index.html").read_text(encoding="utf-8")
SCENES = {scene["scene"]: scene["knobs"] for scene in catalogue()}
SHOWN_ONLY = {"classes": ["show"], "drift": ["bands"]}  # knobs that the library knows nothing of


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("", "truncated"),
        ("{", "truncated"),
        ("[]", "Expected `object`"),
        ('{"id": 1}', "missing required field `scene`"),
        ('{"scene": "maze"}', "Invalid value 'maze'"),
        ('{"scene": "curve", "noise": 99}', "$.noise"),
        ('{"scene": "curve", "noise": NaN}', "malformed"),
        ('{"scene": "curve", "colour": "red"}', "unknown field `colour`"),
        ('{"scene": "curve", "points": [[1]]}', "$.points[0]"),
        ('{"scene": "curve", "points": [[1, 1e9]]}', "$.points[0][1]"),
        ('{"scene": "classes", "points": [[1, 1, 2]]}', "$.points[0][2]"),
        ('{"scene": "drift", "steps": 100000}', "$.steps"),
        (json.dumps({"scene": "curve", "points": [[0, 0]] * (MAX_POINTS + 1)}), "$.points"),
        (" " * (MAX_SIZE + 1), f"{MAX_SIZE:,} characters"),
    ],
)
def test_a_wrong_message_is_answered_with_what_is_wrong_and_the_session_goes_on(message: str, words: str) -> None:
    session = Session()
    answer = json.loads(session.answer(message))
    assert set(answer) == {"id", "error"}
    assert words in answer["error"]
    assert "view" in json.loads(session.answer('{"scene": "curve"}'))


def test_a_wrong_message_is_answered_by_its_number() -> None:
    assert json.loads(Session().answer('{"scene": "curve", "id": 12, "units": 0}'))["id"] == 12
    assert json.loads(Session().answer('{"scene": "curve", "id": "x"}'))["id"] is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
names = sorted({knob["name"] for knobs in SCENES.values() for knob in knobs} | {"points", "steps", "id"})


@given(st.sampled_from([*SCENES, "maze"]), st.dictionaries(st.sampled_from(names), json_values, max_size=4))
def test_no_message_brings_a_session_down(scene: str, fields: dict[str, Any]) -> None:
    answer = json.loads(Session().answer(json.dumps({"scene": scene, **fields})))
    assert ("view" in answer) != ("error" in answer)
    assert "its log says more" not in answer.get("error", "")


@given(st.binary(max_size=40))
def test_no_bytes_bring_a_session_down(message: bytes) -> None:
    assert "error" in json.loads(Session().answer(message))


def test_a_mistake_of_ours_is_logged_and_the_scene_starts_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    session = Session()
    with monkeypatch.context() as broken:
        broken.setattr("onepass.service.playground.scenes.curve.band_of", lambda _: 1 / 0)
        answer = json.loads(session.answer('{"scene": "curve", "id": 2, "points": [[0, 0]]}'))
    assert answer == {
        "id": 2,
        "error": "This could not be computed, because of a bug in the playground; its log says more.",
    }
    assert "ZeroDivisionError" in caplog.text
    assert json.loads(session.answer('{"scene": "curve", "points": [[0, 0]]}'))["view"]["n_seen"] == 1


def test_what_the_library_refuses_is_told_in_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Any) -> None:
        raise ValueError("X and y overflow float64")

    monkeypatch.setattr("onepass.service.playground.scenes.curve.band_of", refuse)
    assert json.loads(Session().answer('{"scene": "curve", "id": 3}')) == {"id": 3, "error": "X and y overflow float64"}


def test_every_knob_has_words_a_range_and_a_default_that_its_scene_accepts() -> None:
    for scene, knobs in SCENES.items():
        assert knobs
        for knob in knobs:
            assert knob["title"], knob
            assert knob["description"].endswith("."), knob
            if "options" in knob:
                assert sorted(knob["options"]) == sorted(knob["enum"])
            elif knob["type"] != "boolean":
                assert knob["minimum"] < knob["maximum"]
            decode(json.dumps({"scene": scene, knob["name"]: knob["default"]}))
            for other, allowed in knob.get("when", {}).items():
                (meant,) = [one for one in knobs if one["name"] == other]
                assert set(allowed) <= set(meant.get("options", (True, False)))


def test_the_page_has_a_link_a_tour_and_a_drawing_of_every_scene() -> None:
    assert re.findall(r'<a href="#scene=(\w+)">', PAGE.partition("<nav")[2].partition("</nav>")[0]) == list(SCENES)
    assert re.findall(r'<template id="text-(\w+)">', PAGE) == list(SCENES)
    assert {path.name for path in (STATIC / "js" / "scenes").iterdir()} == {f"{scene}.js" for scene in SCENES}


def test_every_link_of_the_tours_is_a_state_that_the_library_accepts() -> None:
    links = [unescape(link) for link in re.findall(r'href="#(scene=[^"]+)"', PAGE)]
    assert len(links) > 15
    for link in links:
        request: dict[str, Any] = dict(parse_qsl(link, keep_blank_values=True))
        scene = request["scene"]
        for name in SHOWN_ONLY.get(scene, []):
            request.pop(name, None)
        points = request.pop("points", None)
        values = {name: _read(value) for name, value in request.items()}
        if points is not None:
            values["points"] = [[_read(one) for one in point.split(",")] for point in points.split(";") if point]
        decode(json.dumps(values))


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def test_the_page_has_no_script_or_style_of_its_own_and_nothing_from_elsewhere() -> None:
    assert not re.findall(r"<style|<script(?![^>]*src=)|\son\w+=|\sstyle=", PAGE)
    for path in [STATIC / "index.html", STATIC / "playground.css", *_scripts()]:
        addresses = re.findall(r"(?:https?:)?//[\w.]+\.\w+", path.read_text(encoding="utf-8"))
        assert set(addresses) <= {"http://www.w3.org"}, path  # the name of SVG, which nobody asks for


def _scripts() -> list[Any]:
    folder = STATIC / "js"
    return [path for place in (folder, folder / "scenes") for path in place.iterdir() if path.name.endswith(".js")]
