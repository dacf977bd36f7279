"""A log of what the iterations of loops with directives do to memory, written by the program itself, for those who look
for races.

before    loop: ... store double %v, ptr %p ... br i1 %more, label %loop, label %end, !llvm.loop !7
after     ... row(ENTER) ... loop: ... row(WRITE, %p, 8); store double %v, ptr %p ... row(NEXT) ... end: row(LEAVE) ...

The log is a parameter of the kernel's, with rows as in `transform.cuda.accesses`; every function finds it in a
variable. Rows are in the order of time, of the one thread that runs. Besides accesses they say where loops, regions and
locks begin and end, and from when on memory is a variable's or an allocation's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.classes import dataclass, field
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.debug import location
from jax_enzyme.ir.inlining import expanded_attributes
from jax_enzyme.ir.marks import Mark, marks_of, unmark
from jax_enzyme.ir.module import Function, GlobalVariable, Module, Uses, callee_name, used_at, uses
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import BasicBlock, ConstantNull, Value
from jax_enzyme.rules.effects import allocated
from jax_enzyme.transform.cuda import accesses as kinds
from jax_enzyme.transform.cuda.accesses import Rows, rows_of
from jax_enzyme.transform.openmp.calls import LOCKING, PREFIX, UNLOCKING
from jax_enzyme.transform.openmp.reductions import leave_whole
from jax_enzyme.transform.openmp.regions import is_region
from jax_enzyme.transform.openmp.synchronisation import is_thread_local
from jax_enzyme.transform.openmp.teams import TEAM_FUNCTION
from jax_enzyme.transform.rewriting import place, redirect_phis

ENTER, NEXT, LEAVE, REGION, REGION_END, ACQUIRE, RELEASE, MEMORY, OWN, VARIABLE, ATOMIC_READ = range(16, 27)
"""Kinds of rows beside those of `transform.cuda.accesses`. A loop is entered (size 1: certainly within a region), goes
on to its next iteration, and is left; a parallel region begins and ends; a lock (its address) is taken and released;
memory is new from here on, is each thread's own for good, or is a variable of the program's (its number)."""

_LOG = "je.race_log"
_OF_RUNTIME = (PREFIX, "omp_", "je_", "__tgt_")
_Size = int | Value | tuple[Value, ...]
"""Of so many bytes; several numbers are multiplied."""
_Row = tuple[Value, _Size, int]
"""Where, how much, what."""


@dataclass
class LoopLog:
    """Adds the log to a program, in place. `places` are the source lines of what is logged, where they are known;
    `variables` the names of the program's variables; `loops` how many are watched; `asks` is whether a region asks for
    its thread, whose members are not told apart here; `alone`, whether each loop is a region by itself, as those over
    Numba's `prange` are."""

    places: list[str | None] = field(default_factory=list[str | None])
    loops: int = 0
    asks: bool = False
    alone: bool = False
    variables: list[str] = field(default_factory=list[str])

    def watch(self, module: Module, symbol: str) -> None:
        """The kernel gets the log as its last parameter; loops are serial."""
        leave_whole(module)
        kernel = module.functions[symbol]
        kinds.AccessLog().add_argument(kernel)
        module.globals[_LOG] = GlobalVariable(T.PTR, T.PTR, ConstantNull(T.PTR), prefix=("internal",), name=_LOG)
        functions = [f for f in module.functions.values() if f.blocks and not f.name.startswith(_OF_RUNTIME)]
        loops = {f: list(_marked(module, f)) for f in functions}
        self.loops = sum(map(len, loops.values()))
        self.asks = any(name.startswith(TEAM_FUNCTION) for name in module.functions)
        self.alone = not any(name.startswith(PREFIX) for name in module.functions)
        inside = {b for found in loops.values() for loop in found for b in loop.blocks}
        operands = [v for b in inside for i in b.instructions for v in i.operands]
        called = reached(operands, _called, _is_defined)
        for function in functions:
            _Watch(self, module, function).run(loops[function], inside, function in called)
        self._note_memory(module, kernel)

    def _note_memory(self, module: Module, kernel: Function) -> None:
        """Where arguments and variables are, once at the beginning."""
        log, at, layout = kernel.arguments[-1], Builder.behind_variables(kernel), DataLayout(module)
        at.store(log, module.globals[_LOG], 8)
        rows = Rows.of_nobody(module, log)
        rows.add_arguments(at, kernel)
        for variable in module.globals.values():
            if variable.is_constant or variable.initializer is None or variable.name.startswith(("llvm.", "je.")):
                continue
            size = layout.alloc_size(variable.value_type)
            if is_thread_local(variable):
                rows.add(at, variable, size, OWN)
            else:
                rows.add(at, variable, size, VARIABLE | len(self.variables) << 8)
                self.variables.append(variable.name)


