"""Reverse mode of array functions: analysis, plan, both sweeps, and the functions made of them.

Vjp         allocates tape, arena and local shadows; forward sweep; reverse sweep; frees
Augmented   the forward sweep, its tape a result
Pullback    the reverse sweep, the tape an argument
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from jax_enzyme.ad.check import check_shadows
from jax_enzyme.ad.checkpoint import Cut, choose, cut
from jax_enzyme.ad.common import ALIGNMENT, array_function
from jax_enzyme.ad.reversal import Reversal, plan_reversal
from jax_enzyme.ad.runtime import ARENA
from jax_enzyme.ad.sweeps import Sweeps
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.errors import DifferentiationError
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction, Augmented, Buffer, Io, Pullback, Vjp, shadow_buffers, vjp_buffers
from jax_enzyme.ir.builder import Builder, zero
from jax_enzyme.ir.module import Function, GlobalVariable
from jax_enzyme.ir.values import BasicBlock, ConstantNull, Value
from jax_enzyme.options import Options
from jax_enzyme.rules.table import Rules

_STACK_BYTES = 4096


def combined(sweeps: Sweeps) -> ArrayFunction:
    """Both sweeps in one array function."""
    reversal, base = sweeps.reversal, sweeps.reversal.base
    forward = sweeps.forward()
    backward, used = sweeps.reverse()
    buffers = vjp_buffers(base.buffers, reversal.step)
    target = array_function(f"{base.symbol}.vjp", buffers)
    sweeps.module.functions[target.name] = target
    frame = _Frame(sweeps, target, len(base.buffers), buffers)
    own: list[Value] = list(target.arguments[: len(base.buffers)])
    for index, (argument, buffer) in enumerate(zip(reversal.root.function.arguments, base.buffers, strict=True)):
        if buffer.io == "out" and argument not in used:
            # Nobody reads what the forward sweep leaves here: in memory of our own, the optimiser can see that.
            own[index] = frame.room(buffer.nbytes, zeroed=True)
    tape = frame.room(reversal.root.plan.tape.root.size)
    arena = frame.arena()
    shadows = frame.shadows()
    status = frame.builder.call(forward, [*own, *shadows, tape, arena])
    frame.builder.call(backward, [*own, *shadows, tape, arena])
    frame.finish(status)
    check_shadows(target, backward, len(own), len(shadows))
    return ArrayFunction(sweeps.module, target.name, buffers)


def augmented(sweeps: Sweeps) -> ArrayFunction:
    """The forward sweep with its tape as a result, and scratch contents that reverse reads."""
    reversal, base = sweeps.reversal, sweeps.reversal.base
    _require_split(reversal)
    forward = sweeps.forward()
    _, used = sweeps.reverse()
    kept: list[Buffer] = []
    for argument, buffer in zip(reversal.root.function.arguments, base.buffers, strict=True):
        io = "out" if buffer.io == "scratch" and argument in used else buffer.io
        kept.append(replace(buffer, role="primal", of=len(kept), io=io))
    buffers = (*kept, _tape_buffer(reversal, "out"))
    target = array_function(f"{base.symbol}.augmented", buffers)
    sweeps.module.functions[target.name] = target
    builder = Builder(BasicBlock(name="entry"))
    target.blocks = [builder.block]
    null: Value = ConstantNull(T.PTR)
    own, tape = target.arguments[: len(kept)], target.arguments[-1]
    shadows = [null for _ in reversal.shadow_objects]
    builder.ret(builder.call(forward, [*own, *shadows, tape, null]))
    return ArrayFunction(sweeps.module, target.name, buffers)


def pullback(sweeps: Sweeps) -> ArrayFunction:
    """The reverse sweep over the tape and the buffers that it reads."""
    reversal, base = sweeps.reversal, sweeps.reversal.base
    _require_split(reversal)
    backward, used = sweeps.reverse()
    read: list[Buffer] = []
    for index, (argument, buffer) in enumerate(zip(reversal.root.function.arguments, base.buffers, strict=True)):
        if argument in used:
            role = "initial" if buffer.io == "in" else "final"
            read.append(replace(buffer, role=role, of=index, io="in", zero=False, discard=False))
    buffers = (*read, _tape_buffer(reversal, "in"), *shadow_buffers(base.buffers, reversal.step))
    target = array_function(f"{base.symbol}.pullback", buffers)
    sweeps.module.functions[target.name] = target
    frame = _Frame(sweeps, target, len(read) + 1, buffers)
    given = {b.of: a for b, a in zip(read, target.arguments, strict=False)}
    null: Value = ConstantNull(T.PTR)
    own = [given.get(i, null) for i in range(len(base.buffers))]
    shadows = frame.shadows()
    frame.builder.call(backward, [*own, *shadows, target.arguments[len(read)], null])
    frame.finish(zero(T.I64))
    check_shadows(target, backward, len(own), len(shadows))
    return ArrayFunction(sweeps.module, target.name, buffers)


def _tape_buffer(reversal: Reversal, io: Io) -> Buffer:
    # A whole number of units of alignment: in a batch, one tape follows the other.
    size = -(-reversal.root.plan.tape.root.size // ALIGNMENT) * ALIGNMENT
    return Buffer("tape", "u8", (size,), io, "tape")


def _require_split(reversal: Reversal) -> None:
    if not reversal.splits:
        raise DifferentiationError(
            f"the reverse of `{reversal.base.symbol}` needs a tape whose size is known only at run time",
            remedy="use the combined derivative (Vjp), which recomputes the forward sweep",
        )


class _Frame:
    """The body of a derivative: memory that lives for one call, made at the start and freed at the end."""

    def __init__(self, sweeps: Sweeps, target: Function, first: int, buffers: tuple[Buffer, ...]) -> None:
        self._reversal = sweeps.reversal
        self._runtime = sweeps.runtime
        self._given = {b.of: a for b, a in zip(buffers[first:], target.arguments[first:], strict=True)}
        self._heap: list[Value] = []
        self._arena: Value | None = None
        self.builder = Builder(BasicBlock(name="entry"))
        target.blocks = [self.builder.block]

    def room(self, size: int, zeroed: bool = False) -> Value:
        """Memory of constant size: on the stack where it is small."""
        if size == 0:
            return ConstantNull(T.PTR)
        if size > _STACK_BYTES:
            self._heap.append(self._runtime.allocate(self.builder, size))
            return self._heap[-1]
        type_ = T.ArrayType(size, T.I8)
        memory = self.builder.alloca(type_, align=16)
        if zeroed:
            self.builder.store(zero(type_), memory)
        return memory

    def arena(self) -> Value:
        if not self._reversal.needs_arena:
            return ConstantNull(T.PTR)
        self._arena = self.builder.alloca(ARENA, align=16)
        self.builder.store(zero(ARENA), self._arena)
        return self._arena

    def shadows(self) -> list[Value]:
        """One per shadowed object: given, or made here and zero."""
        found: list[Value] = []
        arguments = self._reversal.root.function.arguments
        for item in self._reversal.shadow_objects:
            if item.kind == "buffer":
                index = next(i for i, a in enumerate(arguments) if a is item.site)
                size = self._reversal.base.buffers[index].nbytes
                found.append(self._given[index] if index in self._given else self.room(size, zeroed=True))
            elif isinstance(item.site, GlobalVariable):
                size = DataLayout(self._reversal.module).alloc_size(item.site.value_type)
                found.append(self.room(size, zeroed=True))
            else:
                found.append(self.room(self._reversal.root.plan.recipes.object_size(item) or 0, zeroed=True))
        return found

    def finish(self, status: Value) -> None:
        runtime = self._runtime
        if self._arena is not None:
            self.builder.call(runtime.arena("release"), [self._arena])
        for memory in self._heap:
            runtime.free(self.builder, memory)
        self.builder.ret(status)


def reversal_of(base: ArrayFunction, step: Vjp, rules: Rules, options: Options) -> Reversal:
    """The plan of a reverse step, its longest loop checkpointed where the options say so.

    Raises DifferentiationError where checkpointing is asked for and there is no loop for it.
    """
    reversal = plan_reversal(base, step, rules)
    over = reversal.root.plan.tape.root.size > options.tape_budget
    if options.checkpoint is False or (options.checkpoint is None and not over):
        return reversal
    where = choose(reversal, options.checkpoint if type(options.checkpoint) is int else None)
    if where is None:
        if options.checkpoint is None:
            return reversal
        raise DifferentiationError(
            f"`{base.symbol}` has no loop to checkpoint",
            remedy="a loop that can be checkpointed is outermost, runs a number of times that is known when the "
            "derivative is made (from shapes or static integers), and nothing jumps out of it",
        )
    return plan_reversal(_cut(base, where), step, rules)


@lru_cache(maxsize=4)
def _cut(base: ArrayFunction, where: Cut) -> ArrayFunction:
    return cut(base, where)


def derive_reverse(base: ArrayFunction, step: Vjp, rules: Rules, options: Options) -> ArrayFunction:
    """The array function of one reverse step."""
    reversal = reversal_of(base, step, rules, options)
    with reversal.lock:
        sweeps = Sweeps(reversal)
        match step:
            case Augmented():
                result = augmented(sweeps)
            case Pullback():
                result = pullback(sweeps)
            case _:
                result = combined(sweeps)
        sweeps.check()
        return result
