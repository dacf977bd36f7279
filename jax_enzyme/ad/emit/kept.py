"""Memory of the primal that outlives its `free`, because reverse runs a part of the program again that uses it.

    before   %p = call ptr @malloc(i64 %n)    after   %node = call ptr @je.kept.allocate(ptr %alive, ptr %arena, i64 %n)
             ...                                      %p = load ptr, (node + 8)
             call void @free(ptr %p)                  call void @je.kept.free(ptr %alive, ptr %p)

`%alive` is the head of a list of nodes: next, memory, its size in bytes, its shadow where pointers in it change (or
null). A *list* (`je.kept.list`) is what is alive at one time: the number of nodes, the bytes that a copy takes, the
nodes. Memory of each allocation has a list of its own: what one allocation is for is of one kind as a rule, and so are
copies of it, which higher derivatives have to tell numbers from pointers in.
"""

from __future__ import annotations

from jax_enzyme.ad.emit.runtime import Runtime, load_integer
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.values import ConstantInt, Value

_TEXT = """
declare ptr @je.arena.allocate(ptr, i64)
declare void @llvm.memcpy.p0.p0.i64(ptr noalias, ptr noalias, i64, i1 immarg)

define internal ptr @je.kept.allocate(ptr %alive, ptr %arena, i64 %size) nounwind {
  %more = add i64 %size, 15
  %padded = and i64 %more, -16
  %node = call ptr @je.arena.allocate(ptr %arena, i64 32)
  %memory = call ptr @je.arena.allocate(ptr %arena, i64 %padded)
  %next = load ptr, ptr %alive
  store ptr %next, ptr %node
  %memory.at = getelementptr inbounds i8, ptr %node, i64 8
  store ptr %memory, ptr %memory.at
  %size.at = getelementptr inbounds i8, ptr %node, i64 16
  store i64 %size, ptr %size.at
  %shadow.at = getelementptr inbounds i8, ptr %node, i64 24
  store ptr null, ptr %shadow.at
  store ptr %node, ptr %alive
  ret ptr %node
}

define internal void @je.kept.free(ptr %alive, ptr %memory) nounwind {
entry:
  br label %test

test:
  %at = phi ptr [ %alive, %entry ], [ %node, %next ]
  %node = load ptr, ptr %at
  %end = icmp eq ptr %node, null
  br i1 %end, label %exit, label %look

look:
  %memory.at = getelementptr inbounds i8, ptr %node, i64 8
  %found = load ptr, ptr %memory.at
  %same = icmp eq ptr %found, %memory
  br i1 %same, label %unlink, label %next

next:
  br label %test

unlink:
  %rest = load ptr, ptr %node
  store ptr %rest, ptr %at
  br label %exit

exit:
  ret void
}

define internal ptr @je.kept.list(ptr %first, ptr %arena) nounwind {
entry:
  br label %count

count:
  %node = phi ptr [ %first, %entry ], [ %next, %one ]
  %n = phi i64 [ 0, %entry ], [ %n.next, %one ]
  %bytes = phi i64 [ 0, %entry ], [ %bytes.next, %one ]
  %end = icmp eq ptr %node, null
  br i1 %end, label %make, label %one

one:
  %size.at = getelementptr inbounds i8, ptr %node, i64 16
  %size = load i64, ptr %size.at
  %more = add i64 %size, 15
  %padded = and i64 %more, -16
  %shadow.at = getelementptr inbounds i8, ptr %node, i64 24
  %shadow = load ptr, ptr %shadow.at
  %alone = icmp eq ptr %shadow, null
  %twice = shl i64 %padded, 1
  %takes = select i1 %alone, i64 %padded, i64 %twice
  %bytes.next = add i64 %bytes, %takes
  %n.next = add nuw nsw i64 %n, 1
  %next = load ptr, ptr %node
  br label %count

make:
  %words = shl i64 %n, 3
  %room = add i64 %words, 31
  %rounded = and i64 %room, -16
  %list = call ptr @je.arena.allocate(ptr %arena, i64 %rounded)
  store i64 %n, ptr %list
  %bytes.at = getelementptr inbounds i8, ptr %list, i64 8
  store i64 %bytes, ptr %bytes.at
  %entries = getelementptr inbounds i8, ptr %list, i64 16
  br label %fill

fill:
  %item = phi ptr [ %first, %make ], [ %item.next, %put ]
  %k = phi i64 [ 0, %make ], [ %k.next, %put ]
  %last = icmp eq ptr %item, null
  br i1 %last, label %exit, label %put

put:
  %entry.at = getelementptr inbounds ptr, ptr %entries, i64 %k
  store ptr %item, ptr %entry.at
  %k.next = add nuw nsw i64 %k, 1
  %item.next = load ptr, ptr %item
  br label %fill

exit:
  ret ptr %list
}
"""

