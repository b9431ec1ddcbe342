"""``onepass export``: write a model as a file in Python, C or ONNX that runs without onepass."""

import re
from pathlib import Path

import click

from onepass.cli import options
from onepass.cli.console import Console

__all__ = ["export"]

_SUFFIXES = {".py": "numpy", ".h": "c", ".onnx": "onnx"}


@click.command(
    cls=options.Command,
    short_help="Write a model as Python, C or ONNX that runs without onepass.",
    examples=(
        "onepass export price.onepass --to numpy --out price.py",
        "onepass export price.onepass --to c --out price.h",
        "onepass export price.onepass --to onnx --dtype float32 --out price.onnx",
    ),
)
@options.model_argument
@click.option(
    "--to",
    "language",
    type=click.Choice(tuple(_SUFFIXES.values())),
    help="What to write; inferred from the --out extension by default: .py, .h or .onnx.",
)
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), required=True, help="The file to write.", metavar="FILE"
)
@click.option("--name", help="With --to c: prefix of all names in the header; by default the name of the file.")
@click.option(
    "--dtype",
    type=click.Choice(("float64", "float32")),
    default="float64",
    show_default=True,
    help="With --to onnx: precision of all numbers.",
)
@options.reporting
def export(
    model: Path, language: str | None, out: Path, name: str | None, dtype: str, as_json: bool, quiet: bool
) -> None:
    """Write MODEL as one file that predicts mean and standard deviation without onepass.

    With --to numpy it is a Python module that needs only NumPy: predict, predict_proba and, if there is a closed form,
    predict_interval.

    With --to c it is a C99 header that allocates no memory; for a perceptron it can also learn: NAME_learn(&model, x,
    y).

    With --to onnx it is an ONNX model with the outputs mean and std, or label, probabilities and std; writing it needs
    pip install 'onepass-learn[onnx]'.

    All three predict the same as 'onepass predict', up to rounding; probabilities of more than two classes agree to
    about 1e-5. A row is one number per column: a category is given as its position among the known ones, a date as
    days since 1970. MODEL is not changed.
    """
    from onepass.cli.errors import user_errors
    from onepass.cli.paths import check_distinct_paths, check_writable

    with Console(as_json=as_json, quiet=quiet) as console, user_errors():
        chosen = language or _SUFFIXES.get(out.suffix)
        if chosen is None:
            raise click.UsageError(f"--out {out} does not end in .py, .h or .onnx; give --to numpy, c or onnx.")
        check_distinct_paths([model], out=out)
        check_writable(out, "--out")
        from onepass.export import program_of
        from onepass.files.atomic import write_atomically
        from onepass.files.checkpoint import load

        program = program_of(load(model))
        if chosen == "numpy":
            from onepass.export.numpy_module import numpy_source

            content = numpy_source(program).encode()
        elif chosen == "c":
            from onepass.export.c_header import c_source

            content = c_source(program, _name_of(out) if name is None else name).encode()
        else:
            from onepass.export.onnx_model import onnx_bytes

            content = onnx_bytes(program, dtype)
        write_atomically(out, content)
        facts = {"model": str(model), "out": str(out), "to": chosen, "bytes": len(content)}
        learns = chosen == "c" and program.learning is not None
        console.done(
            facts, f"{out} predicts{' and learns' if learns else ''} what {model} does ({len(content):,} bytes)"
        )


def _name_of(out: Path) -> str:
    """The name of a file as one that C takes."""
    name = re.sub(r"[^A-Za-z0-9]+", "_", out.stem).strip("_").lower()
    return name if name[:1].isalpha() else f"model_{name}"
