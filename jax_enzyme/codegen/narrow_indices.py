"""Indices that wrap around are hidden from LLVM's loop vectoriser.

    before    %j = and i64 %i, 3                              after    %three = call i64 asm "", "=r,0"(i64 3)
              %p = getelementptr double, ptr %t, i64 %j                %j = and i64 %i, %three

To the vectoriser, `i & 3` is a counter of two bits that must not overflow, and it checks that when the loop begins.
LLVM 20 to 22 leave the check out where they check a wider counter of the same loop as well, such as an `unsigned` index
(github.com/llvm/llvm-project/pull/191498): `t[i & 3] + a[off + i]` then reads `t[0]` to `t[7]` at once. A mask that is
not known to be constant is no counter. The same is done to bytes and 16-bit numbers that become an index.

Only what reaches an address, or goes around a loop, is of interest to the vectoriser.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.reach import made_of, reached
from jax_enzyme.ir.values import Argument, BasicBlock, InlineAsm, Value, int_value

_WIDE = 32
"""An index has at least so many bits in most programs; two widths in one loop take a narrower one."""
_PASSED_ON = (I.BinaryOp, I.Cast, I.Select, I.Freeze, I.Phi, I.GetElementPtr)


def hide_narrow_indices(module: Module) -> None:
    """Changes a private module in place."""
    for function in module.functions.values():
        if any(_is_narrow(i) for i in function.instructions()):
            _Function(function).run()


class _Function:
    def __init__(self, function: Function) -> None:
        self._function = function
        self._is_inlined = any(w in ("internal", "private") for w in function.prefix)
        self._top = Builder(BasicBlock())
        self._hidden: dict[tuple[T.Type, int], Value] = {}

    def run(self) -> None:
        varying = self._varying(_operands_of(self._roots()))
        for block in self._function.blocks:
            made: list[I.Instruction] = []
            for instruction in block.instructions:
                if instruction in varying and _is_narrow(instruction):
                    self._hide(instruction, made)
                made.append(instruction)
            block.instructions = made
        self._function.entry.instructions[0:0] = self._top.block.instructions

    def _roots(self) -> Iterator[Value]:
        """Addresses in loops, and numbers that go around one. A function that is called may be called in a loop."""
        cfg = Cfg(self._function)
        for block in cfg.rpo:
            if not (self._is_inlined or cfg.reaches(block, block)):
                continue
            for instruction in block.instructions:
                match instruction:
                    case I.Load():
                        yield instruction.operands[0]
                    case I.Store():
                        yield instruction.operands[1]
                    case I.Phi() if isinstance(instruction.type, T.IntType):
                        yield instruction
                    case _:
                        pass

    def _varying(self, values: set[Value]) -> set[Value]:
        """Those that may depend on a number that goes around a loop."""
        users: dict[Value, list[Value]] = {}
        for value in values:
            for operand in value.operands if isinstance(value, I.Instruction) else ():
                users.setdefault(operand, []).append(value)
        starts = [v for v in users if isinstance(v, I.Phi) or (self._is_inlined and isinstance(v, Argument))]
        return set(reached((user for v in starts for user in users[v]), lambda value: users.get(value, ())))

    def _hide(self, instruction: I.Instruction, made: list[I.Instruction]) -> None:
        kind = instruction.operands[0].type
        mask = _mask(instruction)
        if mask is not None:
            instruction.opcode, instruction.flags = "and", ()
            instruction.operands = [mask[0], self._opaque(kind, mask[1])]
            return
        zero = self._opaque(kind, 0)
        made.append(I.BinaryOp(kind, "xor", [instruction.operands[0], zero]))
        instruction.operands[0] = made[-1]

    def _opaque(self, kind: T.Type, value: int) -> Value:
        """A number that LLVM does not know."""
        assert isinstance(kind, T.IntType)
        bits = next(b for b in (8, 16, 32, 64) if b >= kind.bits)
        if (kind, value) not in self._hidden:
            type_ = T.FunctionType(T.IntType(bits), (T.IntType(bits),))
            callee = InlineAsm(T.PTR, "", "=r,0")
            number = self._top.call(callee, [const_int(T.IntType(bits), value)], type_, attributes=("nounwind",))
            self._hidden[kind, value] = number if bits == kind.bits else self._top.cast("trunc", number, kind)
        return self._hidden[kind, value]


def _operands_of(roots: Iterable[Value]) -> set[Value]:
    """Some values, and all from which they are computed without memory."""
    return set(reached(roots, made_of, lambda value: isinstance(value, _PASSED_ON)))


def _is_narrow(instruction: I.Instruction) -> bool:
    """Whether LLVM takes an integer for a wider form of one of fewer bits that may wrap around."""
    if not isinstance(instruction.type, T.IntType) or instruction.type.bits > 64 or not instruction.operands:
        return False
    if isinstance(instruction, I.Cast) and instruction.opcode in ("zext", "sext"):
        part = instruction.operands[0]
        return isinstance(part.type, T.IntType) and part.type.bits < _WIDE and isinstance(part, _PASSED_ON)
    if isinstance(instruction, I.BinaryOp) and instruction.opcode == "ashr":
        part = instruction.operands[0]
        return isinstance(part, I.BinaryOp) and part.opcode == "shl"
    return _mask(instruction) is not None


def _mask(instruction: I.Instruction) -> tuple[Value, int] | None:
    """What is masked, and by which constant."""
    if not isinstance(instruction, I.BinaryOp) or not isinstance(instruction.type, T.IntType):
        return None
    constant = int_value(instruction.operands[1])
    match instruction.opcode:
        case "and" if constant is not None and 0 < constant < 1 << _WIDE - 1:
            return instruction.operands[0], constant
        case "urem" if constant is not None and constant > 1 and constant & (constant - 1) == 0:
            return instruction.operands[0], constant - 1
        case _:
            return None
