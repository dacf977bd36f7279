"""The form of a kernel that the engine differentiates: optimised, flat, and regular.

    before    what a front end left, behind `je.primal`: local variables in memory, calls, switches, several exits
    after     one function wherever recursion and its length (`codegen.code_size`) allow it, after LLVM's -O2 without
              vectorising, and with short loops alone unrolled (optimised first, differentiated later); atomic
              operations as plain ones; library calls that have a rule; loops with preheader, single latch and exits
              of their own; values that leave a loop in phis (LCSSA); two-way branches; one return; a value for every
              number and lane

Alias scopes go. They hold between the accesses of one iteration or one call; the reverse sweep accesses the same memory
in other orders, where LLVM's reading of the same scopes would be wrong.
"""

from __future__ import annotations

from dataclasses import replace

import llvmlite.binding as llvm

from jax_enzyme.analysis.objects import is_defined_call
from jax_enzyme.analysis.other_objects import leads_elsewhere
from jax_enzyme.analysis.tbaa import let_numbers_meet
from jax_enzyme.codegen.code_size import leave_large
from jax_enzyme.codegen.early_loads import choose_loads
from jax_enzyme.codegen.hoisting import keep_invariant_calls
from jax_enzyme.codegen.loop_ends import make_ends_apart
from jax_enzyme.codegen.pipelines import Pipeline
from jax_enzyme.codegen.short_loops import ask_to_unroll
from jax_enzyme.codegen.short_rows import show_rows
from jax_enzyme.codegen.unrolling import optimised
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction, of_module, through
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.inlining import mark_for_inlining
from jax_enzyme.ir.marks import keep_common, note_marks, show_marks
from jax_enzyme.ir.module import Module, take_apart
from jax_enzyme.ir.pass_managers import inline_marked, run_on_module
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.values import Poison
from jax_enzyme.ir.verify import parse_checked
from jax_enzyme.rules.effects import Effect, effect
from jax_enzyme.rules.mpi.table import note_interface
from jax_enzyme.transform.alignments import forget_alignments
from jax_enzyme.transform.carried_loads import load_again
from jax_enzyme.transform.cleared_results import clear_results
from jax_enzyme.transform.devirtualise import show_callees
from jax_enzyme.transform.dispatched import tell_objects
from jax_enzyme.transform.distances import tell_distances
from jax_enzyme.transform.divisions import note_divisions, show_divisors
from jax_enzyme.transform.equal_phis import join_equal_phis
from jax_enzyme.transform.failing import stays_true
from jax_enzyme.transform.failure_sites import TERMINATED, add_message, keep_failures_apart
from jax_enzyme.transform.invariant_loads import load_before_loops
from jax_enzyme.transform.joined_ends import join_marked_ends
from jax_enzyme.transform.kept_headers import forget_headers, keep_headers
from jax_enzyme.transform.lower_calls import lower_calls
from jax_enzyme.transform.named_loops import keep_own_names, name_loops
from jax_enzyme.transform.openmp import show_short_sections
from jax_enzyme.transform.poison import define_poison
from jax_enzyme.transform.product_ranges import cut_products
from jax_enzyme.transform.reducible import make_reducible, rejoin_latches
from jax_enzyme.transform.relative_tables import absolute_tables
from jax_enzyme.transform.retype import retype
from jax_enzyme.transform.rewriting import kept_attributes
from jax_enzyme.transform.rotations import choose_by_turn
from jax_enzyme.transform.scopes import drop_scopes
from jax_enzyme.transform.shown_attributes import show_attributes
from jax_enzyme.transform.simplify import simplify
from jax_enzyme.transform.stand_ins import forget_unentered
from jax_enzyme.transform.untaken_exits import leave_out_untaken_exits
from jax_enzyme.transform.vector_hints import hide_vector_hints
from jax_enzyme.transform.wrapped_indices import unwrap_indices

_ROUNDS = 3
"""What is simplified shows what more can be: a direct call, once inlined, the next pointer that is called; and what was
too long to be inlined may be so no more. What is left after so many rounds is as in the source, which the engine
differentiates or refuses."""

_PIPELINE = Pipeline(2, relocation="static")
"""In code that may lie anywhere LLVM makes tables of distances of tables of addresses: this code stays in place."""


def canonical(function: ArrayFunction, *, is_spent: bool = False) -> ArrayFunction:
    """The canonical form of an array function, in a module of its own. `is_spent`: nobody needs the given one any
    more."""
    module = absolute_tables(lower_calls(function.module))
    if module is function.module and not is_spent:
        module = clone(module)
    show_marks(module)
    let_numbers_meet(module)
    show_rows(module)
    name_loops(module)
    hide_vector_hints(module)
    if _runs_alone(module):
        forget_alignments(module)
    forget_unentered(module, function.symbol)
    _mark(module, function.symbol)
    keep_failures_apart(module)
    if keep_invariant_calls(module):
        module = _read(_optimised(module, function.symbol)[0])
        _mark(module, function.symbol)
    result = replace(function, module=_regular(module, function.symbol))
    for turn in range(_ROUNDS):
        on_loops = (*((make_ends_apart,) if _runs_alone(result.module) else ()), of_module(ask_to_unroll))
        of_loops = (of_module(show_short_sections), tell_distances, leave_out_untaken_exits, join_marked_ends)
        simple = through(result, *of_loops, simplify, *on_loops)
        is_chosen = turn == 0 and choose_loads(simple)  # in place: nobody else has the module
        is_changed = is_chosen or simple.module is not result.module
        if not is_changed and not _calls_its_own(simple.module):
            break
        module = simple.module if is_changed else clone(simple.module)
        if not _mark(module, function.symbol, may_grow=False) and not is_changed:
            break
        take_apart(result.module, module)
        result = replace(function, module=_regular(module, function.symbol))
    on_loads = (load_again, load_before_loops) if _runs_alone(result.module) else (load_again,)
    on_sums = (choose_by_turn, join_equal_phis, cut_products)
    at_last = (retype, unwrap_indices, *on_sums, *on_loads, of_module(lower_calls), of_module(define_poison))
    module = through(result, of_module(_with_single_entries), join_marked_ends, *at_last, tell_objects).module
    take_apart(result.module, module)
    show_divisors(module)
    show_callees(module)
    drop_scopes(module)
    show_attributes(module)
    clear_results(module)
    if _runs_alone(module):
        forget_alignments(module)
    note_interface(module)
    _end_functions(module, function.symbol)
    note_divisions(module)
    keep_own_names(module)
    note_marks(module)
    return replace(function, module=module)


