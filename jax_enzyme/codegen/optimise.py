"""The last optimisation of a module and its translation to an object: all that knows this machine's processor."""

from __future__ import annotations

from dataclasses import replace

import llvmlite.binding as llvm

from jax_enzyme.analysis.other_objects import leads_elsewhere
from jax_enzyme.codegen import unrolling
from jax_enzyme.codegen.bfloat_rounding import add_bfloat_rounding
from jax_enzyme.codegen.host import target_machine
from jax_enzyme.codegen.lane_sums import with_common_sums
from jax_enzyme.codegen.long_blocks import cut, keep_order, long_blocks, settings, to_cut
from jax_enzyme.codegen.narrow_indices import hide_narrow_indices
from jax_enzyme.codegen.outer_loops import keep_outer_loops
from jax_enzyme.codegen.pipelines import Pipeline
from jax_enzyme.codegen.short_masks import without_short_masks
from jax_enzyme.codegen.short_rows import show_rows
from jax_enzyme.codegen.strips import compute_early
from jax_enzyme.codegen.vector_math import KEPT, add_vector_math
from jax_enzyme.errors import LoweringError
from jax_enzyme.ir import linking
from jax_enzyme.ir import types as T
from jax_enzyme.ir.instructions import CallBase
from jax_enzyme.ir.marks import EARLY
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.native import native_from_bitcode, native_from_text
from jax_enzyme.ir.pass_managers import inline_marked, run_on_module, set_to
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.writer import to_text
from jax_enzyme.options import Options
from jax_enzyme.transform.cuda.guarded_loops import narrow_guarded_loops
from jax_enzyme.transform.sanitize.names import BEHIND, CHECKED
from jax_enzyme.transform.vector_hints import show_vector_hints
from jax_enzyme.working import waiting_for

# What clang fixes per function for the processor that it compiled for; without these the target machine's own hold.
# `min-legal-vector-width` would forbid 512-bit registers.
_TARGET_ATTRIBUTES = (
    '"target-cpu"=', '"target-features"=', '"tune-cpu"=', '"min-legal-vector-width"=', '"frame-pointer"=',
    '"stack-protector-buffer-size"=', '"prefer-vector-width"=', "optnone", "ssp", "sspstrong", "sspreq",
)  # fmt: skip
_RELAXABLE = {
    "fneg", "fadd", "fsub", "fmul", "fdiv", "frem", "fcmp", "fptrunc", "fpext", "select", "phi", "call",
}  # fmt: skip
_GATHER, _OF_LOOPS = "llvm.masked.gather", "wide.masked.gather"
_DEFAULT = Options()
_RELAXED = {"fast", "nnan", "ninf", "nsz", "arcp", "contract", "afn", "reassoc"}


def optimised_text(module: Module, options: Options = _DEFAULT, *, is_derivative: bool = False) -> str:
    """The text of a private module after -O3 with both vectorisers, for this machine."""
    return str(_optimise(module, target_machine(), options, is_derivative))


def object_code(
    module: Module,
    symbol: str,
    options: Options = _DEFAULT,
    *,
    is_derivative: bool = False,
    careful: Module | None = None,
) -> tuple[bytes, frozenset[str]]:
    """The object of a private module, optimised; and the names of those parameters of a function of it behind which
    nothing is written any more. What hardly ever runs, a `careful` function that it calls, is less so."""
    machine = target_machine()
    chosen = settings(module)
    native = _optimise(module, machine, options, is_derivative)
    if careful is not None:
        native = _joined([native, _shortly(careful, machine)])
    parameters = (a for f in native.functions if f.name == symbol for a in f.arguments)
    words = {a.name: b" ".join(a.attributes).split() for a in parameters}
    read = frozenset(name for name, own in words.items() if b"readonly" in own or b"readnone" in own)

    def emit() -> bytes:
        with set_to(chosen):
            return machine.emit_object(native)

    return waiting_for(emit), read


