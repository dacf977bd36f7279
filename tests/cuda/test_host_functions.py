"""Whole CUDA sources: kernels out of them, and host functions that allocate, copy and launch."""

from __future__ import annotations

import platform
from pathlib import Path

import jax
import numpy as np
import pytest
from numpy.typing import NDArray

import jax_enzyme as je
from jax_enzyme.frontends import cuda
from jax_enzyme.frontends.system_headers import system_headers

STEPS = "inout x: f64[n], force: f64[n], n: i32, steps: i32, dt: f64"
PROGRAMS = Path(__file__).parent / "programs"
Array = NDArray[np.float64]


def uniform(*shape: int) -> Array:
    return np.random.default_rng(3).uniform(-1, 1, shape)


def host(program: str, symbol: str, signature: str) -> je.Kernel:
    return je.kernel(PROGRAMS / f"{program}.cu", symbol, signature)


def check(kernel: je.Kernel, arguments: tuple[object, ...], expected: object) -> None:
    """Value, and jvp and vjp beside differences."""
    results = jax.tree.leaves(kernel(*arguments))
    for found, wanted in zip(results, jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)
    je.check_grads(kernel, arguments)


def test_templates_and_streams() -> None:
    kernel = host("product", "multiply", "a: f64[n,n], b: f64[n,n], out c: f64[n,n], n: i32, tile: i32 -> status")
    a, b = uniform(16, 16), uniform(16, 16).T
    check(kernel, (a, b, 4), a @ b)


def test_pointers_that_change_places() -> None:
    kernel = host("relaxation", "solve", "inout u: f64[ny,nx], f: f64[ny,nx], nx: i32, ny: i32, h: f64, rounds: i32")
    u, f, h = uniform(9, 18), uniform(18, 9).T, 0.3
    old, now = u.copy(), u.copy()
    for _ in range(5):
        around = old[:-2, 1:-1] + old[2:, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:]
        now[1:-1, 1:-1] = 0.25 * (around + h * h * f[1:-1, 1:-1] * np.exp(old[1:-1, 1:-1]))
        old, now = now, old
    check(kernel, (u, f, h, 5), old)


def test_places_in_tiles_are_computed_and_not_kept() -> None:
    """Where LLVM computes a thread's place on both sides of a branch, the tape keeps no addresses, and of numbers those
    of the tile alone; the report names the lines of the kernel that is launched."""
    kernel = host("columns", "weighted", "n: i32, m: i32, weight: f64[n], x: f64[n,m], out sums: f64[m]")
    weight, x = uniform(24), uniform(24, 32)
    check(kernel, (weight, x), np.sin(weight @ x))
    report = str(kernel.inspect(weight, x))
    assert "two functions" in report and "ptr[" not in report
    source = (PROGRAMS / "columns.cu").read_text().splitlines()
    (product,) = (n for n, line in enumerate(source, 1) if "*= own" in line)
    assert f"columns.cu:{product}" in report


def test_launches_of_different_grids() -> None:
    x = uniform(700)
    check(host("norm", "norm", "x: f64[n], n: i32 -> f64"), (x,), np.linalg.norm(x))


def test_two_kernels_a_step() -> None:
    kernel = host("bodies", "simulate", "inout state: f64[2,n,4], n: i32, steps: i32, dt: f64")
    state, dt = uniform(2, 64, 4), 0.1
    place, speed = state.copy()
    for _ in range(2):
        apart = place[None, :, :3] - place[:, None, :3]
        speed[:, :3] += dt * (apart * ((apart**2).sum(-1, keepdims=True) + 0.1) ** -1.5).sum(1)
        place[:, :3] += dt * speed[:, :3]
    check(kernel, (state, 2, dt), np.stack([place, speed]))


def test_constant_memory_and_variables_of_the_device() -> None:
    signature = "x: f64[n], out y: f64[n], n: i32, weights: f64[3], scale: f64, shift: f64[2] -> f64"
    kernel = host("filter", "apply", signature)
    x, weights, scale, shift = uniform(70), uniform(3), 0.7, uniform(2)
    y, total = np.sin(x), 1.5
    for _ in range(2):
        padded = np.pad(y, 2)
        near = sum(weights[abs(k)] * padded[2 + k : 72 + k] for k in range(-2, 3))
        total += (near * near).sum()
        y = 2 * scale * near + shift[np.arange(70) % 2]
    check(kernel, (x, weights, scale, shift), (total, y))
    np.testing.assert_array_equal(kernel(x, weights, scale, shift)[0], kernel(x, weights, scale, shift)[0])


