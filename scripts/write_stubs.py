"""Write the types of the compiled modules for type checkers: a ``.pyi`` file beside each source of `onepass.engine`.

    python scripts/write_stubs.py

``setup.py`` does so with every build; the files are not in the repository. Types come from the module's ``.pxd`` file
and from the annotations of its source: what returns an ``object`` in C says there what it is. A parameter without a
type has that of the attribute of its name, if there is one.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ENGINE = Path(__file__).parents[1] / "src/onepass/engine"
TYPES = {
    **dict.fromkeys(("double", "float", "Real"), "float"),
    **dict.fromkeys(("Py_ssize_t", "int", "Index", "longlong"), "int"),
    **{"bint": "bool", "void": "None", "": "None", "object": "Any", "dict": "dict[Any, Any]", "tuple": "Any"},
}
IMPORTS = {
    "Any": "typing",
    "Callable": "collections.abc",
    "FloatArray": "onepass._typing",
    "NDArray": "numpy.typing",
    "NamedTuple": "typing",
    "Self": "typing",
    "Sequence": "collections.abc",
}
SPECIAL = {"__init__": "None", "__len__": "int", "__call__": "bool"}  # methods of Python that callers use


@dataclass
class Declarations:
    """What a ``.pxd`` file says of a module, or of a class in it."""

    is_compiled: bool = False
    base: str = ""
    attributes: dict[str, str] = field(default_factory=dict)  # those that Python sees, with their types
    functions: dict[str, tuple[str, dict[str, str]]] = field(default_factory=dict)  # and their parameters
    hidden: set[str] = field(default_factory=set)  # functions that only C sees
    constants: list[str] = field(default_factory=list)
    classes: dict[str, "Declarations"] = field(default_factory=dict)


def python_type(declared: str) -> str:
    """Type for Python of a C type, or of an annotation in Cython's terms."""
    plain = re.sub(r"\b(const|cython\.const|readonly|public|inline)\b", "", declared).replace("cython.", "").strip()
    if "[" in plain and ":" in plain:  # a memoryview
        element = re.sub(r"[\[\]]", " ", plain.partition(":")[0]).split()[0]
        return "FloatArray" if TYPES.get(element, "") == "float" else "NDArray[Any]"
    if plain.startswith("("):
        return f"tuple[{', '.join(python_type(part) for part in plain.strip('()').split(','))}]"
    return TYPES.get(plain, plain)


def read_declarations(source: str) -> Declarations:
    """Take a ``.pxd`` file apart."""
    module = Declarations()
    owner = module
    for line in _statements(source):
        if not line.startswith(" "):
            owner = module
        text = line.strip()
        if found := re.match(r"cdef class (\w+)(?:\((\w+)\))?:", text):
            owner = module.classes[found[1]] = Declarations(is_compiled=True, base=found[2] or "")
        elif found := re.match(r"cpdef enum: ?(.*)", text):
            owner = Declarations(constants=module.constants)
        elif found := re.match(r"cdef (?:readonly|public) ([^()]*)$", text):
            first, *others = found[1].split(",") if "[" not in found[1] else [found[1]]
            declared, _, name = first.strip().rpartition(" ")
            owner.attributes |= {one.strip(): python_type(declared) for one in (name, *others)}
        elif found := re.match(r"(cp?def) (.*?)(\w+)\((.*)\)", text):
            if found[1] == "cdef":
                owner.hidden.add(found[3])
            else:
                owner.functions[found[3]] = python_type(found[2] or "object"), dict(_parameters(found[4]))
        elif owner is not module and owner.constants is module.constants:
            owner.constants += re.findall(r"\w+", text.partition("=")[0])
    return module


def _statements(source: str) -> Iterator[str]:
    """Lines without comments, those in brackets joined."""
    whole = ""
    for line in source.splitlines():
        whole += line.partition("#")[0].rstrip() if not whole else " " + line.partition("#")[0].strip()
        if whole.count("(") <= whole.count(")"):
            if whole.strip():
                yield whole
            whole = ""


def _parameters(declared: str) -> Iterator[tuple[str, str]]:
    for one in re.split(r",(?![^\[]*\])", declared):
        kind, _, name = one.partition("=")[0].strip().rpartition(" ")
        yield name, python_type(kind)


def write_stub(source: str, declared: Declarations, classes: dict[str, Declarations], modules: dict[str, str]) -> str:
    """The types of a module, from its source and declarations; ``modules`` says where all ``classes`` are defined."""
    lines = [f"{name}: int" for name in declared.constants]
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef):
            lines += _class(node, classes.get(node.name, Declarations()))
        elif isinstance(node, ast.FunctionDef):
            lines += _function(node, declared)
        elif isinstance(node, ast.Assign):
            lines += _constants(node)
    body = "\n".join(lines) + "\n"
    return "".join(_imports(body, modules)) + "\n" + body


