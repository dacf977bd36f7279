"""One address space for the engine, and NVVM's again for code generation.

    flat        @je.shared.tile = external global [16 x double]
                ptr @je.shared.tile
    restored    @tile = internal addrspace(3) global [16 x double] undef
                ptr addrspacecast (ptr addrspace(3) @tile to ptr)

The engine's analyses know one address space. What a variable is, is in its name meanwhile; shared memory is `external`,
since what one thread finds there is not what it left. All dynamic shared arrays are the same memory, so they become one
variable. Shadows of shared variables are made by the engine under names with the same prefix. Their memory is static
while the static limit allows, and behind the kernel's own dynamic memory otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.errors import DifferentiationError
from jax_enzyme.ir import types as T
from jax_enzyme.ir import values as V
from jax_enzyme.ir.builder import const_int
from jax_enzyme.ir.clone import Cloner, clone
from jax_enzyme.ir.module import GlobalVariable, Module
from jax_enzyme.signature.launch import MAX_SHARED, MAX_STATIC_SHARED, Shape
from jax_enzyme.transform.cuda.spaces import drop_spaces, is_dynamic

SHARED = "je.shared."
CONSTANT = "je.constant."
STATE = "je.state."
"""Variables that keep their values from launch to launch."""

_PREFIXES = {"addrspace(1)": STATE, "addrspace(3)": SHARED, "addrspace(4)": CONSTANT}
_SPACES = {STATE: 1, SHARED: 3, CONSTANT: 4}
_ALIGN = 16
_DYNAMIC = "je_dynamic"


def flatten(module: Module) -> Module:
    """A copy of a device function's module in one address space."""
    work = clone(module)
    for name in ("llvm.used", "llvm.compiler.used"):
        work.globals.pop(name, None)
    work.named_metadata = {k: v for k, v in work.named_metadata.items() if not k.startswith("nvvm")}
    for variable in list(work.globals.values()):
        prefix = next((_PREFIXES[w] for w in variable.prefix if w in _PREFIXES), "")
        if prefix:
            del work.globals[variable.name]
            variable.name = prefix + variable.name
            variable.is_constant |= prefix == CONSTANT
            work.globals[variable.name] = variable
    drop_spaces(work)
    _merge_dynamic(work)
    return work


def _merge_dynamic(module: Module) -> None:
    dynamic = [g for g in module.globals.values() if g.name.startswith(SHARED) and is_dynamic(g)]
    for other in dynamic[1:]:
        del module.globals[other.name]
    if len(dynamic) > 1:
        first = dynamic[0]
        first.suffix = (f"align {_ALIGN}",)
        merged: dict[V.Value, V.Constant] = dict.fromkeys(dynamic[1:], first)
        replace_globals(module, merged)


def restore(module: Module, shape: Shape) -> tuple[Module, Shape]:
    """The NVVM module of a flat one, and its launch. The shadows of `shape.shared` bytes of dynamic memory lie behind
    it.

    Raises DifferentiationError where no device has as much shared memory.
    """
    work = clone(module)
    layout = DataLayout(work)
    places: dict[V.Value, V.Constant] = {}
    moved: list[tuple[GlobalVariable, int]] = []
    static = 0
    for variable in list(work.globals.values()):
        prefix = next((p for p in _SPACES if variable.name.startswith(p)), None)
        if prefix is None:
            continue
        del work.globals[variable.name]
        variable.name = variable.name.removeprefix(prefix)
        if prefix == SHARED and variable.initializer is not None:
            size = shape.shared if is_dynamic(variable) else layout.alloc_size(variable.value_type)
            if is_dynamic(variable) or static + size > MAX_STATIC_SHARED:
                moved.append((variable, size))
                continue
        if prefix == SHARED and not is_dynamic(variable):
            static += layout.alloc_size(variable.value_type)
        _place(variable, prefix)
        work.globals[variable.name] = variable
        places[variable] = V.ConstantExpr(T.PTR, "addrspacecast", [variable])
    shared = _behind(work, moved, shape.shared, places)
    if static + shared > MAX_SHARED:
        raise DifferentiationError(
            f"the derivative needs {static + shared} bytes of shared memory per block, for the kernel's own and its "
            f"shadow; no device has more than {MAX_SHARED}",
            remedy="smaller tiles",
        )
    replace_globals(work, places)
    return work, replace(shape, shared=shared)


def _place(variable: GlobalVariable, prefix: str) -> None:
    space = f"addrspace({_SPACES[prefix]})"
    variable.type = T.PointerType(_SPACES[prefix])
    if prefix != SHARED:
        variable.prefix = (*variable.prefix, space)
    elif is_dynamic(variable):
        variable.prefix = ("external", space)
    else:
        variable.prefix, variable.initializer = ("internal", space), V.Undef(variable.value_type)
        given = (int(w.removeprefix("align ")) for w in variable.suffix if w.startswith("align "))
        # Sources access arrays of numbers as `float4`, which holds where they lie as the compiler would have them.
        variable.suffix = (f"align {max(_ALIGN, *given, 1)}",)


def _behind(
    module: Module, moved: list[tuple[GlobalVariable, int]], used: int, places: dict[V.Value, V.Constant]
) -> int:
    """Gives variables places in dynamic memory, behind the `used` bytes; how many bytes there are then."""
    if not moved:
        return used
    base = next((g for g in places if isinstance(g, GlobalVariable) and is_dynamic(g)), None)
    if base is None:
        type_ = T.ArrayType(0, T.I8)
        base = GlobalVariable(T.PointerType(3), type_, prefix=("external", "addrspace(3)"), name=_DYNAMIC)
        module.globals[base.name] = base
    base.suffix = (f"align {_ALIGN}",)
    start = V.ConstantExpr(T.PTR, "addrspacecast", [base])
    for variable, size in moved:
        offset = -(-used // _ALIGN) * _ALIGN
        places[variable] = V.ConstantExpr(T.PTR, "getelementptr", [start, const_int(T.I64, offset)], source_type=T.I8)
        used = offset + size
    return used


def replace_globals(module: Module, places: Mapping[V.Value, V.Constant]) -> None:
    """Puts constants in the place of globals, wherever a private module names them."""
    cloner = Cloner(dict(places))
    for variable in module.globals.values():
        if variable.initializer is not None:
            variable.initializer = cloner.constant(variable.initializer)
    for function in module.functions.values():
        for instruction in function.instructions():
            instruction.operands[:] = [
                cloner.constant(v) if isinstance(v, V.Constant) else v for v in instruction.operands
            ]
