"""The compiled code: every formula once, and the loops over rows and weights, all compiled ahead of time.

The sources are Python in Cython's pure-Python mode. The ``.pxd`` file beside a module has its C types, as a header
does, and the ``.pyi`` file its types for Python. `special` has the Gaussian integrals, `moments` the moments of
the activations, `matches` the moment matches of likelihoods with one output, `vector_matches` those with several,
`step` all of a row's learning that is not linear algebra; the other modules have the loops over rows and weights.
Nothing here imports another package of onepass, and only the build (``setup.py``) knows how code is compiled.
"""

import os
from pathlib import Path

try:
    from onepass.engine.cpu import has_avx2

    _processor_is_newer = has_avx2()
except (ImportError, NameError):  # the sources stand here, but not what they compile to
    raise ImportError(
        "the compiled modules of onepass are missing: install it (`pip install .`), or in a checkout run `make build`"
    ) from None

# The kernels are built twice: see ``setup.py``. ONEPASS_PORTABLE=1 takes the build that runs everywhere, whose last
# bits differ.
_newer = Path(__file__).parent / "x86_64_v3"
if _newer.is_dir() and _processor_is_newer and os.environ.get("ONEPASS_PORTABLE") != "1":
    __path__.insert(0, str(_newer))
