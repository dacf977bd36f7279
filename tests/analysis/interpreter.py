"""Runs integer functions instruction by instruction, with poison, and reports every step to an observer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.values import BasicBlock, Poison, Undef, Value, int_value

POISON = None
Number = int | None


class Undefined(Exception):
    """The run has undefined behaviour, or does what is not modelled: it says nothing about the facts."""


def signed(x: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return x & 1 if bits == 1 else (x + half) % (2 * half) - half


def two(x: int, bits: int) -> int:
    """As a number of two's complement, for i1 too (-1 or 0)."""
    return -x if bits == 1 else x


@dataclass
class Run:
    """One run. `defined(value, number)` is called for every instruction with an integer result, `moved(source, target)`
    before every step from block to block."""

    function: Function
    arguments: list[int]
    defined: Callable[[I.Instruction, Number], None]
    moved: Callable[[BasicBlock, BasicBlock], None]
    limit: int = 3_000
    registers: dict[Value, Number] = field(default_factory=dict)

    def go(self) -> None:
        self.registers.update(zip(self.function.arguments, self.arguments, strict=True))
        block, previous = self.function.entry, None
        for _ in range(self.limit):
            following = self._block(block, previous)
            if following is None:
                return
            self.moved(block, following)
            block, previous = following, block
        raise Undefined("too long")

    def _block(self, block: BasicBlock, previous: BasicBlock | None) -> BasicBlock | None:
        phis = [i for i in block.instructions if isinstance(i, I.Phi)]
        news = [self.get(next(v for v, b in phi.incoming if b is previous)) for phi in phis]
        for phi, new in zip(phis, news, strict=True):
            self._set(phi, new)
        for instruction in block.instructions[len(phis) : -1]:
            if isinstance(instruction.type, T.IntType):
                self._set(instruction, self._compute(instruction))
        end = block.terminator
        if isinstance(end, I.Return):
            return None
        if isinstance(end, I.Branch):
            return end.targets[0]
        x = self.get(end.operands[0])
        if x is POISON or not isinstance(end, I.CondBranch | I.Switch):
            raise Undefined("branch on poison")
        if isinstance(end, I.CondBranch):
            return end.targets[0 if x else 1]
        return next((b for v, b in end.cases if int_value(v) == x), end.targets[0])

    def _set(self, value: I.Instruction, number: Number) -> None:
        self.registers[value] = number
        self.defined(value, number)

    def get(self, value: Value) -> Number:
        if isinstance(value, Poison | Undef):
            return POISON
        constant = int_value(value)
        return self.registers[value] if constant is None else constant

    def _compute(self, value: I.Instruction) -> Number:
        xs = [self.get(o) for o in (value.arguments if isinstance(value, I.Call) else value.operands)]
        if isinstance(value, I.Freeze):
            if xs[0] is POISON:
                raise Undefined("frozen poison")
            return xs[0]
        if isinstance(value, I.Select):
            return POISON if xs[0] is POISON else xs[1] if xs[0] else xs[2]
        known = [x for x in xs if x is not POISON]
        if len(known) < len(xs):
            return POISON
        bits = width(value)
        match value:
            case I.Compare():
                return int(compare(value.predicate, known[0], known[1], width(value.operands[0])))
            case I.Cast():
                return cast(value, known[0], width(value.operands[0]), bits)
            case I.BinaryOp():
                return binary(value, known[0], known[1], bits)
            case I.Call():
                return call(value, known, bits)
            case _:
                raise Undefined(value.opcode)


def width(value: Value) -> int:
    assert isinstance(value.type, T.IntType)
    return value.type.bits


def compare(predicate: str, x: int, y: int, bits: int) -> bool:
    if predicate.startswith("u"):
        x, y = x % (1 << bits), y % (1 << bits)
    else:
        x, y = two(x, bits), two(y, bits)
    return {"eq": x == y, "ne": x != y, "lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y}[predicate[-2:]]


def cast(value: I.Cast, x: int, source: int, bits: int) -> Number:
    unsigned = x % (1 << source)
    match value.opcode:
        case "zext":
            return POISON if "nneg" in value.flags and two(x, source) < 0 else signed(unsigned, bits)
        case "sext":
            return two(x, source)
        case "trunc":
            result = signed(x, bits)
            lost = ("nsw" in value.flags and two(result, bits) != x) or ("nuw" in value.flags and unsigned >> bits)
            return POISON if lost else result
        case _:
            raise Undefined(value.opcode)


def binary(value: I.BinaryOp, x: int, y: int, bits: int) -> Number:
    a, b = x % (1 << bits), y % (1 << bits)
    x, y = two(x, bits), two(y, bits)
    opcode, flags = value.opcode, value.flags
    if opcode in ("shl", "lshr", "ashr") and b >= bits:
        return POISON
    if opcode in ("udiv", "urem", "sdiv", "srem") and (
        b == 0 or (opcode[0] == "s" and y == -1 and a == 1 << (bits - 1))
    ):
        raise Undefined("division")
    quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) if y else 0
    exact, unsigned = {
        "add": lambda: (x + y, a + b),
        "sub": lambda: (x - y, a - b),
        "mul": lambda: (x * y, a * b),
        "shl": lambda: (x << b, a << b),
        "and": lambda: (a & b, a & b),
        "or": lambda: (a | b, a | b),
        "xor": lambda: (a ^ b, a ^ b),
        "lshr": lambda: (a >> b, a >> b),
        "ashr": lambda: (x >> b, x >> b),
        "udiv": lambda: (a // b, a // b),
        "urem": lambda: (a % b, a % b),
        "sdiv": lambda: (quotient, quotient),
        "srem": lambda: (x - quotient * y, x - quotient * y),
    }[opcode]()
    result = signed(exact, bits)
    if ("nsw" in flags and two(result, bits) != exact) or ("nuw" in flags and not 0 <= unsigned < 1 << bits):
        return POISON
    if "disjoint" in flags and a & b:
        return POISON
    if "exact" in flags and (a & ((1 << b) - 1) if opcode.endswith("shr") else a % b if opcode == "udiv" else x % y):
        return POISON
    return result


def call(value: I.Call, xs: list[int], bits: int) -> Number:
    name = value.callee.name.split(".")[1] if value.callee.name.startswith("llvm.") else ""
    x, y = xs[0], xs[-1]
    a, b = x % (1 << bits), y % (1 << bits)
    match name:
        case "smax" | "smin":
            return signed((max if name == "smax" else min)(two(x, bits), two(y, bits)), bits)
        case "umax" | "umin":
            return signed((max if name == "umax" else min)(a, b), bits)
        case "usub":
            return signed(max(a - b, 0), bits)
        case "abs":
            return signed(abs(two(x, bits)), bits) if not (y and a == 1 << (bits - 1)) else POISON
        case _:
            raise Undefined(value.callee.name)
