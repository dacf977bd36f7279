"""CUDA kernels as PTX: NVIDIA's assembler takes every kernel and every derivative, for two architectures, and nothing
spills."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib import resources
from pathlib import Path

import pytest

from jax_enzyme.codegen.gpu import library
from jax_enzyme.codegen.gpu.architecture import PTX_VERSIONS, architecture, target
from jax_enzyme.codegen.gpu.derived import derived
from jax_enzyme.codegen.gpu.live_registers import most_live
from jax_enzyme.codegen.gpu.primal import device_primal
from jax_enzyme.codegen.gpu.ptx import ptx
from jax_enzyme.codegen.gpu.ptxas import Resources, assemble, find_ptxas
from jax_enzyme.errors import ArgumentError, LoweringError, SignatureError
from jax_enzyme.frontends import Program, load
from jax_enzyme.ir.arrays import Augmented, Jvp, Pullback
from jax_enzyme.ir.device import DeviceFunction
from jax_enzyme.ir.reader import parse as parse_ir
from jax_enzyme.signature import Binding, parse, parse_launch
from jax_enzyme.transform.buffers import buffers_of
from tests.cuda.cases import CASES, Case, Launch
from tests.support.tools import need

ARCHITECTURES = ("sm_80", "sm_90")


def assembled(function: DeviceFunction, arch: str, dimensions: int = 0, *, fast_math: bool = False) -> list[Resources]:
    need("ptxas", find_ptxas() is not None)
    return list(assemble(ptx(function, arch, dimensions=dimensions, fast_math=fast_math), arch))


def program(case: Case, way: Launch) -> tuple[Program, Binding]:
    found = load(case.path, case.name, None, way.flags)
    launch = parse_launch(parse(case.signature), way.grid, way.block, way.shared)
    return replace(found, launch=launch), Binding.of(case.dims, {})


def inline(text: str, name: str, signature: str, dims: dict[str, int], **launch: object) -> DeviceFunction:
    given = {"grid": 1, "block": 32, **launch}
    found = replace(
        load(text, name, None if text.endswith(".cu") else "cuda"),
        launch=parse_launch(parse(signature), *given.values()),
    )
    return device_primal(found, parse(signature), Binding.of(dims, {}))


@pytest.mark.parametrize("case", [pytest.param(c, id=c.name) for c in CASES])
def test_kernels(case: Case) -> None:
    found, binding = program(case, case.launches[-1])
    function = device_primal(found, parse(case.signature), binding)
    for arch, dimensions in zip(ARCHITECTURES, (0, 2), strict=True):
        (kernel,) = assembled(function, arch, dimensions)
        assert not kernel.spills and 0 < kernel.registers <= 128


@pytest.mark.parametrize("case", [pytest.param(c, id=c.name) for c in CASES])
def test_gradients(case: Case) -> None:
    """Forward mode, the kernel that leaves a tape, and the one that reads it."""
    found, binding = program(case, case.launches[0])
    signature = parse(case.signature)
    buffers = buffers_of(signature, binding)
    wanted = tuple(b.is_input and b.is_floating for b in buffers)
    seeded = tuple(b.is_result and b.is_floating for b in buffers)
    steps = (Jvp(wanted), "sm_80"), (Augmented(wanted, seeded), "sm_90"), (Pullback(wanted, seeded), "sm_80")
    for step, arch in steps:
        for kernel in assembled(derived(found, signature, binding, (step,)).function, arch):
            assert not kernel.spills, f"{type(step).__name__} for {arch}: {kernel}"


def test_every_architecture() -> None:
    function = inline(
        "__global__ void f(double *y) { y[threadIdx.x] = exp(y[threadIdx.x]); }", "_Z1fPd", "inout y: f64[32]", {}
    )
    for capability in PTX_VERSIONS:
        assert assembled(function, f"sm_{capability}")


@pytest.mark.parametrize("fast_math", [False, True])
def test_everything_in_one_kernel(fast_math: bool) -> None:
    """Device math in full, threads that meet, atomics, printf, assert, inline PTX, narrow numbers, recursion."""
    signature = "n: i32, a: f64, x: f64[n], h: f16[n], b: bf16[n], inout y: f64[n], out ho: f16[n], out bo: bf16[n]"
    function = inline(
        str(Path(__file__).parent / "everything.cu"),
        "all",
        signature,
        {"n": 100},
        grid="(n+63)//64",
        block=64,
        shared=512,
    )
    (kernel,) = assembled(function, "sm_80" if fast_math else "sm_90", fast_math=fast_math)
    assert kernel.stack > 0, "recursion, and an array that is indexed at run time"


def text_of(source: str, name: str, signature: str, dims: dict[str, int], **launch: object) -> str:
    return ptx(inline(source, name, signature, dims, **launch), "sm_90")


def test_what_the_headers_declare_is_defined() -> None:
    """The functions without a body, those of C's library and the `__je_...`, in the names of both precisions."""
    folder = resources.files("jax_enzyme.frontends").joinpath("cuda_include")
    declared: set[str] = set()
    for name in ("jax_enzyme_cuda.h", "jax_enzyme_cuda_math.h"):
        text = folder.joinpath(name).read_text()
        declared.update(re.findall(r"^__JE_(?:CONVERGENT|PURE|EXTERN) [\w ]*?(\w+)\(", text, re.M))
        families = re.findall(r"^__JE_(?:UNARY|BINARY)\((\w+)\)$", text, re.M)
        declared.update(f + suffix for f in families for suffix in ("", "f"))
    assert len(declared) > 120
    defined = {n for n, f in parse_ir(library.runtime_text(target("sm_90"))).functions.items() if not f.is_declaration}
    assert declared <= defined, sorted(declared - defined)


