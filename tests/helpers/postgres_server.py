"""PostgreSQL for tests: a server of their own that may be killed, or databases on one that runs on this machine."""

import os
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import psycopg
import pytest

__all__ = ["OwnPostgresServer", "PostgresServer", "own", "running"]


@cache
def _installed() -> Path | None:
    """The folder with the programs of the newest server that is installed."""
    if os.name == "nt":
        return None
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return folders[-1].parent if folders else None


class PostgresServer:
    """A server on which tests may make databases.

    Parameters
    ----------
    user : that may make them, without a password
    place : what comes after the name of the database in an address; it begins with a question mark
    database : that is there already
    """

    def __init__(self, user: str, place: str, database: str = "postgres") -> None:
        self._owner, self._place, self._database = user, place, database

    def address(self, user: str | None = None, database: str | None = None) -> str:
        """The address of a database."""
        return f"postgresql://{user or self._owner}@/{database or self._database}{self._place}"

    def with_database(self, name: str) -> "PostgresServer":
        """The same server, with another database to begin with."""
        return PostgresServer(self._owner, self._place, name)

    def execute(self, statement: str, database: str | None = None) -> list[tuple[object, ...]]:
        """Run a statement as the server's owner, in the schema of the events."""
        with psycopg.connect(self.address(database=database), autocommit=True) as connection:
            connection.execute("SET search_path = onepass")
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    @contextmanager
    def new_database(self) -> Iterator[str]:
        """The name of an empty database, for the length of the block."""
        name = f"onepass_{uuid.uuid4().hex}"
        self.execute(f"CREATE DATABASE {name} ENCODING 'UTF8' TEMPLATE template0")
        try:
            yield name
        finally:
            self.execute(f"DROP DATABASE {name} WITH (FORCE)")


class OwnPostgresServer(PostgresServer):
    """A server that listens on a Unix socket in its folder, whose user ``onepass`` needs no password."""

    def __init__(self, folder: Path) -> None:
        super().__init__("onepass", f"?host={folder}")
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

    def start(self) -> None:
        """Start it, and wait until it answers."""
        deadline = time.monotonic() + 120
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

    def _program(self, name: str, *arguments: str) -> "subprocess.Popen[bytes]":
        programs = _installed()
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
    """A new server or, without its programs, an empty database on the one that runs on this machine."""
    if _installed() is None:
        found = _on_this_machine()
        with found.new_database() as name:
            yield found.with_database(name)
        return
    folder = Path(tempfile.mkdtemp(prefix="onepass-postgres-"))  # a short path: a socket's may have 107 bytes
    server = OwnPostgresServer(folder)
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)


def own(server: PostgresServer) -> OwnPostgresServer:
    """A server that tests may kill, and whose settings and users they may change."""
    if not isinstance(server, OwnPostgresServer):
        pytest.skip("the programs of a PostgreSQL server are not installed, and another one is not ours to change")
    return server


def _on_this_machine() -> PostgresServer:
    """The server that the variables of libpq name, which is usually at 127.0.0.1:5432."""
    given = {name: os.environ.get(f"PG{name.upper()}") for name in ("host", "port", "user")}
    place = f"?host={given['host'] or '127.0.0.1'}&port={given['port'] or 5432}&connect_timeout=5"
    found = PostgresServer(given["user"] or "postgres", place)
    try:
        may = found.execute("SELECT rolcreatedb OR rolsuper FROM pg_roles WHERE rolname = current_user")
    except psycopg.Error:
        pytest.skip("PostgreSQL is not installed, and none can be used on this machine")
    if may != [(True,)]:
        pytest.skip("the user of the PostgreSQL server on this machine may not make databases")
    return found