def test_pieces_rows_and_a_launch_by_address() -> None:
    kernel = host("pieces", "pieces", "x: f64[n], out y: f64[n], n: i32, factor: f64")
    x = uniform(96) + 2
    check(kernel, (x, 1.5), 1.5 * x * (x + np.sqrt(x) * np.cos(x)))


def test_one_array_for_input_and_output() -> None:
    x = uniform(64) + 2
    found = x
    for _ in range(2):
        found = found * np.roll(found, 1)
    check(host("in_place", "twice", "inout x: f64[64]"), (x,), found[::-1] * found[0])


def test_under_transformations_of_jax() -> None:
    kernel = host("norm", "norm", "x: f64[n], n: i32 -> f64")
    x = uniform(3, 300)
    lengths = np.linalg.norm(x, axis=1, keepdims=True)
    np.testing.assert_allclose(jax.vmap(jax.grad(kernel))(x), x / lengths, rtol=1e-12)
    hessian = jax.hessian(kernel)(x[0])
    unit = x[0] / lengths[0]
    np.testing.assert_allclose(hessian, (np.eye(300) - np.outer(unit, unit)) / lengths[0], rtol=1e-9, atol=1e-12)


def test_a_kernel_out_of_a_whole_file() -> None:
    signature = "x: f64[n], out sum: f64[(n+255)//256], n: i32"
    kernel = je.kernel(PROGRAMS / "norm.cu", "sums", signature, grid="(n+255)//256", block=128, shared=1024)
    x = uniform(700)
    check(kernel, (x,), np.add.reduceat(x, [0, 256, 512]))


def test_cublas_between_kernels() -> None:
    signature = "a: f64[m,n], b: f64[m], inout x: f64[n], m: i32, n: i32, rate: f64, steps: i32 -> f64"
    a, b, x = uniform(7, 5), uniform(7), uniform(5)
    found = x
    residual = np.empty(0)
    for _ in range(3):
        residual = np.tanh(a @ found - b)
        found = found - 0.1 * a.T @ residual
    check(host("least_squares", "descend", signature), (a, b, x, 0.1, 3), (np.linalg.norm(residual), found))


def test_cublas_of_batches_by_pointers() -> None:
    a = uniform(3, 4, 4)
    products = np.swapaxes(a, 1, 2) @ a  # by columns: a aᵀ
    largest = np.array([p.ravel()[np.argmax(np.abs(p))] for p in products])
    kernel = host("least_squares", "batch", "a: f64[count,n,n], out c: f64[count,n,n], n: i32, count: i32")
    check(kernel, (a,), 2 * products / largest[:, None, None] + np.swapaxes(a, 1, 2))


def test_systems_in_batches_and_by_factors() -> None:
    a, b = uniform(2, 3, 3) + 4 * np.eye(3), uniform(2, 3)
    found = b[..., None]
    for _ in range(3):
        found = np.linalg.solve(a, found)
    signature = "inout a: f64[count,n,n], inout b: f64[count,n], n: i32, count: i32"
    check(host("solvers", "batches", signature), (a, b), (a, found[..., 0]))
    symmetric = a[0] @ a[0].T
    solved = np.linalg.matrix_power(np.linalg.inv(symmetric), 3) @ b[0]
    check(host("solvers", "one", "a: f64[n,n], inout x: f64[n], n: i32 -> status"), (symmetric, b[0]), solved)
    values, vectors = np.linalg.eigh(a[0] + a[0].T)
    found = values * vectors[0] ** 2, np.linalg.svd(a[0], compute_uv=False)
    check(host("solvers", "spectral", "a: f64[n,n], out w: f64[n], out s: f64[n], n: i32"), (a[0],), found)


