"""What correlations between the weights of many features are worth, and what they cost: where "auto" drops them.

    python -m benchmarks.many_features          # half a minute

The data are those that scikit-learn has on board, with all products of up to so many features as features. Two thirds
of the rows are learned, the others predicted: numbers are scored by the root mean square error over their standard
deviation, labels by the log loss.
"""

import time
import warnings
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from onepass import BayesianPerceptronClassifier, BayesianPerceptronRegressor
from onepass._typing import FloatArray


def products(X: FloatArray, degree: int) -> FloatArray:
    """All products of up to so many features, standardised."""
    scaled = StandardScaler().fit_transform(X[:, X.std(axis=0) > 0.0])
    made = PolynomialFeatures(degree, include_bias=False).fit_transform(scaled)
    return np.asarray(StandardScaler().fit_transform(made))


def compare(name: str, X: FloatArray, y: Any, model: Any) -> None:
    """Print time and score of both forms of the covariance."""
    order, n = np.random.default_rng(0).permutation(len(X)), len(X) * 2 // 3
    learned, asked = order[:n], order[n:]
    for covariance in ("full", "diagonal"):
        begin = time.process_time()
        fitted = model(covariance=covariance).fit(X[learned], y[learned])
        milliseconds = 1e3 * (time.process_time() - begin) / n
        if hasattr(fitted, "predict_proba"):
            chance = fitted.predict_proba(X[asked])[:, 1]
            score = -float(np.log(np.maximum(np.where(y[asked], chance, 1.0 - chance), 1e-12)).mean())
        else:
            score = float(np.sqrt(np.square(fitted.predict(X[asked]) - y[asked]).mean()) / y[learned].std())
        print(f"{name:28s} {X.shape[1]:6d} {covariance:10s} {milliseconds:10.2f} {score:8.3f}", flush=True)


def main() -> None:
    """Compare on all data."""
    warnings.simplefilter("ignore")
    print(f"{'':28s} {'features':>6s} {'covariance':10s} {'ms per row':>8s} {'score':>8s}")
    diabetes, cancer, digits = load_diabetes(), load_breast_cancer(), load_digits()
    for degree in (3, 4, 5):
        X = products(diabetes.data, degree)
        compare(f"diabetes, degree {degree}", X, diabetes.target, BayesianPerceptronRegressor)
    compare("digits, odd, degree 2", products(digits.data, 2), digits.target % 2 == 1, BayesianPerceptronClassifier)
    for degree in (2, 3):
        X = products(cancer.data, degree)
        compare(f"breast cancer, degree {degree}", X, cancer.target == 1, BayesianPerceptronClassifier)


if __name__ == "__main__":
    main()
