"""Reports opened in a real browser, where there is one."""

import shutil
import subprocess
from pathlib import Path

import pytest

__all__ = ["needs_browser", "open_in_browser"]

_CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_browser = pytest.mark.skipif(_CHROMIUM is None, reason="no chromium on this machine to open the report with")

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
    assert _CHROMIUM is not None
    page = folder / "page.html"
    page.write_text(html.replace("</body>", _PROBE), encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--enable-logging=stderr"]
    command = [_CHROMIUM, *options, f"--window-size={width},900", f"--user-data-dir={folder / 'profile'}"]
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
