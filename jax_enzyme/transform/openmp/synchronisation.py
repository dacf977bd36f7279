"""Where threads wait for one another, or learn which of them they are: iterations that do, or run behind that, may
write to memory that is their thread's by agreement alone, of which one thread has one for all of them.

    #pragma omp critical
    own = work + 64 * count++;
    #pragma omp for
    for (...) own[...] = ...;
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.objects import named_functions
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.inlining import expanded_attributes
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.reach import Reached, reached
from jax_enzyme.ir.values import BasicBlock, GlobalValue, InlineAsm, Value, int_value
from jax_enzyme.transform.openmp.calls import LOCKING, PREFIX, REDUCE, WAITING, calls_of

_HARMLESS = ("global_thread_num", "for_static_", "dist_for_static_", "fork_", "push_", "barrier", "flush")
_TELLING = (*LOCKING, *WAITING, f"{PREFIX}ordered", f"{PREFIX}threadprivate_cached", "sched_getcpu", "gettid")
"""Calls behind which a thread may know what others do not."""
_ATOMICALLY = 2


class Synchronisation:
    """The places of a program where threads synchronise; `regions` are the bodies of its parallel regions, `handed` the
    functions that the program is given pointers to."""

    def __init__(self, module: Module, regions: Iterable[Function], handed: Iterable[str] = ()) -> None:
        self._module = module
        self._functions = [f for f in module.functions.values() if f.blocks]
        self._regions = {f.entry for f in regions if f.blocks}
        self._by_address = [f for f in known_by_address(module, handed) if not f.blocks or f.entry not in self._regions]
        self._preds: dict[BasicBlock, list[BasicBlock]] = {}
        self._callers: dict[BasicBlock, list[BasicBlock]] = {}
        """Of the first block of a function: the blocks that name it."""
        self._used: set[Value] = set()
        self._passed: set[BasicBlock] = set()
        for function in self._functions:
            for block in function.blocks:
                self._note(block)
            self._passed.update(_other_threads(function))

    def touch(self, loop: Loop) -> bool:
        """Do iterations wait for one another, access memory atomically, or have memory of their thread's, or does the
        region before them? Then one may write what another accesses."""
        if self._any(loop.blocks, (), _is_synchronisation, self._waits):
            return True
        before = self._before(loop.header)
        once = {f for f in self._functions if f.entry in before and self._is_called_once(f)}
        return self._any(before, once, self._tells, lambda called: called.name.startswith(_TELLING))

    def _any(
        self,
        blocks: Iterable[BasicBlock],
        known: Collection[Function],
        found: Callable[[I.Instruction], bool],
        called: Callable[[Function], bool],
    ) -> bool:
        """Is there such an instruction, or the name of such a function, in blocks and in what they call, other than
        `known` functions, whose blocks are among these?"""
        seen = Reached(b for b in blocks if b not in self._passed)
        for block in seen:
            for instruction in block.instructions:
                if found(instruction):
                    return True
                for function in self._may_call(instruction):
                    if called(function):
                        return True
                    if not _is_of_openmp(function) and function not in known:  # whose bodies are ours
                        seen.add(b for b in function.blocks if b not in self._passed)
        return False

    def _may_call(self, instruction: I.Instruction) -> Iterable[Function]:
        """The functions that an instruction names; where it calls a pointer, all that may be there."""
        if calls_a_pointer(instruction):
            return (*self._by_address, *(v for v in instruction.operands if isinstance(v, Function)))
        return (v for v in instruction.operands if isinstance(v, Function))

    def _is_called_once(self, function: Function) -> bool:
        """Is what lies behind the place in it that a region has come to never before that?"""
        callers = self._callers.get(function.entry, ())
        before = reached((p for c in callers for p in self._preds.get(c, ())), lambda b: self._preds.get(b, ()))
        return len(callers) == 1 and callers[0] not in before

    def _note(self, block: BasicBlock) -> None:
        for successor in block.successors:
            self._preds.setdefault(successor, []).append(block)
        for instruction in block.instructions:
            for value in instruction.operands:
                if isinstance(value, Function) and value.blocks:
                    self._callers.setdefault(value.entry, []).append(block)
                elif isinstance(value, I.AtomicRMW):
                    self._used.add(value)

    def _before(self, block: BasicBlock) -> Collection[BasicBlock]:
        """What a region may have come by when it comes to a block, callers included."""
        callers = {b: found for b, found in self._callers.items() if b not in self._regions}
        return reached([block], lambda b: (*self._preds.get(b, ()), *callers.get(b, ())))

    def _tells(self, instruction: I.Instruction) -> bool:
        """Does a thread learn here what another one may not?"""
        return _is_synchronisation(instruction) and not (
            isinstance(instruction, I.Store | I.Fence)
            or (isinstance(instruction, I.AtomicRMW) and instruction not in self._used)
        )

    def _waits(self, function: Function) -> bool:
        if function.name.startswith(PREFIX):
            return not function.name.removeprefix(PREFIX).startswith(_HARMLESS)
        return function.name.startswith(("omp_", *WAITING)) and "memory(none)" not in expanded_attributes(
            self._module, function.attributes
        )


def calls_a_pointer(instruction: I.Instruction) -> bool:
    """Does an instruction call a function that is not named?"""
    return isinstance(instruction, I.CallBase) and not isinstance(instruction.operands[-1], Function | InlineAsm)


def known_by_address(module: Module, handed: Iterable[str]) -> set[Function]:
    """The functions whose addresses variables have, functions hand on, or the program is handed: who calls a pointer
    may call them."""
    given = (value for name in handed if (value := module.symbol(name)) is not None)
    held = (g.initializer for g in module.globals.values() if g.initializer is not None)
    passed = (o for f in module.functions.values() for i in f.instructions() for o in _passed(i))
    return {function for value in (*given, *held, *passed) for function in named_functions(value)}


def _passed(instruction: I.Instruction) -> Iterable[Value]:
    """What an instruction may hand a function's address on by: who knows it may call it in a region."""
    return instruction.arguments if isinstance(instruction, I.CallBase) else instruction.operands


def is_thread_local(value: GlobalValue) -> bool:
    """Has each thread a variable of this name of its own?"""
    return any(word.startswith("thread_local") for word in getattr(value, "prefix", ()))


def _is_of_openmp(function: Function) -> bool:
    return function.name.startswith((PREFIX, "omp_"))


def _is_synchronisation(instruction: I.Instruction) -> bool:
    match instruction:
        case I.AtomicRMW() | I.CmpXchg() | I.Fence():
            return True
        case I.Load() | I.Store():
            if not I.is_plain(instruction):
                return True
        case _:
            pass
    return any(isinstance(v, GlobalValue) and is_thread_local(v) for v in instruction.operands)


def _other_threads(function: Function) -> Iterable[BasicBlock]:
    """The blocks in which threads add to a reduction atomically, each for itself: not those of the only one."""
    for block, call in calls_of(function, REDUCE):
        choice = block.terminator
        if isinstance(choice, I.Switch) and choice.operands[0] is call:
            ends = choice.targets[:1]
            ways = [b for c, b in choice.cases if int_value(c) == _ATOMICALLY]
            yield from _between(ways, ends)


def _between(starts: list[BasicBlock], ends: list[BasicBlock]) -> Iterable[BasicBlock]:
    return reached(starts, lambda b: b.successors, lambda b: b not in ends)
