"""grid=, block= and shared=: what they may be, and one clear error for everything else."""

from __future__ import annotations

import copy
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import jax_enzyme as je
from jax_enzyme.xla_ffi.registration import CPU_TARGET

SOURCE = """extern "C" __global__ void scaled(int n, int m, double a, const double *x, double *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i < m && j < n) y[j * m + i] = a * sin(x[j * m + i]);
}"""
SIGNATURE = "n: i32, m: i32, a: f64, x: f64[n,m], out y: f64[n,m]"
X = np.arange(12.0).reshape(3, 4)


def scaled(**launch: object) -> je.Kernel:
    return je.kernel(SOURCE, "scaled", SIGNATURE, lang="cuda", **launch)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("grid", "block"),
    [
        (("(m+1)//2", "n"), (2, 1)),
        (["m", "n", 1], "1"),
        (1, ("m", "n")),
        (("m", "(n+7)//8"), (1, 8, 1)),
    ],
)
def test_launches_that_cover_the_arrays(grid: object, block: object) -> None:
    np.testing.assert_allclose(scaled(grid=grid, block=block)(2.0, X), 2 * np.sin(X))


def test_a_launch_by_a_number_that_is_given_with_the_kernel() -> None:
    np.testing.assert_allclose(scaled(grid=("m", "n+1"), block=1, n=3)(2.0, X), 2 * np.sin(X))


@pytest.mark.parametrize(
    ("launch", "error", "message"),
    [
        ({}, je.SignatureError, "needs grid= and block="),
        ({"grid": 1}, je.SignatureError, "needs block="),
        ({"grid": 0, "block": 1}, je.ArgumentError, "grid.x is 0"),
        ({"grid": 1, "block": (4, 0)}, je.ArgumentError, "block.y is 0"),
        ({"grid": -1, "block": 1}, je.ArgumentError, "grid.x is -1"),
        ({"grid": 1, "block": 1025}, je.ArgumentError, "block.x is 1025, more than the 1024"),
        ({"grid": 1, "block": (32, 33)}, je.ArgumentError, "1056 threads is too large"),
        ({"grid": 1, "block": (1, 1, 65)}, je.ArgumentError, "block.z is 65"),
        ({"grid": 2**31, "block": 1}, je.ArgumentError, "grid.x is 2147483648"),
        ({"grid": (1, 65536), "block": 1}, je.ArgumentError, "grid.y is 65536"),
        ({"grid": 1, "block": 1, "shared": 300000}, je.ArgumentError, "shared memory of 300000 bytes"),
        ({"grid": 1, "block": 1, "shared": -8}, je.ArgumentError, "is negative"),
        ({"grid": (1, 1, 1, 1), "block": 1}, je.SignatureError, "has 4 extents"),
        ({"grid": (), "block": 1}, je.SignatureError, "has 0 extents"),
        ({"grid": 1.5, "block": 1}, je.SignatureError, "neither an integer nor an expression"),
        ({"grid": True, "block": 1}, je.SignatureError, "neither an integer nor an expression"),
        ({"grid": "k", "block": 1}, je.SignatureError, "`k` in grid='k' is no dimension"),
        ({"grid": "a", "block": 1}, je.SignatureError, "`a` in grid='a' is no dimension"),
        ({"grid": "(n", "block": 1}, je.SignatureError, "grid= the expression does not parse"),
        ({"grid": "n n", "block": 1}, je.SignatureError, "expected the end"),
    ],
)
def test_launches_that_are_wrong_at_once(launch: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message.replace("(", "\\(")):
        scaled(**launch)


@pytest.mark.parametrize(
    ("launch", "message"),
    [
        ({"grid": "n-3", "block": 1}, "grid.x is 0: there is nothing to launch\n.*with n = 3"),
        ({"grid": 1, "block": "1024*n"}, "block.x is 3072"),
        ({"grid": "m/3", "block": 1}, "does not divide exactly"),
        ({"grid": "m//(n-3)", "block": 1}, "divides 4 by 0"),
        ({"grid": 1, "block": 1, "shared": "n*100000"}, "shared memory of 300000 bytes"),
    ],
)
def test_launches_that_do_not_fit_the_arguments(launch: dict[str, object], message: str) -> None:
    with pytest.raises(je.ArgumentError, match=message):
        scaled(**launch)(2.0, X)


