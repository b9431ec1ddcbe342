"""Who is let in: tokens, scopes, sessions of browsers, foreign pages, foreign hosts, and too many requests."""

import asyncio
import hashlib
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onepass._limits import SCOPES
from onepass.service.errors import ProblemError
from onepass.service.web.security import LOOPBACK_HOSTS, Security
from onepass.service.web.sessions import CODE_SECONDS, SESSION_SECONDS
from onepass.service.web.table import OPERATIONS
from onepass.service.web.tokens import Tokens
from tests.service.web.conftest import Served, problem_of

PAGE = {"X-Onepass-Session": "1", "Origin": "http://localhost:8080", "Sec-Fetch-Site": "same-origin"}
ADDRESSES = [
    (one.method, one.path.replace("{name}", "price").replace("{id:path}", "a"), one.scope) for one in OPERATIONS
]


def begin_session(served: Served, **body: str) -> dict[str, str]:
    """The headers of a browser that was let in."""
    answer = served.ask("POST", "/v1/session", None, json=body)
    assert answer.status_code == 201
    return {"Cookie": answer.headers["set-cookie"].partition(";")[0]}


@pytest.mark.parametrize(("method", "path", "scope"), ADDRESSES)
def test_every_operation_refuses_smaller_scopes_and_no_token(
    served: Served, method: str, path: str, scope: str | None
) -> None:
    if scope is None:
        assert served.ask(method, path, None).status_code not in (401, 403)
        return
    nobody = served.ask(method, path, None)
    assert (nobody.status_code, nobody.headers["www-authenticate"]) == (401, 'Bearer realm="onepass"')
    for smaller in SCOPES[: SCOPES.index(scope)]:
        refused = served.ask(method, path, smaller)
        assert (refused.status_code, refused.json()["scope"]) == (403, scope)
    for enough in SCOPES[SCOPES.index(scope) :]:
        if method != "DELETE":
            assert served.ask(method, path, enough).status_code not in (401, 403)
    assert served.state.created == []


def test_all_wrong_tokens_have_the_same_answer(served: Served) -> None:
    good = served.secrets["admin"]
    wrong = ["", "Bearer", "Bearer ", "Bearer x", f"Basic {good}", good, f"Bearer {good[:-1]}", f"Bearer {good}x"]
    answers = {served.ask("GET", "/v1/models", headers={"Authorization": one}).content for one in wrong}
    answers.add(served.ask("GET", "/v1/models", None).content)
    assert len(answers) == 1
    assert served.ask("GET", "/v1/models", headers={"Authorization": f"bearer {good}"}).status_code == 200


def test_a_wrong_token_is_refused_although_there_is_a_session(served: Served) -> None:
    cookie = begin_session(served, code=served.security.sessions.new_code())
    assert served.ask("GET", "/v1/models", None, headers=cookie).status_code == 200
    assert served.ask("GET", "/v1/models", None, headers=cookie | {"Authorization": "Bearer x"}).status_code == 401


# Tokens.


def test_only_the_hash_of_a_token_is_kept_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    secret = Tokens(tmp_path / "tokens.json").create("shop", "learn")
    content = (tmp_path / "tokens.json").read_text()
    assert secret.startswith("onepass_")
    assert secret.removeprefix("onepass_") not in content
    assert hashlib.sha256(secret.encode()).hexdigest() in content
    if os.name != "nt":
        assert stat.S_IMODE((tmp_path / "tokens.json").stat().st_mode) == 0o600
    found = Tokens(tmp_path / "tokens.json").find(secret.encode())
    assert found is not None
    assert (found.name, found.scope) == ("shop", "learn")


