"""Write a program as one C99 header: it allocates no memory, and its only state is a struct of the caller."""

import re
from typing import Any

import numpy as np

from onepass.export.expressions import Expression, Function
from onepass.export.printing import Printer, functions_of
from onepass.export.programs import Input, Learning, NotExportableError, Program
from onepass.export.updates import update_function

__all__ = ["c_source", "check_name"]

_NAMES = {"min": "fmin", "max": "fmax", "abs": "fabs"}
_PLAIN = ("exp", "expm1", "log", "log1p", "sqrt", "floor", "sin", "cos", "erfc", "isnan")
_TRUTH = ("<", "<=", "==", "isnan")
_SUMS = ("matmul", "quadratic", "sum", "largest", "outer", "concat", "call")
_MOST_NUMBERS = 1_000_000  # of all tables: some 20 MB of source
_KEYWORDS = frozenset(
    [
        *("auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern"),
        *("float", "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return", "short", "signed"),
        *("sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void", "volatile", "while", "main"),
    ]
)
_RESERVED = (
    *_KEYWORDS,
    *_PLAIN,
    "fmin",
    "fmax",
    "fabs",
    "x",
    "y",
    "i",
    "j",
    "k",
    "model",
    "mean",
    "std",
    "probabilities",
    "out",
    "total",
)


def check_name(name: str) -> str:
    """A name that C takes, or a ValueError."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) or name in _KEYWORDS:
        raise ValueError(
            f"the name {name!r} can't be used as a prefix in a C header: use letters, digits and underscores, "
            "beginning with a letter, and not a keyword of C"
        )
    return name


class _Tables:
    """Arrays of the header, each once."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._names: dict[bytes, str] = {}
        self.lines: list[str] = []
        self.size = 0

    def named(self, array: Any) -> str:
        key = np.ascontiguousarray(array, dtype="<f8").tobytes()
        if key not in self._names:
            self.size += array.size
            if self.size > _MOST_NUMBERS:
                raise NotExportableError(
                    f"the model has more than {_MOST_NUMBERS:,} numbers, too many for a C header: write a NumPy "
                    "module or an ONNX model, or use a covariance with fewer numbers, such as 'diagonal'"
                )
            name = f"{self._prefix}_t{len(self._names) + 1}"
            self._names[key] = name
            self.lines.append(f"static const {self._prefix}_real {name}[{array.size}] = {_initialiser(array)};")
        return self._names[key]


def _initialiser(array: Any) -> str:
    flat = [_number(value) for value in np.ravel(array).tolist()]
    lines = [", ".join(flat[k : k + 6]) for k in range(0, len(flat), 6)]
    return "{" + (lines[0] if len(lines) == 1 else "\n    " + ",\n    ".join(lines)) + "}"


def _number(value: float) -> str:
    if not np.isfinite(value):
        return "NAN" if value != value else "INFINITY" if value > 0.0 else "-INFINITY"
    return repr(value)


