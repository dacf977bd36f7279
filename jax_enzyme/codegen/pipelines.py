"""LLVM's default pipelines: short modules go through llvmlite in this process, long ones through `ziglang`'s clang.

Both are LLVM of one version, but llvmlite's has its assertions on. Among much else, the vectoriser has the whole
function verified for each loop, so that its time grows with the square of their number. To start a process takes 20 ms.
The object is llvmlite's to make in both cases.
"""

from __future__ import annotations

import subprocess
from functools import cache

import llvmlite.binding as llvm

from jax_enzyme.classes import dataclass
from jax_enzyme.codegen.host import Host, host, target_machine, usual_host
from jax_enzyme.errors import CompileError, LoweringError
from jax_enzyme.frontends.toolchain import zig
from jax_enzyme.ir.native import native_from_bitcode
from jax_enzyme.ir.pass_managers import NO_CHECKSUMS, Setting, drop_dead_stores, run_on_module
from jax_enzyme.working import LOG

LONG = 12_000
"""Bytes of bitcode from which on a module is long: some 1,000 instructions."""
_SHORT_LOOPS = (
    Setting("vectorizer-min-trip-count", "4", usual="16"),
    Setting("epilogue-vectorization-minimum-VF", "4", usual="16"),
)
"""Of a loop of fewer than sixteen iterations, whose number no vector divides, LLVM would make vectors with a mask in
every iteration. A processor without registers for masks takes some ten cycles for a masked store (AMD's, with AVX2),
and the forward sweep stores all that it keeps. So fourteen iterations are three vectors of four, and one of two."""
_LOOPS_STAY = (Setting("unroll-full-max-count", "16", usual="4294967295"),)
"""LLVM writes out loops of up to some hundred instructions in all before it would make vectors of them. Of one over the
lanes of a warp that leaves a block of thousands, in which it has to find the vectors again, and the time that the code
generator's scheduler takes grows with the square of a block."""
_NEAR_CHECKS = (Setting("hoist-runtime-checks", "false", usual="true"),)
"""Where LLVM cannot tell that two pieces of memory are apart in a loop, it compares addresses first. For all iterations
of the loop around at once, if it can: then all that these touch has to be apart. To the adjoints of two rows of one
array, `u[i]` and `u[i + 1 < n ? i + 1 : 0]`, a sweep adds in every iteration, and its vectors would never run."""
_LOADS_STAY = (Setting("instcombine-code-sinking", "false", usual="true"),)
"""LLVM moves what one arm of a branch alone reads into that arm, loads too. In a loop of vectors such a load is made
under a mask; where numbers lie apart, or in one place for all iterations, it becomes a gather."""
STORES_STAY = (Setting("dse-memoryssa-scanlimit", "0", usual="150"),)
"""Within a pipeline, LLVM takes away stores that are read: what LICM has asked of memory SSA is still known when dead
stores are looked for, if no pass in between has changed anything, as in code that was optimised before. There an answer
is wrong where a load comes to another object iteration by iteration (`analysis.other_objects`). By itself, that pass
asks for what it needs, and is right."""
_TOLD = "-Rpass=loop-unroll"
"""Clang is to tell of every loop that it unrolls, and names the option where it does."""


