"""Which of LLVM's intrinsics devices have instructions for, and what the others are called in the library.

LLVM ends the process over an intrinsic that it cannot select: so what is left at the end is looked at by name.
"""

from __future__ import annotations

import llvmlite.binding as llvm

from jax_enzyme.codegen.gpu.architecture import Target
from jax_enzyme.errors import LoweringError
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function, Module

_IN_LIBRARY = frozenset(
    "sin cos tan asin acos atan sinh cosh tanh atan2 exp exp2 exp10 log log2 log10 pow powi ldexp frexp modf "
    "lround llround lrint llrint round".split()
)
_INSTRUCTIONS = {"llvm.fptosi.sat.i32.f32": "llvm.nvvm.f2i.rz", "llvm.fptoui.sat.i32.f32": "llvm.nvvm.f2ui.rz"}
"""Of NVIDIA's devices: LLVM does not know that they do just this, and compares with the ends of the range."""
_SELECTED = frozenset(
    "sqrt fabs floor ceil trunc rint nearbyint roundeven minnum maxnum minimumnum maximumnum copysign fma fmuladd smin "
    "smax umin umax abs ctpop ctlz cttz bswap bitreverse fshl fshr sadd uadd ssub usub smul umul memcpy memset memmove "
    "lifetime assume trap debugtrap expect stacksave stackrestore experimental.noalias.scope.decl is.fpclass ucmp scmp "
    "vector.reduce convert canonicalize load masked invariant sideeffect donothing prefetch threadlocal objectsize "
    "launder strip ssa.copy freeze fptosi fptoui".split()
)
_DEVICE = (
    "read.ptx.sreg.", "barrier", "bar.warp.sync", "shfl.sync.", "vote.", "membar.", "fence.", "redux.", "match.",
    "activemask", "nanosleep", "prmt", "mulhi.", "mul24.", "sad.", "floor.", "ceil.", "trunc.", "round.", "fabs.",
    "fmin.", "fmax.", "add.", "mul.", "div.", "rcp.", "sqrt.", "rsqrt.", "fma.", "ex2.", "lg2.", "sin.", "cos.",
    "tanh.", "saturate.", "lohi.", "d2i.", "i2d.", "ui2d.", "d2ui.", "f2i.", "f2ui.", "i2f.", "ui2f.", "d2ll.",
    "d2ull.", "ll2d.", "ull2d.", "f2ll.", "f2ull.", "ll2f.", "ull2f.", "d2f.", "f2h.", "fns", "bitcast.", "ldg.",
    "ldu.", "atomic.", "reflect", "exit", "idp", "neg.", "isspacep.", "ptr.", "mapa",
)  # fmt: skip
_OF_AMD = (
    "amdgcn.", "exp2.f32", "log2.f32", "exp.f32", "log.f32", "exp10.f32", "log10.f32", "ldexp.", "frexp.", "round.",
    "lrint.", "llrint.", "lround.", "llround.",
)  # fmt: skip
_WHOSE = {"NVIDIA": "GPUs", "AMD": "GPUs of AMD's"}
_OF_THE_DRIVER = frozenset(("vprintf", "malloc", "free", "__assertfail"))


def name_library_calls(module: Module, target: Target) -> None:
    """Gives intrinsics that have no instruction the names of C's library, in place: `llvm.exp.f64` is `exp`; those that
    LLVM has no instruction for, but the device, the names of these."""
    instructions = _INSTRUCTIONS if target.vendor == "NVIDIA" else {}
    for name, function in list(module.functions.items()):
        found = instructions.get(name) or _library_name(name, function)
        if found is None:
            continue
        del module.functions[name]
        present = module.functions.get(found)
        if present is None:
            function.name = found
            module.functions[found] = function
            function.attributes = ("nounwind",)
        else:
            for user in module.functions.values():
                for instruction in user.instructions():
                    instruction.operands = [present if o is function else o for o in instruction.operands]


def _library_name(name: str, function: Function) -> str | None:
    stem = name.removeprefix("llvm.").split(".")[0]
    if not name.startswith("llvm.") or stem not in _IN_LIBRARY:
        return None
    first = function.function_type.parameters[0]
    if first not in (T.FLOAT, T.DOUBLE) or isinstance(function.function_type.result, T.StructType):
        return None
    return stem + ("f" if first == T.FLOAT else "")


def refuse_unknown(native: llvm.ModuleRef, target: Target) -> None:
    """LoweringError for what the device has no code for."""
    unknown: list[str] = []
    for function in native.functions:
        if function.is_declaration and not _known(function.name, target):
            unknown.append(_in_the_source(function.name))
    if "__je_grid_sync" in unknown:
        raise LoweringError(
            "launches on GPUs here are not cooperative: `grid.sync()` has nothing to wait for",
            remedy="split the kernel where the blocks wait, or run it on the CPU",
        )
    if unknown:
        listed = ", ".join(f"`{n}`" for n in sorted(unknown))
        raise LoweringError(
            f"the kernel calls {listed}, which {_WHOSE[target.vendor]} have no code for",
            remedy="define it in the source as a `__device__` function; one of the host runs on the CPU only",
        )


def _in_the_source(name: str) -> str:
    return f"llvm.{name}" if name.startswith("nvvm.") else name


def _known(name: str, target: Target) -> bool:
    if not name.startswith("llvm."):
        return target.vendor == "NVIDIA" and name in _OF_THE_DRIVER
    stem = name.removeprefix("llvm.")
    if target.vendor == "AMD" and stem.startswith(_OF_AMD):
        return True
    if stem.startswith("nvvm."):
        return target.vendor == "NVIDIA" and stem.removeprefix("nvvm.").startswith(_DEVICE)
    return stem.split(".")[0] in _SELECTED or any(stem.startswith(s) for s in _SELECTED if "." in s)
