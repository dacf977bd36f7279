"""What tests without a GPU cannot see: PTX as the driver takes it and a device runs it, streams, graphs, devices."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import jax_enzyme as je
from tests.cuda.cases import CASES, Case, Launch
from tests.cuda.test_counted import in_jax, series

EVERY_LAUNCH = [pytest.param(c, way, id=f"{c.name}-{n}") for c in CASES for n, way in enumerate(c.launches)]
EVERY_CASE = [pytest.param(c, id=c.name) for c in CASES]

SCALE = """
extern "C" __global__ void scale(int n, double a, const double *x, double *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * sin(x[i]) + x[i] * x[i];
}
"""


def scale(**launch: Any) -> je.Kernel:
    given = {"grid": "(n+127)//128", "block": 128, **launch}
    return je.kernel(SCALE, "scale", "n: i32, a: f64, x: f64[n], out y: f64[n]", lang="cuda", **given)


def plain(a: Any, x: jax.Array) -> jax.Array:
    return a * jnp.sin(x) + x * x


def of(case: Case, way: Launch) -> je.Kernel:
    launch = {"grid": way.grid, "block": way.block, "shared": way.shared}
    return je.kernel(str(case.path), case.name, case.signature, flags=way.flags, **launch)


class Problem:
    """A kernel at a point, its moving arguments, a tangent of them and a cotangent of the results."""

    def __init__(self, case: Case, way: Launch, seed: int = 7) -> None:
        rng = np.random.default_rng(seed)
        self.case, self.kernel, self.arrays = case, of(case, way), case.inputs(rng)
        self.names = [p.name for p in self.kernel.signature.caller_params]
        self.moving = [n for n in self.names if np.asarray(self.arrays[n]).dtype == np.float64]
        self.at = [jnp.asarray(self.arrays[n]) for n in self.moving]
        self.along = [jnp.asarray(rng.normal(size=np.shape(self.arrays[n]))) for n in self.moving]
        self.weights = [jnp.asarray(rng.normal(size=r.shape)) for r in case.reference(self.arrays)]

    def run(self, *values: Any) -> list[jax.Array]:
        given = {**self.arrays, **dict(zip(self.moving, values, strict=True))}
        return jax.tree.leaves(self.kernel(*(given[n] for n in self.names)))

    def loss(self, *values: Any) -> jax.Array:
        return sum((jnp.sum(w * r) for w, r in zip(self.weights, self.run(*values), strict=True)), jnp.zeros(()))

    def differences(self) -> float:
        def at(h: float) -> float:
            moved = {n: self.arrays[n] + h * np.asarray(v) for n, v in zip(self.moving, self.along, strict=True)}
            results = self.case.reference({**self.arrays, **moved})
            return float(sum(np.sum(np.asarray(w) * r) for w, r in zip(self.weights, results, strict=True)))

        return (at(self.case.step) - at(-self.case.step)) / (2 * self.case.step)


@pytest.mark.parametrize(("case", "way"), EVERY_LAUNCH)
def test_result(case: Case, way: Launch) -> None:
    problem = Problem(case, way)
    found = jax.jit(problem.run)(*problem.at)
    assert all(r.devices() == {jax.devices("cuda")[0]} for r in found)
    for got, expected in zip(found, case.reference(problem.arrays), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("case", EVERY_CASE)
def test_three_ways(case: Case) -> None:
    problem = Problem(case, case.launches[0])
    forward = float(jax.jit(lambda *v: jax.jvp(problem.loss, problem.at, list(v))[1])(*problem.along))
    gradient = jax.jit(jax.grad(problem.loss, argnums=tuple(range(len(problem.at)))))(*problem.at)
    reverse = float(sum(jnp.sum(g * v) for g, v in zip(gradient, problem.along, strict=True)))
    np.testing.assert_allclose(reverse, forward, rtol=1e-9)
    np.testing.assert_allclose(forward, problem.differences(), rtol=1e-4)


@pytest.mark.parametrize("case", EVERY_CASE)
def test_gradient_is_that_of_the_cpu(case: Case) -> None:
    problem = Problem(case, case.launches[0])
    gradient = jax.grad(problem.loss, argnums=tuple(range(len(problem.at))))
    found = jax.jit(gradient)(*problem.at)
    with jax.default_device(jax.devices("cpu")[0]):
        expected = jax.jit(gradient)(*(np.asarray(v) for v in problem.at))
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("case", EVERY_CASE)
def test_hessian_vector_products(case: Case) -> None:
    problem = Problem(case, case.launches[0])
    gradient = jax.grad(problem.loss, argnums=tuple(range(len(problem.at))))
    second = jax.jit(lambda *v: jax.jvp(gradient, problem.at, list(v))[1])(*problem.along)
    h = case.step
    moved = [gradient(*(x + s * h * v for x, v in zip(problem.at, problem.along, strict=True))) for s in (1, -1)]
    for got, up, down in zip(second, *moved, strict=True):
        np.testing.assert_allclose(got, (up - down) / (2 * h), rtol=1e-3, atol=1e-4)


def test_transformations() -> None:
    kernel, x = scale(), jnp.linspace(0.0, 1.0, 1000)
    batch = jnp.stack([x, 2 * x, 3 * x])
    a = jnp.arange(3.0)
    np.testing.assert_allclose(jax.vmap(kernel)(a, batch), jax.vmap(plain)(a, batch), rtol=1e-13)
    nested = [jax.vmap(jax.vmap(f, (None, 0)), (0, None))(a, batch) for f in (kernel, plain)]
    np.testing.assert_allclose(*nested, rtol=1e-13)

    def loss(f: Any, x: jax.Array) -> jax.Array:
        step = jax.checkpoint(lambda x, _: (f(0.1, x), jnp.sum(x)))
        last, sums = jax.lax.scan(step, x, None, length=5)
        return jnp.sum(last) + jnp.sum(sums)

    gradients = [jax.jit(jax.grad(lambda x, f=f: loss(f, x)))(x) for f in (kernel, plain)]
    np.testing.assert_allclose(*gradients, rtol=1e-12)
    small = x[:9]
    hessians = [jax.hessian(lambda x, f=f: jnp.sum(f(2.0, x) ** 2))(small) for f in (kernel, plain)]
    np.testing.assert_allclose(*hessians, rtol=1e-12, atol=1e-13)


def test_large_shared_memory() -> None:
    source = """extern "C" __global__ void turn(int n, const double *x, double *y) {
      extern __shared__ double all[];
      for (int i = threadIdx.x; i < n; i += blockDim.x) all[i] = x[i];
      __syncthreads();
      for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = all[n - 1 - i];
    }"""
    signature = "n: i32, x: f64[n], out y: f64[n]"
    kernel = je.kernel(source, "turn", signature, lang="cuda", grid=1, block=256, shared="8*n")
    x = jnp.arange(10_000.0)
    np.testing.assert_array_equal(kernel(x), x[::-1])
    with pytest.raises(je.ArgumentError, match="is more than any device has"):
        kernel(jnp.arange(40_000.0))


def test_a_stored_program_runs(tmp_path: Path) -> None:
    """Exported for cuda, and run by a process that knows nothing of the kernel."""
    x = jnp.linspace(0.0, 1.0, 100)
    checks = [jax.export.DisabledSafetyCheck.custom_call("jax_enzyme_cuda")]
    exported = jax.export.export(jax.jit(scale()), platforms=("cuda",), disabled_checks=checks)(2.0, x)
    (tmp_path / "program").write_bytes(exported.serialize())
    program = f"""
