"""Record the sessions shown in the documentation again, by running their commands.

    python scripts/transcript.py          # run them and write the pages
    python scripts/transcript.py --check  # run them and fail if a page differs

The tables that readers need to repeat a session are written beside its page. Times and rates depend on the machine and
are left out; numbers are cut after six decimals, since further ones may differ between machines.
"""

import base64
import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from onepass.cli.main import main as onepass

DOCS = Path(__file__).parents[1] / "docs"
TABLES = DOCS / "tutorials" / "tables"
_BEGIN, _END = "<!-- transcript -->\n", "<!-- end of transcript -->\n"
_TABLES = (
    "head -3 trips.csv",
    "onepass fit trips.csv --target price --model price.onepass --rejects bad.csv",
    "echo $?",
    "cat bad.csv",
    "onepass learn price.onepass tonight.csv",
    "onepass predict price.onepass new.csv --keep km --out predictions.csv",
    "cat predictions.csv",
    "onepass evaluate trips.csv --target price",
    "onepass show price.onepass --weights 4",
    "onepass fit sensor.csv --target level --outliers 0.05 --drift auto --model level.onepass --alarms alarms.csv",
    "cat alarms.csv",
    "onepass evaluate sensor.csv --target level --outliers 0.05",
)
_DECISIONS = (
    "onepass bandit create headline.bandit --arms red,green,blue --features 2",
    "onepass decide headline.bandit --context 0.5,-1 --id 'visit 1'",
    "onepass reward headline.bandit 'visit 1' 1",
    "onepass reward headline.bandit 'visit 1' 1",
    "cat visits.jsonl",
    "onepass decide headline.bandit < visits.jsonl",
    "cat clicks.jsonl",
    "onepass reward headline.bandit < clicks.jsonl",
    "echo $?",
    "onepass bandit expire headline.bandit --after 0s --default 0",
    "onepass bandit show headline.bandit",
)
_FORECAST = "onepass forecast sales.csv --time date --target sold --inputs promo --horizon 14"
_FORECASTS = (
    "head -3 sales.csv",
    f"{_FORECAST} --out next.csv --model s.onepass",
    "head -4 next.csv",
    "cat evening.csv",
    "onepass learn s.onepass evening.csv",
    "onepass forecast --model s.onepass --horizon 7",
)
SESSIONS = {
    DOCS / "tutorials" / "table.md": _TABLES,
    DOCS / "tutorials" / "forecast.md": _FORECASTS,
    DOCS / "reference" / "command-line" / "decisions.md": _DECISIONS,
}
"""The commands of each session, by the page on which it stands."""


def _trips(n: int, seed: int) -> list[str]:
    """Rides and their price."""
    rng = np.random.default_rng(seed)
    lines = ["km,car,day,vip,wait,price"]
    for _ in range(n):
        km, car, vip = rng.gamma(2.0, 4.0), rng.choice(["bike", "sedan", "van"]), rng.random() < 0.2
        day = f"2024-{rng.integers(1, 13):02d}-{rng.integers(1, 29):02d}"
        wait = "" if rng.random() < 0.1 else f"{rng.exponential(5.0):.1f}"
        price = 3.0 + 1.8 * km + {"bike": -2.0, "sedan": 0.0, "van": 5.0}[str(car)] + 4.0 * vip + rng.normal(0.0, 2.0)
        lines.append(f"{km:.2f},{car},{day},{str(bool(vip)).lower()},{wait},{price:.2f}")
    return lines