def _mark(module: Module, root: str, *, may_grow: bool = True) -> bool:
    """Changes the module: says what is to be inlined. Whether anything is."""
    mark_for_inlining(module, [root])
    return leave_large(module, root, may_grow=may_grow)


def _calls_its_own(module: Module) -> bool:
    """Whether a function of the module is called by its name, so that it may be inlined."""
    return any(is_defined_call(i) for f in module.functions.values() for i in f.instructions())


def with_regular_loops(function: ArrayFunction) -> ArrayFunction:
    """A derivative of a function in canonical form, optimised and inlined, its loops regular: what has to be known to
    tell whether their iterations are independent. It is not differentiated again in this form, so that alias scopes
    stay: what is on the tape is told apart by them."""
    module = clone(function.module)
    show_rows(module)
    keep_failures_apart(module)
    module = flat(module, function.symbol)
    show_attributes(module)
    return replace(function, module=module)


def flat(module: Module, symbol: str) -> Module:
    """A module in which a function of any parameters is optimised and inlined, and its loops are regular."""
    copy = clone(module)
    mark_for_inlining(copy, [symbol])
    return _regular(copy, symbol)


def _regular(module: Module, root: str) -> Module:
    """What a private module, which is taken apart, becomes: optimised, its loops regular."""
    native, builder = _optimised(module, root)
    _regularise(native, builder)
    result = _read(native)
    keep_common(module, result)
    take_apart(module)
    forget_unentered(result, root)
    return result


def _with_single_entries(module: Module) -> Module:
    """Loops with one entry each. No optimisation may follow: it would thread the jumps again."""
    reducible = make_reducible(module)
    if reducible is module:
        return module
    native = parse_checked(reducible)
    builder = _PIPELINE.builder()
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    run_on_module(passes, native, builder)
    _regularise(native, builder)
    result = parse(str(native))
    rejoin_latches(result)
    return result


def _read(native: llvm.ModuleRef) -> Module:
    module = parse(str(native))
    forget_headers(module)
    return module


def _optimised(module: Module, root: str) -> tuple[llvm.ModuleRef, llvm.PassBuilder]:
    """LLVM's module after inlining what is marked and -O2. Changes the module."""
    keep_headers(module, root)
    native = parse_checked(module)
    builder = _PIPELINE.builder()
    if _runs_alone(module):
        passes = llvm.create_new_module_pass_manager()
        passes.add_lower_atomic_pass()
        run_on_module(passes, native, builder)
    inline_marked(native, builder)
    return optimised(module, native, replace(_PIPELINE, stores_stay=leads_elsewhere(module)), builder), builder


def _runs_alone(module: Module) -> bool:
    """Whether one thread at a time runs a kernel over its memory, as on the CPU: there atomic operations are loads,
    arithmetic and stores, and a number that is added by compare-and-exchange is added."""
    return not module.triple.startswith("nvptx") and not any(
        effect(name) in (Effect.BARRIER, Effect.VOTE, Effect.SHUFFLE) for name in module.functions
    )


def _regularise(native: llvm.ModuleRef, builder: llvm.PassBuilder) -> None:
    passes = llvm.create_new_module_pass_manager()
    passes.add_lower_switch_pass()
    passes.add_unify_function_exit_nodes_pass()
    passes.add_loop_simplify_pass()
    passes.add_lcssa_pass()
    passes.add_global_dead_code_eliminate_pass()
    run_on_module(passes, native, builder)


def _end_functions(module: Module, root: str) -> None:
    """Functions that always fail return all the same, behind the trap. A kernel has no traps any more: one that never
    returns comes to what the source says that it never comes to (`__builtin_unreachable`), and fails there."""
    for function in module.functions.values():
        ends = [b for b in function.blocks if isinstance(b.terminator, I.Unreachable)]
        if not ends or any(isinstance(b.terminator, I.Return) for b in function.blocks):
            continue
        if function.name == root:
            status = (TERMINATED << 32) | add_message(module, "the kernel comes to no end: its behaviour is undefined")
            ends[-1].instructions.pop()
            Builder(ends[-1]).ret(const_int(T.I64, status))
            function.attributes = kept_attributes(module, function.attributes, stays_true)
            continue
        result = function.function_type.result
        ends[-1].instructions.pop()
        Builder(ends[-1]).ret(None if result == T.VOID else Poison(result))