def test_cub_selects_and_placeholders_are_functions() -> None:
    x, keys = uniform(20), np.repeat(np.arange(5, dtype=np.int32), 4)
    signature = "x: f64[n], keys: i32[n], inout y: f64[n], inout sums: f64[n], n: i32, least: f64 -> i32"
    kept = x[x > -0.2]
    y, sums = np.zeros(20), np.zeros(20)
    y[: len(kept)] = 3 * kept / kept[0] + kept
    y[np.argmax(kept)] = kept.max()
    sums[:5] = x.reshape(5, 4).sum(1)
    check(host("selected", "selected", signature), (x, keys, np.zeros(20), np.zeros(20), -0.2), (5, y, sums))


def test_threads_that_left_read_nothing() -> None:
    speed, source = uniform(6), uniform(7)[1:]
    kernel = host("directions", "fluxes", "n: i32, speed: f64[n], source: f64[n], out flux: f64[n]")
    check(kernel, (speed, source), np.where(speed > 0, 0, speed * source) ** 2)


LINE = "inout x: f64[n], n: i32"


def test_grids_that_data_say() -> None:
    kernel = host("refused", "grid_of_data", f"{LINE}, blocks: i32[1]")
    x = uniform(40)
    np.testing.assert_array_equal(kernel(x, np.array([1], np.int32)), np.where(np.arange(40) < 32, 2 * x, x))
    np.testing.assert_array_equal(kernel(x, np.array([2], np.int32)), 2 * x)
    with pytest.raises(jax.errors.JaxRuntimeError, match="every grid that is launched has extents of at least 1"):
        kernel(x, np.array([0], np.int32))


@pytest.mark.parametrize("threads", [1, 32, 50])
def test_blocks_that_data_say(threads: int) -> None:
    """In a general form, which has no fixed number of threads; nor of bytes of dynamic shared memory."""
    block, x = np.array([threads], np.int32), uniform(70)
    line = "x: f64[n], n: i32, threads: i32[1] -> f64"
    check(host("blocks", "warps", line), (x, block), x @ x)
    if threads != 50:  # halved in a tree
        check(host("blocks", "norm", line), (x, block), np.sum((x * np.roll(x, -1)) ** 2))


def test_blocks_of_two_dimensions_that_data_say() -> None:
    kernel = host("blocks", "turned", "x: f64[n,n], out y: f64[n,n], n: i32, threads: i32[2]")
    x = uniform(9, 9)
    check(kernel, (x, np.array([4, 3], np.int32)), np.sin(x).T)
    for block in ([32, 32], [1, 2]):
        np.testing.assert_allclose(kernel(x, np.array(block, np.int32)), np.sin(x).T, rtol=1e-12)
    with pytest.raises(jax.errors.JaxRuntimeError, match="every block that is launched has 1 to 1024 threads"):
        kernel(x, np.array([64, 32], np.int32))


def test_graphs() -> None:
    """What a stream captures in a branch of a loop, nodes by hand, and an executable that is given another graph; what
    they are given is that of the time when they were made."""
    x, force, dt = uniform(70), uniform(140)[::2], 0.3

    def flow(u: Array, dt: float) -> Array:
        return u + dt * np.sin(u) * np.roll(u, 1)

    captured, by_hand, updated = 2 * x, x, x
    for step in range(3):
        captured = flow(flow(captured, dt), dt) + force
        by_hand = 2 * (flow(by_hand, dt) + force)
        updated = 2 * flow(updated, dt * (step + 1))
    for symbol, expected in (("captured", captured), ("by_hand", by_hand), ("updated", updated)):
        check(host("graphs", symbol, STEPS), (x, force, 3, dt), expected)
    for symbol in ("read_in_a_capture", "product_in_a_capture"):
        with pytest.raises(jax.errors.JaxRuntimeError, match="a stream captures launches, asynchronous copies"):
            host("graphs", symbol, STEPS)(x, force, 3, dt)


def test_blocks_that_change_from_launch_to_launch() -> None:
    x = uniform(32)
    check(host("refused", "halved", LINE), (x,), x * np.repeat([8, 4, 2], [8, 8, 16]))


def test_constants_of_the_device_that_the_host_reads() -> None:
    x = uniform(32)
    check(host("refused", "constants_of_the_device", LINE), (x,), x * (5 + np.array([1, 2, 3])[np.arange(32) % 3]))


