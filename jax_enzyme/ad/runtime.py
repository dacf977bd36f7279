"""Helper functions that derived code calls: defined in IR, added to a module when first asked for, inlined by the
optimiser.

    je.arena.allocate(arena, size)   memory for a node of the tape; chunks double in size
    je.arena.reset(arena, mark)      frees what came after `mark`, an earlier copy of the arena
    je.arena.used(arena, mark)       about how many bytes came after `mark`, at least 1
    je.arena.release(arena)          frees all chunks
    je.copy.adjoint.T(to, from, n)   the adjoint of a copy: from[i] += to[i]; to[i] = 0, in an order that is right for
                                     overlapping ranges

An arena is 24 bytes: the chunk in use (whose first words are the one before it and its own size), the next free byte,
the end.
"""

from __future__ import annotations

from collections.abc import Callable

from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.memory import MemoryObject, PointsTo
from jax_enzyme.analysis.places import Places
from jax_enzyme.analysis.tbaa import READS_INTEGER
from jax_enzyme.analysis.words import DTYPES, Words
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import Buffer
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.values import Argument, ConstantInt, Value
from jax_enzyme.rules.declare import Declarations

ARENA = T.ArrayType(24, T.I8)

_ARENA_TEXT = """
declare noalias ptr @malloc(i64)
declare void @free(ptr)

define internal ptr @je.arena.allocate(ptr %arena, i64 %size) nounwind alwaysinline {
entry:
  %next.at = getelementptr inbounds i8, ptr %arena, i64 8
  %end.at = getelementptr inbounds i8, ptr %arena, i64 16
  %next = load ptr, ptr %next.at
  %end = load ptr, ptr %end.at
  %a = ptrtoint ptr %next to i64
  %b = ptrtoint ptr %end to i64
  %room = sub i64 %b, %a
  %fits = icmp ule i64 %size, %room
  br i1 %fits, label %done, label %grow

grow:
  %fresh = call ptr @je.arena.grow(ptr %arena, i64 %size)
  br label %done

done:
  %result = phi ptr [ %next, %entry ], [ %fresh, %grow ]
  %after = getelementptr inbounds i8, ptr %result, i64 %size
  store ptr %after, ptr %next.at
  ret ptr %result
}

define internal ptr @je_arena_allocate(ptr %arena, i64 %bytes) nounwind {
  %padded = add i64 %bytes, 15
  %size = and i64 %padded, -16
  %result = call ptr @je.arena.allocate(ptr %arena, i64 %size)
  ret ptr %result
}

define internal ptr @je.arena.grow(ptr %arena, i64 %size) nounwind noinline {
  %end.at = getelementptr inbounds i8, ptr %arena, i64 16
  %chunk = load ptr, ptr %arena
  %start = ptrtoint ptr %chunk to i64
  %end = load ptr, ptr %end.at
  %stop = ptrtoint ptr %end to i64
  %old = sub i64 %stop, %start
  %double = shl i64 %old, 1
  %capped = call i64 @llvm.umin.i64(i64 %double, i64 67108864)
  %wanted = add i64 %size, 4096
  %bytes = call i64 @llvm.umax.i64(i64 %capped, i64 %wanted)
  %new = call ptr @malloc(i64 %bytes)
  store ptr %chunk, ptr %new
  %size.at = getelementptr inbounds i8, ptr %new, i64 8
  store i64 %bytes, ptr %size.at
  store ptr %new, ptr %arena
  %new.end = getelementptr inbounds i8, ptr %new, i64 %bytes
  store ptr %new.end, ptr %end.at
  %first = getelementptr inbounds i8, ptr %new, i64 16
  ret ptr %first
}

define internal void @je.arena.reset(ptr %arena, ptr %mark) nounwind noinline {
entry:
  %kept = load ptr, ptr %mark
  %first = load ptr, ptr %arena
  br label %test

test:
  %chunk = phi ptr [ %first, %entry ], [ %before, %body ]
  %done = icmp eq ptr %chunk, %kept
  br i1 %done, label %exit, label %body

body:
  %before = load ptr, ptr %chunk
  call void @free(ptr %chunk)
  br label %test

exit:
  store ptr %kept, ptr %arena
  %next.from = getelementptr inbounds i8, ptr %mark, i64 8
  %next.to = getelementptr inbounds i8, ptr %arena, i64 8
  %next = load ptr, ptr %next.from
  store ptr %next, ptr %next.to
  %end.from = getelementptr inbounds i8, ptr %mark, i64 16
  %end.to = getelementptr inbounds i8, ptr %arena, i64 16
  %end = load ptr, ptr %end.from
  store ptr %end, ptr %end.to
  ret void
}

define internal i64 @je.arena.used(ptr %arena, ptr %mark) nounwind noinline {
entry:
  %mark.at = getelementptr inbounds i8, ptr %mark, i64 8
  %mark.next = load ptr, ptr %mark.at
  %from = ptrtoint ptr %mark.next to i64
  %now.at = getelementptr inbounds i8, ptr %arena, i64 8
  %now = load ptr, ptr %now.at
  %to = ptrtoint ptr %now to i64
  %last = load ptr, ptr %arena
  %kept = load ptr, ptr %mark
  %same = icmp eq ptr %last, %kept
  br i1 %same, label %here, label %first

here:
  %distance = sub i64 %to, %from
  br label %exit

first:
  %start = ptrtoint ptr %last to i64
  %part = sub i64 %to, %start
  br label %test

test:
  %chunk = phi ptr [ %last, %first ], [ %before, %body ]
  %sum = phi i64 [ %part, %first ], [ %more, %body ]
  %before = load ptr, ptr %chunk
  %done = icmp eq ptr %before, %kept
  br i1 %done, label %exit, label %body

body:
  %size.at = getelementptr inbounds i8, ptr %before, i64 8
  %size = load i64, ptr %size.at
  %more = add i64 %sum, %size
  br label %test

exit:
  %bytes = phi i64 [ %distance, %here ], [ %sum, %test ]
  %result = call i64 @llvm.umax.i64(i64 %bytes, i64 1)
  ret i64 %result
}

define internal void @je.arena.release(ptr %arena) nounwind noinline {
entry:
  %first = load ptr, ptr %arena
  br label %test

test:
  %chunk = phi ptr [ %first, %entry ], [ %before, %body ]
  %done = icmp eq ptr %chunk, null
  br i1 %done, label %exit, label %body

body:
  %before = load ptr, ptr %chunk
  call void @free(ptr %chunk)
  br label %test

exit:
  ret void
}

declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)
"""

