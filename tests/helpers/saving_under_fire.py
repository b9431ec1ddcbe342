"""Save in a child process, kill it at a random moment, load; many times.

Run by test_checkpoint in a process of its own. Prints how often a load found the model from
before, how often the new one.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np

import onepass


def main(path: Path, rounds: int) -> None:
    rng = random.Random(0)
    model = onepass.BayesianPerceptron(40, engine="reference").learn(np.ones((1, 40)), [1])
    onepass.save(model, path)
    new = 0
    for _ in range(rounds):
        before = onepass.load(path).n_seen
        child = os.fork()
        if child == 0:
            while True:
                model.learn(np.ones(40), 1)
                onepass.save(model, path)
        time.sleep(rng.uniform(0.0, 0.02))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        model = onepass.load(path)
        assert model.n_seen >= before
        new += model.n_seen > before
    print(rounds - new, new)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
