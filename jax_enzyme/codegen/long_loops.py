"""Loops with operations that take long; how what comes first passes through memory, and which memory is apart: for
`rows_once` and `strips`."""

from __future__ import annotations

from collections.abc import Iterator

from jax_enzyme.analysis.counters import way
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.analysis.objects import call_effect
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.codegen.vector_math import scalar_name, vector_functions
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import Function, GlobalVariable
from jax_enzyme.ir.values import Argument, BasicBlock, Value
from jax_enzyme.rules.effects import Effect
from jax_enzyme.transform.rewriting import local, phis, substitute

_FEWEST = 16
"""A loop of fewer iterations stays as it is."""
PLAIN = (I.BinaryOp, I.UnaryOp, I.Cast, I.Compare, I.Select, I.GetElementPtr)

Length = int | tuple[Value, Value]
"""A number, or how far it is from one value to another."""


def takes_long(instruction: I.Instruction) -> bool:
    """Whether an instruction takes many times as long as others, for one number, and less of that in vectors."""
    match instruction:
        case I.BinaryOp(opcode="fdiv"):
            return instruction.type in (T.FLOAT, T.DOUBLE)
        case I.Call() if isinstance(callee := instruction.callee, Function):
            return callee.name in ("llvm.sqrt.f32", "llvm.sqrt.f64") or scalar_name(callee) in vector_functions()
        case _:
            return False


def is_long(loops: Loops, loop: Loop) -> bool:
    """Whether an innermost loop is left at its end alone, and does something that takes long."""
    if loop.children or loop.preheader is None or loop.exiting != loop.latches or len(loop.latches) != 1:
        return False
    is_counted = isinstance(loop.latches[0].terminator, I.CondBranch) and not loops.irreducible
    return is_counted and any(takes_long(i) for b in loop.blocks for i in b.instructions)


def length_of(facts: Recurrences, loop: Loop) -> Length | None:
    """How many iterations a loop has; None where nobody knows, or they are few."""
    again, most = facts.repeats(loop), facts.trip_count(loop).maximum
    if most is None or most + 1 < _FEWEST:
        return None
    return way(loop) if again is None else again + 1


def kept_of(early: frozenset[Value], inside: list[I.Instruction]) -> Iterator[I.Instruction]:
    """The numbers that come first, take long, and are needed by what does not."""
    long: set[Value] = set()
    for instruction in inside:
        if instruction in early and (takes_long(instruction) or not long.isdisjoint(instruction.operands)):
            long.add(instruction)
    needed = {o for i in inside if i not in early for o in i.operands if o in long}
    for instruction in reversed(inside):
        if instruction in needed:
            if isinstance(instruction.type, T.FloatType):
                yield instruction
            else:
                needed.update(o for o in instruction.operands if o in long)


def local_memory(function: Function, length: int, type_: T.Type) -> Value:
    return local(function, T.ArrayType(length, type_), 64)


def number_of(at: Builder, length: Length) -> Value:
    return const_int(T.I64, length) if isinstance(length, int) else at.binary("sub", length[1], length[0])


def load_instead(function: Function, loop: Loop, memory: dict[I.Instruction, Value], before: BasicBlock) -> I.Phi:
    """Values of a loop come from memory: the counter of the loop's iterations that it is read by. Where it goes on is
    not said yet."""
    place = I.Phi(T.I64, "phi", [const_int(T.I64, 0)], targets=[before])
    loop.header.instructions.insert(0, place)
    replaced: dict[Value, Value] = {}
    for block in [b for b in function.blocks if b in loop.blocks]:
        for value in memory:
            if value in block.instructions:
                at = Builder(block, max(block.instructions.index(value), len(phis(block))))
                replaced[value] = at.load(value.type, at.gep(value.type, memory[value], [place]))
    substitute(function, replaced)
    return place


def root_of(pointer: Value) -> Value:
    """What an address is derived from, through counters too."""
    seen: set[Value] = set()
    while pointer not in seen:
        seen.add(pointer)
        match pointer:
            case I.GetElementPtr():
                pointer = pointer.operands[0]
            case I.Phi():
                others = {v for v in pointer.operands if v is not pointer and I.base_of(v) is not pointer}
                pointer = others.pop() if len(others) == 1 else pointer
            case _:
                pass
    return pointer


def stays(root: Value, written: set[Value]) -> bool:
    """Whether addresses derived from one value lead to other memory than those from any of others."""
    return not written or (root not in written and all(map(_is_own, (root, *written))))


def _is_own(root: Value) -> bool:
    match root:
        case Argument():
            return "noalias" in root.attributes
        case I.Call():
            return call_effect(root) is Effect.ALLOCATE
        case _:
            return isinstance(root, I.Alloca | GlobalVariable)
