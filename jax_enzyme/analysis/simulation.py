"""Loops that are driven by constants alone, run by hand: doubling strides, bit tricks, countdowns by division."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.ranges import Interval
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.values import BasicBlock, Value, int_value

MAX_ITERATIONS = 4096
"""Of a loop that goes on for longer nothing is said: its trip count and its phis are as if nobody had looked."""
_TOTAL: dict[str, Callable[[int, int], int]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul,
    "and": operator.and_, "or": operator.or_, "xor": operator.xor,
}  # fmt: skip


@dataclass(frozen=True)
class Simulation:
    """In which iteration the loop is left at the exit, and the values that the header's phis had up to then."""

    count: int
    ranges: dict[I.Phi, Interval]


class _Opaque(Exception):
    """The value rests on something other than constants and the header's phis."""


class LoopFacts(Protocol):
    """What is asked of a function to run a loop of it."""

    @property
    def block_of(self) -> Mapping[Value, BasicBlock]: ...

    def header_operands(
        self, phi: I.Phi, loop: Loop
    ) -> tuple[tuple[Value, BasicBlock], tuple[Value, BasicBlock]] | None: ...


def simulate(facts: LoopFacts, loop: Loop, source: BasicBlock) -> Simulation | None:
    """Runs the header's phis until the branch that ends `source` leaves the loop."""
    stay = source.terminator.targets[0] in loop
    condition = source.terminator.operands[0]
    try:
        phis = _driving_phis(facts, loop, condition)
        if not phis:
            return None
        now = {phi: _constant(outer) for phi, (outer, _) in phis.items()}
        seen = {phi: Interval(x, x) for phi, x in now.items()}
        for count in range(MAX_ITERATIONS):
            table: dict[Value, int] = {**now}
            if bool(_evaluate(condition, table)) is not stay:
                return Simulation(count, seen)
            now = {phi: _evaluate(latch, table) for phi, (_, latch) in phis.items()}
            seen = {phi: seen[phi].hull(Interval(x, x)) for phi, x in now.items()}
    except _Opaque:
        pass
    return None


def _driving_phis(facts: LoopFacts, loop: Loop, condition: Value) -> dict[I.Phi, tuple[Value, Value]]:
    """The header's phis that the condition rests on, with their values on entry and from the latch."""
    phis: dict[I.Phi, tuple[Value, Value]] = {}
    seen: set[Value] = set()
    stack = [condition]
    while stack:
        value = stack.pop()
        if value in seen or int_value(value) is not None:
            continue
        seen.add(value)
        if isinstance(value, I.Phi) and facts.block_of.get(value) is loop.header:
            ends = facts.header_operands(value, loop)
            if ends is None:
                raise _Opaque
            phis[value] = (ends[0][0], ends[1][0])
            stack.extend(phis[value])
        elif isinstance(value, I.BinaryOp | I.Cast | I.Compare | I.Select) and facts.block_of.get(value) in loop.blocks:
            stack.extend(value.operands)
        else:
            raise _Opaque
    return phis


def _constant(value: Value) -> int:
    constant = int_value(value)
    if constant is None:
        raise _Opaque
    return constant


def _evaluate(value: Value, table: dict[Value, int]) -> int:
    """The signed value of an expression (an i1 is 0 or 1)."""
    constant = int_value(value)
    if constant is not None:
        return constant
    if value not in table:
        assert isinstance(value, I.Instruction)
        if isinstance(value, I.Phi):
            raise _Opaque
        operands = [_evaluate(operand, table) for operand in value.operands]
        table[value] = _apply(value, operands)
    return table[value]


def _apply(value: I.Instruction, operands: list[int]) -> int:
    bits = _bits(value)
    match value:
        case I.Select():
            return operands[1] if operands[0] else operands[2]
        case I.Compare(opcode="icmp"):
            return int(_compare(value.predicate, operands[0], operands[1], _bits(value.operands[0])))
        case I.BinaryOp():
            return _wrap(_binary(value, operands[0], operands[1], bits), bits)
        case I.Cast(opcode="zext"):
            return operands[0] % (1 << _bits(value.operands[0]))
        case I.Cast(opcode="sext"):
            return -operands[0] if _bits(value.operands[0]) == 1 else operands[0]
        case I.Cast(opcode="trunc"):
            return _wrap(operands[0], bits)
        case _:
            raise _Opaque


def _bits(value: Value) -> int:
    if not isinstance(value.type, T.IntType):
        raise _Opaque
    return value.type.bits


def _wrap(x: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return x & 1 if bits == 1 else (x + half) % (2 * half) - half


def _compare(predicate: str, x: int, y: int, bits: int) -> bool:
    if predicate[0] == "u" or bits == 1:
        sign = -1 if predicate[0] == "s" else 1
        x, y = sign * (x % (1 << bits)), sign * (y % (1 << bits))
    match predicate[-2:]:
        case "eq":
            return x == y
        case "ne":
            return x != y
        case "lt":
            return x < y
        case "le":
            return x <= y
        case "gt":
            return x > y
        case _:
            return x >= y


def _binary(value: I.BinaryOp, x: int, y: int, bits: int) -> int:
    ux, uy = x % (1 << bits), y % (1 << bits)
    if value.opcode in _TOTAL:
        return _TOTAL[value.opcode](x, y)
    match value.opcode:
        case "shl" if uy < bits:
            return x << uy
        case "lshr" if uy < bits:
            return ux >> uy
        case "ashr" if uy < bits and bits > 1:
            return x >> uy
        case "udiv" if uy:
            return ux // uy
        case "urem" if uy:
            return ux % uy
        case "sdiv" | "srem" if y and bits > 1:
            quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
            return quotient if value.opcode == "sdiv" else x - quotient * y
        case _:
            raise _Opaque
