"""What a model computes for one row, as a graph of a few operations, which can be written in several languages.

Every value is a row of ``width`` numbers; one of width 1 is broadcast. Formulas are ordinary Python functions of
`Expression`: ``mean + std * node`` builds the graph. A `Function` is a named formula of single numbers, with loops if
it sums over nodes; a model calls it for each number of a row. Constants are folded. The modules that write files know
these operations and nothing of models; those that read models know nothing of files.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np

from onepass._typing import FloatArray

__all__ = [
    "Expression",
    "Function",
    "Loop",
    "above",
    "absolute",
    "call",
    "changing_parts",
    "concat",
    "constant",
    "cos",
    "equals",
    "erfc",
    "exp",
    "expm1",
    "floor",
    "is_nan",
    "item",
    "largest",
    "log",
    "log1p",
    "loop",
    "matmul",
    "matmul_parameter",
    "maximum",
    "minimum",
    "outer",
    "outer_parts",
    "parameter",
    "part",
    "quadratic",
    "row",
    "row_sum",
    "sin",
    "sqrt",
    "walk",
    "where",
]


@dataclass(frozen=True, eq=False, slots=True)
class Expression:
    """An operation on other expressions; ``value`` is the array of a constant, or what else the operation needs."""

    op: str
    args: tuple["Expression", ...]
    width: int
    value: Any = None
    name: str = ""

    def called(self, name: str) -> "Expression":
        """The same under a name that a reader of the file finds."""
        return Expression(self.op, self.args, self.width, self.value, name)

    def __add__(self, other: Any) -> "Expression":
        return _binary("+", self, other)

    def __radd__(self, other: Any) -> "Expression":
        return _binary("+", other, self)

    def __sub__(self, other: Any) -> "Expression":
        return _binary("-", self, other)

    def __rsub__(self, other: Any) -> "Expression":
        return _binary("-", other, self)

    def __mul__(self, other: Any) -> "Expression":
        return _binary("*", self, other)

    def __rmul__(self, other: Any) -> "Expression":
        return _binary("*", other, self)

    def __truediv__(self, other: Any) -> "Expression":
        return _binary("/", self, other)

    def __rtruediv__(self, other: Any) -> "Expression":
        return _binary("/", other, self)

    def __neg__(self) -> "Expression":
        return _elementwise("neg", self)

    def __lt__(self, other: Any) -> "Expression":
        return _elementwise("<", self, other)

    def __le__(self, other: Any) -> "Expression":
        return _elementwise("<=", self, other)


_FOLDED: dict[str, Callable[..., Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "<": np.less,
    "<=": np.less_equal,
    "==": np.equal,
    "neg": np.negative,
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "floor": np.floor,
    "min": np.minimum,
    "max": np.maximum,
    "where": np.where,
}


def constant(value: Any, name: str = "") -> Expression:
    """A number, or as many as a row has."""
    array = np.asarray(value, dtype=np.float64)
    return Expression("constant", (), array.size if array.ndim else 1, array, name)


def parameter(value: Any, name: str) -> Expression:
    """A constant that learning on a device changes."""
    array = np.asarray(value, dtype=np.float64)
    return Expression("parameter", (), array.size if array.ndim else 1, array, name)


def row(width: int, name: str = "x") -> Expression:
    """What comes in, ``width`` numbers per row."""
    return Expression("input", (), width, None, name)


def _as_expression(value: Any) -> Expression:
    return value if isinstance(value, Expression) else constant(value)


def _elementwise(op: str, *given: Any) -> Expression:
    args = tuple(map(_as_expression, given))
    if op == "where" and args[0].op == "constant" and args[0].value.ndim == 0:
        return args[1] if args[0].value else args[2]
    width = max(arg.width for arg in args)
    if any(arg.width not in (1, width) for arg in args):
        raise ValueError(f"{op} of rows of {' and '.join(str(arg.width) for arg in args)} numbers")
    if op in _FOLDED and all(arg.op == "constant" for arg in args):
        return constant(_FOLDED[op](*(arg.value for arg in args)))
    return Expression(op, args, width)


def _binary(op: str, first: Any, second: Any) -> Expression:
    """The operation, without terms of 0 and factors of 1, as pieces of activations have them."""
    left, right = _as_expression(first), _as_expression(second)
    if op in "+-" and _is(right, 0.0):
        return left
    if op in "*/" and _is(right, 1.0):
        return left
    if op == "+" and _is(left, 0.0):
        return right
    if op == "*" and (_is(left, 1.0) or _is(right, 0.0)):
        return right
    if op == "*" and _is(left, 0.0):
        return left
    return _elementwise(op, left, right)


def _is(given: Expression, number: float) -> bool:
    return given.op == "constant" and given.value.ndim == 0 and float(given.value) == number


def _unary(op: str) -> Callable[[Any], Expression]:
    def apply(value: Any) -> Expression:
        return _elementwise(op, value)

    return apply


exp, expm1, log, log1p = map(_unary, ("exp", "expm1", "log", "log1p"))
sqrt, absolute, floor, sin, cos = map(_unary, ("sqrt", "abs", "floor", "sin", "cos"))
erfc, is_nan = map(_unary, ("erfc", "isnan"))


def minimum(left: Any, right: Any) -> Expression:
    """The smaller of two."""
    return _elementwise("min", left, right)


def maximum(left: Any, right: Any) -> Expression:
    """The larger of two."""
    return _elementwise("max", left, right)


def above(left: Any, right: Any) -> Expression:
    """Whether ``left > right``."""
    return _elementwise("<", right, left)


def equals(left: Any, right: Any) -> Expression:
    """Whether two numbers are equal."""
    return _elementwise("==", left, right)


def where(condition: Expression, yes: Any, no: Any) -> Expression:
    """One or the other; both are computed, and what can't be in one of them does no harm."""
    return _elementwise("where", condition, yes, no)