import jax, numpy as np
jax.config.update("jax_enable_x64", True)
from jax import export, numpy as jnp
x = jnp.linspace(0.0, 1.0, 100)
call = export.deserialize(bytearray(open({str(tmp_path / "program")!r}, "rb").read())).call
np.testing.assert_allclose(call(2.0, x), 2 * np.sin(x) + x * x, rtol=1e-13)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_cuda_graphs() -> None:
    """In a process of its own, whose XLA records every custom call into a graph and replays it."""
    program = """
import jax, numpy as np
jax.config.update("jax_enable_x64", True)
from jax import numpy as jnp
from tests.gpu.test_gpu import plain, scale
x = jnp.linspace(0.0, 1.0, 100)
def chain(f):
    def run(x):
        for k in range(8):
            x = f(0.1 * k, x)
        return jnp.sum(x)
    return jax.jit(jax.value_and_grad(run))
graphs, expected = chain(scale()), chain(plain)
for k in range(5):
    for got, wanted in zip(graphs(x + k), expected(x + k)):
        np.testing.assert_allclose(got, wanted, rtol=1e-10)
"""
    flags = "--xla_gpu_enable_command_buffer=FUSION,CUSTOM_CALL --xla_gpu_graph_min_graph_size=1"
    root = str(Path(__file__).parents[2])
    path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    subprocess.run(
        [sys.executable, "-c", program], check=True, env={**os.environ, "XLA_FLAGS": flags, "PYTHONPATH": path}
    )


