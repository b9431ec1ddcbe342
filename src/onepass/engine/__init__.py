"""The compiled code: every formula once, and the loops over rows and weights, all compiled ahead of time.

The sources are Python in Cython's pure-Python mode. The ``.pxd`` file of a module has its C types, as a header does;
from both the build writes the ``.pyi`` file, its types for Python. `special` has the Gaussian integrals, `moments` the
moments of the activations, `matches` the moment matches of likelihoods with one output, `vector_matches` those with
several, `step` all of a row's learning that is not linear algebra; `named_rows` makes rows of dictionaries; the other
modules have the loops over rows and weights.
Nothing here imports another package of onepass, and only the build (``setup.py``) knows how code is compiled.
"""

import os
import platform
from importlib.util import find_spec
from pathlib import Path

_found = find_spec("onepass.engine.cpu")
if _found is None or str(_found.origin).endswith(".py"):  # the source alone, which says nothing of what is wrong
    raise ImportError(
        f"the compiled modules of onepass are not built for Python {platform.python_version()} on "
        f"{platform.machine()}: install onepass with pip, or in a clone of its repository run `make build`"
    )

from onepass.engine.cpu import has_avx2  # noqa: E402

# The kernels are built twice: see ``setup.py``. ONEPASS_PORTABLE=1 takes the build that runs everywhere, whose last
# bits differ.
_newer = Path(__file__).parent / "x86_64_v3"
if _newer.is_dir() and has_avx2() and os.environ.get("ONEPASS_PORTABLE") != "1":
    __path__.insert(0, str(_newer))
