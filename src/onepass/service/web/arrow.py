"""Arrow streams in and out of requests: one batch of plain columns, whose size in memory is known before it is read.

What comes from outside must not crash or flood the process. So compressed bodies are refused (their decoded size is
whatever they claim), columns have to be flat (views and runs could repeat one value for ever), dictionaries are decoded
only up to a limit, and offsets are checked before anybody follows them.
"""

import struct
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from onepass._messages import first_line
from onepass.service.errors import ProblemError

__all__ = ["read_batch", "write_batch"]

_MAX_COLUMNS = 10_000
_FLAT = (
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_date,
    pa.types.is_timestamp,
    pa.types.is_null,
)


def read_batch(body: bytes, limit: int) -> Any:
    """The rows of an Arrow stream as one `pyarrow.RecordBatch`.

    Parameters
    ----------
    body : the stream
    limit : bytes that the rows may have in memory

    Examples
    --------
    >>> read_batch(write_batch({"a": [1.0, 2.0]}), 1000).to_pydict()
    {'a': [1.0, 2.0]}
    """
    try:
        _refuse_compressed(body)
        table = pa.ipc.open_stream(body).read_all()
        _check_columns(table)
        table.validate(full=True)
        batch = _one_batch(table, limit)
    except (pa.ArrowException, OSError, EOFError, struct.error, ValueError) as error:  # also names that are not UTF-8
        raise ProblemError(
            400, "not an Arrow stream", f"the body can't be read as an Arrow stream: {first_line(error)}"
        ) from None
    if batch.num_rows == 0:
        raise ProblemError(422, "no rows", "at least one row is needed")
    return batch


def write_batch(columns: Mapping[str, Any]) -> bytes:
    """Columns as an Arrow stream with one batch; what is a number, and no column, is the same for all rows."""
    n = max(len(values) for values in columns.values() if not isinstance(values, int))
    arrays = [pa.repeat(values, n) if isinstance(values, int) else pa.array(values) for values in columns.values()]
    batch = pa.RecordBatch.from_arrays(arrays, names=list(columns))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _check_columns(table: Any) -> None:
    schema = table.schema
    if len(schema) > _MAX_COLUMNS:
        raise ProblemError(
            422, "too many columns", f"a batch may have at most {_MAX_COLUMNS:,} columns, got {len(schema):,}"
        )
    if len(set(schema.names)) < len(schema):
        twice = next(name for i, name in enumerate(schema.names) if name in schema.names[:i])
        raise ProblemError(422, "bad column", f"the column {twice!r} occurs twice", field=twice)
    for field in schema:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if not any(is_kind(kind) for is_kind in _FLAT):
            words = f"{field.name} must be a column of numbers, strings, booleans, dates or times, got {field.type}"
            raise ProblemError(422, "bad column", words, field=field.name)
    if all(pa.types.is_null(kind) for kind in schema.types):  # such rows take no memory, whatever their number
        raise ProblemError(422, "no values", "at least one column must have values")


def _one_batch(table: Any, limit: int) -> Any:
    columns, left = [], limit
    for column in table.columns:
        left -= _decoded_size(column)
        if left < 0:
            words = f"the rows may take at most {limit:,} bytes in memory; send fewer at once"
            raise ProblemError(413, "body too large", words, more={"limit": limit})
        plain = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        columns.append(plain.combine_chunks())
    arrays = [one.chunk(0) if isinstance(one, pa.ChunkedArray) else one for one in columns]
    return pa.RecordBatch.from_arrays(arrays, names=table.column_names)


def _decoded_size(column: Any) -> int:
    """Bytes of a column once its dictionary, if it has one, is written out."""
    if not pa.types.is_dictionary(column.type):
        return int(column.nbytes)
    kind, size = column.type.value_type, 0
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    for chunk in column.chunks:
        content = pc.sum(pc.binary_length(chunk.dictionary).take(chunk.indices)).as_py() if is_text else 0
        size += int(content or 0) + 32 * len(chunk)  # 32: the widest of the other kinds
    return size


def _refuse_compressed(body: bytes) -> None:
    for message in pa.ipc.MessageReader.open_stream(body):
        if message.type in ("record batch", "dictionary") and _is_compressed(message):
            words = "compressed batches are not accepted, because their size can't be known; send them uncompressed"
            raise ProblemError(415, "compressed Arrow stream", words)


def _is_compressed(message: Any) -> bool:
    """Whether a message says that its buffers are compressed, which pyarrow tells nobody.

    Its metadata is a flatbuffer (Arrow's format, Message.fbs): tables that refer to their fields by a list of offsets.
    """
    data = memoryview(message.metadata)
    header = _field(data, struct.unpack_from("<I", data, 0)[0], 2)  # Message.header
    if header is not None and message.type == "dictionary":
        header = _field(data, _follow(data, header), 1)  # DictionaryBatch.data
    return header is not None and _field(data, _follow(data, header), 3) is not None  # RecordBatch.compression


def _field(data: memoryview, table: int, index: int) -> int | None:
    """Where field number ``index`` of a table is; None if it is not set."""
    offsets = table - struct.unpack_from("<i", data, table)[0]
    if 4 + 2 * index >= struct.unpack_from("<H", data, offsets)[0]:
        return None
    offset = struct.unpack_from("<H", data, offsets + 4 + 2 * index)[0]
    return table + offset if offset else None


def _follow(data: memoryview, place: int) -> int:
    return int(place + struct.unpack_from("<I", data, place)[0])
