"""Write a program as an ONNX model, using operations that every runtime has; functions and loops are unrolled."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from onepass._validation import one_of
from onepass.export.classes import fitted_erfc
from onepass.export.expressions import Expression, Loop, walk
from onepass.export.programs import NotExportableError, Program

__all__ = ["onnx_bytes"]

_OPSET, _IR_VERSION = 17, 8  # of 2022
_ERFC_DEGREE = {"float64": 18, "float32": 9}
_SMALLEST, _LARGEST = 1.2e-38, 3e38  # of what single precision can hold
_OPERATIONS = {
    "+": "Add",
    "-": "Sub",
    "*": "Mul",
    "/": "Div",
    "<": "Less",
    "<=": "LessOrEqual",
    "==": "Equal",
    "neg": "Neg",
    "exp": "Exp",
    "log": "Log",
    "sqrt": "Sqrt",
    "abs": "Abs",
    "floor": "Floor",
    "sin": "Sin",
    "cos": "Cos",
    "isnan": "IsNaN",
    "min": "Min",
    "max": "Max",
    "where": "Where",
    "matmul": "Gemm",  # a MatMul is fused with a factor behind it, which is cut to single precision
}


def onnx_bytes(program: Program, dtype: str = "float64") -> bytes:
    """The content of a file; its input is ``x``, its outputs are ``mean`` and ``std``, or those of classes."""
    one_of(dtype, ("float64", "float32"), "dtype")
    try:
        import onnx  # noqa: F401
    except ImportError:
        raise NotExportableError(
            "an ONNX model needs the package onnx, which is not installed: pip install 'onepass-learn[onnx]'"
        ) from None
    return _Writer(program, dtype).content()


class _Writer:
    """One model; every value has the shape ``(n, width)``, constants ``(width,)`` or none."""

    def __init__(self, program: Program, dtype: str) -> None:
        from onnx import TensorProto

        self.program, self.dtype = program, dtype
        self.kind = TensorProto.DOUBLE if dtype == "float64" else TensorProto.FLOAT
        self.nodes: list[Any] = []
        self.tensors: dict[tuple[Any, ...], Any] = {}
        self.names: dict[int, str] = {}
        self._kept: list[Expression] = []
        self._per_row = {"x"}  # names of values with a row for each of x
        self._shapes: dict[int, str] = {}  # names of the shapes of such values, by their width; of the number of rows
        self._count = 0

    def content(self) -> bytes:
        from onnx import TensorProto, checker, helper

        program: Program = self.program
        shape: list[str | int | None] = ["n", program.x.width]
        self.names[id(program.x)] = "x"
        mean, std = self._all([program.mean, program.std])
        width = len(program.classes) or program.mean.width
        outputs = []
        for name, value in (("probabilities" if program.classes else "mean", mean), ("std", std)):
            self._add("Expand", [value, self._row_shape(width)], name)
            outputs.append(helper.make_tensor_value_info(name, self.kind, ["n", width]))
        if program.classes:
            self._add("ArgMax", ["probabilities"], "label", axis=1, keepdims=0)
            outputs.insert(0, helper.make_tensor_value_info("label", TensorProto.INT64, ["n"]))
        inputs = [helper.make_tensor_value_info("x", self.kind, shape)]
        graph = helper.make_graph(self.nodes, "onepass", inputs, outputs, list(self.tensors.values()))
        opset = [helper.make_opsetid("", _OPSET)]
        model = helper.make_model(graph, opset_imports=opset, ir_version=_IR_VERSION, producer_name="onepass")
        model.doc_string = f"{program.origin}; std is {program.std_words}."
        helper.set_model_props(model, _properties(program))
        checker.check_model(model)
        return bytes(model.SerializeToString())

    def _all(self, results: Sequence[Expression]) -> list[str]:
        """Names of expressions, after all that they need was written."""
        self._kept += results
        for node in walk(results):
            if id(node) not in self.names:
                self.names[id(node)] = self._one(node)
        return [self.names[id(one)] for one in results]

    def _one(self, node: Expression) -> str:
        if node.op in ("constant", "parameter"):
            return self._tensor(node.value)
        if node.op in ("call", "loop"):
            return ""  # what is wanted of them are their items
        args = [self.names[id(arg)] for arg in node.args]
        if node.op in _OPERATIONS:
            return self._add(_OPERATIONS[node.op], args)
        return str(getattr(self, f"_{node.op}")(node, args))

    def _item(self, node: Expression, args: list[str]) -> str:
        several = node.args[0]
        results = self._called(several) if several.op == "call" else self._looped(several)
        return results[int(node.value)]

    def _called(self, node: Expression) -> list[str]:
        """Results of a function, written out for these arguments; remembered for its other results."""
        key = -id(node)
        if key not in self.names:
            function = node.value
            given = {id(one): self.names[id(arg)] for one, arg in zip(function.arguments, node.args, strict=True)}
            self.names[key] = "\0".join(self._written_out(function.results, given))
        return self.names[key].split("\0")

    def _looped(self, node: Expression) -> list[str]:
        key = -id(node)
        if key not in self.names:
            body = node.value
            numbers = [self.names[id(arg)] for arg in node.args]
            terms = _terms(body)
            if terms is not None:
                self.names[key] = "\0".join(self._summed(body, terms, numbers))
                return self.names[key].split("\0")
            for step in range(body.count):
                given = {id(one): name for one, name in zip(body.carried, numbers, strict=True)}
                entries = zip(body.entries, body.tables, strict=True)
                given |= {id(one): self._tensor(np.asarray(table[step])) for one, table in entries}
                numbers = self._written_out(body.results, given, outer=self.names)
            self.names[key] = "\0".join(numbers)
        return self.names[key].split("\0")

    def _summed(self, body: Loop, terms: list[tuple[str, Expression]], starts: list[str]) -> list[str]:
        """A loop that only adds up, or looks for the largest: all steps at once, along an axis before the others."""
        entries = zip(body.entries, body.tables, strict=True)
        given = {id(one): self._tensor(np.reshape(table, (-1, 1, 1))) for one, table in entries}
        values = self._written_out([term for _, term in terms], given, outer=self.names)
        found = []
        for (op, _), value, start in zip(terms, values, starts, strict=True):
            if op == "+":
                whole = self._add("ReduceSum", [value, self._integers([0])], keepdims=0)
            else:
                whole = self._add("ReduceMax", [value], axes=[0], keepdims=0)
            found.append(self._add(_OPERATIONS[op], [start, whole]))
        return found

    def _written_out(
        self, results: Sequence[Expression], given: dict[int, str], outer: dict[int, str] | None = None
    ) -> list[str]:
        """Results with placeholders replaced; what is written inside is known inside alone."""
        before = self.names
        self.names = {**(outer or {}), **given}
        found = self._all(results)
        self.names = before
        return found

    def _erfc(self, node: Expression, args: list[str]) -> str:
        """By a polynomial: runtimes have erf in single precision only, and 1 - erf has no digits in the tail."""
        placeholder = Expression("argument", (), 1, None, "x")
        return self._written_out([fitted_erfc(placeholder, _ERFC_DEGREE[self.dtype])], {id(placeholder): args[0]})[0]

    def _expm1(self, node: Expression, args: list[str]) -> str:
        """``e^x - 1 = 2 tanh(x/2) / (1 - tanh(x/2))``, which does not cancel; beyond 1 the plain way."""
        half = self._add("Tanh", [self._add("Mul", [args[0], self._tensor(0.5)])])
        small = self._add(
            "Div", [self._add("Mul", [self._tensor(2.0), half]), self._add("Sub", [self._tensor(1.0), half])]
        )
        large = self._add("Sub", [self._add("Exp", args), self._tensor(1.0)])
        is_small = self._add("Less", [self._add("Abs", args), self._tensor(1.0)])
        return self._add("Where", [is_small, small, large])

    def _log1p(self, node: Expression, args: list[str]) -> str:
        """``log(u) x / (u - 1)`` with ``u = 1 + x``: the rounding of ``u`` is taken out again."""
        one = self._tensor(1.0)
        u = self._add("Add", [one, args[0]])
        rest = self._add("Sub", [u, one])
        is_nothing = self._add("Equal", [rest, self._tensor(0.0)])
        safe = self._add("Where", [is_nothing, one, rest])
        scaled = self._add("Mul", [self._add("Log", [u]), self._add("Div", [args[0], safe])])
        return self._add("Where", [is_nothing, args[0], scaled])

    def _sum(self, node: Expression, args: list[str]) -> str:
        return self._add("ReduceSum", [args[0], self._integers([1])], keepdims=1)

    def _largest(self, node: Expression, args: list[str]) -> str:
        return self._add("ReduceMax", args, axes=[1], keepdims=1)

    def _part(self, node: Expression, args: list[str]) -> str:
        ends = [self._integers([place]) for place in (node.value, node.value + node.width, 1)]
        return self._add("Slice", [args[0], *ends])

    def _concat(self, node: Expression, args: list[str]) -> str:
        """Constants, and what follows from them alone, get a row for each of ``x``."""
        rows = [self._with_rows(name, arg.width) for name, arg in zip(args, node.args, strict=True)]
        return self._add("Concat", rows, axis=1)

    def _with_rows(self, name: str, width: int) -> str:
        return name if name in self._per_row else self._add("Expand", [name, self._row_shape(width)])

    def _outer(self, node: Expression, args: list[str]) -> str:
        left = self._add("Unsqueeze", [args[0], self._integers([2])])
        right = self._add("Unsqueeze", [args[1], self._integers([1])])
        return self._add("Reshape", [self._add("Mul", [left, right]), self._integers([-1, node.width])])

    def _quadratic(self, node: Expression, args: list[str]) -> str:
        product = self._add("Mul", [self._add("MatMul", args), args[0]])
        summed = self._add("ReduceSum", [product, self._integers([2])], keepdims=0)
        return self._add("Transpose", [summed], perm=[1, 0])

    def _row_shape(self, width: int) -> str:
        if not self._shapes:
            shape = self._add("Shape", ["x"])
            self._shapes[0] = self._add("Slice", [shape, self._integers([0]), self._integers([1])])
        if width not in self._shapes:
            self._shapes[width] = self._add("Concat", [self._shapes[0], self._integers([width])], axis=0)
        return self._shapes[width]

    def _add(self, operation: str, inputs: list[str], output: str = "", **attributes: Any) -> str:
        from onnx import helper

        self._count += 1
        output = output or f"v{self._count}"
        if operation != "Shape" and any(one in self._per_row for one in inputs):
            self._per_row.add(output)
        self.nodes.append(helper.make_node(operation, inputs, [output], name=f"n{self._count}", **attributes))
        return output

    def _tensor(self, value: Any) -> str:
        array = np.asarray(value, dtype=np.float64)
        if self.dtype == "float32":
            tiny = (array != 0.0) & (np.abs(array) < _SMALLEST)
            array = np.clip(np.where(tiny, np.sign(array) * _SMALLEST, array), -_LARGEST, _LARGEST)
        return self._stored(array.astype(self.dtype))

    def _integers(self, values: list[int]) -> str:
        return self._stored(np.array(values, dtype=np.int64))

    def _stored(self, array: Any) -> str:
        from onnx import numpy_helper

        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self.tensors:
            self.tensors[key] = numpy_helper.from_array(np.ascontiguousarray(array), f"c{len(self.tensors) + 1}")
        return str(self.tensors[key].name)


def _terms(body: Loop) -> list[tuple[str, Expression]] | None:
    """What each step adds to the numbers of a loop, or compares them with; None if a step depends on the one before."""
    carried = {id(one) for one in body.carried}
    found = []
    for one, result in zip(body.carried, body.results, strict=True):
        if not body.tables or result.op not in ("+", "max") or result.args[0] is not one:
            return None
        if any(id(node) in carried for node in walk([result.args[1]])):
            return None
        found.append((result.op, result.args[1]))
    return found


def _properties(program: Program) -> dict[str, str]:
    """What the numbers of a row and the labels mean, for programs that read the file."""
    import json

    columns = [{"name": one.name, "kind": one.kind, "levels": list(one.levels)} for one in program.inputs]
    found = {"columns": json.dumps(columns)}
    return found | ({"classes": json.dumps(list(program.classes))} if program.classes else {})
