"""Values that a loop carries from one iteration to the next, though memory holds them, are loaded again.

LLVM saves loads: what the next iteration will read at another place it keeps in a phi.

    before    %a = phi double [ %x0, %entry ], [ %b, %loop ]       after    %pa = getelementptr i8, ptr %pb, i64 -8
              %pb = getelementptr double, ptr %x, i64 %i                    %a = load double, ptr %pa
              %b = load double, ptr %pb                                     %b = load double, ptr %pb

An iteration then needs the one before, and neither may the loop run in any order, nor its reverse, nor can the reverse
be vectorised. So in marked loops and those inside them, and in short innermost loops, a phi of a header becomes a load
of what lies a step behind where

- what it carries was loaded, or stored, once in every iteration at an address with a constant step,
- nothing writes there behind that in the same iteration,
- what the first iteration begins with is what lies there when the loop begins.

Optimisers drop stores of values that they keep in registers, or move them behind a loop around (`s[0] = 0` before the
slopes of a line). So where a loop begins with something else, the first iteration chooses it (if it may load what lies
there), and so it does where all others of a marked loop have the same value:

    %first = icmp eq i64 %i, 0        %loaded = load ...        %a = select i1 %first, double %x0, double %loaded

In loops without marks, values that were stored stay: one element of an array may follow from the one before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import takewhile

from jax_enzyme.analysis.accesses import Access
from jax_enzyme.analysis.accumulation import chain
from jax_enzyme.analysis.alias import Alias
from jax_enzyme.analysis.congruence import Congruence
from jax_enzyme.analysis.extents import left
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.memory_uses import MemoryUses
from jax_enzyme.analysis.objects import Objects, call_effect
from jax_enzyme.analysis.polynomials import Leaf, Polynomial, TooComplex
from jax_enzyme.analysis.ranges import Interval
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.classes import dataclass, replace
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import with_operands
from jax_enzyme.ir.debug import NOTED
from jax_enzyme.ir.marks import Mark, Marks, has_marks, marks_of
from jax_enzyme.ir.module import Function, Module, callee_name, uses
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.sameness import is_same
from jax_enzyme.ir.values import BasicBlock, Value, int_value, is_zero
from jax_enzyme.rules.effects import Effect
from jax_enzyme.transform.rewriting import on_copy, phis, replace_values

LENGTHS = range(8, 2049)
"""Of innermost loops without marks whose adjoints can wait for the end of the loop (`ad.plan.late_sums`): shorter ones
are no faster as vectors, for longer ones the memory would be too large."""
_NO_MARKS: Marks = frozenset()
_DEEPEST = 4
"""How many iterations back a value may come from: each takes a round."""
_KEPT = ("dbg", "tbaa", NOTED)
_PLAIN = (I.GetElementPtr, I.Cast, I.BinaryOp)


def load_again(function: ArrayFunction) -> ArrayFunction:
    """The array function whose loops load what they carried around, in a copy of the module; the function itself where
    there is nothing of the kind."""
    given = function.module
    if not has_marks(given) and not _Loading(given, given.functions[function.symbol]).may_find():
        return function
    return on_copy(function, _load_again)


def _load_again(module: Module, root: Function) -> bool:
    rounds = (_Loading(module, root).run() for _ in range(_DEEPEST))
    return sum(1 for _ in takewhile(bool, rounds)) > 0


def longest(facts: Recurrences, loop: Loop) -> int | None:
    """How many iterations a loop has at most that is left at its end alone, after as many as numbers of the loops
    around say; None where that is not known."""
    if len(loop.latches) != 1 or loop.exiting != loop.latches or loop.preheader is None:
        return None
    count = facts.trip_count(loop)
    return None if count.exact is None or count.maximum is None else count.maximum + 1


@dataclass(frozen=True)
class _Place:
    """Where a value lies that an iteration leaves: it is accessed by `access`, at `first` plus `step` bytes for each
    iteration before. `begun`: is what the loop begins with there as well?"""

    access: Access
    pointer: Value
    first: Polynomial
    step: int
    size: int
    align: int | None
    begun: bool = True


class _Loading:
    """One round, on facts of one state of the function."""

    def __init__(self, module: Module, root: Function) -> None:
        self._module = module
        self._root = root
        self._loops = Loops.of(root)

    def run(self) -> bool:
        """Whether anything was replaced."""
        self._facts = Recurrences(self._root, self._loops, self._module)
        self._uses = uses(self._root)
        marked = dict(self._marked())
        wanted = [(loop, phi, marks) for loop, marks in marked.items() for phi in self._carried(loop)]
        short = [loop for loop in self._loops.all if loop not in marked and self._loaded(loop) and self._is_short(loop)]
        wanted += [(loop, phi, _NO_MARKS) for loop in short for phi in self._loaded(loop)]
        if not wanted:
            return False
        self._layout = DataLayout(self._module)
        self._points_to = PointsTo(self._module, self._root)
        self._memory = MemoryUses(self._root, self._points_to, self._layout)
        self._alias = Alias(self._facts, self._memory)
        replaced: dict[Value, Value] = {}
        for loop, phi, marks in wanted:
            value = self._again_in(loop, phi, marks)
            if value is not None:
                replaced[phi] = value
                loop.header.instructions.remove(phi)
        replace_values(self._root, replaced)
        if replaced:
            self._drop([v for phi in replaced if isinstance(phi, I.Phi) for v in phi.operands])
        return bool(replaced)

    def _drop(self, starts: list[Value]) -> None:
        """Removes the loads of what loops began with, and stores of what is there already."""
        used = uses(self._root)
        facts = Recurrences(self._root, self._loops, self._module)
        for block in self._root.blocks:
            block.instructions = [
                i
                for n, i in enumerate(block.instructions)
                if not (isinstance(i, I.Load) and i in starts and not used.get(i))
                and not (isinstance(i, I.Store) and self._changes_nothing(i, block.instructions[:n], facts))
            ]

    def _changes_nothing(self, store: I.Store, before: list[I.Instruction], facts: Recurrences) -> bool:
        """Does a store put back what was loaded from there, in the same block with no other store in between?"""
        load, pointer = store.operands
        if not isinstance(load, I.Load) or load not in before or not I.is_plain(load) or not I.is_plain(store):
            return False
        objects = self._points_to.written(pointer)
        if (facts.form(pointer).polynomial - facts.form(load.operands[0]).polynomial).value != 0:
            return False
        between = before[before.index(load) + 1 :]
        return not any(True for i in between for _ in self._writes(i, objects))

    def _marked(self) -> Iterator[tuple[Loop, Marks]]:
        """Marked loops, and those inside of them, with the marks that they have themselves or of the loop around."""
        for loop in self._loops.all:
            for around in loop.ancestors:
                found = marks_of(self._module, around.latches[0].terminator) if len(around.latches) == 1 else None
                if found and len(loop.latches) == 1 and loop.preheader is not None:
                    yield loop, found if around is loop else found - {Mark.PARALLEL}
                    break

    @staticmethod
    def _carried(loop: Loop) -> Iterator[I.Phi]:
        for phi in phis(loop.header):
            if not T.is_pointer(phi.type) or isinstance(_ways(phi, loop)[1], I.Load):
                yield phi

    def may_find(self) -> bool:
        """Whether there may be anything without marks to replace, as far as can be told without facts."""
        return any(map(self._loaded, self._loops.all))

    def _loaded(self, loop: Loop) -> list[I.Phi]:
        """The phis of an innermost loop, left at its end alone, that carry loads."""
        if loop.children or loop.preheader is None or loop.exiting != loop.latches:
            return []
        return [phi for phi in self._carried(loop) if any(isinstance(v, I.Load) for v, b in phi.incoming if b in loop)]

    def _is_short(self, loop: Loop) -> bool:
        return longest(self._facts, loop) in LENGTHS

    # -- where it lies

    def _again_in(self, loop: Loop, phi: I.Phi, marks: Marks) -> Value | None:
        """The value of a phi in an iteration, by what is known without the one before; None where that is not so. What
        is computed for it is at the start of the header."""
        (start, later), at = _ways(phi, loop), Builder.behind_phis(loop.header)
        place, first = None, None
        if self._is_inside(later, loop):
            place = self._place(loop, phi, marks)
            if place is None:
                return None
        elif Mark.PARALLEL not in marks:
            return None
        if place is None or not place.begun:
            first = self._first(loop, at)
            if first is None:
                return None
        value = later if place is None else self._load(phi, loop, place, at)
        if first is not None:
            value = at.select(first, start, value)
        return value

    def _first(self, loop: Loop, at: Builder) -> Value | None:
        """Is an iteration the first one? By a counter, which is what it starts at only there."""
        repeats = self._facts.repeats(loop)
        for phi in phis(loop.header) if repeats is not None else ():
            step = self._facts.step(phi, loop) if isinstance(phi.type, T.IntType) else None
            if step and isinstance(phi.type, T.IntType) and (repeats or 0) * abs(step) < 1 << phi.type.bits:
                return at.icmp("eq", phi, _ways(phi, loop)[0])
        return None

    def _place(self, loop: Loop, phi: I.Phi, marks: Marks) -> _Place | None:
        start, latch = _ways(phi, loop)
        for access in self._memory.all:
            match access.instruction:
                case I.Load() as load if load is latch:
                    align = load.align
                case I.Store() as store if store.operands[0] is latch and self._may_be_stored(loop, phi, latch, marks):
                    align = store.align
                case _:
                    continue
            try:
                place = self._affine(access, loop, align)
                if place is None or not self._stays(place, loop):
                    continue
                if self._begins_with(place, start, loop):
                    return place
                if (not marks or Mark.PARALLEL in marks) and self._is_there(place):
                    return replace(place, begun=False)
            except TooComplex:
                pass
        return None

    def _may_be_stored(self, loop: Loop, phi: I.Phi, latch: Value, marks: Marks) -> bool:
        """Iterations of a marked loop see nothing of one another but what they add up, nor do those inside of the
        reverse of one. Other loops, inside of marked ones, may go from one element of an array to the next. What a
        marked loop carries in a reduction may be stored as well, on a tape: there each iteration does need the one
        before, and nobody would see that any more. Not so where it only adds to what it finds, and goes on with a value
        of another place."""
        if Mark.PARALLEL not in marks:
            return Mark.REVERSED in marks
        found = chain(phi, self._uses, loop.blocks, self._facts.block_of)
        return found is not None and latch not in found.steps

    def _affine(self, access: Access, loop: Loop, align: int | None) -> _Place | None:
        instruction = access.instruction
        block = self._facts.block_of[instruction]
        size = access.size
        if size is None or not isinstance(instruction, I.Load | I.Store) or not I.is_plain(instruction):
            return None
        if not self._facts.once_per_iteration(block, loop) or not self._can_be_repeated(access.pointer, loop):
            return None
        parts = self._facts.form_at(access.pointer, block).polynomial.coefficients(self._facts.iteration(loop))
        step = parts[1].value if len(parts) == 2 else None
        if not step or not self._facts.is_invariant(parts[0], loop):
            return None
        return _Place(access, access.pointer, parts[0], step, size, align)

    def _can_be_repeated(self, pointer: Value, loop: Loop) -> bool:
        """Can an address be computed at the start of an iteration?"""
        if not self._is_inside(pointer, loop) or (isinstance(pointer, I.Phi) and pointer in loop.header.instructions):
            return True
        return isinstance(pointer, _PLAIN) and all(self._can_be_repeated(o, loop) for o in pointer.operands)

    def _is_inside(self, value: Value, loop: Loop) -> bool:
        return self._facts.block_of.get(value) in loop.blocks

    def _stays(self, place: _Place, loop: Loop) -> bool:
        """Does an iteration write there no more, once it has come so far?"""
        own = place.access
        home = self._facts.block_of[own.instruction]
        here = place.first + Polynomial.atom(self._facts.iteration(loop)).scale(place.step)
        for access in self._memory.inside(loop):
            block = self._facts.block_of[access.instruction]
            if access is own or not access.writes or not self._points_to.may_meet(access.objects, own.objects):
                continue
            every_time = block is home or self._facts.once_per_iteration(block, loop)
            if every_time and self._loops.precedes(access.instruction, own.instruction):
                continue
            if not self._alias.keeps_off(access, here, place.size) and not self._alias.never_meet(access, own, loop):
                return False
        return True

    def _begins_with(self, place: _Place, start: Value, loop: Loop) -> bool:
        """Does memory hold `start` a step before the first place, when the loop begins?"""
        where = place.first.add_constant(-place.step)

        def miss(writes: Iterable[Access]) -> bool:
            return all(self._alias.keeps_off(a, where, place.size) for a in writes)

        block = loop.preheader
        while block is not None:
            for instruction in reversed(block.instructions):
                if self._holds(instruction, where, place, start):
                    return True
                if not miss(self._writes(instruction, place.access.objects)):
                    return False
            above = self._facts.dominators.idom[block]
            if above is not None:
                between = [i for b in self._between(above, block) for i in b.instructions]
                writes = [access for i in between for access in self._writes(i, place.access.objects)]
                if writes and not (self._is_fixed(where) and miss(writes)):
                    return False
            block = above
        return False

    def _is_there(self, place: _Place) -> bool:
        """May what lies a step before the first place be loaded, whatever it is?"""
        items = list(place.access.objects)
        if len(items) != 1 or items[0].site is None:
            return False
        size = left(self._layout, items[0], Congruence(0, 0))
        offset = place.first.add_constant(-place.step) - Polynomial.atom(self._facts.leaf(items[0].site))
        return size is not None and self._facts.interval(offset).within(Interval(0, size - place.size))

    def _is_fixed(self, place: Polynomial) -> bool:
        """Is an address the same throughout, whichever iterations of loops write meanwhile?"""
        return all(isinstance(a, Leaf) and self._is_outside(a.value) for a in place.atoms)

    def _is_outside(self, value: Value) -> bool:
        block = self._facts.block_of.get(value)
        return block is None or self._loops.loop_of[block] is None

    def _writes(self, instruction: I.Instruction, objects: Objects) -> Iterator[Access]:
        """What an instruction may write of some objects."""
        found = self._memory.at(instruction)
        return (a for a in found if a.writes and self._points_to.may_meet(a.objects, objects))

    def _holds(self, instruction: I.Instruction, where: Polynomial, place: _Place, start: Value) -> bool:
        """Does an instruction tell that there is `start`?"""
        match instruction:
            case I.Load() if instruction is start:
                return self._is_at(instruction, instruction.operands[0], where)
            case I.Store() if is_same(instruction.operands[0], start):
                return self._is_at(instruction, instruction.operands[1], where)
            case I.Call() if is_zero(start) and call_effect(instruction) is Effect.MEMORY_SET:
                block = self._facts.block_of[instruction]
                begin = self._facts.form_at(instruction.operands[0], block).polynomial
                size = int_value(instruction.operands[2])
                inside = self._facts.interval(where - begin)
                cleared = int_value(instruction.operands[1]) == 0 and size is not None
                return cleared and inside.within(Interval(0, (size or 0) - place.size))
            case I.Call() if is_zero(start):
                sites = {o.site for o in place.access.objects}
                return callee_name(instruction) == "calloc" and sites == {instruction}
            case _:
                return False

    def _is_at(self, instruction: I.Instruction, pointer: Value, where: Polynomial) -> bool:
        found = self._facts.form_at(pointer, self._facts.block_of[instruction]).polynomial
        return (found - where).value == 0

    def _between(self, above: BasicBlock, block: BasicBlock) -> set[BasicBlock]:
        """The blocks on paths from one to the other."""
        before = self._loops.cfg.reachable_preds
        return set(reached(before(block), before, lambda b: b is not above))

    # -- loading it

    def _load(self, phi: I.Phi, loop: Loop, place: _Place, at: Builder) -> Value:
        pointer = self._again(place.pointer, loop, at, {})
        back = at.gep(T.I8, pointer, [const_int(T.I64, -place.step)])
        load = at.load(phi.type, back, place.align)
        load.metadata = [(k, n) for k, n in place.access.instruction.metadata if k in _KEPT]
        return load

    def _again(self, value: Value, loop: Loop, at: Builder, copies: dict[Value, Value]) -> Value:
        if not self._is_inside(value, loop) or isinstance(value, I.Phi):
            return value
        assert isinstance(value, I.Instruction)
        if value not in copies:
            copy = with_operands(value, [self._again(o, loop, at, copies) for o in value.operands])
            copy.metadata = [(k, n) for k, n in value.metadata if k == "dbg"]
            copy.flags = ()
            copies[value] = at.insert(copy)
        return copies[value]


def _ways(phi: I.Phi, loop: Loop) -> tuple[Value, Value]:
    """What a phi of a header is in the first iteration, and in all later ones."""
    start, later = (next(v for v, b in phi.incoming if (b in loop) is inside) for inside in (False, True))
    return start, later
