"""Write a program as one Python file that needs only NumPy."""

import base64
from typing import Any

import numpy as np

from onepass.export.expressions import Expression, Function
from onepass.export.printing import Printer, functions_of
from onepass.export.programs import Input, Program
from onepass.export.raw_values import reader_imports, reader_source

__all__ = ["numpy_source"]

_SHOWN = 64  # numbers of an array that is written out; a larger one is packed
_NAMES = {
    "exp": "np.exp",
    "expm1": "np.expm1",
    "log": "np.log",
    "log1p": "np.log1p",
    "sqrt": "np.sqrt",
    "abs": "np.abs",
    "floor": "np.floor",
    "sin": "np.sin",
    "cos": "np.cos",
    "isnan": "np.isnan",
    "min": "np.minimum",
    "max": "np.maximum",
    "where": "np.where",
    "erfc": "erfc",
}
_RESERVED = ("np", "x", "rows", "math", "base64", "erfc", "sum", "zip", "range", "lambda")


class _PythonPrinter(Printer):
    """One function; its tables are those of the module."""

    def __init__(self, tables: "_Tables", functions: dict[int, str], taken: tuple[str, ...] = ()) -> None:
        super().__init__((*_RESERVED, *taken))
        self._tables, self._functions = tables, functions

    def number(self, value: float) -> str:
        return repr(value)

    def leaf(self, node: Expression, index: str) -> str:
        if node.op in ("input", "argument"):
            return node.name
        return repr(float(node.value)) if node.value.ndim == 0 else self._tables.name_of(node)

    def function(self, node: Expression, texts: list[str]) -> str:
        if node.op in _NAMES:
            return f"{_NAMES[node.op]}({', '.join(texts)})"
        if node.op == "call":
            return f"{self._functions[id(node.value)]}({', '.join(texts)})"
        if node.op == "matmul":
            return f"(({texts[0]}) @ {texts[1]})" if " " in texts[0] else f"({texts[0]} @ {texts[1]})"
        if node.op == "quadratic":
            return f"(({texts[0]} @ {texts[1]}) * {texts[0]}).sum(axis=-1).T"
        if node.op in ("sum", "largest"):
            return f"({texts[0]}).{'sum' if node.op == 'sum' else 'max'}(axis=1, keepdims=True)"
        if node.op == "outer":
            return f"outer({', '.join(texts)})"
        if node.op == "part":
            return f"({texts[0]})[:, {node.value} : {node.value + node.width}]"
        assert node.op == "concat", node.op
        parts = [
            _repeated(arg, text) if _is_constant(arg) else text for text, arg in zip(texts, node.args, strict=True)
        ]
        return f"np.hstack([{', '.join(parts)}])"

    def item(self, several: Expression, k: int, index: str) -> str:
        return f"{self.names[id(several)]}[{k}]"

    def declare(self, node: Expression, name: str) -> None:
        text = self.text(node)
        self.line(f"{name} = {text[1:-1] if node.op == 'matmul' else text}")

    def write_loop(self, node: Expression, carried: list[str], entries: list[str]) -> None:
        starts = [self.text(arg) for arg in node.args]
        self.line(f"{', '.join(carried)} = {', '.join(starts)}")
        body = node.value
        tables = [self._tables.named(table) for table in body.tables]
        over = tables[0] if len(tables) == 1 else f"zip({', '.join(tables)})" if tables else f"range({body.count})"
        self.line(f"for {', '.join(entries) or '_'} in {over}:")
        texts = self.loop_body(body, carried, entries)
        self._indent += 1
        self.line(f"{', '.join(carried)} = {', '.join(texts)}")
        self._indent -= 1


def _repeated(node: Expression, text: str) -> str:
    """A constant as the same numbers in every row."""
    values = set(np.ravel(node.value).tolist())
    if values <= {0.0, 1.0} and len(values) == 1:
        return f"np.{'ones' if values == {1.0} else 'zeros'}((len(x), {node.width}))"
    return f"np.tile({text}, (len(x), 1))"


def _is_constant(node: Expression) -> bool:
    return node.op in ("constant", "parameter")