_COPY_TEXT = """
define internal void @je.copy.adjoint.TYPE(ptr %to, ptr %from, i64 %bytes) nounwind {
entry:
  %count = udiv i64 %bytes, SIZE
  %empty = icmp eq i64 %count, 0
  br i1 %empty, label %exit, label %start

start:
  %down = icmp ult ptr %to, %from
  %last = sub i64 %count, 1
  br label %loop

loop:
  %k = phi i64 [ 0, %start ], [ %k.next, %loop ]
  %mirror = sub i64 %last, %k
  %i = select i1 %down, i64 %mirror, i64 %k
  %to.at = getelementptr inbounds TYPE, ptr %to, i64 %i
  %from.at = getelementptr inbounds TYPE, ptr %from, i64 %i
  %x = load TYPE, ptr %to.at, align ALIGN
  store TYPE ZERO, ptr %to.at, align ALIGN
  %y = load TYPE, ptr %from.at, align ALIGN
  %sum = fadd reassoc nsz contract TYPE %y, %x
  store TYPE %sum, ptr %from.at, align ALIGN
  %k.next = add nuw nsw i64 %k, 1
  %more = icmp ult i64 %k.next, %count
  br i1 %more, label %loop, label %exit

exit:
  ret void
}
"""


class FloatKinds:
    """Which floating-point types each memory object holds: declared for buffers, seen in accesses for the rest. `words`
    knows at which places."""

    def __init__(
        self, points_to: PointsTo, buffers: dict[Argument, Buffer], places: Callable[[], Places] | None = None
    ) -> None:
        self.words = Words(points_to, buffers, places)
        self._kinds: dict[MemoryObject, set[T.FloatType]] = {}
        self._copies: list[tuple[frozenset[MemoryObject], frozenset[MemoryObject]]] = []
        for argument, buffer in buffers.items():
            kind = DTYPES.get(buffer.dtype)
            item = points_to.objects.get(argument)
            if kind is not None and item is not None:
                self._kinds.setdefault(item, set()).add(kind)
        for function in points_to.functions:
            for instruction in function.instructions():
                self._see(points_to, instruction)
        changed = True
        while changed:
            changed = False
            for a, b in self._copies:
                both = set().union(*(self._kinds.get(o, set()) for o in a | b))
                for item in a | b:
                    if not both <= self._kinds.setdefault(item, set()):
                        self._kinds[item] |= both
                        changed = True

    def of(self, item: MemoryObject) -> frozenset[T.FloatType]:
        return frozenset(self._kinds.get(item, ()))

    def _see(self, points_to: PointsTo, instruction: I.Instruction) -> None:
        if isinstance(instruction, I.Load):
            self._note(points_to, instruction.operands[0], instruction.type)
        elif isinstance(instruction, I.Store):
            self._note(points_to, instruction.operands[1], instruction.operands[0].type)
        elif isinstance(instruction, I.CallBase) and len(instruction.operands) > 3:
            a, b = (points_to.of(v) for v in instruction.operands[:2])
            name = instruction.callee.name
            if a and b and ("memcpy" in name or "memmove" in name):
                self._copies.append((a, b))

    def _note(self, points_to: PointsTo, pointer: Value, type_: T.Type) -> None:
        kind = T.scalar(type_)
        if isinstance(kind, T.FloatType):
            for item in points_to.of(pointer):
                self._kinds.setdefault(item, set()).add(kind)


