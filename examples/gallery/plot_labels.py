"""
Classification: a probability and its uncertainty
=================================================

A network learns two classes from three hundred labels in one pass. On the left is the probability of a 1, on the right
how uncertain that probability itself is. Between the classes the model knows that both are about equally likely; far
from all data it does not know the probability.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from onepass import BayesianMLPClassifier

X, y = make_moons(300, noise=0.2, random_state=0)
model = BayesianMLPClassifier((30,), members=3, random_state=0).fit(X, y)

across, up = np.meshgrid(np.linspace(-2.5, 3.5, 90), np.linspace(-2.0, 2.5, 80))
probability, std = model.predict_proba(np.column_stack([across.ravel(), up.ravel()]), return_std=True)

figure, axes = plt.subplots(1, 2, figsize=(9.0, 3.4), sharey=True, layout="constrained")
shown = (("probability of a 1", probability[:, 1], "RdBu_r"), ("its standard deviation", std[:, 1], "viridis"))
for axis, (title, values, colours) in zip(axes, shown, strict=True):
    drawn = axis.contourf(across, up, values.reshape(across.shape), levels=20, cmap=colours)
    axis.scatter(*np.transpose(X), c=y, cmap="RdBu_r", edgecolor="white", s=14, lw=0.5)
    axis.set(title=title, xlabel="$x_1$")
    figure.colorbar(drawn, ax=axis)
axes[0].set_ylabel("$x_2$")
plt.show()
