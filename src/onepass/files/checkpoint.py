"""Saving and loading models: files are written atomically, and checked completely when read.

A file is a safetensors file: the length of a JSON header in eight bytes, the header, the numbers. Its ``__metadata__``
holds the format's version, the model's class and parameters, the version of the library that wrote it, the names of
the features and a checksum of all of these and the arrays. Loading runs no code from the file, and allocates nothing
larger than the file before the file has been checked.
"""

import hashlib
import json
import os
import stat
from collections.abc import Callable
from io import BytesIO
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from onepass.files.atomic import write_atomically
from onepass.files.registry import exported, restored, savable, savable_names
from onepass.files.state import Arrays, Parameters

__all__ = [
    "FORMAT_VERSION",
    "CheckpointError",
    "class_in",
    "from_bytes",
    "load",
    "load_with_parameters",
    "save",
    "save_with_parameters",
    "to_bytes",
]

FORMAT_VERSION = 2
# A parsed JSON header can take thirty times its length, so this bounds the memory that a malicious file can claim.
_LONGEST_HEADER = 8 * 2**20
_DTYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "U8": "|u1", "BOOL": "|b1"}
_FIELDS = ("checksum", "class", "feature_names", "format_version", "library_version", "parameters")


class CheckpointError(ValueError):
    """Raised for a file from which no model can be loaded; the message says what is wrong with it."""


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a model to a file. An existing file is replaced only once the new one is completely on the disk.

    Parameters
    ----------
    model : a perceptron, network, fleet, estimator, bandit or River model of this library
    path : path of the file; ``.safetensors`` and ``.onepass`` are the usual extensions

    Examples
    --------
    >>> import os, tempfile, onepass
    >>> model = onepass.BayesianPerceptron(n_features=1).learn([[1.0], [-1.0]], [1, 0])
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> onepass.save(model, path)
    >>> onepass.load(path).n_seen
    2
    """
    write_atomically(Path(path), to_bytes(model))


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model from a file; it continues to learn exactly as the saved one would have.

    Raises
    ------
    CheckpointError
        If the file is truncated, corrupted, not a model file, of another format version, or contains numbers that no
        model can have.

    Examples
    --------
    >>> import os, tempfile, onepass
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> onepass.save(onepass.BayesianPerceptron(n_features=1).learn([[1.0], [-1.0]], [1, 0]), path)
    >>> onepass.load(path).learn([2.0], 1).n_seen
    3
    """
    return _loaded(path, _decoded)


def class_in(path: str | os.PathLike[str]) -> type:
    """The class of the model in a file, of which only the header is read.

    Raises
    ------
    CheckpointError
        If the header is not that of a model.

    Examples
    --------
    >>> import os, tempfile, onepass
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> onepass.save(onepass.BayesianPerceptron(n_features=1).learn([[1.0], [-1.0]], [1, 0]), path)
    >>> class_in(path).__name__
    'BayesianPerceptron'
    """
    with _opened(Path(path)) as file:
        try:
            return _class_of(_header(file, os.fstat(file.fileno()).st_size)[0])
        except CheckpointError as error:
            raise CheckpointError(f"{path}: {error}") from None


def load_with_parameters(path: str | os.PathLike[str]) -> tuple[Any, Parameters]:
    """Read a model, and the parameters of its file: those of the model and what `save_with_parameters` added."""
    found: tuple[Any, Parameters] = _loaded(
        path, lambda metadata, arrays: (_decoded(metadata, arrays), json.loads(metadata["parameters"]))
    )
    return found


def save_with_parameters(model: Any, path: str | os.PathLike[str], more: Parameters) -> None:
    """Write a model as `save` does, with further parameters in the file that are not part of the model."""
    parameters, arrays = exported(model)
    write_atomically(Path(path), _encoded(type(model).__name__, {**parameters, **more}, arrays))