class _Watch:
    """One function."""

    def __init__(self, log: LoopLog, module: Module, function: Function) -> None:
        self._log = log
        self._module = module
        self._function = function
        self._layout, self._users = DataLayout(module), uses(function)
        self._ends: dict[tuple[BasicBlock, BasicBlock], BasicBlock] = {}

    def run(self, loops: list[Loop], inside: set[BasicBlock], called: bool) -> None:
        function = self._function
        words = expanded_attributes(self._module, function.attributes)
        if "memory(none)" in words:
            return
        function.attributes = tuple(w for w in words if not w.startswith("memory("))
        behind_calls: list[tuple[BasicBlock, list[I.Instruction]]] = []
        for block in list(function.blocks):
            kept: list[I.Instruction] = []
            locals_: list[I.Instruction] = []
            for instruction in block.instructions:
                if isinstance(instruction, I.Alloca):
                    kept.append(instruction)
                    locals_ += self._made(instruction, self._behind(instruction))
                    continue
                kept += locals_
                locals_ = []
                before = self._before(instruction) if called or block in inside else []
                kept += [*self._made(instruction, before), instruction]
                rows = self._made(instruction, self._behind(instruction))
                if isinstance(instruction, I.Invoke):
                    behind_calls.append((instruction.targets[0], rows))
                else:
                    kept += rows
            block.instructions = kept
        # Where a call ends that may throw: such a block is that of one call, as compilers make it.
        ways = Counter(target for block in function.blocks for target in block.successors)
        for block, rows in behind_calls:
            if ways[block] == 1:
                first = next(n for n, i in enumerate(block.instructions) if not isinstance(i, I.Phi))
                block.instructions[first:first] = rows
        for loop in reversed(loops):  # inner ones first
            self._note_loop(loop)
        if is_region(self._module, function):
            self._note_region()

    def _made(self, instruction: I.Instruction, rows: list[_Row]) -> list[I.Instruction]:
        """What writes rows about an instruction."""
        at = Builder(BasicBlock())
        if rows:
            number = self._place(instruction)
            for pointer, size, kind in rows:
                self._row(at, pointer, size, kind | number << 8)
        place(instruction, at.block.instructions)
        return at.block.instructions

    def _place(self, instruction: I.Instruction) -> int:
        self._log.places.append(location(self._module, instruction))
        return len(self._log.places) - 1

    def _row(self, at: Builder, pointer: Value, size: _Size, what: int) -> None:
        if isinstance(size, tuple):
            size = at.product(size)
        log = at.load(T.PTR, self._module.globals[_LOG], 8)
        Rows.of_nobody(self._module, log).add(at, pointer, size, what)

    # -- accesses and locks

    def _before(self, instruction: I.Instruction) -> list[_Row]:
        if callee_name(instruction).startswith(UNLOCKING):
            return [(_lock(instruction), 0, RELEASE)]
        made = rows_of(instruction, self._layout, _doing)
        return [row for row in made if not isinstance(I.base_of(row[0]), I.Alloca)]

    def _behind(self, instruction: I.Instruction) -> list[_Row]:
        name = callee_name(instruction)
        if isinstance(instruction, I.Alloca) and _is_given_away(instruction, self._users):
            each = const_int(T.I64, self._layout.alloc_size(instruction.allocated_type))
            return [(instruction, (instruction.operands[0], each), MEMORY)]
        if not isinstance(instruction, I.CallBase):
            return []
        if name.startswith(LOCKING):
            return [(_lock(instruction), 0, ACQUIRE)]
        if name == "__kmpc_threadprivate_cached":
            return [(instruction, instruction.arguments[3], OWN)]
        sizes = allocated(name)
        return [] if sizes is None else [(instruction, tuple(instruction.arguments[n] for n in sizes), MEMORY)]

    # -- loops and regions

    def _note_region(self) -> None:
        self._row(Builder.behind_variables(self._function), ConstantNull(T.PTR), 0, REGION)
        for block in self._function.blocks:
            if isinstance(block.terminator, I.Return):
                self._row(Builder.at_end(block), ConstantNull(T.PTR), 0, REGION_END)

    def _note_loop(self, loop: Loop) -> None:
        latches = loop.latches
        number = self._place(latches[0].terminator)
        certain = self._log.alone or any(Mark.EXCLUSIVE in marks_of(self._module, b.terminator) for b in latches)
        for latch in latches:
            unmark(self._module, latch.terminator)
        entering = [b for b in self._function.blocks if b not in loop.blocks and loop.header in b.successors]
        edges = [(b, loop.header, ENTER) for b in entering]
        edges += [(b, loop.header, NEXT) for b in latches]
        edges += [(b, t, LEAVE) for b, t in dict.fromkeys(loop.exit_edges)]
        for first, target, kind in edges:
            source = self._ends.get((first, target), first)
            if any(isinstance(i, I.LandingPad) for i in target.instructions):
                continue
            between = BasicBlock(name="noted")
            at = Builder(between)
            self._row(at, ConstantNull(T.PTR), int(certain), kind | number << 8)
            at.br(target)
            place(source.terminator, between.instructions)
            terminator = source.terminator
            terminator.targets = [between if t is target else t for t in terminator.targets]
            redirect_phis(target, source, between)
            self._function.blocks.append(between)
            self._ends[first, target] = between


