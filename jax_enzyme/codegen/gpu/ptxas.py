"""NVIDIA's assembler, where it is installed: the driver assembles PTX itself, so this is for looking and for tests."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from jax_enzyme.classes import dataclass
from jax_enzyme.codegen.gpu.library import wheels
from jax_enzyme.errors import LoweringError

_FUNCTION = re.compile(r"Compiling entry function '(\w+)'")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")


@dataclass(frozen=True)
class Resources:
    """What one kernel takes: registers per thread, bytes that do not fit into them, bytes of the stack (local arrays,
    spills), bytes of static shared memory per block."""

    kernel: str
    registers: int
    spill_stores: int
    spill_loads: int
    stack: int
    shared: int

    @property
    def spills(self) -> bool:
        return bool(self.spill_stores or self.spill_loads)


_LIMITS = {80: (64, 164), 86: (48, 100), 87: (48, 164), 89: (48, 100), 90: (64, 228), 120: (48, 100), 121: (48, 100)}
"""By compute capability, warps of a multiprocessor and kilobytes of its shared memory (CUDA's programming guide)."""


def occupancy(resources: Resources, arch: str, threads: int, dynamic: int = 0) -> float:
    """The part of a multiprocessor's warps that blocks of so many threads fill, by registers (handed out to warps by
    256) and shared memory (`dynamic` bytes beside the static ones, and one kilobyte of the system's for each block)."""
    capability = int(arch.removeprefix("sm_"))
    most, kilobytes = _LIMITS.get(capability, (64, 228))
    warps = -(-threads // 32)
    of_warp = -(-max(resources.registers, 1) * 32 // 256) * 256
    of_block = -(-(resources.shared + dynamic + 1024) // 128) * 128
    blocks = min(65536 // of_warp // warps, most // warps, kilobytes * 1024 // of_block, 16 if most < 64 else 32)
    return blocks * warps / most


def find_ptxas() -> Path | None:
    """The assembler on PATH, or in the wheel `nvidia-cuda-nvcc`."""
    found = shutil.which("ptxas")
    if found is not None:
        return Path(found)
    return next((p for root in wheels() for p in sorted(root.glob("*/bin/ptxas"), reverse=True)), None)


def assemble(ptx: str, arch: str) -> tuple[Resources, ...]:
    """The resources of all kernels, stage by stage. LoweringError where ptxas rejects the PTX, or is missing."""
    program = find_ptxas()
    if program is None:
        raise LoweringError("ptxas is not installed", remedy="pip install nvidia-cuda-nvcc")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "kernel.ptx")
        source.write_text(ptx)
        words = [str(program), "-v", f"-arch={arch}", str(source), "-o", str(Path(folder, "kernel.cubin"))]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LoweringError(
            f"ptxas rejects the code for {arch}:\n{(done.stderr or done.stdout).strip()}",
            remedy="this is a defect of jax_enzyme: please report it with the source of the kernel",
        )
    return tuple(sorted(_resources(done.stderr + done.stdout), key=lambda r: r.kernel))


def _resources(log: str) -> list[Resources]:
    pieces = _FUNCTION.split(log)[1:]
    return [_one(name, text) for name, text in zip(pieces[::2], pieces[1::2], strict=True)]


def _one(name: str, text: str) -> Resources:
    stack, stores, loads = (int(n) for n in _numbers(_STACK, text, 3))
    return Resources(name, _numbers(_USED, text, 1)[0], stores, loads, stack, _numbers(_SHARED, text, 1)[0])


def _numbers(pattern: re.Pattern[str], text: str, count: int) -> tuple[int, ...]:
    found = pattern.search(text)
    return tuple(map(int, found.groups())) if found else (0,) * count
