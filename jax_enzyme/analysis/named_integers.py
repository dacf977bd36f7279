"""What a program's source calls an integer of 64 bits (`long` by its TBAA), and whether that may be an address all the
same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from jax_enzyme.analysis.objects import Objects
from jax_enzyme.analysis.tbaa import accessed_type
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.values import ConstantExpr, Value


class NamedIntegers:
    """The accesses of some functions to such integers."""

    def __init__(self, module: Module, functions: Sequence[Function]) -> None:
        self._module = module
        self._instructions = [i for f in functions for i in f.instructions()]
        self._accesses = [i for i in self._instructions if isinstance(i, I.Load | I.Store)]

    def is_named(self, load: I.Load) -> bool:
        """Whether a load is of one. What loses its name when LLVM moves it keeps its address."""
        if load.type != T.I64 or not self._addresses:
            return False
        kind = accessed_type(self._module, load)
        is_nameless = kind is None and "tbaa" not in dict(load.metadata)
        return kind == T.I1 or (is_nameless and load.operands[0] in self._addresses)

    def are_addresses(self, objects: Callable[[Value], Objects]) -> bool:
        """Whether an address, not the distance of two, is stored as one, by the `objects` that values lead to; or may
        be, where an optimiser has lost its name: integers become pointers again."""
        stored = [a.operands[0] for a in self._named if isinstance(a, I.Store)]
        if any(objects(value) and not _is_distance(value) for value in stored):
            return True
        casts = (i for i in self._instructions if isinstance(i, I.Cast) and i.opcode == "inttoptr")
        return any(not _makes(cast.operands[0]) for cast in casts)

    @cached_property
    def _named(self) -> list[I.Load | I.Store]:
        moved = ((a, I.accessed_value(a).type) for a in self._accesses)
        return [a for a, type_ in moved if type_ == T.I64 and accessed_type(self._module, a) == T.I1]

    @cached_property
    def _addresses(self) -> frozenset[Value]:
        """Where they are, unless pointers are accessed at the same address."""
        pointers = {a.operands[-1] for a in self._accesses if T.is_pointer(I.accessed_value(a).type)}
        return frozenset(a.operands[-1] for a in self._named) - pointers


def _makes(value: Value) -> bool:
    return isinstance(value, I.Instruction | ConstantExpr) and value.opcode in ("ptrtoint", "ptrtoaddr")


def _is_distance(value: Value) -> bool:
    return isinstance(value, I.BinaryOp) and value.opcode == "sub" and all(map(_makes, value.operands))