_COPY = """
declare void @llvm.memcpy.p0.p0.i64(ptr noalias, ptr noalias, i64, i1 immarg)

define internal void @je.kept.NAME(ptr %list, ptr %copy) nounwind {
entry:
  %n = load i64, ptr %list
  %entries = getelementptr inbounds i8, ptr %list, i64 16
  br label %test

test:
  %k = phi i64 [ 0, %entry ], [ %k.next, %next ]
  %at = phi ptr [ %copy, %entry ], [ %at.next, %next ]
  %more = icmp ult i64 %k, %n
  br i1 %more, label %one, label %exit

one:
  %entry.at = getelementptr inbounds ptr, ptr %entries, i64 %k
  %node = load ptr, ptr %entry.at
  %memory.at = getelementptr inbounds i8, ptr %node, i64 8
  %memory = load ptr, ptr %memory.at
  %size.at = getelementptr inbounds i8, ptr %node, i64 16
  %size = load i64, ptr %size.at
  %up = add i64 %size, 15
  %padded = and i64 %up, -16
  call void @llvm.memcpy.p0.p0.i64(ptr MEMORY_COPY, i64 %size, i1 false)
KINDS  %at.one = getelementptr inbounds i8, ptr %at, i64 %padded
  %shadow.at = getelementptr inbounds i8, ptr %node, i64 24
  %shadow = load ptr, ptr %shadow.at
  %alone = icmp eq ptr %shadow, null
  br i1 %alone, label %next, label %both

both:
  call void @llvm.memcpy.p0.p0.i64(ptr SHADOW_COPY, i64 %size, i1 false)
  %at.two = getelementptr inbounds i8, ptr %at.one, i64 %padded
  br label %next

next:
  %at.next = phi ptr [ %at.one, %one ], [ %at.two, %both ]
  %k.next = add nuw nsw i64 %k, 1
  br label %test

exit:
  ret void
}
"""
_KINDS = "  call void @je.kinds.copy(ptr MEMORY_COPY, i64 %size)\n"
_OF_KINDS = "declare void @je.kinds.copy(ptr, ptr, i64)\n"
_WAYS = {
    "save": ("%at, ptr %memory", "%at.one, ptr %shadow"),
    "restore": ("%memory, ptr %at", "%shadow, ptr %at.one"),
}


class KeptMemory:
    """Emits allocations, releases, lists and copies of kept memory; `tells_kinds`: with what the table of kinds knows
    of it."""

    def __init__(self, runtime: Runtime, tells_kinds: bool = False) -> None:
        self._runtime = runtime
        self._tells_kinds = tells_kinds

    def allocate(self, builder: Builder, alive: Value, arena: Value, size: Value) -> tuple[Value, Value]:
        """A node of the list, and its memory."""
        node = builder.call(self._helper("allocate"), [alive, arena, size])
        return node, builder.load(T.PTR, builder.offset(node, 8))

    def follow(self, builder: Builder, node: Value, shadow: Value) -> None:
        """Notes the shadow of a node's memory."""
        builder.store(shadow, builder.offset(node, 24))

    def free(self, builder: Builder, alive: Value, memory: Value) -> None:
        builder.call(self._helper("free"), [alive, memory])

    def list(self, builder: Builder, first: Value, arena: Value) -> Value:
        """What is alive."""
        return builder.call(self._helper("list"), [first, arena])

    def list_bytes(self, builder: Builder, nodes: Value) -> Value:
        """The size of a copy."""
        return load_integer(builder, builder.offset(nodes, 8))

    def save(self, builder: Builder, nodes: Value, to: Value) -> None:
        builder.call(self._copy("save"), [nodes, to])

    def restore(self, builder: Builder, nodes: Value, source: Value) -> None:
        builder.call(self._copy("restore"), [nodes, source])

    def _copy(self, name: str) -> Function:
        memory, shadow = _WAYS[name]
        name += ".kinds" * self._tells_kinds
        text = _COPY.replace("NAME", name).replace("KINDS", _KINDS if self._tells_kinds else "")
        text = text.replace("MEMORY_COPY", memory).replace("SHADOW_COPY", shadow)
        return self._runtime.helper(f"je.kept.{name}", _OF_KINDS + text if self._tells_kinds else text)

    def _helper(self, name: str) -> Function:
        self._runtime.arena("allocate")
        return self._runtime.helper(f"je.kept.{name}", _TEXT)


def padded(builder: Builder, size: Value) -> Value:
    """A number of bytes, rounded up to units of alignment."""
    return builder.binary("and", builder.binary("add", size, ConstantInt(T.I64, 15)), ConstantInt(T.I64, -16))