@pytest.mark.parametrize(
    ("symbol", "message", "line"),
    [
        ("no_shared", "gives its blocks none", 17),
        ("too_many", "block.x = 2048", 18),
        ("graph", "`cudaGraphClone` has no meaning on the CPU", 22),
        ("light", "`cublasLtCreate` has no meaning on the CPU", 51),
        ("peer", "`cudaMemcpyPeer` has no meaning on the CPU", 31),
        ("pointer_of_the_device", "the host asks for `pointer`, a constant of the device", 58),
        ("mixed", "`cublasDotEx` has no meaning on the CPU", 34),
    ],
)
def test_what_a_host_function_cannot_do(symbol: str, message: str, line: int) -> None:
    kernel = host("refused", symbol, LINE)
    with pytest.raises(je.LoweringError, match=message) as caught:
        kernel(uniform(40))
    assert str(caught.value.place).split(":")[1] == str(line)


def test_launches_by_kernels_do_no_harm_elsewhere() -> None:
    """Static kernels have other names in such a file."""
    x = uniform(32)
    check(host("nested", "outer", "inout x: f64[n], n: i32"), (x,), 6 * x)
    kernel = je.kernel(PROGRAMS / "nested.cu", "parent", "inout x: f64[n], n: i32", grid=1, block=32)
    with pytest.raises(je.LoweringError, match="a launch by a kernel has no meaning on the CPU") as caught:
        kernel(x)
    assert "nested.cu:9:" in str(caught.value) and "from a host function" in str(caught.value)


def test_exits_are_errors_of_the_call() -> None:
    with pytest.raises(jax.errors.JaxRuntimeError, match="end the process"):
        host("refused", "exits", LINE)(uniform(40) + 5)
    with pytest.raises(jax.errors.JaxRuntimeError, match="find the memory that they ask for"):
        host("refused", "too_much", LINE)(uniform(40))


def test_kernels_that_are_launched_are_checked() -> None:
    source = """
    __global__ void copied(const double *x, double *y) { y[threadIdx.x] = x[threadIdx.x]; }
    void f(double *x, int n, const int *threads) {
      double *memory;
      cudaMalloc(&memory, n * 8);
      copied<<<1, threads[0]>>>(x, memory);
      cudaMemcpy(x, memory, n * 8, cudaMemcpyDeviceToHost);
      cudaFree(memory);
    }"""
    line = "inout x: f64[n], n: i32, threads: i32[1]"
    kernel = je.kernel(source, "f", line, lang="cuda", options=je.Options(sanitize=True))
    np.testing.assert_array_equal(kernel(np.ones(32), np.array([32], np.int32)), np.ones(32))
    with pytest.raises(jax.errors.JaxRuntimeError, match="outside of the bounds"):
        kernel(np.ones(32), np.array([33], np.int32))


def test_symbols_and_launches_that_do_not_fit() -> None:
    with pytest.raises(je.CompileError, match="did you mean `exits"):
        host("refused", "exist", LINE)
    with pytest.raises(je.SignatureError, match="is a host function"):
        je.kernel(PROGRAMS / "refused.cu", "exits", LINE, grid=1, block=1)
    with pytest.raises(je.SignatureError, match="needs grid= and block="):
        host("refused", "twice", LINE)
    with pytest.raises(je.SignatureError, match="is a host function"):
        je.check_races(host("refused", "exits", LINE), [uniform(4)])
    with pytest.raises(je.LoweringError, match="runs on the CPU alone"):
        jax.jit(host("refused", "exits", LINE)).trace(uniform(4)).lower(lowering_platforms=("cuda",))


def test_a_header_that_is_missing(tmp_path: Path) -> None:
    source = tmp_path / "a.cu"
    source.write_text('#include "own.h"\nint main() {}\n')
    with pytest.raises(je.CompileError, match=r"name the folder that own\.h is in"):
        je.kernel(source, "f", LINE)


