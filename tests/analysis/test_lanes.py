"""Which bytes of which values a value consists of."""

from __future__ import annotations

import pytest

from jax_enzyme.analysis.lanes import Lanes
from jax_enzyme.ir.reader import read

MOVES = {
    "a shift and a cut": ("%s = lshr i64 %w, 32\n%r = trunc i64 %s to i32", "w4 w5 w6 w7"),
    "a mask": ("%r = and i64 %w, 4294901760", "0 0 w2 w3 0 0 0 0"),
    "words put together": (
        "%a = zext i32 %k to i64\n%b = trunc i64 %w to i32\n%c = zext i32 %b to i64\n"
        "%d = shl i64 %c, 32\n%r = or i64 %a, %d",
        "k0 k1 k2 k3 w0 w1 w2 w3",
    ),
    "a sum that carries nothing": (
        "%a = zext i32 %k to i64\n%b = shl i64 %w, 32\n%r = add i64 %a, %b", "k0 k1 k2 k3 w0 w1 w2 w3"
    ),
    "swapped bytes": ("%r = call i32 @llvm.bswap.i32(i32 %k)", "k3 k2 k1 k0"),
    "a funnel": ("%r = call i64 @llvm.fshl.i64(i64 %w, i64 %w, i64 16)", "w6 w7 w0 w1 w2 w3 w4 w5"),
    "lanes": (
        "%a = bitcast <2 x double> %v to <4 x i32>\n%b = insertelement <4 x i32> %a, i32 %k, i64 1\n"
        "%c = shufflevector <4 x i32> %b, <4 x i32> poison, <2 x i32> <i32 1, i32 3>\n%r = bitcast <2 x i32> %c to i64",
        "k0 k1 k2 k3 v12 v13 v14 v15",
    ),
    "what nobody knows": (
        "%r = shufflevector <2 x double> %v, <2 x double> poison, <2 x i32> <i32 1, i32 poison>",
        "v8 v9 v10 v11 v12 v13 v14 v15 - - - - - - - -",
    ),
    "lanes that are cut": (
        "%a = bitcast <2 x double> %v to <2 x i64>\n%r = trunc <2 x i64> %a to <2 x i16>", "v0 v1 v8 v9"
    ),
    "a shift through bytes": ("%r = lshr i64 %w, 4", "r0 r1 r2 r3 r4 r5 r6 r7"),
    "a mask through a byte": ("%r = and i32 %k, 2147483647", "r0 r1 r2 r3"),
    "a sum that may carry": ("%r = add i32 %k, 1", "r0 r1 r2 r3"),
    "the bits of a number": ("%r = bitcast double %x to i64", "r0 r1 r2 r3 r4 r5 r6 r7"),
    "a choice": ("%r = select i1 %bit, i32 %k, i32 3", "r0 r1 r2 r3"),
    "a lane that is chosen late": ("%r = extractelement <2 x double> %v, i64 %w", "r0 r1 r2 r3 r4 r5 r6 r7"),
    "a bit": ("%r = trunc i32 %k to i1", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", MOVES)
def test_bytes(name: str) -> None:
    body, expected = MOVES[name]
    text = f"""declare i32 @llvm.bswap.i32(i32)
declare i64 @llvm.fshl.i64(i64, i64, i64)
define void @f(i64 %w, i32 %k, <2 x double> %v, double %x, i1 %bit) {{
{body}
ret void
}}"""
    function = read(text).functions["f"]
    result = next(i for i in function.instructions() if i.name == "r")
    shown = [f"{b[0].name}{b[1]}" if isinstance(b, tuple) else "-" if b is None else str(b) for b in Lanes().of(result)]
    assert " ".join(shown) == expected
    assert Lanes().is_move(result) == (bool(expected) and not expected.startswith("r0"))
