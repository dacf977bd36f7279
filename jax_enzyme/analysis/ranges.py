"""Integer ranges of SSA values: an interval for each operation from those of its operands.

Intervals are of the *signed* value (an i1 is 0 or 1), over all executions in which the value is not poison. What this
module cannot know by itself, the values that go around loops and what branch conditions say, comes from `RangeSource`
(implemented by `Recurrences`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Protocol

from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.metadata import MDConstant, MDNode, MDRef
from jax_enzyme.ir.module import Function, Module, callee_name, callee_of
from jax_enzyme.ir.values import Argument, BasicBlock, Value, int_value

_RANGE_ATTRIBUTE = re.compile(r"range\(i\d+ (-?\d+), (-?\d+)\)")


@dataclass(frozen=True, slots=True)
class Interval:
    """The integers from `low` to `high`, both included; `low <= high`."""

    low: int
    high: int

    def __add__(self, other: Interval) -> Interval:
        return Interval(self.low + other.low, self.high + other.high)

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low)

    def __sub__(self, other: Interval) -> Interval:
        return self + -other

    def __mul__(self, other: Interval) -> Interval:
        return hull_of(a * b for a in (self.low, self.high) for b in (other.low, other.high))

    def hull(self, other: Interval) -> Interval:
        return Interval(min(self.low, other.low), max(self.high, other.high))

    def meet(self, other: Interval) -> Interval:
        """The common part. Two sound facts about a value that can exist overlap; where they do not (the code is never
        run), `self` is as good as anything."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        return Interval(low, high) if low <= high else self

    def within(self, other: Interval) -> bool:
        return other.low <= self.low and self.high <= other.high

    def __str__(self) -> str:
        return f"[{self.low}, {self.high}]"


def hull_of(values: Iterable[int]) -> Interval:
    known = list(values)
    return Interval(min(known), max(known))


