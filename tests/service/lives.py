"""A service that is killed again and again: its process, and the clients that go on with the next one.

One process has the library loaded and forks a child for every life, since loading takes longer than a life. The child
runs the real state behind a socket, one JSON object per line; nothing but the state answers, so whatever a client has
read is what the state has acknowledged.

    python -m tests.service.lives FOLDER PORT

lives until its standard input ends. Every line on it ends a life, by SIGKILL, and begins the next; every life that is
ready is told on standard output.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import msgspec

from onepass.service import writer
from onepass.service.errors import ProblemError
from onepass.service.settings import ServiceSettings
from onepass.service.state import ServiceState
from onepass.service.wire import DecideRequest, LabelRequest, LearnRequest, PredictRequest, RewardRequest

REQUESTS: dict[str, Any] = {
    "predict": PredictRequest,
    "label": LabelRequest,
    "learn": LearnRequest,
    "decide": DecideRequest,
    "reward": RewardRequest,
}


async def answered(state: ServiceState, line: bytes) -> bytes:
    """The answer to a line: ``[model, what, request]`` gives ``[status, answer]``."""
    name, what, given = msgspec.json.decode(line)
    try:
        model = state.model(name)
        if what == "file":
            return msgspec.json.encode([200, (await model.file()).hex()])
        answer = await getattr(model, what)(msgspec.convert(given, REQUESTS[what]))
        return msgspec.json.encode([200, answer])
    except ProblemError as problem:
        return msgspec.json.encode([problem.status, problem.body()])


async def live(folder: Path, port: int) -> None:
    """Serve until killed."""
    state = ServiceState(ServiceSettings(folder))
    await state.start()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(await answered(state, line) + b"\n")
            await writer.drain()

    server = await asyncio.start_server(serve, "127.0.0.1", port)
    async with server:
        print("ready", flush=True)
        await server.serve_forever()


def main() -> None:
    """One life after the other, with more snapshots than a real one has."""
    writer._SNAPSHOT_EVENTS = 30
    folder, port = Path(sys.argv[1]), int(sys.argv[2])
    while True:
        child = os.fork()
        if not child:
            asyncio.run(live(folder, port))
        if not sys.stdin.readline():
            break
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


if __name__ == "__main__":
    main()