def assembly(module: Module, options: Options = _DEFAULT) -> str:
    """The assembly of a private module, optimised."""
    machine = target_machine()
    return machine.emit_assembly(_optimise(module, machine, options, False))


def _optimise(module: Module, machine: llvm.TargetMachine, options: Options, is_derivative: bool) -> llvm.ModuleRef:
    """A kernel with checks by itself: what is in front of a derivative changes nothing of how that is optimised."""
    checked = module.functions.get(CHECKED)
    usual = replace(options, sanitize=False, time_limit=None)
    if checked is None or BEHIND not in module.functions:
        return _optimised(module, machine, usual if checked is None else options, is_derivative)
    kernel = parse(linking.reachable(to_text(module), {CHECKED}))
    kernel.functions[CHECKED].prefix = ("hidden",)
    roots = {f.name for f in module.functions.values() if not f.is_declaration and not _is_own(f)} - {CHECKED}
    checked.blocks, checked.prefix, checked.attributes, checked.metadata = [], (), (), []
    rest = parse(linking.reachable(to_text(module), roots))
    return _joined([_optimised(rest, machine, usual, is_derivative), _optimised(kernel, machine, options, False)])


def _joined(parts: list[llvm.ModuleRef]) -> llvm.ModuleRef:
    """Two modules in one."""
    context = llvm.create_context()
    joined, other = (native_from_bitcode(part.as_bitcode(), context) for part in parts)
    joined.link_in(other)
    return joined


def _shortly(module: Module, machine: llvm.TargetMachine) -> llvm.ModuleRef:
    """A module after -O1: in the time that a few passes take."""
    retarget(module, machine)
    pipeline = Pipeline(1, stores_stay=leads_elsewhere(module))
    return pipeline.run(_parsed(to_text(module)), pipeline.builder())


def _is_own(function: Function) -> bool:
    return any(word in function.prefix for word in ("internal", "private", "linkonce_odr", "available_externally"))


def _optimised(module: Module, machine: llvm.TargetMachine, options: Options, is_derivative: bool) -> llvm.ModuleRef:
    retarget(module, machine)
    if options.vector_width is not None:
        _limit_vectors(module, options.vector_width)
    if options.fast_math:
        relax(module)
    show_vector_hints(module)
    hide_narrow_indices(module)
    narrow_guarded_loops(module)
    compute_early(module)
    show_rows(module)
    keep_outer_loops(module)
    vectors = options.vector_math and add_vector_math(module)
    long = long_blocks(module)
    for block in long:
        keep_order(block)
    straight, looping = to_cut(module)
    cut(straight)
    # Loops with checks in them would be copied for each check that an iteration does not change, nest by nest; checks
    # of numbers in pairs wait for stores of other pairs.
    level, pairs = (2, False) if options.sanitize else (3, not long)
    # What stands in a piece is not to move to the one that uses it, and all to the last.
    stays = bool(straight) or any(EARLY in f.attributes for f in module.functions.values())
    pipeline = Pipeline(
        level,
        vectorise=True,
        slp=pairs,
        unroll=True,
        near_checks=is_derivative,
        loads_stay=stays,
        stores_stay=leads_elsewhere(module),
    )
    native, builder = _in_pairs(pipeline, module, options) or _in_loops(pipeline, module, options)
    if vectors:
        # The vectorisers have run: what they did not use can go, and the masked wrappers are inlined.
        native.get_global_variable(KEPT).linkage = llvm.Linkage.internal
        passes = llvm.create_new_module_pass_manager()
        passes.add_always_inliner_pass()
        passes.add_instruction_combine_pass()
        passes.add_global_dead_code_eliminate_pass()
        run_on_module(passes, native, builder, pipeline.settings)
    for mended in (without_short_masks, with_common_sums):
        changed = mended(native)
        native = native if changed is None else _parsed(to_text(changed))
    if looping:
        read = parse(str(native))
        cut(place for places in to_cut(read) for place in places)
        native = _parsed(to_text(read))
    return native