class _CPrinter(Printer):
    """One function of the header."""

    def __init__(self, prefix: str, tables: _Tables, functions: dict[int, str], stateful: bool = False) -> None:
        super().__init__(_RESERVED)
        self._prefix, self._tables, self._functions, self._stateful = prefix, tables, functions, stateful

    def number(self, value: float) -> str:
        return _number(value)

    def is_named(self, node: Expression) -> bool:
        return super().is_named(node) or node.op in _SUMS

    def must_name(self, node: Expression) -> tuple[Expression, ...]:
        return node.args if node.op in ("matmul", "quadratic", "outer") else ()

    def leaf(self, node: Expression, index: str) -> str:
        if node.op == "argument":
            return node.name
        if node.op == "input":
            return f"{node.name}[{index or '0'}]"
        if node.op == "parameter" and self._stateful:
            return f"model->{node.name}" if node.value.ndim == 0 else f"model->{node.name}[{index or '0'}]"
        values = np.ravel(node.value)
        if (values == values[0]).all():
            return _number(float(values[0]))
        return f"{self._tables.named(node.value)}[{index or '0'}]"

    def reference(self, name: str, node: Expression, index: str) -> str:
        return f"{name}[{index or '0'}]" if node.width > 1 else name

    def function(self, node: Expression, texts: list[str]) -> str:
        if node.op == "where":
            return f"({texts[0]} ? {texts[1]} : {texts[2]})"
        assert node.op in _PLAIN or node.op in _NAMES, node.op
        return f"{_NAMES.get(node.op, node.op)}({', '.join(texts)})"

    def _written(self, node: Expression, index: str) -> tuple[str, int]:
        if node.op == "part" and id(node) not in self.names:
            place = str(node.value) if node.width == 1 else f"{node.value} + {index}" if node.value else index
            return super()._written(node.args[0], place)
        return super()._written(node, index)

    def item(self, several: Expression, k: int, index: str) -> str:
        name, count = self.names[id(several)], len(several.value.results)
        return f"{name}[{count} * ({index}) + {k}]" if several.width > 1 else f"{name}[{k}]"

    def declare(self, node: Expression, name: str) -> None:
        if node.op in _SUMS:
            getattr(self, f"_declare_{node.op}")(node, name)
        elif node.width == 1:
            kind = "int" if node.op in _TRUTH else "double"
            self.line(f"const {kind} {name} = {self.text(node)};")
        else:
            self.line(f"double {name}[{node.width}];")
            self.line(f"for (int i = 0; i < {node.width}; i++) {{ {name}[i] = {self.text(node, 'i')}; }}")

    def _declare_call(self, node: Expression, name: str) -> None:
        count = len(node.value.results)
        self.line(f"double {name}[{count * node.width}];")
        function = self._functions[id(node.value)]
        if node.width == 1:
            self.line(f"{function}({', '.join(self.text(arg) for arg in node.args)}, {name});")
            return
        args = ", ".join(self.text(arg, "i") for arg in node.args)
        self.line(f"for (int i = 0; i < {node.width}; i++) {{ {function}({args}, {name} + {count} * i); }}")

    def _declare_sum(self, node: Expression, name: str) -> None:
        (arg,) = node.args
        self.line(f"double {name} = 0.0;")
        self.line(f"for (int i = 0; i < {arg.width}; i++) {{ {name} += {self.text(arg, 'i')}; }}")

    def _declare_largest(self, node: Expression, name: str) -> None:
        (arg,) = node.args
        self.line(f"double {name} = {self.text(arg, '0')};")
        self.line(f"for (int i = 1; i < {arg.width}; i++) {{ {name} = fmax({name}, {self.text(arg, 'i')}); }}")

    def _declare_matmul(self, node: Expression, name: str) -> None:
        arg, matrix = node.args
        k = "k" if node.width == 1 else f"k * {node.width} + i"
        term = f"{self.text(arg, 'k')} * {self._entry(matrix, k)}"
        if node.width == 1:
            self.line(f"double {name} = 0.0;")
            self.line(f"for (int k = 0; k < {arg.width}; k++) {{ {name} += {term}; }}")
            return
        self.line(f"double {name}[{node.width}];")
        self.line(f"for (int i = 0; i < {node.width}; i++) {{")
        self.line("    double total = 0.0;")
        self.line(f"    for (int k = 0; k < {arg.width}; k++) {{ total += {term}; }}")
        self.line(f"    {name}[i] = total;")
        self.line("}")

    def _entry(self, matrix: Expression, index: str) -> str:
        if matrix.op == "parameter" and self._stateful:
            return f"model->{matrix.name}[{index}]"
        return f"{self._tables.named(matrix.value)}[{index}]"

    def _declare_quadratic(self, node: Expression, name: str) -> None:
        arg, matrices = node.args
        n, z = arg.width, self.text
        whole = f"{name}[{node.width}]" if node.width > 1 else name
        self.line(f"double {whole};")
        entry = self._entry(matrices, f"(i * {n} + j) * {n} + k")
        self.line(f"for (int i = 0; i < {node.width}; i++) {{")
        self.line("    double total = 0.0;")
        self.line(f"    for (int j = 0; j < {n}; j++) {{")
        self.line(f"        for (int k = 0; k < {n}; k++) {{ total += {z(arg, 'j')} * {entry} * {z(arg, 'k')}; }}")
        self.line("    }")
        self.line(f"    {name}[i] = total;" if node.width > 1 else f"    {name} = total;")
        self.line("}")

    def _declare_outer(self, node: Expression, name: str) -> None:
        left, right = node.args
        self.line(f"double {name}[{node.width}];")
        self.line(f"for (int i = 0; i < {left.width}; i++) {{")
        product = f"{self.text(left, 'i')} * {self.text(right, 'j')}"
        self.line(f"    for (int j = 0; j < {right.width}; j++) {{ {name}[i * {right.width} + j] = {product}; }}")
        self.line("}")

    def _declare_concat(self, node: Expression, name: str) -> None:
        self.line(f"double {name}[{node.width}];")
        at = 0
        for arg in node.args:
            if arg.width == 1:
                self.line(f"{name}[{at}] = {self.text(arg)};")
            else:
                place = f"{at} + i" if at else "i"
                self.line(f"for (int i = 0; i < {arg.width}; i++) {{ {name}[{place}] = {self.text(arg, 'i')}; }}")
            at += arg.width

    def write_loop(self, node: Expression, carried: list[str], entries: list[str]) -> None:
        for name, arg in zip(carried, node.args, strict=True):
            self.line(f"double {name} = {self.text(arg)};")
        body = node.value
        self.line(f"for (int i = 0; i < {body.count}; i++) {{")
        for name, table in zip(entries, body.tables, strict=True):
            self.line(f"    const double {name} = {self._tables.named(table)}[i];")
        texts = self.loop_body(body, carried, entries)
        news = [self.fresh(f"new_{name}") for name in carried]
        for new, text in zip(news, texts, strict=True):
            self.line(f"    const double {new} = {text};")
        for name, new in zip(carried, news, strict=True):
            self.line(f"    {name} = {new};")
        self.line("}")


