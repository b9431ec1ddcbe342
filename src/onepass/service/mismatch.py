"""What does not fit its type: a value is compared with the type step by step, down to the first part that does not.

The decoder only refuses it; this says which field it is, what is allowed there, and what was given. A type whose limits
are not obvious describes itself by ``Meta(description=...)``, such as "a number between 0 and 1".
"""

import math
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from operator import ge, gt, le, lt
from typing import Any, NamedTuple

from msgspec import inspect

__all__ = ["Mismatch", "find_mismatch"]

_KINDS: dict[type, tuple[str, ...]] = {
    inspect.BoolType: ("true", "false"),
    inspect.IntType: ("a whole number",),
    inspect.FloatType: ("a number",),
    inspect.StrType: ("a text",),
    inspect.NoneType: ("null",),
    inspect.DictType: ("an object",),
    inspect.StructType: ("an object",),
    inspect.ListType: ("an array",),
    inspect.VarTupleType: ("an array",),
    inspect.TupleType: ("an array",),
    inspect.DateTimeType: ('a date and time such as "2026-01-31T00:00:00Z"',),
}
_GIVEN = {
    bool: "a boolean",
    int: "a whole number",
    float: "a number",
    str: "a text",
    type(None): "null",
    dict: "an object",
    list: "an array",
}
_LIMITS = {"ge": ("at least", ge), "gt": ("above", gt), "le": ("at most", le), "lt": ("below", lt)}
_UNITS: dict[Any, str] = {str: "character", list: "value", dict: "field"}
_ARRAYS = (inspect.ListType, inspect.VarTupleType)


class Mismatch(NamedTuple):
    """The first part of a value that does not fit."""

    code: str
    """``missing_field``, ``unknown_field``, ``wrong_type``, ``not_allowed``, ``out_of_range`` or ``wrong_length``."""
    path: str
    """Of the part, such as ``.columns[0].kind``; empty: the value itself."""
    words: str
    names_value: bool = False
    """Whether the words say what was given."""


def find_mismatch(value: Any, kind: Any, whole: str) -> Mismatch | None:
    """What does not fit a type, with the words for it; None if all of it does.

    Parameters
    ----------
    value : as the JSON module decodes it
    kind : the type
    whole : name of the value itself

    Examples
    --------
    >>> from msgspec import Struct
    >>> class Line(Struct, forbid_unknown_fields=True):
    ...     width: int = 1
    >>> find_mismatch({"with": 2}, Line, "the line")
    Mismatch(code='unknown_field', path='.with', words="there is no field 'with'; there are width", names_value=False)
    """
    return _Place("", whole).mismatch(value, inspect.type_info(kind))


