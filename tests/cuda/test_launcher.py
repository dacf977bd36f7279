"""From jit to launches, without a GPU: a library in the place of the driver notes what it is asked and does on the CPU
what the launch would do."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import jax_enzyme as je
from jax_enzyme.xla_ffi.registration import CUDA_TARGET
from tests.cuda.cases import CASES, Case
from tests.support.stand_in_driver import StandIn

SCALE = """
extern "C" __global__ void scale(int n, double a, const double *x, const double *shift, double *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * sin(x[i]) + shift[0];
}
"""
SCALE_SIGNATURE = "n: i32, a: f64, x: f64[n], shift: f64[], out y: f64[n]"


def scale(block: int = 16, **options: object) -> je.Kernel:
    grid = f"(n+{block - 1})//{block}"
    return je.kernel(SCALE, "scale", SCALE_SIGNATURE, lang="cuda", grid=grid, block=block, **options)  # pyright: ignore[reportArgumentType]


def of(case: Case, way: int = 0) -> je.Kernel:
    launch = case.launches[way]
    return je.kernel(
        str(case.path), case.name, case.signature, flags=launch.flags, grid=launch.grid, block=launch.block,
        shared=launch.shared,
    )  # fmt: skip


@pytest.mark.parametrize("case", [pytest.param(c, id=c.name) for c in CASES if c.name in ("galerkin", "bodies")])
def test_result(gpu_launches: StandIn, case: Case) -> None:
    """Kernels, as PTX's entry takes their buffers, give what NumPy gives; under `vmap` more of them, below."""
    kernel = of(case)
    arrays = case.inputs(np.random.default_rng(7))
    given = [arrays[p.name] for p in kernel.signature.caller_params]
    found = jax.tree.leaves(jax.jit(kernel)(*given))
    for got, expected in zip(found, case.reference(arrays), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-12)
    assert len(gpu_launches.launches()) == 1


def test_a_call_is_loaded_once_and_launched_every_time(gpu_launches: StandIn) -> None:
    kernel = jax.jit(scale())
    x = jnp.linspace(0.0, 1.0, 100)
    for shift in (1.0, 2.0, 3.0):
        np.testing.assert_allclose(kernel(2.0, x, shift), 2 * np.sin(x) + shift, rtol=1e-14)
    log = gpu_launches.log
    assert sum(line.startswith("cuModuleLoadDataEx") for line in log) == 1
    launch = "cuLaunchKernel je_kernel_0 7 1 1 16 1 1 0 device 0 stream 0"
    assert [line for line in log if line.startswith("cuLaunchKernel")] == [launch] * 3
    assert not [line for line in log if line.startswith("cuMemset")], "a launch that fills its output"


def test_vmap_is_one_launch(gpu_launches: StandIn) -> None:
    x = jnp.linspace(0.0, 1.0, 5 * 40).reshape(5, 40)
    a = jnp.arange(5.0)
    found = jax.jit(jax.vmap(scale(), in_axes=(0, 0, None)))(a, x, 0.5)
    np.testing.assert_allclose(found, a[:, None] * np.sin(x) + 0.5, rtol=1e-14)
    assert gpu_launches.launches() == [["je_kernel_0", "15", "1", "1", "16", "1", "1", "0"]]


def test_nested_vmap_over_different_arguments_is_one_launch(gpu_launches: StandIn) -> None:
    """The batch is a product of strides: three dimensions, no two of which are one."""
    x, a, shift = jnp.linspace(0.0, 1.0, 3 * 20).reshape(3, 20), jnp.arange(4.0), jnp.arange(2.0)
    mapped = jax.vmap(jax.vmap(jax.vmap(scale(), (None, 0, None)), (0, None, None)), (None, None, 0))
    found = jax.jit(mapped)(a, x, shift)
    expected = a[None, :, None, None] * np.sin(x)[None, None] + shift[:, None, None, None]
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    assert gpu_launches.launches() == [["je_kernel_0", "48", "1", "1", "16", "1", "1", "0"]]


@pytest.mark.parametrize("name", ["lattice_boltzmann", "matmul", "softmax", "histogram"])
def test_vmap_of_kernels_of_all_shapes(gpu_launches: StandIn, name: str) -> None:
    """Grids of two dimensions, shared memory, shuffles, atomics, `inout`."""
    case = next(c for c in CASES if c.name == name)
    kernel = of(case)
    batch = [case.inputs(np.random.default_rng(n)) for n in range(3)]
    given = [np.stack([b[p.name] for b in batch]) for p in kernel.signature.caller_params]
    found = jax.tree.leaves(jax.jit(jax.vmap(kernel))(*given))
    for n, arrays in enumerate(batch):
        for got, expected in zip(found, case.reference(arrays), strict=True):
            np.testing.assert_allclose(got[n], expected, rtol=1e-11, atol=1e-12)
    assert len(gpu_launches.launches()) == 1


