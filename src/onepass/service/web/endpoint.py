"""The way of a request through an operation: who asks, in which form, what is sent, what is answered.

This is the hot path of a prediction, so it is plain ASGI: no request object, decoders and encoders built once.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from starlette.exceptions import HTTPException
from starlette.routing import compile_path
from starlette.types import Receive, Scope, Send

from onepass.service.errors import ProblemError
from onepass.service.web.arrow import read_batch, write_batch
from onepass.service.web.audit import About
from onepass.service.web.bodies import ARROW, JSON, LINES, from_text, json_decoder, lines_decoder, media_type, read_body
from onepass.service.web.operations import Answer, Call, Form, Operation
from onepass.service.web.security import Headers, Principal, client_of
from onepass.service.web.services import Services

__all__ = ["Method", "Routes"]

_NO_QUERY: Mapping[str, Any] = {}
_STRANGER = Principal("unknown", "read")


def _plain(value: Any) -> Any:
    """Numbers and arrays of NumPy as those of Python, without importing it."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, ProblemError):
        return value.body()
    raise NotImplementedError(f"{type(value).__name__} can't be written as JSON")


_encoder = msgspec.json.Encoder(enc_hook=_plain)
_ENCODERS: dict[str | None, Callable[[Any], bytes]] = {
    JSON: _encoder.encode,
    LINES: _encoder.encode_lines,
    ARROW: write_batch,
    None: lambda content: b"",
}


class _Asked:
    """A form with its decoder and encoder, and the headers of its answer."""

    __slots__ = ("_query", "decode", "encode", "handler", "headers")

    def __init__(self, form: Form, max_body: int) -> None:
        self.handler = form.handler
        self._query = {one.name: one.kind for one in form.query}
        self.decode = _decoder(form, max_body)
        self.encode = _ENCODERS.get(form.answers, bytes)
        self.headers = [] if form.answers is None else [(b"content-type", form.answers.encode())]

    def query(self, text: bytes) -> dict[str, Any]:
        """The parameters after the question mark, each of which must be known and there once."""
        found: dict[str, Any] = {}
        for name, value in parse_qsl(text.decode("latin-1"), keep_blank_values=True, max_num_fields=100):
            kind = self._query.get(name)
            if kind is None:
                words = f"{name!r} is not a parameter here; there are {', '.join(self._query) or 'none'}"
                raise ProblemError(422, "unknown parameter", words, field=name)
            if name in found:
                raise ProblemError(422, "bad parameter", f"{name!r} can be given only once", field=name)
            found[name] = from_text(value, kind, name)
        return found


def _decoder(form: Form, max_body: int) -> Callable[[bytes], Any] | None:
    if form.accepts is None:
        return None
    if form.accepts == ARROW:
        return lambda body: read_batch(body, 4 * max_body)  # bits and dictionaries take more room when they are read
    return {JSON: json_decoder, LINES: lines_decoder}[form.accepts](form.takes) if form.takes is not None else bytes


class Routes:
    """Leads requests to operations.

    Parameters
    ----------
    operations : all that there are
    services : that handlers use
    """

    def __init__(self, operations: Iterable[Operation], services: Services) -> None:
        by_path: dict[str, dict[str, Method]] = {}
        for one in operations:
            by_path.setdefault(one.path, {})[one.method] = Method(one, services)
        self._by_end: dict[str, list[tuple[re.Pattern[str], str, dict[str, Method]]]] = {}
        for path, methods in by_path.items():
            pattern, address, _ = compile_path(path)
            if "GET" in methods:
                methods["HEAD"] = methods["GET"]
            self._by_end.setdefault(_end(address), []).append((pattern, address, methods))

    @property
    def addresses(self) -> set[tuple[str, str]]:
        """Addresses and methods that there are."""
        return {(address, name) for some in self._by_end.values() for _, address, methods in some for name in methods}

    def find(self, scope: Scope) -> "Method | None":
        """The operation that a request asks for, whose parameters and address are noted in the scope."""
        path: str = scope["path"]
        for pattern, address, methods in (*self._by_end.get(_end(path), ()), *self._by_end.get(_ANY, ())):
            found = pattern.match(path)
            if found is not None:
                scope["path_params"], scope["onepass.route"] = found.groupdict(), address
                if scope["method"] not in methods:
                    raise HTTPException(405, headers={"Allow": ", ".join(methods)})
                method: Method = methods[scope["method"]]
                return method
        return None