@dataclass(frozen=True)
class Pipeline:
    """What clang does at one level of optimisation, with or without what multiplies the code. What vectors are made in
    is for this processor; all else is optimised again later, and comes out the same on every one."""

    level: int
    vectorise: bool = False
    slp: bool = False
    unroll: bool = False
    near_checks: bool = False
    """Whether what is compared at run time to run a loop in vectors is that loop's alone, not of the one around."""
    loads_stay: bool = False
    """Whether what is in front of a branch stays there, though one arm alone reads it."""
    stores_stay: bool = False
    """Whether stores that nothing reads stay until the pipeline is through."""
    relocation: str = "pic"

    def builder(self) -> llvm.PassBuilder:
        """For this pipeline and for single passes, in this process."""
        options = llvm.create_pipeline_tuning_options(speed_level=self.level)
        options.loop_vectorization = self.vectorise
        options.slp_vectorization = self.slp
        options.loop_interleaving = options.loop_unrolling = self.unroll
        return llvm.create_pass_builder(target_machine(self.relocation, self._host), options)

    def run(self, native: llvm.ModuleRef, builder: llvm.PassBuilder) -> llvm.ModuleRef:
        """The module after the pipeline: the same one, changed, or another."""
        if self.is_for_clang(native, bitcode := native.as_bitcode()):
            native = native_from_bitcode(self.through_clang(native, bitcode)[0])
        else:
            run_on_module(builder.getModulePassManager(), native, builder, self.settings)
        if self.stores_stay:
            drop_dead_stores(native, builder)
        return native

    def is_for_clang(self, native: llvm.ModuleRef, bitcode: bytes) -> bool:
        """Whether clang is to optimise a module, in a process of its own, which has this bitcode."""
        return len(bitcode) >= LONG and _is_of_this_machine(native) and clang_of_the_same_version()

    def through_clang(self, native: llvm.ModuleRef, bitcode: bytes) -> tuple[bytes, bool]:
        """The bitcode after the pipeline, of a module for the machine of `native`; whether a loop was unrolled."""
        words = ("-emit-llvm", "-fno-discard-value-names", _TOLD, f"--target={native.triple}", *self._words())
        done = run_clang(bitcode, words, self._host)
        if done.returncode:
            raise LoweringError(
                f"LLVM could not optimise the code of a kernel: {done.stderr.decode(errors='replace')[-2000:]}",
                remedy="this is a defect of jax_enzyme, or of LLVM: please report it with the source of the kernel",
            )
        return done.stdout, _TOLD.encode() in done.stderr

    @property
    def _host(self) -> Host:
        return host() if self.vectorise else usual_host()

    def _words(self) -> tuple[str, ...]:
        """The same for clang's driver."""
        chosen = {"vectorize": self.vectorise, "slp-vectorize": self.slp, "unroll-loops": self.unroll}
        switches = (f"-f{'' if on else 'no-'}{name}" for name, on in chosen.items())
        place = ("-Xclang", "-mrelocation-model", "-Xclang", self.relocation)
        told = (
            word
            for setting in (*NO_CHECKSUMS, *self.settings)
            for word in ("-mllvm", f"-{setting.name}={setting.value}")
        )
        return (f"-O{self.level}", *switches, *place, *told)

    @property
    def settings(self) -> tuple[Setting, ...]:
        """LLVM's options that are not as usual."""
        of_vectors = (*_SHORT_LOOPS, *_LOOPS_STAY) if self.vectorise else ()
        near = _NEAR_CHECKS if self.near_checks else ()
        loads, stores = _LOADS_STAY if self.loads_stay else (), STORES_STAY if self.stores_stay else ()
        return (*of_vectors, *near, *loads, *stores)


def long_compiler() -> str:
    """What long modules go through, for the keys of what is cached; empty where that is llvmlite."""
    try:
        return zig().version
    except CompileError:
        return ""


@cache
def clang_of_the_same_version() -> bool:
    """Whether there is a clang whose LLVM is of llvmlite's version, so that each reads what the other writes."""
    try:
        words = [*zig().command, "clang", "--version"]
        answer = subprocess.run(words, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL).stdout
    except (CompileError, OSError, subprocess.CalledProcessError) as error:
        LOG.info("long modules are optimised in this process: %s", error)
        return False
    _, _, version = answer.partition("clang version ")
    return version.startswith(f"{llvm.llvm_version_info[0]}.")


@cache
def _layout() -> str:
    return str(target_machine().target_data)


def _is_of_this_machine(native: llvm.ModuleRef) -> bool:
    """Whether clang takes the module as it is: where its data layout is not that of the processor it changes it."""
    return native.triple.startswith(host().triple.partition("-")[0]) and native.data_layout == _layout()


def run_clang(code: bytes, words: tuple[str, ...], this: Host) -> subprocess.CompletedProcess[bytes]:
    """What clang makes of a module, for a processor: LLVM's text or bitcode."""
    settings = ["-target-cpu", this.cpu]
    for feature in filter(None, this.features.split(",")):
        settings += ["-target-feature", feature]
    chosen = (word for setting in settings for word in ("-Xclang", setting))
    command = [*zig().command, "clang", "-x", "ir", "-c", "-w", *words, *chosen, "-", "-o", "-"]
    return subprocess.run(command, input=code, capture_output=True, check=False)
