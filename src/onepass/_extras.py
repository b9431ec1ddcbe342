"""Which optional packages each extra of onepass installs, and the one sentence that says how to get a missing one.

The core needs few packages. Whatever needs more calls `require` before it imports them, so that a user reads what to
install and not which import failed.
"""

from importlib.util import find_spec

__all__ = ["PACKAGES", "MissingExtraError", "is_installed", "require"]

PACKAGES = {
    "cli": ("click", "pyarrow", "rich"),
    "client": ("httpx", "pyarrow"),
    "dask": ("dask", "distributed", "pandas", "pyarrow"),
    "duckdb": ("duckdb",),
    "excel": ("python_calamine",),
    "onnx": ("onnx",),
    "plots": ("matplotlib",),
    "postgres": ("psycopg",),
    "remote": ("fsspec",),
    "river": ("river",),
    "serve": ("httptools", "msgspec", "prometheus_client", "starlette", "uvicorn", "websockets"),
    "skpro": ("pandas", "skpro"),
    "sktime": ("pandas", "sktime"),
    "sql": ("adbc_driver_manager", "adbc_driver_postgresql", "pyarrow"),
}
"""The packages that an extra brings and its code imports, by the names under which they are imported."""


class MissingExtraError(ImportError):
    """An optional package is missing; the message says what to install."""


def require(extra: str, what: str, *packages: str) -> None:
    """Check that the packages of an extra are installed, without importing them.

    Parameters
    ----------
    extra : one of `PACKAGES`
    what : the feature that needs them, the subject of the sentence in the error
    packages : those of the extra that it needs, by default all

    Examples
    --------
    >>> require("cli", "the command 'onepass'")
    """
    for package in packages or PACKAGES[extra]:
        if not is_installed(package):
            raise MissingExtraError(f"{what} needs {package}: pip install 'onepass-learn[{extra}]'", name=package)


def is_installed(package: str) -> bool:
    """Whether a package can be imported, found out without importing it."""
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):  # blocked by an import hook; a module in sys.modules without a spec
        return False
