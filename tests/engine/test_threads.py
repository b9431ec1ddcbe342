"""One BLAS thread for small products, and as many as before afterwards."""

from threadpoolctl import threadpool_info, threadpool_limits

from onepass.engine.threads import threads_for


def test_one_thread_for_small_products_and_those_before_afterwards() -> None:
    def threads() -> set[int]:
        return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

    with threadpool_limits(2, user_api="blas"):
        before = threads()
        for size in (0, 200):
            with threads_for(size):
                assert threads() == {1}
            assert threads() == before
        with threads_for(5000):
            assert threads() == before
