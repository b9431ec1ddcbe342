"""Through how many Python functions a served row passes, from the application to the kernel.

    python -m tests.service.frames

One prediction and one learned row are sent to a service in this process. What is counted is the stack: functions of
this library and of Starlette that are waiting, or running, when the model that computes the prediction is called, and
when the compiled loop over rows begins. Where a request is handed to another thread or turn, both stacks count.
"""

import asyncio
import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any
from unittest.mock import patch

import onepass
from onepass.beliefs import full
from onepass.models.mixture import Mixture
from onepass.models.perceptron import BayesianPerceptron
from onepass.service.predictor import Predictor
from onepass.service.settings import ServiceSettings
from onepass.service.state import ServiceState
from onepass.service.web.app import Application, create_app
from onepass.service.web.audit import AuditLog
from onepass.service.web.security import Security
from onepass.service.wire import Declared
from onepass.service.writer import Writer

SOURCES = (str(Path(onepass.__file__).parent), "/starlette/")
KERNELS = ("rows_root", "rows_dense", "learn_block")
ROW = {"km": 1.5, "car": "b"}


def described() -> Declared:
    """A table with columns of all common kinds, learned by a perceptron."""
    rows = [
        {"km": float(i % 7), "n": i if i % 3 else None, "car": "abc"[i % 3], "new": i % 2 == 0, "code": f"z{i}", "y": i}
        for i in range(150)
    ]
    return Declared(rows=rows, target="y", learn=True, options={"model_kind": "perceptron"})


def chain(frame: FrameType | None) -> list[str]:
    """The functions of the library and of Starlette that lead to a frame, outermost first."""
    names: list[str] = []
    while frame is not None:
        if any(part in frame.f_code.co_filename for part in SOURCES):
            names.append(frame.f_code.co_qualname)
        frame = frame.f_back
    return names[::-1]


@contextmanager
def watched(seen: dict[str, list[str]], marks: Iterable[tuple[Any, str, str]]) -> Iterator[None]:
    """Note the longest chain that leads to each function, given by its owner, name and mark, in whichever thread."""

    def watching(function: Callable[..., Any], mark: str) -> Callable[..., Any]:
        @wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            own = [function.__qualname__] if isinstance(function, FunctionType) else []  # compiled ones are not counted
            found = [*chain(sys._getframe().f_back), *own]
            seen[mark] = max(seen.get(mark, []), found, key=len)
            return function(*args, **options)

        return call

    with ExitStack() as stack:
        for owner, name, mark in marks:
            stack.enter_context(patch.object(owner, name, watching(getattr(owner, name), mark)))
        yield


async def send(app: Application, operation: str, body: dict[str, Any]) -> None:
    """Send a request as a server would."""
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": json.dumps(body).encode()}

    async def answer(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    path = f"/v1/models/price/{operation}"
    scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "client": ("127.0.0.1", 1)}
    await app({**scope, "headers": headers}, receive, answer)
    if sent[0]["status"] != 200:
        raise RuntimeError(f"{path} was answered with {sent}")


async def chains(folder: Path) -> dict[str, list[list[str]]]:
    """The chains of a prediction and of a learned row: to where the request is handed over, and from there on."""
    state = ServiceState(ServiceSettings(folder))
    await state.start()
    try:
        await state.create("price", described())
        app = create_app(state, Security(None), audit=AuditLog(folder), max_body=2**20)
        for _ in range(3):  # what is built once is built
            await send(app, "predict", {"x": ROW})
        predicted: dict[str, list[str]] = {}
        models = [(model, "predict", "kernel") for model in (BayesianPerceptron, Mixture)]
        with watched(predicted, [(Predictor, "predict", "handed"), *models]):
            await send(app, "predict", {"x": ROW})
        await send(app, "learn", {"x": ROW, "y": 3.0})
        learned: dict[str, list[str]] = {}
        kernels = [(full, name, "kernel") for name in KERNELS]
        with watched(learned, [(Writer, "submit", "handed"), *kernels]):
            await send(app, "learn", {"x": ROW, "y": 3.0})
    finally:
        await state.stop()
    found = {"prediction": predicted, "learned row": learned}
    return {name: [seen["handed"], seen["kernel"]] for name, seen in found.items()}


def main() -> None:
    """Print the chains and how long they are."""
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(chains(Path(folder)))
    for name, parts in found.items():
        print(f"frames from the application to the kernel, {name}: {sum(map(len, parts))}")
        for part in parts:
            print("  " + " > ".join(part))


if __name__ == "__main__":
    main()
