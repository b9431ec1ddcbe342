"""Conditions on rows, such as ``price > 0 and region in ("north", "west")``, parsed into a small tree.

Their grammar is a part of Python's: comparisons, ``and``, ``or``, ``not``, ``in``, ``is None``, arithmetic, names of
columns, and backticks around names with spaces. Nothing of it is ever run as Python. What a column is compared with
says how its values are read, so that the answer does not depend on how a file stores them. Only the standard library is
needed here: a command can refuse a condition before anything heavy is loaded.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["Column", "Condition", "ConditionError", "Constant", "Node", "Operation"]

Kind = Literal["number", "text", "truth"]

_LONGEST = 2_000  # characters of a condition
_QUOTED_NAME = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|`([^`]*)`""")
_FIRST_STAND_IN = 0x4E00  # letters that take the place of names in backticks: identifiers of any length, one per name
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
}


class ConditionError(ValueError):
    """A condition that can't be understood; the message shows the place."""

    def __init__(self, text: str, place: int, what: str) -> None:
        super().__init__(f"\n    {text}\n    {' ' * place}^\n{what}")


@dataclass(frozen=True)
class Column:
    """The value of a column, read as whatever it is compared with."""

    name: str


@dataclass(frozen=True)
class Constant:
    """A number, a text, or true or false."""

    value: float | str | bool


@dataclass(frozen=True)
class Operation:
    """A sign between parts: arithmetic, a comparison of values of one kind, or a connection of conditions.

    Besides Python's signs there are ``"neg"``, ``"truth"`` (of a column that stands alone), ``"missing"`` and
    ``"text"`` (a column read as text).
    """

    sign: str
    parts: "tuple[Node, ...]"
    kind: Kind
    """Of the parts of a comparison; else of the result."""


Node = Column | Constant | Operation


@dataclass(frozen=True)
class Condition:
    """A condition on rows.

    Examples
    --------
    >>> Condition.parse("0 < price <= 100 and `car type` == 'van'").kinds()
    {'price': 'number', 'car type': 'text'}
    """

    text: str
    tree: Node

    @classmethod
    def parse(cls, text: str) -> "Condition":
        """Understand a condition, or raise a `ConditionError` that shows where that fails."""
        return cls(text, _Parser(text).tree())

    def kinds(self) -> dict[str, Kind]:
        """How the column of each name is read; as a text if it is so anywhere."""
        found: dict[str, Kind] = {}
        for name, kind in _uses(self.tree, "truth"):
            if found.setdefault(name, kind) != "text" and kind == "text":
                found[name] = kind
        return found


def _uses(node: Node, kind: Kind) -> Iterator[tuple[str, Kind]]:
    if isinstance(node, Column):
        yield node.name, kind
    elif isinstance(node, Operation):
        for part in node.parts:
            yield from _uses(part, node.kind)


