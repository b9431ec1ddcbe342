"""Pages opened in a real browser, where there is one: reports as files, and what a server serves by a driver."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.chrome.webdriver import WebDriver

__all__ = [
    "CHROMIUM",
    "console_errors",
    "driven_browser",
    "emulate",
    "needs_browser",
    "needs_driver",
    "open_in_browser",
]

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine to open the page with")
_DRIVER = shutil.which("chromedriver")
needs_driver = pytest.mark.skipif(
    CHROMIUM is None or _DRIVER is None, reason="no chromium and chromedriver on this machine to open the page with"
)
_QUIET = (  # without a screen, a shared memory, or anything from the net
    "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --hide-scrollbars"
)

_PROBE = """<script>
addEventListener("load", () => {
  const images = [...document.images].map(i => i.id + "=" + (i.complete && i.naturalWidth > 0));
  const wide = document.documentElement.scrollWidth > innerWidth;
  const cut = [...document.querySelectorAll(".table")].some(t => t.scrollWidth > t.clientWidth + 1);
  document.body.dataset.seen = [...images, "overflow=" + wide, "cut=" + cut].join(" ");
});
</script></body>"""


def open_in_browser(html: str, folder: Path, width: int = 1100) -> tuple[dict[str, str], list[str]]:
    """Open a page; return what was seen (each image drawn, page too wide, a table cut), and its console."""
    assert CHROMIUM is not None
    page = folder / "page.html"
    page.write_text(html.replace("</body>", _PROBE), encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--enable-logging=stderr"]
    command = [CHROMIUM, *options, f"--window-size={width},900", f"--user-data-dir={folder / 'profile'}"]
    done = subprocess.run(
        [*command, "--virtual-time-budget=5000", "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    seen = done.stdout.split('data-seen="')[1].split('"')[0]
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return dict(item.split("=") for item in seen.split()), console


@contextmanager
def driven_browser(profile: Path) -> Iterator[WebDriver]:
    """A browser to click in, with an empty profile in a folder of its own; tests that use it need `needs_driver`."""
    assert CHROMIUM is not None
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for option in (*_QUIET.split(), "--window-size=1280,900", f"--user-data-dir={profile}"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(_DRIVER))
    try:
        yield driver
    finally:
        driver.quit()


def emulate(driver: WebDriver, width: int = 1280, height: int = 900, *, dark: bool = False) -> None:
    """Have the browser take its screen for another one: narrow ones are phones."""
    screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})


def console_errors(driver: WebDriver) -> list[str]:
    """Warnings and errors on the console of the page since the last call."""
    entries = driver.get_log("browser")  # type: ignore[no-untyped-call]
    return [str(entry["message"]) for entry in entries if entry["level"] in ("WARNING", "SEVERE")]