def to_bytes(model: Any) -> bytes:
    """The content of the file that `save` would write."""
    name = getattr(model, "saved_as", type(model).__name__)
    exactly = not hasattr(model, "saved_as")  # a class that says so is in files what it is derived from
    known = name in savable_names() and (type(model) is savable(name) if exactly else isinstance(model, savable(name)))
    if not known:
        raise TypeError(
            f"model must be one of {', '.join(savable_names())}, got {name}; save the estimator inside a pipeline or "
            "a search on its own (pipeline[-1], search.best_estimator_), or the whole with joblib.dump"
        )
    return _encoded(name, *exported(model))


def from_bytes(content: bytes) -> Any:
    """The model whose `to_bytes` gave this content, checked as `load` checks a file."""
    return _read(BytesIO(content), len(content), _decoded)


def _loaded(path: str | os.PathLike[str], decode: Callable[[dict[str, str], Arrays], Any]) -> Any:
    with _opened(Path(path)) as file:
        try:
            return _read(file, os.fstat(file.fileno()).st_size, decode)
        except CheckpointError as error:
            raise CheckpointError(f"{path}: {error}") from None


def _read(file: Any, length: int, decode: Callable[[dict[str, str], Arrays], Any]) -> Any:
    metadata, table = _header(file, length)
    return decode(metadata, _arrays(file.read(length - file.tell()), table))


def _header(file: Any, length: int) -> tuple[dict[str, str], dict[str, Any]]:
    """The metadata and the table of arrays of a file, which is read up to its numbers."""
    header_length = int.from_bytes(file.read(8), "little")
    if length < 10 or header_length > length - 8:
        raise CheckpointError(
            f"it is not a model file of onepass (a safetensors file), or it is cut short: it has {length} bytes"
        )
    if header_length > _LONGEST_HEADER:
        raise CheckpointError(f"it has a header of {header_length} bytes; at most {_LONGEST_HEADER} are read")
    return _checked_header(file.read(header_length), length - 8 - header_length)


def _opened(path: Path) -> Any:
    if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would block
        raise CheckpointError(f"{path} is not a file")
    return path.open("rb")


def _encoded(name: str, parameters: Parameters, arrays: Arrays) -> bytes:
    from safetensors.numpy import save as to_bytes

    from onepass import __version__

    contiguous = {key: np.ascontiguousarray(array) for key, array in arrays.items()}
    parameters = dict(parameters)
    metadata = {
        "format_version": str(FORMAT_VERSION),
        "class": name,
        "library_version": __version__,
        "feature_names": json.dumps(parameters.pop("feature_names", None)),
        "parameters": json.dumps(parameters, allow_nan=False),
    }
    metadata["checksum"] = _checksum(metadata, contiguous)
    content = _in_order(to_bytes(contiguous, metadata))
    if int.from_bytes(content[:8], "little") > _LONGEST_HEADER:
        raise ValueError("the model's parameters and feature names are too long for a file: they take more than 8 MiB")
    return content


