"""Results in a JSON file, which a benchmark writes and its page reads."""

import json
from pathlib import Path
from typing import Any

from onepass.files.atomic import write_atomically

__all__ = ["keep", "stored"]


def stored(file: Path) -> dict[str, Any]:
    """What a file has; nothing if there is none yet."""
    return dict(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else {}


def keep(file: Path, results: dict[str, Any]) -> None:
    """Write results, with as many digits as mean something."""
    write_atomically(file, (json.dumps(_rounded(results), indent=1) + "\n").encode())


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(part) for part in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value
