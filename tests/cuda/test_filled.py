"""Outputs that a launch fills are not cleared before it: those, and no others."""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import jax_enzyme as je
from jax_enzyme.codegen.gpu.derived import call_layout
from jax_enzyme.frontends import load
from jax_enzyme.signature import Binding, parse, parse_launch
from tests.support.stand_in_driver import StandIn

SOURCE = """
#ifndef PTX
#define PTX ""
#endif
#define KERNEL(name) extern "C" __global__ void name(int n, const int *at, const double *x, double *y)
#define I int i = blockIdx.x * blockDim.x + threadIdx.x
KERNEL(guarded) { I; if (i >= n) return; y[i] = 2 * x[i]; }
KERNEL(not_the_last) { I; if (i >= n - 1) return; y[i] = 2 * x[i]; }
KERNEL(not_the_first) { I; if (i < 1 || i >= n) return; y[i] = 2 * x[i]; }
KERNEL(by_data) { I; if (i >= n || at[i] < 3) return; y[i] = 2 * x[i]; }
KERNEL(scattered) { I; if (i < n) y[at[i]] = 2 * x[i]; }
KERNEL(shifted) { I; if (i < n) y[(i + 5) % n] = 2 * x[i]; }
KERNEL(backwards) { I; if (i < n) y[n - 1 - i] = 2 * x[i]; }
KERNEL(added) { I; if (i < n) y[i] += 2 * x[i]; }
KERNEL(in_threes) { I; if (3 * i + 2 < n) for (int k = 0; k < 3; k++) y[3 * i + k] = k * x[i]; }
KERNEL(gaps) { I; if (2 * i < n) y[2 * i] = x[i]; }
KERNEL(either) { I; if (i >= n) return; if (x[i] > 0) y[i] = x[i]; else y[i] = -x[i]; }
KERNEL(one_way) { I; if (i >= n) return; if (x[i] > 0) y[i] = x[i]; }
KERNEL(ends) { I; if (i >= n) return; if (x[i] > 0) asm volatile(PTX); y[i] = 2 * x[i]; }
KERNEL(plane) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= 30 || j >= n / 30) return;
  y[j * 30 + i] = x[j * 30 + i];
}
KERNEL(strided) { for (I; i < n; i += blockDim.x * gridDim.x) y[i] = 2 * x[i]; }
KERNEL(of_block) { y[2 * (blockIdx.x * 4 + threadIdx.x) + threadIdx.y] = x[blockIdx.x]; }
KERNEL(up_to_data) { I; if (i >= n) return; for (int k = 0; k < at[0]; k++) y[i] = x[i]; }
KERNEL(stops) { I; for (int k = 0; k < 3; k++) { if (x[i] > 5) break; y[3 * i + k] = x[i]; } }
"""
SMALL = {"grid": "(n+63)//64", "block": 64}
THIRDS = {"grid": "(n//3+29)//30", "block": 30}


@pytest.mark.parametrize(
    ("name", "n", "launch", "filled"),
    [
        ("guarded", 150, SMALL, True),
        ("guarded", 150, {"grid": "n//64", "block": 64}, False),
        ("guarded", 70_000, {"grid": "(n+255)//256", "block": 256}, True),
        ("guarded", 70_000, {"grid": "n//256", "block": 256}, False),
        ("not_the_last", 150, SMALL, False),
        ("not_the_last", 70_000, {"grid": "(n+255)//256", "block": 256}, False),
        ("not_the_first", 150, SMALL, False),
        ("not_the_first", 70_000, {"grid": "(n+255)//256", "block": 256}, False),
        ("by_data", 150, SMALL, False),
        ("scattered", 150, SMALL, False),
        ("shifted", 150, SMALL, True),
        ("backwards", 150, SMALL, True),
        ("backwards", 150, {"grid": "n//64", "block": 64}, False),
        ("added", 150, SMALL, False),
        ("in_threes", 150, THIRDS, True),
        ("in_threes", 151, THIRDS, False),
        ("gaps", 150, SMALL, False),
        ("either", 150, SMALL, True),
        ("one_way", 150, SMALL, False),
        ("plane", 150, {"grid": (2, 1), "block": (16, 8)}, True),
        ("plane", 150, {"grid": (1, 2), "block": (16, 8)}, False),
        ("plane", 150, {"grid": (2, 1), "block": (16, 4)}, False),
        ("strided", 256, {"grid": 1, "block": 64}, True),
        ("of_block", 160_000, {"grid": "n//8", "block": (4, 2)}, True),
        ("of_block", 160_000, {"grid": "n//8-1", "block": (4, 2)}, False),
        ("up_to_data", 150, SMALL, False),
        ("stops", 150, {"grid": 1, "block": 50}, False),
    ],
)
def test_what_is_cleared(gpu_launches: StandIn, name: str, n: int, launch: dict[str, object], filled: bool) -> None:
    """A launch that does not fill an output gives zeros at the other places, as the CPU does."""
    signature = "n: i32, at: i32[n], x: f64[n], out y: f64[n]"
    kernel = je.kernel(SOURCE, name, signature, lang="cuda", **launch)  # type: ignore[arg-type]
    rng = np.random.default_rng(2)
    at, x = jnp.asarray(rng.integers(0, 5, n).astype(np.int32)), jnp.asarray(rng.normal(size=n))
    report = kernel.inspect(at, x).gpu
    assert report is not None
    layout = report._of("primal").layout()  # pyright: ignore[reportPrivateUsage]
    y = next(b for b in layout.buffers if b.name == "y")
    assert y.zero is not filled
    if n < 1000:
        found = jax.jit(kernel)(at, x)
        with jax.default_device(jax.devices("cpu")[0]):
            np.testing.assert_array_equal(found, kernel(at, x))


@pytest.mark.parametrize(("ptx", "filled"), [("exit;", False), ("// nothing", True)])
def test_threads_that_end_in_ptx(ptx: str, filled: bool) -> None:
    program = load(f'#define PTX "{ptx}"\n{SOURCE}', "ends", "cuda")
    signature = parse("n: i32, at: i32[n], x: f64[n], out y: f64[n]")
    program = replace(program, launch=parse_launch(signature, "(n+63)//64", 64))
    layout = call_layout(program, signature, Binding.of({"n": 150}, {}))
    assert [b.zero for b in layout.buffers if b.name == "y"] == [not filled]
