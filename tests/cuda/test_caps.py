"""At each limit of what is looked at in kernels of GPUs, and beyond it: another way, and the same derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from jax import numpy as jnp

import jax_enzyme as je
from jax_enzyme.ad.device import shuffles, sums
from jax_enzyme.ad.device.axes import axes_of
from jax_enzyme.ad.device.shuffles import moves
from jax_enzyme.ir.reader import parse
from jax_enzyme.transform.cuda import tiles, turning
from jax_enzyme.transform.device.registers import REGISTER
from tests.cuda.test_device_threads import check, native

_RNG = np.random.default_rng(5)


def _sources(distances: int) -> list[int]:
    """Lanes that are read by lanes at so many distances from them."""
    return [(lane - lane % distances) % 32 for lane in range(32)]


@pytest.mark.parametrize("distances", [shuffles._MOST_MOVES, shuffles._MOST_MOVES + 1])
def test_shuffles_over_many_distances(distances: int) -> None:
    found = moves(_sources(distances))
    assert (found is None) == (distances > shuffles._MOST_MOVES)
    source = f"""(const double *x, double *y) {{
      int t = threadIdx.x;
      double v = sin(x[t]);
      y[t] = __shfl_sync(~0u, v, t - t % {distances}) * v;
    }}"""
    check(native(source, "x: f64[32], out y: f64[32]", {}, 32), _RNG.normal(size=32))


@pytest.mark.parametrize("count", [sums._MOST_REGISTERS, sums._MOST_REGISTERS + 1])
def test_many_places_for_a_block(count: int) -> None:
    terms = " + ".join(f"c[{k}] * x[i] * c[{k}]" for k in range(count))
    source = f"""(int n, const double *c, const double *x, double *y) {{
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) y[i] = {terms};
    }}"""
    kernel = native(source, f"n: i32, c: f64[{count}], x: f64[n], out y: f64[n]", {"n": 40}, 32, 2)
    check(kernel, _RNG.normal(size=count), _RNG.normal(size=40))


@pytest.mark.parametrize("steps", [4, 100])
def test_guards_that_take_many_steps(steps: int) -> None:
    """However many: what the thread's number alone decides is known."""
    numbers = ["%t", *(f"%v{i}" for i in range(steps))]
    lines = "\n".join(f"%v{i} = add i32 {numbers[i]}, {numbers[i]}" for i in range(steps))
    text = f"define i1 @f(i32 %n) {{\n%t = call i32 @{REGISTER}tid.x()\n{lines}\n"
    text += f"%own = icmp slt i32 %v{steps - 1}, 7\n%other = icmp slt i32 %v{steps - 1}, %n\nret i1 %own\n}}\n"
    named = {i.name: i for i in parse(text + f"declare i32 @{REGISTER}tid.x()\n").functions["f"].instructions()}
    assert axes_of(named["own"]) is not None
    assert axes_of(named["other"]) is None


@pytest.mark.parametrize("trips", [turning._UNROLLED, turning._UNROLLED + 1])
def test_loops_of_few_iterations(trips: int) -> None:
    _agrees(
        f"""extern "C" __global__ void f(const double *x, double *y) {{
          int t = threadIdx.x;
          double s = 0, p = x[t];
          for (int k = 0; k < {trips}; k++) {{ p = sin(p) + x[8 * k + t]; s += p * p; }}
          y[t] = s;
        }}""",
        f"x: f64[{8 * trips}], out y: f64[8]",
        8 * trips,
    )


@pytest.mark.parametrize("carried", [turning._STATE, turning._STATE + 1])
def test_loops_that_carry_much(carried: int) -> None:
    names = [f"s{i}" for i in range(carried)]
    starts = ", ".join(f"{n} = {i + 1} * x[t]" for i, n in enumerate(names))
    moves = " ".join(f"{n} = sin({n} + {names[i - 1]}) + x[8 * k + t];" for i, n in enumerate(names))
    _agrees(
        f"""extern "C" __global__ void f(const double *x, double *y) {{
          int t = threadIdx.x;
          double {starts};
          for (int k = 0; k < 20; k++) {{ {moves} }}
          y[t] = {" + ".join(names)};
        }}""",
        "x: f64[160], out y: f64[8]",
        160,
    )


@pytest.mark.parametrize(
    ("steps", "arithmetic"),
    [(1, tiles._ARITHMETIC), (1, tiles._ARITHMETIC + 1), (tiles._LONGEST // 4, 1), (2 * tiles._LONGEST, 1)],
)
def test_tiles_that_are_costly_to_read_at_the_source(steps: int, arithmetic: int) -> None:
    index = "i"
    for k in range(steps):
        index = f"(({index} * {2 * k + 3} + {k}) % 64)"
    value = f"x[{index}]"
    for k in range(arithmetic):
        value = f"({value} * {k + 2}.5)"
    _agrees(
        f"""extern "C" __global__ void f(const double *x, double *y) {{
          __shared__ double tile[16];
          int t = threadIdx.x;
          double s = 0;
          for (int b = 0; b < 4; b++) {{
            int i = 16 * b + t;
            tile[t] = {value};
            __syncthreads();
            for (int k = 0; k < 16; k++) s += sin(0.1 * tile[k] * (t + 1));
            __syncthreads();
          }}
          y[t] = s;
        }}""",
        "x: f64[64], out y: f64[16]",
        64,
        threads=16,
    )


def _agrees(source: str, signature: str, size: int, threads: int = 8) -> None:
    """Reverse mode and differences agree: the limits are of what it reads again and adds up."""
    kernel = je.kernel(source, "f", signature, lang="cuda", grid=1, block=threads)
    je.check_grads(kernel, (jnp.asarray(0.1 * _RNG.normal(size=size)),), modes=("rev",))
