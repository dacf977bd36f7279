"""Where integer arithmetic on the bits of a number makes bits of a number again: no derivative passes there.

    %i = bitcast double %x to i64         bits
    %j = add i64 %i, 1                    computed from bits
    %y = bitcast i64 %j to double         misused: y depends on x, and nothing knows how

What is computed from bits may be compared, converted (an exponent as a number is piecewise constant) or used as an
index. It may not become a number by reinterpretation, in a register or through memory. Copies are no arithmetic.

lattice     {nothing, bits, computed} per value, {no, yes} per object and size of element ("holds something computed")
transfer    a bitcast from a varied number gives bits; copies (phi, select, freeze, loads and stores, calls) keep what they
            copy; integer arithmetic on either gives computed. Integers that memory with numbers in it may hold count as
            bits for arithmetic that ends in a bitcast to a number, and for that alone: most of them are just integers.
"""

from __future__ import annotations

from collections.abc import Iterator

from jax_enzyme.analysis.activity import Activity
from jax_enzyme.analysis.flow import holds_float, is_defined_call
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.memory import MemoryObject, PointsTo, call_effect
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.values import Value
from jax_enzyme.rules.effects import Effect

_COPIES = frozenset(["phi", "select", "freeze", "extractvalue", "insertvalue", "extractelement", "insertelement"])
_COPIES |= {"shufflevector"}
_COMPUTES = frozenset("add sub mul udiv sdiv urem srem shl lshr ashr and or xor trunc zext sext".split())


class Bits:
    """Solved for all functions that `points_to` covers."""

    def __init__(self, points_to: PointsTo, activity: Activity) -> None:
        self._points_to = points_to
        self._activity = activity
        self._layout = DataLayout(points_to.module)
        self._bits: set[Value] = set()
        self._computed: set[Value] = set()
        self._suspects: set[Value] = set()
        self._memory: set[tuple[MemoryObject, int]] = set()
        self._instructions = [i for f in points_to.functions for i in f.instructions()]
        changed = any(map(_reinterprets, self._instructions))
        while changed:
            before = self._size
            for instruction in self._instructions:
                self._visit(instruction)
            changed = before != self._size

    @property
    def _size(self) -> int:
        return len(self._bits) + len(self._computed) + len(self._suspects) + len(self._memory)

    def misused(self) -> Iterator[I.Instruction]:
        """Arithmetic whose result becomes a number that an output of interest may depend on."""
        for instruction in self._instructions:
            if not holds_float(instruction.type) or not self._activity.counts(instruction):
                continue
            if isinstance(instruction, I.Cast) and instruction.opcode == "bitcast":
                operand = instruction.operands[0]
                if isinstance(operand, I.Instruction) and (operand in self._computed or operand in self._suspects):
                    yield operand
            elif isinstance(instruction, I.Load) and not self._memory.isdisjoint(self._places(instruction)):
                yield instruction

    def _places(self, access: I.Load | I.Store) -> set[tuple[MemoryObject, int]]:
        """What an access touches: objects, and the size of an element."""
        type_ = access.type if isinstance(access, I.Load) else access.operands[0].type
        size = self._layout.store_size(T.scalar(type_))
        return {(o, size) for o in self._points_to.of(access.operands[-1])}

    def _visit(self, instruction: I.Instruction) -> None:
        match instruction:
            case I.Cast(opcode="bitcast") if holds_float(instruction.operands[0].type):
                if instruction.operands[0] in self._activity.varied and not holds_float(instruction.type):
                    self._bits.add(instruction)
            case I.Store():
                if instruction.operands[0] in self._computed:
                    self._memory |= self._places(instruction)
            case I.Load():
                if not holds_float(instruction.type) and not self._memory.isdisjoint(self._places(instruction)):
                    self._computed.add(instruction)
            case I.CallBase() if call_effect(instruction) is Effect.PURE_INT:
                self._compute(instruction)
            case I.CallBase():
                self._call(instruction)
            case _ if instruction.opcode in _COPIES or instruction.opcode == "bitcast":
                self._copy(instruction, instruction.operands)
            case _ if instruction.opcode in _COMPUTES:
                self._compute(instruction)
            case _:
                pass

    def _compute(self, instruction: I.Instruction) -> None:
        operands = instruction.operands
        if any(v in self._bits or v in self._computed for v in operands):
            self._computed.add(instruction)
        if any(v in self._suspects or (v in self._activity.varied and T.is_int(v.type)) for v in operands):
            self._suspects.add(instruction)

    def _copy(self, target: Value, values: list[Value]) -> None:
        for found in (self._bits, self._computed, self._suspects):
            if any(v in found for v in values):
                found.add(target)

    def _call(self, call: I.CallBase) -> None:
        if not is_defined_call(call):
            return
        callee = call.callee
        assert isinstance(callee, Function)
        for parameter, argument in zip(callee.arguments, call.arguments, strict=False):
            self._copy(parameter, [argument])
        for block in callee.blocks:
            last = block.terminator
            if isinstance(last, I.Return):
                self._copy(call, last.operands)


def _reinterprets(instruction: I.Instruction) -> bool:
    """A cast between a number and an integer of the same size."""
    if not isinstance(instruction, I.Cast) or instruction.opcode != "bitcast":
        return False
    return holds_float(instruction.type) != holds_float(instruction.operands[0].type)
