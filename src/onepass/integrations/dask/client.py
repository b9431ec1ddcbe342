"""The Dask client that work is sent to: found or started, waited for, and asked where data are."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from distributed import Client, as_completed, default_client

__all__ = ["Progress", "connected", "placements", "progress_report", "send", "wait_for"]

Progress: TypeAlias = Callable[[int, int], None]


@contextmanager
def connected(client: Any) -> Iterator[Any]:
    """Use the client given, else the current one, else processes on this machine for the length of the block."""
    if client is None:
        try:
            client = default_client()
        except ValueError:
            with Client(threads_per_worker=1, dashboard_address=":0") as own:
                yield own
            return
    if not isinstance(client, Client):
        raise TypeError(f"client must be a distributed.Client, got {type(client).__name__}")
    yield client


def send(client: Any, value: Any) -> Any:
    """Make a future of a value: as a task, unlike scattered data, it is run again when its worker dies."""
    return client.submit(_identity, value, pure=False)


def placements(client: Any, futures: list[Any]) -> list[dict[str, Any]]:
    """Return options for ``submit`` that prefer the workers with each result in memory, but allow any other."""
    workers = client.who_has(futures)
    return [
        {"workers": list(workers[future.key]), "allow_other_workers": True} if workers.get(future.key) else {}
        for future in futures
    ]


def wait_for(futures: list[Any], report: Callable[[int], None], before: int) -> None:
    """Wait for all results and report their number, counted from ``before``; the first error is raised at once."""
    for done, future in enumerate(as_completed(futures), start=1):
        future.result()
        report(before + done)


@contextmanager
def progress_report(progress: Progress | bool, total: int) -> Iterator[Callable[[int], None]]:
    """Make the function that is given the number of finished tasks: the user's, one that draws a bar, or none."""
    if callable(progress):
        tell = progress
        yield lambda done: tell(done, total)
    elif progress:
        from rich.progress import Progress as Bar

        with Bar(transient=True) as bar:
            task = bar.add_task("learning shards", total=total)
            yield lambda done: bar.update(task, completed=done)
    else:
        yield lambda done: None


def _identity(value: Any) -> Any:
    return value
