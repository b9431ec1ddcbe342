"""One BLAS thread for small products, and as many as before afterwards."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import scipy.linalg  # noqa: F401 - so that there is a BLAS
from threadpoolctl import threadpool_info, threadpool_limits

from onepass.engine.threads import threads_for


def threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_one_thread_for_small_products_and_those_before_afterwards() -> None:
    with threadpool_limits(2, user_api="blas"):
        before = threads()
        for size in (0, 200):
            with threads_for(size):
                assert threads() == {1}
            assert threads() == before
        with threads_for(5000):
            assert threads() == before


def test_each_of_several_threads_has_one_until_its_product_is_done() -> None:
    meet = Barrier(2, timeout=30.0)

    def first() -> set[int]:
        with threads_for(0):
            meet.wait()
            meet.wait()
        found = threads()
        meet.wait()
        return found

    def second() -> set[int]:
        meet.wait()
        with threads_for(0):
            meet.wait()
            meet.wait()
            return threads()

    with threadpool_limits(2, user_api="blas"), ThreadPoolExecutor(2) as pool:
        before = threads()
        assert [one.result() for one in (pool.submit(first), pool.submit(second))] == [{1}, {1}]
        assert threads() == before