def test_inputs_come_through_the_read_only_cache() -> None:
    text = text_of(
        'extern "C" __global__ void f(const double *x, double *y) { y[threadIdx.x] += 2 * x[threadIdx.x]; }',
        "f", "x: f64[32], inout y: f64[32]", {},
    )  # fmt: skip
    assert text.count("ld.global.nc") == 1 and text.count("ld.global.b64") == 1


def test_memory_that_threads_share_is_read_again_behind_a_barrier() -> None:
    text = text_of(
        """extern "C" __global__ void f(double *__restrict__ y, double *z) {
             double first = y[1];
             __syncthreads();
             if (threadIdx.x == 7) y[1] = 5;
             __syncthreads();
             z[threadIdx.x] = first + y[1];
           }""",
        "f", "inout y: f64[2], out z: f64[32]", {},
    )  # fmt: skip
    assert "ld.global" in text.rpartition("bar.sync")[2]


def test_the_launch_is_static() -> None:
    text = text_of(
        """extern "C" __global__ void f(double *y) {
             y[blockIdx.x * blockDim.x + threadIdx.x] = gridDim.x + threadIdx.y;
           }""",
        "f", "out y: f64[96]", {}, grid=3, block=32,
    )  # fmt: skip
    assert ".reqntid 32, 1, 1" in text
    assert not [word for word in ("%ntid", "%nctaid", "%tid.y") if word in text]


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_kernels_with_many_live_registers_may_have_them(arch: str) -> None:
    """NVIDIA's assembler stops at 128 by itself, and keeps the rest in memory."""
    count = 82
    reads = "".join(f"double a{n} = v[{n} * 32]; " for n in range(count))
    writes = "".join(f"v[{n} * 32] = a{n} * a{(n * 7 + 3) % count}; " for n in range(count))
    source = 'extern "C" __global__ void wide(double *y) { volatile double *v = y + threadIdx.x; %s %s }'
    function = inline(source % (reads, writes), "wide", "inout y: f64[2624]", {})
    assert ".minnctapersm 1\n" in ptx(function, arch)
    (kernel,) = assembled(function, arch)
    assert not kernel.spills and kernel.registers > 128


def test_live_registers() -> None:
    """What a loop carries is alive all around it; a register of 64 bits counts twice, a predicate not at all."""
    body = """
\tld.param.b64 \t%rd1, [p];
\tmov.b32 \t%r1, 0;
$L__BB0_1:
\tld.global.b64 \t%fd1, [%rd1];
\tsetp.gt.f64 \t%p1, %fd1, 0d0000000000000000;
\tadd.s32 \t%r1, %r1, 1;
\t@%p1 bra \t$L__BB0_1;
\tst.global.b32 \t[%rd1], %r1;
\tret;"""
    assert most_live(body) == 5
    assert most_live(body.replace("@%p1 bra \t$L__BB0_1;", "add.s32 \t%r1, %r1, 2;")) == 5
    assert most_live(body.replace("st.global.b32 \t[%rd1]", "st.global.b32 \t[%rd2]")) == 7
    # The upper half of a number, as PTX for compute capability 8.0 has it: `%r1` is not alive before.
    half = "{ .reg .b32 tmp; mov.b64 {tmp, %r1}, %rd1; }"
    body = f"""
\tld.param.b64 \t%rd1, [p];
\tld.param.b64 \t%rd2, [q];
\tadd.s64 \t%rd1, %rd1, %rd2;
\t{half}
\tst.global.b32 \t[%rd1], %r1;
\tret;"""
    assert most_live(body) == 4


def test_products_and_sums_are_rounded_as_the_source_says() -> None:
    """Fused within an expression, as clang does it everywhere, and nowhere else."""
    text = text_of(
        """extern "C" __global__ void f(double *y) {
             int i = threadIdx.x;
             y[i] = y[i] * 3 + 1;
             double p = y[i] * 5;
             y[i] = p + 2;
           }""",
        "f", "inout y: f64[32]", {},
    )  # fmt: skip
    assert text.count("fma.rn.f64") == 1 and text.count("mul.rn.f64") == 1 and text.count("add.rn.f64") == 1


