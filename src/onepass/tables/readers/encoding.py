"""The encoding of a text: found out from its bytes, and turned into UTF-8 as it is read.

A byte order mark says UTF-8 or UTF-16. Without one, bytes that are valid UTF-8 are UTF-8. The first part of a file with
bytes beyond ASCII decides: if they are not UTF-8, the file is taken for Windows-1252, which agrees with Latin-1 in all
that is printable there. Up to that part both readings are the same, so nothing has to be read twice.

Bytes that the encoding does not have become a byte that no UTF-8 has, and cost the line they are in.
"""

import codecs
from collections.abc import Callable, Iterator

__all__ = ["BOM", "decoded_as", "encoding_of", "has_carriage_returns_only", "with_line_feeds"]

BOM = codecs.BOM_UTF8
_LOST = "\udcff"  # stands for bytes that can't be decoded; as "surrogateescape" writes it, it is the byte 0xff
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_WINDOWS_1252 = "".join(bytes([i]).decode("cp1252", "ignore") or chr(i) for i in range(256))  # gaps as in Latin-1

codecs.register_error("onepass.lost", lambda error: (_LOST, getattr(error, "end", 0)))


def encoding_of(head: bytes) -> str | None:
    """The encoding that the first bytes of a text show for sure; None if the rest has to be seen.

    Examples
    --------
    >>> encoding_of("a,b".encode("utf-16")), encoding_of("a,b".encode("utf-16-le")), encoding_of(b"a,b")
    ('utf-16', 'utf-16-le', None)
    """
    for mark, name in _MARKS:
        if head.startswith(mark):
            return name
    some = head[:256]
    if len(some) >= 4:  # mostly ASCII in UTF-16 without a mark: nearly every other byte is 0
        for name, zeros, others in (("utf-16-le", some[1::2], some[::2]), ("utf-16-be", some[::2], some[1::2])):
            if zeros.count(0) > 0.7 * len(zeros) and 0 not in others:
                return name
    return None


def decoded_as(encoding: str | None, tell: Callable[[str], None]) -> Callable[[Iterator[bytes]], Iterator[bytes]]:
    """A function that turns the parts of a text into UTF-8, without a byte order mark.

    Parameters
    ----------
    encoding : as Python names it; None: UTF-8 or, where its bytes are none, Windows-1252
    tell : is called with the name of an encoding that was found out while reading
    """
    if encoding is None:
        return lambda parts: _found_out(_without_mark(parts), tell)
    if codecs.lookup(encoding).name in ("utf-8", "ascii", "utf-8-sig"):
        return _without_mark
    return lambda parts: _recoded(parts, encoding)


def _without_mark(parts: Iterator[bytes]) -> Iterator[bytes]:
    begin = b""
    for part in parts:
        begin += part
        if len(begin) >= len(BOM) or not BOM.startswith(begin):
            break
    yield begin.removeprefix(BOM)
    yield from parts


def _recoded(parts: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)("onepass.lost")
    for part in parts:
        yield decoder.decode(part).encode("utf-8", "surrogateescape")
    yield decoder.decode(b"", final=True).encode("utf-8", "surrogateescape")


def _found_out(parts: Iterator[bytes], tell: Callable[[str], None]) -> Iterator[bytes]:
    held = b""  # the beginning of a character that goes on in the next part
    for part in parts:
        text = held + part
        if text.isascii():
            held = b""
            yield text
            continue
        end = _end_of_characters(text)
        text, held = text[:end], text[end:]
        if text.isascii():
            yield text
            continue
        if _is_utf8(text):
            yield text + held
            yield from parts
            return
        tell("Windows-1252")
        yield _from_windows_1252(text + held)
        yield from map(_from_windows_1252, parts)
        return
    if held:
        tell("Windows-1252")
        yield _from_windows_1252(held)


def _end_of_characters(text: bytes) -> int:
    """Where the last character ends that is whole, if it is UTF-8: up to three bytes may wait for their rest."""
    for back in range(1, min(4, len(text)) + 1):
        byte = text[-back]
        if byte < 0x80:
            return len(text)
        if byte >= 0xC0:  # the first of 2, 3 or 4
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(text) - back if back < needed else len(text)
    return len(text)


def _is_utf8(text: bytes) -> bool:
    """Whether more characters beyond ASCII are UTF-8 than bytes are not: a damaged line makes no other encoding."""
    try:
        text.decode()
        return True
    except UnicodeDecodeError:
        kept = text.decode("utf-8", "ignore")
        lost = len(text.decode("utf-8", "surrogateescape")) - len(kept)
        return len(kept) - len(kept.encode("ascii", "ignore")) > lost


def _from_windows_1252(text: bytes) -> bytes:
    return text if text.isascii() else codecs.charmap_decode(text, "strict", _WINDOWS_1252)[0].encode()


def has_carriage_returns_only(head: bytes) -> bool:
    r"""Whether lines end as they did on old Macs.

    Examples
    --------
    >>> has_carriage_returns_only(b"a,b\r1,2\r"), has_carriage_returns_only(b"a,b\r\n")
    (True, False)
    """
    return b"\n" not in head and b"\r" in head.rstrip(b"\r")


def with_line_feeds(parts: Iterator[bytes]) -> Iterator[bytes]:
    """Lines that end with a line feed in place of a carriage return."""
    return (part.replace(b"\r", b"\n") for part in parts)
