"""Remote files: http and https by the standard library, s3 and gs by Arrow, every other scheme by fsspec.

A file is read from its beginning to its end as the bytes arrive, or, for formats with an index at the end, in parts. A
connection that breaks is opened again where it broke, and a file that is not the same any more is an error.
"""

import http.client
import io
import time
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import unquote, urlsplit

from onepass._extras import MissingExtraError, require
from onepass._messages import first_line
from onepass.tables.readers.addresses import SERVERS, scheme_of
from onepass.tables.readers.errors import StreamError
from onepass.tables.readers.origins import OpenedOrigin, Origin

__all__ = ["remote_address", "remote_file", "remote_fingerprint", "remote_matches"]

_SECONDS = 30.0  # without a byte until a connection counts as broken
_PAUSES = (0.5, 2.0, 5.0)  # seconds before a broken connection is opened again
_BUFFER = 2**18
_BY_ARROW = ("s3", "gs", "gcs")


@dataclass
class _Remote(Origin):
    """A remote file."""

    url: str

    @property
    def name(self) -> str:
        return _shown(self.url)

    def version(self) -> dict[str, Any]:
        """Its size, and a text that changes with its content, as far as the server tells them."""
        raise NotImplementedError


def remote_file(url: str) -> _Remote:
    """The file at an address."""
    scheme = urlsplit(url).scheme.lower()
    if scheme in ("http", "https"):
        return _HttpFile(url)
    if scheme in _BY_ARROW:
        return _ArrowFile(url)
    return _FsspecFile(url)


def remote_address(url: str) -> str:
    """An address to be shown and kept, without what may be secret in it."""
    return _shown(url)


def remote_fingerprint(url: str) -> dict[str, Any]:
    """Name, size and version (an ETag, or the time of its last change) of a remote file; a database has none."""
    if scheme_of(url) in SERVERS:
        return {"name": urlsplit(url).path.strip("/"), "size": 0, "digest": ""}
    return {"name": urlsplit(url).path.rsplit("/", 1)[-1], **remote_file(url).version()}


def remote_matches(pattern: str) -> list[str]:
    """Addresses that match a pattern with ``*``, sorted; only s3 and gs can be asked for what they have."""
    if urlsplit(pattern).scheme.lower() not in _BY_ARROW or "*" not in pattern:
        return [pattern]
    from pyarrow import fs

    address, mark, query = pattern.partition("?")
    scheme = address.partition("://")[0]
    folder = address[: address.index("*")].rpartition("/")[0]
    with _stream_errors(_shown(pattern)):
        system, base = fs.FileSystem.from_uri(f"{folder}{mark}{query}")
        wanted = base + address[len(folder) :]
        found = system.get_file_info(fs.FileSelector(base, recursive="/" in address[len(folder) + 1 :]))
    depth = wanted.count("/")
    paths = (one.path for one in found if one.type == fs.FileType.File)
    matching = sorted(path for path in paths if path.count("/") == depth and fnmatchcase(path, wanted))
    if not matching:
        raise StreamError(f"{_shown(pattern)} matches no file")
    return [f"{scheme}://{path}{mark}{query}" for path in matching]


def _shown(url: str) -> str:
    """An address for messages, without what may be secret in it: a password, or the signature in a query."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _as_text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


@contextmanager
def _stream_errors(url: str) -> Iterator[None]:
    """Turn network errors into one sentence."""
    try:
        yield
    except urllib.error.HTTPError as error:
        error.close()
        raise StreamError(f"{url} can't be read: the server answers {error.code} {error.reason}") from None
    except urllib.error.URLError as error:
        raise StreamError(f"{url} can't be read: {error.reason}") from None
    except FileNotFoundError:
        raise StreamError(f"{url} does not exist") from None
    except ImportError as error:
        raise StreamError(f"{url} can't be read: {error}") from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        if isinstance(error, StreamError):
            raise
        raise StreamError(f"{url} can't be read: {first_line(error)}") from None


@dataclass
class _HttpFile(_Remote):
    """A file that a web server has."""

    known: dict[str, Any] = field(default_factory=dict)  # version that was opened first

    def open(self) -> OpenedOrigin:
        return _HttpBytes(self)

    def seekable(self) -> Any:
        return io.BufferedReader(_HttpParts(self), _BUFFER)

    def version(self) -> dict[str, Any]:
        with _stream_errors(self.name), self.answer():
            return dict(self.known)

    def answer(self, begin: int = 0, end: int | None = None) -> Any:
        """The server's answer from a byte on, or up to another."""
        parts = urlsplit(self.url)
        user, _, host = parts.netloc.rpartition("@")
        request = urllib.request.Request(
            parts._replace(netloc=host).geturl(), headers={"Accept-Encoding": "identity", "User-Agent": "onepass"}
        )
        if user:
            request.add_header("Authorization", "Basic " + b64encode(unquote(user).encode()).decode())
        partly = begin > 0 or end is not None
        if partly:
            request.add_header("Range", f"bytes={begin}-{'' if end is None else end - 1}")
        answer = urllib.request.urlopen(request, timeout=_SECONDS)
        if partly and answer.status != 206:
            answer.close()
            raise StreamError(
                f"{self.name} can't be read in parts, because its server sends only whole files; download it first"
            )
        self._check_version(answer, partly)
        return answer

    def _check_version(self, answer: Any, partly: bool) -> None:
        headers = answer.headers
        size = headers.get("Content-Range", "/").rpartition("/")[2] if partly else headers.get("Content-Length", "")
        found = {
            "size": int(size) if size.isdecimal() else 0,
            "digest": headers.get("ETag") or headers.get("Last-Modified") or "",
        }
        if self.known and found != self.known:
            answer.close()
            raise StreamError(f"{self.name} has changed while it was read")
        self.known = found


