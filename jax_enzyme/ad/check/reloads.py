"""The part of the structural check that is about memory: what reverse loads again has not been overwritten.

The argument is simpler than the plan's: after the load, control cannot come to anything that may write there. Memory is
told apart by where pointers come from, and by what they may point to only where that does not tell; writes that come
later, by the iterations in which they run; those in a loop that reads a copy, by where its iterations come to
(`analysis.alias`: an argument that both share).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from functools import cached_property

from jax_enzyme.ad.check.errors import EmissionError
from jax_enzyme.ad.check.tape_addresses import name_of
from jax_enzyme.ad.facts.functions import Execution
from jax_enzyme.ad.plan.snapshots import Snapshot
from jax_enzyme.analysis.accesses import Access, accesses
from jax_enzyme.analysis.alias import Alias
from jax_enzyme.analysis.fixpoint import fixpoint
from jax_enzyme.analysis.instances import Instances
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.objects import MemoryObject, call_effect
from jax_enzyme.analysis.repetition import is_repeated
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.module import Function, GlobalVariable, callee_of, callers_of
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import Argument, BasicBlock, ConstantNull, Value
from jax_enzyme.rules.effects import Effect


class ReloadCheck:
    """The argument for all loads of one function. Sets of writes are the bits of integers: of this function's, and of
    those that it calls, in the order in which they are met."""

    def __init__(
        self,
        code: Function,
        points_to: PointsTo,
        layout: DataLayout,
        execution: Execution,
        alias: Alias,
    ) -> None:
        self._alias = alias
        self._layout = layout
        self._writes: list[Access] = []
        self._code = code
        self._points_to = points_to
        self._execution = execution
        self._loops = Loops.of(code)
        self._cfg, self._home = self._loops.cfg, self._loops.home
        self._killing = self._freed = self._loose = self._everywhere = 0
        self._to_object: dict[MemoryObject, int] = {}
        self._to_root: dict[Value, int] = {}
        own: dict[I.Instruction, int] = {}
        others: dict[Function, int] = {}
        for function in points_to.functions:
            for write in accesses(points_to, function, layout):
                if write.writes:
                    bit = self._number(write)
                    others[function] = others.get(function, 0) | bit
                    if function is code:
                        own[write.instruction] = own.get(write.instruction, 0) | bit
        self._below = _called_writes(points_to, {f: bits for f, bits in others.items() if f is not code})
        self._from = {block: self._writes_from(block, own) for block in self._cfg.rpo}

    def _number(self, write: Access) -> int:
        bit = self._everywhere + 1
        self._writes.append(write)
        self._everywhere |= bit
        for item in write.objects:
            self._to_object[item] = self._to_object.get(item, 0) | bit
        roots = _roots(write.pointer)
        if not all(map(_is_object, roots)):
            self._loose |= bit
        for root in roots:
            self._to_root[root] = self._to_root.get(root, 0) | bit
        if write.kills:
            self._killing |= bit
            is_own = all(_is_object(root) and not isinstance(root, Argument) for root in roots)
            self._freed |= bit if is_own else 0
        return bit

    def _writes_from(self, block: BasicBlock, own: dict[I.Instruction, int]) -> list[tuple[int, int]]:
        """The writes of a block from each position on that has one, last first."""
        found: list[tuple[int, int]] = []
        bits = 0
        for position in range(len(block.instructions) - 1, -1, -1):
            instruction = block.instructions[position]
            more = own.get(instruction, 0)
            if isinstance(instruction, I.CallBase):
                more |= self._below.get(callee_of(instruction), 0)
            if more:
                bits |= more
                found.append((position, bits))
        return found

    @cached_property
    def _after(self) -> dict[BasicBlock, int]:
        """The writes that control may come to after a block."""

        def evaluate(block: BasicBlock, facts: Mapping[BasicBlock, int]) -> int:
            bits = 0
            for following in self._cfg.succs[block]:
                bits |= facts[following] | (self._from[following][-1][1] if self._from[following] else 0)
            return bits

        return fixpoint(list(reversed(self._cfg.rpo)), self._cfg.preds.__getitem__, evaluate, 0)

    def check(self, load: I.Load | I.Store) -> None:
        """Raises EmissionError where something that may write the memory that a load reads, or a store leaves, can come
        after it; in a function that is called, and of memory that other threads touch, where anything may write it at
        all; of such memory that the reverse sweep finds as the forward sweep left it, where any thread may write it
        later."""
        pointer = load.operands[-1]
        objects = self._points_to.of(pointer)
        if objects and all(item.is_constant for item in objects):
            return
        roots = _roots(pointer)
        writes = self._aliases(roots, pointer)
        # What is freed late is there still.
        writes &= ~(self._freed if any(isinstance(root, Argument) for root in roots) else self._killing)
        is_shared = any(map(self._execution.shares, objects))
        is_refilled = bool(objects) and all(map(self._execution.refills, objects))
        if self._code is self._points_to.root and (is_refilled or not is_shared):
            writes &= self._later(load)
            writes = writes if is_refilled else self._met(load, writes, roots)
        if writes:
            raise EmissionError(self._code, f"%{pointer.name} is read again although it may have been overwritten")

    def check_recalled(self, recalled: Iterable[tuple[I.Load, Snapshot]]) -> None:
        """Raises EmissionError where a load is repeated from a copy, made in front of a loop, of memory that the loop
        may have written by then."""
        for load, snapshot in recalled:
            if self._home[load][0] not in snapshot.loop.blocks:
                raise EmissionError(self._code, f"%{load.name} is outside of the loop that its memory is copied for")
            pointer = load.operands[0]
            meeting = self._written_in(snapshot.loop) & self._aliases(_roots(pointer), pointer)
            read = Access(load, pointer, self._points_to.of(pointer), self._layout.store_size(load.type), True, False)
            if not all(self._alias.comes_behind(a, read, snapshot.loop) for _, a in self._numbered(meeting)):
                raise EmissionError(self._code, f"%{load.name} is read from a copy that may be another by then")

    def _numbered(self, writes: int) -> Iterator[tuple[int, Access]]:
        """A set of writes, one by one, each with its bit."""
        while writes:
            bit = writes & -writes
            writes -= bit
            yield bit, self._writes[bit.bit_length() - 1]

    def _written_in(self, loop: Loop) -> int:
        written = 0
        for block in loop.blocks:
            written |= self._from[block][-1][1] if self._from[block] else 0
        return written

    def check_repeated(self, kept: Mapping[Hashable, Collection[Loop]]) -> None:
        """Raises EmissionError where a value that is kept once for all iterations of some loops may differ in them."""
        loops = {loop.header: loop for loop in self._loops}
        homes: dict[Value, BasicBlock] = {i: block for i, (block, _) in self._home.items()}
        for value, around in kept.items():
            for loop in around:
                if not isinstance(value, I.Instruction) or not self._is_same(value, loops[loop.header], homes):
                    raise EmissionError(self._code, f"{name_of(value)} is kept once though it may differ")

    def _is_same(self, value: I.Instruction, loop: Loop, homes: Mapping[Value, BasicBlock]) -> bool:
        written = self._written_in(loop)

        def stays(load: I.Load) -> bool:
            pointer = load.operands[0]
            return not written & self._aliases(_roots(pointer), pointer)

        return is_repeated(value, loop, self._loops, homes, stays)

    def _later(self, load: I.Load | I.Store) -> int:
        block, position = self._home[load]
        here = self._from[block]
        count = bisect_left(here, -position, key=lambda entry: -entry[0])
        return self._after[block] | (here[count - 1][1] if count else 0)

    @cached_property
    def _instances(self) -> Instances:
        return Instances(self._loops)

    def _is_renewed(self, write: Access, load: I.Load | I.Store, roots: set[Value]) -> bool:
        """Whether a local variable begins anew between a load and a write."""
        (root,) = roots if len(roots) == 1 else (None,)
        if root is None or self._instances.start(root) is None or _roots(write.pointer) != roots:
            return False
        return not self._instances.meet(load, write.instruction, root)

    def _met(self, load: I.Load | I.Store, writes: int, roots: set[Value]) -> int:
        """Those of some writes that may touch what a load reads, by the iterations in which they run."""
        for bit, write in self._numbered(writes):
            if write.instruction not in self._home:
                continue
            if self._alias.later.miss(load, write) or self._is_renewed(write, load, roots):
                writes -= bit
        return writes

    def _aliases(self, roots: set[Value], pointer: Value) -> int:
        """By where both pointers come from; by what they may point to only where that does not tell."""
        meets = self._to_object.get(self._points_to.unknown, 0)
        for item in self._points_to.of(pointer):
            meets |= self._to_object.get(item, 0)
        if not all(map(_is_object, roots)):
            return meets
        meets &= self._loose
        for root in roots:
            meets |= self._to_root.get(root, 0) & ~self._loose
        return meets


def _called_writes(points_to: PointsTo, own: dict[Function, int]) -> dict[Function | None, int]:
    """What calling each function with a body may write, in it or in what it calls; None: through a pointer."""
    everything = 0
    for bits in own.values():
        everything |= bits
    callees = {f: [i.callee for i in f.instructions() if isinstance(i, I.CallBase)] for f in points_to.functions}
    callers = callers_of(points_to.functions)

    def evaluate(function: Function, facts: Mapping[Function, int]) -> int:
        bits = own.get(function, 0)
        for callee in callees[function]:
            bits |= facts.get(callee, 0) if isinstance(callee, Function) else everything
        return bits

    found = fixpoint(list(points_to.functions), lambda f: callers.get(f, ()), evaluate, 0)
    return {**found, None: everything}


def _roots(pointer: Value) -> set[Value]:
    """What a pointer is computed from, through address arithmetic, choices and merges."""
    return {v for v in reached([pointer], _address_of) if not _address_of(v)}


def _address_of(value: Value) -> list[Value]:
    return value.operands[:1] if isinstance(value, I.GetElementPtr) else I.merged(value)


def _is_object(root: Value) -> bool:
    """Whether a value is memory that nothing else is: a parameter of an array function, a local variable, fresh
    memory."""
    if isinstance(root, I.CallBase):
        return call_effect(root) is Effect.ALLOCATE
    return isinstance(root, I.Alloca | GlobalVariable | ConstantNull) or (
        isinstance(root, Argument) and "noalias" in " ".join(root.attributes)
    )