def test_tokens_are_made_listed_and_revoked(served: Served) -> None:
    made = served.ask("POST", "/v1/tokens", json={"name": "shop", "scope": "learn"})
    assert made.status_code == 201
    headers = {"Authorization": f"Bearer {made.json()['token']}"}
    assert served.ask("GET", "/v1/session", headers=headers).json() == {"name": "shop", "scope": "learn"}
    listed = served.ask("GET", "/v1/tokens")
    assert [one["name"] for one in listed.json()["tokens"]] == ["admin", "learn", "read", "shop"]
    assert made.json()["token"] not in listed.text
    assert served.ask("DELETE", "/v1/tokens/shop").status_code == 204
    assert served.ask("GET", "/v1/session", headers=headers).status_code == 401
    assert served.ask("DELETE", "/v1/tokens/shop").status_code == 404


def test_a_name_has_one_token_and_the_last_admin_stays(served: Served) -> None:
    taken = served.ask("POST", "/v1/tokens", json={"name": "read", "scope": "admin"})
    assert (taken.status_code, taken.json()["field"]) == (409, "name")
    assert served.ask("DELETE", "/v1/tokens/admin").status_code == 409
    assert served.ask("POST", "/v1/tokens", json={"name": "other", "scope": "admin"}).status_code == 201
    assert served.ask("DELETE", "/v1/tokens/admin").status_code == 204


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "a b", "scope": "read"}, "name"),
        ({"name": "a", "scope": "all"}, "scope"),
        ({"name": "a"}, "scope"),
        ({"name": "a", "scope": "read", "token": "mine"}, "token"),
        ({"name": "a", "scope": "read", "models": []}, "models"),
        ({"name": "a", "scope": "read", "models": ["a b"]}, "models[0]"),
        ({"name": "a", "scope": "read", "expires": "soon"}, "expires"),
        ({"name": "a", "scope": "read", "expires": "2030-01-31T00:00:00"}, "expires"),
        ({"name": "a", "scope": "read", "expires": "1969-01-31T00:00:00Z"}, "expires"),
    ],
)
def test_wrong_tokens_are_not_made(served: Served, body: Any, field: str) -> None:
    refused = served.ask("POST", "/v1/tokens", json=body)
    assert (refused.status_code, refused.json()["field"]) == (422, field)


def test_a_token_that_can_not_be_written_is_not_in_force(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path / "gone" / "tokens.json")
    with pytest.raises(ProblemError) as refused:
        tokens.create("shop", "learn")
    assert refused.value.status == 507
    assert tokens.all() == []


@pytest.mark.parametrize(
    "content", [b"", b"{}", b'{"version": 2, "tokens": []}', b'{"version":1,"tokens":[{}]}', b"\xff"]
)
def test_a_damaged_file_of_tokens_lets_nobody_in(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "tokens.json").write_bytes(content)
    with pytest.raises(ValueError, match="is damaged"):
        Tokens(tmp_path / "tokens.json")


def as_token(served: Served, name: str, **request: Any) -> dict[str, str]:
    """The headers of a program with a new token."""
    made = served.ask("POST", "/v1/tokens", json={"name": name, **request})
    assert made.status_code == 201, made.text
    return {"Authorization": f"Bearer {made.json()['token']}"}


def test_an_expired_token_is_told_so_and_named_in_the_logs(served: Served) -> None:
    headers = as_token(served, "shop", scope="read", expires="1970-01-01T00:17:00+00:00")
    assert served.ask("GET", "/v1/models", headers=headers).status_code == 200
    cookie = begin_session(served, token=headers["Authorization"].removeprefix("Bearer "))
    served.clock.now = 1020.0
    for answer in (
        served.ask("GET", "/v1/models", headers=headers),
        served.ask("GET", "/v1/models", None, headers=cookie),
        served.ask("POST", "/v1/session", None, json={"token": headers["Authorization"].removeprefix("Bearer ")}),
    ):
        assert (answer.status_code, answer.json()["title"]) == (401, "token expired")
        assert "expired at 1970-01-01T00:17:00Z; ask an administrator" in answer.json()["detail"]
    used, *_ = [one for one in served.audited() if one["status"] == 401]
    assert (used["who"], used["action"]) == ("shop", "token expired")