def _marked(module: Module, function: Function) -> Iterator[Loop]:
    """The loops that a directive shares out, outer ones first; not those of tasks."""
    if not any(Mark.PARALLEL in marks_of(module, b.terminator) for b in function.blocks):
        return
    for loop in Loops.of(function):
        marks = {mark for latch in loop.latches for mark in marks_of(module, latch.terminator)}
        if Mark.PARALLEL in marks and Mark.TASKS not in marks:
            yield loop


def _called(value: Value) -> list[Value]:
    return [o for i in value.instructions() for o in i.operands] if isinstance(value, Function) else []


def _is_defined(value: Value) -> bool:
    return isinstance(value, Function) and bool(value.blocks) and not value.name.startswith(_OF_RUNTIME)


def _doing(access: I.Instruction) -> int:
    match access:
        case I.Load():
            return ATOMIC_READ if access.ordering else kinds.READ
        case I.Store():
            return kinds.ATOMIC if access.ordering else kinds.WRITE
        case _:
            return kinds.ATOMIC


def _lock(instruction: I.Instruction) -> Value:
    """What a call takes or releases: the last pointer that it is given."""
    assert isinstance(instruction, I.CallBase)
    return [v for v in instruction.arguments if T.is_pointer(v.type)][-1]


def _is_given_away(local: I.Alloca, users: Uses) -> bool:
    """May another function see a local variable, or is its address kept?"""

    def gives(user: I.Instruction, index: int) -> bool:
        if isinstance(user, I.Load | I.Store):
            return isinstance(user, I.Store) and index == 0
        return not callee_name(user).startswith(("llvm.lifetime.", "llvm.memset.", "llvm.memcpy."))

    return any(gives(user, index) for user, index, _ in used_at(local, users))
