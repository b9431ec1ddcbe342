import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from onepass.models.fleet.index import IntIndex


@settings(max_examples=60)
@given(st.lists(st.tuples(st.booleans(), st.integers(-40, 40)), max_size=200), st.sampled_from([1, 4096, 2**40]))
def test_the_hash_table_is_a_dictionary(steps: list[tuple[bool, int]], stride: int) -> None:
    """Keys a multiple of the table's size apart come near each other, so that removal has to move some."""
    index, wanted, free = IntIndex(), {}, list(range(200, -1, -1))
    index._table = np.zeros(256, dtype=np.int32)
    for adding, number in steps:
        key = number * stride
        if adding and key not in wanted:
            wanted[key] = free.pop()
            index.put(np.array([key]), np.array([wanted[key]]))
        elif not adding and key in wanted:
            index.remove(np.array([wanted[key]]))
            free.append(wanted.pop(key))
        everyone = np.arange(-40, 41) * stride
        assert index.find(everyone).tolist() == [wanted.get(int(one), -1) for one in everyone]


def test_the_hash_table_grows() -> None:
    index, keys = IntIndex(), np.random.default_rng(0).integers(-(2**62), 2**62, size=100_000)
    for part in np.array_split(np.arange(100_000), 9):
        index.put(keys[part], part)
    assert (index.find(keys) == np.arange(100_000)).all()
    assert (index.find(keys + 1) == -1).all()