VIEWS = """
struct view { double w[3]; const double *x; double *y; struct { int k; float c; } q; };
extern "C" __global__ void turned(view v, int n) {
  __shared__ double t[32];
  int i = blockIdx.x * 32 + threadIdx.x;
  v.w[0] += t[threadIdx.x] = i < n ? v.x[i] * v.w[v.q.k] : 0;  // its own
  __syncthreads();
  if (i < n) v.y[i] = v.q.c * t[31 - threadIdx.x] * v.w[0] + v.w[2];
}
"""


def test_structures_by_value(gpu_launches: StandIn) -> None:
    """Every thread has its own; the arrays that pointers in it lead to are the buffers."""
    signature = "v: {w: f64[3], x: f64[n]*, out y: f64[n]*, q: {k: i32, c: f32}}, n: i32"
    kernel = je.kernel(VIEWS, "turned", signature, lang="cuda", grid="(n+31)//32", block=32)

    def both(w: jax.Array, x: jax.Array) -> list[jax.Array]:
        t = x * w[1]
        expected = 1.5 * t.reshape(-1, 32)[:, ::-1].ravel() * (w[0] + t) + w[2]
        return [kernel({"w": w, "x": x, "q": {"k": jnp.int32(1), "c": jnp.float32(1.5)}})["y"], expected]

    w, x = jnp.asarray([0.3, 1.7, 0.2]), jnp.linspace(-1.0, 1.0, 64)
    np.testing.assert_allclose(*both(w, x), rtol=1e-14)
    np.testing.assert_allclose(*jax.jit(jax.jvp, static_argnums=0)(both, (w, x), (w**2, x**2))[1], rtol=1e-13)
    for ours, theirs in zip(
        *(jax.jit(jax.grad(lambda *a, k=k: jnp.sum(both(*a)[k] ** 2), (0, 1)))(w, x) for k in (0, 1)), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-13)
    assert gpu_launches.launches()


def test_an_integer_in_a_structure_beside_a_null_pointer() -> None:
    """As many numbers as parameters, but not the same."""
    kernel = je.kernel(
        "struct s { double k; int m; };\n"
        'extern "C" __global__ void f(s s, int n, const double *p, const double *x, double *y) {\n'
        "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "  if (i < n) y[i] = p ? 7 : s.k * s.m * x[i];\n}",
        "f",
        "s: {k: f64, m: i32}, n: i32, p: null, x: f64[n], out y: f64[n]",
        lang="cuda",
        grid=1,
        block=32,
    )
    x = jnp.arange(5.0)
    np.testing.assert_array_equal(kernel({"k": 0.5, "m": 3}, x), 1.5 * x)
    assert jax.grad(lambda k: kernel({"k": k, "m": 3}, x).sum())(0.5) == 30


POINTS = """
struct point { double x[2], mass; int kind; };
extern "C" __global__ void pulls(const point *p, double **scales, point *pulled, double *total, int n) {
  int i = blockIdx.x * 32 + threadIdx.x;
  if (i >= n) return;
  point sum = {{0, 0}, p[i].mass, 1};
  for (int j = 0; j < n; j++)
    for (int d = 0; d < 2; d++) sum.x[d] += p[j].mass * scales[d][p[j].kind] * (p[j].x[d] - p[i].x[d]);
  pulled[i] = sum;
  atomicAdd(total, sum.x[0] * sum.x[1]);
}
"""


def test_structures_that_threads_share() -> None:
    """Made once for all threads, on the CPU."""
    signature = (
        "p: {x: f64[2], mass: f64, kind: i32}[n], scales: f64[2][3], out pulled: {x: f64[2], mass: f64, kind: i32}[n],"
        " out total: f64[], n: i32"
    )
    kernel = je.kernel(POINTS, "pulls", signature, lang="cuda", grid="(n+31)//32", block=32)
    r = np.random.default_rng(2)
    x, mass, scales, kind = r.normal(size=(40, 2)), r.normal(size=40), r.normal(size=(2, 3)), np.arange(40) % 3
    points = {"x": x, "mass": mass, "kind": kind.astype(np.int32)}
    pulled, total = kernel(points, scales)
    expected = np.einsum("j,dj,ijd->id", mass, scales[:, kind], x - x[:, None])
    np.testing.assert_allclose(pulled["x"], expected, rtol=1e-12)
    np.testing.assert_allclose(total, expected.prod(1).sum(), rtol=1e-12)
    assert (pulled["kind"] == 1).all() and (pulled["mass"] == mass).all()
    je.check_grads(kernel, (points, scales))
    assert kernel.inspect(points, scales).gpu is None
    with pytest.raises(je.LoweringError, match="all threads share"):
        jax.jit(kernel).trace(points, scales).lower(lowering_platforms=("cuda",))


