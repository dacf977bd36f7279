"""Sums of the lanes of several vectors that are made together: the same numbers, and fewer instructions."""

from __future__ import annotations

import ctypes

import llvmlite.binding as llvm
import numpy as np
import pytest

from jax_enzyme.codegen.host import target_machine
from jax_enzyme.codegen.lane_sums import with_common_sums
from jax_enzyme.ir.writer import to_text

LANES = 8


def code(places: list[int], *, between: str = "", flags: str = "reassoc nsz", lanes: int = LANES) -> str:
    """`y[places[n]] += sum(v[n])` for all n, in order."""
    kind = f"<{lanes} x float>"
    rows = [f"  %v{n} = load {kind}, ptr %v{n}.at, align 4" for n in range(len(places))]
    at = [f"  %v{n}.at = getelementptr float, ptr %v, i64 {n * lanes}" for n in range(len(places))]
    lines = [line for pair in zip(at, rows, strict=True) for line in pair]
    for n, place in enumerate(places):
        lines += [
            f"  %y{n}.at = getelementptr i8, ptr %y, i64 {4 * place}",
            f"  %x{n} = load float, ptr %y{n}.at, align 4",
            f"  %s{n} = call {flags} float @llvm.vector.reduce.fadd.v{lanes}f32(float %x{n}, {kind} %v{n})",
            f"  store float %s{n}, ptr %y{n}.at, align 4",
            between if n == 1 else "",
        ]
    return "\n".join(
        [
            f"declare float @llvm.vector.reduce.fadd.v{lanes}f32(float, {kind})",
            "define void @f(ptr %v, ptr %y) {", *lines, "  ret void", "}",
        ]
    )  # fmt: skip


def run(text: str, v: np.ndarray, y: np.ndarray) -> np.ndarray:
    module = llvm.parse_assembly(text, llvm.create_context())
    module.verify()
    engine = llvm.create_mcjit_compiler(module, target_machine())
    engine.finalize_object()
    found = y.copy()
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(engine.get_function_address("f"))
    call(v.ctypes.data, found.ctypes.data)
    return found


def changed(text: str) -> str | None:
    found = with_common_sums(llvm.parse_assembly(text, llvm.create_context()))
    return None if found is None else to_text(found)


@pytest.mark.parametrize(
    ("places", "lanes", "is_row"),
    [
        ([0, 1, 2, 3, 4, 5, 6, 7], 8, True),
        ([7, 6, 5, 4, 3, 2, 1, 0], 8, True),
        ([2, 0, 3, 1], 8, True),
        ([0, 2, 4, 6], 4, False),
        ([0, 1, 2, 3, 4, 5], 8, True),  # four of them
        ([3, 3, 3, 3], 4, False),
    ],
)
def test_the_same_sums(places: list[int], lanes: int, is_row: bool) -> None:
    rng = np.random.default_rng(1)
    v = rng.normal(size=(len(places), lanes)).astype(np.float32)
    y = rng.normal(size=10).astype(np.float32)
    text = code(places, lanes=lanes)
    after = changed(text)
    assert after is not None
    assert ("store <" in after) == is_row
    assert after.count("= call") == len(places) % 4
    expected = y.copy()
    np.add.at(expected, places, v.sum(axis=1))
    np.testing.assert_allclose(run(text, v, y), expected, rtol=1e-5)
    np.testing.assert_allclose(run(after, v, y), expected, rtol=1e-5)


def test_memory_keeps_its_order() -> None:
    """What is stored between the sums lands on an element of the row."""
    v, y = np.ones((4, LANES), np.float32), np.zeros(10, np.float32)
    text = code([0, 1, 2, 3], between="  store float 5.0, ptr %y3.early\n", lanes=LANES)
    text = text.replace("  %v0.at =", "  %y3.early = getelementptr float, ptr %y, i64 3\n  %v0.at =")
    after = changed(text)
    assert after is not None and "store <" not in after
    np.testing.assert_array_equal(run(after, v, y)[:4], [8, 8, 8, 13])


@pytest.mark.parametrize("text", [code([0, 1, 2]), code([0, 1, 2, 3], flags="nsz")], ids=["few", "in order"])
def test_what_stays(text: str) -> None:
    assert changed(text) is None
