"""What does not fit its type, in words: which field it is, what may be there, and what was.

The decoder tells where it stopped; what is allowed there is looked up in the type. A type whose limits are not obvious
describes itself by ``Meta(description=...)``, such as "a number between 0 and 1".
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect

__all__ = ["in_words"]

_PATH = re.compile(r" - at `(key in )?\$([^`]*)`$")
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")
_MISSING = re.compile(r"Object missing required field `(.*)`")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`")
_GOT = re.compile(r"Invalid (?:enum )?value (.*)")
_EXPECTED = re.compile(r"Expected `([^`]*)`, got `([^`]*)`")
_KINDS = {
    "bool": "true, false",
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "object": "an object",
    "array": "an array",
}


def in_words(error: msgspec.ValidationError, kind: Any, whole: str) -> tuple[str, str]:
    """What is wrong with something of a type, and the path to it, such as ``.columns[0].kind``.

    Parameters
    ----------
    error : as the decoder has raised it
    kind : the type
    whole : name of the thing itself

    Examples
    --------
    >>> class Line(msgspec.Struct, forbid_unknown_fields=True):
    ...     width: int = 1
    >>> try:
    ...     msgspec.convert({"with": 2}, Line)
    ... except msgspec.ValidationError as error:
    ...     in_words(error, Line, "the line")
    ("there is no field 'with'; there are width", '.with')
    """
    said, found = str(error), _PATH.search(str(error))
    said, path = _PATH.sub("", said), found[2] if found else ""
    types = _at(kind, path)
    name = path.removesuffix("[...]").rpartition(".")[2]
    name = whole + name if not name or name[0] == "[" else name
    name = f"a value of {name}" if path.endswith("[...]") else name
    path = path.replace("[...]", "")
    if (missing := _MISSING.fullmatch(said)) is not None:
        return f"{missing[1]} is missing", f"{path}.{missing[1]}"
    if (unknown := _UNKNOWN.fullmatch(said)) is not None:
        return _no_field(unknown[1], types), f"{path}.{unknown[1]}"
    return _unfit(name, said, types), path


def _no_field(name: str, types: list[Any]) -> str:
    fields = [field.encode_name for one in types if isinstance(one, inspect.StructType) for field in one.fields]
    words = f"there is no field {name!r}; there are {', '.join(dict.fromkeys(fields))}"
    return f'{words}; columns go into x: {{"x": {{"{name}": ...}}}}' if "x" in fields and name != "y" else words


def _unfit(name: str, said: str, types: list[Any]) -> str:
    described = [one.extra_json_schema["description"] for one in types if _is_described(one)]
    if described:
        return f"{name} must be {described[0]}"
    got = _GOT.fullmatch(said)
    allowed = [str(value) for one in types if isinstance(one, inspect.LiteralType) for value in one.values]
    if got is not None and allowed:
        return f"{name} must be {_either(allowed)}, got {got[1]}"
    expected = _EXPECTED.fullmatch(said)
    if expected is None:
        return f"{name}: {said[:1].lower()}{said[1:].replace('`', '')}"
    kinds = [_KINDS.get(one, one) for one in expected[1].split(" | ")]
    return f"{name} must be {_either(kinds)}, got {_KINDS.get(expected[2], expected[2])}".replace(
        "got true, false", "got a boolean"
    )


def _is_described(one: Any) -> bool:
    return isinstance(one, inspect.Metadata) and "description" in (one.extra_json_schema or {})


def _either(words: list[str]) -> str:
    return " or ".join(part for part in (", ".join(words[:-1]), words[-1]) if part)


def _at(kind: Any, path: str) -> list[Any]:
    """The types that are allowed at a path; more than one for a union."""
    types = list(_members(inspect.type_info(kind)))
    for field, _ in _STEP.findall(path):
        types = [member for one in types for inner in _inside(one, field) for member in _members(inner)]
    return types


def _members(one: Any) -> Iterator[Any]:
    yield one
    if isinstance(one, inspect.Metadata):
        yield from _members(one.type)
    elif isinstance(one, inspect.UnionType):
        for member in one.types:
            yield from _members(member)


def _inside(one: Any, field: str) -> Iterator[Any]:
    if isinstance(one, inspect.StructType) and field:
        yield from (inner.type for inner in one.fields if inner.encode_name == field)
        if one.tag_field == field:
            yield inspect.LiteralType((one.tag,))
    elif isinstance(one, inspect.ListType | inspect.VarTupleType) and not field:
        yield one.item_type
    elif isinstance(one, inspect.DictType) and not field:
        yield one.value_type
