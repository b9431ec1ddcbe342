"""The way of one row from the application to the model is short, and gives what the long way through columns gives."""

import json
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onepass.files.checkpoint import from_bytes
from onepass.service.declared import declared_content
from onepass.service.served import RowModel, serve
from onepass.service.web.app import Application, create_app
from onepass.service.web.audit import AuditLog
from onepass.service.web.security import Security
from onepass.service.wire import Declared
from tests.service.running import Running

FRAMES = 11
"""From the application to the model of the table, both included."""


def described() -> Declared:
    rows = [
        {"km": float(i % 7), "n": i if i % 3 else None, "car": "abc"[i % 3], "new": i % 2 == 0, "code": f"z{i}", "y": i}
        for i in range(80)
    ]
    return Declared(rows=rows, target="y", learn=True, options={"model_kind": "perceptron"})


@pytest.fixture(scope="module")
def model() -> RowModel:
    served = serve(from_bytes(declared_content(described())))
    assert isinstance(served, RowModel)
    return served


def test_a_row_passes_few_frames_before_it_reaches_the_model(tmp_path: Path) -> None:
    running = Running(tmp_path)
    try:
        running.ask(running.state.create("price", described()))
        app = create_app(running.state, Security(None), audit=AuditLog(tmp_path), max_body=2**20)
        running.ask(predict(app))  # what is built once is built
        deepest = running.ask(depth_of_prediction(app))
    finally:
        running.stop()
    assert 0 < sum(deepest.values()) <= FRAMES


async def depth_of_prediction(app: Application) -> dict[str, int]:
    """Python frames from the application to the end of its awaits, and from there to the model's predictions."""
    found: dict[str, int] = {}

    def note(frame: FrameType, event: str, arg: Any) -> None:
        name = frame.f_code.co_name
        if event == "call" and name == "predict" and type(frame.f_locals.get("self")).__name__ == "Predictor":
            found["awaited"] = frames_up_to(frame, app.__call__.__func__.__code__)  # type: ignore[attr-defined]
        elif event == "call" and name == "predictions":
            found["called"] = frames_up_to(frame, None)

    sys.setprofile(note)
    try:
        await predict(app)
    finally:
        sys.setprofile(None)
    assert set(found) == {"awaited", "called"}
    return found


def frames_up_to(frame: FrameType | None, first: Any) -> int:
    """How many frames of the library lead to a frame, from that with this code on."""
    count = 0
    while frame is not None:
        count += "onepass" in frame.f_code.co_filename or "starlette" in frame.f_code.co_filename
        if frame.f_code is first or "asyncio" in frame.f_code.co_filename:
            break
        frame = frame.f_back
    return count


async def predict(app: Application) -> bytes:
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": json.dumps({"x": {"km": 1.5, "car": "b"}}).encode()}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/v1/models/price/predict", "query_string": b""}
    await app({**scope, "headers": headers, "client": ("127.0.0.1", 1)}, receive, send)
    assert sent[0]["status"] == 200
    return bytes(sent[1]["body"])


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["a", "c", "z1", "other", "", "NA", "true", "1.5", "1,5", " a "]),
)


@given(st.dictionaries(st.sampled_from(["km", "n", "car", "new", "code", "no such column"]), VALUES))
def test_a_row_alone_means_what_it_means_among_many(model: RowModel, row: dict[str, Any]) -> None:
    alone, problems = model.read([row], [None])
    among, all_problems = model.read([row] * 100, [None] * 100)  # so many are read as columns
    assert {i: str(problem) for i, problem in problems.items()} == {
        i: str(problem) for i, problem in all_problems.items() if i == 0
    }
    if not problems:
        np.testing.assert_array_equal(alone.X, among.X[:1], strict=True)