class _Tables:
    """Arrays of the module, each once."""

    def __init__(self) -> None:
        self._names: dict[tuple[Any, bytes], str] = {}
        self.lines: list[str] = []

    def name_of(self, node: Expression) -> str:
        return self.named(node.value, node.name)

    def named(self, array: Any, wanted: str = "") -> str:
        key = (array.shape, np.ascontiguousarray(array).tobytes())
        if key not in self._names:
            name = (wanted or "table").upper()
            taken = set(self._names.values())
            k = 1
            while name in taken or (not wanted and k == 1):
                name, k = f"{(wanted or 'table').upper()}_{k}", k + 1
            self._names[key] = name
            self.lines.append(f"{name} = {_array_text(array)}")
        return self._names[key]


def _array_text(array: Any) -> str:
    if array.size <= _SHOWN:
        return f"np.array({array.tolist()!r})"
    packed = base64.b64encode(np.ascontiguousarray(array, dtype="<f8").tobytes()).decode()
    return f'packed({array.shape!r}, "{packed}")'


def numpy_source(program: Program) -> str:
    """The text of a module."""
    tables = _Tables()
    names: dict[int, str] = {}
    results = [program.mean, program.std, *(program.limits or ())]
    blocks = []
    for function in functions_of(results):
        name, k = function.name, 1
        while name in names.values():
            k += 1
            name = f"{function.name}_{k}"
        names[id(function)] = name
        blocks.append(_function_text(function, name, tables, names))
    moments = _PythonPrinter(tables, names)
    moments.define([program.mean, program.std])
    body = [*moments.lines, f"    return wide(x, {moments.text(program.mean)}), wide(x, {moments.text(program.std)})"]
    blocks.append(
        "\n".join(["def moments(x):", f'    """Mean and standard deviation, for rows {_shape(program)}."""', *body])
    )
    if program.limits is not None:
        limits = _PythonPrinter(tables, names)
        limits.define(list(program.limits))
        texts = [f"wide(x, {limits.text(one)})" for one in program.limits]
        doc = '    """Limits of an interval; quantile is that of the standard normal."""'
        blocks.append("\n".join(["def limits(x, quantile):", doc, *limits.lines, f"    return {', '.join(texts)}"]))
    parts = [_docstring(program), _imports(program), _columns(program), *reader_source(program.inputs), _HELPERS]
    uses = "\n".join(blocks)
    if any("packed(" in line for line in tables.lines):
        parts.append(_PACKED)
    if "erfc(" in uses:
        parts.append(_ERFC)
    if "outer(" in uses:
        parts.append(_OUTER)
    if tables.lines:
        parts.append("\n".join(tables.lines))
    parts += blocks
    return "\n\n\n".join([*parts, *_front(program)]) + "\n"


def _shape(program: Program) -> str:
    return f"(n, {program.x.width})"


def _function_text(function: Function, name: str, tables: _Tables, names: dict[int, str]) -> str:
    printer = _PythonPrinter(tables, names, tuple(one.name for one in function.arguments))
    printer.define(function.results)
    returned = ", ".join(printer.text(one) for one in function.results)
    head = f"def {name}({', '.join(one.name for one in function.arguments)}):"
    doc = f'    """{function.doc}"""'
    return "\n".join(
        [
            head,
            doc,
            *printer.lines,
            f"    return ({returned},)" if len(function.results) == 1 else f"    return {returned}",
        ]
    )


def _docstring(program: Program) -> str:
    lines = [f'"""{program.origin}, exported by onepass.', ""]
    lines += ["It needs NumPy alone.", ""]
    if program.classes:
        lines.append("predict(rows) gives the classes, predict_proba(rows) their probabilities.")
        lines.append(f"The standard deviations of predict_proba(rows, return_std=True) are {program.std_words}.")
    else:
        lines.append(f"predict(rows) gives the mean and {program.std_words}.")
    if program.limits is None:
        lines.append("It has no predict_interval: that of this model has no closed form.")
    lines += ["", "Rows are dictionaries of raw values by these names, or arrays of numbers in this order:", ""]
    lines += [
        f"{k:4}  {one.name.encode('ascii', 'replace').decode()}{_meaning(one)}" for k, one in enumerate(program.inputs)
    ]
    lines += ["", *program.notes] if program.notes else []
    return "\n".join(lines).replace("\\", "/") + '\n"""'


