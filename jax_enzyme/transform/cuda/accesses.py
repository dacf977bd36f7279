"""A log of what every thread of a grid does to memory, written by the kernel itself, for those who look for races.

before    define void @f(ptr %x)               { ... store double %v, ptr %p ... }
after     define void @f(ptr %x, ptr %race_log) { ... call void @je.access(ptr %race_log, ptr %p, i32 8, i32 <what>,
                                                      i32 <block>, i32 <thread>); store double %v, ptr %p ... }

The log is an array of rows of 24 bytes, all integers:

    row 0     i64 rows written (counted on when the log is full), i64 rows that it has room for, i64 0
    row n     i64 address, i32 bytes, i32 what, i32 block, i32 thread

`what` is a kind (below) and, from bit 8 on, a number: the access's place in `AccessLog.places`, or for the memory of an
argument the argument's number. A thread also notes the meetings that it comes to. As the CPU runs all threads of a
block from one meeting to the next, how many meetings of its own a thread has noted before is its epoch.
"""

from __future__ import annotations

from collections.abc import Callable

from jax_enzyme.analysis.accesses import direct
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.classes import dataclass, field
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.debug import location
from jax_enzyme.ir.module import Function, Module, callee_name, numbered
from jax_enzyme.ir.values import BasicBlock, Value
from jax_enzyme.signature.launch import Shape
from jax_enzyme.transform.cuda import marks
from jax_enzyme.transform.rewriting import add_parameter, place

READ, WRITE, ATOMIC, MEET_BLOCK, MEET_WARP, ARGUMENT, SHARED, PRIVATE = range(8)
"""The kinds of rows. The last three say what memory is: an argument's, shared by a block, or a thread's own."""

ROW = 24
_RECORD = "je.access"


@dataclass
class AccessLog:
    """Adds the log to one kernel. `places` are the source lines of its accesses, where they are known."""

    places: list[str | None] = field(default_factory=list[str | None])

    def add_argument(self, kernel: Function) -> None:
        """The log becomes the kernel's last parameter."""
        add_parameter(kernel, "race_log")

    def watch(self, module: Module, kernel: Function, shape: Shape) -> None:
        """Every access of one thread and every meeting is noted first. What is its own for certain is left out."""
        layout = DataLayout(module)
        top = Builder(BasicBlock())
        rows = Rows(module, kernel.arguments[-1], *_who(module, top, shape))
        for block in kernel.blocks:
            kept: list[I.Instruction] = []
            for instruction in block.instructions:
                at = Builder(BasicBlock())
                self._note(module, layout, at, instruction, rows)
                place(instruction, at.block.instructions)
                kept += [*at.block.instructions, instruction]
            block.instructions = kept
        variables = [i for i in kernel.instructions() if isinstance(i, I.Alloca)]
        for variable in variables:
            rows.add(top, variable, layout.alloc_size(variable.allocated_type), PRIVATE)
        first = Builder.behind_variables(kernel).place
        kernel.entry.instructions[first:first] = top.block.instructions

    def _note(self, module: Module, layout: DataLayout, at: Builder, instruction: I.Instruction, rows: Rows) -> None:
        match instruction:
            case I.Call() if marks.is_meeting(instruction):
                rows.add(at, rows.log, 0, MEET_BLOCK if marks.group_of(instruction) == marks.MEET_BLOCK else MEET_WARP)
                return
            case I.Call() if callee_name(instruction).startswith(marks.SHUFFLE):
                rows.add(at, rows.log, 0, MEET_WARP)
                return
            case _:
                made = [row for row in rows_of(instruction, layout) if not _own(row[0])]
        if not made:
            return
        number = len(self.places)
        self.places.append(location(module, instruction))
        for pointer, size, kind in made:
            rows.add(at, pointer, size, kind | number << 8)


def doing(access: I.Instruction) -> int:
    """What a load, a store or an atomic operation does."""
    return READ if isinstance(access, I.Load) else WRITE if isinstance(access, I.Store) else ATOMIC


