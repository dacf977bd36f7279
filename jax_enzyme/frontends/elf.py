"""The symbol table of an ELF object: which symbols does it need from elsewhere, and which does it have for others?"""

from __future__ import annotations

import struct
from collections.abc import Iterator

_SYMBOL_TABLE = 2
_SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_UNDEFINED = 0
_LOCAL, _WEAK = 0, 2


def undefined_symbols(code: bytes) -> tuple[str, ...]:
    """The names that a 64-bit little-endian ELF object refers to and does not define, weak references left out."""
    names = {name for name, section, binding in _symbols(code) if section == _UNDEFINED and binding != _WEAK and name}
    return tuple(sorted(names))


def referenced_symbols(code: bytes) -> frozenset[str]:
    """The names that a 64-bit little-endian ELF object refers to and does not define, weak references among them."""
    return frozenset(name for name, section, _ in _symbols(code) if section == _UNDEFINED)


def defined_symbols(code: bytes) -> tuple[str, ...]:
    """The names that a 64-bit little-endian ELF object defines for others, weak ones too."""
    symbols = _symbols(code)
    return tuple(sorted(name for name, section, binding in symbols if section != _UNDEFINED and binding != _LOCAL))


def _symbols(code: bytes) -> Iterator[tuple[str, int, int]]:
    """Names, their sections, and who sees them. ValueError for another object."""
    if code[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not a 64-bit little-endian ELF object")
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
            yield code[first : code.index(b"\0", first)].decode(), section, info >> 4
