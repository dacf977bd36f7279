"""Reverse mode of array functions: analysis, plan, both sweeps, and the functions made of them.

Vjp         allocates tape, arena and local shadows; forward sweep; reverse sweep; frees
Augmented   the forward sweep, its tape a result, or kept by the process (`ad.kept_tapes`)
Pullback    the reverse sweep, the tape an argument, or its handle
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import lru_cache

from jax_enzyme.ad.check.shadows import check_shadows
from jax_enzyme.ad.checkpoint import checkpointed
from jax_enzyme.ad.facts.causes import SPLIT
from jax_enzyme.ad.facts.copying import ALIGNMENT, array_function, whole
from jax_enzyme.ad.frame import Frame
from jax_enzyme.ad.kept_tapes import keeps_tape, kept_augmented, kept_pullback
from jax_enzyme.ad.plan.choices import Choices
from jax_enzyme.ad.plan.shared_tapes import mark_residents
from jax_enzyme.ad.reversal import Reversal, plan_reversal
from jax_enzyme.ad.sweeps import Sweeps
from jax_enzyme.analysis.objects import OBSERVED
from jax_enzyme.errors import DifferentiationError
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction, Augmented, Buffer, Io, Pullback, Vjp, shadow_buffers, vjp_buffers
from jax_enzyme.ir.builder import Builder, zero
from jax_enzyme.ir.module import GlobalVariable
from jax_enzyme.ir.values import BasicBlock, ConstantNull, Value
from jax_enzyme.options import Options
from jax_enzyme.rules.table import Rules
from jax_enzyme.transform.private_globals import globals_in
from jax_enzyme.transform.unread_memory import without_unread_writes


def combined(sweeps: Sweeps, frames: type[Frame] = Frame) -> ArrayFunction:
    """Both sweeps in one array function."""
    reversal, base = sweeps.reversal, sweeps.reversal.base
    forward = sweeps.forward
    backward, used = sweeps.reverse
    buffers = (*vjp_buffers(base.buffers, reversal.step), *frames.more(reversal, combined=True))
    target = array_function(f"{base.symbol}.vjp", buffers)
    frame = frames(sweeps, target, len(base.buffers), buffers)
    own: list[Value] = list(target.arguments[: len(base.buffers)])
    for index, (argument, buffer) in enumerate(zip(reversal.root.function.arguments, base.buffers, strict=True)):
        if buffer.io == "out" and argument not in used:
            own[index] = frame.unread(own[index], buffer)
    tape = frame.tape()
    arena = frame.arena()
    shadows = frame.shadows()
    status = frame.builder.call(forward, [*own, *shadows, tape, arena])
    frame.builder.call(backward, [*own, *shadows, tape, arena])
    frame.finish(status)
    check_shadows(target, backward, len(own), len(shadows))
    return sweeps.delivered(target, buffers)


def with_what_is_read(
    sweeps: Sweeps, function: ArrayFunction, private: Collection[GlobalVariable] = ()
) -> ArrayFunction:
    """Both sweeps, the forward one without what it writes for nobody: after it, the reverse sweep alone reads what the
    kernel leaves, but where the caller does. Of `private` variables nothing is left when the function ends."""
    forward, (_, used) = sweeps.forward, sweeps.reverse
    arguments = zip(sweeps.reversal.root.function.arguments, sweeps.reversal.base.buffers, strict=True)
    unread = [
        i
        for i, (argument, buffer) in enumerate(arguments)
        if buffer.io != "in" and argument not in used and OBSERVED not in argument.attributes
    ]
    others = [f for f in function.module.functions.values() if f is not forward] if private else []
    read = {g for f in others for i in f.instructions() for v in i.operands for g in globals_in(v)}
    short = without_unread_writes(forward, unread, [g for g in private if g not in read])
    if short is not forward:
        function.module.functions[forward.name] = short
        for call in function.module.functions[function.symbol].instructions():
            call.operands[:] = [short if v is forward else v for v in call.operands]
    return function


def augmented(sweeps: Sweeps, *, checked: bool = False) -> ArrayFunction:
    """The forward sweep with its tape as a result, and scratch contents that reverse reads. `checked`: checks that may
    fail will be added to it."""
    reversal, base = sweeps.reversal, sweeps.reversal.base
    _require_split(reversal)
    forward = sweeps.forward
    _, used = sweeps.reverse
    kept: list[Buffer] = []
    for argument, buffer in zip(reversal.root.function.arguments, base.buffers, strict=True):
        io = "out" if buffer.io == "scratch" and argument in used else buffer.io
        kept.append(replace(buffer, role="primal", of=len(kept), io=io))
    tapes = _tape_buffers(reversal, "out", checked)
    buffers = (*kept, *tapes)
    target = array_function(f"{base.symbol}.augmented", buffers)
    builder = Builder(BasicBlock(name="entry"))
    target.blocks = [builder.block]
    null: Value = ConstantNull(T.PTR)
    own, tape = target.arguments[: len(kept)], target.arguments[-1] if tapes else null
    shadows = [null for _ in reversal.shadow_objects]
    mark_residents(reversal.root.plan, tape)
    builder.ret(builder.call(forward, [*own, *shadows, tape, null]))
    return sweeps.delivered(target, buffers)


def pullback(sweeps: Sweeps, frames: type[Frame] = Frame, *, checked: bool = False) -> ArrayFunction:
    """The reverse sweep over the tape and the buffers that it reads. `checked`: as the forward sweep."""
    reversal, base = sweeps.reversal, sweeps.reversal.base
    _require_split(reversal)
    backward, used = sweeps.reverse
    read: list[Buffer] = []
    for index, (argument, buffer) in enumerate(zip(reversal.root.function.arguments, base.buffers, strict=True)):
        if argument in used:
            role = "initial" if buffer.io == "in" else "final"
            read.append(replace(buffer, role=role, of=index, io="in", zero=False, discard=False))
    tapes = _tape_buffers(reversal, "in", checked)
    shadows = shadow_buffers(base.buffers, reversal.step)
    buffers = (*read, *tapes, *shadows, *frames.more(reversal, combined=False))
    target = array_function(f"{base.symbol}.pullback", buffers)
    frame = frames(sweeps, target, len(read) + len(tapes), buffers)
    given = {b.of: a for b, a in zip(read, target.arguments, strict=False)}
    null: Value = ConstantNull(T.PTR)
    own = [given.get(i, null) for i in range(len(base.buffers))]
    made = frame.shadows()
    tape = target.arguments[len(read)] if tapes else null
    frame.builder.call(backward, [*own, *made, tape, null])
    frame.finish(zero(T.I64))
    check_shadows(target, backward, len(own), len(made))
    return sweeps.delivered(target, buffers)


def _tape_buffers(reversal: Reversal, io: Io, checked: bool) -> tuple[Buffer, ...]:
    """The tape of one thread; or of many, if it holds anything. That of a kernel that may fail is never empty: a
    pullback that reads nothing else of the forward sweep would leave JAX free not to run it, and nobody would hear of
    the failure."""
    # A whole number of units of alignment: in a batch, one tape follows the other.
    size = whole(reversal.root.plan.tape.root.size)
    if checked or reversal.may_fail:
        size = max(size, ALIGNMENT)
    threads = reversal.facts.execution.threads
    if threads is None:
        return (Buffer("tape", "u8", (size,), io, "tape"),)
    return (Buffer("tape", "u8", (size, threads.count), io, "tape"),) if size else ()


def _require_split(reversal: Reversal) -> None:
    if not reversal.splits:
        raise SPLIT.error()


def reversal_of(base: ArrayFunction, step: Vjp, rules: Rules, options: Options) -> Reversal:
    """The plan of a reverse step, its longest loops checkpointed where the options say so. What they ask for is about
    the kernel's loops: those of a reverse sweep, which is differentiated in reverse once more, are cut where they can
    be.

    Raises DifferentiationError where checkpointing is asked for and there is no loop for it.
    """
    reversal = plan_reversal(base, step, rules, choices=Choices.of(options))
    if options.checkpoint is False:
        return reversal
    again = any(buffer.role == "shadow" for buffer in base.buffers)
    if options.checkpoint is not None and not again:
        return checkpointed(reversal, options.checkpoint)
    if options.checkpoint is None and reversal.root.plan.tape.root.size <= options.tape_budget:
        return reversal
    try:
        return checkpointed(reversal, options.checkpoint)
    except DifferentiationError:
        return reversal


def derive_reverse(base: ArrayFunction, step: Vjp, rules: Rules, options: Options) -> ArrayFunction:
    """The array function of one reverse step."""
    reversal = reversal_of(base, step, rules, options)
    with reversal.lock:
        sweeps = _checked(reversal)
        kept = not reversal.splits and keeps_tape(reversal, options)
        match step:
            case Augmented() if kept:
                return kept_augmented(sweeps)
            case Pullback() if kept:
                return kept_pullback(sweeps)
            case Augmented():
                return augmented(sweeps, checked=options.sanitize)
            case Pullback():
                return pullback(sweeps, checked=options.sanitize)
            case _:
                return with_what_is_read(sweeps, combined(sweeps))


@lru_cache(maxsize=2)
def _checked(reversal: Reversal) -> Sweeps:
    """Both sweeps, emitted and checked: Augmented and Pullback are asked for one after the other."""
    sweeps = Sweeps(reversal)
    sweeps.check()
    return sweeps
