"""What all derived types of a Fortran program have in common, written into the run-time library's functions for them.

    before    %no = call i8 @je_byte_of_type(ptr %type, i32 431)       whether a type has nothing to finalise
              define void @je_call_final(ptr %procedure, ptr %objects) {
                call void %procedure(ptr %objects)

    after     1, where that byte is 1 in all types of the program
              define void @je_call_final(ptr %procedure, ptr %objects) {
                %is = icmp eq ptr %procedure, @_QMmPclose          the FINAL procedure of one of them; null for others
                %known = select i1 %is, ptr @_QMmPclose, ptr null
                call void %known(ptr %objects)

Which type an object has is known where its descriptor is, when all has been inlined. Before that, what ends an object
might call whatever an object holds, a procedure pointer among it, and so itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from jax_enzyme.analysis.layout import DataLayout, leaves
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.instructions import CallBase
from jax_enzyme.ir.module import Function, GlobalVariable
from jax_enzyme.ir.passes import text_after
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.values import ConstantExpr, ConstantInt, ConstantNull, Value, ZeroInitializer, int_value
from jax_enzyme.transform.rewriting import replace_values

_BYTE, _CALL = "je_byte_of_type", "je_call_final"
_TYPES, _SPECIAL = "EXdtX", "EXsX"
"""In the names that flang gives to the table of a type, and to the one of its special procedures."""
_ENTRY, _PROCEDURE, _FINAL = 16, 8, range(7, 9 + 16)
"""The length of a special procedure's entry, which begins with its purpose; where its address is; purposes of FINAL
procedures, by rank the last of them."""


def knows_types(ir: str) -> bool:
    """Whether a module asks."""
    return f"@{_BYTE}(" in ir


def with_known_types(ir: str) -> str:
    """The module where the answers stand, without what is not done for them."""
    module = parse(ir)
    tables = [v for name, v in module.globals.items() if _TYPES in name]
    specials = [v for name, v in module.globals.items() if _SPECIAL in name]
    if not all(v.is_constant and v.initializer is not None for v in (*tables, *specials)):
        return ir
    layout = DataLayout(module)

    @cache
    def common(at: int | None) -> int | None:
        """The value that a byte has in all types. Where there are no types nobody asks."""
        first, *others = {_byte(layout, table, at) for table in tables} or {1}
        return None if others else first

    changed: list[str] = []
    for function in module.functions.values():
        known: dict[Value, Value] = {}
        for call in function.instructions():
            if isinstance(call, CallBase) and call.callee is module.functions.get(_BYTE):
                value = common(int_value(call.arguments[1]))
                if value is not None:
                    known[call] = const_int(call.type, value)
        if known:
            replace_values(function, known)
            changed.append(function.name)
    if _CALL in module.functions:
        _call_one_of(module.functions[_CALL], list(dict.fromkeys(f for v in specials for f in _finals(layout, v))))
    return text_after(module, ["sccp", "simplifycfg"], changed)


def _byte(layout: DataLayout, table: GlobalVariable, at: int | None) -> int | None:
    """The value of a byte of a table that stands there by itself."""
    assert table.initializer is not None
    for place, leaf in leaves(layout, table.initializer):
        if place == at and isinstance(leaf, ConstantInt):
            return leaf.value
        if isinstance(leaf, ZeroInitializer) and at is not None and place <= at < place + layout.alloc_size(leaf.type):
            return 0
    return None


def _finals(layout: DataLayout, table: GlobalVariable) -> Iterator[Value]:
    """The FINAL procedures among special ones."""
    assert table.initializer is not None
    known = dict(leaves(layout, table.initializer))
    for at, purpose in known.items():
        if at % _ENTRY == 0 and isinstance(purpose, ConstantInt) and purpose.value in _FINAL:
            procedure = known[at + _PROCEDURE]
            yield procedure.operands[0] if isinstance(procedure, ConstantExpr) else procedure


def _call_one_of(function: Function, candidates: list[Value]) -> None:
    """Makes a function that calls its first argument call one of these, or null."""
    procedure = function.arguments[0]
    block = function.blocks[0]
    call = next(i for i in block.instructions if isinstance(i, CallBase))
    before = Builder.before(block, call)
    known: Value = ConstantNull(T.PTR)
    for candidate in candidates:
        known = before.select(before.icmp("eq", procedure, candidate), candidate, known)
    call.operands[-1] = known
