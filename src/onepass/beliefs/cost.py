"""What learning a row costs with each form of the covariance, and which form that makes the default.

A richer form learns more from every row and takes longer. ``covariance="auto"`` takes the richest whose rows are not
too slow, in an order that keeps neighbours alike: where one feature, unit or class more leads to another form, neither
the errors nor the time of a row double, but for the last step below.

- The full covariance of all weights is the best there is, at their number squared for every output.
- With one or two outputs a covariance of low rank is next to it, at a cost that grows with the weights only; from
  10,000 to 100,000 weights its rank falls, so that a row takes about a millisecond, down to where a Kronecker
  covariance is as good.
- With more outputs a row tells of many directions at once, and networks have a Kronecker covariance.
- The classes of a perceptron are tied together by little: blocks per class predict nearly as well as the joint
  covariance, whose cost grows with the cube of their number (`python -m benchmarks.many_classes`).
- Where even these are too large, weights are independent. Only there may the errors double from one size to the next.
"""

from onepass.beliefs.layout import Layout

__all__ = ["choose_covariance", "default_rank", "multiply_adds"]

# Weights, and multiply-adds of a row, up to which networks have a full covariance: a millisecond with one output.
_FULL_WEIGHTS, _FULL_COST = 2_000, 24_000_000
# Of softmax perceptrons, for which blocks are as good: some 0.1 ms.
_JOINT_COST = 1_000_000
# Of the others, whose products are of matrices, for many rows at once: some five milliseconds, and of blocks per class
# one or two. Independent weights are so much worse than what networks have else that this may take longer.
_MOST_COST = {"low_rank": 40_000_000, "kronecker": 40_000_000, "neuron": 12_000_000}
_FEW_OUTPUTS = 2
_RANKED_NUMBERS, _LEAST_RANK, _MOST_RANK = 1_000_000, 10, 100


def default_rank(n_weights: int) -> int:
    """Directions that a covariance of low rank keeps.

    On random functions and on splits of regression sets that are not reported, 50 were up to a tenth worse than 100,
    and 150 gained a few per cent for half as much time again.

    Examples
    --------
    >>> [default_rank(size) for size in (500, 10_000, 20_000, 200_000)]
    [100, 100, 50, 10]
    """
    return min(max(_RANKED_NUMBERS // max(n_weights, 1), _LEAST_RANK), _MOST_RANK)


def multiply_adds(covariance: str, layout: Layout) -> int:
    """Multiply-adds that a row costs, without the match of its target.

    Examples
    --------
    >>> [multiply_adds(covariance, Layout((20, 100))) for covariance in ("full", "neuron", "diagonal")]
    [259410000, 66150, 8400]
    """
    n_outputs, weights = layout.widths[-1], layout.size
    if covariance == "full":
        # C z of every unit; the outputs' covariance; a step of the outputs' rank, and what small matrices take.
        return weights**2 + weights**2 * n_outputs // 2 + 3 * weights * n_outputs**2 // 2 + 3 * n_outputs**3
    if covariance == "low_rank":
        return 14 * weights * min(default_rank(weights), weights)
    if covariance == "kronecker":
        # The root over inputs is read twice and moved; that over outputs is projected, turned and moved by all outputs.
        return sum(
            (3 * cols**2 if isinstance(size, int) else cols * cols * rows)
            + 3 * n_outputs * (rows if isinstance(size, int) else rows * cols) ** 2
            + 4 * rows * cols
            for (rows, cols), size in zip(layout.shapes, layout.sizes[1:], strict=True)
        )
    if covariance == "neuron":
        return sum(3 * rows * cols**2 // 2 for rows, cols in layout.shapes)
    return 4 * weights


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
    n_outputs, has_hidden = layout.widths[-1], layout.n_layers > 1
    if layout.has_convolutions:
        return "kronecker"
    few = n_outputs <= _FEW_OUTPUTS
    most = _FULL_COST if has_hidden or few else _JOINT_COST
    if layout.size <= _FULL_WEIGHTS and multiply_adds("full", layout) <= most:
        return "full"
    blocks = "kronecker" if has_hidden else "neuron"
    for covariance in ("low_rank", blocks) if few else (blocks,):
        if multiply_adds(covariance, layout) <= _MOST_COST[covariance]:
            return covariance
    return "diagonal"
