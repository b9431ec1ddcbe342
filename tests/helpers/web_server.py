"""A web server with a few files, in a thread: enough of http for tests, and of S3 to read and list."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["WebServer", "serving"]

_LISTED = (
    "<Contents><Key>{key}</Key><LastModified>2024-01-01T00:00:00.000Z</LastModified><ETag>&quot;1&quot;</ETag>"
    "<Size>{size}</Size></Contents>"
)


@dataclass
class WebServer:
    """What is served, how, and what was asked for."""

    files: dict[str, bytes]  # by path
    port: int = 0
    tag: str = "1"  # version of all files
    ranges: bool = True  # whether parts of files can be had
    break_after: int | None = None  # bytes after which the next answer ends, once
    asked: list[str] = field(default_factory=list)

    def url(self, path: str) -> str:
        """Address of a file."""
        return f"http://127.0.0.1:{self.port}/{path}"

    def s3(self, path: str) -> str:
        """Address of a file as S3 has it."""
        return f"s3://{path}?endpoint_override=127.0.0.1:{self.port}&scheme=http&region=us-east-1"


@contextmanager
def serving(files: dict[str, bytes]) -> Iterator[WebServer]:
    """Serve files by their paths."""
    server = WebServer(files)

    class Handler(_Handler):
        served = server

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        server.port = listening.server_port
        threading.Thread(target=listening.serve_forever, args=(0.02,), daemon=True).start()
        yield server
        listening.shutdown()


class _Handler(BaseHTTPRequestHandler):
    served: WebServer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path, _, query = self.path.lstrip("/").partition("?")
        asked = self.headers.get("Range") if self.served.ranges else None
        self.served.asked.append(f"{self.command} {path} {asked or ''}".strip())
        if "list-type=2" in query:
            self._answer(200, self._listing(path), {"Content-Type": "application/xml"})
            return
        content = self.served.files.get(path)
        if content is None:
            self._answer(404, b"", {})
            return
        headers = {"ETag": f'"{self.served.tag}"', "Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT"}
        if asked is None:
            self._answer(200, content, headers)
            return
        first, last = asked.removeprefix("bytes=").split("-")
        begin, end = int(first), min(int(last or len(content)), len(content) - 1) + 1
        headers["Content-Range"] = f"bytes {begin}-{end - 1}/{len(content)}"
        self._answer(206, content[begin:end], headers)

    def _listing(self, bucket: str) -> bytes:
        keys = {path.removeprefix(f"{bucket}/"): len(content) for path, content in self.served.files.items()}
        listed = "".join(_LISTED.format(key=key, size=size) for key, size in keys.items())
        return (
            f"<?xml version='1.0'?><ListBucketResult><Name>{bucket}</Name><KeyCount>{len(keys)}</KeyCount>"
            f"<IsTruncated>false</IsTruncated>{listed}</ListBucketResult>"
        ).encode()

    def _answer(self, code: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(code)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        cut, self.served.break_after = self.served.break_after, None
        self.wfile.write(content[:cut])
        if cut is not None and cut < len(content):
            self.close_connection = True
