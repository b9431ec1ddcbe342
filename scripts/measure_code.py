"""How large the core and the shell are, and how complicated: lines, long functions, names compared, repeated lines.

Through how many functions a served row passes is counted by ``python -m tests.service.frames``, and how many files an
addition touches by ``tests/test_extending.py``.

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
SHELL = (*("tables", "service", "cli", "decisions", "export", "files", "events", "evaluation", "reports", "client"),)
CUTS = {"startswith", "endswith", "split", "partition", "rpartition", "removeprefix", "removesuffix", "splitlines"}
SEARCHES = {"search", "match", "fullmatch", "findall", "sub"}
WORDS = {"reason", "detail", "message", "words"}  # what holds a sentence of ours
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


def parsed_sentences(source: str) -> int:
    """How often the words of an error, or of a reason, are searched or taken apart, to find out what they say."""
    tree = ast.parse(source)
    errors = {node.name for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler) and node.name}

    def is_sentence(node: ast.AST) -> bool:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "str" and node.args:
            return isinstance(node.args[0], ast.Name) and node.args[0].id in errors
        if isinstance(node, ast.Call):  # such as model.words()
            return isinstance(node.func, ast.Attribute) and node.func.attr in WORDS
        return isinstance(node, ast.Attribute) and node.attr in WORDS

    def is_parsed(node: ast.AST) -> bool:
        if isinstance(node, ast.Compare):
            return isinstance(node.ops[0], ast.In | ast.NotIn) and is_sentence(node.comparators[0])
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            return False
        cut = node.func.attr in CUTS and is_sentence(node.func.value)
        return cut or (node.func.attr in SEARCHES and any(map(is_sentence, node.args)))

    return sum(map(is_parsed, ast.walk(tree)))


def kinds_asked(everything: dict[Path, str], package: Path) -> int:
    """How often an object is asked which kind of served model it is, outside of the package of these kinds."""
    trees = {path: ast.parse(text) for path, text in everything.items()}
    served = package / "service" / "served"
    own = {path: tree for path, tree in trees.items() if path.parent == served}
    kinds = {node.name for tree in own.values() for node in tree.body if isinstance(node, ast.ClassDef)}
    calls = [
        node
        for path, tree in trees.items()
        if path not in own
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance"
    ]
    return sum(any(isinstance(name, ast.Name) and name.id in kinds for name in ast.walk(call)) for call in calls)


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


def print_lines(name: str, folders: tuple[str, ...], everything: dict[Path, str], package: Path) -> None:
    """Print the lines of some folders, together and each."""
    sizes = dict.fromkeys(folders, 0)
    for path, text in everything.items():
        if (folder := path.relative_to(package).parts[0]) in sizes:
            sizes[folder] += text.count("\n")
    print(f"{f'lines, {name}':48} {sum(sizes.values()):8,}")
    for folder, size in sizes.items():
        if size:
            print(f"{'  ' + folder:48} {size:8,}")


def main() -> None:
    """Print one line per figure."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1]
    package = root / "src" / "onepass"
    everything = {path: path.read_text(encoding="utf-8") for path in sorted(package.rglob("*.py"))}
    core = {path: text for path, text in everything.items() if path.relative_to(package).parts[0] in CORE}
    print(f"{'lines, all of the package':48} {sum(text.count(chr(10)) for text in everything.values()):8,}")
    print_lines("core", CORE, everything, package)
    print_lines("shell", SHELL, everything, package)
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
    shell = [text for path, text in everything.items() if path.relative_to(package).parts[0] in SHELL]
    print(f"{'sentences taken apart, shell':48} {sum(map(parsed_sentences, shell)):8,}")
    print(f"{'isinstance on served kinds, outside of served':48} {kinds_asked(everything, package):8,}")
    matches = sum(path.read_text(encoding="utf-8").count("match=") for path in (root / "tests").rglob("*.py"))
    print(f"{'match= in tests':48} {matches:8,}")
    for what, found in (("lines", long), ("parameters", many)):
        for count, path, one in sorted(found, key=lambda entry: -entry[0]):
            print(f"{f'{path}:{one.lineno} {one.name}':64} {count:4} {what}")


if __name__ == "__main__":
    main()