def test_inout_leaves_the_argument_alone(gpu_launches: StandIn) -> None:
    case = next(c for c in CASES if c.name == "histogram")
    arrays = {k: jnp.asarray(v) for k, v in case.inputs(np.random.default_rng(7)).items()}
    before = np.array(arrays["bins"])
    kernel = of(case)
    kernel(*(arrays[p.name] for p in kernel.signature.caller_params))
    np.testing.assert_array_equal(arrays["bins"], before)


def test_forward_mode(gpu_launches: StandIn) -> None:
    x, v = jnp.linspace(0.0, 1.0, 50), jnp.linspace(1.0, 2.0, 50)
    value, tangent = jax.jit(lambda x, v: jax.jvp(lambda x: scale()(2.0, x, 1.0), (x,), (v,)))(x, v)
    np.testing.assert_allclose(value, 2 * np.sin(x) + 1, rtol=1e-14)
    np.testing.assert_allclose(tangent, 2 * np.cos(x) * v, rtol=1e-14)
    assert len(gpu_launches.launches()) == 1


@pytest.mark.parametrize("name", ["hydro_element", "histogram"])
def test_three_ways(gpu_launches: StandIn, name: str) -> None:
    """<w, J v> of what is launched, forward and reverse (the tape goes from launch to launch), and of NumPy's."""
    case = next(c for c in CASES if c.name == name)
    kernel, rng = of(case), np.random.default_rng(7)
    arrays = case.inputs(rng)
    names = [p.name for p in kernel.signature.caller_params]
    moving = [n for n in names if np.asarray(arrays[n]).dtype == np.float64]
    along = {n: rng.normal(size=np.shape(arrays[n])) for n in moving}
    weights = [rng.normal(size=r.shape) for r in case.reference(arrays)]

    def run(*values: jax.Array) -> list[jax.Array]:
        return jax.tree.leaves(kernel(*({**arrays, **dict(zip(moving, values, strict=True))}[n] for n in names)))

    def paired(results: list[jax.Array]) -> float:
        return float(sum(np.sum(w * r) for w, r in zip(weights, results, strict=True)))

    def moved(h: float) -> list[np.ndarray]:
        return case.reference({**arrays, **{n: arrays[n] + h * along[n] for n in moving}})

    at = [jnp.asarray(arrays[n]) for n in moving]
    directions = [jnp.asarray(along[n]) for n in moving]
    differences = (paired(moved(case.step)) - paired(moved(-case.step))) / (2 * case.step)
    forward = paired(jax.jit(lambda *v: jax.jvp(run, at, list(v))[1])(*directions))
    gpu_launches.launches()
    pulled = jax.jit(lambda *w: jax.vjp(run, *at)[1](list(w)))(*map(jnp.asarray, weights))
    assert 1 <= len(gpu_launches.launches()) <= 2
    reverse = float(sum(np.sum(a * b) for a, b in zip(pulled, directions, strict=True)))
    np.testing.assert_allclose(reverse, forward, rtol=1e-10)
    np.testing.assert_allclose(forward, differences, rtol=1e-4)


def test_second_derivatives_and_batches_of_them(gpu_launches: StandIn) -> None:
    def loss(x: jax.Array) -> jax.Array:
        return jnp.sum(scale(block=8)(2.0, x, 1.0) ** 2)

    def plain(x: jax.Array) -> jax.Array:
        return jnp.sum((2 * jnp.sin(x) + 1.0) ** 2)

    x = jnp.linspace(0.0, 1.0, 12)
    np.testing.assert_allclose(jax.jit(jax.hessian(loss))(x), jax.hessian(plain)(x), rtol=1e-12, atol=1e-14)
    batch = jnp.stack([x, 2 * x])
    np.testing.assert_allclose(jax.vmap(jax.grad(loss))(batch), jax.vmap(jax.grad(plain))(batch), rtol=1e-12)


BLEND = """
#include <math.h>
static inline double bump(double x) { return exp(-x * x) * 2; }
double blend(double x, double y) { return bump(x) * sin(y) + fabs(x); }
"""


