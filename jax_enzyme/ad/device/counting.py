"""How much tape a thread takes, before it takes any.

A loop whose number of iterations only the run knows has a node of the tape per iteration. What counts them is the
kernel itself without all that does not decide how its loops run:

    before    %j = phi i64 [ 0, %entry ], [ %j.next, %loop ]       after    %j = phi i64 [ 0, %entry ], [ %j.next, ...
              %s = phi double [ 0.0, %entry ], [ %t, %loop ]                %bytes = add i64 ..., 16
              %t = ... @llvm.exp.f64(double %s) ...                         br i1 %more, label %loop, label %exit
              br i1 %more, label %loop, label %exit                exit:    atomicrmw umax ptr %room, i64 %bytes
    exit:     store double %s, ptr %y

LLVM often makes a formula of what is left. A store is left where a load is left that may read what it stored. Memory of
the thread or its block is as good as new when the kernel starts once more; buffers are not. So where a buffer that the
kernel writes, or the order of atomic operations, decides how long loops run, the kernel is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jax_enzyme.ad.device.convergence import meets
from jax_enzyme.ad.device.reverse import ROOM, first_node
from jax_enzyme.ad.device.threads import is_shared_memory
from jax_enzyme.ad.emit.runtime import load_integer
from jax_enzyme.ad.facts.causes import COUNTED_BUFFER, COUNTED_ORDER
from jax_enzyme.ad.facts.copying import CodeCopy, array_function
from jax_enzyme.ad.reversal import Reversal
from jax_enzyme.analysis.accesses import Access, accesses
from jax_enzyme.analysis.flow import rule_of
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.objects import MemoryObject, call_effect, is_memory_free
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import Buffer
from jax_enzyme.ir.builder import Builder, const_int, zero
from jax_enzyme.ir.clone import with_room
from jax_enzyme.ir.device import Count, DeviceFunction
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.passes import run
from jax_enzyme.ir.reach import made_of, reached
from jax_enzyme.ir.values import Argument, BasicBlock, Value
from jax_enzyme.rules.effects import Effect
from jax_enzyme.transform.device import restore

_DROP_LOOPS = ("sroa", "adce", "simplifycfg", "loop-simplify", "lcssa", "loop-deletion", "simplifycfg")
"""What is between two loops is not seen to be dead any more when the kernel is optimised as a whole."""

_ACTS = (Effect.BARRIER, Effect.FENCE, Effect.ABORT, Effect.TRAP, Effect.THROW)


def count_of(base: DeviceFunction, reversal: Reversal, buffers: tuple[Buffer, ...]) -> Count | None:
    """What counts the tape of a combined derivative with these buffers; None where its size is known.

    Raises DifferentiationError where counting first would not tell how long loops run.
    """
    if not reversal.root.plan.tape.frames:
        return None
    room = next(i for i, b in enumerate(buffers) if b.name == ROOM)
    module = with_room(reversal.module)
    target = array_function(f"{base.symbols[0]}.count", buffers)
    module.functions[target.name] = target
    _Counting(reversal, target).emit(room)
    del module.functions[base.symbols[0]]
    restored, shape = restore(run(module, _DROP_LOOPS), base.shape)
    return Count(DeviceFunction(restored, (target.name,), buffers, shape), room)


def widened(count: Count, buffers: tuple[Buffer, ...]) -> Count:
    """The same count for a derivative of the derivative, which takes more buffers behind the others."""
    function = count.function
    (symbol,) = function.symbols
    module = with_room(function.module)
    old = module.functions[symbol]
    own = old.arguments
    more = [Argument(T.PTR, (), i, name=f"more{i}") for i in range(len(own), len(buffers))]
    kind = T.FunctionType(T.I64, (T.PTR,) * len(buffers))
    module.functions[symbol] = Function(
        T.PTR, kind, arguments=[*own, *more], blocks=old.blocks, attributes=old.attributes, name=symbol
    )
    return replace(count, function=replace(function, module=module, buffers=buffers))


class _Counting(CodeCopy):
    def __init__(self, reversal: Reversal, target: Function) -> None:
        routine = reversal.root
        super().__init__(routine.code.cfg.rpo, dict(zip(routine.function.arguments, target.arguments, strict=False)))
        self._reversal = reversal
        self._target = target

    def value(self, value: Value) -> Value:
        return super().value(self._reversal.originals.get(value, value) if isinstance(value, Function) else value)

    def emit(self, room: int) -> None:
        code, tape = self._reversal.root.code, self._reversal.root.plan.tape
        kept, at = _Needed(self._reversal).found, self.builder
        taken = at.alloca(T.I64)
        at.store(const_int(T.I64, first_node(tape)), taken)
        ends: list[BasicBlock] = []
        for block, twin in self.blocks.items():
            at.block = twin
            for phi in (i for i in block.instructions if isinstance(i, I.Phi) and i in kept):
                self.values[phi] = self.phi(phi, self.value)
            loop = code.loop_of(block)
            if loop is not None and loop.header is block and loop in tape.frames:
                size = const_int(T.I64, tape.node_size(loop))
                at.store(at.binary("add", load_integer(at, taken), size, ("nuw", "nsw")), taken)
            for instruction in block.instructions:
                if isinstance(instruction, I.Return):
                    ends += _report(at, self._target.arguments[room], load_integer(at, taken))
                elif instruction in kept and not isinstance(instruction, I.Phi):
                    self.twin(instruction)
        self.finish(self._target)
        self._target.blocks += ends


def _report(at: Builder, room: Value, taken: Value) -> list[BasicBlock]:
    """`*room = max(*room, taken); return 0`: most threads see that there is nothing to do. The blocks that end it."""
    more, done = BasicBlock(name="more"), BasicBlock(name="done")
    at.cond_br(at.icmp("ugt", taken, load_integer(at, room)), more, done)
    larger = Builder(more)
    larger.insert(I.AtomicRMW(T.I64, "atomicrmw", [room, taken], "umax", "monotonic"))
    larger.br(done)
    Builder(done).ret(zero(T.I64))
    return [more, done]


class _Needed:
    """The instructions that decide how control flows, barriers, and what these read: `found`."""

    def __init__(self, reversal: Reversal) -> None:
        self._facts = reversal.facts
        function = reversal.root.function
        self._accesses: dict[Value, list[Access]] = {}
        for access in accesses(self._facts.points_to, function, DataLayout(reversal.module)):
            self._accesses.setdefault(access.instruction, []).append(access)
        self._read: set[MemoryObject] = set()
        self.found: set[Value] = set()
        self._need([i for i in function.instructions() if self._acts(i)])
        writers = [i for i, found in self._accesses.items() if any(a.writes for a in found)]
        while more := [i for i in writers if i not in self.found and self._is_read(i)]:
            self._need(more)
        self._check()

    def _need(self, pending: Sequence[Value]) -> None:
        needed = reached(
            pending,
            lambda v: made_of(v) if not isinstance(v, I.Return) else (),
            lambda v: v not in self.found and isinstance(v, I.Instruction),
        )
        self.found.update(needed)
        for access in (a for value in needed for a in self._accesses.get(value, ())):
            self._read |= access.objects if access.reads else frozenset()

    def _is_read(self, instruction: Value) -> bool:
        written = frozenset[MemoryObject]().union(*(a.objects for a in self._accesses[instruction] if a.writes))
        return bool(written) and self._facts.points_to.may_meet(written, self._read)

    def _acts(self, instruction: I.Instruction) -> bool:
        """Whether an instruction does more than to compute or store something."""
        if not isinstance(instruction, I.CallBase):
            return instruction.is_terminator
        effect = call_effect(instruction)
        if effect is not None:
            return effect in _ACTS or meets(instruction)
        return rule_of(instruction, self._facts.rules) is None and not is_memory_free(instruction)

    def _check(self) -> None:
        """Refuses what would count otherwise than it runs later."""
        used = {v for i in self.found if isinstance(i, I.Instruction) for v in i.operands}
        for instruction in (i for i in self._accesses if i in self.found):
            assert isinstance(instruction, I.Instruction)
            if isinstance(instruction, I.AtomicRMW | I.CmpXchg) and instruction in used:
                raise self._facts.refused(instruction, COUNTED_ORDER)
            for item in (o for a in self._accesses[instruction] if a.writes for o in a.objects):
                if item.kind != "stack" and not is_shared_memory(item):
                    name = f"`{item.site.name}`" if item.site is not None else "memory of unknown origin"
                    raise self._facts.refused(instruction, COUNTED_BUFFER, name=name)
