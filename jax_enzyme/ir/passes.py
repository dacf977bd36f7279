"""LLVM's own passes over our modules. Every function takes a module and returns a new one.

The way there and back is text. What llvmlite has is a fixed set of passes, each with LLVM's default options, and the
-O pipelines; there is no textual pipeline. LLVM skips a function marked `optnone` in nearly all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import llvmlite.binding as llvm

from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.inlining import mark_for_inlining
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.native import native_from_text
from jax_enzyme.ir.pass_managers import Setting, run_on_functions, run_on_module
from jax_enzyme.ir.reader import parse, parse_printed
from jax_enzyme.ir.verify import parse_checked

# Of functions: these run on every definition, or on some chosen ones.
_FUNCTION_PASSES = {
    "adce": "aggressive_dce",
    "aggressive-instcombine": "aggressive_instcombine",
    "break-crit-edges": "break_critical_edges",
    "dce": "dead_code_elimination",
    "dse": "dead_store_elimination",
    "instcombine": "instruction_combine",
    "instnamer": "instruction_namer",
    "jump-threading": "jump_threading",
    "lcssa": "lcssa",
    "loop-deletion": "loop_deletion",
    "loop-reduce": "loop_strength_reduce",
    "loop-rotate": "loop_rotate",
    "loop-simplify": "loop_simplify",
    "loop-unroll": "loop_unroll",
    "loop-unroll-and-jam": "loop_unroll_and_jam",
    "lower-atomic": "lower_atomic",
    "lower-invoke": "lower_invoke",
    "lower-switch": "lower_switch",
    "memcpyopt": "mem_copy_opt",
    "mergereturn": "unify_function_exit_nodes",
    "newgvn": "new_gvn",
    "reassociate": "reassociate",
    "reg2mem": "register_to_memory",
    "sccp": "sccp",
    "simplifycfg": "simplify_cfg",
    "sink": "sinking",
    "sroa": "sroa",
    "tailcallelim": "tail_call_elimination",
}
_MODULE_PASSES = {
    "always-inline": "always_inliner",
    "argpromotion": "argument_promotion",
    "constmerge": "constant_merge",
    "deadargelim": "dead_arg_elimination",
    "function-attrs": "post_order_function_attributes",
    "globaldce": "global_dead_code_eliminate",
    "globalopt": "global_opt",
    "ipsccp": "ipsccp",
    "loop-extract": "loop_extract",
    "mergefunc": "merge_functions",
    "partial-inliner": "partial_inliner",
    "rpo-function-attrs": "rpo_function_attrs",
    "strip": "strip_symbols",
    "strip-dead-debug-info": "strip_dead_debug_info",
    "strip-dead-prototypes": "strip_dead_prototype",
    "strip-debug-declare": "strip_debug_declare",
    "strip-nondebug": "strip_non_debug_symbols",
}
NAMES = tuple(sorted([*_FUNCTION_PASSES, *_MODULE_PASSES]))


def run(module: Module, passes: Sequence[str], only: Collection[str] | None = None) -> Module:
    """Runs passes by LLVM's name for them (`NAMES`), in order. With `only`, on these functions alone, which passes that
    are about a whole module cannot do."""
    methods = [_method(name, only is not None) for name in passes]
    if only is None:
        return _through(module, lambda parsed, builder: _run_module_passes(methods, parsed, builder))
    return _through(module, lambda parsed, builder: _run_function_passes(methods, only, parsed, builder))


def text_after(module: Module, passes: Sequence[str], only: Collection[str]) -> str:
    """What `run` makes of some functions, as LLVM prints it: for those who hand a module on as text."""
    parsed = parse_checked(module)
    _run_function_passes([_method(name, True) for name in passes], only, parsed, _builder(module.triple))
    return str(parsed)


def optimise(
    module: Module,
    level: int = 2,
    *,
    vectorise: bool = False,
    unroll: bool = False,
    settings: Sequence[Setting] = (),
) -> Module:
    """LLVM's -O pipeline, by default without what multiplies the code: vectorising, interleaving, unrolling."""

    def pipeline(parsed: llvm.ModuleRef, builder: llvm.PassBuilder) -> None:
        run_on_module(builder.getModulePassManager(), parsed, builder, settings)

    return _through(module, pipeline, level, vectorise, unroll)


def optimised_text(text: str) -> str:
    """The same for a module as text: LLVM's own, which keeps what is no concern of ours."""
    parsed = native_from_text(text)
    builder = _builder(parsed.triple)
    run_on_module(builder.getModulePassManager(), parsed, builder)
    return str(parsed)


def inline_everything(module: Module, keep: Collection[str], then: Sequence[str] = ()) -> Module:
    """Inlines every call of a function that is defined here, directly called and not recursive; makes everything but
    `keep` internal and removes what is then unused. `then` are passes to run on what is left."""
    copy = clone(module)
    mark_for_inlining(copy, keep)
    return run(copy, ["always-inline", "globaldce", *then])


def normalise(module: Module) -> Module:
    """Through LLVM and back, without any pass: the module as LLVM would print it."""
    return parse(str(parse_checked(module)))


def _method(name: str, of_function: bool) -> str:
    found = _FUNCTION_PASSES.get(name)
    if found is None and not of_function:
        found = _MODULE_PASSES.get(name)
    if found is None:
        raise ValueError(f"no pass {name!r}{' of functions' if of_function else ''}; known are: {', '.join(NAMES)}")
    return f"add_{found}_pass"


def _run_module_passes(methods: Sequence[str], parsed: llvm.ModuleRef, builder: llvm.PassBuilder) -> None:
    manager = llvm.create_new_module_pass_manager()
    for method in methods:
        getattr(manager, method)()
    run_on_module(manager, parsed, builder)


def _run_function_passes(
    methods: Sequence[str], only: Collection[str], parsed: llvm.ModuleRef, builder: llvm.PassBuilder
) -> None:
    manager = llvm.create_new_function_pass_manager()
    for method in methods:
        getattr(manager, method)()
    run_on_functions(manager, [parsed.get_function(name) for name in only], builder)


def _through(
    module: Module,
    work: Callable[[llvm.ModuleRef, llvm.PassBuilder], None],
    level: int = 2,
    vectorise: bool = False,
    unroll: bool = False,
) -> Module:
    parsed = parse_checked(module)
    work(parsed, _builder(module.triple, level, vectorise, unroll))
    return parse_printed(str(parsed))


def _builder(triple: str, level: int = 2, vectorise: bool = False, unroll: bool = False) -> llvm.PassBuilder:
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization = vectorise
    options.slp_vectorization = vectorise
    options.loop_interleaving = vectorise
    options.loop_unrolling = unroll
    return llvm.create_pass_builder(_target_machine(triple), options)


def _target_machine(triple: str) -> llvm.TargetMachine:
    """A machine for the module's triple. Functions carry their own CPU and features."""
    llvm.initialize_all_targets()
    return llvm.Target.from_triple(triple or llvm.get_default_triple()).create_target_machine()
