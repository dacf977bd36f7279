"""Rows that a grid cuts into pieces are one loop on the CPU, where no thread can tell in which block it is."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import jax_enzyme as je
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.codegen import derived

_INDICES = "int x = blockIdx.x * blockDim.x + threadIdx.x, y = threadIdx.y + blockDim.y * blockIdx.y;"
_BORDER = """if (x >= w || y >= h) return;
    if (x == 0 || y == 0 || x == w - 1 || y == h - 1) { v[y * w + x] = u[y * w + x]; return; }"""
_STENCIL = "v[y * w + x] = u[y * w + x - 1] * u[y * w + x + 1] + c * (u[(y - 1) * w + x] - u[(y + 1) * w + x]);"
_H, _W = 70, 75


@dataclass(frozen=True)
class Case:
    """A body for each thread, and the lengths of its loops on the CPU."""

    body: str
    lengths: set[int]
    grid: tuple[str, str] = ("(w+15)//16", "(h+3)//4")

    def kernel(self) -> je.Kernel:
        source = f'extern "C" __global__ void k(int h, int w, double c, const double *u, double *v) {{ {self.body} }}'
        signature = "h: i32, w: i32, c: f64, u: f64[h,w], out v: f64[h,w]"
        return je.kernel(source, "k", signature, lang="cuda", grid=self.grid, block=(16, 4))


_CASES = {
    "a stencil with borders": Case(f"{_INDICES} {_BORDER} {_STENCIL}", {_H - 2, _W - 2}),
    "a block's own number is asked for": Case(
        f"{_INDICES} {_BORDER} {_STENCIL} if (threadIdx.x == 3) v[y * w + x] *= 2;", {5, 16}
    ),
    "columns of memory": Case(
        """int y = blockIdx.x * 16 + threadIdx.x, x = blockIdx.y * 4 + threadIdx.y;
        if (x < w && y < h) v[y * w + x] = c * u[y * w + x];""",
        {_H, _W},
        ("(h+15)//16", "(w+3)//4"),
    ),
    "the next number, by conditions in turn": Case(
        f"{_INDICES} if (y > h - 1) return; c *= u[y * w]; if (x < w - 1) v[y * w + x] = c * u[y * w + x + 1];",
        {_H, _W - 1},
    ),
    "sums of other threads": Case(f"{_INDICES} if (x < w && y < h) atomicAdd(v + x, c * u[y * w + x]);", {5, 16}),
}


def _plain(name: str, c: jax.Array, u: jax.Array) -> jax.Array:
    if name == "columns of memory":
        return c * u
    if name == "sums of other threads":
        return jnp.zeros_like(u).at[0].set(c * u.sum(0))
    if name == "the next number, by conditions in turn":
        return jnp.zeros_like(u).at[:, :-1].set(c * u[:, :1] * u[:, 1:])
    inner = u[1:-1, :-2] * u[1:-1, 2:] + c * (u[:-2, 1:-1] - u[2:, 1:-1])
    if name != "a stencil with borders":
        inner = jnp.where(jnp.arange(1, _W - 1) % 16 == 3, 2 * inner, inner)
    return u.at[1:-1, 1:-1].set(inner)


@pytest.mark.parametrize("name", _CASES)
def test_rows_are_whole_where_nothing_tells_blocks_apart(name: str) -> None:
    kernel, u, c = _CASES[name].kernel(), jnp.asarray(np.random.default_rng(1).normal(size=(_H, _W))), jnp.float64(0.7)
    weight = jnp.cos(jnp.arange(_H * _W, dtype=float)).reshape(_H, _W)
    np.testing.assert_allclose(kernel(c, u), _plain(name, c, u), rtol=1e-12, atol=1e-12)
    found = jax.grad(lambda c, u: jnp.vdot(weight, kernel(c, u)), (0, 1))(c, u)
    wanted = jax.grad(lambda c, u: jnp.vdot(weight, _plain(name, c, u)), (0, 1))(c, u)
    for got, expected in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-10)
    binding = kernel.binding([c, u])
    function = derived.regular(kernel.program, kernel.signature, binding)
    root = function.module.functions[function.symbol]
    facts = Recurrences.of(root, function.module)
    counts = {(facts.trip_count(loop).maximum or 0) + 1 for loop in facts.loops}
    assert _CASES[name].lengths <= counts, counts
    if name == "a stencil with borders":
        assert f"primal: in {_H - 2} parts on several threads" in str(kernel.inspect(c, u))
