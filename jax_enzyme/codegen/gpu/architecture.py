"""The GPUs that there is code for, and LLVM's machines for them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from math import prod
from types import MappingProxyType
from typing import Literal

import llvmlite.binding as llvm

from jax_enzyme.classes import dataclass
from jax_enzyme.errors import LoweringError

PTX_VERSIONS: Mapping[int, int] = MappingProxyType(
    {80: 70, 86: 71, 87: 74, 89: 78, 90: 78, 100: 86, 103: 88, 110: 90, 120: 87, 121: 88}
)
"""Compute capability (80 is 8.0) to the first PTX version that knows it, so that the oldest driver reads the PTX."""

OLDEST = min(PTX_VERSIONS)
AMD = ("gfx90a", "gfx942")
"""MI200 and MI300: wavefronts of 64 threads."""


@dataclass(frozen=True)
class Target:
    """What code generation has to know of a device. The engine knows none of it: device functions are of one dialect,
    NVVM's, for all devices. `buffers` is the address space of what a kernel is given, `locals` that of local variables,
    `convention` the calling convention of kernels, and `ptx` the version of PTX."""

    vendor: Literal["NVIDIA", "AMD"]
    arch: str
    triple: str
    convention: str
    buffers: int
    locals: int
    ptx: int = 0

    def machine(self) -> llvm.TargetMachine:
        """A new target machine."""
        _start()
        found = llvm.Target.from_triple(self.triple)
        features = f"+ptx{self.ptx}" if self.ptx else ""
        return found.create_target_machine(cpu=self.arch, features=features, opt=3, reloc="pic")

    def launch_words(self, block: tuple[int, int, int]) -> tuple[str, ...]:
        """The attributes by which a kernel is for blocks of one shape."""
        if self.vendor == "NVIDIA":
            return (f'"nvvm.reqntid"="{",".join(map(str, block))}"',)
        threads = prod(block)
        return f'"amdgpu-flat-work-group-size"="{threads},{threads}"', '"uniform-work-group-size"="true"'


def target(arch: str) -> Target:
    """What there is to know of an architecture such as `sm_90` or `gfx90a`. LoweringError where there is no code."""
    if arch in AMD:
        return Target("AMD", arch, "amdgcn-amd-amdhsa", "amdgpu_kernel", buffers=1, locals=5)
    number = arch.removeprefix("sm_")
    version = PTX_VERSIONS.get(int(number)) if number.isdecimal() else None
    if version is None:
        listed = ", ".join((*(f"sm_{c}" for c in PTX_VERSIONS), *AMD))
        raise LoweringError(f"there is no code for {arch}", remedy=f"architectures: {listed}")
    return Target("NVIDIA", arch, "nvptx64-nvidia-cuda", "ptx_kernel", buffers=0, locals=0, ptx=version)


def architecture(device: str) -> str:
    """What to compile for on a device. On one of NVIDIA's (`sm_87`: compute capability 8.7) it, or the newest one that
    LLVM knows before it, as drivers translate PTX of older architectures; on one of AMD's (`gfx90a:sramecc+:xnack-`)
    its own, whatever its settings. LoweringError where there is none."""
    on_cpu = 'run on the CPU: jax.default_device(jax.devices("cpu")[0])'
    if not device.startswith("sm_"):
        own = device.partition(":")[0]
        if own not in AMD:
            raise LoweringError(
                f"there is no code for this GPU, {own or 'which does not say what it is'}",
                remedy=f"of AMD's there is code for {' and '.join(AMD)}; {on_cpu}",
            )
        return own
    capability = int(device.removeprefix("sm_"))
    known = [c for c in PTX_VERSIONS if c <= capability]
    if not known:
        raise LoweringError(
            f"this GPU has compute capability {capability // 10}.{capability % 10}",
            remedy=f"{OLDEST // 10}.{OLDEST % 10} is the oldest that there is code for; {on_cpu}",
        )
    return f"sm_{max(known)}"


@cache
def _start() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
