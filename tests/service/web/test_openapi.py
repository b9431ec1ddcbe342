"""The OpenAPI document: valid, complete, and true of what the service does."""

import re
from pathlib import Path
from runpy import run_path
from typing import Any

import jsonschema_rs
import msgspec
import pytest
from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR

from onepass.service import description
from onepass.service.declared import declared_content
from onepass.service.errors import ProblemError
from onepass.service.web.bodies import JSON, LINES
from onepass.service.web.openapi import openapi_document
from onepass.service.web.operations import Form, Operation
from onepass.service.web.table import OPERATIONS
from onepass.service.wire import Declared
from tests.service.web.conftest import Served

DOCUMENT = openapi_document(OPERATIONS)
FORMS = [(one, form) for one in OPERATIONS for form in one.forms]
DOCUMENTED = [(path, method, one) for path, methods in DOCUMENT["paths"].items() for method, one in methods.items()]


def test_the_document_is_valid_openapi() -> None:
    assert [str(error) for error in OPENAPI_31_VALIDATOR.iter_errors(DOCUMENT)] == []


def test_the_service_gives_the_document_to_everybody(served: Served) -> None:
    assert served.ask("GET", "/openapi.json", None).json() == msgspec.json.decode(msgspec.json.encode(DOCUMENT))


def test_every_route_is_in_the_document_and_the_other_way_round(served: Served) -> None:
    routes = {(path, method.lower()) for path, method in served.app.routes.addresses if method != "HEAD"}
    assert routes == {(path, method) for path, method, _ in DOCUMENTED}


def test_names_of_operations_are_unique() -> None:
    names = [one["operationId"] for _, _, one in DOCUMENTED]
    assert len(set(names)) == len(names)


def resolvable(schema: Any) -> Any:
    return {**schema, "components": DOCUMENT["components"]}


@pytest.mark.parametrize(("operation", "form"), FORMS, ids=lambda one: getattr(one, "name", ""))
def test_examples_fit_their_schemas(operation: Operation, form: Form) -> None:
    path = re.sub(r":\w+\}", "}", operation.path)
    found = DOCUMENT["paths"][path][operation.method.lower()]
    body = found.get("requestBody", {"content": {}})["content"].get(form.accepts)
    answer = found["responses"][str(operation.status)].get("content", {}).get(str(form.answers).partition(";")[0])
    for media, kind in ((body, form.accepts), (answer, form.answers)):
        if media is None:
            continue
        schema = media["schema"]
        for example in [media["example"]] if "example" in media else [one["value"] for one in many(media)]:
            if kind == LINES:
                (example,) = [msgspec.json.decode(line) for line in example.splitlines()]
                schema = schema["contentSchema"]
            jsonschema_rs.validator_for(resolvable(schema)).validate(example)


def many(media: Any) -> Any:
    return media.get("examples", {}).values()


DESCRIPTIONS = [
    one["value"] for one in many(DOCUMENT["paths"]["/v1/models/{name}"]["put"]["requestBody"]["content"][JSON])
]
DESCRIBED = jsonschema_rs.validator_for(
    resolvable(DOCUMENT["paths"]["/v1/models/{name}"]["put"]["requestBody"]["content"][JSON]["schema"])
)


@pytest.mark.parametrize("given", DESCRIPTIONS, ids=lambda one: str(one)[:60])
def test_the_examples_of_descriptions_make_models(given: Any) -> None:
    assert declared_content(Declared(**given))


@pytest.mark.parametrize(
    ("part", "wrong"),
    [
        ("columns", [{"name": "km", "size": 1}]),
        ("columns", [{"name": "km", "kind": "colour"}]),
        ("columns", [{"name": "km", "std": 0}]),
        ("columns", [{"name": "car", "kind": "category"}]),
        ("target", {"name": "y", "labels": ["a"]}),
        ("options", {"hiden": 5}),
        ("bandit", {"arms": ["a"]}),
        ("learn", True),
    ],
)
def test_the_schema_of_a_description_tells_what_its_parts_may_hold(part: str, wrong: Any) -> None:
    sound = next(one for one in DESCRIPTIONS if ("bandit" if part == "bandit" else "columns") in one)
    assert DESCRIBED.is_valid(sound)
    assert not DESCRIBED.is_valid({**sound, part: wrong})
    with pytest.raises(ProblemError):
        declared_content(Declared(**{**sound, part: wrong}))


