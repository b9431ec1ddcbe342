"""The OpenAPI 3.1 document, made from the table of operations and the types of requests and answers."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import msgspec
from msgspec import UNSET

from onepass import __version__
from onepass.service.web.bodies import ARROW, LINES
from onepass.service.web.operations import Form, Operation, Parameter
from onepass.service.web.problems import PROBLEM

__all__ = ["openapi_document"]

_REFERENCE = "#/components/schemas/{name}"
_GROUPS = {
    "rows": "Predict and learn.",
    "models": "Make models, look at them, go back to earlier versions, compare candidates.",
    "access": "Tokens, and browser sessions.",
    "operations": "Health and metrics of the service.",
}
_PROBLEMS = {
    400: "The body can't be parsed.",
    401: "No valid token.",
    403: "The token's scope is not sufficient, or the request came from a page of another site.",
    404: "There is no such model, token or decision.",
    408: "The body did not arrive in time.",
    409: "The request conflicts with the present state.",
    410: "It was deleted, has expired, or is damaged.",
    413: "The body is too large.",
    415: "The content type is not accepted here.",
    421: "The host name in the request is not accepted; see the option --allow-host.",
    422: "The body or a parameter is not valid; `field` names the part.",
    429: "Too many requests, or too many are waiting; try again after Retry-After seconds.",
    500: "The service failed; its log says why.",
    503: "Not ready, waited too long, or the database is away; nothing was done: try again after Retry-After seconds.",
    507: "The disk is full or can't be written to; predictions still work.",
}
_WORDS = {
    "/v1/models/{name}": "Name of the model: up to 64 letters, digits, '_', '.' and '-'.",
    "/v1/tokens/{name}": "Name of the token.",
    "/v1/models/{name}/predictions/{id}": "Id of the prediction.",
}
"""What a parameter in an address is, by the beginning of the address."""


class Problem(msgspec.Struct):
    """Problem details as of RFC 9457."""

    title: str
    status: int
    detail: str
    field: str | None = None
    """The part of the request that is to blame, such as `x.km` or `columns[0].std`; items of an array count from 0."""
    code: str | None = None
    """What is wrong with it, for programs, such as `not_a_number` or `missing_field`."""
    line: int | None = None
    """With JSON lines: the number of the line that is to blame, from 1."""
    row: int | None = None
    """With Arrow: the number of the row that is to blame, from 1."""


def openapi_document(operations: Sequence[Operation]) -> dict[str, Any]:
    """The document of a table of operations.

    Examples
    --------
    >>> from onepass.service.web.table import OPERATIONS
    >>> openapi_document(OPERATIONS)["openapi"]
    '3.1.0'
    """
    kinds = [kind for one in operations for form in one.forms for kind in (*_shown(form), form.gives)]
    named = [Problem, *dict.fromkeys(kind for kind in kinds if isinstance(kind, type))]
    _, components = msgspec.json.schema_components(named, ref_template=_REFERENCE)
    for kind in dict.fromkeys(struct for one in named for struct in _structs(msgspec.inspect.type_info(one))):
        _complete(components[kind.__name__], kind)
    paths: dict[str, dict[str, Any]] = {}
    for one in operations:
        paths.setdefault(one.address, {})[one.method.lower()] = _operation(one)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "onepass",
            "version": __version__,
            "summary": "Models that learn in production; every event that was acknowledged is stored durably.",
            "description": "A request that is refused changes nothing, and is answered with problem details (RFC "
            "9457). An id makes a request safe to repeat: the same request with the same id gets the same answer and "
            "is learned once.",
        },
        "tags": [{"name": name, "description": words} for name, words in _GROUPS.items()],
        "security": [{"token": []}, {"session": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "A token such as onepass_..."},
                "session": {"type": "apiKey", "in": "cookie", "name": "onepass_session"},
            },
        },
    }


def _shown(form: Form) -> tuple[Any, ...]:
    """The types of a body as the document shows them."""
    return form.forms_of_body or (form.takes,)


def _structs(info: Any) -> Iterator[type]:
    """The structs in a type."""
    if isinstance(info, msgspec.inspect.StructType):
        yield info.cls
    inner = [field.type for field in getattr(info, "fields", ())] + list(getattr(info, "types", ()))
    inner += [getattr(info, name) for name in ("type", "item_type", "value_type") if hasattr(info, name)]
    for one in inner:
        yield from _structs(one)


def _complete(schema: dict[str, Any], kind: type) -> None:
    """Add what msgspec does not know about a struct."""
    for owner in reversed(kind.__mro__):
        if issubclass(owner, msgspec.Struct) and owner is not msgspec.Struct:
            for field, words in _field_words(owner).items():
                schema["properties"][field]["description"] = words
    if getattr(kind, "kind_is_optional", False):
        schema["required"].remove("kind")
    for one in schema["properties"].values():
        for union in (one, one.get("items")):
            if isinstance(union, dict):
                union.pop("discriminator", None)  # by a kind that may not be there


def _field_words(kind: type) -> dict[str, str]:
    """What the strings below the fields of a type say, which only its source knows, or what it was made with."""
    if "field_words" in vars(kind):
        return dict(kind.field_words)  # type: ignore[attr-defined]
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(definition, ast.ClassDef)
    return {
        field.target.id: inspect.cleandoc(words.value.value).replace("``", "`")
        for field, words in pairwise(definition.body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(words, ast.Expr)
        and isinstance(words.value, ast.Constant)
        and isinstance(words.value.value, str)
    }


def _operation(operation: Operation) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "tags": [operation.group],
        "responses": _responses(operation),
    }
    words = [operation.description, f"Needs the scope `{operation.scope}`." if operation.scope else "Needs no token."]
    found["description"] = "\n\n".join(word for word in words if word)
    if parameters := [*_path_parameters(operation), *_query_parameters(operation.forms)]:
        found["parameters"] = parameters
    bodies = {form.accepts: _body(form) for form in operation.forms if form.accepts}
    if bodies:
        found["requestBody"] = {"required": True, "content": bodies}
    if operation.scope is None:
        found["security"] = []
    return found


def _path_parameters(operation: Operation) -> list[dict[str, Any]]:
    path = operation.address
    return [
        {
            "name": found[1],
            "in": "path",
            "required": True,
            "description": _WORDS[path[: found.end()]],
            "schema": {"type": "string"},
        }
        for found in re.finditer(r"\{(\w+)\}", path)
    ]


def _query_parameters(forms: Iterable[Form]) -> list[dict[str, Any]]:
    found: dict[Parameter, list[str]] = {}
    for form in forms:
        for parameter in form.query:
            found.setdefault(parameter, []).append(str(form.accepts))
    return [
        {
            "name": parameter.name,
            "in": "query",
            "description": f"{parameter.words} For {' and '.join(accepts)}.",
            "schema": _schema(parameter.kind),
        }
        for parameter, accepts in found.items()
    ]


def _responses(operation: Operation) -> dict[str, Any]:
    content = {
        form.answers.partition(";")[0]: _media(form.answers, form.gives, form.example_answer)
        for form in operation.forms
        if form.answers
    }
    done: dict[str, Any] = {"description": "Done."} | ({"content": content} if content else {})
    found = {str(operation.status): done}
    if operation.status == 201 and operation.method == "PUT":
        found["200"] = done | {"description": "The same model existed before."}
    for status in sorted(_statuses(operation)):
        schema = {"$ref": _REFERENCE.format(name="Problem")}
        found[str(status)] = {"description": _PROBLEMS[status], "content": {PROBLEM: {"schema": schema}}}
        if status in (429, 503):
            words = {"description": "Seconds to wait.", "schema": {"type": "integer", "minimum": 1}}
            found[str(status)]["headers"] = {"Retry-After": words}
    return found


def _statuses(operation: Operation) -> set[int]:
    found = {*operation.problems, 421, 500}
    if operation.scope is not None:
        found |= {401, 403, 422, 429}
    if operation.path.startswith("/v1/models/{name}"):
        found |= {404, 409, 410, 503, 507}
    if any(form.accepts for form in operation.forms):
        found |= {400, 408, 413, 415, 422}
    return found


def _body(form: Form) -> dict[str, Any]:
    found = _media(form.accepts, form.takes, UNSET if form.examples else form.example)
    if form.forms_of_body:
        found["schema"] = {"anyOf": [_schema(kind) for kind in form.forms_of_body]}
    if form.examples:
        found["examples"] = {name: {"value": value} for name, value in form.examples.items()}
    return found


def _media(media_type: str | None, kind: Any, example: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if kind is not None:
        found["schema"] = _schema(kind)
    if media_type == LINES:
        found["schema"] = {"type": "string", "description": "A JSON object per line."} | (
            {"contentSchema": _schema(kind), "contentMediaType": "application/json"}
        )
    elif media_type == ARROW:
        found["schema"] = {"type": "string", "format": "binary", "description": "An Arrow stream, uncompressed."}
    elif kind is None:
        found["schema"] = {"type": "string"}
    if example is not UNSET:
        lines = media_type == LINES
        found["example"] = "".join(msgspec.json.encode(one).decode() + "\n" for one in example) if lines else example
    return found


def _schema(kind: Any) -> dict[str, Any]:
    (schema,), _ = msgspec.json.schema_components([kind], ref_template=_REFERENCE)
    return schema
