"""Completes a module with functions of a library: LLVM's linker, over texts."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import llvmlite.binding as llvm

from jax_enzyme.ir.keywords import LINKAGE
from jax_enzyme.ir.module import Function, GlobalVariable, Module
from jax_enzyme.ir.pass_managers import run_on_module
from jax_enzyme.ir.writer import has_debug_info, to_text

# Nothing stands in another module's way, or is looked for in one.
_OWN = frozenset("private internal available_externally linkonce linkonce_odr appending common".split())


def linkable(library: Module) -> str:
    """A private module as `link` takes libraries: without target, flags and debug information, and what others see of
    it is there only where something refers to it, as LLVM takes this linkage."""
    for symbol in (*library.functions.values(), *library.globals.values()):
        defined = bool(symbol.blocks) if isinstance(symbol, Function) else symbol.initializer is not None
        if defined and _OWN.isdisjoint(symbol.prefix):
            symbol.prefix = _optional(symbol)
    traced = has_debug_info(library)
    library.triple = library.data_layout = library.identifier = ""
    library.named_metadata = {}
    return to_text(library, debug=not traced)


def _optional(symbol: Function | GlobalVariable) -> tuple[str, ...]:
    return ("linkonce_odr", *(word for word in symbol.prefix if word not in LINKAGE or word in ("hidden", "protected")))


def link(program: str, libraries: Sequence[str]) -> str:
    """The program, and of each library the functions that it calls, directly or not, and does not define. RuntimeError
    where LLVM finds that the two do not go together."""
    context = llvm.create_context()
    module = llvm.parse_assembly(program, context)
    target = f'target datalayout = "{module.data_layout}"\ntarget triple = "{module.triple}"\n'
    for library in libraries:
        module.link_in(llvm.parse_assembly(target + library, context))
    return str(module)


def reachable(program: str, roots: Collection[str]) -> str:
    """The program without the functions and variables that the roots do not need."""
    module = llvm.parse_assembly(program, llvm.create_context())
    for function in module.functions:
        if not function.is_declaration and function.name not in roots and function.linkage is llvm.Linkage.external:
            function.linkage = llvm.Linkage.linkonce_odr
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_strip_dead_prototype_pass()
    passes.add_strip_dead_debug_info_pass()
    llvm.initialize_all_targets()
    machine = llvm.Target.from_triple(module.triple or llvm.get_default_triple()).create_target_machine()
    run_on_module(passes, module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))
    return str(module)