def test_a_token_says_until_when_for_what_and_when_it_was_used(served: Served) -> None:
    request = {"name": "shop", "scope": "learn", "models": ["stock", "price"], "expires": "2030-01-31T00:00:00+01:00"}
    made = served.ask("POST", "/v1/tokens", json=request).json()
    assert (made["models"], made["expires"]) == (["price", "stock"], "2030-01-31T00:00:00+01:00")
    headers = {"Authorization": f"Bearer {made['token']}"}
    who = served.ask("GET", "/v1/session", headers=headers).json()
    assert who == {"name": "shop", "scope": "learn", "models": ["price", "stock"]}
    listed = {one.pop("name"): one for one in served.ask("GET", "/v1/tokens").json()["tokens"]}
    moment = "1970-01-01T00:16:40Z"
    assert listed["shop"] == {
        "scope": "learn",
        "models": ["price", "stock"],
        "created": moment,
        "expires": "2030-01-31T00:00:00+01:00",
        "last_used": moment,
    }
    assert listed["read"] == {
        "scope": "read",
        "models": None,
        "created": moment,
        "expires": None,
        "last_used": None,
    }
    assert served.audited()[0]["models"] == ["price", "stock"]


OF_MODELS = [
    (method, path.replace("price", "{name}"), scope)
    for method, path, scope in ADDRESSES
    if path.startswith("/v1/models/")
]


@pytest.mark.parametrize(("method", "path", "scope"), OF_MODELS)
def test_a_token_for_one_model_may_not_know_of_others(served: Served, method: str, path: str, scope: str) -> None:
    headers = as_token(served, "own", scope="admin", models=["own"])
    there = served.ask(method, path.format(name="price"), headers=headers)
    absent = served.ask(method, path.format(name="never"), headers=headers)
    assert (there.status_code, there.json()["title"]) == (403, "another model")
    assert there.text.replace("price", "never") == absent.text
    assert served.model.asked == []
    assert served.state.created == []
    allowed = as_token(served, "seller", scope=scope, models=["price", "own"])
    assert served.ask(method, path.format(name="price"), headers=allowed).status_code not in (401, 403)


def test_what_a_token_for_one_model_sees_has_no_trace_of_others(served: Served) -> None:
    headers = as_token(served, "own", scope="read", models=["own", "none"])
    served.ask("PUT", "/v1/models/own", json={"rows": [{"a": 1}]})
    served.state.replaying, served.state.broken = ["secret-1", "own"], {"secret-2": "damaged"}
    found = served.ask("GET", "/v1/models", headers=headers)
    assert [one["name"] for one in found.json()["models"]] == ["own"]
    assert (found.json()["replaying"], found.json()["broken"]) == (["own"], {})
    metrics = served.ask("GET", "/metrics", headers=headers).text
    assert 'model="own"' in metrics
    assert "process_" in metrics
    missing = served.ask("GET", "/v1/models/none", headers=headers)
    assert missing.status_code == 404
    for text in (found.text, metrics, missing.text, served.ask("GET", "/v1/session", headers=headers).text):
        assert "price" not in text
        assert "secret" not in text
    everything = served.ask("GET", "/metrics", "read").text
    assert 'model="price"' in everything


def test_a_session_of_a_token_for_one_model_is_for_that_model(served: Served) -> None:
    token = as_token(served, "own", scope="admin", models=["own"])["Authorization"].removeprefix("Bearer ")
    begun = served.ask("POST", "/v1/session", None, json={"token": token})
    assert begun.json() == {"name": "own", "scope": "admin", "models": ["own"]}
    cookie = {"Cookie": begun.headers["set-cookie"].partition(";")[0]}
    assert served.ask("GET", "/v1/models", None, headers=cookie).json()["models"] == []
    assert served.ask("GET", "/v1/models/price", None, headers=cookie).status_code == 403


