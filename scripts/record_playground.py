"""Record docs/images/playground.gif: the playground learns a curve, and its band narrows with every point.

    python scripts/record_playground.py

It needs chromium, chromedriver and the packages of requirements.lock. The page runs as a user sees it: the script
presses *Ask where it knows least*, and only adds two things: the true curve, which the page knows and the model does
not, and a clock of its own, so that the frames don't depend on the speed of the machine. It fails if the true curve
leaves the band of 95 % anywhere, at any point, or if the file gets too large for a first page.
"""

import io
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

__all__ = ["frames_of", "main", "save"]

OUT = Path(__file__).parents[1] / "docs" / "images" / "playground.gif"
POINTS = 10
BETWEEN = (50, 110, 190)  # milliseconds after a point at which the gliding band is recorded
PAUSES = {"between": 60, "point": 750, "first": 1200, "last": 3500}  # milliseconds that frames are shown
SIZE, COLOURS, LIMIT = (760, 900), 64, 600_000

# Frames and times come from the script instead of the browser.
CLOCK = """
(() => {
  let now = 0;
  let waiting = new Map();
  let last = 0;
  performance.now = () => now;
  window.requestAnimationFrame = (call) => (waiting.set(++last, call), last);
  window.cancelAnimationFrame = (id) => waiting.delete(id);
  window.advance = (milliseconds) => {
    now += milliseconds;
    const calls = [...waiting.values()];
    waiting = new Map();
    for (const call of calls) call(now);
  };
})();
"""
# The curve that "Ask" asks, in scenes/curve.js, drawn over the plot of [-3, 3] x [-3, 3].
TRUTH = """
const grid = Array.from({length: 241}, (_, i) => -3 + i / 40);
const truth = (x) => 1.3 * Math.sin(1.6 * x) + 0.15 * x;
const svg = document.querySelector(".plot.clickable svg");
const box = svg.querySelector("clipPath rect");
const [left, top, width, height] = ["x", "y", "width", "height"].map((name) => Number(box.getAttribute(name)));
const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
const place = (x) => `${left + ((x + 3) / 6) * width},${top + ((3 - truth(x)) / 6) * height}`;
path.setAttribute("d", "M" + grid.map(place).join("L"));
Object.assign(path.style, {fill: "none", stroke: "#d9480f", strokeWidth: "2.5px", strokeDasharray: "7 5"});
svg.insertBefore(path, svg.lastElementChild);
"""
# How far the true curve is outside of the band at the worst place, in pixels; 0 and less is inside.
OUTSIDE = """
const edge = document.querySelector(".plot.clickable path.band.blue:not(.total)").getAttribute("d");
const corners = edge.slice(1, -1).split("L").map((pair) => pair.split(",").map(Number));
const half = corners.length / 2;
const high = corners.slice(0, half);
const low = corners.slice(half).reverse();
const box = document.querySelector(".plot.clickable clipPath rect");
const [left, top, width, height] = ["x", "y", "width", "height"].map((name) => Number(box.getAttribute(name)));
return Math.max(...high.map(([px, upper], i) => {
  const x = -3 + (6 * (px - left)) / width;
  const py = top + ((3 - 1.3 * Math.sin(1.6 * x) - 0.15 * x) / 6) * height;
  return Math.max(upper - py, py - low[i][1]);
}));
"""
ONLY_THE_PLOT = """
const sheet = new CSSStyleSheet();
sheet.replaceSync(`
  header, #lead, #actions, .side, #facts, #legend, details, footer, .readout { display: none !important; }
  main { padding: 0 !important; } .stage { padding: 6px 6px 0; gap: 0; }
  #status { font-size: 16px; letter-spacing: -0.02em; height: 1.5em; margin: 4px 4px 0;
    white-space: nowrap; overflow: hidden; }`);
document.adoptedStyleSheets = [sheet];
"""


@contextmanager
def playground() -> Iterator[str]:
    """The address of a playground, while it runs."""
    command = [sys.executable, "-m", "onepass", "playground", "--no-open", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().partition(": ")[2].strip()
        finally:
            process.terminate()


@contextmanager
def browser(profile: str) -> Iterator[Any]:
    """A browser without a screen."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    for option in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "hide-scrollbars"):
        options.add_argument(f"--{option}")
    options.add_argument(f"--user-data-dir={profile}")
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    screen = {"width": SIZE[0], "height": SIZE[1], "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": CLOCK})
    try:
        yield driver
    finally:
        driver.quit()


def frames_of(driver: Any, address: str) -> Iterator[tuple[Image.Image, int]]:
    """The frames, and how long each is shown."""

    def settle() -> None:
        code = "const {asked, answered} = document.body.dataset; return !!asked && asked === answered"
        WebDriverWait(driver, 60).until(lambda _: driver.execute_script(code))

    def shot(kind: str) -> tuple[Image.Image, int]:
        stage = driver.find_element(By.CSS_SELECTOR, ".stage")
        return Image.open(io.BytesIO(stage.screenshot_as_png)).convert("RGB"), PAUSES[kind]

    driver.get(f"{address}#scene=curve&draws=0&points=")
    settle()
    driver.execute_script("advance(1000)")
    driver.execute_script(ONLY_THE_PLOT)
    WebDriverWait(driver, 60).until(lambda _: driver.execute_script("return innerWidth") == SIZE[0])
    driver.execute_script(TRUTH)
    yield shot("first")
    (ask,) = [one for one in driver.find_elements(By.TAG_NAME, "button") if "least" in one.get_attribute("textContent")]
    for number in range(1, POINTS + 1):
        driver.execute_script("arguments[0].click()", ask)
        settle()
        past = 0
        for time in BETWEEN:
            driver.execute_script("advance(arguments[0])", time - past)
            past = time
            yield shot("between")
        driver.execute_script("advance(1000)")
        if (pixels := driver.execute_script(OUTSIDE)) > 0:
            sys.exit(f"after point {number} the true curve leaves the band by {pixels:.1f} pixels")
        yield shot("point" if number < POINTS else "last")


def save(frames: list[tuple[Image.Image, int]], path: Path) -> None:
    """Write an animation in which all frames share their colours."""
    images, pauses = zip(*frames, strict=True)
    palette = images[len(images) // 2].quantize(COLOURS, method=Image.Quantize.FASTOCTREE)
    flat = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images]
    flat[0].save(path, save_all=True, append_images=flat[1:], duration=list(pauses), loop=0, optimize=True, disposal=1)
    if path.stat().st_size > LIMIT:
        sys.exit(f"{path} has {path.stat().st_size} bytes, more than {LIMIT}")


def main() -> None:
    """Record the playground."""
    with tempfile.TemporaryDirectory() as profile, playground() as address, browser(profile) as driver:
        save(list(frames_of(driver, address)), OUT)
    print(f"wrote {OUT}, {OUT.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