# Operations on whole rows.


def matmul(values: Expression, matrix: FloatArray, name: str = "") -> Expression:
    """Rows ``(n, k)`` times a matrix ``(k, width)``."""
    return Expression("matmul", (values, constant(matrix, name)), matrix.shape[1])


def matmul_parameter(values: Expression, matrix: FloatArray, name: str) -> Expression:
    """The same with a matrix that learning on a device changes."""
    return Expression("matmul", (values, parameter(matrix, name)), matrix.shape[1])


def quadratic(values: Expression, matrices: FloatArray, name: str = "") -> Expression:
    """``z'C z`` for each of several matrices, ``(width, k, k)``."""
    return Expression("quadratic", (values, constant(matrices, name)), len(matrices))


def row_sum(values: Expression) -> Expression:
    """Sum of the numbers of a row."""
    return values if values.width == 1 else Expression("sum", (values,), 1)


def largest(values: Expression) -> Expression:
    """The largest number of a row."""
    return values if values.width == 1 else Expression("largest", (values,), 1)


def outer(left: Expression, right: Expression) -> Expression:
    """All products of the numbers of two rows, those of the first number of ``left`` first."""
    return Expression("outer", (left, right), left.width * right.width)


def part(values: Expression, start: int, stop: int) -> Expression:
    """Some neighbouring numbers of a row."""
    if (start, stop) == (0, values.width):
        return values
    if values.op == "concat":  # one of the rows that it was put together from
        place = 0
        for own in values.args:
            if (place, place + own.width) == (start, stop):
                return own
            place += own.width
    return Expression("part", (values,), stop - start, start)


def concat(parts: Sequence[Expression]) -> Expression:
    """Several rows as one."""
    return parts[0] if len(parts) == 1 else Expression("concat", tuple(parts), sum(own.width for own in parts))


# Functions of single numbers, and loops in them.