def test_an_administrator_of_one_model_can_not_make_a_token_for_others(served: Served) -> None:
    headers = as_token(served, "own", scope="admin", models=["own"])
    for method, path in (("GET", "/v1/tokens"), ("POST", "/v1/tokens"), ("DELETE", "/v1/tokens/read")):
        refused = served.ask(method, path, headers=headers)
        assert (refused.status_code, refused.json()["title"]) == (403, "all models needed")
        assert "learn" not in refused.text
    assert served.ask("PUT", "/v1/models/own", headers=headers, json={"rows": [{"a": 1}]}).status_code == 201


# Sessions.


def test_a_code_begins_one_session(served: Served) -> None:
    code = served.security.sessions.new_code()
    begun = served.ask("POST", "/v1/session", None, json={"code": code})
    assert begun.json() == {"name": "page", "scope": "admin"}
    cookie = begun.headers["set-cookie"]
    for part in ("HttpOnly", "SameSite=Strict", "Path=/"):
        assert part in cookie
    assert "Secure" not in cookie
    assert served.ask("POST", "/v1/session", None, json={"code": code}).status_code == 401
    assert served.ask("GET", "/v1/session", None, headers={"Cookie": cookie.partition(";")[0]}).status_code == 200


def test_codes_and_sessions_expire(served: Served) -> None:
    code = served.security.sessions.new_code()
    served.clock.now += CODE_SECONDS
    assert served.ask("POST", "/v1/session", None, json={"code": code}).status_code == 401
    cookie = begin_session(served, code=served.security.sessions.new_code())
    served.clock.now += SESSION_SECONDS - 1
    assert served.ask("GET", "/v1/session", None, headers=cookie).status_code == 200
    served.clock.now += 1
    assert served.ask("GET", "/v1/session", None, headers=cookie).status_code == 401


def test_a_session_by_a_token_has_its_scope_and_ends_with_it(served: Served) -> None:
    cookie = begin_session(served, token=served.secrets["read"])
    assert served.ask("GET", "/v1/session", None, headers=cookie).json() == {"name": "read", "scope": "read"}
    assert served.ask("GET", "/v1/tokens", None, headers=cookie).status_code == 403
    served.ask("DELETE", "/v1/tokens/read")
    assert served.ask("GET", "/v1/session", None, headers=cookie).status_code == 401


def test_a_session_can_be_ended(served: Served) -> None:
    cookie = begin_session(served, code=served.security.sessions.new_code())
    ended = served.ask("DELETE", "/v1/session", None, headers=cookie | PAGE)
    assert (ended.status_code, "Max-Age=0" in ended.headers["set-cookie"]) == (204, True)
    assert served.ask("GET", "/v1/session", None, headers=cookie).status_code == 401


@pytest.mark.parametrize("body", [{}, {"code": "a", "token": "b"}, {"code": None}])
def test_a_session_begins_by_one_of_two(served: Served, body: Any) -> None:
    assert served.ask("POST", "/v1/session", None, json=body).status_code == 422


@pytest.mark.parametrize("body", [{"code": ""}, {"token": ""}, {"token": "\ud800"}, {"code": "x" * 5000}])
def test_nonsense_begins_no_session(served: Served, body: Any) -> None:
    content = json.dumps(body).encode()
    answer = served.ask("POST", "/v1/session", None, content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 401)


