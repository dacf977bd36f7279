"""Address spaces go: on a CPU there is one.

before    @part = external addrspace(3) global [0 x double]          ptr addrspacecast (ptr addrspace(3) @part to ptr)
after     @part = external global [0 x double]                       ptr @part
"""

from __future__ import annotations

import re

from jax_enzyme.ir import types as T
from jax_enzyme.ir import values as V
from jax_enzyme.ir.module import Function, GlobalVariable, Module
from jax_enzyme.transform.private_globals import globals_in
from jax_enzyme.transform.retyping import Retyping, retype
from jax_enzyme.transform.rewriting import replace_values, substitute

SHARED = "addrspace(3)"
_SUFFIX = re.compile(r"\.p[1-9]\d*(?=\.|$)")


def drop_spaces(module: Module) -> dict[str, GlobalVariable]:
    """Changes a private module; returns the variables of shared memory, which are external now: what one thread finds
    there is not what it left."""
    shared: dict[str, GlobalVariable] = {}
    for name, variable in module.globals.items():
        if SHARED in variable.prefix:
            shared[name] = variable
            variable.initializer = None
            variable.prefix = ("external",)
            variable.suffix = tuple(w for w in variable.suffix if not w.startswith("comdat"))
        variable.prefix = tuple(w for w in variable.prefix if not w.startswith(("addrspace", "externally_")))
    retype(module, Retyping(lambda t: T.PTR if isinstance(t, T.PointerType) else None))
    for function in module.functions.values():
        substitute(function, {i: i.operands[0] for i in function.instructions() if i.opcode == "addrspacecast"})
    _merge_intrinsics(module)
    return shared


def _merge_intrinsics(module: Module) -> None:
    """`llvm.memcpy.p3.p0.i64` and its like are all called the same now."""
    renamed: dict[str, Function] = {}
    replaced: dict[V.Value, V.Value] = {}
    for function in module.functions.values():
        if function.name.startswith("llvm."):
            function.name = _SUFFIX.sub(".p0", function.name)
        first = renamed.setdefault(function.name, function)
        if first is not function:
            replaced[function] = first
    module.functions = renamed
    if replaced:
        for function in module.functions.values():
            replace_values(function, replaced)


def is_dynamic(variable: GlobalVariable) -> bool:
    """Whether a shared variable has the size that the launch gives it."""
    return isinstance(variable.value_type, T.ArrayType) and variable.value_type.count == 0


def uses(function: Function, variable: GlobalVariable) -> bool:
    """Whether a function does anything with a variable."""
    return any(variable in globals_in(o) for i in function.instructions() for o in i.operands)
