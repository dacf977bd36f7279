"""Integers of 64 bits that are no addresses, whatever lies where they are loaded: those that a program's source calls
integers (`long` by its TBAA), and that are only counted, compared and indexed with.

What goes on, to memory, to a call or into a pointer, may be an address all the same: `slots[j] = slots[i]`. What the
source calls a floating-point number, or a shorter integer, has no part of one where all pointers were stored as such.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

from jax_enzyme.analysis.objects import call_effect, is_defined_call, leaves_pointers
from jax_enzyme.analysis.tbaa import accessed_type
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import ConstantNull, Value
from jax_enzyme.remembered import remembered

_CASTS = frozenset("trunc zext sext bitcast inttoptr addrspacecast".split())
_NUMBERS = frozenset("mul sdiv udiv srem urem".split())
"""What these make of an address is none."""


class NamedIntegers:
    """The accesses of some functions to such integers."""

    def __init__(self, module: Module, functions: Sequence[Function]) -> None:
        self._module = module
        self._instructions = [i for f in functions for i in f.instructions()]

    def is_named(self, load: I.Load) -> bool:
        """Whether a load is of one."""
        return self.is_called_one(load) and load not in self._going_on

    @remembered
    def is_called_one(self, load: I.Load) -> bool:
        """Whether the source calls what is loaded an integer. What loses its name when LLVM moves it keeps its
        address."""
        if load.type != T.I64 or not self._addresses:
            return False
        kind = accessed_type(self._module, load)
        is_nameless = kind is None and "tbaa" not in dict(load.metadata)
        return kind == T.I1 or (is_nameless and load.operands[0] in self._addresses)

    @remembered
    def is_no_pointer(self, load: I.Load) -> bool:
        """Whether the source calls what is loaded a floating-point number, or an integer that is shorter than a
        pointer."""
        kind = accessed_type(self._module, load)
        if isinstance(load.type, T.IntType):
            return kind == T.I1 and load.type.bits < T.I64.bits
        return kind == load.type and isinstance(kind, T.FloatType)

    @cached_property
    def _addresses(self) -> frozenset[Value]:
        """Where they are, unless pointers are accessed at the same address."""
        accesses = [(i, I.accessed_value(i).type) for i in self._instructions if isinstance(i, I.Load | I.Store)]
        pointers = {a.operands[-1] for a, type_ in accesses if T.is_pointer(type_)}
        named = (a for a, type_ in accesses if type_ == T.I64 and accessed_type(self._module, a) == T.I1)
        return frozenset(a.operands[-1] for a in named) - pointers

    @cached_property
    def _going_on(self) -> dict[Value, None]:
        return reached((v for i in self._instructions for v in _handed_over(i)), _moved)


def _handed_over(instruction: I.Instruction) -> Iterable[Value]:
    """What an instruction puts where others find it, or takes for an address."""
    match instruction:
        case I.Store() | I.Return() | I.Cast(opcode="inttoptr"):
            return instruction.operands[:1]
        case I.AtomicRMW() | I.CmpXchg():
            return instruction.operands[1:]
        case I.GetElementPtr(operands=[ConstantNull(), *indices]):
            return indices
        case I.CallBase() if is_defined_call(instruction) or not _leaves_addresses(instruction):
            return instruction.arguments
        case _:
            return ()


def _leaves_addresses(call: I.CallBase) -> bool:
    return call_effect(call) is not None or leaves_pointers(call)


def _moved(value: Value) -> Iterable[Value]:
    """What a value may be made of so that an address in that is one in it."""
    match value:
        case I.Select():
            return value.operands[1:]
        case I.Cast() if value.opcode in _CASTS:
            return value.operands
        case I.BinaryOp() if value.opcode not in _NUMBERS:
            return value.operands
        case I.Phi() | I.Freeze() | I.InsertValue() | I.ExtractValue() | I.InsertElement() | I.ShuffleVector():
            return value.operands
        case I.ExtractElement():
            return value.operands[:1]
        case _:
            return ()
