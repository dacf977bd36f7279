"""Which integers are constants of this call: sizes, integers that JAX knows when it lowers a call, and counters from
constants in constant steps.

    %m = sub i32 %n, 4                          0: %n is 4 at a call of the function, or was stored where it is loaded
    %i = phi i32 [ 0, ... ], [ %next, ... ]     0, 1, ...
    %j = sub i32 %i, 2                          -2, -1, ...

A guess, and no fact: what a function writes to memory that it is given is not looked at, nor where a loop ends. It says
where to look closer.
"""

from __future__ import annotations

from collections.abc import Iterator

from jax_enzyme.analysis.counters import step_to
from jax_enzyme.analysis.folding import folded, wrapped
from jax_enzyme.analysis.objects import reachable_functions
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function, GlobalVariable, callee_of
from jax_enzyme.ir.reach import bottom_up
from jax_enzyme.ir.values import Argument, Constant, Value, int_value

Progression = tuple[int, int]
"""The first value, and the step; no step for what is constant."""


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
                if isinstance(instruction, I.CallBase) and (callee := callee_of(instruction)) is not None:
                    for parameter, argument in zip(callee.arguments, instruction.arguments, strict=False):
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
        for item, is_circular in bottom_up(value, self._operands, self._found):
            self._found[item] = None if is_circular else self._evaluated(item)
        return self._found[value]

    def _operands(self, value: Value) -> list[Value]:
        match value:
            case Argument():
                return [self._given[value]] if value in self._given else []
            case I.BinaryOp() | I.Cast() | I.Freeze():
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
        if isinstance(value, Constant):
            number = int_value(value)
            return None if number is None else (wrapped(number, value.type.bits), 0)
        operands = [self._found[o] for o in self._operands(value)]
        known = [o for o in operands if o is not None]
        if not known or len(known) < len(operands):
            return None
        start, step = known[0]
        if isinstance(value, I.Phi):
            counter = _counter(value)
            return None if counter is None or step else (start, counter[1])
        if not isinstance(value, I.BinaryOp | I.Cast | I.Freeze):
            return (start, step) if step else (wrapped(start, value.type.bits), 0)
        if any(step for _, step in known):
            return _moving(value, known)
        number = folded(value, [start for start, _ in known])
        return None if number is None else (number, 0)


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
        step = step_to(next_, phi)
        if step is not None:
            return start, step
    return None


def _moving(value: I.BinaryOp | I.Cast | I.Freeze, operands: list[Progression]) -> Progression | None:
    """Of values at least one of which moves on, as if no bit were ever cut off."""
    if not isinstance(value, I.BinaryOp):
        return operands[0]
    (x, along), (y, across) = operands
    if along and across:
        return None
    match value.opcode:
        case "add":
            return x + y, along + across
        case "sub":
            return x - y, along - across
        case "mul":
            return x * y, along * y + across * x
        case _:
            return None
