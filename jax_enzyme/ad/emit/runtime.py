"""Helper functions that derived code calls: defined in IR, added to a module when first asked for, inlined by the
optimiser.

    je.copy.adjoint.T(to, from, n)   the adjoint of a copy: from[i] += to[i]; to[i] = 0, in an order that is right for
                                     overlapping ranges
    je.copy.adjoint.T.apart          the same for ranges that do not overlap
    je.copy.aligned.T(to, from, n)   the same of numbers at multiples of their size, wherever the copy starts. One that
                                     takes them elsewhere makes NaN of adjoints that are not zero: then nobody knows
                                     where the numbers are
    je.copy.moved(to, from, n)       the same where from.shadow holds no adjoint: from = to; to = 0, byte for byte

The functions of arenas (`rules/arena.ll`) are only declared here: forward mode of what is emitted knows what they do.
"""

from __future__ import annotations

from collections.abc import Iterable

from jax_enzyme.ad.facts.half_numbers import JOIN, JOIN_NAME, JOINED_WORDS
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.tbaa import READS_INTEGER, number_access
from jax_enzyme.analysis.words import Words
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int, zero_text
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.values import ConstantInt, Value
from jax_enzyme.rules.declare import Declarations

ARENA = T.ArrayType(24, T.I8)

_OWN_MEMORY = "memory(argmem: readwrite, inaccessiblemem: readwrite)"
_ARENA_FUNCTIONS = {
    "allocate": (T.FunctionType(T.PTR, (T.PTR, T.I64)), ("nounwind", "willreturn", _OWN_MEMORY)),
    "reset": (T.FunctionType(T.VOID, (T.PTR, T.PTR)), ("nounwind", "willreturn")),
    "used": (T.FunctionType(T.I64, (T.PTR, T.PTR)), ("nounwind", "willreturn")),
    "release": (T.FunctionType(T.VOID, (T.PTR,)), ("nounwind", "willreturn")),
}

_COPY_TEXT = """
define internal void @NAME(ptr %to, ptr %from, i64 %bytes) nounwind {
entry:
  %count = udiv i64 %bytes, SIZE
  %empty = icmp eq i64 %count, 0
  br i1 %empty, label %exit, label %start

start:
DOWN  br label %loop

loop:
  %k = phi i64 [ 0, %start ], [ %k.next, %loop ]
MIRROR  %to.at = getelementptr inbounds TYPE, ptr %to, i64 %ITEM
  %from.at = getelementptr inbounds TYPE, ptr %from, i64 %ITEM
  %x = load TYPE, ptr %to.at, align ALIGN
  store TYPE ZERO, ptr %to.at, align ALIGN
  %y = load TYPE, ptr %from.at, align ALIGN
  %sum = fadd reassoc nsz contract TYPE %y, %x
JOIN  store TYPE TOTAL, ptr %from.at, align ALIGN
  %k.next = add nuw nsw i64 %k, 1
  %more = icmp ult i64 %k.next, %count
  br i1 %more, label %loop, label %exit

exit:
  ret void
}
"""
_DOWN = """  %down = icmp ult ptr %to, %from
  %last = sub i64 %count, 1
"""
_MIRROR = """  %mirror = sub i64 %last, %k
  %i = select i1 %down, i64 %mirror, i64 %k
"""
_ALIGNED_TEXT = """
define internal void @NAME(ptr %to, ptr %from, i64 %bytes) nounwind {
entry:
  %address = ptrtoint ptr %from to i64
  %other = ptrtoint ptr %to to i64
  %apart = sub i64 %other, %address
  %between = and i64 %apart, MASK
  %keeps = icmp eq i64 %between, 0
  br i1 %keeps, label %aligned, label %test

aligned:
  %back = sub i64 0, %address
  %rest = and i64 %back, MASK
  %skip = call i64 @llvm.umin.i64(i64 %rest, i64 %bytes)
  %first.to = getelementptr inbounds i8, ptr %to, i64 %skip
  %first.from = getelementptr inbounds i8, ptr %from, i64 %skip
  %less = sub i64 %bytes, %skip
  call void @EACH(ptr %first.to, ptr %first.from, i64 %less)
  br label %exit

test:
  %k = phi i64 [ 0, %entry ], [ %k.next, %next ]
  %more = icmp ult i64 %k, %bytes
  br i1 %more, label %next, label %exit

next:
  %at = getelementptr inbounds i8, ptr %to, i64 %k
  %byte = load i8, ptr %at, align 1
  %nothing = icmp eq i8 %byte, 0
  %k.next = add nuw i64 %k, 1
  br i1 %nothing, label %test, label %lost

lost:
  call void @llvm.memset.p0.i64(ptr %from, i8 -1, i64 %bytes, i1 false)
  br label %exit

exit:
  ret void
}

declare i64 @llvm.umin.i64(i64, i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @EACH(ptr, ptr, i64)
"""

