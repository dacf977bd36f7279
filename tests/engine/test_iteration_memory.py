"""What a loop allocates for one iteration alone is a local variable; what goes on to the next one is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from jax_enzyme.analysis.loops import Loops
from jax_enzyme.analysis.objects import call_effect
from jax_enzyme.codegen import derived
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.writer import to_text
from jax_enzyme.rules.effects import Effect
from jax_enzyme.transform.iteration_memory import keep_iteration_memory
from tests.kernels.case import Case
from tests.support import three_way, through_engine
from tests.support.through_engine import Specialised

SOURCE = """
#include <cmath>
#include <cstdlib>
#include <vector>
extern "C" double samples(int m, int n, const double *x, const double *w) {
    double total = 0;
    for (int k = 0; k < m; k++) {
        std::vector<double> z(n), y(x + k * n, x + (k + 1) * n);
        for (int j = 0; j < n; j++)
            if (j % 3) z[j] = std::tanh(y[j] * w[j]);
        if (z[1] > 0.5) continue;
        for (int j = 1; j < n; j++) total += z[j] * z[j - 1] + z[j];
    }
    return total;
}
extern "C" double handed_on(int m, int n, const double *x, const double *w) {
    double total = 0, *last = (double *)calloc(n, 8);
    for (int k = 0; k < m; k++) {
        double *z = (double *)malloc(n * 8);
        for (int j = 0; j < n; j++) z[j] = std::tanh(x[k * n + j] * w[j]) * (1 + last[j]);
        total += z[0] * z[n - 1];
        free(last);
        last = z;
    }
    free(last);
    return total;
}
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = Path(tmp_path_factory.mktemp("memory")) / "memory.cpp"
    path.write_text(SOURCE)
    return str(path)


def _case(source: str, name: str, n: int) -> Case:
    signature = "m: i32, n: i32, x: f64[m, n], w: f64[n] -> f64"
    return Case(name, signature, lambda r: {"x": r.normal(size=(7, n)), "w": r.normal(size=n)}, file=source)


def _allocates_in_a_loop(row: Case) -> bool:
    kernel = Specialised.of(row)
    function = derived.regular(kernel.program, kernel.signature, kernel.binding, None)
    loops = Loops.of(function.module.functions[function.symbol])
    inside = (i for loop in loops for b in loop.blocks for i in b.instructions)
    return any(isinstance(i, I.Call) and call_effect(i) is Effect.ALLOCATE for i in inside)


@pytest.mark.parametrize("n", [20, 3000])
def test_memory_of_one_iteration(source: str, n: int) -> None:
    row = _case(source, "samples", n)
    assert not _allocates_in_a_loop(row)
    assert Specialised.of(row).splits(Specialised.of(row).vjp)
    three_way.check(through_engine.subject(row, split=True), row)


def test_memory_that_goes_on_is_allocated(source: str) -> None:
    row = _case(source, "handed_on", 20)
    assert _allocates_in_a_loop(row)


def test_copies_come_to_local_variables() -> None:
    """What LLVM marks as a tail call comes to no variable of its caller."""
    text = """
    declare ptr @malloc(i64)
    declare void @free(ptr)
    declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
    define i64 @f(ptr noalias %x) {
    entry:
      br label %loop
    loop:
      %i = phi i64 [ 0, %entry ], [ %next, %loop ]
      %z = tail call ptr @malloc(i64 80)
      tail call void @llvm.memcpy.p0.p0.i64(ptr %z, ptr %x, i64 80, i1 false)
      tail call void @free(ptr %z)
      %next = add i64 %i, 1
      %more = icmp ult i64 %next, 9
      br i1 %more, label %loop, label %exit
    exit:
      ret i64 0
    }
    """
    changed = to_text(keep_iteration_memory(ArrayFunction(parse(text), "f", ())).module)
    assert "alloca [80 x i8]" in changed
    assert "tail call" not in changed
    assert "call ptr @malloc" not in changed
