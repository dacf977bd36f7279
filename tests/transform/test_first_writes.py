"""Which results need no clearing, and that they are right in memory that holds anything."""

from __future__ import annotations

import numpy as np
import pytest
from jax import numpy as jnp

import jax_enzyme as je
from jax_enzyme.codegen import derived
from jax_enzyme.codegen.canonical import with_regular_loops
from jax_enzyme.ir.arrays import Pullback, Vjp
from jax_enzyme.transform.first_writes import without_needless_clears
from tests.support.engine import agree, native, three_way
from tests.support.native import call

N = 72
X = np.random.default_rng(2).normal(size=N)
V = 2 * X
FILLED = {
    "each": ("y[i] = v;", V),
    "added": ("y[i] += v;", V),
    "backwards": ("y[n - 1 - i] = v;", V[::-1]),
    "halves": ("y[i] = v; y[i + n] = 3 * v;", np.r_[V, 3 * V]),
    "pairs": ("y[2 * i] = v; y[2 * i + 1] += 3 * v;", np.stack([V, 3 * V], 1).ravel()),
}
CLEARED = {
    "but one": ("if (i) y[i] = v;", np.r_[0, V[1:]]),
    "even": ("y[2 * i] = v;", np.stack([V, 0 * V], 1).ravel()),
    "neighbours": ("y[i] += v; y[i + 1] += v;", np.r_[V, 0] + np.r_[0, V]),
    "not the last": ("y[i] = v;", np.r_[V, 0.0]),
    "not the first": ("y[i + 1] = v;", np.r_[0.0, V]),
    "read elsewhere": ("y[i] = v + y[n - 1 - i];", None),
    "all in one": ("atomicAdd(y, v);", np.r_[V.sum()]),
    "at data": ("y[v > 0 ? i : 0] = 1;", None),
    "sometimes": ("if (v > 0) y[i] = v;", np.maximum(V, 0)),
}


def _kernel(body: str, size: int) -> je.Kernel:
    source = f"""extern "C" __global__ void f(int n, const double *x, double *y) {{
      int i = blockIdx.x * 24 + threadIdx.x;
      double v = 2 * x[i];
      {body}
    }}"""
    return je.kernel(source, "f", f"n: i32, x: f64[n], out y: f64[{size}]", lang="cuda", grid="n//24", block=24)


@pytest.mark.parametrize("body", [*FILLED, *CLEARED])
def test_results_that_are_written_whole_are_not_cleared(body: str) -> None:
    text, expected = FILLED.get(body) or CLEARED[body]
    size = N if expected is None else len(expected)
    kernel = _kernel(text, size)
    specialised = kernel.specialise(kernel.binding([jnp.asarray(X)]))
    base = specialised.base
    regular = derived.regular(base.program, base.signature, base.binding, base.options)
    assert [b.name for b in without_needless_clears(regular).buffers if b.zero] == ([] if body in FILLED else ["y"])
    if expected is not None:
        np.testing.assert_allclose(call(specialised.build(), [X])[0], expected, rtol=1e-14)


def test_a_cotangent_that_is_written_once_is_not_cleared() -> None:
    kernel = _kernel("y[i] = v * v;", N)
    base = kernel.specialise(kernel.binding([jnp.asarray(X)])).base
    step = Pullback((True, False), (False, True))
    pullback = derived.derived(base.program, base.signature, base.binding, (step,), base.options)
    assert [b.name for b in pullback.buffers if b.zero] == ["x_bar"]
    assert not any(b.zero for b in without_needless_clears(with_regular_loops(pullback)).buffers)
    je.check_grads(kernel, (X,))


LOOP = "for (int i = 0; i < n; i++)"
PRAGMA = "\n#pragma omp parallel for\n"
SHARED = {
    "each": (f"{PRAGMA} {LOOP} y[i] = exp(x[i]);", ""),
    "some": (f"{PRAGMA} {LOOP} if (i % 3) y[i] = exp(x[i]);", "y x_bar"),
    "most": (f"{PRAGMA} for (int i = 1; i < n; i++) y[i] = exp(x[i]);", "y x_bar"),
    "copied": (f"{LOOP} y[i] = x[i]; {PRAGMA} {LOOP} if (i % 3) y[i] += exp(x[i]);", "x_bar"),
    "copied later": (f"if (y[0] < 1) {LOOP} y[i] = x[i]; {PRAGMA} {LOOP} y[i] += exp(x[i]);", "y x_bar"),
    "read before": (f"double s = y[7]; {PRAGMA} {LOOP} y[i] = exp(x[i]); y[1] += s;", "y"),
}


@pytest.mark.parametrize("name", SHARED)
def test_functions_with_loops_for_several_threads_clear_no_result_that_they_fill(name: str) -> None:
    body, cleared = SHARED[name]
    source = f"#include <math.h>\nvoid f(int n, const double *x, double *y) {{ {body} }}"
    kernel = native(source, "f", "n: i32, x: f64[n], out y: f64[n]", {"n": 4000}, flags=("-fopenmp",))
    for steps, result in (((), "y"), ((Vjp((True, False), (False, True)),), "x_bar")):
        buffers = derived.build(kernel.program, kernel.signature, kernel.binding, steps, kernel.options).buffers
        assert (result in [b.name for b in buffers if b.zero]) is (result in cleared.split())
    agree(three_way(kernel, [np.linspace(0.2, 1.4, 4000)]))


def test_what_a_store_of_three_bytes_leaves_of_four_is_cleared() -> None:
    source = """
    typedef struct { unsigned char r, g, b; } colour;
    static void put(unsigned char *y, colour c) { *(colour *)y = c; }
    void f(int n, const colour *x, unsigned char *y) {
      #pragma omp parallel for
      for (int i = 0; i < n; i++) put(y + 4 * i, x[i]);
    }"""
    kernel = native(source, "f", "n: i32, x: u8[n,3], out y: u8[n,4]", {"n": 4000}, flags=("-fopenmp",))
    x = np.arange(12000, dtype=np.uint8).reshape(4000, 3)
    np.testing.assert_array_equal(kernel.run((), [x])[0], np.c_[x, 0 * x[:, 0]])