def test_every_field_of_a_description_is_explained() -> None:
    types = [DOCUMENT["components"]["schemas"][kind.__name__] for kind in description.FORMS.values()]
    met = []
    while types:
        one = types.pop()
        met.append(one["title"])
        assert one["description"]
        for name, field in one["properties"].items():
            inside = re.findall(r"schemas/(\w+)", str(field))
            assert inside or name == "kind" or field["description"], (one["title"], name)
            types += [DOCUMENT["components"]["schemas"][kind] for kind in inside]
    assert {"DateColumn", "ClassTarget", "TableOptions", "Bandit"} <= set(met)


@pytest.mark.parametrize(("operation", "form"), FORMS, ids=lambda one: getattr(one, "name", ""))
def test_the_examples_of_requests_are_answered_as_documented(served: Served, operation: Operation, form: Form) -> None:
    if form.accepts not in (None, JSON, LINES) or operation.name in ("begin_session", "revoke_token"):
        return
    path = operation.path.replace("{name}", "price").replace("{id:path}", "sale-1")
    given: dict[str, Any] = {}
    if form.accepts is not None:
        lines = form.example if form.accepts == LINES else [form.example]
        content = b"\n".join(msgspec.json.encode(one) for one in lines)
        given = {"content": content, "headers": {"Content-Type": form.accepts}}
    answer = served.ask(operation.method, path, operation.scope or "admin", **given)
    assert answer.status_code == (200 if operation.name == "create_model" else operation.status), answer.text
    if form.answers is not None:
        assert answer.headers["content-type"] == form.answers


@pytest.mark.parametrize(
    ("path", "method", "operation"), DOCUMENTED, ids=lambda one: one if isinstance(one, str) else ""
)
def test_scopes_and_refusals_are_documented(path: str, method: str, operation: Any) -> None:
    is_open = operation.get("security") == []
    assert ("401" in operation["responses"]) == (not is_open or path == "/v1/session")
    assert ("Needs the scope" in operation["description"]) == (not is_open)
    for status, answer in operation["responses"].items():
        if status >= "400":
            assert list(answer["content"]) == ["application/problem+json"]


def test_meanings_of_fields_come_from_the_types() -> None:
    level = DOCUMENT["components"]["schemas"]["PredictRequest"]["properties"]["level"]
    assert level["description"] == "Probability of the interval from `lower` to `upper`."


def test_the_reference_page_needs_no_other_server_and_no_inline_script(served: Served) -> None:
    page = served.ask("GET", "/docs", None)
    assert page.headers["content-type"].startswith("text/html")
    assert not re.search(r"https?://|<style|style=|\son\w+=", page.text)
    sources = re.findall(r'(?:src|href)="([^"#]+)"', page.text)
    assert {"docs.css", "docs.js"} <= set(sources)
    for source in sources:
        assert served.ask("GET", f"/{source}", None).status_code == 200
    assert all(
        re.fullmatch(r"<script [^>]*src=[^>]*></script>", one) for one in re.findall(r"<script.*?</script>", page.text)
    )


def test_the_page_of_the_site_lists_the_types_and_examples_of_descriptions() -> None:
    found = run_path(str(Path(__file__).parents[3] / "docs" / "_extensions" / "http_api.py"))["page"](DOCUMENT)
    for part in ("### CategoryColumn", "### TableOptions", "| `reward_range` | list of number, optional |"):
        assert part in found
    assert 'example (bandit): `{"bandit": {"arms": ["red", "blue"], "n_features": 2}}`' in found
