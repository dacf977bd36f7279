"""The machine that code is made for: triple, processor and features, and the target machines that LLVM uses for it."""

from __future__ import annotations

import threading
from dataclasses import replace
from functools import cache

import llvmlite
import llvmlite.binding as llvm

from jax_enzyme.classes import dataclass

_start = threading.Lock()
_USUAL = "x86-64-v3"
"""With AVX2, without AVX-512."""
_FLUSHING = frozenset({"avx512bf16", "avxneconvert"})
"""Features whose instructions round to `bfloat` with subnormal numbers taken for zero, which is no fptrunc."""


@dataclass(frozen=True)
class Host:
    """What the code generator has to know of this machine; all of it goes into the keys of cached objects."""

    triple: str
    cpu: str
    features: str
    compiler: str

    @property
    def is_elf(self) -> bool:
        return "linux" in self.triple or "bsd" in self.triple

    @property
    def fingerprint(self) -> str:
        return "\n".join((self.triple, self.cpu, self.features, self.compiler))

    def has(self, feature: str) -> bool:
        return f"+{feature}" in self.features.split(",")


@cache
def host() -> Host:
    """This machine."""
    _start_llvm()
    version = ".".join(map(str, llvm.llvm_version_info))
    return Host(
        triple=llvm.get_process_triple(),
        cpu=llvm.get_host_cpu_name(),
        features=_features(),
        compiler=f"llvmlite {llvmlite.__version__}, LLVM {version}",
    )


def _features() -> str:
    found = llvm.get_host_cpu_features()
    found.update(dict.fromkeys(_FLUSHING & found.keys(), False))
    return found.flatten()


@cache
def _start_llvm() -> None:
    with _start:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        llvm.initialize_native_asmparser()  # inline assembly: without it LLVM ends the process


@cache
def usual_host() -> Host:
    """What code that is optimised again is made for: the usual processor of this kind. LLVM asks for features as early
    as where it turns branches into choices; what the engine finds in a kernel is the same on all of them."""
    this = host()
    return replace(this, cpu=_USUAL, features="") if this.triple.startswith("x86_64") else this


def target_machine(reloc: str = "pic", this: Host | None = None) -> llvm.TargetMachine:
    """A new target machine for this host, or for another: position-independent code in the small model, as JITLink
    links it best."""
    this = this or host()
    target = llvm.Target.from_triple(this.triple)
    return target.create_target_machine(
        cpu=this.cpu, features=this.features, opt=3, reloc=reloc, codemodel="small", jit=True
    )
