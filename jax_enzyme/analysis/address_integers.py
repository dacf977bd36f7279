"""Whether a program keeps addresses in memory that its source calls integers (`uintptr_t` members, tagged pointers).

    store i64 %address, ptr %p, !tbaa !long     where %address comes from a `ptrtoint`, or from memory of unknown type

Where none does, what the source reads as an integer is no pointer: memory written as one is not read as `long`.
So the number of nodes in the head of a tree, with which the links of its nodes seem to overlap, stays a number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from jax_enzyme.analysis.tbaa import accessed_type
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.values import ConstantExpr, Value

_PASSES_ON = frozenset(
    "add sub and or xor mul shl lshr ashr phi select freeze zext sext trunc extractvalue insertvalue extractelement "
    "insertelement shufflevector bitcast".split()
)
_MAKES = ("ptrtoint", "ptrtoaddr")


class IntegersByName:
    """Which loads of 64 bits are of integers, by what the source calls them; none, where it may keep addresses so."""

    def __init__(self, module: Module, functions: Iterable[Function]) -> None:
        self._module = module
        self._named: set[Value] = set()
        instructions = [i for f in functions for i in f.instructions()]
        accesses = [i for i in instructions if isinstance(i, I.Load | I.Store)]
        pointers = {i.operands[-1] for i in accesses if T.is_pointer(_value(i).type)}
        named = [i for i in accesses if _value(i).type == T.I64 and accessed_type(module, i) == T.I1]
        self._named = {i.operands[-1] for i in named} - pointers
        # What an optimiser stores may have lost its name: where integers become pointers again, some are addresses.
        returns = any(i.opcode == "inttoptr" and not _makes(i.operands[0]) for i in instructions)
        if returns or _any_is_address(self, instructions, [_value(i) for i in named if isinstance(i, I.Store)]):
            self._named.clear()

    def reads(self, load: I.Instruction) -> bool:
        """What loses its name when LLVM moves it keeps its address."""
        if not self._named or load.type != T.I64:
            return False
        kind = accessed_type(self._module, load)
        return kind == T.I1 or (kind is None and "tbaa" not in dict(load.metadata) and load.operands[0] in self._named)


def _value(access: I.Instruction) -> Value:
    return access.operands[0] if isinstance(access, I.Store) else access


def _any_is_address(names: IntegersByName, instructions: list[I.Instruction], values: list[Value]) -> bool:
    """Whether any of these values may be an address, or be made of one."""
    found: set[Value] = set()
    while not any(v in found or _makes(v) for v in values):
        new = {v for i in instructions for v in _addresses(names, i, found)} - found
        if not new:
            return False
        found |= new
    return True


def _makes(value: Value) -> bool:
    return isinstance(value, I.Instruction | ConstantExpr) and value.opcode in _MAKES


def _addresses(names: IntegersByName, instruction: I.Instruction, found: set[Value]) -> Iterator[Value]:
    """The integers that may be addresses, or made of some, by an instruction and what is known of its operands."""

    def is_one(value: Value) -> bool:
        return value in found or _makes(value)

    match instruction:
        case I.Load():
            if instruction.type == T.I64 and not names.reads(instruction):
                yield instruction
        case I.CallBase(callee=Function() as callee):
            yield from (p for p, v in zip(callee.arguments, instruction.arguments, strict=False) if is_one(v))
            ends = (b.terminator for b in callee.blocks)
            if any(is_one(e.operands[0]) for e in ends if isinstance(e, I.Return) and e.operands):
                yield instruction
        case I.CallBase():
            yield instruction
        case I.BinaryOp(opcode="sub", operands=[x, y]) if _makes(x) and _makes(y):
            pass  # the distance of two
        case _ if instruction.opcode in _PASSES_ON and any(map(is_one, instruction.operands)):
            yield instruction
        case _:
            pass
