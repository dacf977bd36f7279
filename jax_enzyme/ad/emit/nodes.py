"""Nodes: the frames of loops without a bound, one per iteration, as the sweeps make, find and leave them; and rows of
such frames.

`Nodes`        nodes of one thread: memory from an arena (`ad.emit.runtime`), known by its address, each linked to
               the one before it
`ThreadNodes`  nodes of many threads: places in one buffer, known by a number of bytes. What lies at byte b of a thread
               that is number t of n lies at b n, interleaved with the same of the others (`ad.facts.threads.Threads`).
               A thread takes them in order, so that the node before has no link to it unless inner loops take some too

The arena of a thread among many is 24 bytes as well: the next free byte, the end, and where the buffer is.
"""

from __future__ import annotations

from jax_enzyme.ad.emit.kept import padded
from jax_enzyme.ad.emit.runtime import ARENA, Runtime, load_integer
from jax_enzyme.ad.facts.copying import whole
from jax_enzyme.ad.facts.threads import Threads
from jax_enzyme.ad.plan.tape import Slot, Tape, address, marked
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, zero
from jax_enzyme.ir.marks import mark_tape
from jax_enzyme.ir.values import ConstantInt, ConstantNull, Value

_LIMIT = 8
_MEMORY = 16

TAKE = "je.thread.take"
_TAKE_TEXT = """
declare void @llvm.trap()

define internal i64 @je.thread.take(ptr %arena, i64 %size) nounwind alwaysinline {
entry:
  %limit.at = getelementptr inbounds i8, ptr %arena, i64 8
  %next = load i64, ptr %arena
  %limit = load i64, ptr %limit.at
  %after = add nuw nsw i64 %next, %size
  %fits = icmp ule i64 %after, %limit
  br i1 %fits, label %done, label %full

full:
  call void @llvm.trap()
  unreachable

done:
  store i64 %after, ptr %arena
  ret i64 %next
}
"""


class Nodes:
    """What the sweeps of one routine know about nodes: each is held in variables of `type`, and there is none yet where
    that is `none`."""

    type: T.Type = T.PTR
    none: Value = ConstantNull(T.PTR)

    def __init__(self, tape: Tape, runtime: Runtime) -> None:
        self._tape = tape
        self._runtime = runtime

    def make(self, builder: Builder, arena: Value, loop: Loop, before: Value) -> Value:
        """A new node; `before` is that of the iteration before."""
        size = whole(self._tape.frames[loop].size)
        node = builder.call(self._runtime.arena("allocate"), [arena, ConstantInt(T.I64, size)])
        builder.store(before, node)
        return node

    def row(self, builder: Builder, arena: Value, loop: Loop, length: Value) -> Value:
        """A row of so many frames, each of which is an iteration's own."""
        step = ConstantInt(T.I64, self._tape.row_step(loop).count)
        size = builder.binary("mul", length, step)
        row = builder.call(self._runtime.arena("allocate"), [arena, padded(builder, size)])
        mark_tape(row, common=False, slots=True)
        return row

    def frame(self, builder: Builder, node: Value) -> Value:
        """What addresses in a node are counted from."""
        return node

    def read(self, builder: Builder, pointer: Value) -> Value:
        """A node that a slot holds."""
        return builder.load(self.type, pointer)

    def before(self, builder: Builder, loop: Loop, node: Value) -> Value:
        """The node of the iteration before."""
        return builder.load(self.type, node)


class ThreadNodes(Nodes):
    """`arena` is where the function that is being emitted has its arena; `prologue` is where it begins."""

    type = T.I64
    none = zero(T.I64)

    def __init__(self, tape: Tape, runtime: Runtime, threads: Threads, prologue: Builder, arena: Value) -> None:
        super().__init__(tape, runtime)
        self._row = T.ArrayType(threads.count, T.I8)
        self._memory = prologue.load(T.PTR, prologue.offset(arena, _MEMORY))

    def make(self, builder: Builder, arena: Value, loop: Loop, before: Value) -> Value:
        size = ConstantInt(T.I64, self._tape.node_size(loop))
        node = builder.call(self._runtime.helper(TAKE, _TAKE_TEXT), [arena, size])
        link = self._tape.slots.get(("before", loop))
        if link is not None:
            marked(link, builder.store(before, self._at(builder, link, node)))
        return node

    def frame(self, builder: Builder, node: Value) -> Value:
        return builder.gep(self._row, self._memory, [node])

    def read(self, builder: Builder, pointer: Value) -> Value:
        return load_integer(builder, pointer)

    def before(self, builder: Builder, loop: Loop, node: Value) -> Value:
        link = self._tape.slots.get(("before", loop))
        if link is not None:
            return self.read(builder, self._at(builder, link, node))
        return builder.binary("sub", node, ConstantInt(T.I64, self._tape.node_size(loop)))

    def _at(self, builder: Builder, link: Slot, node: Value) -> Value:
        return address(builder, link, self.frame(builder, node), _no_iteration)


def _no_iteration(loop: Loop) -> Value:
    raise AssertionError("a link is one per node")


def thread_arena(builder: Builder, first: int, limit: Value, memory: Value) -> Value:
    """The arena of a thread whose nodes begin at byte `first` and end before byte `limit` of its part of `memory`."""
    arena = builder.alloca(ARENA, align=16)
    builder.store(ConstantInt(T.I64, first), arena)
    builder.store(limit, builder.offset(arena, _LIMIT))
    builder.store(memory, builder.offset(arena, _MEMORY))
    return arena
