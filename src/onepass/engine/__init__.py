"""All arithmetic that loops, compiled ahead of time: every formula once, and the kernels that run over rows.

The sources are Python in Cython's pure-Python mode. A ``.pxd`` file beside a module gives its functions their C types,
as a header does; the module itself holds the formulas. `special` has the Gaussian integrals, `moments` the moments of
the activations, `matches` the moment matches of the likelihoods with one output and `vector_matches` those with several,
and the other modules have the loops over rows. Nothing here imports another package of onepass, and only the build
(``setup.py``) knows how code is compiled.
"""
