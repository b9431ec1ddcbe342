"""
Intervals where the noise grows
===============================

A network learns a sine whose noise grows from left to right, once with a single noise for all inputs and once with a
noise that depends on the input (``heteroscedastic``). 95 % of new targets should lie inside the 95 % interval, on the
left as on the right: the third panel shows that the single noise can't do that.
"""

import matplotlib.pyplot as plt
import numpy as np

from onepass import BayesianMLPRegressor

rng = np.random.default_rng(0)


def draw(n: int) -> tuple[np.ndarray, np.ndarray]:
    x = rng.uniform(-1.7, 1.7, n)
    return x[:, None], np.sin(2.0 * x) + 0.05 * 10 ** ((x + 1.7) / 3.4) * rng.normal(size=n)


X, y = draw(1500)
X_new, y_new = draw(20_000)
grid = np.linspace(-1.7, 1.7, 200)[:, None]
edges = np.linspace(-1.7, 1.7, 9)

figure, axes = plt.subplots(1, 3, figsize=(10.0, 3.2), layout="constrained")
for axis, kind, colour in zip(axes, ("gaussian", "heteroscedastic"), ("C1", "C0"), strict=False):
    model = BayesianMLPRegressor((30,), observation=kind, random_state=0).fit(X, y)
    low, high = model.predict_interval(grid, level=0.95)
    axis.plot(*draw(300), "o", color="black", ms=2, alpha=0.5)
    axis.fill_between(grid[:, 0], low, high, color=colour, alpha=0.3, lw=0)
    axis.set(title=f'observation="{kind}"', ylim=(-2.2, 2.2), xlabel="x")
    low, high = model.predict_interval(X_new, level=0.95)
    inside = (low <= y_new) & (y_new <= high)
    parts = np.digitize(X_new[:, 0], edges[1:-1])
    shares = [100.0 * inside[parts == part].mean() for part in range(8)]
    axes[2].step([*edges[:-1], edges[-1]], [*shares, shares[-1]], where="post", color=colour, label=kind)
axes[2].axhline(95.0, color="0.4", lw=1, ls="--")
axes[2].set(title="new targets inside, per cent", ylim=(65, 101), xlabel="x")
axes[2].legend()
plt.show()