def test_a_launch_is_for_cuda_only() -> None:
    with pytest.raises(je.SignatureError, match="for CUDA kernels"):
        je.kernel("void f(double *y) { *y = 1; }", "f", "inout y: f64[]", lang="c", grid=1, block=1)


def test_the_launch_is_part_of_the_kernel() -> None:
    one, same, other = (scaled(grid=g, block=("m", "n")) for g in (1, "1", 2))
    assert one == same and hash(one) == hash(same) and one != other
    again = pickle.loads(pickle.dumps(one))
    assert again == one and copy.copy(one) == one and copy.deepcopy(one) == one
    assert repr(one) == "Kernel scaled(a, x) -> y [cuda, cuda cpu]"
    np.testing.assert_array_equal(again(2.0, X), one(2.0, X))


def test_transformations() -> None:
    kernel = scaled(grid=("(m+1)//2", "n"), block=(2, 1))

    def loss(a: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.sum(kernel(a, x) ** 2)

    def expected(a: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.sum((a * jnp.sin(x)) ** 2)

    for transform in (jax.grad, jax.jacfwd, jax.hessian):
        got = transform(loss, argnums=(0, 1))(2.0, jnp.array(X))
        known = transform(expected, argnums=(0, 1))(2.0, jnp.array(X))
        jax.tree.map(lambda g, k: np.testing.assert_allclose(g, k, rtol=1e-10, atol=1e-10), got, known)
    batch = jnp.stack([X, X + 1])
    np.testing.assert_allclose(jax.vmap(kernel, (None, 0))(2.0, batch), 2 * jnp.sin(batch))
    np.testing.assert_allclose(
        jax.jit(jax.vmap(jax.grad(loss), (None, 0)))(2.0, batch), jax.vmap(jax.grad(expected), (None, 0))(2.0, batch)
    )


def test_export_keeps_the_launch() -> None:
    kernel = scaled(grid=1, block=("m", "n"))
    allowed = [export.DisabledSafetyCheck.custom_call(CPU_TARGET)]
    exported = export.export(jax.jit(kernel), disabled_checks=allowed)
    stored = exported(jax.ShapeDtypeStruct((), "float64"), jax.ShapeDtypeStruct((3, 4), "float64"))
    loaded = export.deserialize(stored.serialize())
    np.testing.assert_allclose(loaded.call(2.0, X), 2 * np.sin(X))


@pytest.mark.parametrize(
    ("size", "shared", "message"),
    [(7000, 0, "56000 bytes of static"), (5000, 200000, "40000 bytes of static and 200000")],
)
def test_static_shared_memory_counts(size: int, shared: int, message: str) -> None:
    kernel = je.kernel(
        f"""extern "C" __global__ void k(double *x) {{
          __shared__ double s[{size}];
          extern __shared__ double t[];
          s[threadIdx.x] = t[threadIdx.x] = x[threadIdx.x];
          __syncthreads();
          x[threadIdx.x] = s[0] + t[1];
        }}""",
        None, "inout x: f64[n]", lang="cuda", grid=1, block=2, shared=shared,
    )  # fmt: skip
    with pytest.raises(je.LoweringError, match=message):
        kernel(np.zeros(2))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("x[0] = hosts(x[0]);", "call to __host__ function"),
        ("x[0] = tex2DLayered<double>(0, 1, 2, 3);", "tex2DLayered"),
        ("cudaMalloc((void **)&x, 8);", "cudaMalloc"),
    ],
)
def test_what_a_kernel_cannot_do_does_not_compile(body: str, message: str) -> None:
    source = f"""double hosts(double x) {{ return x; }}
    extern "C" __global__ void k(double *x) {{ {body} }}"""
    with pytest.raises(je.CompileError, match=message):
        je.kernel(source, "k", "inout x: f64[n]", lang="cuda", grid=1, block=1)
