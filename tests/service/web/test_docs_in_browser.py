"""The reference page in a real browser, where one is installed."""

import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn

from onepass.service.web.table import OPERATIONS
from tests.helpers.browser import CHROMIUM, needs_browser
from tests.service.web.conftest import Served

FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=10000",
    "--dump-dom",
]


@pytest.fixture
def address(served: Served) -> Iterator[str]:
    """Where the application listens, for as long as the test runs."""
    server = uvicorn.Server(uvicorn.Config(served.app, log_config=None))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join()


@needs_browser
def test_the_page_shows_every_operation(address: str, tmp_path: Path) -> None:
    command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={tmp_path}", f"{address}/docs"]
    page = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    for one in OPERATIONS:
        assert f'id="{one.name}"' in page
        assert one.summary in page
    assert "can't be loaded" not in page
    for part in ("TableFromColumns", "CategoryColumn", "Example: fleet"):
        assert part in page
