"""What one served prediction costs the server, compared with the service that one would write at home.

    python -m benchmarks.served_row             # a minute

Both answer one JSON row of ten numbers and a category at a time, on one connection: `onepass serve` with a model that
`onepass fit` has made, and FastAPI on uvicorn around a pickled River pipeline (scaled numbers, one-hot category, linear
regression) that has learned the same rows. Requests go to both in turn; the figures are the processor time (user and
system) of each server process per request, and the ratio of each turn. Ours also checks a token and the host, limits
the body, counts the request, and adds an interval and the model's version; theirs does none of that.
"""

import argparse
import contextlib
import json
import os
import pickle
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.service import COLUMNS, row, serving, write_rows

TARGET = 2.0  # times the processor time of the home-made service, at most


def pipeline() -> Any:
    """The River model that one would begin with."""
    from river import compose, linear_model, preprocessing

    numbers = compose.Select(*COLUMNS) | preprocessing.StandardScaler()
    categories = compose.Select("car") | preprocessing.OneHotEncoder()
    return (numbers + categories) | linear_model.LinearRegression()


def create_app() -> Any:
    """The FastAPI application; uvicorn calls this in its own process."""
    from fastapi import FastAPI
    from pydantic import create_model

    fields: dict[str, Any] = {**dict.fromkeys(COLUMNS, (float, ...)), "car": (str, ...)}
    model = pickle.loads(Path(os.environ["PICKLED_MODEL"]).read_bytes())
    app, Row = FastAPI(), create_model("Row", **fields)

    async def predict(x: Any) -> dict[str, float]:
        return {"mean": model.predict_one(dict(x))}

    predict.__annotations__["x"] = Row  # FastAPI checks the body by it
    app.post("/predict")(predict)
    return app


@dataclass(frozen=True)
class Target:
    """A server process, and the bytes of requests to it."""

    port: int
    pid: int
    requests: list[bytes]

    @property
    def seconds(self) -> float:
        """Processor time of the process so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def cost(self, n: int) -> float:
        """Seconds of processor time per request, of n one after the other."""
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            begin = self.seconds
            for i in range(n):
                connection.sendall(self.requests[i % len(self.requests)])
                answer = _answer(connection)
                if not answer.startswith(b"HTTP/1.1 200"):
                    raise RuntimeError(repr(answer[:300]))
            return (self.seconds - begin) / n


def _answer(connection: socket.socket) -> bytes:
    """A whole answer, whose header gives the length of its body."""
    found = b""
    while True:
        found += connection.recv(65536)
        header, end, body = found.partition(b"\r\n\r\n")
        length = next((int(line[15:]) for line in header.lower().split(b"\r\n") if line[:15] == b"content-length:"), 0)
        if end and len(body) >= length:
            return found


def request(path: str, body: str, *headers: str) -> bytes:
    """The bytes of a request."""
    own = ["Host: 127.0.0.1", "Content-Type: application/json", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([f"POST {path} HTTP/1.1", *own, "", body]).encode()


@contextmanager
def ours(folder: Path, rows: list[dict[str, object]], kind: str) -> Iterator[Target]:
    """`onepass serve` with a fitted model."""
    with serving(folder, kind) as server:
        bodies = [json.dumps({"x": one}) for one in rows]
        headers = f"Authorization: Bearer {server.token}"
        path = "/v1/models/price/predict"
        yield Target(server.port, server.pid, [request(path, body, headers) for body in bodies])


@contextmanager
def theirs(folder: Path, rows: list[dict[str, object]]) -> Iterator[Target]:
    """FastAPI, uvicorn and a pickled model."""
    write_rows(folder / "theirs.csv", 2000)
    model = pipeline()
    names, *lines = [line.split(",") for line in (folder / "theirs.csv").read_text().splitlines()]
    for values in lines:
        x: dict[str, Any] = dict(zip(names, values, strict=True))
        y = float(x.pop("price"))
        model.learn_one({name: value if name == "car" else float(value) for name, value in x.items()}, y)
    pickled = folder / "model.pickle"
    pickled.write_bytes(pickle.dumps(model))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--factory", "--port", str(port), "--no-access-log", "--log-level", "warning"]
    command = [sys.executable, "-m", "uvicorn", "benchmarks.served_row:create_app", *options]
    process = subprocess.Popen(command, env=os.environ | {"PICKLED_MODEL": str(pickled)})
    try:
        _wait(port, process.poll)
        yield Target(port, process.pid, [request("/predict", json.dumps(one)) for one in rows])
    finally:
        process.terminate()
        process.wait(30)


def _wait(port: int, ended: Callable[[], int | None]) -> None:
    for _ in range(600):
        if ended() is not None:
            raise RuntimeError("uvicorn has ended")
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port)).close()
            return
        time.sleep(0.05)
    raise RuntimeError("uvicorn does not answer")


def compare(turns: int, n: int, kind: str) -> None:
    """Print what a request costs both."""
    rng = np.random.default_rng(4)
    rows = [row(rng) for _ in range(64)]
    with (
        tempfile.TemporaryDirectory() as name,
        ours(Path(name), rows, kind) as one,
        theirs(Path(name), rows) as other,
    ):
        for server in (one, other):
            server.cost(n)  # warm up
        costs = [(one.cost(n), other.cost(n)) for _ in range(turns)]
    mine, home = (statistics.median(column) * 1e6 for column in zip(*costs, strict=True))
    ratios = [a / b for a, b in costs]
    print(f"onepass {mine:6.0f} us, FastAPI and River {home:6.0f} us of processor time per request")
    print(f"ratio {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}); at most {TARGET:g}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--kind", default="auto", choices=("perceptron", "network", "auto"))
    options = parser.parse_args()
    compare(options.turns, options.requests, options.kind)


if __name__ == "__main__":
    main()
