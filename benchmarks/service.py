"""What the service can bear: requests per second, latency and memory of `onepass serve` under load.

    python -m benchmarks.service                # a minute; needs wrk (a light HTTP client) on the path
    python -m benchmarks.service --soak 900     # 15 minutes of predictions and learning, with memory and latency

Server and clients share the machine, as the figures say. The model is that of a table with ten numbers, a category and
a number to predict; every row that is learned is on the disk before it is acknowledged.
"""

import argparse
import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

COLUMNS = [f"x{i}" for i in range(10)]
SECONDS = 8
_ARROW = "application/vnd.apache.arrow.stream"


@dataclass(frozen=True)
class Server:
    """A running service."""

    port: int
    token: str
    pid: int

    def post(self, path: str, body: bytes, kind: str, connection: http.client.HTTPConnection) -> bytes:
        headers = {"Content-Type": kind, "Authorization": f"Bearer {self.token}"}
        connection.request("POST", path, body, headers)
        answer = connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status} {content[:300]!r}")
        return content

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def memory(self) -> float:
        """Resident megabytes."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        return float(found[1]) / 1024 if found else float("nan")


def write_rows(path: Path, n: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, len(COLUMNS)))
    cars = rng.integers(3, size=n)
    y = 100.0 + X @ np.arange(1.0, 11.0) + 5.0 * cars + rng.normal(size=n)
    lines = [",".join([*COLUMNS, "car", "price"])]
    for row, car, target in zip(X, cars, y, strict=True):
        lines.append(",".join([*(f"{value:.4f}" for value in row), "abc"[car], f"{target:.3f}"]))
    path.write_text("\n".join(lines) + "\n")


def row(rng: np.random.Generator) -> dict[str, object]:
    return {**{name: round(float(rng.normal()), 4) for name in COLUMNS}, "car": "abc"[rng.integers(3)]}


@contextmanager
def serving(folder: Path, kind: str) -> Iterator[Server]:
    """Start the real command on a model that has learned 2,000 rows."""
    main = [sys.executable, "-c", "from onepass.cli.main import main; main()"]
    rows, model = folder / "rows.csv", folder / "price.onepass"
    write_rows(rows, 2000)
    fit = ["fit", str(rows), "--target", "price", "--model", str(model), "--model-kind", kind, "--quiet"]
    subprocess.run([*main, *fit], check=True)
    serve = ["serve", "--data", str(folder / "state"), "--model", f"price={model}", "--port", "0"]
    process = subprocess.Popen([*main, *serve], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    found: dict[str, str] = {}
    for line in process.stdout:
        name, _, value = line.partition(":")
        found[name.strip()] = value.strip()
        if {"address", "token file", "page file"} <= set(found):
            break
    token = Path(found["token file"]).read_text().strip()
    server = Server(int(found["address"].rsplit(":", 1)[1].strip("/")), token, process.pid)
    try:
        _wait(server)
        yield server
    finally:
        process.terminate()
        process.wait(60)


def _wait(server: Server) -> None:
    for _ in range(600):
        try:
            connection = server.connect()
            connection.request("GET", "/readyz")
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass
        time.sleep(0.05)
    raise RuntimeError("the service does not become ready")


@dataclass(frozen=True)
class Load:
    """What wrk has measured."""

    rate: float
    p50: float  # milliseconds
    p99: float
    errors: int


def wrk(server: Server, path: str, bodies: list[str], connections: int, seconds: float = SECONDS) -> Load:
    """Post bodies in turn, as fast as so many connections allow."""
    script = _SCRIPT % ("{" + ",".join(f"[==[{body}]==]" for body in bodies) + "}", server.token)
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        file.write(script)
        file.flush()
        address = f"http://127.0.0.1:{server.port}{path}"
        command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds:g}s", "--latency", "-s", file.name, address]
        done = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    numbers = {name: _milliseconds(done, name) for name in ("50%", "99%")}
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", done)[1])  # type: ignore[index]
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", done)
    return Load(rate, numbers["50%"], numbers["99%"], int(bad[1]) if bad else 0)


_SCRIPT = """
local bodies = %s
local i = 0
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Authorization"] = "Bearer %s"
request = function()
  i = i %% #bodies + 1
  return wrk.format(nil, nil, nil, bodies[i])
