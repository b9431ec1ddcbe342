"""A perceptron learns the classification task of the paper's Section V-B, one point at a time.

Points fall anywhere in [-3, 3] x [-3, 3]; those above the diagonal x1 + x2 = 0 are of class 1. The prior mean [-1, 0]
points the wrong way on purpose.
"""

import numpy as np

from onepass import BayesianPerceptron


def main() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(25, 2))
    y = (X.sum(axis=1) > 0).astype(float)
    X_test = rng.uniform(-3, 3, size=(10_000, 2))
    y_test = X_test.sum(axis=1) > 0

    bp = BayesianPerceptron(n_features=2, bias=False, mean=[-1.0, 0.0], cov=np.eye(2))
    print("points   accuracy on new points   weights")
    for n in range(len(X) + 1):
        if n in (0, 1, 3, 5, 10, 25):
            accuracy = np.mean((bp.predict(X_test).mean > 0.5) == y_test)
            weights = "  ".join(f"{m:+.2f} ± {s:.2f}" for m, s in zip(bp.mean, np.sqrt(np.diag(bp.cov)), strict=True))
            print(f"{n:6d}   {accuracy:22.1%}   {weights}")
        if n < len(X):
            bp.learn(X[n], y[n])


if __name__ == "__main__":
    main()