class _Parser:
    """One condition on its way from a text to a tree."""

    def __init__(self, text: str) -> None:
        self.text = " ".join(text.splitlines()) or text
        self._names: dict[str, str] = {}  # by stand-in
        self._source = _QUOTED_NAME.sub(self._stand_in, self.text)

    def tree(self) -> Node:
        if len(self.text) > _LONGEST:
            raise ValueError(f"a condition can have at most {_LONGEST:,} characters, got {len(self.text):,}")
        if not self.text.strip():
            raise self._error(0, "a condition is expected, such as price > 0")
        try:
            # In brackets, so that leading blanks are not taken for indentation.
            tree = self._condition(ast.parse(f"({self._source}\n)", mode="eval").body)
        except SyntaxError as error:
            raise self._syntax_error(error) from None
        except (RecursionError, MemoryError):
            raise self._error(0, "the condition is too long, or has too many brackets inside each other") from None
        if next(_uses(tree, "truth"), None) is None:
            raise self._error(0, "the condition names no column")
        return tree

    def _stand_in(self, match: re.Match[str]) -> str:
        """A name in backticks as an identifier of the same length, so that places stay what they are."""
        if match[2] is None:
            return match[0]
        stand_in = chr(_FIRST_STAND_IN + len(self._names)) * len(match[0])
        self._names[stand_in] = match[2]
        return stand_in

    def _error(self, place: int, what: str) -> ConditionError:
        return ConditionError(self.text, min(max(place, 0), len(self.text)), what)

    def _wrong(self, node: ast.expr, what: str) -> ConditionError:
        return self._error(len(f"({self._source}".encode()[: node.col_offset].decode()) - 1, what)

    def _syntax_error(self, error: SyntaxError) -> ConditionError:
        place = (error.offset or 1) - 2 if error.lineno == 1 else len(self.text)
        source = re.sub(r"""(["']).*?\1""", lambda quoted: "_" * len(quoted[0]), self._source)
        alone = re.search(r"(?<![=<>!])=(?!=)", source)
        if alone is not None:
            return self._error(alone.start(), "a single = does not compare; write ==")
        word = re.search(r"\b(AND|OR|NOT|IN|IS|LIKE|BETWEEN)\b|<>|&&|\|\|", source)
        if word is not None:
            return self._error(word.start(), f"{word[0]} is unknown here; write and, or, not, in, ==, != as in Python")
        return self._error(place, "this is where the condition can't be understood; an example is price > 0 and km < 5")

    # What is allowed where a condition is expected.

    def _condition(self, node: ast.expr) -> Node:
        if isinstance(node, ast.BoolOp):
            sign = "and" if isinstance(node.op, ast.And) else "or"
            return Operation(sign, tuple(self._condition(part) for part in node.values), "truth")
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return Operation("not", (self._condition(node.operand),), "truth")
        if isinstance(node, ast.Compare):
            return self._comparisons(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr):
            raise self._wrong(node, "& and | are unknown here; write and, or")
        found = self._value(node)
        if isinstance(found, Column):
            return Operation("truth", (found,), "truth")
        if isinstance(found, Constant) and isinstance(found.value, bool):
            return found
        raise self._wrong(node, "a condition is expected here, such as price > 0")

    def _comparisons(self, node: ast.Compare) -> Node:
        """A comparison, or several in a chain such as ``0 < price < 5``."""
        pairs = zip([node.left, *node.comparators], node.ops, node.comparators, strict=False)
        found = tuple(self._comparison(left, sign, right) for left, sign, right in pairs)
        return found[0] if len(found) == 1 else Operation("and", found, "truth")

    def _comparison(self, left: ast.expr, sign: ast.cmpop, right: ast.expr) -> Node:
        if isinstance(sign, ast.In | ast.NotIn):
            return self._negated(self._membership(left, right), isinstance(sign, ast.NotIn))
        if isinstance(right, ast.Constant) and right.value is None:
            if not isinstance(sign, ast.Is | ast.IsNot):
                raise self._wrong(right, "a missing value equals nothing; write: is None, or: is not None")
            missing = Operation("missing", (self._column(left),), "text")
            return self._negated(missing, isinstance(sign, ast.IsNot))
        if isinstance(sign, ast.Is | ast.IsNot):
            raise self._wrong(right, "'is' is for missing values: is None, or: is not None; others compare with ==")
        parts = self._value(left), self._value(right)
        kind = self._common_kind(right, parts)
        if kind == "truth" and not isinstance(sign, ast.Eq | ast.NotEq):
            raise self._wrong(right, "true and false compare with == and !=")
        return Operation(_COMPARISONS[type(sign)], parts, kind)

    def _membership(self, item: ast.expr, values: ast.expr) -> Node:
        if not isinstance(values, ast.Tuple | ast.List | ast.Set) or not values.elts:
            raise self._wrong(values, 'a list of values is expected after in, such as ("north", "west")')
        parts = self._value(item), *(self._value(one) for one in values.elts)
        for one, part in zip(values.elts, parts[1:], strict=True):
            if not isinstance(part, Constant):
                raise self._wrong(one, "a list after in has texts or numbers only")
        return Operation("in", parts, self._common_kind(values, parts))

    @staticmethod
    def _negated(node: Node, negated: bool) -> Node:
        return Operation("not", (node,), "truth") if negated else node

    def _common_kind(self, node: ast.expr, parts: tuple[Node, ...]) -> Kind:
        """As what both sides are compared; two columns as numbers."""
        kinds: set[Kind] = {kind for part in parts if (kind := _kind_of(part)) is not None}
        if len(kinds) > 1:
            raise self._wrong(
                node,
                "a text and a number don't compare; texts need quotes, names of columns with spaces or signs in "
                "backticks",
            )
        return kinds.pop() if kinds else "number"

    # Values.

    def _value(self, node: ast.expr) -> Node:
        if isinstance(node, ast.Name):
            return self._column(node)
        if isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float | str):
            return Constant(node.value if isinstance(node.value, bool | str) else _as_float(node.value))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            operand = self._number(node.operand)
            if isinstance(node.op, ast.UAdd):
                return operand
            return (
                Constant(-float(operand.value))
                if isinstance(operand, Constant)
                else Operation("neg", (operand,), "number")
            )
        if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            return Operation(_ARITHMETIC[type(node.op)], (self._number(node.left), self._number(node.right)), "number")
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "text" and len(node.args) == 1:
            return Operation("text", (self._column(*node.args),), "text")
        raise self._wrong(
            node,
            "a column, a number or a text in quotes is expected here; conditions have comparisons, and, or, not, in, "
            "is None, + - * / // % **, and text(column)",
        )

    def _number(self, node: ast.expr) -> Node:
        found = self._value(node)
        if _kind_of(found) not in (None, "number"):
            raise self._wrong(node, "a number is expected here")
        return found

    def _column(self, node: ast.expr) -> Column:
        if not isinstance(node, ast.Name):
            raise self._wrong(node, "the name of a column is expected here")
        return Column(self._names.get(node.id, node.id))


def _kind_of(node: Node) -> Kind | None:
    """What a value is; None for a column, which is read as whatever it meets."""
    if isinstance(node, Column):
        return None
    if isinstance(node, Operation):
        return node.kind
    return "truth" if isinstance(node.value, bool) else "text" if isinstance(node.value, str) else "number"


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf")
