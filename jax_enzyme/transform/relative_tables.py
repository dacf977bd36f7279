"""Tables of addresses, where an optimiser made tables of distances of them.

    before    @t = private constant [2 x i32] [i32 trunc (i64 sub (i64 ptrtoint (ptr @a to i64),
                                                                  i64 ptrtoint (ptr @t to i64)) to i32), ...]
              %p = call ptr @llvm.load.relative.i64(ptr @t, i64 %offset)

    after     @t.addresses = private constant [2 x ptr] [ptr @a, ...]
              %twice = shl i64 %offset, 1
              %place = getelementptr i8, ptr @t.addresses, i64 %twice
              %p = load ptr, ptr %place

LLVM makes the former of constant arrays of pointers in position-independent code. Where a pointer leads, and where its
shadow is, only the latter says. A call with another table stays as it is, and is refused where a derivative needs it.
"""

from __future__ import annotations

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import GlobalVariable, Module, callee_name
from jax_enzyme.ir.values import Constant, ConstantAggregate, ConstantExpr, Value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.transform.rewriting import Change, lower

_LOADS = ("llvm.load.relative.i64", "llvm.load.relative.i32")


def absolute_tables(module: Module) -> Module:
    """A copy of the module with those tables and loads; the module itself where there are none."""
    return lower(module, _change)


def _table_of(instruction: I.Instruction) -> ConstantAggregate | None:
    """The addresses to which a relative load may lead, in order; None for any other instruction."""
    if callee_name(instruction) not in _LOADS:
        return None
    table = instruction.operands[0]
    if not isinstance(table, GlobalVariable) or not table.is_constant:
        return None
    if not isinstance(table.initializer, ConstantAggregate):
        return None
    addresses = [_address(element, table) for element in table.initializer.elements]
    known = [a for a in addresses if a is not None]
    return ConstantAggregate(T.ArrayType(len(known), T.PTR), known) if len(known) == len(addresses) else None


def _address(element: Constant, table: GlobalVariable) -> Constant | None:
    """What a distance from the table leads to."""
    match element:
        case ConstantExpr(
            opcode="trunc",
            operands=[
                ConstantExpr(
                    opcode="sub",
                    operands=[
                        ConstantExpr(opcode="ptrtoint", operands=[there]),
                        ConstantExpr(opcode="ptrtoint", operands=[here]),
                    ],
                )
            ],
        ) if here is table:
            return there
        case _:
            return None


def _change(instruction: I.Instruction, declarations: Declarations) -> Change | None:
    addresses = _table_of(instruction)
    if addresses is None:
        return None
    table, offset = instruction.operands[:2]
    return lambda builder: _load(builder, _absolute(declarations.module, table, addresses), offset)


def _absolute(module: Module, table: Value, addresses: ConstantAggregate) -> GlobalVariable:
    name = f"{table.name}.addresses"
    if name not in module.globals:
        words = ("private", "unnamed_addr")
        module.globals[name] = GlobalVariable(T.PTR, addresses.type, addresses, True, words, name=name)
    return module.globals[name]


def _load(builder: Builder, table: GlobalVariable, offset: Value) -> Value:
    """A distance has four bytes, an address eight."""
    twice = builder.binary("shl", offset, const_int(offset.type, 1))
    return builder.load(T.PTR, builder.gep(T.I8, table, [twice]), 8)
