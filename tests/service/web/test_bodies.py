"""Bodies from outside: limits, content types, and garbage of every kind, refused by problems that name the field."""

import asyncio
import json
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onepass.service.errors import ProblemError
from onepass.service.web import bodies
from onepass.service.web.access import TokenRequest
from onepass.service.web.arrow import read_batch, write_batch
from onepass.service.web.bodies import ARROW, BYTES, JSON, LINES, from_text, json_decoder, lines_decoder, read_body
from onepass.service.wire import Declared, ModelName, PredictRequest
from tests.service.web.conftest import MAX_BODY, Served, problem_of

PREDICT, LEARN = "/v1/models/price/predict", "/v1/models/price/learn"


def refused(answer: httpx.Response) -> tuple[int, str | None]:
    """The status and the field of a refusal, which must be a problem."""
    body = answer.json()
    assert answer.headers["content-type"] == "application/problem+json"
    assert body["status"] == answer.status_code
    assert body["title"]
    assert body["detail"]
    return answer.status_code, body.get("field")


def send(served: Served, content: bytes, kind: str = JSON, path: str = PREDICT) -> httpx.Response:
    return served.ask("POST", path, content=content, headers={"Content-Type": kind})


# JSON.


@pytest.mark.parametrize(
    ("content", "status", "field"),
    [
        (b"", 400, None),
        (b"{", 400, None),
        (b"nonsense", 400, None),
        (b'{"x": {}} {}', 400, None),
        (b'{"x": NaN}', 400, None),
        (b'{"x": {"a": "\xff"}}', 400, None),
        (b'{"x": {"\xff": 1}}', 400, None),
        (b'{"x": {"a": "\\ud800"}}', 400, None),
        (b"\xef\xbb\xbf{}", 400, None),
        (b"[]", 422, None),
        (b"{}", 422, "x"),
        (b'{"x": 1}', 422, "x"),
        (b'{"x": {}, "y": 1}', 422, "y"),
        (b'{"x": {"a": [1]}}', 422, "x"),
        (b'{"x": [1, "a"]}', 422, "x[1]"),
        (b'{"x": {"a": 1e999}}', 422, "x"),
        (b'{"x": {"a": ' + b"9" * 5000 + b"}}", 422, "x"),
        (b'{"x": {}, "id": ""}', 422, "id"),
        (b'{"x": {}, "id": "a\\u0000"}', 422, "id"),
        (b'{"x": {}, "level": 1}', 422, "level"),
        (b'{"x": ' + b"[" * 50_000, 400, None),
    ],
)
def test_what_is_no_json_or_does_not_fit_is_refused_with_the_field(
    served: Served, content: bytes, status: int, field: str | None
) -> None:
    assert refused(send(served, content)) == (status, field)
    assert served.model.asked == []


def test_what_is_wrong_is_told_in_words() -> None:
    predict, lines = json_decoder(PredictRequest), lines_decoder(PredictRequest)
    expected: list[tuple[Any, Any, str]] = [
        (predict, b"", "the body is empty"),
        (predict, b'{"km": 1}', 'columns go into x: {"x": {"km": ...}}'),
        (predict, b'{"x": {"a": -Infinity}}', "write null for a missing value"),
        (predict, b'{"x": {"a": [1]}}', "a value of x must be true, false, a whole number, a number, a text or null"),
        (predict, b'{"x": {"a": 1e400}}', "a number in x is out of range"),
        (predict, b'{"x": {}, "level": 95}', "level must be a number between 0 and 1, such as 0.95"),
        (predict, b'{"x": {}, "id": "a\\n"}', "id must be a text of 1 to 200 characters without control"),
        (predict, b'[{"x": {}}]', "send many rows as JSON lines (application/x-ndjson)"),
        (predict, b"\x10\0\0\0\0\0\0\0{}", "the content type of a model file is application/octet-stream"),
        (json_decoder(TokenRequest), b'{"name": "a", "scope": "all"}', "scope must be admin, learn or read, got 'all'"),
        (json_decoder(TokenRequest), b'{"name": "a b", "scope": "read"}', "name must be up to 64 letters"),
        (lines, b'{"x": {}}\n{"x": {}\n{"x": {}}', "line 2: the body can't be parsed"),
        (lines, b'{"x": {}}\n\n{"x": {"a": NaN}}', "line 3: NaN"),
        (lines, b'{"x": {}}\n\n{"x": {"a": []}}', "line 3: a value of x must be"),
        (lines, b'{"x": {}}\n\n{"x": {}, "level": 2}', "line 3: level must be a number between 0 and 1"),
        (lines, b'{"x": {}}\n\n{}', "line 3: x is missing"),
        (lines, b"{}", "line 1: x is missing"),
        (partial(from_text, kind=ModelName, field="name"), "a b", "letter or digit, got 'a b'"),
        (partial(from_text, kind=bool, field="sure"), "perhaps", "sure must be true or false"),
    ]
    for decode, content, words in expected:
        problem = problem_of(partial(decode, content))
        assert problem is not None
        assert words in problem.detail


