"""CUDA kernels as code objects for AMD's GPUs: LLVM and the linker take every kernel and every derivative, for two
architectures, and no register of a thread spills."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import jax_enzyme as je
from jax_enzyme.codegen.gpu import library
from jax_enzyme.codegen.gpu.architecture import AMD
from jax_enzyme.codegen.gpu.code_object import Inspected, inspected
from jax_enzyme.codegen.gpu.derived import derived
from jax_enzyme.codegen.gpu.primal import device_primal
from jax_enzyme.errors import LoweringError
from jax_enzyme.frontends import load
from jax_enzyme.ir.arrays import Augmented, Jvp, Pullback
from jax_enzyme.ir.device import DeviceFunction
from jax_enzyme.signature import Binding, parse, parse_launch
from jax_enzyme.transform.buffers import buffers_of
from tests.cuda.cases import CASES, Case
from tests.support.tools import need


def linked(function: DeviceFunction, arch: str, dimensions: int = 0, *, fast_math: bool = False) -> Inspected:
    need("rocm-device-libs", library.device_libraries() is not None)
    found = inspected(function, arch, dimensions=dimensions, fast_math=fast_math)
    assert found.code.startswith(b"\x7fELF") and len(found.kernels) == len(function.symbols)
    assert all(f"je_kernel_{n}.kd".encode() in found.code for n in range(len(function.symbols)))
    return found


def inline(
    text: str, name: str, signature: str, dims: dict[str, int], block: int = 128, flags: tuple[str, ...] = ()
) -> DeviceFunction:
    program = load(text, name, None if text.endswith(".cu") else "cuda", flags)
    launch = parse_launch(parse(signature), 2, block, 512 if flags else 0)
    return device_primal(replace(program, launch=launch), parse(signature), Binding.of(dims, {}))


def assembly(text: str, signature: str, arch: str = "gfx90a", **given: int) -> str:
    return linked(inline(text, "f", signature, {}, **given), arch).assembly


@pytest.mark.parametrize("case", [pytest.param(c, id=c.name) for c in CASES])
def test_kernels_and_derivatives(case: Case) -> None:
    """The kernel, forward mode, the kernel that leaves a tape, and the one that reads it; with batches and without."""
    way, signature, binding = case.launches[0], parse(case.signature), Binding.of(case.dims, {})
    launch = parse_launch(signature, way.grid, way.block, way.shared)
    program = replace(load(case.path, case.name, None, way.flags), launch=launch)
    buffers = buffers_of(signature, binding)
    wanted = tuple(b.is_input and b.is_floating for b in buffers)
    seeded = tuple(b.is_result and b.is_floating for b in buffers)
    steps = (), (Jvp(wanted),), (Augmented(wanted, seeded),), (Pullback(wanted, seeded),)
    for n, step in enumerate(steps):
        function = derived(program, signature, binding, step).function
        for kernel in linked(function, AMD[n % 2], n % 3).kernels:
            assert not kernel.spills and 0 < kernel.vector <= 512 and kernel.scalar <= 108, f"{step}: {kernel}"
            assert not step or kernel.parameters >= 8 * len(function.buffers)


@pytest.mark.parametrize("arch", AMD)
def test_everything_in_one_kernel(arch: str) -> None:
    """Device math in full, threads that meet, atomics, assert, narrow numbers, recursion."""
    signature = "n: i32, a: f64, x: f64[n], h: f16[n], b: bf16[n], inout y: f64[n], out ho: f16[n], out bo: bf16[n]"
    path = str(Path(__file__).parent / "everything.cu")
    function = inline(path, "all", signature, {"n": 100}, 64, ("-DPORTABLE",))
    (kernel,) = linked(function, arch, fast_math=arch == AMD[0]).kernels
    assert not kernel.spills and kernel.shared >= 8, "the block's own, and a place to count in"


def test_threads_meet_at_the_hardware_s_barrier() -> None:
    """Blocks of one wavefront need none; what others wrote is read again behind it."""
    source = """extern "C" __global__ void f(double *y) {
        __shared__ double s[128];
        s[threadIdx.x] = y[threadIdx.x];
        __syncthreads();
        y[threadIdx.x] = s[threadIdx.x ^ 1];
    }"""
    text = assembly(source, "inout y: f64[128]")
    behind = text.rpartition("s_barrier")[2]
    assert "ds_write" in text and "ds_read" in behind
    assert "s_barrier" not in assembly(source, "inout y: f64[128]", block=64)


@pytest.mark.parametrize("type_", ["float", "double"])
def test_sums_are_the_hardware_s(type_: str) -> None:
    """No loops of compare-and-swap, in global memory and in the block's."""
    source = f"""extern "C" __global__ void f(int *at, {type_} *y) {{
        __shared__ {type_} s[128];
        s[threadIdx.x] = 0;
        __syncthreads();
        atomicAdd(&s[at[threadIdx.x]], y[threadIdx.x]);
        __syncthreads();
        atomicAdd(&y[at[threadIdx.x]], s[threadIdx.x]);
    }}"""
    bits = 32 if type_ == "float" else 64
    text = assembly(source, f"at: i32[128], inout y: f{bits}[128]")
    assert f"global_atomic_add_f{bits}" in text and f"ds_add_f{bits}" in text and "cmpswap" not in text


