import os
import subprocess
import sys

import onepass


def test_every_public_name_loads() -> None:
    for name in onepass.__all__:
        assert getattr(onepass, name) is not None
    assert dir(onepass) == sorted(onepass.__all__)


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import sys, onepass; print(*sorted({m.split('.')[0] for m in sys.modules} & {'scipy', 'numba', 'sklearn'}))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == ""


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "always", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


LEARN = "from onepass import BayesianPerceptron as B; b = B(1); b.learn([[1.0], [2.0]], [1, 0]); b.learn([1.0], 1)"


def test_without_numba_the_reference_learns_and_says_so_once() -> None:
    out = run(f"import sys; sys.modules['numba'] = None; {LEARN}; print(b.n_seen)")
    assert out.returncode == 0, out.stderr
    assert out.stdout.strip() == "3"
    assert out.stderr.count("Numba can't be imported") == 1


def test_a_cache_that_cannot_be_written_is_done_without() -> None:
    """No locator of Numba's finds a folder: the engine compiles all the same, and says so once."""
    block = "import numba.core.caching as c; c.CacheImpl._locator_classes = []"
    out = run(f"{block}; from onepass.engine.special import ndtr; print(round(ndtr(0.0), 3))")
    assert out.returncode == 0, out.stderr
    assert out.stdout.strip() == "0.5"
    assert out.stderr.count("can't be cached") == 1
