"""The page of HTTP requests, from the OpenAPI document that a service itself serves."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from onepass.service.web.openapi import openapi_document
from onepass.service.web.table import OPERATIONS

_PAGE = "reference/http-requests.md"


def page(document: dict[str, Any]) -> str:
    """Every request with its parameters, bodies and answers, in Markdown, group by group."""
    schemas = document["components"]["schemas"]
    lines = [
        "# HTTP requests",
        "",
        f"Generated from the OpenAPI {document['openapi']} document, which a running service has at `/openapi.json`.",
        document["info"]["description"],
        "",
        "## Answers",
        "",
        "| status | meaning |",
        "|---|---|",
        *(f"| {status} | {_cell(words)} |" for status, words in sorted(_meanings(document).items())),
        "",
    ]
    for group in document["tags"]:
        lines += [f"## {group['name'].capitalize()}", "", group["description"], ""]
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                if group["name"] in operation["tags"]:
                    lines += _operation(f"{method.upper()} {path}", operation)
    lines += ["## Types", ""]
    for name, schema in schemas.items():
        lines += _schema(name, schema)
    return "\n".join(lines).rstrip() + "\n"


def _operation(title: str, operation: dict[str, Any]) -> Iterator[str]:
    yield from (f"### `{title}`", "", f"{operation['summary']}", "", operation["description"], "")
    parameters = operation.get("parameters", [])
    if parameters:
        yield from ("| parameter | in | type | |", "|---|---|---|---|")
        for one in parameters:
            words = _cell(one.get("description", ""))
            yield f"| `{one['name']}` | {one['in']} | {_type(one.get('schema', {}))} | {words} |"
        yield ""
    bodies = operation.get("requestBody", {}).get("content", {})
    for kind, media in bodies.items():
        yield f"- body `{kind}`: {_type(media.get('schema', {}))}"
        for name, one in media.get("examples", {}).items():
            yield f"  - example ({name}): `{json.dumps(one['value'])}`"
    for status, response in operation["responses"].items():
        if status < "4":
            kinds = (
                f"{_type(media.get('schema', {}))} (`{kind}`)" for kind, media in response.get("content", {}).items()
            )
            yield f"- {status}: {', '.join(kinds) or _cell(response.get('description', ''))}"
    refusals = [status for status in operation["responses"] if status >= "4"]
    yield from ([f"- may be refused with {', '.join(refusals)}", ""] if refusals else [""])


def _meanings(document: dict[str, Any]) -> dict[str, str]:
    """What each status of a refusal means, which is the same for all requests."""
    operations = [operation for methods in document["paths"].values() for operation in methods.values()]
    found = [(status, answer) for one in operations for status, answer in one["responses"].items()]
    return {status: answer.get("description", "") for status, answer in found if status >= "4"}


def _schema(name: str, schema: dict[str, Any]) -> Iterator[str]:
    yield from (f"({_label(name)})=", "", f"### {name}", "", schema.get("description", ""), "")
    if schema.get("properties"):
        needed = set(schema.get("required", ()))
        yield from ("| field | type | |", "|---|---|---|")
        for field, one in schema["properties"].items():
            words = _cell(one.get("description", ""))
            yield f"| `{field}` | {_type(one)}{'' if field in needed else ', optional'} | {words} |"
        yield ""


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{_label(name)})"
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return " or ".join(dict.fromkeys(_type(one) for one in schema[word]))
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        items = schema.get("items") or next(iter(schema.get("prefixItems", [])), {})
        return f"list of {_type(items)}"
    return str(schema.get("type") or "any")


def _label(name: str) -> str:
    return f"http-type-{name.lower()}"


def _cell(words: str) -> str:
    return " ".join(words.split()).replace("|", "\\|")


def _write(app: Any) -> None:
    path, text = Path(app.srcdir) / _PAGE, page(openapi_document(OPERATIONS))
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("builder-inited", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