@dataclass(frozen=True, eq=False)
class Function:
    """A formula of single numbers under a name: its arguments, and what it returns."""

    name: str
    doc: str
    arguments: tuple[Expression, ...]
    results: tuple[Expression, ...]

    @classmethod
    def of(cls, formula: Callable[..., tuple[Expression, ...]], name: str, arguments: Sequence[str]) -> "Function":
        """Build the graph of a Python function."""
        placeholders = tuple(Expression("argument", (), 1, None, argument) for argument in arguments)
        doc = (getattr(formula, "func", formula).__doc__ or "").strip().splitlines()[0]
        return cls(name, doc, placeholders, tuple(map(_as_expression, formula(*placeholders))))


def call(function: Function, *given: Any) -> tuple[Expression, ...]:
    """What a function returns, for each number of the rows that it is given."""
    args = tuple(map(_as_expression, given))
    called = Expression("call", args, max(arg.width for arg in args), function)
    return tuple(item(called, k) for k in range(len(function.results)))


def item(several: Expression, k: int) -> Expression:
    """One of several results of a function or loop."""
    return Expression("item", (several,), several.width, k)


@dataclass(frozen=True, eq=False)
class Loop:
    """Numbers that are changed again and again, once for each entry of some tables."""

    count: int
    tables: tuple[FloatArray, ...]  # (count,) each
    entries: tuple[Expression, ...]  # placeholders of the tables' entries
    carried: tuple[Expression, ...]  # placeholders of the numbers, as the step before has left them
    results: tuple[Expression, ...]

    @property
    def placeholders(self) -> tuple[Expression, ...]:
        """What only the body of the loop knows."""
        return (*self.entries, *self.carried)


def loop(
    step: Callable[..., tuple[Any, ...]], start: Sequence[Any], tables: Sequence[FloatArray] = (), count: int = 0
) -> tuple[Expression, ...]:
    """What is left of ``start`` after ``step(*numbers, *entries)`` for all entries of tables, or ``count`` times."""
    names = [name for name, own in signature(step).parameters.items() if own.kind is not own.VAR_POSITIONAL]
    names += ["value"] * (len(start) + len(tables) - len(names))
    carried = tuple(Expression("argument", (), 1, None, name) for name in names[: len(start)])
    entries = tuple(Expression("argument", (), 1, None, name) for name in names[len(start) :])
    results = tuple(map(_as_expression, step(*carried, *entries)))
    whole = Loop(len(tables[0]) if tables else count, tuple(tables), entries, carried, results)
    args = tuple(map(_as_expression, start))
    looped = Expression("loop", args, 1, whole)
    return tuple(item(looped, k) for k in range(len(args)))


def walk(results: Sequence[Expression]) -> Iterator[Expression]:
    """All expressions that results depend on, each once and after what it depends on; not those inside loops."""
    seen: set[int] = set()
    stack: list[tuple[Expression, bool]] = [(one, False) for one in reversed(results)]
    while stack:
        node, ready = stack.pop()
        if ready:
            yield node
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            inner = outer_parts(node.value) if node.op == "loop" else ()
            stack.extend((arg, False) for arg in reversed((*node.args, *inner)))


def outer_parts(body: Loop) -> tuple[Expression, ...]:
    """What the body of a loop needs that does not change in it."""
    changing = changing_parts(body)
    found: dict[int, Expression] = {}
    for node in walk(body.results):
        if id(node) in changing:
            for arg in (*node.args, *(outer_parts(node.value) if node.op == "loop" else ())):
                if id(arg) not in changing:
                    found[id(arg)] = arg
    for node in body.results:
        if id(node) not in changing:
            found[id(node)] = node
    return tuple(found.values())


def changing_parts(body: Loop) -> set[int]:
    """Identities of the expressions in a loop that change from step to step."""
    changing = {id(one) for one in body.placeholders}
    for node in walk(body.results):
        inner = outer_parts(node.value) if node.op == "loop" else ()
        if any(id(arg) in changing for arg in (*node.args, *inner)):
            changing.add(id(node))
    return changing