def test_a_long_body_that_does_not_fit_is_refused_without_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "find_mismatch", None)  # it takes microseconds per value, and others wait
    body = json.dumps({"x": [1.0] * 50_000, "level": "a"}).encode()
    with pytest.raises(ProblemError) as found:
        json_decoder(PredictRequest)(body)
    assert (found.value.status, found.value.code) == (422, "wrong_type")


def test_deep_json_is_refused_where_anything_is_allowed() -> None:
    with pytest.raises(ProblemError) as error:
        json_decoder(Declared)(b'{"options": {"a": ' + b"[" * 40_000 + b"]" * 40_000 + b"}}")
    assert error.value.status == 400


@given(st.binary(max_size=200))
def test_any_bytes_are_decoded_or_refused(content: bytes) -> None:
    for decode in (json_decoder(PredictRequest), lines_decoder(PredictRequest)):
        problem = problem_of(partial(decode, content))
        assert problem is None or problem.status in (400, 422)


nested = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from(["x", "id", "key", "level", "other"]), nested))
def test_any_json_fits_or_is_refused_with_words(body: dict[str, Any]) -> None:
    problem = problem_of(lambda: json_decoder(PredictRequest)(json.dumps(body).encode()))
    if problem is not None:
        assert problem.detail
        assert "$." not in problem.detail
        assert problem.field is None or problem.field.partition("[")[0].partition(".")[0] in {*body, "x"}


# JSON lines.


@pytest.mark.parametrize(
    ("content", "status", "field"),
    [
        (b'{"x": {}}\n{"x": {"a": []}}', 422, "x"),
        (b'{"x": {}}\n{}', 422, "x"),
        (b'{"x": {}}\n{"x": {}', 400, None),
        (b"\n\n", 422, None),
        (b"", 422, None),
    ],
)
def test_a_wrong_line_refuses_them_all_before_anything_is_done(
    served: Served, content: bytes, status: int, field: str
) -> None:
    assert refused(send(served, content, LINES)) == (status, field)
    assert served.model.asked == []


def test_lines_may_end_as_on_windows_and_be_empty(served: Served) -> None:
    assert len(send(served, b'{"x":{}}\r\n\r\n{"x":{}}\r\n', LINES).text.splitlines()) == 2


# Arrow.


