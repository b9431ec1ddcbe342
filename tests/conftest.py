from hypothesis import settings

# The first call of compiled code takes as long as compiling it; how fast things are is for the benchmarks to say.
settings.register_profile("onepass", deadline=None)
settings.load_profile("onepass")
