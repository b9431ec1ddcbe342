"""Tokens in their file: what each may do, until when, and when it was last used."""

import json
import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from onepass.service.errors import ProblemError
from onepass.service.web.tokens import LAST_USED, Token, Tokens
from tests.service.web.conftest import Clock, problem_of


@pytest.mark.parametrize("name", ["", "my token", "a\nb", "x" * 65, "-a", "ä"])
def test_a_name_that_the_file_could_not_hold_is_refused_and_the_file_can_be_read_again(
    tmp_path: Path, name: str
) -> None:
    path = tmp_path / "tokens.json"
    Tokens(path).create("admin", "admin")
    with pytest.raises(ProblemError, match="the name of a token"):
        Tokens(path).create(name, "read")
    assert [token.name for token in Tokens(path).all()] == ["admin"]


def after(clock: Clock, seconds: float) -> datetime:
    return datetime.fromtimestamp(clock.now, UTC) + timedelta(seconds=seconds)


def found(tokens: Tokens, secret: str) -> Token:
    token = tokens.find(secret.encode())
    assert token is not None
    return token


def test_models_and_expiry_are_kept(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "tokens.json"
    expires = after(clock, 60)
    secret = Tokens(path, clock).create("shop", "learn", models=["stock", "price"], expires=expires)
    token = found(Tokens(path, clock), secret)
    assert (token.models, token.expires) == (frozenset({"price", "stock"}), expires)
    assert json.loads(path.read_bytes())["tokens"][0]["models"] == ["price", "stock"]  # in order, to compare files


def test_a_token_expires(tmp_path: Path) -> None:
    clock = Clock()
    tokens = Tokens(tmp_path / "tokens.json", clock)
    token = found(tokens, tokens.create("shop", "learn", expires=after(clock, 60)))
    clock.now += 59
    tokens.use(token)
    clock.now += 1
    with pytest.raises(ProblemError, match="the token 'shop' expired at 1970-01-01T00:17:40") as refused:
        tokens.use(token)
    assert refused.value.status == 401
    assert tokens.last_used(token) == datetime.fromtimestamp(1059, UTC)  # the refusal is no use


def test_a_token_can_not_expire_before_it_is_made(tmp_path: Path) -> None:
    clock = Clock()
    tokens = Tokens(tmp_path / "tokens.json", clock)
    with pytest.raises(ProblemError, match="expires must be in the future"):
        tokens.create("shop", "learn", expires=after(clock, 0))
    assert tokens.all() == []


def test_the_last_use_is_written_when_it_is_saved_and_not_before(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "tokens.json"
    tokens = Tokens(path, clock)
    shop = found(tokens, tokens.create("shop", "learn"))
    assert tokens.last_used(shop) is None
    tokens.use(shop)
    assert not (tmp_path / LAST_USED).exists()
    tokens.save_used()
    clock.now += 5
    tokens.use(shop)
    assert Tokens(path).last_used(shop) == datetime.fromtimestamp(1000, UTC)
    tokens.save_used()
    assert Tokens(path).last_used(shop) == datetime.fromtimestamp(1005, UTC)
    (tmp_path / LAST_USED).unlink()
    tokens.save_used()  # nothing is new
    assert not (tmp_path / LAST_USED).exists()


def test_a_new_token_was_not_used_by_its_name_alone(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "tokens.json"
    tokens = Tokens(path, clock)
    tokens.create("admin", "admin")
    tokens.use(found(tokens, tokens.create("shop", "learn")))
    tokens.save_used()
    tokens.revoke("shop")
    clock.now += 100
    for one in (tokens, Tokens(path, clock)):  # while it runs, and at the next start
        assert one.last_used(found(one, one.create("shop", "learn"))) is None
        one.revoke("shop")


@pytest.mark.parametrize("content", [b"", b"[]", b'{"shop": "now"}', b"\xff"])
def test_damage_to_the_file_of_last_uses_keeps_nobody_out(tmp_path: Path, content: bytes) -> None:
    secret = Tokens(tmp_path / "tokens.json").create("shop", "learn")
    (tmp_path / LAST_USED).write_bytes(content)
    tokens = Tokens(tmp_path / "tokens.json")
    tokens.use(found(tokens, secret))


def test_a_last_use_that_can_not_be_written_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tokens = Tokens(tmp_path / "tokens.json")
    tokens.use(found(tokens, tokens.create("shop", "learn")))
    (tmp_path / LAST_USED).mkdir()
    with caplog.at_level(logging.WARNING, "onepass.service"):
        tokens.save_used()
    assert "when tokens were last used can't be written" in caplog.text


def test_only_a_valid_token_for_all_models_counts_as_the_last_admin(tmp_path: Path) -> None:
    clock = Clock()
    tokens = Tokens(tmp_path / "tokens.json", clock)
    tokens.create("some", "admin", models=["price"])
    assert not tokens.has_admin
    tokens.create("short", "admin", expires=after(clock, 60))
    assert tokens.has_admin
    tokens.create("admin", "admin")
    clock.now += 60
    problem = problem_of(lambda: tokens.revoke("admin"))
    assert problem is not None
    assert problem.status == 409
    tokens.revoke("short")
    tokens.revoke("some")


def test_without_any_admin_others_can_be_revoked(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path / "tokens.json")
    tokens.create("shop", "learn")
    tokens.revoke("shop")
    assert tokens.all() == []
