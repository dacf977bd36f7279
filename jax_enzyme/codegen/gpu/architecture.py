"""The GPUs that there is code for, and LLVM's machines for them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

import llvmlite.binding as llvm

from jax_enzyme.errors import LoweringError

TRIPLE = "nvptx64-nvidia-cuda"

PTX_VERSIONS: Mapping[int, int] = MappingProxyType(
    {80: 70, 86: 71, 87: 74, 89: 78, 90: 78, 100: 86, 103: 88, 110: 90, 120: 87, 121: 88}
)
"""Compute capability (80 is 8.0) to the first PTX version that knows it, so that the oldest driver reads the PTX."""

OLDEST = min(PTX_VERSIONS)


def architecture(capability: int) -> str:
    """What to compile for on a device of this compute capability (major * 10 + minor): it, or the newest one before it
    that LLVM knows, as drivers translate PTX of older architectures."""
    known = [c for c in PTX_VERSIONS if c <= capability]
    if not known:
        raise LoweringError(
            f"this GPU has compute capability {capability // 10}.{capability % 10}",
            remedy=f"{OLDEST // 10}.{OLDEST % 10} is the oldest that there is code for; run on the CPU: "
            'jax.default_device(jax.devices("cpu")[0])',
        )
    return f"sm_{max(known)}"


def machine(arch: str) -> llvm.TargetMachine:
    """A new target machine for an architecture such as `sm_90`."""
    number = arch.removeprefix("sm_")
    version = PTX_VERSIONS.get(int(number)) if number.isdecimal() else None
    if version is None:
        raise LoweringError(
            f"there is no code for {arch}",
            remedy=f"architectures: {', '.join(f'sm_{c}' for c in PTX_VERSIONS)}",
        )
    _start()
    return llvm.Target.from_triple(TRIPLE).create_target_machine(cpu=arch, features=f"+ptx{version}", opt=3)


@cache
def _start() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