def test_a_part_of_another_source(tmp_path: Path) -> None:
    """It does not compile by itself: the error names the source that includes it."""
    part = tmp_path / "step_kernel.cu"
    part.write_text("__global__ void step(real *x) { x[threadIdx.x] *= 2; }\n")
    (tmp_path / "step.cu").write_text('#define real double\n#include "step_kernel.cu"\n')
    with pytest.raises(je.CompileError, match=r"is included by \S*step\.cu(.|\n)*give the whole source"):
        je.kernel(part, "step", "inout x: f64[n]", grid=1, block="n")


def test_tables_of_functions() -> None:
    """Of two kernels; one that a kernel changes would have to be the same memory for both."""
    source = """
    typedef double (*Law)(double);
    __device__ double square(double v) { return v * v; }
    __device__ double cube(double v) { return v * v * v; }
    __device__ Law laws[2] = {square, cube};
    __global__ void first(const int *k, double *y) { y[threadIdx.x] = laws[k[threadIdx.x]](y[threadIdx.x]); }
    __global__ void second(const int *k, double *y) { y[threadIdx.x] += laws[1 - k[threadIdx.x]](y[threadIdx.x]); }
    __global__ void change() { laws[0] = cube; }
    void both(int n, const int *k, double *y) { first<<<1, n>>>(k, y); second<<<1, n>>>(k, y); }
    void changed(int n, const int *k, double *y) { change<<<1, 1>>>(); both(n, k, y); }"""
    signature = "n: i32, k: i32[n], inout y: f64[n]"
    y, k = uniform(8), np.arange(8, dtype=np.int32) % 2
    once = np.where(k, y**3, y**2)
    check(je.kernel(source.replace("laws[0] = cube;", ""), "both", signature, lang="cuda"), (k, y),
          once + np.where(k, once**2, once**3))  # fmt: skip
    with pytest.raises(je.LoweringError, match="`laws` holds addresses of functions, and may change"):
        je.kernel(source, "changed", signature, lang="cuda")(k, y)


def test_functions_whose_addresses_the_host_reads() -> None:
    """Chosen at run time, of a template, in a structure beside a number; one that asks for its thread cannot be run."""
    source = """
    __constant__ double share = 0.5;
    __host__ __device__ double helper(double v) { return pow(v, 1.5); }
    template <class T> __device__ T scaled(T v) { return share * v * v; }
    __device__ double powered(double v) { return helper(v) + v; }
    __device__ double of_thread(double v) { return v * threadIdx.x; }
    struct Law { double (*of)(double); double weight; };
    __device__ Law laws[2] = {{scaled<double>, 2}, {powered, 3}};
    static __device__ double (*asking)(double) = of_thread;
    __global__ void apply(int n, double *y, Law law) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) y[i] = law.weight * law.of(y[i]);
    }
    void chosen(int n, int which, double *y) {
      Law law;
      cudaMemcpyFromSymbol(&law, laws, sizeof law, which * sizeof law);
      apply<<<3, 3>>>(n, y, law);
    }
    void asked(int n, int which, double *y) {
      Law law = {0, 1};
      cudaMemcpyFromSymbol(&law.of, asking, sizeof law.of);
      apply<<<3, 3>>>(n, y, law);
    }"""
    signature, y = "n: i32, which: i32, inout y: f64[n]", 1 + uniform(8) / 2
    kernel = je.kernel(source, "chosen", signature, lang="cuda")
    check(kernel, (0, y), y**2)
    check(kernel, (1, y), 3 * (y**1.5 + y))
    with pytest.raises(je.LoweringError, match="the address of `of_thread`, which depends on its thread") as caught:
        je.kernel(source, "asked", signature, lang="cuda")(0, y)
    assert str(caught.value.place).split(":")[1] == "6"


def test_a_name_of_several_instances(tmp_path: Path) -> None:
    source = tmp_path / "twice.cu"
    source.write_text("""template <typename T> __global__ void twice(T *x) { x[threadIdx.x] *= 2; }
      template <typename T> void both(T *x) { twice<<<1, 4>>>(x); }
      template void both<float>(float *);
      template void both<double>(double *);""")
    for symbol in ("twice", "both"):
        with pytest.raises(je.CompileError, match=f"is not unique: {symbol}<float>, {symbol}<double>"):
            je.kernel(source, symbol, "inout x: f64[n]", grid=1, block="n")