def _in_pairs(pipeline: Pipeline, module: Module, options: Options) -> tuple[llvm.ModuleRef, llvm.PassBuilder] | None:
    """A module after a pipeline with the vectoriser of straight-line code; None where there is none, or LLVM 22's went
    wrong: it may use a value before it is made, too."""
    if not pipeline.slp:
        return None
    try:
        native, builder = _through(pipeline, module, options)
        native.verify()
    except (LoweringError, RuntimeError):
        return None
    return None if _gathers_alone(native) else (native, builder)


def _in_loops(pipeline: Pipeline, module: Module, options: Options) -> tuple[llvm.ModuleRef, llvm.PassBuilder]:
    """A module after a pipeline with the vectoriser of loops; without it where that fails: LLVM 22's may reckon
    twice what a loop costs in vectors, come to different answers, and take that for a defect of its own."""
    pipeline = replace(pipeline, slp=False)
    try:
        return _through(pipeline, module, options)
    except LoweringError:
        return _through(replace(pipeline, vectorise=False), module, options)


def _gathers_alone(native: llvm.ModuleRef) -> bool:
    """Whether the vectoriser of straight-line code gathers numbers. LLVM 22's does it in front of stores to the same
    places: `s[6] = x; ... s[(i + 6) & m]`, in shadows as well. Gathers of loops have a name of their own."""
    if not any(function.name.startswith(_GATHER) for function in native.functions):
        return False
    calls = (i for f in native.functions for block in f.blocks for i in block.instructions if i.opcode == "call")
    alone = (call for call in calls if not call.name.startswith(_OF_LOOPS))
    return any([*call.operands][-1].name.startswith(_GATHER) for call in alone)


def _through(pipeline: Pipeline, module: Module, options: Options) -> tuple[llvm.ModuleRef, llvm.PassBuilder]:
    """A module after a pipeline."""
    builder = pipeline.builder()
    native = _parsed(to_text(module))
    if options.sanitize:  # the kernel as it is written, with run-time libraries that wish for loops to be unrolled
        inline_marked(native, builder)
        return unrolling.optimised(module, native, pipeline, builder), builder
    return pipeline.run(native, builder), builder


def _parsed(text: str) -> llvm.ModuleRef:
    """The module in a context of its own, which goes when the module goes."""
    context = llvm.create_context()
    try:
        native = native_from_text(text, context)
        if "bfloat" in text:
            add_bfloat_rounding(native, context)
        native.verify()
    except RuntimeError as error:
        raise LoweringError(
            f"the code generator made IR that LLVM rejects: {error}",
            remedy="this is a defect of jax_enzyme: please report it with the source of the kernel",
        ) from error
    return native


def retarget(module: Module, machine: llvm.TargetMachine) -> None:
    """Makes a private module one for this machine, whatever its compiler compiled it for."""
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    groups = {k: _portable(words) for k, words in module.attribute_groups.items()}
    module.attribute_groups = {k: words for k, words in groups.items() if words}
    empty = {f"#{k}" for k, words in groups.items() if not words}
    for function in module.functions.values():
        function.attributes = tuple(w for w in _portable(function.attributes) if w not in empty)
        for instruction in function.instructions():
            if isinstance(instruction, CallBase):
                instruction.attributes = tuple(w for w in instruction.attributes if w not in empty)


def _portable(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(w for w in words if not w.startswith(_TARGET_ATTRIBUTES))


def _limit_vectors(module: Module, bits: int) -> None:
    """LLVM's vectorisers are to use registers of so many bits at most."""
    for function in module.functions.values():
        if function.blocks:
            function.attributes = (*function.attributes, f'"prefer-vector-width"="{bits}"')


def relax(module: Module) -> None:
    """Gives every floating-point instruction the flag `fast`."""
    for function in module.functions.values():
        for instruction in function.instructions():
            float_result = T.is_float(instruction.type) or instruction.opcode == "fcmp"
            if instruction.opcode in _RELAXABLE and float_result:
                kept = tuple(f for f in instruction.flags if f not in _RELAXED)
                instruction.flags = (*kept, "fast")
