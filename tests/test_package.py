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