def note_shared(module: Module, at: Builder, kernel: Function, pointer: Value, size: int) -> None:
    """Says that memory is shared by a block."""
    Rows.of_nobody(module, kernel.arguments[-1]).add(at, pointer, size, SHARED)


def note_arguments(module: Module, kernel: Function) -> None:
    """Says where the arrays are that the kernel was given; once, when the function is that of the grid."""
    Rows.of_nobody(module, kernel.arguments[-1]).add_arguments(Builder.at_end(kernel.entry), kernel)


@dataclass(frozen=True)
class Rows:
    """What the rows of one function have in common."""

    module: Module
    log: Value
    block: Value
    thread: Value

    @staticmethod
    def of_nobody(module: Module, log: Value) -> Rows:
        return Rows(module, log, const_int(T.I32, 0), const_int(T.I32, 0))

    def add_arguments(self, at: Builder, kernel: Function) -> None:
        """Says where the arrays are that a kernel was given, whose last parameter is the log."""
        for number, argument in enumerate(kernel.arguments[:-1]):
            if argument.type == T.PTR:
                self.add(at, argument, 0, ARGUMENT | number << 8)

    def add(self, at: Builder, pointer: Value, size: int | Value, what: int) -> None:
        """Writes a row."""
        count = const_int(T.I32, size) if isinstance(size, int) else at.cast("trunc", size, T.I32)
        at.call(_record(self.module), [self.log, pointer, count, const_int(T.I32, what), self.block, self.thread])


def rows_of(
    instruction: I.Instruction, layout: DataLayout, kind: Callable[[I.Instruction], int] = doing
) -> list[tuple[Value, int | Value, int]]:
    """What an instruction accesses by itself: where, how many bytes, and what it does there, by its `kind`."""
    found = direct(instruction, layout)
    if isinstance(instruction, I.Call):
        return [(pointer, size, WRITE if writes else READ) for pointer, size, writes in found]
    return [(pointer, size, kind(instruction)) for pointer, size, _ in found]


def _own(pointer: Value) -> bool:
    """Does a pointer lead into a local variable of the thread?"""
    return isinstance(I.base_of(pointer), I.Alloca)


def _who(module: Module, at: Builder, shape: Shape) -> tuple[Value, Value]:
    """The numbers of the running block and thread."""
    return _number(module, at, marks.BLOCKS, shape.grid), _number(module, at, marks.THREADS, shape.block)


def _number(module: Module, at: Builder, names: tuple[str, ...], extents: tuple[int, int, int]) -> Value:
    total: Value = const_int(T.I32, 0)
    for name, extent in reversed(list(zip(names, extents, strict=True))):
        if extent > 1:
            index = at.call(marks.index(module, name, extent), [])
            total = at.binary("add", at.binary("mul", total, const_int(T.I32, extent)), index)
    return total


def _record(module: Module) -> Function:
    """The function that writes one row; a row that does not fit is counted only."""
    if _RECORD in module.functions:
        return module.functions[_RECORD]
    kind = T.FunctionType(T.VOID, (T.PTR, T.PTR, T.I32, T.I32, T.I32, T.I32))
    arguments = numbered(kind.parameters)
    log, address, *numbers = arguments
    entry, write, done = BasicBlock(name="entry"), BasicBlock(name="write"), BasicBlock(name="done")
    at = Builder(entry)
    row = at.binary("add", at.load(T.I64, log, 8), const_int(T.I64, 1))
    at.store(row, log, 8)
    at.cond_br(at.icmp("ult", row, at.load(T.I64, at.offset(log, 8), 8)), write, done)
    at = Builder(write)
    start = at.gep(T.I8, log, [at.binary("mul", row, const_int(T.I64, ROW))])
    at.store(at.cast("ptrtoint", address, T.I64), start, 8)
    for n, number in enumerate(numbers):
        at.store(number, at.offset(start, 8 + 4 * n), 4)
    at.br(done)
    Builder(done).ret()
    module.functions[_RECORD] = Function(
        T.PTR, kind, arguments, [entry, write, done], ("internal",), attributes=("nounwind",), name=_RECORD
    )
    return module.functions[_RECORD]
