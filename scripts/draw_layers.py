"""Draw the layers of the import contract in pyproject.toml as docs/images/layers.svg.

    python scripts/draw_layers.py

A package imports only from those below it.
"""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "layers.svg"
WIDTH, HEIGHT, GAP = 880, 34, 6  # of the picture, of a layer, and between two


def layers() -> list[list[str]]:
    """Names of the packages, from the top layer down."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = [one for one in settings["tool"]["importlinter"]["contracts"] if one["type"] == "layers"]
    return [[name.strip().removeprefix("onepass.") for name in layer.split("|")] for layer in contract["layers"]]


def drawn() -> str:
    """The picture: a row of boxes per layer."""
    found = layers()
    total = len(found) * (HEIGHT + GAP) + GAP
    boxes = []
    for i, names in enumerate(found):
        width = (WIDTH - GAP) / len(names)
        for k, name in enumerate(names):
            x, y = GAP + k * width, GAP + i * (HEIGHT + GAP)
            boxes.append(
                f'<rect x="{x:.0f}" y="{y}" width="{width - GAP:.0f}" height="{HEIGHT}" rx="4" fill="#e8eef7" '
                f'stroke="#5b7bb4"/><text x="{x + (width - GAP) / 2:.0f}" y="{y + HEIGHT / 2 + 5:.0f}" '
                f'text-anchor="middle">{name}</text>'
            )
    style = "font-family: sans-serif; font-size: 14px; fill: #1c2a44"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {total}" role="img" style="{style}">'
    return "\n".join([head, "<title>The packages of onepass in their layers</title>", *boxes, "</svg>"]) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(drawn(), encoding="utf-8")
