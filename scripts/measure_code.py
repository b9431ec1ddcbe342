"""How large the core is, and how complicated: lines, long functions, long signatures, names compared, repeated lines.

    python scripts/measure_code.py [FOLDER]

FOLDER is the root of a checkout, by default this one; give another to compare two versions. Long functions and those
with many parameters are listed at the end.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

CORE = ("engine", "activations", "likelihoods", "beliefs", "layers", "models", "merging", "estimators", "integrations")
LONG, MANY = 60, 9  # lines of a function, and its parameters, above which both are counted
RUN = 6  # lines that make a passage
CHOICES = {
    "covariance": {"full", "layer", "neuron", "kronecker", "low_rank", "diagonal"},
    "observation": {"gaussian", "bernoulli", "categorical", "poisson", "negative_binomial", "heteroscedastic"},
}


def functions(source: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """All functions of a module, however deep."""
    return (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How many parameters a function has, without self."""
    given = function.args
    names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


def lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How many lines a function has, its signature and docstring among them."""
    return (function.end_lineno or 0) - function.lineno + 1


def compared_names(source: str, names: set[str]) -> int:
    """How often a string is compared with one of these names."""
    found = 0
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare):
            found += sum(isinstance(one, ast.Constant) and one.value in names for one in (node.left, *node.comparators))
    return found


def repeated_lines(sources: list[str]) -> int:
    """Lines of code in passages that occur more than once."""
    modules = [[line.strip() for line in source.splitlines() if _is_code(line)] for source in sources]
    passages = [[tuple(code[i : i + RUN]) for i in range(len(code) - RUN + 1)] for code in modules]
    seen = Counter(passage for found in passages for passage in found)
    return sum(
        len({i + k for i, passage in enumerate(found) if seen[passage] > 1 for k in range(RUN)}) for found in passages
    )


def _is_code(line: str) -> bool:
    return len(re.sub(r"\W", "", line)) > 3 and not line.lstrip().startswith(("#", "import ", "from "))


def main() -> None:
    """Print one line per figure."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1]
    package = root / "src" / "onepass"
    everything = {path: path.read_text(encoding="utf-8") for path in sorted(package.rglob("*.py"))}
    core = {path: text for path, text in everything.items() if path.relative_to(package).parts[0] in CORE}
    print(f"{'lines, all of the package':48} {sum(text.count(chr(10)) for text in everything.values()):8,}")
    print(f"{'lines, core':48} {sum(text.count(chr(10)) for text in core.values()):8,}")
    for folder in CORE:
        own = [text for path, text in core.items() if path.relative_to(package).parts[0] == folder]
        print(f"{'  ' + folder:48} {sum(text.count(chr(10)) for text in own):8,}")
    known = [(path.relative_to(package), one) for path, text in everything.items() for one in functions(text)]
    long = [(lines(one), path, one) for path, one in known if lines(one) > LONG]
    many = [(parameters(one), path, one) for path, one in known if parameters(one) > MANY]
    print(f"{'functions':48} {len(known):8,}")
    print(f"{f'  of more than {LONG} lines':48} {len(long):8,}")
    print(f"{f'  with more than {MANY} parameters':48} {len(many):8,}")
    for kind, names in CHOICES.items():
        hits = {path: compared_names(text, names) for path, text in everything.items()}
        files = sum(count > 0 for count in hits.values())
        print(f"{f'comparisons with a name: {kind} (files)':48} {sum(hits.values()):8,} ({files})")
    print(f"{f'repeated lines (passages of {RUN} or more), core':48} {repeated_lines(list(core.values())):8,}")
    for what, found in (("lines", long), ("parameters", many)):
        for count, path, one in sorted(found, key=lambda entry: -entry[0]):
            print(f"{f'{path}:{one.lineno} {one.name}':64} {count:4} {what}")


if __name__ == "__main__":
    main()
