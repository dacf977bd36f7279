"""Reverse mode of device functions: the memory that a thread's derivative needs besides its parameters.

tape                       combined: local memory where it is small, else a scratch buffer, [slot][thread]
nodes of the tape          combined: a scratch buffer that grows, [byte][thread]; `ad.device.counting` finds its size
shadow of a local array    local memory, zero
shadow of a shared array   shared memory, zeroed by all threads of the block, with a barrier after
shadow of an input that    scratch: what is added there is never read
nobody asks for
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from jax_enzyme.ad.device.again import runs_again
from jax_enzyme.ad.device.groups import carried_out
from jax_enzyme.ad.device.sums import BALLOT, BLOCK_SUMS, meet
from jax_enzyme.ad.device.threads import ALIGNED_BARRIER, GridThreads, barrier, barrier_function, refuse_disorder
from jax_enzyme.ad.emit.nodes import thread_arena
from jax_enzyme.ad.emit.runtime import defined, load_integer
from jax_enzyme.ad.facts.causes import SPLIT, THREAD_POINTERS, THREAD_RECURSION
from jax_enzyme.ad.facts.copying import computed_again, whole
from jax_enzyme.ad.frame import Frame
from jax_enzyme.ad.plan.tape import Tape
from jax_enzyme.ad.reversal import Reversal, plan_reversal
from jax_enzyme.ad.sweeps import Sweeps
from jax_enzyme.ad.vjp import augmented, combined, pullback, with_what_is_read
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction, Augmented, Buffer, Pullback, Vjp
from jax_enzyme.ir.builder import Builder, const_int, zero
from jax_enzyme.ir.device import DeviceFunction
from jax_enzyme.ir.module import Function, GlobalVariable, Module, callee_name
from jax_enzyme.ir.values import ConstantNull, Value
from jax_enzyme.rules.user import rules_of
from jax_enzyme.signature.launch import Shape
from jax_enzyme.transform.device.canonical import keep_aliases_true
from jax_enzyme.transform.device.flat import SHARED, is_dynamic
from jax_enzyme.transform.device.registers import thread_in_block
from jax_enzyme.transform.device.sources import with_sources
from jax_enzyme.transform.output import drop_output
from jax_enzyme.transform.rewriting import add_parameter, pass_argument, substitute

_LOCAL_BYTES = 512
"""A root frame of at most so many bytes per thread lies in local memory, where the optimiser makes registers of it."""

ROOM = "tape_room"
"""The buffer that says how many bytes of the tape a thread may have."""

_ZERO_TEXT = """
define internal void @je.zero.UNIT(ptr %memory, i32 %thread, i32 %threads, i32 %count) nounwind {
entry:
  %some = icmp ult i32 %thread, %count
  br i1 %some, label %loop, label %exit

loop:
  %i = phi i32 [ %thread, %entry ], [ %next, %loop ]
  %wide = zext nneg i32 %i to i64
  %at = getelementptr inbounds UNIT, ptr %memory, i64 %wide
  store UNIT 0, ptr %at
  %next = add nuw i32 %i, %threads
  %more = icmp ult i32 %next, %count
  br i1 %more, label %loop, label %exit

exit:
  ret void
}
"""


def derive_reverse(base: DeviceFunction, step: Vjp) -> ArrayFunction:
    """The array function of one reverse step, flat.

    Raises DifferentiationError where the tape would have more in it than numbers.
    """
    reversal = reversal_of(base, step)
    _require_numbers(reversal)
    if type(step) is not Vjp and not is_static(reversal):
        raise SPLIT.error()
    execution = reversal.facts.execution
    assert isinstance(execution, GridThreads)
    refuse_disorder(reversal.facts, execution)
    with reversal.lock:
        sweeps = Sweeps(reversal)
        match step:
            case Augmented():
                result = augmented(sweeps)
            case Pullback():
                result = pullback(sweeps, DeviceFrame)
            case _:
                result = combined(sweeps, DeviceFrame)
                shared = [g for n, g in result.module.globals.items() if n.startswith(SHARED)]
                result = with_what_is_read(sweeps, result, shared)
        sweeps.check()
    if type(step) is Vjp:
        functions = result.module.functions
        _ask_before_both(functions[f"{base.symbols[0]}.reverse"], functions[result.symbol])
    for suffix in ("forward", "reverse"):
        part = result.module.functions.get(f"{base.symbols[0]}.{suffix}")
        if part is not None:
            unwritten = tuple(b.io == "in" for b in base.buffers)
            keep_aliases_true(part, result.module, unwritten + (False,) * (len(part.arguments) - len(unwritten)))
            if execution.convergence(reversal.facts).leaves_block:
                _unalign(part, result.module)
    return carried_out(result, base.module)


def _ask_before_both(sweep: Function, caller: Function) -> None:
    """Who gets past conditions, the lanes tell each other (`ad.device.sums`) when the kernel begins: behind the forward
    sweep, some would ask others that wait for them at a barrier in it. In place."""
    again = computed_again(Builder.on_top(caller))
    calls = [i for i in caller.instructions() if isinstance(i, I.CallBase) and i.callee is sweep]
    for ballot in [i for i in sweep.entry.instructions if callee_name(i) == BALLOT]:
        for call in calls:
            pass_argument(call, again(ballot))
        substitute(sweep, {ballot: add_parameter(sweep, "lanes", (), ballot.type)})


def _unalign(function: Function, module: Module) -> None:
    """In a derivative, a thread that leaves early still has to reverse what it did: it is not gone at once."""
    for instruction in function.instructions():
        if callee_name(instruction) == ALIGNED_BARRIER:
            instruction.operands[-1] = barrier_function(module, aligned=False)


def reversal_of(base: DeviceFunction, step: Vjp) -> Reversal:
    """The plan of a reverse step."""
    together = _planned(base, step.wanted, step.seeded, True) if type(step) is Vjp else None
    if together is not None and together.root.plan.tape.root.size <= _LOCAL_BYTES:
        return together
    return _planned(base, step.wanted, step.seeded, False)


def splits(base: DeviceFunction, step: Vjp) -> bool:
    """Whether a gradient is best two kernels, with a tape between them."""
    split = reversal_of(base, Augmented(step.wanted, step.seeded))
    together = reversal_of(base, Vjp(step.wanted, step.seeded))
    is_local = together.facts.execution.threads is None and not together.needs_arena
    return is_static(split) and not (is_local and runs_again(split, together))


@lru_cache(maxsize=8)
def _planned(base: DeviceFunction, wanted: tuple[bool, ...], seeded: tuple[bool, ...], local_tape: bool) -> Reversal:
    # What is printed has been printed by the primal.
    unwritten = tuple(b.io == "in" for b in base.buffers)
    module = with_sources(drop_output(base.module), base.symbols[0], base.shape, unwritten)
    function = ArrayFunction(module, base.symbols[0], base.buffers)
    outputs = [i for i, b in enumerate(base.buffers) if b.io == "out"]
    inputs = [i for i, b in enumerate(base.buffers) if b.io == "in"]
    execution = GridThreads(module, base.shape, local_tape, outputs, inputs)
    return plan_reversal(function, Vjp(wanted, seeded), rules_of(module), execution=execution)


def first_node(tape: Tape) -> int:
    """Where the nodes of a thread begin: behind the root frame, where that lies in the same memory."""
    return 0 if tape.threads is None else whole(tape.root.size)


def is_static(reversal: Reversal) -> bool:
    """Whether the tape of a thread has a size that is known now."""
    return reversal.splits and not reversal.needs_arena


def _require_numbers(reversal: Reversal) -> None:
    if reversal.inner:
        raise THREAD_RECURSION.error(names=", ".join(f"`{f.name}`" for f in reversal.inner))
    if reversal.carries_shadows or reversal.root.plan.tape.has_pointers:
        raise THREAD_POINTERS.error()


class DeviceFrame(Frame):
    """What a thread makes at its start."""

    def __init__(self, sweeps: Sweeps, target: Function, first: int, buffers: tuple[Buffer, ...]) -> None:
        super().__init__(sweeps, target, first, buffers)
        self._named = {b.name: a for b, a in zip(buffers, target.arguments, strict=True) if b.of < 0}

    @property
    def _shape(self) -> Shape:
        execution = self._reversal.facts.execution
        assert isinstance(execution, GridThreads)
        return execution.shape

    @classmethod
    def more(cls, reversal: Reversal, combined: bool) -> tuple[Buffer, ...]:
        found: list[Buffer] = []
        tape, threads = reversal.root.plan.tape, reversal.facts.execution.threads
        if combined and tape.frames:
            assert tape.node_threads is not None
            found.append(Buffer(ROOM, "i64", (1,), "scratch", "tape", zero=True))
            found.append(Buffer("tape", "u8", (0, tape.node_threads.count), "scratch", "tape", grows=True))
        elif combined and threads is not None and tape.root.size:
            found.append(Buffer("tape", "u8", (tape.root.size, threads.count), "scratch", "tape"))
        for index in _unasked(reversal):
            buffer = reversal.base.buffers[index]
            name = f"{buffer.name}_bar"
            found.append(replace(buffer, name=name, io="scratch", role="tape", of=index, zero=False, discard=False))
        return tuple(found)

    def tape(self) -> Value:
        tape = self._reversal.root.plan.tape
        return self._given[-1] if tape.threads is not None and -1 in self._given else self.room(tape.root.size)

    def arena(self) -> Value:
        tape = self._reversal.root.plan.tape
        if not tape.frames:
            return ConstantNull(T.PTR)
        # The buffer that grows is known as that of the tape: the last one that belongs to none of the base's.
        limit = load_integer(self.builder, self._named[ROOM])
        return thread_arena(self.builder, first_node(tape), limit, self._given[-1])

    def unread(self, argument: Value, buffer: Buffer) -> Value:
        return argument

    def room(self, size: int, zeroed: bool = False) -> Value:
        if size == 0:
            return ConstantNull(T.PTR)
        return self._local(size, zeroed)

    def shadows(self) -> list[Value]:
        found = super().shadows()
        module = self._runtime.module
        sums = [
            g for n, g in module.globals.items() if n.startswith(BLOCK_SUMS) and n not in self._reversal.module.globals
        ]
        for variable in sums:
            self._clear(variable, self._layout.alloc_size(variable.value_type))
        if any(isinstance(v, GlobalVariable) for v in found):
            barrier(module, self.builder, aligned=True)
        elif sums:
            meet(module, self.builder)
        return found

    def _global_shadow(self, variable: GlobalVariable) -> Value:
        if not variable.name.startswith(SHARED):
            return super()._global_shadow(variable)
        module = self._runtime.module
        type_ = variable.value_type
        shadow = GlobalVariable(
            T.PTR, type_, zero(type_), False, ("internal",), ("align 16",), name=f"{variable.name}.bar"
        )
        module.globals[shadow.name] = shadow
        self._clear(shadow, self._shape.shared if is_dynamic(variable) else self._layout.alloc_size(type_))
        return shadow

    def _clear(self, variable: GlobalVariable, size: int) -> None:
        """All threads of the block set shared memory to zero."""
        module = self._runtime.module
        unit = next(u for u in (8, 4, 2, 1) if size % u == 0)
        thread = thread_in_block(module, self.builder, self._shape)
        counts = [const_int(T.I32, self._shape.threads), const_int(T.I32, size // unit)]
        kind = f"i{8 * unit}"
        zeros = defined(module, f"je.zero.{kind}", _ZERO_TEXT.replace("UNIT", kind))
        self.builder.call(zeros, [variable, thread, *counts])


def _unasked(reversal: Reversal) -> list[int]:
    """The buffers that have a shadow only because pointers may lead to them or to others."""
    arguments = reversal.root.function.arguments
    shadowed = {o.site for o in reversal.shadow_objects}
    step = reversal.step
    found: list[int] = []
    for index, (argument, buffer) in enumerate(zip(arguments, reversal.base.buffers, strict=True)):
        given = buffer.is_floating and (buffer.io != "in" or step.wanted[index])
        if argument in shadowed and not given:
            found.append(index)
    return found
