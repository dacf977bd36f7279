"""Completes a module with functions of a library: LLVM's linker, over texts."""

from __future__ import annotations

import re
from collections.abc import Sequence

import llvmlite.binding as llvm

_TARGET = re.compile(r'^target (?:datalayout|triple) = "[^"]*"\n', re.M)
_NAMED_METADATA = re.compile(r"^!llvm\.(?:module\.flags|ident)[^\n]*\n", re.M)
_EXTERNAL = re.compile(
    r"^define (?!(?:internal|private|linkonce|linkonce_odr|available_externally)\b)(?:weak_odr |weak )?(?:dso_local )?",
    re.M,
)

_VARIABLE = re.compile(
    r"^(@\S+ = )(?:weak_odr |weak )?((?:dso_local )?(?:local_)?(?:unnamed_addr )?(?:constant|global) )", re.M
)


def link(program: str, libraries: Sequence[str]) -> str:
    """The program, and of each library the functions that it calls, directly or not, and does not define. RuntimeError
    where LLVM finds that the two do not go together."""
    context = llvm.create_context()
    module = llvm.parse_assembly(program, context)
    target = "".join(_TARGET.findall(program))
    for library in libraries:
        plain = _NAMED_METADATA.sub("", _TARGET.sub("", library))
        # LLVM takes what has this linkage only where something refers to it.
        optional = _EXTERNAL.sub("define linkonce_odr ", _VARIABLE.sub(r"\1linkonce_odr \2", plain))
        module.link_in(llvm.parse_assembly(target + optional, context))
    return str(module)


def reachable(program: str, root: str) -> str:
    """The program without the functions and variables that `root` does not need."""
    module = llvm.parse_assembly(program, llvm.create_context())
    for function in module.functions:
        if not function.is_declaration and function.name != root and function.linkage is llvm.Linkage.external:
            function.linkage = llvm.Linkage.linkonce_odr
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_strip_dead_prototype_pass()
    passes.add_strip_dead_debug_info_pass()
    llvm.initialize_all_targets()
    machine = llvm.Target.from_triple(module.triple or llvm.get_default_triple()).create_target_machine()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))
    return str(module)