end
"""


def _milliseconds(text: str, name: str) -> float:
    found = re.search(rf"{name}\s+([\d.]+)(us|ms|s)", text)
    assert found is not None, text
    return float(found[1]) * {"us": 1e-3, "ms": 1.0, "s": 1e3}[found[2]]


class Learning(threading.Thread):
    """Learns rows at a steady pace, in small batches of JSON lines."""

    def __init__(self, server: Server, rate: float = 1000.0, batch: int = 10) -> None:
        super().__init__(daemon=True)
        self._server, self._pause, self._batch = server, batch / rate, batch
        self._ends = threading.Event()
        self.learned = 0

    def run(self) -> None:
        rng, connection = np.random.default_rng(1), self._server.connect()
        bodies = [lines(rng, self._batch) for _ in range(50)]
        begin, count = time.monotonic(), 0
        while not self._ends.is_set():
            self._server.post("/v1/models/price/learn", bodies[count % 50], "application/x-ndjson", connection)
            self.learned += self._batch
            count += 1
            time.sleep(max(begin + count * self._pause - time.monotonic(), 0.0))

    def end(self) -> None:
        self._ends.set()
        self.join(30)


def lines(rng: np.random.Generator, n: int) -> bytes:
    found = [{"x": row(rng), "y": round(100.0 + float(rng.normal()), 3)} for _ in range(n)]
    return "".join(f"{json.dumps(one)}\n" for one in found).encode()


def rows_per_second(server: Server, path: str, bodies: list[bytes], n: int, kind: str) -> float:
    """One client that sends batch after batch."""
    connection, count, begin = server.connect(), 0, time.monotonic()
    while time.monotonic() < begin + SECONDS:
        server.post(path, bodies[count % len(bodies)], kind, connection)
        count += 1
    return n * count / (time.monotonic() - begin)


def arrow(rng: np.random.Generator, n: int) -> bytes:
    columns = {name: rng.normal(size=n) for name in COLUMNS} | {"car": np.array(list("abc"))[rng.integers(3, size=n)]}
    table = pa.table(columns)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def measure(server: Server) -> None:
    rng = np.random.default_rng(2)
    predict = [json.dumps({"x": row(rng)}) for _ in range(64)]
    learn = [json.dumps({"x": row(rng), "y": 100.0}) for _ in range(64)]
    path = "/v1/models/price"
    wrk(server, f"{path}/predict", predict, 32, 1)  # warm up
    alone = wrk(server, f"{path}/predict", predict, 32)
    show("predict, 32 connections", alone.rate, "requests/s", ">= 2,000", alone)
    learning = Learning(server, batch=50)
    learning.start()
    beside = wrk(server, f"{path}/predict", predict, 32)
    learning.end()
    pace = learning.learned / SECONDS
    show(f"predict beside learning {pace:,.0f} rows/s", beside.rate, "requests/s", ">= 2,000, p99 <= 30 ms", beside)
    batches = [arrow(rng, 10_000) for _ in range(4)]
    show(
        "predict, Arrow of 10,000",
        rows_per_second(server, f"{path}/predict", batches, 10_000, _ARROW),
        "rows/s",
        ">= 100,000",
    )
    for clients, target in ((8, 1000), (64, 2000)):
        load = wrk(server, f"{path}/learn", learn, clients)
        show(f"learn, durable, {clients} clients", load.rate, "rows/s", f">= {target:,}", load)
    bodies = [lines(rng, 1000) for _ in range(8)]
    rate = rows_per_second(server, f"{path}/learn", bodies, 1000, "application/x-ndjson")
    show("learn, JSON lines of 1,000", rate, "rows/s", ">= 50,000")


def show(what: str, rate: float, unit: str, target: str, load: Load | None = None) -> None:
    latency = "" if load is None else f"p50 {load.p50:6.2f} ms, p99 {load.p99:6.2f} ms, errors {load.errors}"
    print(f"{what:45s} {rate:12,.0f} {unit:12s} {target:24s} {latency}", flush=True)


def soak(server: Server, seconds: float) -> None:
    """Predictions and learning for long: memory and latency must stay as they are."""
    rng = np.random.default_rng(3)
    predict = [json.dumps({"x": row(rng)}) for _ in range(64)]
    learning = Learning(server, batch=50)
    learning.start()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        load = wrk(server, "/v1/models/price/predict", predict, 32, min(60.0, seconds))
        print(
            f"{time.strftime('%H:%M:%S')} {server.memory():8.1f} MB {load.rate:10,.0f} requests/s  "
            f"p50 {load.p50:6.2f} ms  p99 {load.p99:6.2f} ms  errors {load.errors}  learned {learning.learned:,}",
            flush=True,
        )
    learning.end()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--soak", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--kind", default="perceptron", choices=("perceptron", "network", "auto"))
    options = parser.parse_args()
    if shutil.which("wrk") is None:
        sys.exit("this benchmark needs wrk, a light HTTP client, on the path")
    with tempfile.TemporaryDirectory() as name, serving(Path(name), options.kind) as server:
        print(f"cores: {os.cpu_count()}, server and clients together; memory at the start {server.memory():.0f} MB")
        if options.soak:
            soak(server, options.soak)
        else:
            measure(server)
        print(f"memory at the end {server.memory():.0f} MB")


if __name__ == "__main__":
    main()
