import os
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import pytest

from onepass.tables.readers.errors import StreamError
from onepass.tables.readers.registry import open_source


@contextmanager
def running(code: str) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """A process that reads a stream: where to write to it, and where it writes."""
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdin, process.stdout


def test_rows_of_a_slow_stream_are_handed_on_without_waiting_for_more() -> None:
    code = (
        "from onepass.tables.readers.registry import open_source\n"
        "source = open_source('-')\n"
        "print(len(source.head(2)[0]), flush=True)\n"
        "for batch in source.batches(None, 0): print(batch.record_batch.to_pylist(), flush=True)\n"
    )
    with running(code) as (feed, out):
        os.write(feed.fileno(), b"a\n1\n2\n3")
        assert out.readline() == b"2\n"
        assert out.readline() == b"[{'a': '1'}, {'a': '2'}]\n"
        os.write(feed.fileno(), b"4\n")
        assert out.readline() == b"[{'a': '34'}]\n"
        feed.close()


def test_a_stream_that_never_pauses_can_be_stopped_and_the_record_that_is_cut_is_none() -> None:
    code = (
        "from onepass.tables.readers.registry import open_source\n"
        "source, rows = open_source('-'), 0\n"
        "for batch in source.batches(None, 0):\n"
        "    source.stop()\n"
        "    rows += len(batch)\n"
        "    assert set(batch.record_batch.column(0).to_pylist()) == {'123456789'}, batch\n"
        "print(rows)"
    )
    text = "number" + "\n123456789" * 5_000_000
    done = subprocess.run([sys.executable, "-c", code], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert 100_000 < int(done.stdout) < 5_000_000


def test_a_first_line_that_comes_in_parts_is_waited_for() -> None:
    code = "from onepass.tables.readers.registry import open_source; print(open_source('-').columns(), flush=True)"
    with running(code) as (feed, out):
        os.write(feed.fileno(), b"one,tw")
        assert not select.select([out], [], [], 3.0)[0]
        os.write(feed.fileno(), b"o,three\n")
        assert out.readline() == b"['one', 'two', 'three']\n"
        feed.close()


def test_rows_behind_a_quote_that_was_never_closed_are_not_lost_when_a_stream_is_stopped() -> None:
    code = (
        "import threading\n"
        "from onepass.tables.readers.registry import open_source\n"
        "source = open_source('-')\n"
        "threading.Timer(2.0, source.stop).start()\n"
        "batches = list(source.batches(None, 0))\n"
        "print(sum(map(len, batches)), [bad.line for batch in batches for bad in batch.malformed])"
    )
    with running(code) as (feed, out):
        os.write(feed.fileno(), b'a,b\n1,x\n"2,x\n' + b"3,x\n" * 100 + b"4,")
        assert out.readline() == b"101 [3]\n"
        feed.close()


def test_a_pipe_with_a_name_is_refused_since_it_cannot_be_read_twice() -> None:
    out, into = os.pipe()
    os.write(into, b"a\n1\n")
    os.close(into)
    try:
        with pytest.raises(StreamError, match=r"is a pipe, which can be read only once; .*standard input"):
            open_source(f"/dev/fd/{out}")
    finally:
        os.close(out)