@pytest.mark.parametrize(
    "change",
    [
        {"X-Onepass-Session": ""},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:9999"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_foreign_page_can_not_use_a_session(served: Served, change: dict[str, str]) -> None:
    cookie = begin_session(served, code=served.security.sessions.new_code())
    assert served.ask("POST", "/v1/models/price/snapshot", None, headers=cookie | PAGE | change).status_code == 403
    assert served.model.asked == []
    assert served.ask("POST", "/v1/models/price/snapshot", None, headers=cookie | PAGE).status_code == 200


def test_a_foreign_page_can_not_begin_a_session(served: Served) -> None:
    code = served.security.sessions.new_code()
    headers = {"Origin": "https://evil.example"}
    assert served.ask("POST", "/v1/session", None, json={"code": code}, headers=headers).status_code == 403
    assert served.ask("POST", "/v1/session", None, json={"code": code}).status_code == 201  # it was not consumed


def test_without_tokens_everybody_may_ask_but_for_foreign_pages(make: Callable[..., Served]) -> None:
    served = make(no_auth=True)
    assert served.ask("POST", "/v1/models/price/snapshot", None).status_code == 200
    foreign = {"Origin": "https://evil.example"}
    assert served.ask("POST", "/v1/models/price/snapshot", None, headers=foreign).status_code == 403
    assert served.ask("GET", "/v1/tokens", None).status_code == 409


# Sockets.


def socket_closed_with(served: Served, headers: dict[str, str]) -> list[str]:
    """Types of messages that a socket at an address without one gets."""
    sent: list[str] = []

    async def send(message: Any) -> None:
        sent.append(f"{message['type']} {message.get('code')}")

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    scope = {
        "type": "websocket",
        "path": "/playground/none",
        "raw_path": b"/playground/none",
        "root_path": "",
        "query_string": b"",
        "headers": [(key.lower().encode(), value.encode()) for key, value in headers.items()],
    }
    asyncio.run(served.app(scope, receive, send))
    return sent


def test_a_socket_needs_a_session_and_our_own_page(served: Served) -> None:
    cookie = begin_session(served, code=served.security.sessions.new_code())
    host, refused = {"Host": "localhost:8080"}, ["websocket.close 1008"]
    assert socket_closed_with(served, host) == refused
    assert socket_closed_with(served, host | cookie | {"Origin": "https://evil.example"}) == refused
    assert socket_closed_with(served, host | cookie | {"Origin": "http://localhost:8080"}) == ["websocket.close 1000"]
    assert socket_closed_with(served, cookie | {"Host": "evil.example"}) == refused


# Hosts.


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8080", "127.0.0.1:1", "[::1]:8080", "[::1]", "Models.Example"]
)
def test_known_hosts_are_answered(make: Callable[..., Served], host: str) -> None:
    served = make(hosts={*LOOPBACK_HOSTS, "models.example"})
    assert served.ask("GET", "/healthz", None, headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "localhost.evil.example", "", "127.0.0.1.evil.example", "[::1", "a@localhost:1@b", "192.168.0.1"],
)
def test_a_foreign_host_is_not_answered(served: Served, host: str) -> None:
    refused = served.ask("GET", "/v1/models", headers={"Host": host})
    assert (refused.status_code, refused.headers["content-type"]) == (421, "application/problem+json")
    assert refused.headers["x-content-type-options"] == "nosniff"


def test_any_host_is_answered_where_none_are_named(make: Callable[..., Served]) -> None:
    assert make(hosts=None).ask("GET", "/healthz", None, headers={"Host": "anything"}).status_code == 200


@given(st.binary(max_size=40))
def test_no_host_header_breaks_the_check(host: bytes) -> None:
    problem = problem_of(lambda: Security(None).check_host({b"host": host}))
    assert problem is None or problem.status == 421


# Rates.


def test_a_token_that_asks_too_often_waits_and_others_do_not(make: Callable[..., Served]) -> None:
    served = make(rate_limit=2.0)
    assert [served.ask("GET", "/v1/models", "read").status_code for _ in range(3)] == [200, 200, 429]
    refused = served.ask("GET", "/v1/models", "read")
    assert refused.headers["retry-after"] == "1"
    assert served.ask("GET", "/v1/models", "learn").status_code == 200
    served.clock.now += 0.5
    assert [served.ask("GET", "/v1/models", "read").status_code for _ in range(2)] == [200, 429]


# Headers.


def test_answers_are_not_kept_and_pages_run_no_foreign_script(served: Served) -> None:
    for path in ("/v1/models", "/nothing", "/docs"):
        headers = served.ask("GET", path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["content-security-policy"].startswith("default-src 'self';")
        assert "unsafe" not in headers["content-security-policy"]
    assert served.ask("GET", "/v1/models").headers["cache-control"] == "no-store"
