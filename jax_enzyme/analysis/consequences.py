"""What may be otherwise where a question has another answer: what it decides, and all that is made of that.

    m[i] = x[i] != 0 ? 1 : 0;        a number that is chosen, in memory
    s += m[j] * y[j];                a factor of something that carries a derivative, read there

Followed are conditions, integers, pointers, and numbers that are constants to derivatives: through arithmetic, memory,
functions, and branches, behind which what is written, merged or returned depends on them. They end where they come to
something that carries a derivative: as a factor, as an address, as what decides whether it is computed. What is only
added to such a number changes a value, and no derivative. What memory holds is told apart by objects, not by elements,
and what is not there to be seen may do anything with what it is given: a consequence too many, none too few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import product

from jax_enzyme.analysis.accesses import accesses
from jax_enzyme.analysis.activity import Activity
from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.dominators import PostDominators
from jax_enzyme.analysis.flow import holds_float
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.objects import (
    MemoryObject,
    call_effect,
    copy_operands,
    is_copy,
    is_defined_call,
    reachable_functions,
)
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function, Uses, callee_of, is_fused, uses
from jax_enzyme.ir.reach import Reached, reached
from jax_enzyme.ir.values import Argument, BasicBlock, Value
from jax_enzyme.remembered import remembered
from jax_enzyme.rules.effects import Effect

Item = I.Instruction | Argument | MemoryObject
_Before = dict[Item, set[Item]]

_BRANCHES = (I.CondBranch, I.Switch)
_WRITES = (I.Store, I.AtomicRMW, I.CmpXchg)
_NOTHING = frozenset((
    Effect.IGNORED, Effect.ALLOCATE, Effect.FREE, Effect.STACK, Effect.TAPE, Effect.OUTPUT, Effect.ABORT, Effect.TRAP,
    Effect.THROW, Effect.READ_CLOCK, Effect.BARRIER, Effect.FENCE,
))  # fmt: skip
"""Calls of which nothing is asked for that depends on what they are given: new memory is the same whatever its size."""
_KEEPS = (I.Store, I.Load, I.Select, I.Phi, I.Freeze)
"""A number that carries a derivative is what it was, or something else instead, in two steps one of which is taken."""


class Ways:
    """How what is in a program depends on something else in it, whatever is differentiated."""

    def __init__(self, points_to: PointsTo) -> None:
        self.points_to = points_to
        self._home = {b: f for f in points_to.functions for b in f.blocks}
        self._block_of = {i: b for b in self._home for i in b.instructions}

    @remembered
    def _cfg(self, function: Function) -> tuple[Cfg, PostDominators]:
        cfg = Cfg(function)
        return cfg, PostDominators(cfg)

    @cached_property
    def uses(self) -> Uses:
        return {value: users for f in self.points_to.functions for value, users in uses(f).items()}

    @cached_property
    def _readers(self) -> dict[MemoryObject, list[I.Instruction]]:
        found: dict[MemoryObject, list[I.Instruction]] = {}
        layout = DataLayout(self.points_to.module)
        for function in self.points_to.functions:
            for access in accesses(self.points_to, function, layout):
                for item in access.objects if access.reads else ():
                    found.setdefault(item, []).append(access.instruction)
            for call in (i for i in function.instructions() if isinstance(i, I.CallBase)):
                if call_effect(call) is Effect.PURE_INT:
                    for item in (o for v in call.operands if T.is_pointer(v.type) for o in self.points_to.of(v)):
                        found.setdefault(item, []).append(call)
        return found

    def readers(self, item: MemoryObject) -> Iterable[I.Instruction]:
        """What reads an object: of one that is unknown, all that reads."""
        unknown = self.points_to.unknown
        if item is unknown:
            return (i for every in self._readers.values() for i in every)
        return (*self._readers.get(item, ()), *self._readers.get(unknown, ()))

    def callers(self, instruction: I.Instruction) -> Iterable[I.Instruction]:
        """The calls of the function that an instruction is in."""
        return self._calls.get(self._home[self._block_of[instruction]], ())

    @cached_property
    def _calls(self) -> dict[Function, list[I.Instruction]]:
        found: dict[Function, list[I.Instruction]] = {}
        for instruction in self.points_to.instructions():
            callee = callee_of(instruction)
            if callee is not None:
                found.setdefault(callee, []).append(instruction)
        return found

    def by_turns(self, item: I.Instruction, one: Iterable[Item], other: Iterable[Item]) -> bool:
        """Whether on no way to an instruction both a thing of one kind and one of the other say what it is: each is a
        branch before it, or a value that a phi may be."""
        home = self._block_of[item]
        cfg = self._cfg(self._home[home])[0]

        def onward(block: BasicBlock) -> Iterable[BasicBlock]:
            """What comes next within an iteration: what loops carry on, phis say."""
            return (b for b in cfg.succs[block] if b is not home and cfg.index.get(b, 0) > cfg.index.get(block, 0))

        def places(source: Item) -> list[BasicBlock]:
            if isinstance(source, _BRANCHES):
                block = self._block_of[source]
                return [block] if self._home[block] is self._home[home] else []
            return [block for value, block in item.incoming if value is source] if isinstance(item, I.Phi) else []

        def leads(source: list[BasicBlock], target: list[BasicBlock]) -> bool:
            return not reached(source, onward).keys().isdisjoint(target)

        for a, b in product(one, other):
            here, there = places(a), places(b)
            if not here or not there:
                return False
            decides = isinstance(a, _BRANCHES) or isinstance(b, _BRANCHES)
            if a is not b and decides and (leads(here, there) or leads(there, here)):
                return False
        return True

    def settled(self, item: I.Instruction, before: _Before) -> list[Item]:
        """What an instruction comes from; of phis in its block, what these come from."""
        phis = {p for p in self._block_of[item].instructions if isinstance(p, I.Phi)} - {item}
        every = reached(before[item], lambda s: before.get(s, ()) if s in phis else ())
        return [source for source in every if source not in phis]

    @remembered
    def guarded(self, branch: I.Instruction) -> tuple[I.Instruction, ...]:
        """What is written, called, merged, returned, or left by a loop, as a branch goes."""
        source = self._block_of[branch]
        cfg, post_dominators = self._cfg(self._home[source])
        join = post_dominators.idom.get(source)
        sides = [
            reached([t], cfg.succs.__getitem__, lambda b: b is not join)
            for t in dict.fromkeys(cfg.succs[source])
            if t is not join
        ]
        region = dict.fromkeys(b for side in sides for b in side)
        merges = [b for b in region if sum(b in side for side in sides) > 1]
        found: list[I.Instruction] = [
            i for b in (*merges, *([join] if join else ())) for i in b.instructions if isinstance(i, I.Phi)
        ]
        for instruction in (i for block in region for i in block.instructions):
            if isinstance(instruction, (*_WRITES, I.CallBase, I.Return)):
                found += self._done_by(instruction)
            elif source in region and any(self._block_of[u] not in region for u, _ in self.uses.get(instruction, ())):
                found.append(instruction)
        return tuple(found)

    def _done_by(self, instruction: I.Instruction) -> Iterable[I.Instruction]:
        """An instruction, or what the function does that it calls."""
        callee = callee_of(instruction)
        return (instruction,) if callee is None or callee.is_declaration else self._done_in(callee)

    @remembered
    def _done_in(self, callee: Function) -> tuple[I.Instruction, ...]:
        every = (i for f in reachable_functions(callee) if f.blocks for i in f.instructions())
        return tuple(i for i in every if isinstance(i, (*_WRITES, I.CallBase)) and not is_defined_call(i))


class Consequences:
    """What comes of questions in one differentiation."""

    def __init__(self, ways: Ways, activity: Activity) -> None:
        self._ways = ways
        self._points_to = ways.points_to
        self._activity = activity

    def of(self, start: Iterable[Item], within: Callable[[Item], bool] | None = None) -> Iterator[I.Instruction]:
        """What carries a derivative and depends on instructions of which something is otherwise: on what they choose or
        return, on where they go or write. `within` says what is followed."""
        found = Reached[Item]((), within)
        for first in start:
            found.add((first,))
            for item in found:
                if isinstance(item, I.Instruction) and self._carries(item):
                    yield item
                else:
                    found.add(self._next(item))

    def carry(self, start: Iterable[Item], within: Callable[[Item], bool] | None = None) -> bool:
        """Whether there is any."""
        return any(True for _ in self.of(start, within))

    def of_both(
        self, one: Iterable[I.Instruction], other: Iterable[I.Instruction], within: Callable[[Item], bool]
    ) -> bool:
        """Whether something that carries a derivative depends on questions of two kinds at once. A choice between what
        depends on the one kind and what depends on the other depends on one at a time."""
        before, also = (self._followed(questions, within) for questions in (one, other))
        if self.carry((item for item in before if self._meet(item, before, also)), within):
            return True
        before, also = (self._chosen(questions) for questions in (one, other))
        return any(
            self._activity.object(item) if isinstance(item, MemoryObject) else self._keeps(item)
            for item in before
            if not self._decides(item) and self._meet(item, before, also)
        )

    def _meet(self, item: Item, one: _Before, other: _Before) -> bool:
        """Whether what comes from two kinds of questions comes together in an item, from places that are not the
        same."""
        if item not in other or (one[item] == other[item] and len(one[item]) == 1):
            return False
        if isinstance(item, I.Select):
            sources = one[item] | other[item]
            return item.operands[0] in sources or not sources.issubset(item.operands)
        if not isinstance(item, I.Instruction):
            return True
        return not self._ways.by_turns(item, *(self._ways.settled(item, before) for before in (one, other)))

    def _followed(self, questions: Iterable[I.Instruction], within: Callable[[Item], bool]) -> _Before:
        """What comes of questions, and of each what that comes from directly."""
        before: _Before = {}
        found = Reached[Item]((), within)

        def add(source: Item, items: Iterable[Item]) -> None:
            # There are many more steps than things: each step costs a look-up, and the rest is asked once for a thing.
            found.add(items)
            for item in items:
                if item in found.all:
                    before.setdefault(item, set()).add(source)

        for question in questions:
            add(question, tuple(self.used(question)))
        for item in found:
            if not (isinstance(item, I.Instruction) and self._carries(item)):
                add(item, self._next(item))
        return before

    def _chosen(self, questions: Iterable[I.Instruction]) -> _Before:
        """The numbers that carry a derivative and that questions themselves choose, where these are kept, and of each
        what that comes from directly."""
        before: _Before = {}
        found = Reached[Item](questions)
        for item in found:
            for after in self._next(item):
                if isinstance(after, MemoryObject) or self._decides(after) or self._keeps(after):
                    before.setdefault(after, set()).add(item)
                    found.add((after,))
        return before

    def _decides(self, item: Item) -> bool:
        return isinstance(item, _BRANCHES) or (isinstance(item, I.Instruction) and item.type == T.I1)

    def _keeps(self, item: Item) -> bool:
        return isinstance(item, _KEEPS) and self._carries(item)

    def used(self, value: Value) -> Iterator[Item]:
        """What comes of it that a value is otherwise."""
        for user, index in self._ways.uses.get(value, ()):
            if isinstance(user, I.Store) and index == 0:
                yield from self._points_to.written(user.operands[1])
            elif isinstance(user, I.CallBase) and is_defined_call(user):
                callee = callee_of(user)
                assert callee is not None
                yield from callee.arguments[index : index + 1]
            elif not self._only_adds(user, index):
                yield user

    def _carries(self, item: I.Instruction) -> bool:
        match item:
            case I.Store(operands=[value, pointer]):
                return self._activity.memory(pointer) and not T.is_pointer(value.type)
            case I.AtomicRMW() | I.CmpXchg():
                return self._activity.memory(item.operands[0])
            case I.InsertValue():
                return False
            case I.Select() | I.Phi() | I.ExtractValue():
                return self._activity.value(item) and (holds_float(item.type) or T.is_int(item.type))
            case I.Return(operands=[value]):
                return self._activity.value(value)
            case I.CallBase():
                return self._activity.value(item) or (not is_defined_call(item) and self._may_write(item))
            case _:
                return self._activity.value(item)

    def _may_write(self, call: I.CallBase) -> bool:
        """Whether a call may write numbers that carry a derivative."""
        effect = call_effect(call)
        if effect in (Effect.MEMORY_COPY, Effect.REALLOCATE, Effect.MEMORY_SET):
            return self._activity.memory(call.operands[0])
        if effect not in (None, Effect.MASKED_STORE, Effect.SCATTER):
            return False
        return any(self._activity.memory(v) for v in call.operands if not isinstance(v, Function))

    @remembered
    def _next(self, item: Item) -> tuple[Item, ...]:
        """What depends on an item directly, each once: many questions come by the same items."""
        return tuple(dict.fromkeys(self._dependent(item)))

    def _dependent(self, item: Item) -> Iterable[Item]:
        match item:
            case MemoryObject():
                return (more for reader in self._ways.readers(item) for more in self._read(reader))
            case Argument() | I.Load():
                return self.used(item)
            case I.CondBranch() | I.Switch():
                return self._ways.guarded(item)
            case I.Store():
                return self._points_to.written(item.operands[1])
            case I.AtomicRMW() | I.CmpXchg():
                return (*self._points_to.written(item.operands[0]), *self.used(item))
            case I.Return():
                return self._ways.callers(item)
            case I.CallBase() if not is_defined_call(item):
                return self._called(item)
            case _:
                return self.used(item)

    def _called(self, call: I.CallBase) -> Iterable[Item]:
        effect = call_effect(call)
        if effect in _NOTHING:
            return ()
        written = call.operands if effect is None else call.operands[:1] if is_copy(call) else ()
        return (*(o for v in written for o in self._points_to.written(v)), *self.used(call))

    def _read(self, reader: I.Instruction) -> Iterable[Item]:
        """What comes of it that memory holds something else."""
        if isinstance(reader, I.CallBase) and is_copy(reader):
            return self._points_to.written(copy_operands(reader)[0])
        return (reader,)

    def _only_adds(self, user: I.Instruction, index: int) -> bool:
        adds = user.opcode in ("fadd", "fsub") or (index == 2 and is_fused(user))
        return adds and self._activity.value(user)