def _meaning(one: Input) -> str:
    if one.kind == "category":
        return ": a category; in an array its place in COLUMNS, any other is one more"
    in_array = {
        "boolean": "true or false; in an array 1 or 0",
        "hashed": "a category; in an array the number of its bucket",
        "date": "a date{}; in an array days since 1970 in UTC",
        "number": "a number{}; in an array itself" if one.written else "",
    }[one.kind].format(one.written.get("words", " as in ISO 8601"))
    return f": {in_array}" if in_array else ""


def _imports(program: Program) -> str:
    lines = {"import base64", "import math", *reader_imports(program.inputs)}
    lines |= {"from statistics import NormalDist"} if program.limits is not None else set()
    return "\n".join([*sorted(lines, key=lambda line: (line.startswith("from"), line)), "", "import numpy as np"])


def _columns(program: Program) -> str:
    entries = []
    for one in program.inputs:
        more: dict[str, Any] = {"kind": one.reader}
        more |= {"levels": list(one.levels)} if one.levels else {}
        more |= {"buckets": one.buckets} if one.buckets else {}
        more |= {"missing": list(one.missing_words)} if one.missing_words else {}
        more |= one.written
        entries.append(f"    {one.name!r}: {more!r},")
    text = "\n".join(["COLUMNS = {", *entries, "}"])
    return text + (f"\nCLASSES = {list(program.classes)!r}" if program.classes else "")


_HELPERS = '''def encode(rows):
    """Rows as numbers, one per column: from an array of them, or from dictionaries."""
    if len(rows) and isinstance(rows[0], dict):
        if any(COLUMNS.keys().isdisjoint(row) for row in rows):
            raise ValueError(f"a row has none of the columns {', '.join(COLUMNS)}")
        rows = [[code(name, row.get(name)) for name in COLUMNS] for row in rows]
    x = np.asarray(rows, dtype=np.float64)
    if x.ndim != 2 or x.shape[1] != len(COLUMNS):
        raise ValueError(f"rows must have shape (n, {len(COLUMNS)}), got {x.shape}")
    return x


def wide(x, values):
    """Values for all rows, where they may be the same for each."""
    return np.broadcast_to(values, (len(x), np.shape(values)[-1] if np.ndim(values) else 1))'''

_OUTER = '''def outer(left, right):
    """All products of the numbers of two rows."""
    return (left[:, :, None] * right[:, None, :]).reshape(len(left), -1)'''

_ERFC = """erfc = np.vectorize(math.erfc, otypes=[np.float64])  # which NumPy does not have"""

_PACKED = '''def packed(shape, text):
    """An array of 64-bit numbers."""
    return np.frombuffer(base64.b64decode(text), dtype="<f8").reshape(shape)'''


def _front(program: Program) -> list[str]:
    quiet = '    with np.errstate(all="ignore"):  # both sides of np.where are computed'
    last = "[:, 0]" if program.single else ""
    if program.classes:
        fronts = [
            f'''def predict_proba(rows, return_std=False):
    """Probabilities of CLASSES, (n, {len(program.classes)}); with return_std their standard deviations too."""
    x = encode(rows)
{quiet}
        mean, std = moments(x)
    return (mean, std) if return_std else mean''',
            '''def predict(rows):
    """The most probable class of each row."""
    return np.array(CLASSES)[predict_proba(rows).argmax(axis=1)]''',
        ]
    else:
        fronts = [
            f'''def predict(rows):
    """Mean and standard deviation for each row."""
    x = encode(rows)
{quiet}
        mean, std = moments(x)
    return mean{last}, std{last}'''
        ]
    if program.limits is not None:
        what = "the probability" if program.classes else "a new target"
        one = "[:, 0]" if program.limits[0].width == 1 else ""
        fronts.append(f'''def predict_interval(rows, level=0.95):
    """Limits that {what} is between with a probability of level."""
    x = encode(rows)
{quiet}
        low, high = limits(x, NormalDist().inv_cdf(0.5 + level / 2))
    return low{one}, high{one}''')
    return fronts
