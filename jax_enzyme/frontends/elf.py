"""The symbol table of an ELF object, read for one purpose: which symbols does it need from elsewhere?"""

from __future__ import annotations

import struct
from collections.abc import Iterator

_SYMBOL_TABLE = 2
_SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_UNDEFINED = 0
_WEAK = 2


def undefined_symbols(code: bytes) -> tuple[str, ...]:
    """The names that a 64-bit little-endian ELF object refers to and does not define, weak references left out."""
    if code[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not a 64-bit little-endian ELF object")
    names = {name for name, section, weak in _symbols(code) if section == _UNDEFINED and not weak and name}
    return tuple(sorted(names))


def _symbols(code: bytes) -> Iterator[tuple[str, int, bool]]:
    (offset,) = struct.unpack_from("<Q", code, 0x28)
    size, count = struct.unpack_from("<HH", code, 0x3A)
    headers = [_SECTION_HEADER.unpack_from(code, offset + i * size) for i in range(count)]
    for _, kind, _, _, start, length, link, _, _, entry in headers:
        if kind != _SYMBOL_TABLE:
            continue
        strings = headers[link][4]
        for position in range(start, start + length, entry):
            name, info, _, section, _, _ = _SYMBOL.unpack_from(code, position)
            first = strings + name
            yield code[first : code.index(b"\0", first)].decode(), section, info >> 4 == _WEAK