def _in_order(content: bytes) -> bytes:
    """Sort the entries of a file's header, so that equal models give equal files."""
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    metadata = dict(sorted(header.pop("__metadata__").items()))
    table = dict(sorted(header.items(), key=lambda item: (item[1]["data_offsets"], item[0])))
    text = json.dumps({"__metadata__": metadata, **table}, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the arrays begin at a multiple of eight bytes
    return len(text).to_bytes(8, "little") + text + content[end:]


def _checked_header(text: bytes, payload: int) -> tuple[dict[str, str], dict[str, Any]]:
    """Parse the metadata and the table of arrays, whose shapes and offsets must add up to ``payload`` bytes."""
    if not text.startswith(b"{"):
        raise CheckpointError("it has no JSON header, so it is not a model file of onepass")
    header = _json(text, "header")
    if not isinstance(header, dict) or not isinstance(header.get("__metadata__"), dict):
        raise CheckpointError("its header has no metadata, so it is not a model file of onepass")
    metadata = header.pop("__metadata__")
    version = metadata.get("format_version", "")
    if not isinstance(version, str) or not version.isdecimal() or len(version) > 9:
        raise CheckpointError("its header names no format version, so it is not a model file of onepass")
    if int(version) != FORMAT_VERSION:
        remedy = "upgrade onepass" if int(version) > FORMAT_VERSION else "learn the model again"
        raise CheckpointError(
            f"it has format version {version}, written by onepass {str(metadata.get('library_version'))[:20]!r}; this "
            f"onepass reads version {FORMAT_VERSION} only: {remedy}, or load it with the onepass that wrote it"
        )
    if set(metadata) != set(_FIELDS) or not all(isinstance(value, str) for value in metadata.values()):
        raise CheckpointError(
            f"its metadata must have the text fields {', '.join(_FIELDS)}, got {str(sorted(metadata))[:200]}"
        )
    end = 0
    for name, entry in sorted(header.items(), key=lambda item: _start(*item)):
        if entry["data_offsets"] != [end, end + _bytes(name, entry)]:
            raise CheckpointError(f"array {name[:40]!r} does not begin where the one before it ends")
        end = entry["data_offsets"][1]
    if end != payload:
        raise CheckpointError(f"its arrays take {end} bytes but {payload} are there: it is cut short or corrupted")
    return metadata, header


def _start(name: str, entry: Any) -> int:
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise CheckpointError(f"array {name[:40]!r} is not described by dtype, shape and data_offsets")
    offsets = entry["data_offsets"]
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(type(offset) is int for offset in offsets):
        raise CheckpointError(f"array {name[:40]!r} has invalid data_offsets")
    return int(offsets[0])


def _bytes(name: str, entry: dict[str, Any]) -> int:
    dtype, shape = entry["dtype"], entry["shape"]
    if not isinstance(dtype, str) or dtype not in _DTYPES:
        raise CheckpointError(f"array {name[:40]!r} has dtype {str(dtype)[:20]!r}; allowed are {', '.join(_DTYPES)}")
    if (
        not isinstance(shape, list)
        or len(shape) > 4
        or not all(type(extent) is int and 0 <= extent < 2**48 for extent in shape)
    ):
        raise CheckpointError(f"array {name[:40]!r} has the impossible shape {str(shape)[:60]}")
    return prod(shape) * np.dtype(_DTYPES[dtype]).itemsize


def _arrays(payload: bytes, table: dict[str, Any]) -> Arrays:
    try:
        return {
            name: np.ndarray(entry["shape"], _DTYPES[entry["dtype"]], payload, entry["data_offsets"][0])
            for name, entry in table.items()
        }
    except (TypeError, ValueError) as error:  # e.g. (0, 2**40, 2**40), or a file truncated while it was read
        raise CheckpointError(f"its arrays can't be read ({error})") from None


def _decoded(metadata: dict[str, str], arrays: Arrays) -> Any:
    if metadata["checksum"] != _checksum(metadata, arrays):
        raise CheckpointError("its checksum does not match: it is corrupted")
    cls = _class_of(metadata)
    parameters = _json(metadata["parameters"], "parameters")
    if not isinstance(parameters, dict):
        raise CheckpointError("its parameters are not a table")
    names = _json(metadata["feature_names"], "feature names")
    if names is not None:
        parameters["feature_names"] = names
    try:
        return restored(cls, parameters, arrays)
    except KeyError as error:
        raise CheckpointError(f"it lacks {error}") from error
    except Exception as error:  # whatever a malicious state breaks, the file is at fault
        raise CheckpointError(str(error) or type(error).__name__) from error


def _class_of(metadata: dict[str, str]) -> type:
    try:
        return savable(metadata["class"])
    except KeyError:
        name = metadata["class"][:40]
        raise CheckpointError(f"it holds a {name!r}, which this version of onepass does not know") from None


def _json(text: bytes | str, what: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"its {what} can't be read as JSON ({error})") from None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def _checksum(metadata: dict[str, str], arrays: Arrays) -> str:
    """SHA-256 of everything but the checksum, in an order that does not depend on how the file was written."""
    digest = hashlib.sha256()
    for field in sorted(set(metadata) - {"checksum"}):
        digest.update(json.dumps([field, metadata[field]]).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(json.dumps([name, array.dtype.str, list(array.shape)]).encode())
        digest.update(array.data if array.size else b"")
    return digest.hexdigest()