def stream(table: pa.Table, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


GOOD = stream(pa.table({"km": np.arange(1000.0), "brand": ["vw"] * 1000}))


def test_batches_become_one_and_dictionaries_are_written_out() -> None:
    brand = pa.array(["vw", "bmw", None]).dictionary_encode()
    table = pa.concat_tables([pa.table({"brand": brand, "km": [1, 2, 3]})] * 2)
    found = read_batch(stream(table), 10_000)
    assert found.schema.field("brand").type == pa.string()
    assert found.to_pydict() == {"brand": ["vw", "bmw", None] * 2, "km": [1, 2, 3] * 2}


@pytest.mark.parametrize("cut", [0, 1, 8, 100, 300, len(GOOD) // 2, len(GOOD) - 300])
def test_a_stream_that_was_cut_is_refused(served: Served, cut: int) -> None:
    assert refused(send(served, GOOD[:cut], ARROW))[0] in (400, 422)
    assert served.model.asked == []


@given(st.lists(st.tuples(st.integers(0, 700), st.integers(0, 255)), min_size=1, max_size=8))
def test_flipped_bytes_are_read_or_refused_and_crash_nothing(flips: list[tuple[int, int]]) -> None:
    damaged = bytearray(stream(pa.table({"km": [1.0, 2.0], "brand": ["vw", "bmw"]})))
    for place, value in flips:
        damaged[place % len(damaged)] = value
    problem = problem_of(lambda: read_batch(bytes(damaged), 100_000).to_pydict())
    assert problem is None or problem.status in (400, 413, 415, 422)


def test_a_name_of_a_column_that_is_no_text_is_refused() -> None:
    content = stream(pa.table({"kilometres": [1.0]})).replace(b"kilometres", b"kilo\xffetres")
    with pytest.raises(ProblemError, match="Arrow"):
        read_batch(content, 1000)


@given(st.binary(max_size=300))
def test_any_bytes_are_a_stream_or_refused(content: bytes) -> None:
    with pytest.raises(ProblemError):
        read_batch(content, 1000)


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_compressed_streams_are_refused(codec: str) -> None:
    plain = pa.table({"km": np.zeros(100_000)})
    texts = pa.table({"km": pa.array(["a" * 1000] * 100).dictionary_encode()})
    for table in (plain, texts):
        with pytest.raises(ProblemError) as error:
            read_batch(stream(table, compression=codec), 10_000_000)
        assert (error.value.status, error.value.title) == (415, "compressed Arrow stream")


def test_a_dictionary_is_not_written_out_beyond_the_limit() -> None:
    bomb = pa.table({"text": pa.array(["x" * 50_000]).dictionary_encode().take(pa.array([0] * 50_000))})
    content = stream(bomb)
    assert len(content) < 500_000  # which would be 2.5 GB
    with pytest.raises(ProblemError) as error:
        read_batch(content, 1_000_000)
    assert error.value.status == 413


@pytest.mark.parametrize(
    ("column", "field"),
    [
        (pa.array([[1.0]]), "bad"),
        (pa.array([{"a": 1}]), "bad"),
        (pa.array([b"x"]), "bad"),
        (pa.array(["x"], pa.string_view()), "bad"),
        (pa.RunEndEncodedArray.from_arrays(pa.array([1], pa.int32()), pa.array([1.0])), "bad"),
    ],
)
def test_columns_must_be_flat(column: Any, field: str) -> None:
    with pytest.raises(ProblemError) as error:
        read_batch(stream(pa.table({"km": [1.0], "bad": column})), 10_000)
    assert (error.value.status, error.value.field) == (422, field)


def test_rows_that_take_no_memory_are_refused() -> None:
    for table in (pa.table({"a": pa.nulls(1_000_000_000)}), pa.table({})):
        with pytest.raises(ProblemError) as error:
            read_batch(stream(table), 10_000)
        assert error.value.status == 422


def test_empty_streams_and_double_columns_are_refused() -> None:
    for table, field in (
        (pa.table({"a": pa.array([], pa.float64())}), None),
        (pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]), "a"),
    ):
        with pytest.raises(ProblemError) as error:
            read_batch(stream(table), 10_000)
        assert error.value.field == field


def test_what_is_written_can_be_read() -> None:
    columns = {"mean": np.array([1.0, np.nan]), "label": ["a", "b"], "version": 7}
    found = read_batch(write_batch(columns), 10_000).to_pydict()
    assert found["version"] == [7, 7]
    assert found["label"] == ["a", "b"]


# Content types and parameters.


@pytest.mark.parametrize("kind", ["", "application/x-www-form-urlencoded"])  # as curl -d has it
def test_what_nobody_has_named_is_json(served: Served, kind: str) -> None:
    assert send(served, b'{"x": {}}', kind).status_code == 200


@pytest.mark.parametrize("kind", ["text/plain", "multipart/form-data", "application/jsonx", BYTES])
def test_a_wrong_content_type_is_told_the_right_ones(served: Served, kind: str) -> None:
    answer = send(served, b'{"x": {}}', kind)
    assert refused(answer) == (415, None)
    assert answer.json()["accepted"] == [JSON, LINES, ARROW]


def test_a_content_type_may_have_parameters_and_capitals(served: Served) -> None:
    assert send(served, b'{"x": {}}', "Application/JSON; charset=utf-8").status_code == 200


def test_compressed_bodies_are_refused(served: Served) -> None:
    headers = {"Content-Type": JSON, "Content-Encoding": "gzip"}
    assert refused(served.ask("POST", PREDICT, content=b"x", headers=headers))[0] == 415


@pytest.mark.parametrize(
    ("query", "field"),
    [("id=", "id"), ("id=a%00", "id"), ("ids=a", "ids"), ("id=a&id=b", "id"), (f"id={'a' * 201}", "id")],
)
def test_wrong_parameters_are_refused(served: Served, query: str, field: str) -> None:
    content = b'{"x": {}, "y": 1}'
    assert refused(send(served, content, LINES, f"{LEARN}?{query}")) == (422, field)
    assert refused(send(served, content, JSON, f"{LEARN}?id=a")) == (422, "id")  # it is in the body there
    assert served.model.asked == []


# Limits.


def test_a_body_at_the_limit_is_read_and_one_beyond_is_not(served: Served) -> None:
    content = b'{"x": {"a": 1}}'
    assert send(served, content + b" " * (MAX_BODY - len(content))).status_code == 200
    answer = send(served, content + b" " * (MAX_BODY - len(content) + 1))
    assert refused(answer) == (413, None)
    assert (answer.json()["limit"], answer.headers["connection"]) == (MAX_BODY, "close")


def test_a_body_of_unknown_length_is_given_up_at_the_limit(served: Served) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 10_000
            yield b" " * 10_000

    answer = served.ask("POST", PREDICT, content=endless(), headers={"Content-Type": JSON})
    assert refused(answer) == (413, None)
    assert sent <= MAX_BODY + 20_000


@pytest.mark.parametrize("length", [b"-1", b"x", b"1e3", b"99999999999999999999"])
def test_a_length_that_is_none_is_refused(length: bytes) -> None:
    async def never() -> Any:
        raise AssertionError("the body must not be read")

    with pytest.raises(ProblemError) as error:
        asyncio.run(read_body({b"content-length": length}, never, 100))
    assert error.value.status == 413


def test_a_client_that_leaves_in_the_middle_is_not_answered_as_if_it_were_done() -> None:
    messages = [{"type": "http.disconnect"}, {"type": "http.request", "body": b"{}", "more_body": True}]

    async def receive() -> Any:
        return messages.pop()

    with pytest.raises(ProblemError, match="incomplete"):
        asyncio.run(read_body({}, receive, 100))
