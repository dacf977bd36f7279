"""Small local tables of pointers become choices by the index.

    before    %w = alloca [2 x ptr]                            after    %one = icmp eq i64 %i, 1
              store ptr %u, ptr %w                                      %p = select i1 %one, ptr %v, ptr %u
              %w.1 = getelementptr i8, ptr %w, i64 8
              store ptr %v, ptr %w.1
              %at = getelementptr ptr, ptr %w, i64 %i
              %p = load ptr, ptr %at

So `w[t & 1]` and `w[(t + 1) & 1]` are told apart, as pointers that change places are (`transform.rotations`). Each
element is stored once, in front of all loads: what lies there is that value, and another index is no part of the table.
"""

from __future__ import annotations

from functools import partial

from jax_enzyme.analysis.loops import Loops
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import Function, Module, Uses, callee_name, uses
from jax_enzyme.ir.values import Value, int_value
from jax_enzyme.transform.rewriting import Change, on_functions, rewrite

_MOST, _BYTES = 4, 8


def choose_by_index(module: Module) -> Module:
    """A copy of the module in which such loads are choices; the module itself where it has none."""
    return on_functions(module, _tables, _choose)


def _tables(function: Function) -> list[dict[I.Instruction, Value]]:
    """The tables of a function: for each load its index (a number of elements, or of bytes), after the stores."""
    found: list[dict[I.Instruction, Value]] = []
    for alloca in function.entry.instructions if function.blocks else ():
        kind = alloca.allocated_type if isinstance(alloca, I.Alloca) else None
        if isinstance(kind, T.ArrayType) and T.is_pointer(kind.element) and 2 <= kind.count <= _MOST:
            assert isinstance(alloca, I.Alloca)
            table = _accesses(alloca, uses(function))
            if table is not None and _is_filled_before(function, table, kind.count):
                found.append(table)
    return found


def _accesses(alloca: I.Alloca, users: Uses) -> dict[I.Instruction, Value] | None:
    """Every access of a table, with its index in elements; None where something else is done with its address."""
    found: dict[I.Instruction, Value] = {}
    places: list[tuple[Value, Value]] = [(alloca, const_int(T.I64, 0))]
    for pointer, index in places:
        for user, _ in users.get(pointer, ()):
            if isinstance(user, I.Load | I.Store) and not I.is_plain(user):
                return None
            match user:
                case I.Load(operands=[target]) if T.is_pointer(user.type) and target is pointer:
                    found[user] = index
                case I.Store(operands=[value, target]) if target is pointer and T.is_pointer(value.type):
                    if value is pointer or int_value(index) is None:
                        return None
                    found[user] = index
                case I.GetElementPtr() if pointer is alloca:
                    inner = _index(user)
                    if inner is None:
                        return None
                    places.append((user, inner))
                case I.Call() if callee_name(user).startswith("llvm.lifetime."):
                    pass
                case _:
                    return None
    return found


def _index(address: I.GetElementPtr) -> Value | None:
    """Of an address in a table, the index in elements."""
    *front, last = address.operands[1:]
    if any(int_value(v) != 0 for v in front) or last.type != T.I64:
        return None
    kind = address.source_type
    if (front and isinstance(kind, T.ArrayType) and T.is_pointer(kind.element)) or (not front and T.is_pointer(kind)):
        return last
    number = int_value(last)
    if front or kind != T.I8 or number is None or number % _BYTES:
        return None
    return const_int(T.I64, number // _BYTES)


def _is_filled_before(function: Function, found: dict[I.Instruction, Value], length: int) -> bool:
    """Is each element stored once, in front of every load?"""
    stores = [i for i in found if isinstance(i, I.Store)]
    loads = [i for i in found if isinstance(i, I.Load)]
    if sorted(int_value(found[s]) or 0 for s in stores) != list(range(length)):
        return False
    if not loads or any(int_value(found[i]) not in (None, *range(length)) for i in loads):
        return False
    order = Loops.of(function)
    return all(order.precedes(store, load) for store in stores for load in loads)


def _choose(function: Function) -> None:
    for found in _tables(function):
        rewrite(function, partial(_choice, found))


def _choice(found: dict[I.Instruction, Value], load: I.Instruction) -> Change | None:
    """What takes the place of a load of a table."""
    if not isinstance(load, I.Load) or load not in found:
        return None

    def chosen(at: Builder) -> Value:
        held = {int_value(index): s.operands[0] for s, index in found.items() if isinstance(s, I.Store)}
        value = held[0]
        for number in range(1, len(held)):
            value = at.select(at.icmp("eq", found[load], const_int(T.I64, number)), held[number], value)
        return value

    return chosen