def test_elementwise_functions_in_c(gpu_launches: StandIn) -> None:
    """The source of both platforms, in a kernel of its own here."""
    lifted = je.elementwise(BLEND, "blend", "x: f64, y: f64 -> f64", lang="c")
    assert set(lifted.kernel.implementations) == {"cpu", "cuda"}

    def plain(x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.exp(-x * x) * 2 * jnp.sin(y) + jnp.abs(x)

    x, y = jnp.linspace(0.1, 1.0, 70).reshape(70, 1), jnp.arange(5.0)
    np.testing.assert_allclose(lifted(x, y), plain(x, y), rtol=1e-13)
    assert gpu_launches.launches() == [["je_kernel_0", "2", "1", "1", "256", "1", "1", "0"]]
    found, expected = (jax.grad(lambda x, y, f=f: jnp.sum(f(x, y)), (0, 1))(x, y) for f in (lifted, plain))
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-13)
    assert lifted(jnp.zeros((0, 3)), 1.0).shape == (0, 3)


def test_elementwise_functions_that_are_no_cuda() -> None:
    source = "double f(double x) { double *new = &x; return *new; }"
    assert set(je.elementwise(source, "f", "x: f64 -> f64", lang="c").kernel.implementations) == {"cpu"}


def test_an_empty_batch_launches_nothing(gpu_launches: StandIn) -> None:
    assert jax.vmap(scale(), (0, None, None))(jnp.zeros(0), jnp.zeros(4), 1.0).shape == (0, 4)
    assert gpu_launches.launches() == []


def test_much_shared_memory_is_asked_for(gpu_launches: StandIn) -> None:
    scale(block=64, shared=100_000)(1.0, jnp.zeros(8), 1.0).block_until_ready()
    assert "cuFuncSetAttribute 8 100000" in gpu_launches.log


def test_programs_for_gpus_are_made_without_one() -> None:
    """A stored program holds a recipe, from which any process makes the kernel and its derivatives for its device."""
    x = jnp.linspace(0.0, 1.0, 100)
    loss = jax.value_and_grad(lambda x: jnp.sum(scale(block=96)(2.0, x, 1.0)))
    checks = [jax.export.DisabledSafetyCheck.custom_call(CUDA_TARGET)]
    exported = jax.export.export(jax.jit(jax.vmap(loss)), platforms=("cuda",), disabled_checks=checks)(
        jnp.stack([x, x])
    )
    text = jax.export.deserialize(exported.serialize()).mlir_module()
    found = re.findall(r'recipe = "((?:[^"\\]|\\.)*)"', text)
    recipes = [re.sub(r"\\([0-9A-F]{2})", lambda code: chr(int(code[1], 16)), recipe) for recipe in found]
    assert len(recipes) == 2 and text.count(f"@{CUDA_TARGET}") == 2
    maker = """
import sys
from jax_enzyme.xla_ffi.gpu import make_code
for recipe in sys.stdin.read().splitlines():
    print(make_code(recipe, "sm_90", 1))
"""
    done = subprocess.run([sys.executable, "-c", maker], input="\n".join(recipes), text=True, capture_output=True)
    assert done.stdout.count(".visible .entry je_kernel_0(") == 2, done.stderr


def failing(kernel: je.Kernel, text: str, n: int = 8) -> None:
    with pytest.raises(jax.errors.JaxRuntimeError, match=text):
        jax.block_until_ready(kernel(1.0, jnp.zeros(n), 1.0))


