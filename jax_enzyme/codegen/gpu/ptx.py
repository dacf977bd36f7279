"""From a device function to code of a device.

link helpers -> entries -> additions of vectors -> one module for the architecture -> run time and library -> -O3
-> PTX, or AMD's objects
"""

from __future__ import annotations

import llvmlite.binding as llvm

from jax_enzyme.analysis.other_objects import leads_elsewhere
from jax_enzyme.codegen.gpu import amd
from jax_enzyme.codegen.gpu.architecture import Target, target
from jax_enzyme.codegen.gpu.entry import add_entries, entry_name
from jax_enzyme.codegen.gpu.intrinsics import name_library_calls, refuse_unknown
from jax_enzyme.codegen.gpu.library import complete
from jax_enzyme.codegen.gpu.live_registers import with_room
from jax_enzyme.codegen.gpu.vector_adds import add_vectors
from jax_enzyme.codegen.optimise import relax, retarget
from jax_enzyme.codegen.pipelines import STORES_STAY
from jax_enzyme.errors import LoweringError
from jax_enzyme.ir.clone import clone_without_debug
from jax_enzyme.ir.device import DeviceFunction
from jax_enzyme.ir.inlining import mark_for_inlining
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.native import native_from_text
from jax_enzyme.ir.pass_managers import drop_dead_stores, run_on_module
from jax_enzyme.ir.writer import to_text
from jax_enzyme.rules.helpers import link
from jax_enzyme.transform.device.registers import EXACT


def ptx(function: DeviceFunction, arch: str, *, dimensions: int = 0, fast_math: bool = False) -> str:
    """The assembly of a device function for an architecture and a batch of so many dimensions: one kernel per stage,
    `entry_name(stage)`. For NVIDIA's (`sm_90`) that is PTX, and what a driver takes."""
    machine, native = optimised(function, target(arch), dimensions, fast_math)
    return with_room(machine.emit_assembly(native))


def optimised(
    function: DeviceFunction, device: Target, dimensions: int, fast_math: bool
) -> tuple[llvm.TargetMachine, llvm.ModuleRef]:
    """The module of these kernels, optimised, and what makes code of it."""
    module = _entry_module(function, dimensions, device)
    device = add_vectors(module, device)
    machine = device.machine()
    retarget(module, machine)
    if fast_math:
        relax(module)
    native = _optimised(module, device, machine, frozenset(entry_name(s) for s in range(len(function.symbols))))
    refuse_unknown(native, device)
    return machine, native


def _entry_module(function: DeviceFunction, dimensions: int, device: Target) -> Module:
    if device.vendor == "AMD":
        amd.refuse_assembly(function.module)
    module = clone_without_debug(function.module)
    link(module)
    module.named_metadata = {k: v for k, v in module.named_metadata.items() if not k.startswith("nvvm")}
    for name in ("llvm.used", "llvm.compiler.used"):
        module.globals.pop(name, None)
    name_library_calls(module, device)
    if device.vendor == "AMD":
        amd.one_form(module, function.shape)
    add_entries(module, function, dimensions, device)
    mark_for_inlining(module, [entry_name(s) for s in range(len(function.symbols))])
    for helper in module.functions.values():
        if helper.name.startswith(EXACT):  # long, and called in many places
            helper.attributes = ("nounwind", "noinline")
    if device.vendor == "AMD":
        amd.translate(module)
    return module


def _optimised(module: Module, device: Target, machine: llvm.TargetMachine, keep: frozenset[str]) -> llvm.ModuleRef:
    context = llvm.create_context()
    try:
        native = native_from_text(to_text(module), context)
        complete(native, context, device)
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
    builder = llvm.create_pass_builder(machine, options)
    elsewhere = leads_elsewhere(module)
    run_on_module(builder.getModulePassManager(), native, builder, STORES_STAY if elsewhere else ())
    if elsewhere:
        drop_dead_stores(native, builder)
    return native
