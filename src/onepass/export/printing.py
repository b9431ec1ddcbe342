"""Write expressions as source text: the part that is the same for Python and C.

A `Printer` goes through a graph in order, gives a name to everything that is used more than once, and writes the rest
where it is used. A language says how it declares a name, writes a loop and calls functions.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence

from onepass.export.expressions import Expression, Function, Loop, changing_parts, outer_parts, walk

__all__ = ["Printer", "functions_of"]

_PRECEDENCE = {"<": 1, "<=": 1, "==": 1, "+": 2, "-": 2, "*": 3, "/": 3}
_NEGATION, _ATOM = 4, 5
_LEAVES = ("constant", "parameter", "input", "argument")
_LONGEST = 60  # characters of what is written where it is used
_SEVERAL = ("call", "loop")


class Printer(ABC):
    """Source text of one function; a subclass knows the language."""

    def __init__(self, taken: Sequence[str] = ()) -> None:
        self.lines: list[str] = []
        self.names: dict[int, str] = {}
        self._loops: dict[int, list[str]] = {}  # names of the numbers that loops have left
        self._taken = set(taken)
        self._indent = 1
        self._kept: list[Expression] = []  # so that no other expression gets the identity of one that is named

    @abstractmethod
    def number(self, value: float) -> str:
        """A literal."""

    @abstractmethod
    def function(self, node: Expression, texts: list[str]) -> str:
        """A function call, with arguments that are written already."""

    @abstractmethod
    def leaf(self, node: Expression, index: str) -> str:
        """A constant, or what comes in."""

    @abstractmethod
    def declare(self, node: Expression, name: str) -> None:
        """Write the line that computes an expression and gives it a name."""

    @abstractmethod
    def write_loop(self, node: Expression, carried: list[str], entries: list[str]) -> None:
        """Write a loop, whose numbers have these names."""

    @abstractmethod
    def item(self, several: Expression, k: int, index: str) -> str:
        """One of the results of a function that was called."""

    def must_name(self, node: Expression) -> tuple[Expression, ...]:
        """Those arguments of an expression that have to have a name."""
        return ()

    def reference(self, name: str, node: Expression, index: str) -> str:
        """What was computed before."""
        return name

    def line(self, text: str) -> None:
        """Write a line."""
        self.lines.append("    " * self._indent + text)

    def fresh(self, wanted: str) -> str:
        """A name that nothing else has."""
        name, k = wanted or "t1", 1
        while name in self._taken:
            k += 1
            name = f"{wanted}_{k}" if wanted else f"t{k}"
        self._taken.add(name)
        return name

    def define(self, results: Sequence[Expression]) -> None:
        """Write all that the results need and that has a name of its own."""
        order = list(walk(results))
        self._kept += order
        uses = Counter(id(arg) for node in order for arg in node.args)
        needed = {id(arg) for node in order if node.op == "loop" for arg in outer_parts(node.value)}
        needed |= {id(arg) for node in order for arg in self.must_name(node)}
        self._define_each(order, uses + Counter(id(one) for one in results), needed)

    def _define_each(self, order: Sequence[Expression], uses: Counter[int], needed: set[int]) -> None:
        for node in order:
            if node.op in (*_LEAVES, "item", "part") or id(node) in self.names or id(node) in self._loops:
                continue
            if node.op == "loop":
                self._define_loop(node)
            elif self.is_named(node) or uses[id(node)] > 1 or id(node) in needed or len(self.text(node)) > _LONGEST:
                self._name(node)

    def is_named(self, node: Expression) -> bool:
        """Whether an expression has a name of its own, however often it is used."""
        return bool(node.name) or node.op in _SEVERAL

    def _name(self, node: Expression) -> None:
        name = self.fresh(node.name)
        self.declare(node, name)
        self.names[id(node)] = name

    def _define_loop(self, node: Expression) -> None:
        body: Loop = node.value
        carried = [self.fresh(one.name or "value") for one in body.carried]
        entries = [self.fresh(one.name) for one in body.entries]
        self.write_loop(node, carried, entries)
        self._loops[id(node)] = carried

    def loop_body(self, body: Loop, carried: list[str], entries: list[str]) -> list[str]:
        """Write what happens in a step of a loop; returns what the numbers become."""
        self.names |= {id(one): name for one, name in zip(body.carried, carried, strict=True)}
        self.names |= {id(one): name for one, name in zip(body.entries, entries, strict=True)}
        changing = changing_parts(body)
        order = [node for node in walk(body.results) if id(node) in changing]
        self._kept += order
        uses = Counter(id(arg) for node in order for arg in node.args)
        self._indent += 1
        self._define_each(order, uses + Counter(id(one) for one in body.results), set())
        texts = [self.text(one) for one in body.results]
        self._indent -= 1
        return texts

    def text(self, node: Expression, index: str = "") -> str:
        """An expression as it is written where it is used."""
        return self._written(node, index)[0]

    def _written(self, node: Expression, index: str) -> tuple[str, int]:
        """The text, and how tightly it binds."""
        if id(node) in self.names:
            return self.reference(self.names[id(node)], node, index), _ATOM
        if node.op == "constant" and node.value.ndim == 0:
            value = float(node.value)
            return self.number(value), _ATOM if value >= 0.0 else _NEGATION
        if node.op in _LEAVES:
            return self.leaf(node, index), _ATOM
        if node.op == "item":
            several = node.args[0]
            if several.op == "loop":
                return self._loops[id(several)][node.value], _ATOM
            return self.item(several, node.value, index), _ATOM
        if node.op == "neg":
            text, binds = self._written(node.args[0], index)
            return "-" + (text if binds >= _ATOM else f"({text})"), _NEGATION
        if node.op in _PRECEDENCE:
            own = _PRECEDENCE[node.op]
            (left, left_binds), (right, right_binds) = (self._written(arg, index) for arg in node.args)
            left = left if left_binds >= own else f"({left})"
            right = right if right_binds > own and not right.startswith("-") else f"({right})"
            return f"{left} {node.op} {right}", own
        return self.function(node, [self.text(arg, index) for arg in node.args]), _ATOM


def functions_of(results: Sequence[Expression]) -> list[Function]:
    """All functions that are called, each once and after those that it calls."""
    found: dict[int, Function] = {}

    def visit(nodes: Sequence[Expression]) -> None:
        for node in walk(nodes):
            if node.op == "loop":
                visit(node.value.results)
            if node.op == "call" and id(node.value) not in found:
                visit(node.value.results)
                found[id(node.value)] = node.value

    visit(results)
    return list(found.values())
