"""Loops whose iterations have nothing to do with each other, so that they may run in any order, and at the same time.

An iteration must not see what another one leaves. That is so where

- the only values that go around the loop are counters with a constant step, and what the first iteration alone has,
- every object that the loop writes is either *private*, memory of the function that nothing outside of the loop reads
  or writes, whose contents mean nothing at the start of an iteration, or *divided*: no two iterations touch the same
  byte of it,
- nothing else in it has an effect: no output, no call of the unknown.

**Divided.** The address of every access determines the iteration (`analysis.digits`).
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from functools import cached_property

from jax_enzyme.analysis.accesses import Access, clears, is_harmless
from jax_enzyme.analysis.accumulation import Chain, carried_sum, choices, says_any
from jax_enzyme.analysis.alias import Alias
from jax_enzyme.analysis.combinations import Combinations, Combined
from jax_enzyme.analysis.common_rows import CommonRow, CommonRows
from jax_enzyme.analysis.digits import Place, all_digits, distance, overlap, places_of, slowest_digit
from jax_enzyme.analysis.extents import room
from jax_enzyme.analysis.handed_memory import HandedMemory
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loop_sizes import LoopSizes
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.memory_uses import MemoryUses
from jax_enzyme.analysis.objects import MemoryObject, call_effect
from jax_enzyme.analysis.only_iterations import is_last_alone, only_chains, settled
from jax_enzyme.analysis.polynomials import Iteration, Leaf, Polynomial
from jax_enzyme.analysis.private_memory import PrivateMemory
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.classes import dataclass, replace
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.marks import Mark, Marks, has_slots, is_common, marks_of
from jax_enzyme.ir.module import Function, Module, Uses, callee_name, uses
from jax_enzyme.ir.reach import Reached
from jax_enzyme.ir.values import Argument, Value, int_value
from jax_enzyme.remembered import remembered
from jax_enzyme.rules.effects import Effect
from jax_enzyme.rules.helpers import ALLOCATE, TAPE

_MOVING = "moving"
"""The kind of what one pointer leads to, which may lead to one object or another."""


@dataclass(frozen=True)
class Independent:
    """A loop whose iterations are independent. `count`: how many there are; where `length` says that, what is known
    before the loop, it is the most. `private`: the objects of which every
    thread needs its own; `counters`: the phis of its header, with their steps.

    Of a marked loop besides: `sums`, the other phis of its header, which parts of the loop may start anew; `left`, the
    values of the last iteration that are used behind the loop; `added`, the objects that iterations only add to, of
    numbers of the type that is given with them, or (None) which have no copies and may be changed in any order, but not
    at once; `near`, those to which only iterations add at the same places that are less than `apart` iterations from
    one another; `arenas`, those from which iterations take memory for a tape, which stays.

    `firsts`: the phis of its header that are something else in the first iteration than in all others, with what they
    are there.

    `counted`: what is used behind the loop of its counters, which the number of iterations tells, with the counter: its
    value after all of them, but for so many."""

    loop: Loop
    count: int
    private: tuple[Value, ...]
    counters: tuple[tuple[I.Phi, int], ...]
    sums: tuple[Chain, ...] = ()
    left: tuple[Value, ...] = ()
    added: tuple[tuple[Value, T.Type | None], ...] = ()
    near: tuple[tuple[Value, T.Type | None], ...] = ()
    apart: int = 1
    length: Polynomial | None = None
    arenas: tuple[Value, ...] = ()
    counted: tuple[tuple[Value, I.Phi, int], ...] = ()
    firsts: tuple[tuple[I.Phi, Value], ...] = ()


def loop_marks(module: Module, loop: Loop) -> Marks:
    """What is said of a loop, if it has one latch, which says it."""
    return marks_of(module, loop.latches[0].terminator) if len(loop.latches) == 1 else frozenset()


class Independence(LoopSizes):
    """The facts about one function."""

    def __init__(self, module: Module, function: Function) -> None:
        self._module = module
        self._function = function
        self._layout = DataLayout(module)
        super().__init__(Recurrences.of(function, module))

    @cached_property
    def _alias(self) -> Alias:
        return Alias(self._facts, self._memory)

    @cached_property
    def _private(self) -> PrivateMemory:
        return PrivateMemory(self._function, self._facts, self._memory)

    @cached_property
    def _handed(self) -> HandedMemory:
        return HandedMemory(self._function, self._facts, self.loops, self._memory)

    @cached_property
    def _points_to(self) -> PointsTo:
        return PointsTo(self._module, self._function)

    def examine(self, loop: Loop, locals_are_private: bool) -> Independent | str:
        """The loop, or why its iterations are not independent. `locals_are_private`: local memory holds nothing at the
        start of an iteration that the program may read."""
        return self._examine(loop, locals_are_private, frozenset())

    def examine_marked(self, loop: Loop) -> Independent | str:
        """The same by what the loop's marks say: what it adds up may be added in any order, and memory that is no
        thread's own is divided where they say so. Without marks it is `examine`."""
        found = loop_marks(self._module, loop)
        return self._examine(loop, Mark.EXCLUSIVE in found, found)

    def combined(self, loop: Loop) -> list[Combined]:
        """Of a marked loop that nothing else keeps from running in any order: the memory in which it combines numbers
        otherwise than by additions."""
        marks = loop_marks(self._module, loop)
        found: list[Combined] = []
        others = self._examine(loop, Mark.EXCLUSIVE in marks, marks, found)
        is_due = Mark.PARALLEL in marks and Mark.REVERSED not in marks
        return found if is_due and not isinstance(others, str) else []

    def _examine(
        self,
        loop: Loop,
        locals_are_private: bool,
        marks: Marks,
        combined: list[Combined] | None = None,
    ) -> Independent | str:
        """`combined` gets the memory in which iterations combine numbers; where it is none, they must not."""
        count, length = (self.length(loop) if Mark.PARALLEL in marks else None) or (self.count(loop), None)
        if count is None:
            return "how often the loop runs is not known beforehand"
        arenas = self._arenas(loop, marks)
        problem = self._hindering_control(loop) or self._hindering_calls(loop, arenas)
        if problem is not None:
            return problem
        sums: dict[I.Phi, Chain] = {}
        left = self._left(loop)
        if Mark.PARALLEL in marks:
            sums = self._sums(loop)
            if length is None:
                sums |= self._only(loop, sums, count)
        firsts = self._firsts(loop, sums, count, exact=length is None)
        counters = self._counters(loop, {*sums, *(phi for phi, _ in firsts)}, count)
        counted = () if isinstance(counters, str) else _counted(loop, counters, left)
        others = tuple(v for v in left if all(v is not c for c, _, _ in counted))
        if others and Mark.PARALLEL not in marks:
            return "it leaves a value behind"
        if isinstance(counters, str):
            return counters
        if left and len(loop.exit_edges) > 1:
            return "it may be left early, and leaves a value behind"
        bare = Independent(
            loop,
            count,
            (),
            counters,
            tuple(sums.values()),
            others,
            length=length,
            arenas=tuple(dict.fromkeys(arenas.values())),
            counted=counted,
            firsts=firsts,
        )
        return self._with_memory(bare, locals_are_private, marks, combined)

    def _with_memory(
        self,
        bare: Independent,
        locals_are_private: bool,
        marks: Marks,
        combined: list[Combined] | None,
    ) -> Independent | str:
        """The loop with what it does to memory, or why its iterations are not independent."""
        loop = bare.loop
        private: list[Value] = []
        added: list[tuple[Value, T.Type | None]] = []
        near: list[tuple[Value, T.Type | None]] = []
        apart = 1
        for item in self._written(loop):
            places = self._places(item, loop)
            problem = places if isinstance(places, str) else overlap(places)
            if problem is None or self._is_exclusive(item, loop, marks):
                continue
            if not isinstance(places, str) and self._by_digits(item, loop):
                continue
            if item.site is None:
                return f"{_name(item)}: {problem}"
            inside, at_hand = list(self._of(item, loop)), self._is_at_hand(item, loop)
            if at_hand and self._private.is_private(item, inside, loop, marks, holds_nothing=locals_are_private):
                private.append(item.site)
                continue
            numbers = self._changed(item, loop, marks, at_hand)
            if isinstance(numbers, str) and at_hand and combined is not None:
                how = self._combinations.whole(item, self._of(item, loop), loop)
                if how is not None:
                    combined.append(how)
                    continue
            if isinstance(numbers, str):
                return f"{_name(item)}: {numbers or problem}"
            left_early = len(loop.exit_edges) > 1
            between = None if isinstance(places, str) or left_early else self._apart_by(item, loop, places)
            if between is None:
                added.append((item.site, numbers))
            else:
                near.append((item.site, numbers))
                apart = max(apart, between)
        return replace(bare, private=tuple(private), added=tuple(added), near=tuple(near), apart=apart)

    def cleared(self, share: Independent) -> list[tuple[Value, int]]:
        """The private memory of a loop of which any is cleared in front of it, and its bytes."""
        private = [o for o in self._written(share.loop) if o.site in share.private]
        cleared = ((o.site, room(self._layout, o)) for o in private if self._private.is_cleared(o, share.loop))
        return [(site, size) for site, size in cleared if site is not None and size is not None]

    def choices(self, loop: Loop) -> list[Chain]:
        """What is chosen in a loop as the best of all, and what belongs to it."""
        return list(choices(_phis(loop), self._uses, loop.blocks, self._facts.block_of))

    def separate(self, share: Independent) -> list[I.Instruction]:
        """The loads and stores of a loop that meet nothing of another iteration, wherever the loop runs: all but those
        of private memory, which its iterations use in turn, and of what they add to."""
        common = {*share.private, *(site for site, _ in (*share.added, *share.near))}
        found: dict[I.Instruction, None] = {}
        for access in self._inside(share.loop):
            instruction = access.instruction
            if not isinstance(instruction, I.Load | I.Store):
                continue
            if self._points_to.unknown in access.objects or any(o.site in common for o in access.objects):
                continue
            if not any(self._private.is_of_iteration(o, share.loop) for o in access.objects):
                found[instruction] = None
        return list(found)

    def telling(
        self, share: Independent, sites: Container[Value]
    ) -> tuple[frozenset[I.Instruction], dict[I.Instruction, Value]] | None:
        """What of a loop tells where its iterations add to some objects: control, and what addresses are made of. And
        the stores to these objects, with them. None where what iterations write besides may change that."""
        found, stores = dict[I.Instruction, list[Access]](), dict[I.Instruction, Value]()
        for access in self._inside(share.loop):
            found.setdefault(access.instruction, []).append(access)
            site = next((o.site for o in access.objects), None)
            if isinstance(access.instruction, I.Store) and site is not None and site in sites:
                stores[access.instruction] = site
        written = {o: o.site in share.private for each in found.values() for a in each if a.writes for o in a.objects}
        needed = Reached[Value](
            [b.terminator for b in share.loop.blocks] + [s.operands[1] for s in stores],
            lambda v: self._is_inside(v, share.loop),
        )
        for value in needed:
            assert isinstance(value, I.Instruction)
            needed.add(value.operands)
            for access in found.get(value, ()):
                read = [o for o in access.objects if access.reads and o in written]
                if not all(written[o] for o in read) or self._points_to.unknown in access.objects:
                    return None
                needed.add(
                    i for i, each in found.items() if any(a.writes and o in a.objects for a in each for o in read)
                )
        return frozenset(v for v in needed.all if isinstance(v, I.Instruction)), stores

    # -- what a marked loop adds up

    @cached_property
    def _combinations(self) -> Combinations:
        return Combinations(self._facts, self._layout, self._uses)

    @cached_property
    def _uses(self) -> Uses:
        return uses(self._function)

    def _left(self, loop: Loop) -> tuple[Value, ...]:
        outside = (i for b in self._facts.cfg.rpo if b not in loop for i in b.instructions)
        return tuple(dict.fromkeys(o for i in outside for o in i.operands if self._is_inside(o, loop)))

    def _sums(self, loop: Loop) -> dict[I.Phi, Chain]:
        """The phis of the header that are sums, and need nothing but to be joined behind."""
        together = self.choices(loop)
        noted = [c.leader for c in together if says_any(c)]
        kept = [c for c in together if c.strict or (c.leader or c) in noted]
        found = {c.start: c for c in kept if isinstance(c.start, I.Phi)}
        for phi in (p for p in _phis(loop) if p not in found or found[p].leader is None):
            if (sum_ := carried_sum(phi, loop, self._uses, self._facts.block_of)) is not None:
                found[phi] = sum_
        return found

    def _only(self, loop: Loop, sums: Container[I.Phi], count: int) -> dict[I.Phi, Chain]:
        """The phis of the header that one iteration alone reads or changes."""
        others = [phi for phi in _phis(loop) if phi not in sums]
        steps = {phi: step for phi in others if (step := self._grows_by(phi, loop, count)) is not None}
        return only_chains(loop, [phi for phi in others if phi not in steps], steps, count, self._uses)

    def _changed(self, item: MemoryObject, loop: Loop, marks: Marks, at_hand: bool) -> T.Type | str | None:
        """As what iterations may change an object in any order: numbers of a type, to which they add in copies; None:
        in place; or why they may not, empty where no more is known."""
        numbers = self._combinations.added(self._of(item, loop), loop) if Mark.PARALLEL in marks else None
        if numbers is None and not self._in_any_order(item, loop, marks):
            return ""
        if at_hand:
            return numbers
        block = None if item.site is None else self._facts.block_of.get(item.site)
        # What was made before in the same place may be reached as well; and who counts from where it begins has to
        # know that it was made.
        may_be_another = block is not None and (
            self.loops.loop_of[block] is not None
            or bool(self.loops.irreducible)
            or not self.loops.dominators.dominates(block, loop.header)
        )
        return "it is reached through a pointer that is loaded or chosen" if may_be_another else None

    def common_rows(self, loop: Loop) -> list[CommonRow]:
        """What iterations of a loop that is left at its latch alone add to, beside places of their own."""
        if self._hindering_control(loop) or len(loop.exit_edges) > 1:
            return []
        written = [(item, self._of(item, loop)) for item in self._written(loop)]
        rows = CommonRows(self._facts, self._layout, loop, lambda some: self._combinations.added(some, loop))
        return [row for item, found in written if (row := rows.of(item, found)) is not None]

    def _is_at_hand(self, item: MemoryObject, loop: Loop) -> bool:
        """Are all addresses by which a loop comes to an object made of its own there or right before, so that they
        would lead into a copy if that took the object's place? Not those that are loaded, or were chosen before."""
        pointers = (a.pointer for a in self._of(item, loop))
        needed = Reached[Value](pointers, lambda v: v is not item.site and T.is_pointer(v.type))
        for value in needed:
            chosen = isinstance(value, I.Phi | I.Select) and self._is_inside(value, loop)
            if not isinstance(value, I.GetElementPtr) and not chosen:
                return False
            assert isinstance(value, I.Instruction)
            needed.add(value.operands)
        return True

    def _is_exclusive(self, item: MemoryObject, loop: Loop, marks: Marks) -> bool:
        """Do marks say that no iteration meets another one in an object? Only buffers and what is made outside of
        regions are certainly no thread's own. In reverse several iterations may add to one place, but clear only their
        own."""
        forward = Mark.PARALLEL in marks and Mark.REVERSED not in marks
        if not (forward and has_slots(item.site)) and not (Mark.EXCLUSIVE in marks and self._is_common(item.site)):
            return False
        writes = [a for a in self._of(item, loop) if a.writes]
        if any(not self._is_inside(a.pointer, loop) for a in writes):
            return False
        return Mark.REVERSED not in marks or all(clears(a.instruction) for a in writes)

    def _in_any_order(self, item: MemoryObject, loop: Loop, marks: Marks) -> bool:
        """May iterations change an object in any order? In the reverse of a loop whose iterations write what no other
        one accesses, a place is changed by that iteration alone, or it is only added to."""
        if not marks.issuperset((Mark.EXCLUSIVE, Mark.REVERSED)) or not self._is_common(item.site):
            return False
        found = list(self._of(item, loop))
        return all(isinstance(a.instruction, I.Load | I.Store) and len(a.objects) == 1 for a in found)

    def _is_common(self, site: Value | None) -> bool:
        """Is memory no thread's own, wherever a pointer leads?"""
        if not isinstance(site, I.Phi | I.Select):
            return is_common(site)
        items = self._points_to.of(site)
        return bool(items) and all(is_common(o.site) for o in items)

    # -- values and control

    def _hindering_control(self, loop: Loop) -> str | None:
        if loop.preheader is None or len(loop.latches) != 1 or loop.latches[0] not in loop.exiting:
            return "its control is irregular"
        return None

    def _is_inside(self, value: Value, loop: Loop) -> bool:
        return self._facts.block_of.get(value) in loop.blocks

    def _firsts(
        self, loop: Loop, sums: Container[Value], count: int, *, exact: bool
    ) -> tuple[tuple[I.Phi, Value], ...]:
        """The phis of the header that are no counters, and the same in all iterations but the first one, with that; or
        of which only what the last one of exactly so many iterations leaves is needed."""
        grow = {phi: self._grows_by(phi, loop, count) for phi in _phis(loop) if phi not in sums}
        steps = {phi: step for phi, step in grow.items() if step is not None}
        found: list[tuple[I.Phi, Value]] = []
        for phi in (phi for phi in grow if phi not in steps):
            start, later = loop.ends(phi) or (phi, phi)
            if not self._is_inside(later, loop):
                found.append((phi, later))
            elif later is not phi and (known := settled(loop, phi, later, steps)) is not None:
                found.append((phi, known))
            elif later is not phi and exact and is_last_alone(loop, phi, later, steps, count, self._uses):
                found.append((phi, start))
        return tuple(found)

    def _counters(self, loop: Loop, sums: Container[Value], count: int | None) -> tuple[tuple[I.Phi, int], ...] | str:
        found: list[tuple[I.Phi, int]] = []
        for phi in loop.header.instructions:
            if not isinstance(phi, I.Phi):
                break
            if phi in sums:
                continue
            step = self._grows_by(phi, loop, count)
            if step is None:
                return (
                    "each iteration needs a value from the one before, such as a sum or a reduction that the program "
                    "declares"
                )
            found.append((phi, step))
        return tuple(found)

    def _grows_by(self, phi: I.Phi, loop: Loop, count: int | None) -> int | None:
        """By how much a counter grows."""
        step = 1 if _alternates(phi, loop) else self._facts.step(phi, loop)
        step = _distance(phi, loop) if step is None and count == 2 else step
        return step if isinstance(phi.type, T.IntType) else None

    def _arenas(self, loop: Loop, marks: Marks) -> dict[Value, Value]:
        """The calls that take memory from an arena which nothing else in a marked loop accesses, with the arena."""
        if Mark.PARALLEL not in marks:
            return {}
        calls = [i for b in loop.blocks for i in b.instructions if isinstance(i, I.CallBase)]
        found = {c: c.arguments[0] for c in calls if callee_name(c) == ALLOCATE}
        fixed = {a for a in found.values() if isinstance(a, I.Alloca | Argument) and not self._is_inside(a, loop)}
        touched = {o for access in self._inside(loop) for o in access.objects} if fixed else set[MemoryObject]()
        known = {
            a for a in fixed if touched.isdisjoint(self._points_to.of(a)) and self._points_to.unknown not in touched
        }
        return {c: a for c, a in found.items() if a in known}

    def _hindering_calls(self, loop: Loop, arenas: Container[Value]) -> str | None:
        """A call of the program's is named rather than one that a derivative makes in front of it."""
        of_a_derivative: str | None = None
        for block in loop.blocks:
            for instruction in block.instructions:
                match instruction:
                    case I.CallBase() if instruction in arenas:
                        pass
                    case I.CallBase() if not is_harmless(instruction) and not self._is_within(instruction, loop):
                        name = callee_name(instruction) or "a pointer"
                        if not name.startswith(("je.", "je_")):
                            return f"it calls `{name}`"
                        of_a_derivative = of_a_derivative or f"it calls `{name}`"
                    case I.AtomicRMW() | I.CmpXchg() | I.Fence() | I.Alloca():
                        return f"it contains `{instruction.opcode}`"
                    case I.Load() | I.Store() if not I.is_plain(instruction):
                        return "it contains volatile or ordered accesses"
                    case _:
                        pass
        return of_a_derivative

    # -- memory

    def _is_within(self, call: I.CallBase, loop: Loop) -> bool:
        """Is memory made, or given back, that an iteration has to itself, or that it makes for what comes behind?"""
        match call_effect(call):
            case Effect.ALLOCATE if callee_name(call) not in TAPE:  # one arena for all
                made = [o for o in self._points_to.of(call) if o.site is call]
            case Effect.FREE:
                made = list(self._points_to.of(call.arguments[0]))
            case _:
                return False
        return bool(made) and all(self._is_of_iteration(o, loop) for o in made)

    @cached_property
    def _memory(self) -> MemoryUses:
        return MemoryUses(self._function, self._points_to, self._layout)

    @remembered
    def _inside(self, loop: Loop) -> tuple[Access, ...]:
        """The accesses in a loop. Where a pointer that may lead to several objects is the same throughout, and all else
        leads elsewhere, what it leads to counts as an object."""
        found = self._memory.inside(loop)
        moving = {I.base_of(a.pointer): a.objects for a in found if len(a.objects) > 1}
        named = {
            base: MemoryObject(_MOVING, base)
            for base, objects in moving.items()
            if not self._is_inside(base, loop)
            and all(self._is_own(o) for o in objects)
            and all(a.objects.isdisjoint(objects) or self._is_another(a.pointer, base) for a in found)
        }
        bases = [named.get(I.base_of(a.pointer)) for a in found]
        return tuple(
            a if item is None else replace(a, objects=frozenset({item})) for a, item in zip(found, bases, strict=True)
        )

    def _is_another(self, pointer: Value, base: Value) -> bool:
        return I.base_of(pointer) is base or self._alias.together(pointer, base)

    def _of(self, item: MemoryObject, loop: Loop) -> Iterable[Access]:
        """The accesses of an object in a loop."""
        return (a for a in self._inside(loop) if self._points_to.may_meet(a.objects, (item,)))

    def _written(self, loop: Loop) -> list[MemoryObject]:
        """What a loop writes to, but for what its iterations make."""
        found: dict[MemoryObject, None] = {}
        for access in self._inside(loop):
            if access.writes:
                found |= dict.fromkeys(access.objects)
        return [i for i in found if not self._is_of_iteration(i, loop)]

    def _is_of_iteration(self, item: MemoryObject, loop: Loop) -> bool:
        if self._private.is_of_iteration(item, loop) or self._is_new(item, loop):
            return True
        return self._handed.is_of_iteration(item, loop, self._of)

    def _is_new(self, item: MemoryObject, loop: Loop) -> bool:
        """Is an object made in a loop, which accesses it there alone where it was made, in the same iteration? What is
        given back there may be made again in the same place."""
        site = item.site
        if not isinstance(site, I.CallBase) or call_effect(site) is not Effect.ALLOCATE:
            return False
        if not self._is_inside(site, loop) or any(access.kills for access in self._of(item, loop)):
            return False
        return self._is_at_hand(item, loop)

    def is_reached_otherwise(self, site: Value) -> bool:
        """Is the address of what is made here held in memory, so that loads may lead to it?"""
        return any(o.site is site and self._private.is_held(o) for o in self._points_to.contents)

    def _is_own(self, item: MemoryObject) -> bool:
        return isinstance(item.site, Argument | I.Alloca) or item.kind == "heap"

    def _apart_by(self, item: MemoryObject, loop: Loop, places: list[Place]) -> int | None:
        """How many iterations lie between two that certainly touch nothing in common; None where that is not known.
        Loops that were collapsed compute indices from their number: there the largest of its digits counts."""
        found, digit = distance(places), slowest_digit(self._facts, self._of(item, loop), loop)
        if found is not None or digit is None:
            return found
        unit, length = digit
        by_digit = self._places(item, loop, unit)
        found = None if isinstance(by_digit, str) else distance(by_digit)
        return None if found is None else found * length

    def _by_digits(self, item: MemoryObject, loop: Loop) -> bool:
        """Do addresses of an object tell all digits of the number of an iteration?"""
        units = all_digits(self._facts, self._of(item, loop), loop)
        found = [self._places(item, loop, unit) for unit in units]
        return bool(found) and all(not isinstance(places, str) and overlap(places) is None for places in found)

    def _places(self, item: MemoryObject, loop: Loop, unit: Iteration | Leaf | None = None) -> list[Place] | str:
        """What iterations touch of an object, or why that is not known; by their number, or another `unit`."""
        if item is self._points_to.unknown or item.site is None:
            return "nobody knows where a pointer leads"
        if item.kind != _MOVING and not self._is_own(item):
            return "it is memory of all blocks"
        found = list(self._of(item, loop))
        if any(len(access.objects) != 1 for access in found):
            return "a pointer may lead to it or elsewhere"
        places = places_of(self._facts, found, item.site, loop, unit)
        return "where it is touched depends on data" if places is None else places


