from hypothesis import HealthCheck, settings

# The first call of compiled code takes as long as compiling it; how fast things are is for the benchmarks to say.
settings.register_profile("onepass", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("onepass")
