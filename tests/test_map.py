"""The map of the packages on the page on architecture, against the import contract and the packages there are."""

import re
import runpy
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "onepass"


def rows_of_the_map() -> list[str]:
    """First cells of the table headed ``| package | knows |``, from the top layer down."""
    _, _, table = (
        (ROOT / "docs" / "explanation" / "architecture.md")
        .read_text(encoding="utf-8")
        .partition("| package | knows |\n")
    )
    lines = table.partition("\n\n")[0].splitlines()[1:]  # below the rule
    cells = [re.match(r"\| `([\w.]+)` \|", line) for line in lines]
    assert lines
    assert all(cells), "every row must begin with a name in backticks"
    return [cell[1] for cell in cells if cell]


def layers() -> list[str]:
    """Modules below onepass in the layers' contract, from the top down."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = [one for one in settings["tool"]["importlinter"]["contracts"] if one["type"] == "layers"]
    names = [name.strip() for layer in contract["layers"] for name in layer.split("|")]
    return [name.removeprefix("onepass.") for name in names]


def test_the_map_has_the_layers_of_the_contract_in_their_order() -> None:
    assert rows_of_the_map() == layers()


def test_every_package_and_module_is_on_the_map() -> None:
    on_the_map = set(rows_of_the_map())
    there = [path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()]
    for name in set(there) - {"__init__", "__main__"}:
        parts = {f"{name}.{path.stem}" for path in (SOURCE / name).glob("[!_]*") if (SOURCE / name).is_dir()}
        # A package that only holds others, such as integrations, is there with all of them instead.
        assert name in on_the_map or (parts and parts <= on_the_map), f"{name} is not on the map"


def test_everything_on_the_map_is_there() -> None:
    for name in rows_of_the_map():
        path = SOURCE.joinpath(*name.split("."))
        assert (path / "__init__.py").exists() or path.with_suffix(".py").exists(), f"there is no onepass.{name}"


def test_the_contracts_leave_no_package_out() -> None:
    """Forbidden imports name their sources one by one: each package is in the one on compiling, or is the engine."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = [
        one
        for one in settings["tool"]["importlinter"]["contracts"]
        if one.get("forbidden_modules") == ["cython", "Cython"]
    ]
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert {name.removeprefix("onepass.") for name in contract["source_modules"]} == packages - {"engine"}


def test_the_picture_is_drawn_from_the_contract() -> None:
    drawing = runpy.run_path(str(ROOT / "scripts" / "draw_layers.py"))
    assert drawing["PICTURE"].read_text(encoding="utf-8") == drawing["drawn"]()
    names = [name for layer in drawing["layers"]() for name in layer]
    assert names == layers()
    assert all(f">{name}</text>" in drawing["drawn"]() for name in names)


def test_contributing_fits_on_a_screen() -> None:
    assert len((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines()) <= 45