class Runtime:
    """Adds helpers to `module` on demand. `kinds` answers which numbers an object holds."""

    def __init__(self, module: Module, kinds: FloatKinds) -> None:
        self.module = module
        self.kinds = kinds
        self.declarations = Declarations(module)
        self._layout = DataLayout(module)

    def arena(self, name: str) -> Function:
        """`allocate`, `reset`, `used` or `release`."""
        return self.helper(f"je.arena.{name}", _ARENA_TEXT)

    def copy_adjoint(self, kind: T.FloatType) -> Function:
        size = str(self._layout.store_size(kind))
        text = _COPY_TEXT.replace("TYPE", str(kind)).replace("SIZE", size).replace("ALIGN", size)
        zero = {"half": "0xH0000", "bfloat": "0xR0000"}.get(kind.kind, "0.0")
        return self.helper(f"je.copy.adjoint.{kind}", text.replace("ZERO", zero))

    def allocate(self, builder: Builder, size: int) -> Value:
        """Zeroed memory of constant size (the caller frees it)."""
        calloc = self.declarations.function("calloc", T.FunctionType(T.PTR, (T.I64, T.I64)))
        return builder.call(calloc, [ConstantInt(T.I64, max(size, 1)), ConstantInt(T.I64, 1)])

    def take(self, builder: Builder, size: Value) -> Value:
        """Memory that holds anything (the caller frees it)."""
        malloc = self.declarations.function("malloc", T.FunctionType(T.PTR, (T.I64,)))
        return builder.call(malloc, [size])

    def clear(self, builder: Builder, pointer: Value, size: Value) -> None:
        """Fills memory with zeros."""
        type_ = T.FunctionType(T.VOID, (T.PTR, T.I8, T.I64, T.I1))
        memset = self.declarations.function("llvm.memset.p0.i64", type_)
        builder.call(memset, [pointer, ConstantInt(T.I8, 0), size, ConstantInt(T.I1, 0)])

    def copy(self, builder: Builder, to: Value, source: Value, size: int) -> None:
        """Copies a constant number of bytes."""
        type_ = T.FunctionType(T.VOID, (T.PTR, T.PTR, T.I64, T.I1))
        memcpy = self.declarations.function("llvm.memcpy.p0.p0.i64", type_)
        builder.call(memcpy, [to, source, ConstantInt(T.I64, size), ConstantInt(T.I1, 0)])

    def free(self, builder: Builder, pointer: Value) -> None:
        free = self.declarations.function("free", T.FunctionType(T.VOID, (T.PTR,)))
        builder.call(free, [pointer])

    def helper(self, name: str, text: str) -> Function:
        """A function of the module that is defined in `text`, maybe beside others."""
        if name not in self.module.functions:
            helper = parse(text)
            for function in helper.functions.values():
                present = self.module.functions.get(function.name)
                if present is not None:
                    _redirect(helper, function, present)
                else:
                    self.module.functions[function.name] = function
                    for instruction in function.instructions():
                        if isinstance(instruction, I.Load) and instruction.type == T.I64:  # sizes and counts
                            instruction.metadata.append(READS_INTEGER)
        return self.module.functions[name]


def load_integer(builder: Builder, pointer: Value) -> Value:
    """Reads a count that the engine keeps in memory."""
    loaded = builder.load(T.I64, pointer)
    assert isinstance(loaded, I.Load)
    loaded.metadata.append(READS_INTEGER)
    return loaded


def _redirect(helper: Module, old: Function, new: Function) -> None:
    """Makes the helper's code refer to a function that the module already has."""
    for function in helper.functions.values():
        for instruction in function.instructions():
            instruction.operands = [new if v is old else v for v in instruction.operands]
