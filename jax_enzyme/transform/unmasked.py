"""Reverse sweeps without the masks that keep infinite partials away from cotangents of exactly 0 (`ad.emit.dropped`).

    before    %sent = select i1 %spoilt, double 0.0, double %term, !je.mask !0       after    (%term in its place)

Four instructions for one multiplication are half of what the reverse of short arithmetic does, and hardly ever change
anything. Where they would, a term is no number without them, and so is each sum that it goes into: cotangents are added
and multiplied, and decide nothing. Results that are all numbers are those with masks; if one is not, the function runs
once more as it was (`codegen.entry`).
"""

from __future__ import annotations

from jax_enzyme.analysis.loops import Loops
from jax_enzyme.analysis.objects import call_effect, is_defined_call, is_memory_free
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.clone import clone_with_map
from jax_enzyme.ir.marks import MASK
from jax_enzyme.ir.module import Function, Module, declared_name
from jax_enzyme.rules.declare import LIBRARY
from jax_enzyme.rules.effects import Effect
from jax_enzyme.rules.user import may_have_functions
from jax_enzyme.transform.output import is_repeatable
from jax_enzyme.transform.rewriting import substitute

_PLAIN = frozenset(
    {
        Effect.PURE_INT, Effect.IGNORED, Effect.SAME_POINTER, Effect.MEMORY_COPY, Effect.MEMORY_SET, Effect.STACK,
        Effect.ALLOCATE, Effect.REALLOCATE, Effect.FREE, Effect.TAPE, Effect.ABORT,
        Effect.TRAP,
    }
)  # fmt: skip


def without_masks(function: ArrayFunction) -> ArrayFunction | None:
    """A copy of a reverse sweep without marked masks; None where it has none in an innermost loop, where most of the
    time goes, or may not run twice."""
    module = function.module
    masks = [i for f in module.functions.values() for i in f.instructions() if _is_mask(i)]
    often = masks and any(map(_has_innermost, module.functions.values()))
    if not often or any(buffer.grows for buffer in function.buffers) or not _runs_again(module):
        return None
    copy, twins = clone_with_map(module)
    gone = {twins[mask]: twins[mask.operands[2]] for mask in masks}
    for changed in copy.functions.values():
        substitute(changed, {i: gone[i] for i in changed.instructions() if i in gone})
    return ArrayFunction(copy, function.symbol, function.buffers)


def _has_innermost(function: Function) -> bool:
    """Whether a function has a mask in a loop without loops inside."""
    masked = {block for block in function.blocks if any(map(_is_mask, block.instructions))}
    loops = Loops.of(function) if masked else ()
    return any(not loop.children and not masked.isdisjoint(loop.blocks) for loop in loops)


def _is_mask(instruction: I.Instruction) -> bool:
    return isinstance(instruction, I.Select) and any(kind == MASK for kind, _ in instruction.metadata)


def _runs_again(module: Module) -> bool:
    """Whether a function that has run may run again, and finds what it found: it changes no variables, and calls
    nothing that might, or that goes by what a cotangent is, as a user's rule does."""
    changing = any(not g.is_constant for g in module.globals.values()) or may_have_functions(module)
    calls = (i for f in module.functions.values() for i in f.instructions() if isinstance(i, I.CallBase))
    return not changing and is_repeatable(module) and all(map(_is_plain, calls))


def _is_plain(call: I.CallBase) -> bool:
    name = declared_name(call)
    known = name in LIBRARY or name.removesuffix("f") in LIBRARY or is_memory_free(call)
    return known or is_defined_call(call) or call_effect(call) in _PLAIN
