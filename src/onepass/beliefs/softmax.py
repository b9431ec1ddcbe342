"""What a row costs a softmax perceptron, and which correlations between its weights are worth that.

The classes of a row are tied together by little: blocks per class, each of which knows the correlations between the
weights of its class, predict nearly as well as the joint covariance of all weights, whose cost grows with the cube of
the number of classes (`python -m benchmarks.many_classes`). Independent weights predict clearly worse.
"""

__all__ = ["choose_softmax_covariance", "softmax_multiply_adds"]

# Row by row a joint covariance takes some 0.4 ms for so many multiply-adds; blocks, learned by products of matrices for
# many rows at once, about a millisecond.
_MOST_JOINT, _MOST_BLOCKS = 3_000_000, 12_000_000


def softmax_multiply_adds(covariance: str, n_features: int, n_classes: int) -> int:
    """Multiply-adds that a row costs, without the match of the label.

    Examples
    --------
    >>> [softmax_multiply_adds(covariance, 20, 100) for covariance in ("full", "neuron", "diagonal")]
    [259410000, 66150, 8400]
    """
    width = n_features + 1
    weights = n_classes * width
    if covariance == "full":
        # C z of every class; the logits' covariance; a step of the rank of the classes, and what small matrices take.
        return weights**2 + weights**2 * n_classes // 2 + 3 * weights * n_classes**2 // 2 + 3 * n_classes**3
    return 3 * weights * width // 2 if covariance == "neuron" else 4 * weights


def choose_softmax_covariance(n_features: int, n_classes: int) -> str:
    """The richest covariance whose rows are not too slow.

    Examples
    --------
    >>> [choose_softmax_covariance(*size) for size in ((64, 10), (20, 100), (784, 10), (10_000, 10))]
    ['full', 'neuron', 'neuron', 'diagonal']
    """
    for covariance, most in (("full", _MOST_JOINT), ("neuron", _MOST_BLOCKS)):
        if softmax_multiply_adds(covariance, n_features, n_classes) <= most:
            return covariance
    return "diagonal"
