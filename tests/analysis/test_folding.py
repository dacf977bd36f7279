"""What instructions make of constants: of arrays what they make of each number, and that by the rules of LLVM."""

from __future__ import annotations

import random

import numpy as np
import pytest

from jax_enzyme.analysis.folding import folded
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.values import Argument

BINARY = "add sub mul and or xor shl lshr ashr udiv sdiv urem srem".split()
PREDICATES = "eq ne slt sle sgt sge ult ule ugt uge".split()


def instructions(bits: int) -> list[I.Instruction]:
    """Everything that takes two integers of a width."""
    kind = T.IntType(bits)
    x, y = Argument(kind), Argument(kind)
    found: list[I.Instruction] = [I.BinaryOp(kind, opcode, [x, y]) for opcode in BINARY]
    for count in ("ctpop", "cttz"):
        function = T.FunctionType(kind, (kind, T.I1))
        callee = Function(T.PTR, function, name=f"llvm.{count}.i{bits}")
        found.append(I.Call(kind, "call", [x, y, callee], function))
    return found + [I.Compare(T.I1, "icmp", [x, y], predicate) for predicate in PREDICATES]


@pytest.mark.parametrize("bits", [1, 8, 33, 63, 64])
def test_arrays_are_folded_number_by_number(bits: int) -> None:
    draw = random.Random(bits)
    half = 1 << (bits - 1)
    edges = [0, 1] if bits == 1 else [0, 1, -1, 3, bits - 1, bits, half - 1, -half]
    for instruction in instructions(bits):
        for _ in range(20):
            rows = [(draw.choice(edges), draw.choice(edges)) for _ in range(3)]
            each = [folded(instruction, row) for row in rows]
            together = folded(instruction, [np.array(column, np.int64) for column in zip(*rows, strict=True)])
            assert (None if together is None else together.tolist()) == (None if None in each else each)


def test_the_rules_are_those_of_llvm() -> None:
    x, y = Argument(T.I8), Argument(T.I8)
    assert folded(I.BinaryOp(T.I8, "add", [x, y]), [127, 1]) == -128
    assert folded(I.BinaryOp(T.I8, "sdiv", [x, y]), [-7, 2]) == -3
    assert folded(I.BinaryOp(T.I8, "srem", [x, y]), [-7, 2]) == -1
    assert folded(I.BinaryOp(T.I8, "udiv", [x, y]), [7, 0]) is None
    assert folded(I.BinaryOp(T.I8, "shl", [x, y]), [1, 8]) is None
    assert folded(I.Compare(T.I1, "icmp", [x, y], "ult"), [-1, 0]) == 0
    assert folded(I.Cast(T.I32, "zext", [x]), [-1]) == 255
    for count, expected in (("cttz", [3, 0, 8]), ("ctpop", [1, 8, 0])):
        function = T.FunctionType(T.I8, (T.I8, T.I1))
        call = I.Call(T.I8, "call", [x, y, Function(T.PTR, function, name=f"llvm.{count}.i8")], function)
        assert [folded(call, [number, 0]) for number in (8, -1, 0)] == expected