APART = """
#include <helper_cuda.h>
#include <helper_functions.h>
#include <helper_math.h>
#include <cutil_inline.h>
// a << < b >> > in a comment
static const char *const TEXT = "<< <";
__global__ void attract(const double4 *p, double3 *f, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  double3 a = make_double3(0.0), me = make_double3(p[i]);
  for (int j = 0; j < n; j++) {
    double3 d = make_double3(p[j]) - me;
    double r = sqrt(dot(d, d) + 0.5);
    a += p[j].w * d / (r * r * r);
  }
  f[i] = cross(a, normalize(me)) + lerp(a, -me, 0.3);
}
void forces(const double *x, double *y, int n) {
  double4 *p;
  double3 *f;
  StopWatchInterface *timer = 0;
  sdkCreateTimer(&timer);
  checkCudaErrors(cudaSetDevice(gpuGetMaxGflopsDeviceId()));
  checkCudaErrors(cudaMalloc((void **)&p, n * sizeof(double4)));
  cutilSafeCall(cudaMalloc((void **)&f, n * sizeof(double3)));
  checkCudaErrors(cudaMemcpy(p, x, n * sizeof(double4), cudaMemcpyHostToDevice));
  attract << <(n >> 1), dim3(2) >> > (p, f, n);
  getLastCudaError(TEXT);
  checkCudaErrors(cudaMemcpy(y, f, n * sizeof(double3), cudaMemcpyDeviceToHost));
  sdkStopTimer(&timer);
  printf("%f", sdkGetAverageTimerValue(&timer));
}
"""


def test_headers_of_the_samples_and_launches_apart(tmp_path: Path) -> None:
    source = tmp_path / "apart.cu"
    source.write_text(APART)
    signature = "x: f64[n,4], out y: f64[n,3], n: i32"
    kernel, of_file = (je.kernel(s, "forces", signature, lang="cuda") for s in (APART, source))
    x = uniform(6, 4)
    p, m = x[:, :3], x[:, 3:]
    d = p[None] - p[:, None]
    a = np.sum(m * d / ((d * d).sum(-1) + 0.5)[..., None] ** 1.5, axis=1)
    unit = p / np.linalg.norm(p, axis=1, keepdims=True)
    check(kernel, (x,), [np.cross(a, unit) + a + 0.3 * (-p - a)])
    np.testing.assert_array_equal(of_file(x), kernel(x))


def test_thrust_around_a_kernel() -> None:
    x, y, a = uniform(50), uniform(51)[1:], 0.7
    tripled = 3 * (a * x + y)
    scan = np.cumsum(np.sin(tripled))
    total = (x @ x) * (1 + x @ scan) + tripled.sum()
    check(host("vectors", "combine", "x: f64[n], inout y: f64[n], n: i32, a: f64 -> f64"), (x, y, a), (total, scan))


def test_thrust_by_keys() -> None:
    x, keys = uniform(12), np.array([3, 1, 2, 2, 0, 1, 3, 0, 2, 1, 3, 0], np.int32)
    sums = np.array([x[keys == key].sum() for key in range(4)])
    kept = np.zeros(12)
    kept[: (sums > 0).sum()] = sums[sums > 0] ** 2
    signature = "x: f64[n], keys: i32[n], out y: f64[n], out counts: i32[4], n: i32"
    check(host("vectors", "selected", signature), (x, keys), (kept, np.array([4, (sums > 0).sum(), (x > 0).sum(), 3])))


def test_thrust_iterators() -> None:
    x, y, a, places = uniform(11), uniform(12)[1:], 0.7, np.random.default_rng(0).permutation(11).astype(np.int32)
    signature = "x: f64[n], y: f64[n], map: i32[n], out z: f64[n], out w: f64[n], out p: f64[n], out d: f64[n], n: i32"
    total = np.sum(x * y + np.sin(x)) + np.sum(y) * np.sum(2 * x[places[:3]]) + 100 * np.sum(x > 0)
    parted = np.concatenate([x[x > 0], x[x <= 0]])[::-1]
    expected = (total, a * x + y, (x * x)[places], parted, np.diff(x, prepend=0))
    check(host("tuples", "run", f"{signature}, a: f64 -> f64"), (x, y, places, a), expected)
    keys = np.array([3, 1, 2, 2, 0, 1, 3, 0, 2, 1, 3], np.int32)
    sums = np.array([np.sum(x[keys == key]) for key in range(4)])
    kernel = host("tuples", "keys", "x: f64[n], key: i32[n], out sums: f64[4], out bound: i32[4], n: i32 -> i32")
    check(kernel, (x, keys), (2330, sums, np.arange(4)))


