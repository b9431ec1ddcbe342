"""Which covariance a network has: by name, by the form of each layer, or the richest that is not too slow.

A richer covariance learns more from every row and takes longer. ``covariance="auto"`` takes the richest whose rows are
not too slow, in an order that keeps neighbours alike: where one feature, unit or class more leads to another one,
neither the errors nor the time of a row double, but for the last step below.

- The full covariance of all weights is the best there is, at their number squared for every output.
- With one or two outputs a covariance of low rank is next to it, at a cost that grows with the weights only; from
  10,000 to 100,000 weights its rank falls, so that a row takes about a millisecond, down to where a Kronecker
  covariance is as good.
- With more outputs a row informs many directions at once, and networks have a Kronecker covariance.
- The classes of a perceptron are tied together by little: blocks per class predict nearly as well as the joint
  covariance, whose cost grows with the cube of their number (`python -m benchmarks.many_classes`).
- Where even these are too large, weights are independent. Only there may the errors double from one size to the next.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Any, TypeAlias, TypeVar

from onepass._typing import FloatArray
from onepass._validation import one_of
from onepass.beliefs.layered import LayeredGaussian
from onepass.beliefs.names import COVARIANCES
from onepass.beliefs.network import NetworkBelief
from onepass.layers.layout import Layout

__all__ = [
    "BELIEFS",
    "Covariance",
    "belief_type",
    "choose_covariance",
    "count_numbers",
    "multiply_adds",
    "register",
    "start_belief",
]

# Weights, and multiply-adds of a row, up to which networks have a full covariance: a millisecond with one output.
_FULL_WEIGHTS, _FULL_COST = 2_000, 24_000_000
# Of softmax perceptrons, for which blocks are as good: some 0.1 ms.
_JOINT_COST = 1_000_000
_FEW_OUTPUTS = 2

Covariance: TypeAlias = str | Sequence[str]
"""The name of a covariance, or the form of each layer."""
Registered = TypeVar("Registered", bound=type[NetworkBelief])


def _imported(path: str) -> Any:
    module, name = path.split(".")
    return getattr(import_module(f"onepass.beliefs.{module}"), name)


BELIEFS: dict[str, type[NetworkBelief]] = {name: _imported(path) for name, path in COVARIANCES.items()}


def register(kind: Registered) -> Registered:
    """Let networks choose a covariance of your own by its name."""
    BELIEFS[kind.name] = kind
    return kind


def belief_type(covariance: Covariance, layout: Layout) -> type[NetworkBelief]:
    """The class of the belief that a user has chosen; a ValueError where it can't be about these layers."""
    kind: type[NetworkBelief] = LayeredGaussian
    if not isinstance(covariance, (tuple, list)):
        name = str(one_of(covariance, ("auto", *BELIEFS), "covariance"))
        kind = BELIEFS[choose_covariance(layout) if name == "auto" else name]
    kind.check_layout(layout, **_settings(covariance))
    return kind


def _settings(covariance: Covariance) -> dict[str, Any]:
    """Arguments of a belief besides its layout: the form of each layer, if a user gave it."""
    return {"forms": tuple(covariance)} if isinstance(covariance, (tuple, list)) else {}


def start_belief(covariance: Covariance, layout: Layout, mean: FloatArray, variance: FloatArray) -> NetworkBelief:
    """Make the belief of a user's choice, with independent weights."""
    return belief_type(covariance, layout)(layout, mean, variance, **_settings(covariance))


def count_numbers(covariance: Covariance, layout: Layout) -> int:
    """How many numbers a covariance has, before anything of its size is made."""
    return belief_type(covariance, layout).n_numbers(layout, **_settings(covariance))


def multiply_adds(covariance: Covariance, layout: Layout) -> int:
    """Multiply-adds that a row costs, without the match of its target.

    Examples
    --------
    >>> [multiply_adds(covariance, Layout((20, 100))) for covariance in ("full", "neuron", "diagonal")]
    [259410000, 66150, 8400]
    """
    return belief_type(covariance, layout).multiply_adds(layout, **_settings(covariance))


def choose_covariance(layout: Layout) -> str:
    """The richest covariance whose rows are not too slow: what ``"auto"`` means.

    Examples
    --------
    >>> networks = ((8, 50, 1), (100, 100, 1), (64, 100, 10), (784, 300, 10), (50_000, 50, 10))
    >>> [choose_covariance(Layout(sizes)) for sizes in networks]
    ['full', 'low_rank', 'kronecker', 'kronecker', 'diagonal']
    >>> [choose_covariance(Layout(sizes)) for sizes in ((20, 10), (20, 100), (784, 10), (10_000, 10))]
    ['full', 'neuron', 'neuron', 'diagonal']
    """
    few, has_hidden = layout.widths[-1] <= _FEW_OUTPUTS, layout.n_layers > 1
    if layout.shares_weights:
        return "kronecker"
    most = _FULL_COST if has_hidden or few else _JOINT_COST
    if layout.size <= _FULL_WEIGHTS and BELIEFS["full"].multiply_adds(layout) <= most:
        return "full"
    blocks = "kronecker" if has_hidden else "neuron"
    for covariance in ("low_rank", blocks) if few else (blocks,):
        kind = BELIEFS[covariance]
        if kind.multiply_adds(layout) <= kind.most_multiply_adds:
            return covariance
    return "diagonal"