def test_loops_of_unknown_length() -> None:
    """Counted, waited for, launched; with maps, second derivatives, and graphs around them. The points stay under 1.2:
    from 1.3 on the series is chaotic, and the last bit of `x` moves its gradient by more than is asked of it here."""
    rng = np.random.default_rng(5)
    terms = rng.integers(0, 40, (3, 1000)).astype(np.int32)
    x = jnp.asarray(rng.uniform(0.3, 1.2, (3, 1000)))
    kernel = jax.jit(jax.vmap(jax.value_and_grad(lambda x, t: jnp.sum(jnp.sin(series(128)(t, x))))))
    for k in range(3):
        value, gradient = kernel(x / (k + 1), terms)
        for n in range(3):
            expected = jax.value_and_grad(lambda x, t=terms[n]: jnp.sum(jnp.sin(in_jax(t, x))))(x[n] / (k + 1))
            np.testing.assert_allclose(value[n], expected[0], rtol=1e-9)
            np.testing.assert_allclose(gradient[n], expected[1], rtol=1e-7, atol=1e-9)
    t = terms[0, :5]
    found = jax.hessian(lambda x: jnp.sum(jnp.sin(series()(t, x))))(x[0, :5])
    expected = jax.hessian(lambda x: jnp.sum(jnp.sin(in_jax(t, x))))(x[0, :5])
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


def test_every_device() -> None:
    devices = jax.devices("cuda")
    if len(devices) < 2:
        pytest.skip("needs two CUDA devices")
    gradient = jax.jit(jax.grad(lambda x: jnp.sum(scale()(2.0, x))))
    for device in devices:
        x = jax.device_put(jnp.linspace(0.0, 1.0, 100), device)
        found = gradient(x)
        assert found.devices() == {device}
        np.testing.assert_allclose(found, 2 * np.cos(x) + 2 * x, rtol=1e-13)
    mesh = jax.sharding.Mesh(np.array(devices), ("batch",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("batch"))
    batch = jax.device_put(jnp.ones((4 * len(devices), 100)), sharding)
    found = jax.jit(jax.vmap(lambda x: scale()(2.0, x)))(batch)
    np.testing.assert_allclose(found, plain(2.0, batch), rtol=1e-13)


def test_languages_of_the_cpu_are_refused() -> None:
    kernel = je.kernel(
        "void f(int n, const double *x, double *y) { *y = *x; }", "f", "n: i32, x: f64[n], out y: f64[n]", lang="c"
    )
    with pytest.raises(je.LoweringError, match="no code for cuda"):
        kernel(jnp.ones(3))