def _class(node: ast.ClassDef, own: Declarations) -> Iterator[str]:
    bases = ", ".join(ast.unparse(base) for base in node.bases)
    yield f"class {node.name}({bases}):" if bases else f"class {node.name}:"
    yield from (f"    {name}: {kind}" for name, kind in own.attributes.items())
    members = [] if node.name.startswith("_") else node.body
    if not own.is_compiled:
        yield from (f"    {name}: Any" for name in dict.fromkeys(_assigned(members)))
    for item in members:
        if isinstance(item, ast.AnnAssign):
            yield f"    {ast.unparse(item.target)}: {_annotated(item.annotation)}"
        elif isinstance(item, ast.FunctionDef):
            yield from (f"    {line}" for line in _function(item, own))
    yield "    ..."


def _assigned(members: list[ast.stmt]) -> Iterator[str]:
    """Attributes that the methods of a class in Python set."""
    for node in (node for member in members for node in ast.walk(member)):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def _function(node: ast.FunctionDef, declared: Declarations) -> Iterator[str]:
    """A function or method that Python sees."""
    decorators = [ast.unparse(one) for one in node.decorator_list]
    if node.name in declared.hidden or any("cython.cfunc" in one for one in decorators):
        return
    if node.name.startswith("_") and node.name not in SPECIAL:
        return
    given = node.args.args
    defaults = [None] * (len(given) - len(node.args.defaults)) + node.args.defaults
    returned, types = declared.functions.get(node.name, ("Any", {}))
    parameters = []
    for one, default in zip(given, defaults, strict=True):
        kind = _annotated(one.annotation) if one.annotation else (declared.attributes | types).get(one.arg, "Any")
        optional = " | None" if default and ast.unparse(default) == "None" and kind != "Any" else ""
        parameters.append("self" if one.arg == "self" else f"{one.arg}: {kind}{optional}{' = ...' if default else ''}")
    if node.returns is not None:
        returned = _annotated(node.returns)
    elif node.name in SPECIAL:
        returned = SPECIAL[node.name]
    yield from (f"@{one}" for one in decorators if one in ("property", "staticmethod"))
    yield f"def {node.name}({', '.join(parameters)}) -> {returned}: ..."


def _annotated(annotation: ast.expr) -> str:
    return python_type(ast.unparse(annotation).replace("'", ""))


def _constants(node: ast.Assign) -> Iterator[str]:
    """Constants of a module, with the types of their values where these are literals."""
    for target in node.targets:
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        values = node.value.elts if isinstance(node.value, ast.Tuple) and len(names) > 1 else [node.value] * len(names)
        for name, value in zip(names, values, strict=False):
            is_public = isinstance(name, ast.Name) and name.id.isupper() and not name.id.startswith("_")
            if is_public and not ast.unparse(value).startswith("cython.declare"):
                yield f"{ast.unparse(name)}: {_type_of(value)}"


def _type_of(value: ast.expr) -> str:
    called = ast.unparse(value.func) if isinstance(value, ast.Call) else ""
    if called in ("len", "range"):
        return "int"
    if called.startswith("np."):
        return "FloatArray"
    if isinstance(value, ast.Tuple):
        return "tuple[Any, ...]"
    literals = [node.value for node in ast.walk(value) if isinstance(node, ast.Constant)]
    is_plain = not any(isinstance(node, ast.Name | ast.Dict) for node in ast.walk(value))
    return type(literals[0]).__name__ if literals and is_plain else "Any"


def _imports(body: str, modules: dict[str, str]) -> Iterator[str]:
    for name in sorted(set(re.findall(r"\b[A-Z]\w+\b", body))):
        origin = IMPORTS.get(name) or modules.get(name)
        if origin and f"class {name}" not in body:
            yield f"from {origin} import {name}\n"


def write_stubs() -> None:
    """Write all of them."""
    declared = {path.stem: read_declarations(path.read_text(encoding="utf-8")) for path in sorted(ENGINE.glob("*.pxd"))}
    classes = {name: one for own in declared.values() for name, one in own.classes.items()}
    for one in classes.values():
        base = one.base
        while base:
            one.hidden |= classes[base].hidden
            one.functions = classes[base].functions | one.functions
            base = classes[base].base
    modules = {name: f"onepass.engine.{stem}" for stem, own in declared.items() for name in own.classes}
    for stem, own in declared.items():
        source = ENGINE / f"{stem}.py"
        if source.read_text(encoding="utf-8").count("import cython"):
            stub = write_stub(source.read_text(encoding="utf-8"), own, classes, modules)
            source.with_suffix(".pyi").write_text(stub, encoding="utf-8")


if __name__ == "__main__":
    write_stubs()