def test_warps_are_halves_of_wavefronts() -> None:
    text = assembly(
        """extern "C" __global__ void f(double *y) {
             double other = __shfl_xor_sync(~0u, y[threadIdx.x], 3);
             y[threadIdx.x] = other + __ballot_sync(~0u, other > 0) + __activemask();
           }""",
        "inout y: f64[128]",
    )  # fmt: skip
    assert text.count("ds_bpermute_b32") == 2 and ".wavefront_size: 64" in text
    assert re.search(r"v_and_b32\w* v\d+, 32|v_and_b32\w* v\d+, 0x80", text), "the half that a lane lies in"


def test_the_report_has_both_vendors() -> None:
    source = 'extern "C" __global__ void f(int n, const float *x, float *y) { y[threadIdx.x] = sqrtf(x[threadIdx.x]); }'
    kernel = je.kernel(source, "f", "n: i32, x: f32[n], out y: f32[n]", lang="cuda", grid=1, block=64)
    gpu = kernel.inspect(np.zeros(64, np.float32)).gpu
    assert gpu is not None
    for name, found in gpu.resources("gfx942").items():
        assert found.kernel == "je_kernel_0" and not found.spills, name
    assert "s_endpgm" in gpu.ptx("pullback", "gfx90a") and gpu.code_object("jvp", "gfx90a").startswith(b"\x7fELF")


class TestRefusals:
    def test_inline_ptx(self) -> None:
        source = """extern "C" __global__ void f(double *y) {
          asm volatile("add.f64 %0, %0, %0;" : "+d"(y[0]));
        }"""
        with pytest.raises(LoweringError, match=r"inline assembly for NVIDIA's GPUs[\s\S]*kernel\.cu:2"):
            assembly(source, "inout y: f64[1]")

    def test_what_only_nvidia_s_driver_has(self) -> None:
        source = 'extern "C" __global__ void f(double *y) { printf("%f", *y); }'
        with pytest.raises(LoweringError, match="`vprintf`, which GPUs of AMD's have no code for"):
            assembly(source, "inout y: f64[1]")

    def test_more_shared_memory_than_there_is(self) -> None:
        source = """extern "C" __global__ void f(double *y) {
          __shared__ double s[9000];
          s[threadIdx.x] = y[threadIdx.x];
          __syncthreads();
          y[threadIdx.x] = s[threadIdx.x ^ 1];
        }"""
        with pytest.raises(LoweringError, match="72000 bytes of shared memory, and GPUs of AMD's have 65536"):
            assembly(source, "inout y: f64[128]")

    def test_missing_device_libraries(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A kernel that needs them says so; others do without."""
        monkeypatch.setattr(library, "device_libraries", lambda: None)
        source = 'extern "C" __global__ void f(double *x) {{ x[threadIdx.x] = {}(x[threadIdx.x]); }}'
        function = inline(source.format("sin"), "f", "inout x: f64[128]", {})
        with pytest.raises(LoweringError, match=r"calls `sin`, which are in ROCm's device libraries[\s\S]*apt install"):
            inspected(function, "gfx90a")
        assert inspected(inline(source.format("sqrt"), "f", "inout x: f64[128]", {}), "gfx90a").kernels
