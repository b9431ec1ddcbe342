"""Baselines: one-pass models of scikit-learn and River, at their best, evaluated alike: predict a row, then learn.

They get the same rows, encoded and scaled. What they leave to the user, the step size above all, is chosen on the
stream itself: see `onepass.evaluation.baselines.tuned`.
"""

from onepass._extras import is_installed
from onepass.evaluation.baselines.scikit_learn import mlp, sgd
from onepass.evaluation.baselines.tuned import Candidate, TunedBaseline

__all__ = ["Candidate", "TunedBaseline", "installed_baselines", "mlp", "sgd"]


def installed_baselines(n_classes: int, hidden: tuple[int, ...] = ()) -> list[TunedBaseline]:
    """Baselines of all libraries that are installed, for classes, or for numbers if ``n_classes`` is 0.

    For a model with hidden layers, a network with as many units is added.

    Examples
    --------
    >>> installed_baselines(0)[0].name
    'scikit-learn SGDRegressor'
    """
    found = [sgd(n_classes)]
    if hidden:
        found.append(mlp(n_classes, hidden))
    if is_installed("river"):
        from onepass.evaluation.baselines.river import linear, tree

        found += [linear(n_classes), tree(n_classes)]
    return found
