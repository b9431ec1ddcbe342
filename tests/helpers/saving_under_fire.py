"""Save in a child process, kill it at a random moment, load; many times.

Run by test_checkpoint in a process of its own. Prints how often a load found the model from before, how often the new
one. The random sleep is the moment of the kill; in every other round it begins when the child has saved once, so that
there are new models however busy the machine is.
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
    model = onepass.BayesianPerceptron(40, kernel="reference").learn(np.ones((1, 40)), [1])
    onepass.save(model, path)
    new = 0
    for round_number in range(rounds):
        before = onepass.load(path).n_seen
        saved, tell = os.pipe()
        child = os.fork()
        if child == 0:
            while True:
                model.learn(np.ones(40), 1)
                onepass.save(model, path)
                os.write(tell, b"s")
        if round_number % 2:
            os.read(saved, 1)
        time.sleep(rng.uniform(0.0, 0.02))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(saved)
        os.close(tell)
        model = onepass.load(path)
        assert model.n_seen >= before
        new += model.n_seen > before
    print(rounds - new, new)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