def _sensor(n: int, seed: int) -> list[str]:
    """A level that two readings predict, with three spikes and a jump."""
    rng = np.random.default_rng(seed)
    lines = ["flow,temperature,level"]
    for i in range(n):
        flow, temperature = rng.normal(5.0, 2.0), rng.normal(20.0, 3.0)
        level = 3.0 * flow - 0.5 * temperature + (12.0 if i >= 2 * n // 3 else 0.0) + rng.normal(0.0, 0.5)
        level += 1000.0 if i in (n // 10, n // 2, 9 * n // 10) else 0.0
        lines.append(f"{flow:.2f},{temperature:.1f},{level:.2f}")
    return lines


def _sales() -> tuple[list[str], list[str]]:
    """Items sold per day, with a week, a promotion now and then and two weeks to come; and three evenings later."""
    rng = np.random.default_rng(4)
    days = np.arange("2023-09-01", "2024-04-30", dtype="datetime64[D]")
    promo = rng.random(len(days)) < 0.1
    week = np.array([0.0, 2.0, 3.0, 4.0, 12.0, 25.0, -18.0])[(days.astype(int) + 3) % 7]
    level = 120.0 + np.cumsum(rng.normal(0.0, 0.8, len(days)))
    sold = np.round(level + week + 30.0 * promo + rng.normal(0.0, 5.0, len(days))).astype(int)
    rows = [f"{day},{n},{'yes' if p else 'no'}" for day, n, p in zip(days, sold, promo, strict=True)]
    ahead = [row.split(",")[0] + ",," + row.split(",")[2] for row in rows]
    n = len(days) - 14
    file = [*rows[:n], *ahead[n:]]
    file[40], file[41] = file[41], file[40]
    file = [*file[:90], file[89], *file[90:130], *file[131:180], *file[181:]]
    corrected = rows[n - 2].replace(f",{sold[n - 2]},", f",{sold[n - 2] - 9},")
    header = "date,sold,promo"
    return [header, *file], [header, corrected, *rows[n : n + 3], *ahead[n + 3 :]]


def tables() -> dict[str, str]:
    """What the files of the sessions contain, by name."""
    trips = _trips(5000, 0)
    trips[700], trips[1300] = trips[700].replace(trips[700].split(",")[0], "far", 1), "oops"
    new = [line.rpartition(",")[0] for line in _trips(3, 2)]  # their price is not known yet
    sales, evening = _sales()
    found = {
        "sales.csv": sales,
        "evening.csv": evening,
        "trips.csv": trips,
        "tonight.csv": _trips(1000, 1),
        "new.csv": new,
        "sensor.csv": _sensor(3000, 3),
    }
    return {name: "\n".join(lines) + "\n" for name, lines in found.items()}


def write_visits() -> None:
    """Requests for decisions, and rewards of which one has no decision."""
    Path("visits.jsonl").write_text(
        '{"id": "visit 2", "context": [0.1, 0.3]}\n{"id": "visit 3", "context": [-1, 0.2], "n": 2}\n'
    )
    Path("clicks.jsonl").write_text('{"id": "visit 2", "reward": 0}\n{"id": "visit 20", "reward": 1}\n')


def transcripts() -> dict[Path, str]:
    """Run all commands in a temporary folder; return them with their output, by page."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for name, text in tables().items():
                Path(name).write_text(text)
            write_visits()
            return {page: "\n".join(_lines(commands)) for page, commands in SESSIONS.items()}
        finally:
            os.chdir(before)


def _lines(commands: tuple[str, ...]) -> Iterator[str]:
    code = 0
    for command in commands:
        yield f"$ {command}"
        program, *arguments = shlex.split(command)
        if program == "onepass":
            shown, code = _run(arguments)
            yield from shown.splitlines()
        elif program == "echo":
            yield str(code)
        else:
            lines = _cut(Path(arguments[-1]).read_text()).splitlines()
            yield from lines[:3] if program == "head" else lines
        yield ""


def _cut(text: str) -> str:
    return re.sub(r"(\d\.\d{6})\d+", r"\1", text)


@contextlib.contextmanager
def _input(path: str | None) -> Iterator[None]:
    """Standard input from a file."""
    if path is None:
        yield
        return
    before = sys.stdin
    with Path(path).open() as sys.stdin:
        try:
            yield
        finally:
            sys.stdin = before


def _run(arguments: list[str]) -> tuple[str, int]:
    shown = io.StringIO()
    code: object = 0
    path = arguments[-1] if "<" in arguments else None
    arguments = arguments if path is None else arguments[:-2]
    with _input(path), contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
        try:
            onepass(arguments)
        except SystemExit as end:
            code = end.code
    text = re.sub(r" in [\d.,]+ s \([\d,]+ rows/s\)", "", _cut(shown.getvalue()))
    return re.sub(r"(?m)^[\d,]+ rows, .* left\n", "", text), int(str(code or 0))


def with_session(page: Path, shown: str) -> str:
    """A page with its session as the commands print it now."""
    before, rest = page.read_text(encoding="utf-8").split(_BEGIN)
    indented = "\n".join(f"    {line}".rstrip() for line in shown.rstrip().splitlines())
    return f"{before}{_BEGIN}\n{indented}\n\n{_END}{rest.split(_END)[1]}"


def fan_chart() -> bytes:
    """The picture of the page that the session on forecasts writes."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "sales.csv").write_text(tables()["sales.csv"])
        page = Path(folder) / "next.html"
        _run([*_FORECAST.replace("sales.csv", f"{folder}/sales.csv").split()[1:], "--html", str(page), "--quiet"])
        (picture,) = re.findall(r'id="figure-fan" src="data:image/svg\+xml;base64,([^"]+)"', page.read_text())
    return base64.b64decode(picture)


def main() -> None:
    """Write or check the pages and tables."""
    found = {page: with_session(page, shown) for page, shown in transcripts().items()}
    found |= {TABLES / name: text for name, text in tables().items()}
    changed = [path for path, text in found.items() if not path.exists() or text != path.read_text(encoding="utf-8")]
    if "--check" in sys.argv[1:]:
        names = ", ".join(path.name for path in changed)
        sys.exit(f"out of date: {names}; run {sys.argv[0]}" if changed else 0)
    TABLES.mkdir(exist_ok=True)
    for path in changed:
        path.write_text(found[path], encoding="utf-8")
    (DOCS / "images" / "fan.svg").write_bytes(fan_chart())  # not checked: its bytes depend on Matplotlib


if __name__ == "__main__":
    main()
