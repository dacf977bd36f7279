"""Numbers that move as parts of words and vectors: records are loaded as one value, moved by casts, shifts, shuffles,
byte swaps, phis and selects that an optimiser might have left there, and read again in parts.

The programs are random. Each of their moves keeps numbers whole: what takes one apart is refused (see `test_refusals`).
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from jax_enzyme.errors import DifferentiationError
from tests.support.engine import agree, native
from tests.support.engine import one_way as three_way

X = np.array([0.83, 1.41, 0.62, 1.07])
LAYOUTS = (
    ("double", "double"), ("float", "i32", "double"), ("double", "float", "float"), ("i32", "float", "double"),
    ("float", "float", "float", "i32"), ("double", "i16", "i16", "float"), ("i64", "float", "float"), ("i64", "double"),
)  # fmt: skip
SIZES = {"double": 8, "float": 4, "i64": 8, "i32": 4, "i16": 2}
WIDE = ("i128", "<2 x i64>", "<4 x i32>", "<2 x double>", "<4 x float>", "<8 x i16>")


class Program:
    """One function, written line by line."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.blocks = 0
        self.here = "entry"

    def let(self, text: str) -> str:
        self.lines.append(f"%v{len(self.lines)} = {text}")
        return f"%v{len(self.lines) - 1}"

    def do(self, text: str) -> None:
        self.lines.append(text)

    def at(self, base: str, offset: int) -> str:
        return self.let(f"getelementptr i8, ptr {base}, i64 {offset}")

    def record(self, layout: tuple[str, ...], first: int) -> str:
        place = self.let("alloca [16 x i8], align 16")
        offset = 0
        for index, kind in enumerate(layout):
            where = self.at(place, offset)
            if kind[0] == "i":
                self.do(f"store {kind} {index + first + 2}, ptr {where}")
            else:
                value = self.let(f"fmul double %x{(first + index) % 4}, %x{(first + 2 * index + 1) % 4}")
                if kind == "float":
                    value = self.let(f"fptrunc double {value} to float")
                self.do(f"store {kind} {value}, ptr {where}")
            offset += SIZES[kind]
        return place

    def cast(self, value: str, old: str, new: str) -> str:
        return value if old == new else self.let(f"bitcast {old} {value} to {new}")

    def move(self, value: str, wide: str, layout: list[str]) -> tuple[str, str]:
        """The same record, or one of its halves in the other's place, in another type."""
        new = self.random.choice(WIDE)
        kind = self.random.choice(("cast", "turn", "shift", "swap", "put", "choose", "meet"))
        halves = self.halves(layout)
        if kind == "cast":
            return self.cast(value, wide, new), new
        if kind == "turn":
            pair = self.cast(value, wide, "<2 x i64>")
            layout[:] = halves[1] + halves[0]
            mask = "<2 x i32> <i32 1, i32 0>"
            return self.let(f"shufflevector <2 x i64> {pair}, <2 x i64> poison, {mask}"), "<2 x i64>"
        word = self.cast(value, wide, "i128")
        if kind == "shift":
            layout[:] = halves[1] + halves[0]
            if self.random.random() < 0.5:
                return self.let(f"call i128 @llvm.fshl.i128(i128 {word}, i128 {word}, i128 64)"), "i128"
            low, high = self.let(f"lshr i128 {word}, 64"), self.let(f"shl i128 {word}, 64")
            return self.let(f"or i128 {low}, {high}"), "i128"
        if kind == "swap":
            once = self.let(f"call i128 @llvm.bswap.i128(i128 {word})")
            return self.let(f"call i128 @llvm.bswap.i128(i128 {once})"), "i128"
        if kind == "put":
            low = self.let(f"trunc i128 {word} to i64")
            high = self.let(f"trunc i128 {self.let(f'lshr i128 {word}, 64')} to i64")
            part = self.let(f"insertelement <2 x i64> poison, i64 {low}, i64 0")
            return self.let(f"insertelement <2 x i64> {part}, i64 {high}, i64 1"), "<2 x i64>"
        other = self.let(f"load i128, ptr {self.record(tuple(layout), 1)}, align 16")
        if kind == "choose":
            return self.let(f"select i1 %c, i128 {other}, i128 {word}"), "i128"
        self.blocks += 1
        start, name = self.here, f"b{self.blocks}"
        self.do(f"br i1 %c, label %{name}, label %{name}.on")
        self.do(f"{name}:")
        self.do(f"br label %{name}.on")
        self.do(f"{name}.on:")
        self.here = f"{name}.on"
        return self.let(f"phi i128 [ {word}, %{start} ], [ {other}, %{name} ]"), "i128"

    @staticmethod
    def halves(layout: list[str]) -> tuple[list[str], list[str]]:
        size = 0
        for index, kind in enumerate(layout):
            if size == 8:
                return layout[:index], layout[index:]
            size += SIZES[kind]
        raise AssertionError(layout)

    def field(self, value: str, wide: str, kind: str, offset: int) -> str:
        """One member, cut out by a shift or as a lane."""
        width = SIZES[kind]
        if self.random.random() < 0.5:
            lanes = f"<{16 // width} x {kind}>"
            return self.let(f"extractelement {lanes} {self.cast(value, wide, lanes)}, i64 {offset // width}")
        word = self.cast(value, wide, "i128")
        low = self.let(f"lshr i128 {word}, {8 * offset}") if offset else word
        return self.cast(self.let(f"trunc i128 {low} to i{8 * width}"), f"i{8 * width}", kind)