class _Place(NamedTuple):
    """Where a value is, and what it is called in messages."""

    path: str
    name: str
    within: str = ""  # the object that it is an entry of

    def field(self, name: str) -> "_Place":
        return _Place(f"{self.path}.{name}", name)

    def item(self, number: int) -> "_Place":
        return _Place(f"{self.path}[{number}]", f"{self.name}[{number}]")

    def entry(self) -> "_Place":
        return _Place(self.path, f"a value of {self.within or self.name}", self.within or self.name)

    def mismatch(self, value: Any, kind: Any) -> Mismatch | None:
        """What does not fit a type, which may be a union."""
        types = list(_members(kind))
        own = [self._own_mismatch(value, one) for one in types]
        plain = [one for one, wrong in zip(types, own, strict=True) if wrong is None]
        inside = [self._inside(value, one) for one in plain]
        if None in inside:
            return None
        if inside:
            return self._meant(value, plain, [one for one in inside if one is not None])
        if isinstance(value, float) and not math.isfinite(value):
            return Mismatch("out_of_range", self.path, f"a number in {self.within or self.name} is out of range")
        return self._outside(value, kind, types, [one for one in own if one is not None])

    def _own_mismatch(self, value: Any, kind: Any) -> Mismatch | None:
        """What does not fit one type, but for what is inside."""
        if isinstance(kind, inspect.AnyType | inspect.RawType):
            return None
        if isinstance(kind, inspect.LiteralType):
            fits = any(value == one and type(value) is type(one) for one in kind.values)
            return None if fits else self._refused("not_allowed", " or ".join(map(str, kind.values)))
        if not _is_of(value, kind):
            return self._refused("wrong_type", _either(list(_KINDS.get(type(kind), (type(kind).__name__,)))))
        return self._limits(value, kind)

    def _outside(self, value: Any, kind: Any, types: list[Any], own: list[Mismatch]) -> Mismatch:
        """A value that fits none of the types: what they allow together."""
        literals = [str(one) for kind in types if isinstance(kind, inspect.LiteralType) for one in kind.values]
        if described := _description(kind):
            more = [one for one in literals if one not in described]
            return self._refused("not_allowed", _either([described, *more]))
        limited = [one for one in own if one.code in ("out_of_range", "wrong_length")]
        if limited:
            return limited[0]
        kinds = list(dict.fromkeys([*literals, *(word for one in types for word in _KINDS.get(type(one), ()))]))
        is_named = bool(literals) and isinstance(value, str)
        shown = repr(value) if is_named else _GIVEN.get(type(value), type(value).__name__)
        found = self._refused("not_allowed" if literals else "wrong_type", f"{_either(kinds)}, got {shown}")
        return found._replace(names_value=is_named)

    def _meant(self, value: Any, types: list[Any], inside: list[Mismatch]) -> Mismatch:
        """Of what is wrong inside, the mismatch with the type that was meant: the one with the tag that was given."""
        tags = [str(one.tag) for one in types if isinstance(one, inspect.StructType) and one.tag_field]
        if len(tags) < 2:
            return inside[0]
        field = types[0].tag_field
        if (given := value.get(field)) in tags:
            return inside[tags.index(given)]
        return self.field(field)._refused("not_allowed", f"{_either(tags)}, got {given!r}")

    def _limits(self, value: Any, kind: Any) -> Mismatch | None:
        for name, (words, fits) in _LIMITS.items():
            limit = getattr(kind, name, None)
            if limit is not None and not fits(value, limit):
                return self._refused("out_of_range", f"{_KINDS[type(kind)][0]} {words} {limit}")
        pattern = getattr(kind, "pattern", None)
        if pattern is not None and not re.search(pattern, value):
            return self._refused("not_allowed", f"{_KINDS[type(kind)][0]} that matches {pattern}")
        least, most = getattr(kind, "min_length", None), getattr(kind, "max_length", None)
        if isinstance(kind, inspect.TupleType):
            least = most = len(kind.item_types)
        short = least is not None and len(value) < least
        if short or (most is not None and len(value) > most):
            limit = least if short else most
            words = "" if least == most else "at least " if short else "at most "
            unit = _UNITS[type(value)] + "s" * (limit != 1)
            return self._refused("wrong_length", f"{_KINDS[type(kind)][0]} of {words}{limit} {unit}")
        return None

    def _inside(self, value: Any, kind: Any) -> Mismatch | None:
        if isinstance(kind, inspect.StructType):
            return self._in_struct(value, kind)
        parts: Iterator[tuple[_Place, Any, Any]] = iter(())
        if isinstance(kind, _ARRAYS):
            parts = ((self.item(i), one, kind.item_type) for i, one in enumerate(value))
        elif isinstance(kind, inspect.TupleType):
            parts = ((self.item(i), one, kind.item_types[i]) for i, one in enumerate(value))
        elif isinstance(kind, inspect.DictType):
            keys, entries = ((one, kind.key_type) for one in value), ((one, kind.value_type) for one in value.values())
            parts = ((self.entry(), one, of) for one, of in (*keys, *entries))
        return next(filter(None, (place.mismatch(one, of) for place, one, of in parts)), None)

    def _in_struct(self, value: Mapping[str, Any], kind: Any) -> Mismatch | None:
        fields = {field.encode_name: field for field in kind.fields}
        if kind.tag_field is not None and value.get(kind.tag_field) != kind.tag:
            if kind.tag_field not in value:
                return Mismatch("missing_field", self.field(kind.tag_field).path, f"{kind.tag_field} is missing")
            return self.field(kind.tag_field)._refused("not_allowed", str(kind.tag))
        for name, one in value.items():
            if name not in fields and name != kind.tag_field and kind.forbid_unknown_fields:
                return Mismatch("unknown_field", self.field(name).path, _no_field(name, kind))
            found = self.field(name).mismatch(one, fields[name].type) if name in fields else None
            if found is not None:
                return found
        missing = next((name for name, field in fields.items() if field.required and name not in value), None)
        return None if missing is None else Mismatch("missing_field", self.field(missing).path, f"{missing} is missing")

    def _refused(self, code: str, allowed: str) -> Mismatch:
        return Mismatch(code, self.path, f"{self.name} must be {allowed}")


def _members(kind: Any) -> Iterator[Any]:
    """The types of a union; any other type is the only one."""
    if isinstance(kind, inspect.Metadata) and isinstance(kind.type, inspect.UnionType):
        yield from _members(kind.type)
    elif isinstance(kind, inspect.UnionType):
        for one in kind.types:
            yield from _members(one)
    else:
        yield kind.type if isinstance(kind, inspect.Metadata) else kind


def _description(kind: Any) -> str:
    """How a type describes itself, or the first of a union that does."""
    own = kind.extra_json_schema or {} if isinstance(kind, inspect.Metadata) else {}
    if "description" in own:
        return str(own["description"])
    inner = kind.type if isinstance(kind, inspect.Metadata) else kind
    return next(filter(None, map(_description, inner.types)), "") if isinstance(inner, inspect.UnionType) else ""


def _is_of(value: Any, kind: Any) -> bool:
    """Whether a value is of the plain type, whatever its limits."""
    if isinstance(value, bool) or isinstance(kind, inspect.BoolType):
        return isinstance(value, bool) and isinstance(kind, inspect.BoolType)
    if isinstance(kind, inspect.IntType):
        return isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if isinstance(kind, inspect.FloatType):
        return isinstance(value, int | float) and math.isfinite(value)
    if isinstance(kind, inspect.DateTimeType):
        return isinstance(value, str) and _is_datetime(value, kind.tz)
    plain: dict[Any, Any] = {
        inspect.StrType: str,
        inspect.NoneType: type(None),
        inspect.DictType: dict,
        inspect.StructType: dict,
        inspect.ListType: list,
        inspect.VarTupleType: list,
        inspect.TupleType: list,
    }
    return isinstance(value, plain.get(type(kind), object))


def _is_datetime(text: str, tz: bool | None) -> bool:
    """Whether a text is a date and time; ``tz`` says whether it must have a time zone, or have none."""
    try:
        has_zone = datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False
    return len(text) > 10 and tz in (None, has_zone)


def _no_field(name: str, kind: Any) -> str:
    fields = [*([kind.tag_field] if kind.tag_field else []), *(field.encode_name for field in kind.fields)]
    words = f"there is no field {name!r}; there are {', '.join(fields)}"
    return f'{words}; columns go into x: {{"x": {{"{name}": ...}}}}' if "x" in fields and name != "y" else words


def _either(words: list[str]) -> str:
    return " or ".join(part for part in (", ".join(words[:-1]), words[-1]) if part)
