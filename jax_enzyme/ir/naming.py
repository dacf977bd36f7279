"""Names as they are printed: quoting, numbers for what has no name, and a suffix for what shares one."""

from __future__ import annotations

import re
from collections.abc import Iterable

from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.values import GlobalValue, Value

_PLAIN = re.compile(r"[-a-zA-Z$._][-a-zA-Z$._0-9]*")
_LONGEST = 200
"""Names are made of names: of functions that were inlined, of blocks that edges lead to and from. LLVM reads none of a
value that has more than 1024 characters."""
_UNPRINTABLE = re.compile(r"[^ !#-\[\]-~]")


def escape(text: str) -> str:
    r"""The inverse of `lexer.unescape`: `\xx` for what cannot stand in a quoted string."""
    return _UNPRINTABLE.sub(lambda m: "".join(f"\\{byte:02X}" for byte in _bytes(m[0])), text)


def _bytes(character: str) -> bytes:
    return character.encode("latin-1" if ord(character) < 256 else "utf-8")


def quoted(name: str) -> str:
    """A name without its sigil, in quotes where LLVM needs them."""
    if _PLAIN.fullmatch(name):
        return name
    return f'"{escape(name.encode("utf-8", "surrogateescape").decode("latin-1"))}"'


def local_names(function: Function) -> dict[Value, str]:
    """The printed name (with `%`) of every argument, block and instruction that has a value."""
    names: dict[Value, str] = {}
    used: set[str] = set()
    counts: dict[str, int] = {}
    number = 0
    for value in _locals(function):
        name = value.name
        if not name:
            names[value] = f"%{number}"
            number += 1
            continue
        if len(name) > _LONGEST:
            name = f"{name[: _LONGEST // 2]}..{name[-_LONGEST // 2 :]}"
        if name in used:
            name = _fresh(name, used, counts)
        used.add(name)
        names[value] = "%" + quoted(name)
    return names


def _locals(function: Function) -> Iterable[Value]:
    yield from function.arguments
    for block in function.blocks:
        yield block
        for instruction in block.instructions:
            if instruction.type is not T.VOID and not isinstance(instruction.type, T.VoidType):
                yield instruction


def _fresh(name: str, used: set[str], counts: dict[str, int]) -> str:
    """`name` with the first number that is free; `counts` are the numbers below which none is."""
    count = counts.get(name, 1)
    while f"{name}.{count}" in used:
        count += 1
    counts[name] = count
    return f"{name}.{count}"


def global_names(module: Module) -> dict[Value, str]:
    """The printed name (with `@`) of every global; those named by a number are numbered again, in order."""
    names: dict[Value, str] = {}
    number = 0
    for value in _globals(module):
        if value.name.isdigit():
            names[value] = f"@{number}"
            number += 1
        else:
            names[value] = "@" + quoted(value.name)
    return names


def _globals(module: Module) -> Iterable[GlobalValue]:
    yield from module.globals.values()
    yield from (a for a in module.aliases.values() if a.keyword == "alias")
    yield from (a for a in module.aliases.values() if a.keyword != "alias")
    yield from module.functions.values()