_ANY = "{}"  # the end of addresses that end with a parameter


def _end(path: str) -> str:
    """What follows the last slash, by which most addresses differ."""
    end = path.rpartition("/")[2]
    return _ANY if end.startswith("{") else end


class Method:
    """An operation with all that was made ready for it in advance."""

    def __init__(self, operation: Operation, services: Services) -> None:
        self._scope_needed, self._status = operation.scope, operation.status
        self._action, self._name = operation.action, operation.name.replace("_", " ")
        self._names_model = operation.names_model
        self._services = services
        self._forms = {form.accepts: _Asked(form, services.max_body) for form in operation.forms}
        self._only = self._forms.get(None)

    async def serve(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        """Serve a request."""
        principal = self._let_in(scope, headers)
        status = 500
        try:
            if self._scope_needed is not None:
                principal.require(self._scope_needed)
                if principal.models is not None:
                    self._check_models(scope, principal)
            status = await self._answer(scope, headers, principal, receive, send)
        except ProblemError as problem:
            status = problem.status
            raise
        finally:
            if status == 403:
                self._refused(self._action or self._name, status, scope, principal.name)
            elif self._action is not None:
                about = self._about(scope)
                self._services.audit.changed(principal.name, self._action, status, client_of(scope), **about)

    def _check_models(self, scope: Scope, principal: Principal) -> None:
        """Refuse a token for some models what is about another one, and what only an administrator of all may do."""
        if self._names_model:
            principal.require_model(scope["path_params"]["name"])
        elif self._scope_needed == "admin":
            principal.require_all_models()

    def _refused(self, action: str, status: int, scope: Scope, who: str | None) -> None:
        about = {} if who is None else self._about(scope)  # what strangers write in an address is not kept
        who = _STRANGER.name if who is None else who
        self._services.audit.refused(action, status, client_of(scope), who=who, **about)

    def _about(self, scope: Scope) -> About:
        """What an action was about: the model or token of the address, and what its handler says."""
        name = scope["path_params"].get("name")
        own: About = {} if name is None else {"model": name} if self._names_model else {"token": name}
        return {**own, **scope.get("onepass.about", {})}

    def _let_in(self, scope: Scope, headers: Headers) -> Principal:
        """Who asks, if we know them; open operations don't ask."""
        if self._scope_needed is None:
            return _STRANGER
        try:
            return self._services.security.identify(scope, headers)
        except ProblemError as problem:
            if problem.status != 429:
                self._refused(problem.title, problem.status, scope, scope.get("onepass.principal"))
            raise

    async def _answer(self, scope: Scope, headers: Headers, principal: Principal, receive: Receive, send: Send) -> int:
        asked, body = self._only or self._asked(headers), None
        if asked.decode is not None:
            body = asked.decode(await read_body(headers, receive, self._services.max_body))
        text = scope["query_string"]
        query = asked.query(text) if text and self._scope_needed is not None else _NO_QUERY
        answer = await asked.handler(Call(self._services, principal, scope, headers, body, query))
        status, more = self._status, asked.headers
        if type(answer) is Answer:
            answer, status, more = answer.content, answer.status, [*more, *answer.headers]
        content = asked.encode(answer)
        await send(
            {
                "type": "http.response.start",
                "status": status,
                "headers": [*more, (b"content-length", b"%d" % len(content))] if status != 204 else more,
            }
        )
        await send({"type": "http.response.body", "body": content})
        return status

    def _asked(self, headers: Headers) -> _Asked:
        given = headers.get(b"content-type", b"")
        asked = self._forms.get(media_type(given))
        if asked is None:
            words = f"the content type must be {' or '.join(map(str, self._forms))}, got {given.decode('latin-1')!r}"
            raise ProblemError(415, "unsupported content type", words, more={"accepted": list(self._forms)})
        if headers.get(b"content-encoding", b"identity") != b"identity":
            raise ProblemError(415, "unsupported content encoding", "bodies must be sent uncompressed")
        return asked
