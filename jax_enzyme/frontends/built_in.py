"""Functions of C's library for which clang puts its own: a call of `sin` becomes `llvm.sin`, whoever defines `sin`.

Where a source defines such a function itself, a linker would call that one, and so do kernels: what it is then compiled
with has no built-in function of that name. `sqrt`, `fabs`, `copysign` and `abs` are instructions, in every compiler.
"""

from __future__ import annotations

_SAME = (
    "sin cos tan asin acos atan atan2 sinh cosh tanh exp exp2 log log2 log10 pow floor ceil trunc rint nearbyint round "
    "roundeven fma lrint llrint lround llround modf"
).split()
_INTRINSICS = {
    **{name: name for name in _SAME},
    "maxnum": "fmax",
    "minnum": "fmin",
    "maximumnum": "fmaximum_num",
    "minimumnum": "fminimum_num",
}
"""LLVM's functions, less what follows for their types, and C's."""


def put_for(ir: str) -> frozenset[str]:
    """The functions for which a module may have clang's own."""
    mentioned = {rest.partition(".")[0] for rest in ir.split("@llvm.")[1:]}
    found = [_INTRINSICS[name] for name in mentioned if name in _INTRINSICS] + ["fmod"] * (" frem " in ir)
    return frozenset(name + suffix for name in found for suffix in ("", "f", "l"))


def flags_without(names: frozenset[str]) -> tuple[str, ...]:
    """What has clang call functions by their names."""
    return tuple(f"-fno-builtin-{name}" for name in sorted(names))