def test_cufft_around_a_kernel() -> None:
    x, filters = uniform(2, 6, 12)
    signature = "n: i32, rows: i32, x: f64[rows,n], filters: f64[rows,n], out y: f64[rows,n]"
    expected = np.fft.irfft(np.fft.rfft(x) * np.fft.rfft(filters), 12)
    check(host("transforms", "convolve", signature), (x, filters), expected)


def test_cufft_with_strides() -> None:
    x = uniform(3, 5, 2, 2)
    wanted = np.fft.fft2(x[:, :, 0, 0] + 1j * x[:, :, 0, 1])
    kernel = host("transforms", "every_other", "m: i32, n: i32, x: f64[m,n,2,2], out y: f64[m,n,2]")
    check(kernel, (x,), np.stack([wanted.real, wanted.imag], -1))


def test_cufft_in_place() -> None:
    x = uniform(4, 7)
    signature = "m: i32, n: i32, x: f64[m,n], out y: f64[m,n]"
    check(host("transforms", "in_place", signature), (x,), np.fft.irfft(np.fft.rfft2(x), 7) * 7)


def test_beside_sources_of_other_languages(tmp_path: Path) -> None:
    device = """
    __global__ void squares(int n, const double *x, double *y) { int i = threadIdx.x; if (i < n) y[i] = x[i] * x[i]; }
    extern "C" void run(int n, const double *x, double *y) {
      double *a, *b;
      cudaMalloc(&a, n * 8), cudaMalloc(&b, n * 8);
      cudaMemcpy(a, x, n * 8, cudaMemcpyHostToDevice);
      squares<<<1, n>>>(n, a, b);
      cudaMemcpy(y, b, n * 8, cudaMemcpyDeviceToHost);
      cudaFree(a), cudaFree(b);
    }"""
    host = (
        "void run(int, const double *, double *);\nvoid top(int n, double *x, double *y) { x[0] *= 3; run(n, x, y); }"
    )
    (tmp_path / "device.cu").write_text(device)
    (tmp_path / "host.c").write_text(host)
    top = je.library(tmp_path).kernel("top", "n: i32, x: f64[n], out y: f64[n]")
    x = np.asarray([1.0, 2.0])
    np.testing.assert_array_equal(top(x), [9, 4])
    np.testing.assert_array_equal(jax.grad(lambda x: top(x).sum())(x), [18, 4])


def test_sources_beside_that_do_not_compile(tmp_path: Path) -> None:
    """As where the part for GPUs needs a macro that the build sets; what they may define is told as that."""
    device = """
    __global__ void scale(double *x) { x[threadIdx.x] *= SCALE; }
    extern "C" void scaled(int n, double *x) { scale<<<GRID, n>>>(x); }"""
    (tmp_path / "device.cu").write_text(device)
    (tmp_path / "right.cu").write_text(
        device.replace("SCALE", "2").replace("GRID", "1").replace("scaled", "doubled").replace("scale", "twice")
    )
    (tmp_path / "host.c").write_text(
        "void scaled(int, double *);\nvoid doubled(int, double *);\n"
        "void top(double *x) { scaled(1, x); }\nvoid half(double *x) { doubled(1, x); x[0] /= 4; }\n"
        "double square(double x) { return x * x; }\n"
    )
    library = je.library(tmp_path)
    half = library.kernel("half", "inout x: f64[1]")
    assert jax.grad(lambda x: half(x)[0])(np.ones(1)) == 0.5
    with pytest.raises(je.CompileError, match="undeclared identifier"):
        library.kernel("top", "inout x: f64[1]")
    with pytest.raises(je.CompileError, match="undeclared identifier"):
        je.library([tmp_path / "host.c", tmp_path / "device.cu"]).kernel("square", "x: f64 -> f64")
    library = je.library(tmp_path)
    assert jax.grad(library.kernel("square", "x: f64 -> f64"))(3.0) == 6
    assert not library._sources._done  # pyright: ignore[reportPrivateUsage]  # no CUDA source was compiled for it


