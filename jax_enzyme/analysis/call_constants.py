"""Which integers are constants of this call: sizes, integers that JAX knows when it lowers a call, and counters from
constants in constant steps.

    %m = sub i32 %n, 4                          0: %n is 4 at a call of the function, or was stored where it is loaded
    %i = phi i32 [ 0, ... ], [ %next, ... ]     0, 1, ...
    %j = sub i32 %i, 2                          -2, -1, ...

A guess, and no fact: what a function writes to memory that it is given is not looked at, nor where a loop ends. It says
where to look closer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from jax_enzyme.analysis.objects import reachable_functions
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function, GlobalVariable
from jax_enzyme.ir.values import Argument, Constant, Value, int_value

Progression = tuple[int, int]
"""The first value, and the step; no step for what is constant."""
_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "shl": lambda a, b: a << b if b < 64 else 0,
}


class CallConstants:
    """Of all functions that `root` can reach."""

    def __init__(self, root: Function) -> None:
        self._given: dict[Argument, Value] = {}
        self._stored: dict[Value, Value] = {}
        self._found: dict[Value, Progression | None] = {}
        for function in reachable_functions(root):
            for instruction in function.instructions():
                if isinstance(instruction, I.Store) and isinstance(place := _start(instruction.operands[1]), I.Alloca):
                    self._stored.setdefault(place, instruction.operands[0])
                if isinstance(instruction, I.CallBase) and isinstance(instruction.callee, Function):
                    for parameter, argument in zip(instruction.callee.arguments, instruction.arguments, strict=False):
                        self._given.setdefault(parameter, argument)

    def may_be(self, value: Value, number: int) -> bool:
        """Whether a value is known, and is a number, or comes to it."""
        found = self.of(value)
        if found is None:
            return False
        start, step = found
        return start == number if step == 0 else (number - start) % step == 0 and (number - start) // step >= 0

    def of(self, value: Value) -> Progression | None:
        """The signed values that an integer may have, by the first call and the first store that there is."""
        pending, begun = [value], set[Value]()
        while pending:
            item = pending[-1]
            missing = [o for o in self._operands(item) if o not in self._found] if item not in self._found else []
            if missing and item not in begun:
                begun.add(item)
                pending += missing
                continue
            pending.pop()
            if item not in self._found:
                self._found[item] = None if missing else self._evaluated(item)
        return self._found[value]

    def _operands(self, value: Value) -> list[Value]:
        match value:
            case Argument():
                return [self._given[value]] if value in self._given else []
            case I.BinaryOp() if value.opcode in _OPERATIONS:
                return value.operands
            case I.Cast(opcode="sext" | "zext" | "trunc") | I.Freeze():
                return value.operands
            case I.Phi():
                counter = _counter(value)
                return [counter[0]] if counter else []
            case I.Load():
                return list(self._loaded(value.operands[0]))
            case _:
                return []

    def _loaded(self, pointer: Value) -> Iterator[Value]:
        """What was stored where a pointer leads."""
        seen: set[Value] = set()
        while isinstance(pointer := _start(pointer), Argument) and pointer in self._given and pointer not in seen:
            seen.add(pointer)
            pointer = self._given[pointer]
        if pointer in self._stored:
            yield self._stored[pointer]
        elif isinstance(pointer, GlobalVariable) and pointer.is_constant and pointer.initializer is not None:
            yield pointer.initializer

    def _evaluated(self, value: Value) -> Progression | None:
        if not isinstance(value.type, T.IntType):
            return None
        bits = value.type.bits
        if isinstance(value, Constant):
            number = int_value(value)
            return None if number is None else (_signed(number, bits), 0)
        operands = [self._found[o] for o in self._operands(value)]
        known = [o for o in operands if o is not None]
        if not known or len(known) < len(operands):
            return None
        if isinstance(value, I.BinaryOp):
            return _combined(value.opcode, known[0], known[1], bits)
        start, step = known[0]
        if isinstance(value, I.Phi):
            counter = _counter(value)
            return None if counter is None or step else (start, counter[1])
        if step == 0 and isinstance(value, I.Cast) and value.opcode == "zext":
            assert isinstance(value.operands[0].type, T.IntType)
            return start & ((1 << value.operands[0].type.bits) - 1), 0
        return (start, step) if step else (_signed(start, bits), 0)


def _start(pointer: Value) -> Value:
    """An address without what adds nothing to it."""
    while isinstance(pointer, I.GetElementPtr) and all(int_value(i) == 0 for i in pointer.operands[1:]):
        pointer = pointer.operands[0]
    return pointer


def _counter(phi: I.Phi) -> tuple[Value, int] | None:
    """What a counter starts from, and its step."""
    if len(phi.operands) != 2:
        return None
    for start, next_ in (phi.operands, reversed(phi.operands)):
        if isinstance(next_, I.BinaryOp) and next_.opcode in ("add", "sub") and next_.operands[0] is phi:
            step = int_value(next_.operands[1])
            if step is not None and isinstance(phi.type, T.IntType):
                signed = _signed(step, phi.type.bits)
                return start, signed if next_.opcode == "add" else -signed
    return None


def _combined(opcode: str, a: Progression, b: Progression, bits: int) -> Progression | None:
    (x, along), (y, across) = a, b
    if not along and not across:
        return None if opcode == "shl" and y < 0 else (_signed(_OPERATIONS[opcode](x, y), bits), 0)
    match opcode:
        case "add" | "sub":
            sign = 1 if opcode == "add" else -1
            return (x + sign * y, along + sign * across) if not (along and across) else None
        case "mul":
            return (x * y, along * y + across * x) if not (along and across) else None
        case _:
            return None


def _signed(number: int, bits: int) -> int:
    number &= (1 << bits) - 1
    return number - (1 << bits) if number >> (bits - 1) else number