def c_source(program: Program, name: str) -> str:
    """The text of a header."""
    return _Header(program, check_name(name)).text()


class _Header:
    def __init__(self, program: Program, name: str) -> None:
        self.program, self.name = program, name
        self.tables = _Tables(name)
        self.functions: dict[int, str] = {}
        self.blocks: list[str] = []

    def text(self) -> str:
        program, learning = self.program, self.program.learning
        self._add_functions([program.mean, program.std])
        self.blocks.append(self._predict())
        if learning is not None:
            self.blocks.append(self._learn(learning))
        guard = f"{self.name.upper()}_H"
        head = [_comment(self._words()), f"#ifndef {guard}\n#define {guard}\n\n#include <math.h>", self._types()]
        middle = "\n".join(self.tables.lines)
        return "\n\n".join([*head, self._constants(), middle, *self.blocks, f"#endif /* {guard} */"]) + "\n"

    def _add_functions(self, results: list[Expression]) -> None:
        for function in functions_of(results):
            if id(function) in self.functions:
                continue
            wanted, k = f"{self.name}_{function.name}", 1
            name = wanted
            while name in self.functions.values():
                k += 1
                name = f"{wanted}_{k}"
            self.functions[id(function)] = name
            self.blocks.append(self._function(function, name))

    def _function(self, function: Function, name: str) -> str:
        printer = _CPrinter(self.name, self.tables, self.functions)
        for one in function.arguments:
            printer.names[id(one)] = printer.fresh(one.name)
        arguments = ", ".join(f"double {printer.names[id(one)]}" for one in function.arguments)
        printer.define(function.results)
        returned = [f"    out[{k}] = {printer.text(one)};" for k, one in enumerate(function.results)]
        head = f"static inline void {name}({arguments}, double *out) {{"
        return "\n".join([f"/* {_plain(function.doc)} */", head, *printer.lines, *returned, "}"])

    @property
    def _head(self) -> str:
        """What a prediction returns, its name, and the arguments besides the struct."""
        real, what = f"{self.name}_real", "probabilities" if self.program.classes else "mean"
        return f"const {real} *x, {real} *{what}, {real} *std)"

    def _predict(self) -> str:
        program, learning = self.program, self.program.learning
        printer = _CPrinter(self.name, self.tables, self.functions, stateful=learning is not None)
        target = "probabilities" if program.classes else "mean"
        printer.define([program.mean, program.std])
        kind = "int" if program.classes else "void"
        with_model = f"static inline {kind} {self.name}_predict_with(const struct {self.name}_model *model, "
        plain = f"static inline {kind} {self.name}_predict("
        lines = [(with_model if learning is not None else plain) + self._head + " {", *printer.lines]
        for result, out in ((program.mean, target), (program.std, "std")):
            lines += _copied(printer, result, out, self.name)
        if program.classes:
            lines += [
                "    int best = 0;",
                f"    for (int i = 1; i < {len(program.classes)}; i++) {{",
                "        best = probabilities[i] > probabilities[best] ? i : best;",
                "    }",
                "    return best;",
            ]
        lines.append("}")
        if learning is not None:
            returns = "return " if program.classes else ""
            lines += ["", plain + self._head + " {"]
            lines += [f"    {returns}{self.name}_predict_with(&{self.name}_learned, x, {target}, std);", "}"]
        return "\n".join(lines)

    def _learn(self, learning: Learning) -> str:
        name, p = self.name, len(learning.mean)
        function = update_function(learning.rule)
        printer = _CPrinter(name, self.tables, self.functions, stateful=True)
        for taken in ("gain", "coords", "var", "pre_mean", "step", "shrink", "target"):
            printer.fresh(taken)
        self._add_functions(list(function.results))
        self.functions[id(function)] = f"{name}_{function.name}"
        self.blocks.append(self._function(function, f"{name}_{function.name}"))
        printer.define([learning.row])
        row = printer.text(learning.row, "k")
        is_label = learning.rule != "linear"
        number = "y" if is_label else "log(y)" if learning.is_log else "y"
        target = (
            number if is_label else f"({number} - {_number(learning.target_centre)}) / {_number(learning.target_scale)}"
        )
        arguments = "pre_mean, var, target" + ("" if is_label else ", model->noise")
        count = len(function.results)
        lines = [
            f"static inline int {name}_learn(struct {name}_model *model, const {name}_real *x, {name}_real y) {{",
            *printer.lines,
            f"    const double target = {target};",
            f"    double coords[{p}], gain[{p}], step[{count}], pre_mean = 0.0, var = 0.0;",
            f"    for (int i = 0; i < {p}; i++) {{ coords[i] = 0.0; }}",
            f"    for (int k = 0; k < {p}; k++) {{",
            f"        pre_mean += {row} * model->mean[k];",
            f"        for (int i = 0; i < {p}; i++) {{ coords[i] += {row} * model->root[k * {p} + i]; }}",
            "    }",
            f"    for (int i = 0; i < {p}; i++) {{ var += coords[i] * coords[i]; }}",
            f"    {name}_{function.name}({arguments}, step);",
            f"    for (int i = 0; i < {count}; i++) {{",
            "        if (!isfinite(step[i])) { return 0; }",
            "    }",
            "    if (!(isfinite(var) && isfinite(step[0] * var))) { return 0; }",
            f"    for (int k = 0; k < {p}; k++) {{",
            "        gain[k] = 0.0;",
            f"        for (int i = 0; i < {p}; i++) {{ gain[k] += coords[i] * model->root[k * {p} + i]; }}",
            "    }",
            "    /* C = R'R becomes C - information gain gain': of R a multiple of coords gain' is taken away. */",
            "    const double shrink = step[1] / (1.0 + sqrt(fmax(step[2], 0.0)));",
            f"    for (int k = 0; k < {p}; k++) {{",
            f"        model->mean[k] += ({name}_real)(step[0] * gain[k]);",
            f"        for (int i = 0; i < {p}; i++) {{",
            f"            model->root[k * {p} + i] -= ({name}_real)(shrink * coords[i] * gain[k]);",
            "        }",
            "    }",
        ]
        return "\n".join([_comment(_LEARN_WORDS[is_label]), *lines, "    return 1;", "}"])

    def _types(self) -> str:
        name, upper, learning = self.name, self.name.upper(), self.program.learning
        lines = [
            f"#ifndef {upper}_REAL /* the type of all numbers that are stored; float saves half of the memory */",
            f"#define {upper}_REAL double",
            "#endif",
            f"typedef {upper}_REAL {name}_real;",
        ]
        if learning is None:
            return "\n".join(lines)
        p = len(learning.mean)
        lines += [
            "",
            "/* What learning changes: mean of the weights, root R of the covariance R'R (by columns); the noise. */",
            f"struct {name}_model {{",
            f"    {name}_real mean[{p}];",
            f"    {name}_real root[{p * p}];",
            f"    {name}_real noise;",
            "};",
            "",
            "/* What was learned before: copy it to go on from there. */",
            f"static const struct {name}_model {name}_learned = {{",
            f"    {_initialiser(learning.mean)},",
            f"    {_initialiser(learning.root.T)},",
            f"    {_number(learning.noise)}",
            "};",
        ]
        return "\n".join(lines)

    def _constants(self) -> str:
        upper, taken = self.name.upper(), set[str]()
        rows = [f"{_enum(upper, 'x', one.name, taken)} = {k}" for k, one in enumerate(self.program.inputs)]
        outputs = len(self.program.classes) or self.program.mean.width
        lines = [
            f"enum {{ {upper}_INPUTS = {len(self.program.inputs)}, {upper}_OUTPUTS = {outputs} }};",
            "",
            "/* Places of the columns in x. */",
            "enum {\n    " + ",\n    ".join(rows) + "\n};",
        ]
        for one in self.program.inputs:
            if one.levels:
                levels = [f"{_enum(upper, one.name, level, taken)} = {k}" for k, level in enumerate(one.levels)]
                lines += ["", f"/* {_plain(one.name)}: any other number is another category. */"]
                lines += ["enum {\n    " + ",\n    ".join(levels) + "\n};"]
        if self.program.classes:
            texts = ", ".join(_string(str(label)) for label in self.program.classes)
            lines += ["", f"static const char *const {self.name}_classes[{outputs}] = {{{texts}}};"]
        return "\n".join(lines)

    def _words(self) -> list[str]:
        program, name = self.program, self.name
        words = [f"{program.origin}, exported by onepass.", ""]
        if program.classes:
            words.append(f"{name}_predict(x, probabilities, std) returns the best class, a place in {name}_classes;")
            words.append(f"std is {program.std_words}.")
        else:
            words.append(f"{name}_predict(x, mean, std): std is {program.std_words}.")
        if program.learning is not None:
            words.append(
                f"{name}_learn(&model, x, y) learns a row, {name}_predict_with(&model, x, ...) predicts with it."
            )
        elif program.no_learning:
            words.append(f"There is no {name}_learn: {program.no_learning}.")
        words += ["", "C99, to be linked with the library of mathematics (-lm). The numbers of x:", ""]
        words += [f"{k:4}  {one.name}{_meaning(one)}" for k, one in enumerate(program.inputs)]
        return words