def test_hip() -> None:
    """A `.hip` file: launches by HIP's macro, its names for functions, shuffles without masks."""
    path, x = PROGRAMS / "reduction.hip", uniform(150)
    check(je.kernel(path, "square_norm", "x: f64[n], n: i32 -> f64"), (x,), np.sum(x * x))
    kernel = je.kernel(path, "partial<64>", "n: i32, x: f64[n], out sums: f64[(n+63)//64]", grid="(n+63)//64", block=64)
    padded = np.concatenate([x, np.zeros(42)]).reshape(3, 64)
    check(kernel, (x,), np.sum(padded * padded, axis=1))
    with pytest.raises(jax.errors.JaxRuntimeError, match="too_far"):
        je.kernel(path, "too_far", "inout x: f64[64]", grid=1, block=64)(np.ones(64))


@pytest.mark.parametrize("libc", ["gnu.2.44", "musl"])
def test_a_library_of_c_may_have_functions_of_cuda(libc: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """glibc declares `rsqrt` and `sinpi` from 2.42 on, and musl's `__assert_fail` has other parameters."""
    headers = system_headers(f"{platform.machine()}-linux-{libc}")
    monkeypatch.setattr(cuda, "system_headers", lambda: headers)
    source = """#include <cassert>
    __global__ void k(double *y) {
      double (*function)(double) = rsqrt;
      assert(y[threadIdx.x] > 0);
      y[threadIdx.x] = function(y[threadIdx.x]) + rsqrt(4.0f) * sinpi(y[threadIdx.x]) + cospif(0) * sinpi(0.5f) - 1;
    }
    void f(int n, double *y) {
      assert(n > 1);
      y[0] = rsqrt(y[0]) + sinpi(0.5) + cospif(1);
      k<<<1, n>>>(y);
    }"""
    x = np.linspace(0.3, 0.8, 4)
    y = np.concatenate([x[:1] ** -0.5, x[1:]])
    check(je.kernel(source, "f", "n: i32, inout y: f64[n]", lang="cuda"), (x,), y**-0.5 + 0.5 * np.sin(np.pi * y))


LAUNCHES = """
__global__ void twice(int n, double *x){body}
extern "C" void run(int n, double *x, int block) {{
  double *d;
  cudaMalloc(&d, n * sizeof(double));
  cudaMemcpy(d, x, n * sizeof(double), cudaMemcpyHostToDevice);
  twice<<<1, block>>>(n, d);
  cudaMemcpy(x, d, n * sizeof(double), cudaMemcpyDeviceToHost);
  cudaFree(d);
}}
extern "C" double other(double x) {{ return x; }}
"""


def test_launches_are_told_by_the_kernels_own_name() -> None:
    source = LAUNCHES.format(body=" { if (threadIdx.x < n) x[threadIdx.x] *= 2; }").replace("block>>>", "4096>>>")
    run = je.kernel(source, "run", "n: i32, inout x: f64[n], block: i32 = 8", lang="cuda")
    with pytest.raises(je.JaxEnzymeError, match=r"`twice` is launched with block\.x = 4096"):
        run(uniform(3))


def test_a_kernel_that_is_only_declared(tmp_path: Path) -> None:
    """It is nobody's concern where nothing launches it."""
    source = LAUNCHES.format(body=";")
    signature = "n: i32, inout x: f64[n], block: i32"
    assert je.kernel(source, "other", "x: f64 -> f64", lang="cuda")(2.0) == 2.0
    with pytest.raises(je.CompileError, match=r"^`twice\(int, double\*\)` is launched, and no source defines"):
        je.kernel(source, "run", signature, lang="cuda")
    (tmp_path / "run.cu").write_text(source)
    (tmp_path / "half.c").write_text("double half(double x) { return x / 2; }")
    with pytest.raises(je.CompileError, match="is launched, and no source defines"):
        je.kernel(tmp_path, "run", signature)