class TestErrors:
    def test_old_device(self, gpu_launches: StandIn) -> None:
        gpu_launches.library.stand_in_device(75, 7)
        try:
            failing(
                scale(block=24),
                r"kernel `scale`: LoweringError: this GPU has compute capability 7\.0\n *remedy: 8\.0 is the oldest",
            )
        finally:
            gpu_launches.library.stand_in_device(75, 9)

    def test_too_much_shared_memory(self, gpu_launches: StandIn) -> None:
        gpu_launches.library.stand_in_device(97, 101_376)
        try:
            failing(scale(block=40, shared=200_000), "200000 bytes of dynamic shared memory .*: this GPU has 101376")
        finally:
            gpu_launches.library.stand_in_device(97, 232_448)

    def test_too_many_registers(self, gpu_launches: StandIn) -> None:
        gpu_launches.library.stand_in_function(0, 256)
        try:
            failing(scale(block=512), "a block of 512 threads needs more registers than this GPU has: at most 256")
        finally:
            gpu_launches.library.stand_in_function(0, 1024)

    def test_block_too_large_for_the_device(self, gpu_launches: StandIn) -> None:
        gpu_launches.library.stand_in_device(2, 32)
        try:
            failing(scale(block=48), "a block of 48 x 1 x 1 threads is too large along x: this GPU allows 32")
        finally:
            gpu_launches.library.stand_in_device(2, 1024)

    def test_batch_too_large(self, gpu_launches: StandIn) -> None:
        gpu_launches.library.stand_in_device(5, 10)
        try:
            with pytest.raises(jax.errors.JaxRuntimeError, match=r"for each of 11 elements of a batch.*allows 10"):
                jax.block_until_ready(jax.vmap(scale(block=56), (0, None, None))(jnp.zeros(11), jnp.zeros(4), 1.0))
        finally:
            gpu_launches.library.stand_in_device(5, 2**31 - 1)

    def test_batch_too_large_for_a_kernel_that_is_loaded(self, gpu_launches: StandIn) -> None:
        """Each launch is checked, not the first alone."""
        mapped = jax.vmap(scale(block=57), (0, None, None))
        gpu_launches.library.stand_in_device(5, 10)
        try:
            assert mapped(jnp.zeros(10), jnp.zeros(4), 1.0).shape == (10, 4)
            with pytest.raises(jax.errors.JaxRuntimeError, match=r"for each of 11 elements of a batch.*allows 10"):
                jax.block_until_ready(mapped(jnp.zeros(11), jnp.zeros(4), 1.0))
        finally:
            gpu_launches.library.stand_in_device(5, 2**31 - 1)
        assert len(gpu_launches.launches()) == 1

    def test_more_blocks_than_an_integer_holds(self, gpu_launches: StandIn) -> None:
        """7 times this grid are 2^32 + 3 blocks, which would launch 3."""
        grid = (2**32 + 3) // 7
        mapped = jax.vmap(je.kernel(SCALE, "scale", SCALE_SIGNATURE, lang="cuda", grid=grid, block=16), (0, None, None))
        gpu_launches.library.stand_in_fail(b"cuLaunchKernel", 719)
        try:  # loaded, and not run
            with pytest.raises(jax.errors.JaxRuntimeError, match="could not be launched"):
                jax.block_until_ready(mapped(jnp.zeros(2), jnp.zeros(4), 1.0))
        finally:
            gpu_launches.library.stand_in_fail(b"cuLaunchKernel", 0)
        assert gpu_launches.launches() == [["je_kernel_0", str(2 * grid), "1", "1", "16", "1", "1", "0"]]
        with pytest.raises(jax.errors.JaxRuntimeError, match=r"for each of 7 elements of a batch.*allows 2147483647"):
            jax.block_until_ready(mapped(jnp.zeros(7), jnp.zeros(4), 1.0))
        assert gpu_launches.launches() == []

    def test_rejected_code(self, gpu_launches: StandIn) -> None:
        gpu_launches.library.stand_in_fail(b"cuModuleLoadDataEx", 218)
        try:
            failing(scale(block=72), "the driver rejects its code .CUDA_ERROR_INVALID_PTX.*line 7: what the log says")
        finally:
            gpu_launches.library.stand_in_fail(b"cuModuleLoadDataEx", 0)

    def test_failed_launch_and_then_none(self, gpu_launches: StandIn) -> None:
        """What fails once is not broken for good."""
        kernel = scale(block=80)
        gpu_launches.library.stand_in_fail(b"cuLaunchKernel", 719)
        try:
            failing(kernel, "could not be launched: CUDA_ERROR_OF_THE_STAND_IN")
        finally:
            gpu_launches.library.stand_in_fail(b"cuLaunchKernel", 0)
        np.testing.assert_array_equal(kernel(1.0, jnp.zeros(8), 1.0), np.ones(8))

    def test_failed_memory(self, gpu_launches: StandIn) -> None:
        gpu_launches.library.stand_in_fail(b"cuMemsetD8Async", 700)
        try:
            half = je.kernel(
                SCALE, "scale", SCALE_SIGNATURE, lang="cuda", grid=1, block=4
            )  # it does not fill its output
            failing(half, "its buffers could not be set up")
        finally:
            gpu_launches.library.stand_in_fail(b"cuMemsetD8Async", 0)

    def test_missing_driver(self, tmp_path: Path) -> None:
        """In a process of its own: the driver is looked for once."""
        program = "from jax_enzyme.xla_ffi import _ext; print(_ext.driver_error())"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        if not done.stdout.strip():
            pytest.skip("NVIDIA's driver is here")
        assert done.stdout.startswith("there is no NVIDIA driver on this machine (libcuda.so.1:")