def full_range(bits: int) -> Interval:
    """All signed values of a width."""
    return Interval(0, 1) if bits == 1 else Interval(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def unsigned_range(bits: int) -> Interval:
    """All unsigned values of a width."""
    return Interval(0, (1 << bits) - 1)


class RangeSource(Protocol):
    """What a range may rest on beyond the operands."""

    def operand_range(self, value: Value, block: BasicBlock) -> Interval:
        """The range of a value as an operand of an instruction in `block`."""
        ...

    def edge_range(self, value: Value, source: BasicBlock, target: BasicBlock) -> Interval:
        """The range of a value when control goes from `source` to `target`."""
        ...

    def phi_range(self, phi: I.Phi) -> Interval | None:
        """The range of a loop header's phi; None for a phi that no back edge comes to."""
        ...


class Transfer:
    """The range of one value from its operands' ranges."""

    def __init__(self, function: Function, module: Module | None, source: RangeSource) -> None:
        self.module = module
        self.source = source
        self.block_of = {i: block for block in function.blocks for i in block.instructions}

    def range_of(self, value: Value) -> Interval:
        """The range of a scalar integer value; every other value has none (it is a mistake to ask)."""
        full = full_range(T.bits(value.type))
        constant = int_value(value)
        if constant is not None:
            return Interval(constant, constant)
        if isinstance(value, Argument):
            return _by_attributes(value.attributes, full)
        if not isinstance(value, I.Instruction) or value not in self.block_of:
            return full
        found = self._by_operation(value, T.bits(value.type))
        return full if found is None else found.meet(full)

    def _by_operation(self, value: I.Instruction, bits: int) -> Interval | None:
        match value:
            case I.BinaryOp():
                return self._binary(value, bits)
            case I.Cast():
                return self._cast(value, bits)
            case I.Select():
                then, other = (self._operand(value, i) for i in (1, 2))
                return then.hull(other)
            case I.Phi():
                return self._phi(value)
            case I.CallBase():
                return self._call(value, bits)
            case I.Load():
                return self._by_metadata(value)
            case _:
                return None

    def _operand(self, user: I.Instruction, index: int) -> Interval:
        return self.source.operand_range(user.operands[index], self.block_of[user])

    def _binary(self, value: I.BinaryOp, bits: int) -> Interval | None:
        x, y = self._operand(value, 0), self._operand(value, 1)
        full = full_range(bits)
        if value.opcode in ("add", "sub", "mul"):
            exact = x + y if value.opcode == "add" else x - y if value.opcode == "sub" else x * y
            # With nsw, whatever leaves the range is poison.
            return exact.meet(full) if "nsw" in value.flags or exact.within(full) else None
        if value.opcode in ("and", "or", "xor"):
            return _bitwise(value.opcode, x, y)
        if value.opcode in ("udiv", "sdiv", "urem", "srem"):
            return _division(value.opcode, x, y)
        return _shift(value, x, y, bits)

    def _cast(self, value: I.Cast, bits: int) -> Interval | None:
        source_type = value.operands[0].type
        if not isinstance(source_type, T.IntType):
            return None
        x = self._operand(value, 0)
        match value.opcode:
            case "zext":
                if x.low >= 0 or "nneg" in value.flags:
                    return x.meet(Interval(0, max(x.high, 0)))
                return unsigned_range(source_type.bits)
            case "sext":
                return -x if source_type.bits == 1 else x
            case "trunc":
                return x if x.within(full_range(bits)) else None
            case _:
                return None

    def _phi(self, phi: I.Phi) -> Interval | None:
        around = self.source.phi_range(phi)
        if around is not None:
            return around
        block = self.block_of[phi]
        ranges = [self.source.edge_range(v, pred, block) for v, pred in phi.incoming if v is not phi]
        return Interval(min(r.low for r in ranges), max(r.high for r in ranges)) if ranges else None

    def _call(self, call: I.CallBase, bits: int) -> Interval | None:
        known = _by_attributes(call.return_attributes, full_range(bits))
        by_metadata = self._by_metadata(call)
        known = known if by_metadata is None else by_metadata.meet(known)
        callee = callee_of(call)
        if callee is not None:
            known = _by_attributes(callee.return_attributes, known)
        name = callee_name(call).split(".")
        if len(name) < 3 or name[0] != "llvm":
            return known
        ranges = [self._operand(call, i) for i, a in enumerate(call.arguments) if isinstance(a.type, T.IntType)]
        rule = _INTRINSICS.get(name[1]) if bits > 1 else None
        found = rule(ranges, bits) if rule is not None else None
        return known if found is None else found.meet(known)

    def _by_metadata(self, instruction: I.Instruction) -> Interval | None:
        """`!range !{i32 low, i32 high, ...}`: half-open pairs."""
        for kind, node in instruction.metadata:
            if kind != "range":
                continue
            if isinstance(node, MDRef) and self.module is not None:
                node = self.module.metadata.get(node.number)
            if not isinstance(node, MDNode):
                continue
            bounds = [int_value(o.value) for o in node.operands if isinstance(o, MDConstant)]
            lows, highs = bounds[::2], bounds[1::2]
            pairs = [(a, b) for a, b in zip(lows, highs, strict=False) if a is not None and b is not None and a < b]
            if pairs and len(pairs) == len(lows):
                return Interval(min(a for a, _ in pairs), max(b for _, b in pairs) - 1)
        return None


def _by_attributes(attributes: Iterable[str], full: Interval) -> Interval:
    """`range(i32 low, high)`: half-open; a wrapped one (low >= high) says nothing about the hull."""
    for attribute in attributes:
        match = _RANGE_ATTRIBUTE.fullmatch(attribute)
        if match and int(match[1]) < int(match[2]):
            return Interval(int(match[1]), int(match[2]) - 1).meet(full)
    return full


def _bitwise(opcode: str, x: Interval, y: Interval) -> Interval | None:
    if opcode == "and":
        bounds = [r.high for r in (x, y) if r.low >= 0]
        return Interval(0, min(bounds)) if bounds else None
    if x.low < 0 or y.low < 0:
        return None
    top = (1 << max(x.high, y.high).bit_length()) - 1
    return Interval(max(x.low, y.low) if opcode == "or" else 0, top)


def _division(opcode: str, x: Interval, y: Interval) -> Interval | None:
    if opcode in ("udiv", "urem") and (x.low < 0 or y.low < 0):
        # A divisor that is positive as a signed number bounds the remainder whatever the dividend.
        return Interval(0, y.high - 1) if opcode == "urem" and y.low > 0 else None
    if y.high < 1:
        return None
    divisor = Interval(max(y.low, 1), y.high)
    if opcode in ("srem", "urem"):
        if y.low < 0:
            return None
        low = max(x.low, 1 - divisor.high) if x.low < 0 else 0
        return Interval(low, min(x.high, divisor.high - 1) if x.high >= 0 else 0)
    if y.low < 0:
        return None
    # Rounding is towards zero, so an end is furthest out with the smallest divisor if it is beyond zero.
    low = _towards_zero(x.low, divisor.low if x.low < 0 else divisor.high)
    high = _towards_zero(x.high, divisor.high if x.high < 0 else divisor.low)
    return Interval(low, high)


def _towards_zero(a: int, b: int) -> int:
    return -(-a // b) if a < 0 else a // b


def _shift(value: I.BinaryOp, x: Interval, y: Interval, bits: int) -> Interval | None:
    if y.low < 0 or y.low >= bits:
        return None
    y = Interval(y.low, min(y.high, bits - 1))
    if value.opcode == "shl":
        exact = x * Interval(1 << y.low, 1 << y.high)
        full = full_range(bits)
        return exact.meet(full) if "nsw" in value.flags or exact.within(full) else None
    if value.opcode == "ashr":
        return hull_of(a >> s for a in (x.low, x.high) for s in (y.low, y.high))
    if value.opcode == "lshr":
        if x.low >= 0:
            return Interval(x.low >> y.high, x.high >> y.low)
        return Interval(0, ((1 << bits) - 1) >> y.low) if y.low > 0 else None
    return None


def _unsigned_only(combine: Callable[[int, int], int]) -> Callable[[list[Interval], int], Interval | None]:
    """For `umin` and `umax`, where signed and unsigned order agree."""

    def rule(ranges: list[Interval], bits: int) -> Interval | None:
        x, y = ranges
        if x.low < 0 or y.low < 0:
            return None
        return Interval(combine(x.low, y.low), combine(x.high, y.high))

    return rule


def _umin(ranges: list[Interval], bits: int) -> Interval | None:
    bounds = [r.high for r in ranges if r.low >= 0]
    return _unsigned_only(min)(ranges, bits) or (Interval(0, min(bounds)) if bounds else None)


def _abs(ranges: list[Interval], bits: int) -> Interval | None:
    x = ranges[0]
    if x.low == full_range(bits).low:
        return None
    ends = (abs(x.low), abs(x.high))
    return Interval(0 if x.low <= 0 <= x.high else min(ends), max(ends))


_INTRINSICS: dict[str, Callable[[list[Interval], int], Interval | None]] = {
    "smax": lambda r, bits: Interval(max(r[0].low, r[1].low), max(r[0].high, r[1].high)),
    "smin": lambda r, bits: Interval(min(r[0].low, r[1].low), min(r[0].high, r[1].high)),
    "umax": _unsigned_only(max),
    "umin": _umin,
    "abs": _abs,
    "ctpop": lambda r, bits: Interval(0, bits),
    "ctlz": lambda r, bits: Interval(0, bits),
    "cttz": lambda r, bits: Interval(0, bits),
}