_LEARN_WORDS = {
    False: [
        "Learn that x has the target y: the exact step of the Bayesian perceptron. The noise stays as it is.",
        "Returns 1, or 0 if the numbers are not finite; nothing is learned then.",
    ],
    True: [
        "Learn that x has the label y, 0 or 1, the place of its class.",
        "Returns 1, or 0 if the numbers are not finite; nothing is learned then.",
    ],
}


def _copied(printer: _CPrinter, result: Expression, out: str, name: str) -> list[str]:
    if result.width == 1:
        return [f"    {out}[0] = ({name}_real)({printer.text(result)});"]
    return [
        f"    for (int i = 0; i < {result.width}; i++) {{ {out}[i] = ({name}_real)({printer.text(result, 'i')}); }}"
    ]


def _meaning(one: Input) -> str:
    return {
        "boolean": ": 1 for true, 0 for false, NAN if missing",
        "category": ": a category, one of the constants below",
        "hashed": f": the bucket below {one.buckets}: the text's blake2b (8 bytes, person 'onepass') modulo it",
        "date": ": days since 1970 in UTC, NAN if missing",
    }.get(one.kind, "")


def _enum(prefix: str, group: str, word: str, taken: set[str]) -> str:
    wanted = "_".join(re.sub(r"[^A-Za-z0-9]+", "_", part).strip("_").upper() for part in (prefix, group, word)).strip(
        "_"
    )
    name, k = wanted, 1
    while name in taken or name in (f"{prefix}_H", f"{prefix}_REAL", f"{prefix}_INPUTS", f"{prefix}_OUTPUTS"):
        k += 1
        name = f"{wanted}_{k}"
    taken.add(name)
    return name


def _plain(text: str) -> str:
    """A text that does no harm in a comment."""
    return text.encode("ascii", "replace").decode().replace("*/", "* /").replace("/*", "/ *").replace("\\", "/")


def _comment(lines: list[str]) -> str:
    return "\n".join(["/*", *(f" * {_plain(line)}".rstrip() for line in lines), " */"])


def _string(text: str) -> str:
    codes = [chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in text.encode()]
    return '"' + "".join(codes) + '"'
