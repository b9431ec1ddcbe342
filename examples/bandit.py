"""Thompson sampling in a contextual bandit: which of four advertisements to show to whom.

One perceptron per advertisement learns who clicks on it. To choose, draw one set of weights from each belief and show
the advertisement with the highest probability of a click under its draw: an uncertain belief sometimes draws a high
probability, so its advertisement is tried; one that is certain to be worse is not. Greedy choice keeps the first
advertisement that does fairly well with a kind of visitor, and never learns that another does better. (If all visitors
are different, that alone makes the choices vary; then greedy choice can be better.)
"""

import numpy as np

from onepass import BayesianPerceptron

N_ARMS, N_KINDS, N_VISITORS = 4, 5, 3_000


def play(choose: str, seed: int) -> np.ndarray:
    """Cumulative regret, in expected clicks, after every visitor."""
    rng = np.random.default_rng(seed)
    tastes = rng.normal(size=(N_ARMS, N_KINDS))
    arms = [BayesianPerceptron(N_KINDS) for _ in range(N_ARMS)]
    regret = np.empty(N_VISITORS)
    for i in range(N_VISITORS):
        visitor = np.eye(N_KINDS)[rng.integers(N_KINDS)]
        clicks = 1.0 / (1.0 + np.exp(-tastes @ visitor))
        if choose == "thompson":
            values = [arm.sample_output(visitor, 1, rng)[0] for arm in arms]
        elif choose == "greedy":
            values = [arm.predict(visitor).mean for arm in arms]
        else:
            values = rng.random(N_ARMS).tolist()
        shown = int(np.argmax(values))
        arms[shown].learn(visitor, float(rng.random() < clicks[shown]))
        regret[i] = clicks.max() - clicks[shown]
    return regret.cumsum()


def main() -> None:
    print(f"clicks lost by number of visitors, mean of 5 runs\n{'':10}{'100':>8}{'1000':>8}{'3000':>8}")
    lost = {}
    for choose in ("thompson", "greedy", "random"):
        lost[choose] = np.mean([play(choose, seed) for seed in range(5)], axis=0)
        print(f"{choose:10}" + "".join(f"{lost[choose][n - 1]:8.1f}" for n in (100, 1000, 3000)))
    assert lost["thompson"][-1] < min(0.3 * lost["random"][-1], lost["greedy"][-1])
    late = lost["thompson"][-1] - lost["thompson"][999]
    print(f"Thompson sampling loses {late / 2000:.4f} clicks per visitor over the last 2,000.")


if __name__ == "__main__":
    main()
