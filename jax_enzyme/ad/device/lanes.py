"""Integers of a kernel that depend on nothing but the thread: what they are, for every thread of a block."""

from __future__ import annotations

from collections.abc import Callable

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.values import Value, int_value
from jax_enzyme.signature.launch import Shape
from jax_enzyme.transform.cuda.shuffles import WARP_SIZE
from jax_enzyme.transform.device.registers import LANE, REGISTER

_DEPTH = 24
"""What is computed by more steps is taken to depend on more than the thread."""


class Lanes:
    """Evaluates integers for one block of threads after the other; all blocks are the same."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._known: dict[Value, list[int] | None] = {}

    @property
    def threads(self) -> int:
        """Of a block."""
        return self._shape.threads

    def of(self, value: Value, depth: int = _DEPTH) -> list[int] | None:
        """A value for each thread of a block, None where it depends on more than the thread."""
        known = int_value(value)
        if known is not None:
            return [known & 1 if value.type == T.I1 else known] * self._shape.threads
        if value not in self._known:
            self._known[value] = self._found(value, depth) if depth else None
        return self._known[value]

    def by_lane(self, value: Value) -> list[int] | None:
        """A value for each lane of a warp, where it is the same in all warps; lanes that no warp has are left out."""
        found = self.of(value)
        if found is None:
            return None
        first = found[:WARP_SIZE]
        same = all(v == first[t % WARP_SIZE] for t, v in enumerate(found))
        return first if same else None

    def _found(self, value: Value, depth: int) -> list[int] | None:
        match value:
            case I.Call():
                return self._register(value.callee.name)
            case I.BinaryOp() | I.Compare() | I.Select() | I.Cast() | I.Freeze():
                parts: list[list[int]] = []
                for operand in value.operands:
                    part = self.of(operand, depth - 1)
                    if part is None:
                        return None
                    parts.append(part)
                found = [_computed(value, list(x)) for x in zip(*parts, strict=True)]
                return [f for f in found if f is not None] if None not in found else None
            case _:
                return None

    def _register(self, name: str) -> list[int] | None:
        x, y, _ = self._shape.block
        threads = range(self._shape.threads)
        match name.removeprefix(REGISTER):
            case "tid.x":
                return [t % x for t in threads]
            case "tid.y":
                return [t // x % y for t in threads]
            case "tid.z":
                return [t // (x * y) for t in threads]
            case _:
                return [t % WARP_SIZE for t in threads] if name == LANE else None


def _computed(value: I.Instruction, x: list[int]) -> int | None:
    bits = value.type.bits if isinstance(value.type, T.IntType) else 0
    kind = value.operands[0].type
    width = kind.bits if isinstance(kind, T.IntType) else 0
    if not bits or not width:
        return None
    found: int | None
    match value:
        case I.Select():
            found = x[1] if x[0] & 1 else x[2]
        case I.Compare():
            found = _compared(value.predicate, x[0], x[1], width)
        case I.Cast():
            found = {"zext": x[0] % (1 << width), "sext": _signed(x[0], width), "trunc": x[0]}.get(value.opcode)
        case I.Freeze():
            found = x[0]
        case _:
            operation = _OPERATIONS.get(value.opcode)
            found = None if operation is None else operation(x[0], x[1])
    return None if found is None else _wrapped(found, bits)


def _wrapped(value: int, bits: int) -> int:
    if bits == 1:
        return value & 1
    half = 1 << (bits - 1)
    return (value + half) % (1 << bits) - half


def _signed(value: int, width: int) -> int:
    """A bit, which is 0 or 1 here, is 0 or -1 where signs matter."""
    return -value if width == 1 else value


def _compared(predicate: str, x: int, y: int, width: int) -> int:
    if predicate.startswith("u"):
        x, y = x % (1 << width), y % (1 << width)
    else:
        x, y = _signed(x, width), _signed(y, width)
    results = {"eq": x == y, "ne": x != y, "lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y}
    return int(results[predicate[-2:]])


def _positive(operation: Callable[[int, int], int]) -> Callable[[int, int], int | None]:
    """Of what is the same for signed and unsigned numbers that are not negative."""
    return lambda x, y: operation(x, y) if x >= 0 and y >= 0 else None


def _divided(operation: Callable[[int, int], int]) -> Callable[[int, int], int | None]:
    return lambda x, y: operation(x, y) if x >= 0 and y > 0 else None


_OPERATIONS: dict[str, Callable[[int, int], int | None]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y,
    "shl": _positive(lambda x, y: x << min(y, 64)),
    "lshr": _positive(lambda x, y: x >> y),
    "ashr": _positive(lambda x, y: x >> y),
    "udiv": _divided(lambda x, y: x // y),
    "sdiv": _divided(lambda x, y: x // y),
    "urem": _divided(lambda x, y: x % y),
    "srem": _divided(lambda x, y: x % y),
}