_MOVE_TEXT = """
define internal void @je.copy.moved(ptr %to, ptr %from, i64 %bytes) nounwind {
entry:
  call void @llvm.memcpy.p0.p0.i64(ptr %from, ptr %to, i64 %bytes, i1 false)
  call void @llvm.memset.p0.i64(ptr %to, i8 0, i64 %bytes, i1 false)
  ret void
}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""


class Runtime:
    """Adds helpers to `module` on demand. `words` answers which numbers an object holds."""

    def __init__(self, module: Module, words: Words) -> None:
        self.module = module
        self.words = words
        self.declarations = Declarations(module)
        self._layout = DataLayout(module)

    def arena(self, name: str) -> Function:
        """`allocate`, `reset`, `used` or `release`."""
        type_, attributes = _ARENA_FUNCTIONS[name]
        function = self.declarations.function(f"je.arena.{name}", type_, attributes)
        if function.is_declaration and T.is_pointer(type_.result):
            function.return_attributes = ("noalias",)
        return function

    def copy_adjoint(self, kind: T.FloatType, of_halves: bool = False, apart: bool = False) -> Function:
        """The adjoint of a copy of numbers; `of_halves`: of words whose halves may be integers; `apart`: between ranges
        that do not overlap, so that any order is right."""
        name = ("je.copy.words" if of_halves else f"je.copy.adjoint.{kind}") + ".apart" * apart
        join, total = (JOINED_WORDS, "%word") if of_halves else ("", "%sum")
        down, mirror, item = ("", "", "k") if apart else (_DOWN, _MIRROR, "i")
        size = str(self._layout.alloc_size(kind))
        text = _COPY_TEXT.replace("DOWN", down).replace("MIRROR", mirror).replace("ITEM", item)
        text = text.replace("NAME", name).replace("JOIN", join).replace("TOTAL", total)
        text = text.replace("TYPE", str(kind)).replace("SIZE", size).replace("ALIGN", size)
        return self.helper(name, text.replace("ZERO", zero_text(kind)))

    def join(self) -> Function:
        """What two shadows of words have together, some of whose halves may be integers."""
        return self.helper(JOIN_NAME, JOIN)

    def aligned_copy_adjoint(self, kind: T.FloatType, of_halves: bool = False) -> Function:
        """The same where pointers may lie as well: what becomes of their shadows does not matter (`copies`)."""
        each = self.copy_adjoint(kind, of_halves)
        mask = str(self._layout.alloc_size(kind) - 1)
        name = each.name.replace("adjoint", "aligned").replace("words", "aligned.words")
        text = _ALIGNED_TEXT.replace("NAME", name).replace("EACH", each.name).replace("MASK", mask)
        return self.helper(name, text)

    def move_adjoint(self) -> Function:
        return self.helper("je.copy.moved", _MOVE_TEXT)

    def allocate(self, builder: Builder, size: int) -> Value:
        """Zeroed memory of constant size (the caller frees it)."""
        return self.declarations.memory(builder, "calloc", ConstantInt(T.I64, max(size, 1)), ConstantInt(T.I64, 1))

    def take(self, builder: Builder, size: Value | int) -> Value:
        """Memory that holds anything (the caller frees it)."""
        wanted = ConstantInt(T.I64, size) if isinstance(size, int) else size
        return self.declarations.memory(builder, "malloc", wanted)

    def clear(self, builder: Builder, pointer: Value, size: Value) -> None:
        """Fills memory with zeros."""
        self.declarations.memory(builder, "memset", pointer, ConstantInt(T.I8, 0), size)

    def copy(self, builder: Builder, to: Value, source: Value, size: int) -> None:
        """Copies a constant number of bytes."""
        self.declarations.memory(builder, "memcpy", to, source, ConstantInt(T.I64, size))

    def move(self, builder: Builder, to: Value, source: Value, size: Value) -> None:
        """Copies so many bytes, which may overlap."""
        self.declarations.memory(builder, "memmove", to, source, size)

    def apart_from_texts(
        self, builder: Builder, to: Value, source: Value, texts: Iterable[tuple[Value, int]], length: Value
    ) -> Value:
        """How many bytes of a copy of shadows there are to move, all or none: of texts that are their own shadows, with
        their sizes, there are none, and where they go to is cleared."""
        own: Value | None = None
        for text, size in texts:
            address, start = (builder.cast("ptrtoint", end, T.I64) for end in (source, text))
            here = builder.icmp("ult", builder.binary("sub", address, start), const_int(T.I64, size))
            own = here if own is None else builder.binary("or", own, here)
        if own is None:
            return length
        nothing = const_int(T.I64, 0)
        self.clear(builder, to, builder.select(own, length, nothing))
        return builder.select(own, nothing, length)

    def free(self, builder: Builder, pointer: Value) -> None:
        self.declarations.memory(builder, "free", pointer)

    def helper(self, name: str, text: str) -> Function:
        return defined(self.module, name, text)


def defined(module: Module, name: str, text: str) -> Function:
    """A function of a module that is defined in `text`, maybe beside others: those that are there already are used."""
    if name not in module.functions:
        helper = parse(text)
        present: dict[Value, Value] = {
            f: module.functions[f.name] for f in helper.functions.values() if f.name in module.functions
        }
        for function in helper.functions.values():
            if function in present:
                continue
            module.functions[function.name] = function
            for instruction in function.instructions():
                instruction.operands = [present.get(v, v) for v in instruction.operands]
                if isinstance(instruction, I.Load) and instruction.type == T.I64:  # sizes and counts
                    instruction.metadata.append(READS_INTEGER)
                elif isinstance(instruction, I.Load | I.Store):
                    instruction.metadata += number_access(I.accessed_value(instruction).type)
    return module.functions[name]


def load_integer(builder: Builder, pointer: Value) -> I.Load:
    """Reads a count that the engine keeps in memory."""
    loaded = builder.load(T.I64, pointer)
    loaded.metadata.append(READS_INTEGER)
    return loaded