def _phis(loop: Loop) -> list[I.Phi]:
    return [i for i in loop.header.instructions if isinstance(i, I.Phi)]


def _counted(
    loop: Loop, counters: Iterable[tuple[I.Phi, int]], left: Container[Value]
) -> tuple[tuple[Value, I.Phi, int], ...]:
    """Of what a loop leaves behind, its counters in the last iteration, and what they go on with."""
    found: list[tuple[Value, I.Phi, int]] = []
    for phi, _ in counters:
        ends = loop.ends(phi)
        found += [(v, phi, behind) for v, behind in ((phi, 1), (ends and ends[1], 0)) if v is not None and v in left]
    return tuple(found)


def _alternates(phi: I.Phi, loop: Loop) -> bool:
    """Is a phi of one bit the other one in each iteration? So it counts, modulo 2."""
    following = next((v for v, b in phi.incoming if b in loop), None)
    if not isinstance(following, I.BinaryOp) or following.opcode != "xor" or phi.type != T.I1:
        return False
    return phi in following.operands and any(int_value(v) for v in following.operands)


def _distance(phi: I.Phi, loop: Loop) -> int | None:
    """How far the second of two constants is from the first: a phi of them counts two iterations as well."""
    first, second = map(int_value, loop.ends(phi) or (phi, phi))
    return None if first is None or second is None else second - first


def _name(item: MemoryObject) -> str:
    if isinstance(item.site, Argument):
        return f"`{item.site.name}`"
    return "local memory" if item.kind in ("stack", "heap") else "memory"