class _HttpBytes:
    """The bytes of a web server's file from the first on; a connection that breaks is opened again where it broke."""

    def __init__(self, file: _HttpFile) -> None:
        self._file = file
        self._at = 0
        with _stream_errors(file.name):
            self._answer: Any = file.answer()
        self.size: int = file.known["size"]

    def read(self, n: int) -> bytes:
        for pause in (*_PAUSES, None):
            try:
                if self._answer is None:
                    self._answer = self._file.answer(self._at)
                content: bytes = self._answer.read1(n)
                if content or self._at >= self.size:  # a size of 0 is not known
                    self._at += len(content)
                    return content
                reason: Exception = ConnectionError(f"the connection ended at byte {self._at:,} of {self.size:,}")
            except StreamError:
                raise
            except (OSError, http.client.HTTPException) as error:
                reason = error
            self.close()
            if pause is None:
                with _stream_errors(self._file.name):
                    raise reason
            time.sleep(pause)
        raise AssertionError("the last pause is None")

    def ready(self, seconds: float) -> bool:
        return True

    def close(self) -> None:
        if self._answer is not None:
            self._answer.close()
            self._answer = None


class _HttpParts(io.RawIOBase):
    """A web server's file for readers that go to and fro."""

    def __init__(self, file: _HttpFile) -> None:
        self._file, self._at = file, 0
        with _stream_errors(file.name), file.answer(0, 1):
            self._size = file.known["size"]

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def readinto(self, buffer: Any) -> int:
        n = min(len(buffer), self._size - self._at)
        if n <= 0:
            return 0
        with _stream_errors(self._file.name), self._file.answer(self._at, self._at + n) as answer:
            content = answer.read()
        buffer[: len(content)] = content
        self._at += len(content)
        return len(content)


class _ArrowFile(_Remote):
    """A file in a store that Arrow knows: Amazon's S3 and its relatives, Google's cloud storage."""

    def open(self) -> OpenedOrigin:
        with _stream_errors(self.name):
            system, path = self._found()
            return _OpenedFile(self.name, system.open_input_stream(path), system.get_file_info(path).size or 0)

    def seekable(self) -> Any:
        with _stream_errors(self.name):
            system, path = self._found()
            return system.open_input_file(path)

    def version(self) -> dict[str, Any]:
        with _stream_errors(self.name):
            system, path = self._found()
            info = system.get_file_info(path)
            with system.open_input_stream(path) as opened:
                metadata = {_as_text(key).lower(): _as_text(value) for key, value in (opened.metadata() or {}).items()}
            return {"size": info.size or 0, "digest": metadata.get("etag") or str(info.mtime_ns)}

    def _found(self) -> tuple[Any, str]:
        from pyarrow import fs

        scheme = self.url.partition("://")[0].lower()
        if not hasattr(fs, "S3FileSystem" if scheme == "s3" else "GcsFileSystem"):
            raise StreamError(
                f"{self.name} can't be read: this pyarrow was built without {scheme}; the wheel on PyPI has it"
            )
        system, path = fs.FileSystem.from_uri(self.url)
        return system, path


class _FsspecFile(_Remote):
    """A file that fsspec can open, with the package for its scheme."""

    def open(self) -> OpenedOrigin:
        with _stream_errors(self.name):
            system, path = self._found()
            return _OpenedFile(self.name, system.open(path, "rb"), system.size(path) or 0)

    def seekable(self) -> Any:
        with _stream_errors(self.name):
            system, path = self._found()
            return system.open(path, "rb")

    def version(self) -> dict[str, Any]:
        with _stream_errors(self.name):
            system, path = self._found()
            return {"size": system.size(path) or 0, "digest": str(system.ukey(path))}

    def _found(self) -> tuple[Any, str]:
        try:
            require("remote", f"the address {self.name}")
        except MissingExtraError as error:
            raise StreamError(str(error)) from None
        from fsspec.core import url_to_fs

        system, path = url_to_fs(self.url)
        return system, path


@dataclass
class _OpenedFile:
    """A file object as an origin that was opened."""

    name: str
    file: Any
    size: int

    def read(self, n: int) -> bytes:
        with _stream_errors(self.name):
            return bytes(self.file.read(n))

    def ready(self, seconds: float) -> bool:
        return True

    def close(self) -> None:
        self.file.close()
