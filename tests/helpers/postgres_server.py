"""A PostgreSQL server of the tests' own, in a folder of its own, that may be killed."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import psycopg

__all__ = ["PostgresServer", "installed", "running"]


@cache
def installed() -> Path | None:
    """The folder with the programs of the newest server that is installed."""
    if os.name == "nt":
        return None
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return folders[-1].parent if folders else None


class PostgresServer:
    """A server that listens on a Unix socket in its folder, whose user ``onepass`` needs no password."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        # The server refuses to run as root.
        self._user = _another_user() if os.geteuid() == 0 else None
        if self._user:
            os.chown(folder, *self._user)
        self._program("initdb", "-D", "data", "-U", "onepass", "-E", "UTF8", "--no-locale", "-A", "trust", "-N").wait()
        hba = folder / "data" / "pg_hba.conf"
        hba.write_text("local all locked scram-sha-256\n" + hba.read_text())
        self.start()

    def address(self, user: str = "onepass", database: str = "postgres") -> str:
        """The address of a database."""
        return f"postgresql://{user}@/{database}?host={self.folder}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        deadline = time.monotonic() + 30
        while True:
            if self._process is None or self._process.poll() is not None:  # what was killed may leave processes
                self._process = self._program("postgres", "-D", "data", "-k", str(self.folder), "-h", "")
            try:
                psycopg.connect(self.address()).close()
                return
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def kill(self) -> None:
        """Kill the server's first process; the others end when they see it."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """Stop it at once."""
        assert self._process is not None
        self._process.send_signal(3)
        self._process.wait()

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """Run a statement as the server's owner, in the schema of the events."""
        with psycopg.connect(self.address(database=database), autocommit=True) as connection:
            connection.execute("SET search_path = onepass")
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def _program(self, name: str, *arguments: str) -> "subprocess.Popen[bytes]":
        programs = installed()
        assert programs is not None
        return subprocess.Popen(
            [programs / name, *arguments],
            cwd=self.folder,
            user=self._user and self._user[0],
            group=self._user and self._user[1],
            extra_groups=self._user and [],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


def _another_user() -> tuple[int, int]:
    import pwd  # not on Windows

    users = {user.pw_name: user for user in pwd.getpwall()}
    chosen = users.get("postgres") or users["nobody"]
    return chosen.pw_uid, chosen.pw_gid


@contextmanager
def running() -> Iterator[PostgresServer]:
    """A new server for the length of the block."""
    folder = Path(tempfile.mkdtemp(prefix="onepass-postgres-"))  # a short path: a socket's may have 107 bytes
    server = PostgresServer(folder)
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)
