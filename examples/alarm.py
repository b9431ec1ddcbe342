"""An alarm for outliers and drift from the log predictive density: how much each row surprises the model.

The density of a row before it is learned is computed anyway when the row is learned. A row whose density is far below
the expected one is an outlier, and is not learned. When the median surprise over a window rises, the relation itself
has changed: a new model that starts at the alarm soon predicts better than the old one.
"""

import numpy as np

from onepass import BayesianPerceptron

N, CHANGE = 1_500, 1_000
OUTLIERS = (300, 555, 800)
WINDOW = 30


def stream(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X = rng.normal(size=(N, 3))
    before, after = X @ [1.0, -2.0, 0.5], X @ [1.0, 2.0, 0.5]
    y = np.where(np.arange(N) < CHANGE, before, after) + rng.normal(0.0, 0.3, N)
    y[list(OUTLIERS)] += 6.0
    return X, y


def expected_surprise(model: BayesianPerceptron, x: np.ndarray) -> float:
    """Expected surprise of a row that follows the model: the entropy of the predictive distribution."""
    seen = model.predict(x)
    return 0.5 + 0.5 * float(np.log(2.0 * np.pi * seen.var))


def main() -> None:
    X, y = stream(np.random.default_rng(0))
    model = BayesianPerceptron(3, "linear", noise="learn")
    outliers: list[int] = []
    excess: list[float] = []
    alarm = None
    for i, (x, target) in enumerate(zip(X, y, strict=True)):
        surprise = -float(model.log_predictive(x, target)) - expected_surprise(model, x)
        excess.append(surprise)
        # For a row that follows the model the excess is (z² - 1)/2 with z standard normal: 18 is about six deviations.
        if i > 50 and surprise > 18.0 and np.median(excess[-5:]) < 5.0:
            outliers.append(i)
            print(f"row {i}: an outlier, {surprise:.0f} nats above what was expected; not learned")
            continue
        model.learn(x, float(target))
        if alarm is None and i > 50 and float(np.median(excess[-WINDOW:])) > 1.0:
            alarm = i
            print(
                f"row {i}: drift, the last {WINDOW} rows surprise by {np.median(excess[-WINDOW:]):.1f} nats in median"
            )
            model = BayesianPerceptron(3, "linear", noise="learn")
    assert set(OUTLIERS) <= set(outliers)
    assert alarm is not None
    assert CHANGE < alarm < CHANGE + 2 * WINDOW
    print(
        f"{len(outliers)} outliers, drift {alarm - CHANGE} rows after it began; weights now {model.mean[1:].round(2)}"
    )


if __name__ == "__main__":
    main()
