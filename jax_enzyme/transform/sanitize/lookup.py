"""Which object an address leads to, where that shows at run time only: three loads from tables of `csrc/checked.cc`.

before    %q = load ptr, ptr %slot       after    %q = load ptr, ptr %slot
                                                  %top = load i64, ptr <tables + top + 8 * (%q >> 30 & ...)>
                                                  %mid = load i64, ptr <tables + none_mid + %top + ...>
                                                  %leaf = load i64, ptr <tables + none_leaf + %mid + ...>
                                                  %record = getelementptr i8, ptr <tables + unknown>, i64 %leaf
"""

from __future__ import annotations

from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.debug import add_node
from jax_enzyme.ir.metadata import MDNode, MDRef, MDString
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.values import Value

GRAIN = 16  # no two objects share so many bytes
_TOP_BITS, _MID_BITS, _LEAF_BITS, _GRAIN_BITS = 17, 18, 8, 4
_UNKNOWN, _NONE_LEAF = 16, 56
_TOP = _NONE_LEAF + 8 * (1 << _LEAF_BITS) + 8
_NONE_MID = _TOP + 8 * (1 << _TOP_BITS)


def record_of(at: Builder, tables: Value, address: Value, records: MDRef) -> Value:
    """The record of the object that an address leads to."""

    def entry(start: Value, shift: int, bits: int) -> Value:
        index = at.binary("lshr", address, const_int(T.I64, shift))
        index = at.binary("and", index, const_int(T.I64, (1 << bits) - 1))
        return read_record(at, at.gep(T.I64, start, [index], ()), records)

    def behind(offset: int, further: Value) -> Value:
        return at.gep(T.I8, at.gep(T.I8, tables, [const_int(T.I64, offset)], ()), [further], ())

    mid = entry(at.offset(tables, _TOP), _GRAIN_BITS + _LEAF_BITS + _MID_BITS, _TOP_BITS)
    leaf = entry(behind(_NONE_MID, mid), _GRAIN_BITS + _LEAF_BITS, _MID_BITS)
    return behind(_UNKNOWN, entry(behind(_NONE_LEAF, leaf), _GRAIN_BITS, _LEAF_BITS))


def unknown_record(at: Builder, tables: Value) -> Value:
    """The record of memory that nothing is known of."""
    return at.offset(tables, _UNKNOWN)


def read_record(at: Builder, address: Value, records: MDRef) -> Value:
    """A word of the run time, which nothing that the kernel stores changes."""
    load = at.load(T.I64, address, 8)
    load.metadata = [("alias.scope", records)]
    return load


def scope_of_records(module: Module) -> MDRef:
    """An alias scope for what only the run time writes."""
    domain = add_node(module, MDNode(operands=[MDString("je objects")]))
    scope = add_node(module, MDNode(operands=[MDString("je records"), domain]))
    return add_node(module, MDNode(operands=[scope]))