def program(seed: int) -> str:
    made = Program(seed)
    layout = list(made.random.choice(LAYOUTS))
    for index in range(4):
        made.do(f"%p{index} = getelementptr double, ptr %x, i64 {index}")
        made.do(f"%x{index} = load double, ptr %p{index}")
    made.do("%c = fcmp ogt double %x1, %x0")
    wide = made.random.choice(WIDE)
    value = made.let(f"load {wide}, ptr {made.record(tuple(layout), 0)}, align 16")
    for _ in range(made.random.randint(1, 4)):
        value, wide = made.move(value, wide, layout)
    if made.random.random() < 0.5:
        place = made.let("alloca [16 x i8], align 16")
        made.do(f"store {wide} {value}, ptr {place}, align 16")
    else:
        place = ""
    offset = 0
    for index, kind in enumerate(layout):
        if place:
            member = made.let(f"load {kind}, ptr {made.at(place, offset)}")
        else:
            member = made.field(value, wide, kind, offset)
        cast = {"double": "", "float": "fpext float {} to double"}.get(kind, f"sitofp {kind} {{}} to double")
        number = made.let(cast.format(member)) if cast else member
        made.do(f"store double {made.let(f'fmul double {number}, %x{index}')}, ptr {made.at('%y', 8 * index)}")
        offset += SIZES[kind]
    body = "\n  ".join(made.lines)
    return f"""declare i128 @llvm.bswap.i128(i128)
declare i128 @llvm.fshl.i128(i128, i128, i128)
define void @k(ptr %x, ptr %y) {{
entry:
  {body}
  ret void
}}
"""


@pytest.mark.parametrize("seed", (3, 5, 15, 28))
def test_three_way(seed: int) -> None:
    numbers = three_way(native(program(seed), "k", "x: f64[4], out y: f64[4]", {}, lang="llvm"), [X], step=3e-5)
    agree(numbers, 1e-4, 2e-2)


def test_a_number_of_which_bytes_are_swapped_is_refused() -> None:
    source = """#include <stdint.h>
    #include <string.h>
    void k(const double *x, double *y) {
        uint64_t w;
        memcpy(&w, x, 8);
        w = __builtin_bswap64(w);
        memcpy(y, &w, 8);
    }"""
    kernel = native(source, "k", "x: f64[1], out y: f64[1]", {})
    with pytest.raises(DifferentiationError):
        three_way(kernel, [X[:1]])
