"""Wrong labels: a tenth of the training labels are flipped; the log-loss is that of test labels that are right.

The models learn the rows once. Batch logistic regression learns the same flipped labels without a limit on the
passes, with its regularisation chosen by cross-validation. Splits 70/30, inputs standardised by the training part,
means over the splits.
"""

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks.classification import sets as bundled
from benchmarks.misbehaving.peers import class_scores
from benchmarks.misbehaving.study import Outcome, Study
from benchmarks.real_data import sets as real
from onepass import BayesianMLPClassifier, BayesianPerceptronClassifier
from onepass._typing import FloatArray

__all__ = ["BATCH", "NETWORK", "PERCEPTRON", "log_losses", "outcomes"]

SPLITS = 20
SHARE = 0.1
BATCH = "batch LogisticRegression"
PERCEPTRON, NETWORK = "perceptron", "network"


def outcomes(study: Study) -> list[Outcome]:
    """Every set; a network where a straight boundary is not enough."""
    breast, moons = (bundled()[name] for name in ("breast cancer", "moons, 1,000 rows"))
    phishing = next((X, y) for name, X, y in real() if name == "Phishing")
    tasks = {
        "breast cancer": (breast, [PERCEPTRON]),
        "moons": (moons, [PERCEPTRON, NETWORK]),
        "phishing": (phishing, [PERCEPTRON]),
    }
    found = []
    for name, ((X, y), learners) in tasks.items():
        runs = [log_losses(X, y, seed, SHARE, study.without()) for seed in range(study.size(SPLITS, 1))]
        losses = {learner: float(np.mean([run[learner] for run in runs])) for learner in runs[0]}
        batch = losses[BATCH]
        for learner in learners:
            found.append(
                Outcome(f"{name}, {learner}: log-loss", losses[learner], batch, BATCH, None, f"<= {batch:.4f}")
            )
    return found


def log_losses(X: FloatArray, y: FloatArray, seed: int, share: float, settings: dict[str, Any]) -> dict[str, float]:
    """Of ours and of the batch fit, on one split, a share of its training labels flipped."""
    train, test, right, truth = train_test_split(X, y, test_size=0.3, random_state=seed, stratify=y)
    scaler = StandardScaler().fit(train)
    rows, test = scaler.transform(train), scaler.transform(test)
    flipped = np.where(np.random.default_rng(seed).random(len(right)) < share, 1 - right, right)
    models: dict[str, Any] = {
        PERCEPTRON: BayesianPerceptronClassifier(standardize=False, **settings),
        NETWORK: BayesianMLPClassifier(standardize=False, passes=1, shuffle=False, **settings),
        BATCH: LogisticRegressionCV(
            scoring="neg_log_loss", max_iter=2000, l1_ratios=(0.0,), use_legacy_attributes=False
        ),
    }
    probabilities = {name: model.fit(rows, flipped).predict_proba(test) for name, model in models.items()}
    return {name: class_scores(truth, found)["log-loss"] for name, found in probabilities.items()}
