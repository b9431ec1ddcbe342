"""Which of two builds of the kernels a processor can run."""

from pathlib import Path

from onepass.engine.cpu import has_avx2


def test_the_processor_is_asked_as_the_system_does() -> None:
    described = Path("/proc/cpuinfo")
    if described.exists():
        flags = set(described.read_text().split())
        assert has_avx2() == ({"avx2", "fma", "bmi1", "bmi2"} <= flags)
    assert has_avx2() in (True, False)
