"""CUDA kernels on the CPU under `Options(sanitize=True)`: what is wrong is found in the thread that does it."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import jax_enzyme as je

X = np.arange(1.0, 9.0)
WRONG = {
    "past_its_array": ("y[i] = x[i + 1];", r"reads .* argument `x`: index 8, extent 8"),
    "in_front": ("y[i] = x[i] - x[i - 1];", r"reads .* argument `x`: index -1, extent 8"),
    "past_the_output": ("y[2 * i] = x[i];", r"writes .* argument `y`: index 8, extent 8"),
    "past_shared": (
        "__shared__ double t[7]; t[i] = x[i]; __syncthreads(); y[i] = t[(i + 1) % 7];",
        "index 7, extent 7",
    ),
    "unwritten_shared": (
        "__shared__ double t[8]; if (i < 4) t[i] = x[i]; __syncthreads(); y[i] = 2 * t[7 - i];",
        "reads what nothing wrote: a local variable, index 7",
    ),
    "past_a_local": (
        "double t[3]; for (int j = 0; j <= 3; j++) t[j] = x[i]; y[i] = t[i % 3];",
        "writes .*: index 3, extent 3",
    ),
    "past_a_table": ("y[i] = x[i] * table[i];", "variable `table`: index 4, extent 4"),
    "by_zero": ("y[i] = x[(i + 5) % (i - 3)];", "integer division by zero"),
    "by_a_size_that_is_zero": ("y[i] = x[(i + 5) % (n - 8)];", "integer division by zero"),
    "endless": ("double s = x[i]; while (s > 0) s = s * 1.0; y[i] = s;", "its time limit is over"),
    "waits_for_ever": (
        "__shared__ int f; if (i == 0) f = 0; __syncthreads();"
        "while (atomicAdd(&f, 0) < 9) if (i > 9) f = 9; y[i] = x[i];",
        "its time limit is over",
    ),
}
START = "int i = blockIdx.x * blockDim.x + threadIdx.x;"
SOURCE = "__device__ double table[4] = {1, 2, 3, 4};\n" + "\n".join(
    f'extern "C" __global__ void {name}(int n, const double *x, double *y) {{ {START}\n{body} }}'
    for name, (body, _) in {
        **WRONG,
        "some": ("if (i < n - 1) y[i] = x[i];", ""),
        "right": (
            "__shared__ double t[8]; t[i] = x[i] * x[i]; __syncthreads();"
            "for (int s = 4; s > 0; s /= 2) { if (i < s) t[i] += t[i + s]; __syncthreads(); } y[i] = t[0] * x[i];",
            "",
        ),
    }.items()
)


def _kernel(name: str, sanitize: bool = True) -> je.Kernel:
    options = je.Options(sanitize=sanitize, time_limit=2 if sanitize else None)
    return je.kernel(SOURCE, name, "n: i32, x: f64[n], out y: f64[n]", lang="cuda", grid=1, block="n", options=options)


@pytest.mark.parametrize("name", WRONG)
def test_what_a_thread_does_wrong_has_its_line(name: str) -> None:
    line = 2 + next(n for n, text in enumerate(SOURCE.splitlines()) if f" {name}(" in text)
    with pytest.raises(jax.errors.JaxRuntimeError, match=rf"kernel `{name}` .*{WRONG[name][1]}.*\(kernel\.cu:{line}:"):
        jax.block_until_ready(_kernel(name)(X))


def test_a_division_by_a_size_that_is_zero_fails_without_the_mode() -> None:
    with pytest.raises(jax.errors.JaxRuntimeError, match="integer division by zero"):
        jax.block_until_ready(jax.jacrev(_kernel("by_a_size_that_is_zero", sanitize=False))(X))


def test_what_no_thread_writes_is_named() -> None:
    with pytest.raises(jax.errors.JaxRuntimeError, match="output `y` without a value: index 7 of 8"):
        jax.block_until_ready(_kernel("some")(X))


def test_a_right_kernel_and_its_derivatives_stay_right() -> None:
    checked, plain = _kernel("right"), _kernel("right", sanitize=False)
    np.testing.assert_array_equal(checked(X), plain(X))
    for mode in (jax.jacfwd, jax.jacrev):
        np.testing.assert_array_equal(mode(checked)(X), mode(plain)(X))