def test_the_derivative_of_a_root_divides_no_more_than_its_value() -> None:
    """`1 / sqrt(x)` is there already: 0.5 times that."""
    text = """extern "C" __global__ void f(const double *x, double *y) { y[threadIdx.x] = rsqrt(x[threadIdx.x]); }"""
    signature = parse("x: f64[32], out y: f64[32]")
    found = replace(load(text, "f", "cuda"), launch=parse_launch(signature, 1, 32, 0))
    function = derived(found, signature, Binding.of({}, {}), (Jvp((True, False)),)).function
    written = ptx(function, "sm_90")
    assert (written.count("rcp.rn.f64"), written.count("div.rn.f64")) == (1, 0)


def test_a_conversion_is_one_instruction() -> None:
    text = text_of(
        """extern "C" __global__ void f(const float *x, int *y, unsigned *z) {
             y[threadIdx.x] = __float2int_rz(x[threadIdx.x]), z[threadIdx.x] = __float2uint_rn(x[threadIdx.x]);
           }""",
        "f", "x: f32[8], out y: i32[8], out z: u32[8]", {},
    )  # fmt: skip
    assert "cvt.rzi.s32.f32" in text and "cvt.rzi.u32.f32" in text and "setp" not in text and "selp" not in text


class TestRefusals:
    def test_functions_of_the_host(self) -> None:
        source = 'extern "C" __device__ double lookup(int); extern "C" __global__ void f(double *y) { *y = lookup(3); }'
        with pytest.raises(LoweringError, match="`lookup`, which GPUs have no code for"):
            text_of(source, "f", "inout y: f64[]", {})
        wait = (
            "#include <cooperative_groups.h>\n__global__ void f(double *y) { cooperative_groups::this_grid().sync(); }"
        )
        with pytest.raises(LoweringError, match="are not cooperative"):
            text_of(wait, "f", "inout y: f64[]", {})

    def test_unknown_intrinsics_are_refused_by_name(self) -> None:
        """LLVM would end the process."""
        source = """
target triple = "nvptx64-nvidia-cuda"
declare i32 @llvm.nvvm.suq.width(i64)
define ptx_kernel void @f(ptr %y) {
  %1 = call i32 @llvm.nvvm.suq.width(i64 1)
  store i32 %1, ptr %y
  ret void
}"""
        with pytest.raises(LoweringError, match=r"`llvm\.nvvm\.suq\.width`, which GPUs have no code for"):
            text_of(source, "f", "out y: i32[]", {})

    def test_writes_to_inputs(self) -> None:
        source = 'extern "C" __global__ void f(double *x, double *y) { y[threadIdx.x] = x[threadIdx.x]++; }'
        with pytest.raises(SignatureError, match="writes to `x`"):
            text_of(source, "f", "x: f64[32], out y: f64[32]", {})

    def test_old_architectures(self) -> None:
        with pytest.raises(LoweringError, match=r"compute capability 7\.5"):
            architecture("sm_75")

    def test_newer_architectures_run_older_code(self) -> None:
        assert [architecture(f"sm_{c}") for c in (80, 89, 90, 95, 150)] == [
            "sm_80",
            "sm_89",
            "sm_90",
            "sm_90",
            "sm_121",
        ]

    def test_too_many_threads(self) -> None:
        source = 'extern "C" __global__ void f(int n, double *x) { x[threadIdx.x] = 1; }'
        with pytest.raises(ArgumentError, match=r"block\.x is 2048"):
            text_of(source, "f", "n: i32, inout x: f64[n]", {"n": 2048}, block="n")

    def test_missing_libdevice(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A kernel that needs it says so; others do without."""
        monkeypatch.setattr(library, "libdevice", lambda: None)
        source = 'extern "C" __global__ void f(double *x) {{ x[threadIdx.x] = {}(x[threadIdx.x]); }}'
        with pytest.raises(LoweringError, match="calls `sin`, which are in NVIDIA's libdevice"):
            text_of(source.format("sin"), "f", "inout x: f64[32]", {})
        assert "sqrt.rn.f64" in text_of(source.format("sqrt"), "f", "inout x: f64[32]", {})

    def test_the_assembler_is_asked_for_its_reason(self) -> None:
        need("ptxas", find_ptxas() is not None)
        with pytest.raises(LoweringError, match="ptxas rejects the code for sm_90"):
            assemble(".version 7.8\n.target sm_90\n.address_size 64\nnonsense", "sm_90")


@pytest.mark.parametrize("from_wheel", [False, True])
def test_libdevice_is_found(from_wheel: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a toolkit that the environment names, or where NVIDIA's wheels put it."""
    place = tmp_path / ("nvidia/cu99" if from_wheel else "") / "nvvm" / "libdevice"
    place.mkdir(parents=True)
    (place / "libdevice.10.bc").write_bytes(b"")
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)
    if from_wheel:
        monkeypatch.syspath_prepend(tmp_path)
    else:
        monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert library.libdevice() == place / "libdevice.10.bc"


def test_ptxas_is_found_in_a_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nvidia" / "cu99" / "bin" / "ptxas"
    program.parent.mkdir(parents=True)
    program.touch()
    monkeypatch.setenv("PATH", "")
    monkeypatch.syspath_prepend(tmp_path)
    assert find_ptxas() == program
