"""From a device function to a code object for AMD's GPUs: an ELF file that HIP loads, and what its kernels take."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from jax_enzyme.classes import dataclass
from jax_enzyme.codegen.gpu.architecture import target
from jax_enzyme.codegen.gpu.ptx import optimised
from jax_enzyme.errors import LoweringError
from jax_enzyme.frontends import toolchain
from jax_enzyme.ir.device import DeviceFunction

_START, _END, _KERNELS = ".amdgpu_metadata", ".end_amdgpu_metadata", "amdhsa.kernels:"


@dataclass(frozen=True)
class Resources:
    """What one kernel takes: registers per thread (`vector`, with `accumulators` among them) and per wavefront
    (`scalar`), those that did not fit, bytes of the stack (local arrays, spills), bytes of static LDS per block, and of
    parameters."""

    kernel: str
    vector: int
    accumulators: int
    scalar: int
    vector_spills: int
    scalar_spills: int
    stack: int
    shared: int
    parameters: int

    @property
    def spills(self) -> bool:
        """Whether registers of threads go to memory; scalars that do not fit go to vector registers first."""
        return bool(self.vector_spills)


@dataclass(frozen=True)
class Inspected:
    """A code object, its assembly, and what its kernels take, as the assembly states it for HIP."""

    code: bytes
    assembly: str
    kernels: tuple[Resources, ...]


def code_object(function: DeviceFunction, arch: str, *, dimensions: int = 0, fast_math: bool = False) -> bytes:
    """The linked code object of a device function for an architecture (`gfx90a`) and a batch of so many dimensions: one
    kernel per stage, `entry_name(stage)`."""
    machine, native = optimised(function, target(arch), dimensions, fast_math)
    return _linked(machine.emit_object(native), arch)


def inspected(function: DeviceFunction, arch: str, *, dimensions: int = 0, fast_math: bool = False) -> Inspected:
    """The same to be looked at."""
    machine, native = optimised(function, target(arch), dimensions, fast_math)
    assembly = machine.emit_assembly(native.clone())
    kernels = tuple(sorted(map(_resources, _kernels(assembly)), key=lambda r: r.kernel))
    return Inspected(_linked(machine.emit_object(native), arch), assembly, kernels)


def _linked(code: bytes, arch: str) -> bytes:
    """By the linker of the `ziglang` package, which the front ends need anyway."""
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder, "kernel.o"), Path(folder, "kernel.so")
        given.write_bytes(code)
        words = [*toolchain.zig().command, "ld.lld", "-shared", "--no-undefined", str(given), "-o", str(made)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            raise LoweringError(
                f"the linker rejects the code for {arch}:\n{(done.stderr or done.stdout).strip()}",
                remedy="this is a defect of jax_enzyme: please report it with the source of the kernel",
            )
        return made.read_bytes()


def _resources(fields: dict[str, str]) -> Resources:
    names = (
        ".vgpr_count", ".agpr_count", ".sgpr_count", ".vgpr_spill_count", ".sgpr_spill_count",
        ".private_segment_fixed_size", ".group_segment_fixed_size", ".kernarg_segment_size",
    )  # fmt: skip
    return Resources(fields[".name"], *(int(fields[name]) for name in names))


def _kernels(assembly: str) -> Iterator[dict[str, str]]:
    """The scalar fields of the list `amdhsa.kernels`: YAML, as LLVM writes it, one field a line; those of a kernel's
    arguments are further in."""
    _, _, rest = assembly.partition(_START)
    _, _, rest = rest.partition(_END)[0].partition(_KERNELS)
    fields: dict[str, str] = {}
    for line in rest.splitlines()[1:]:
        if not line.startswith("  "):
            break
        if line.startswith("  - ") and fields:
            yield fields
            fields = {}
        if line[4:5] == ".":
            name, _, value = line[4:].partition(":")
            fields[name] = value.strip()
    if fields:
        yield fields
