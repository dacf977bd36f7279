"""From a device function to PTX.

link helpers -> entries -> one module for the architecture -> run time and libdevice -> -O3 -> NVPTX
"""

from __future__ import annotations

import llvmlite.binding as llvm

from jax_enzyme.codegen.copying import private_copy
from jax_enzyme.codegen.gpu.architecture import machine
from jax_enzyme.codegen.gpu.entry import add_entries, entry_name
from jax_enzyme.codegen.gpu.intrinsics import name_library_calls, refuse_unknown
from jax_enzyme.codegen.gpu.library import complete
from jax_enzyme.codegen.optimise import relax, retarget
from jax_enzyme.errors import LoweringError
from jax_enzyme.ir.device import DeviceFunction
from jax_enzyme.ir.inlining import mark_for_inlining
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.pass_managers import run_on_module
from jax_enzyme.ir.writer import to_text
from jax_enzyme.rules.helpers import link
from jax_enzyme.transform.device.registers import EXACT


def ptx(function: DeviceFunction, arch: str, *, dimensions: int = 0, fast_math: bool = False) -> str:
    """The PTX of a device function for an architecture (`sm_90`) and a batch of so many dimensions: one kernel per
    stage, `entry_name(stage)`."""
    target = machine(arch)
    module = _entry_module(function, dimensions)
    retarget(module, target)
    if fast_math:
        relax(module)
    native = _optimised(module, target, frozenset(entry_name(s) for s in range(len(function.symbols))))
    refuse_unknown(native)
    return target.emit_assembly(native)


def _entry_module(function: DeviceFunction, dimensions: int) -> Module:
    module = private_copy(function.module)
    link(module)
    module.named_metadata = {k: v for k, v in module.named_metadata.items() if not k.startswith("nvvm")}
    for name in ("llvm.used", "llvm.compiler.used"):
        module.globals.pop(name, None)
    name_library_calls(module)
    add_entries(module, function, dimensions)
    mark_for_inlining(module, [entry_name(s) for s in range(len(function.symbols))])
    for helper in module.functions.values():
        if helper.name.startswith(EXACT):  # long, and called in many places
            helper.attributes = ("nounwind", "noinline")
    return module


def _optimised(module: Module, target: llvm.TargetMachine, keep: frozenset[str]) -> llvm.ModuleRef:
    context = llvm.create_context()
    try:
        native = llvm.parse_assembly(to_text(module), context)
        complete(native, context, target)
        for function in native.functions:
            if not function.is_declaration and function.name not in keep:
                function.linkage = llvm.Linkage.internal
        native.verify()
    except RuntimeError as error:
        raise LoweringError(
            f"the code generator made device code that LLVM rejects: {error}",
            remedy="this is a defect of jax_enzyme: please report it with the source of the kernel",
        ) from error
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.slp_vectorization = True
    options.loop_unrolling = True
    builder = llvm.create_pass_builder(target, options)
    run_on_module(builder.getModulePassManager(), native, builder)
    return native
