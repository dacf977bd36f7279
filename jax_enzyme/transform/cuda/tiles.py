"""Shared memory that is a copy of what the kernel reads is read at the source.

    before    s[y][x] = a[row * n + p + x]; __syncthreads(); ... s[y][k] ...        y, x: the thread
    after     ... a[row * n + p + k] ...

A processor has caches, so the copy is of no use there; and to a derivative it is a burden: the tile is overwritten in
the next round, so that every number read from it would have to be kept, while inputs can be read again.

It is done for an array whose stores every thread of the block comes to, each at a place of its own, if what is stored
is computed from indices, what all threads share, and inputs. A place is then known to be written by one thread,
whose index follows from the address as digits follow from a number (`tile_places`). Several stores that copy numbers
some bytes apart, as those of a `float4` do, are one store whose digits count them too; and so are those of all
iterations of a loop that every thread runs equally often. That a place holds what that thread stored in this round is
what the kernel's barriers are there for: without them it would race. On a processor, a tile that is read across, as in
a transpose, stays: there the copy is of use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import gcd, prod

import numpy as np

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.dominators import Dominators
from jax_enzyme.analysis.folding import Numbers
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.analysis.polynomials import Atom, Iteration, Leaf, Polynomial, emit
from jax_enzyme.analysis.ranges import Interval
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.analysis.trips import run_through
from jax_enzyme.classes import dataclass, replace
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import with_operands
from jax_enzyme.ir.module import Function, GlobalVariable, Module, callee_name
from jax_enzyme.ir.module import uses as uses_in
from jax_enzyme.ir.reach import Reached, reached
from jax_enzyme.ir.sameness import is_same
from jax_enzyme.ir.values import Argument, BasicBlock, ConstantFloat, Value, int_value
from jax_enzyme.signature.launch import MAX_SHARED, Shape
from jax_enzyme.transform.cuda import marks
from jax_enzyme.transform.cuda.evening import Counter, counters_of
from jax_enzyme.transform.cuda.group import Group as Meetings
from jax_enzyme.transform.cuda.group import prepare
from jax_enzyme.transform.cuda.spaces import is_dynamic, uses
from jax_enzyme.transform.cuda.tile_places import MEMBER, Digit, Group, Name, Places, Threads, places
from jax_enzyme.transform.cuda.uniform import Uniformity, speculatable
from jax_enzyme.transform.private_globals import replace_in
from jax_enzyme.transform.rewriting import count_iterations, split_before, substitute

_LONGEST = 40
_ARITHMETIC = 2
"""The most instructions that are computed again for one load, and the most of them that compute with numbers. Where it
takes more, the load stays one from the tile."""


Note = Callable[[I.Load, I.Instruction], None]


def read_at_source(
    module: Module, kernel: Function, shape: Shape, shared: Iterable[GlobalVariable], note: Note | None = None
) -> None:
    """Changes the function of one thread in place. With a `note`, loads stay, and it is told of each what else has the
    same value, computed without branches."""
    variables = list(shared)
    dynamic = [v for v in variables if is_dynamic(v)]
    if len(dynamic) > 1:  # they are the same memory
        variables = [v for v in variables if v not in dynamic]
    replace_in(kernel, {v: v for v in variables})
    prepare(kernel, Meetings((), (marks.MEET_BLOCK,), (marks.MEET_WARP,)))
    for variable in variables:
        uniform = Uniformity(kernel, (*marks.THREADS, marks.LANE, marks.WARP), (marks.MEET_BLOCK,))
        if uniform.leaving or uniform.decided:
            return
        if not any(uses(f, variable) for f in module.functions.values() if f is not kernel):
            _Tile(module, kernel, shape, variable, uniform, straight=note is not None).run(note)


_Arms = tuple[Value, Value, Value]
"""What a value is chosen by, and what it is where that holds and where not."""
_Made = dict[Value, Value]
_Guards = tuple[Value, ...]


@dataclass(frozen=True)
class _Written:
    """Stores of one block, where they store, and the loads of the first that have to be moved for the others. `loops`
    are those whose iterations are told apart too, from the outermost on, and `counters` what they count; `threads`: all
    that store."""

    stores: tuple[I.Store, ...]
    places: Places
    moved: frozenset[Value]
    threads: Threads
    loops: tuple[Loop, ...]
    counters: Mapping[Value, tuple[Loop, Counter]]

    @property
    def step(self) -> int:
        """What all distances by which they are moved are multiples of."""
        return gcd(self.places.first[MEMBER], *(digit.counts[MEMBER] for digit in self.places.digits))


@dataclass(frozen=True)
class _Thread:
    """Another thread, as code in block `here` finds its numbers, by their names, and what it stored."""

    here: BasicBlock
    numbers: Mapping[Name, Value]
    written: _Written


_Plan = tuple[I.Load, _Written, tuple[Group, ...]]


class _Tile:
    """One array in shared memory."""

    def __init__(
        self,
        module: Module,
        kernel: Function,
        shape: Shape,
        variable: GlobalVariable,
        uniform: Uniformity,
        *,
        straight: bool,
    ) -> None:
        self._straight = straight
        cfg = Cfg(kernel)
        self._kernel = kernel
        self._variable = variable
        self._uniform = uniform
        self._common = set(uniform.order(kernel.entry))
        self._layout = DataLayout(module)
        self._loops = Loops(cfg, Dominators(cfg))
        self._facts = Recurrences(kernel, self._loops, module)
        self._extents: dict[Name, int] = {n: e for n, e in zip(marks.THREADS, shape.block, strict=True) if e > 1}
        self._threads = Threads(self._extents)
        self._counters: dict[Loop, Value] = {}

    def run(self, note: Note | None) -> None:
        plans = self._plans()
        for _, _, groups in plans:
            for atom in (a for g in groups for a in g.number.atoms):
                self._operand(atom)  # counters are added while blocks are still those that were analysed
        replaced: dict[Value, Value] = {load: self._computed(load, s, q) for load, s, q in plans}
        if note is not None:
            for load, _, _ in plans:
                value = replaced[load]
                if isinstance(value, I.Instruction):
                    note(load, value)
            return
        substitute(self._kernel, replaced)

    def _plans(self) -> list[_Plan]:
        """Every load of the array, the store that wrote what it reads, and the digits of its address; nothing where
        that is not known of each."""
        accesses = self._accesses() or []
        stores = self._written([a for a in accesses if isinstance(a, I.Store)])
        plans: list[_Plan] = []
        for load in accesses if stores else ():
            if not isinstance(load, I.Load):
                continue
            found = self._source(load, stores)
            if found is None or not self._may_compute(load, *found):
                return []
            plans.append((load, *found))
        return plans

    # -- what there is

    def _accesses(self) -> list[I.Load | I.Store] | None:
        """The loads and stores of the array; None where it is used in other ways."""
        users = uses_in(self._kernel)
        found: list[I.Load | I.Store] = []
        pointers: list[Value] = [self._variable]
        for pointer in pointers:
            for instruction, _ in users.get(pointer, ()):
                match instruction:
                    case I.GetElementPtr() if instruction.operands[0] is pointer:
                        pointers.append(instruction)
                    case I.Load():
                        found.append(instruction)
                    case I.Store() if instruction.operands[1] is pointer and instruction.operands[0] is not pointer:
                        found.append(instruction)
                    case _:
                        return None
        return found

    def _offset(self, access: I.Load | I.Store) -> Polynomial:
        pointer = access.operands[0] if isinstance(access, I.Load) else access.operands[1]
        form = self._facts.form_at(pointer, self._facts.block_of[access])
        return form.polynomial - Polynomial.atom(self._facts.leaf(self._variable))

    def _written(self, stores: list[I.Store]) -> list[_Written]:
        """Stores that every thread comes to, at places of its own; nothing where that is not known of all."""
        blocks: dict[tuple[BasicBlock, T.Type], list[I.Store]] = {}
        for store in stores:
            blocks.setdefault((self._facts.block_of[store], store.operands[0].type), []).append(store)
        found: list[_Written] = []
        for (block, _), group in blocks.items():
            if block not in self._common:
                return []
            group.sort(key=block.instructions.index)
            alone = [self._family([store]) for store in group]
            together = self._family(group) if len(group) > 1 else None
            if together is None and None in alone:
                return []
            found += [together] if together is not None else [w for w in alone if w is not None]
        return found

    def _family(self, stores: list[I.Store]) -> _Written | None:
        """Stores as one, whose values are those of the first, read some bytes further on."""
        members: list[tuple[Numbers, int]] = []
        moved: set[Value] = set()
        offsets = [self._offset(store) for store in stores]
        repeats = self._repeats(self._facts.block_of[stores[0]], offsets)
        if repeats is None:
            return None
        counters = {loop: counters_of(self._facts, loop) for loop in repeats}
        threads = Threads({**self._extents, **dict(reversed(repeats.items()))}, counters) if repeats else self._threads
        for store, offset in zip(stores, offsets, strict=True):
            at, rest = threads.split(offset)
            by = self._moved(stores[0].operands[0], store.operands[0], moved) if store is not stores[0] else 0
            if rest.terms or by is None:
                return None
            members.append((at, by))
        found = places(threads, members, self._layout.store_size(stores[0].operands[0].type))
        if found is None:
            return None
        known: dict[Value, tuple[Loop, Counter]] = {c.phi: (loop, c) for loop in repeats for c in counters[loop]}
        return _Written(tuple(stores), found, frozenset(moved), threads, tuple(repeats), known)

    def _repeats(self, block: BasicBlock, offsets: Iterable[Polynomial]) -> dict[Loop, int] | None:
        """The loops in which stores of a block move on, from the outermost on, and how many iterations they have. None
        where that differs between threads, not every iteration stores, or they are too many for places of their own."""
        moving = [a.loop for offset in offsets for a in offset.atoms if isinstance(a, Iteration)]
        if not moving:
            return {}
        outermost = min(moving, key=lambda loop: loop.depth)
        found = run_through(self._facts, block, outermost.parent)
        if found is None or found[0] not in self._common:
            return None
        repeats = {loop: count + 1 for loop, count in reversed(found[1].items())}
        return repeats if self._threads.count * prod(repeats.values()) <= MAX_SHARED else None

    def _moved(self, one: Value, other: Value, moved: set[Value]) -> int | None:
        """How many bytes further on `other` reads than `one` does, being the same otherwise; the loads of `one`."""
        if type(one) is not type(other) or one.type != other.type:
            return None
        if isinstance(one, I.Load) and isinstance(other, I.Load):
            (at, rest), (there, beyond) = (
                self._threads.split(self._facts.form_at(x.operands[0], self._facts.block_of[x]).polynomial)
                for x in (one, other)
            )
            by = there - at
            moved.add(one)
            is_input = self._is_input(one) and self._is_input(other)
            return int(by[0]) if is_input and not (rest - beyond).terms and (by == by[0]).all() else None
        first, second = self._choice(one), self._choice(other)
        if first is None or second is None or first[0] is not second[0]:
            return None
        found: list[int] = []
        for mine, its in zip(first[1:], second[1:], strict=True):
            if mine is its or (isinstance(mine, ConstantFloat) and is_same(mine, its)):
                continue
            by = self._moved(mine, its, moved)
            if by is None:
                return None
            found.append(by)
        return found[0] if len(set(found)) == 1 else None

    # -- who wrote it

    def _source(self, load: I.Load, stores: list[_Written]) -> tuple[_Written, tuple[Group, ...]] | None:
        """The last store before a load that wrote what is loaded, and the digits of the address."""
        found = [(s, g) for s in stores if (g := self._groups(load, s)) is not None]
        return next((f for f in found if not any(self._comes_between(f[0], o, load) for o in stores)), None)

    def _comes_between(self, written: _Written, other: _Written, load: I.Load) -> bool:
        """May another store to the same places come after a store and before a load?"""
        if other is written or not other.places.meets(written.places):
            return False
        there, home, here = (self._facts.block_of[i] for i in (other.stores[0], written.stores[0], load))
        if written.loops and there in written.loops[0]:
            return True  # in a later iteration perhaps
        if there is home:
            return home.instructions.index(other.stores[-1]) > home.instructions.index(written.stores[0])
        if there is here and here.instructions.index(other.stores[0]) < here.instructions.index(load):
            return True
        return here in reached(there.successors, lambda block: block.successors, lambda block: block is not home)

    def _groups(self, load: I.Load, written: _Written) -> tuple[Group, ...] | None:
        """The digits of the address that is loaded from; None where it may be another."""
        here, there = self._facts.block_of[load], self._facts.block_of[written.stores[0]]
        if load.type != written.stores[0].operands[0].type or not self._behind(written, there, load, here):
            return None
        conditions = self._facts.guards.at(here)

        def grouped(rest: Polynomial, digits: tuple[Digit, ...]) -> tuple[Group, ...] | None:
            """The first few digits as one number, and then the others."""
            for length in range(1, len(digits) + 1):
                last = digits[length - 1]
                if length > 1 and last.gap * last.extent != digits[length - 2].gap:
                    return None  # there is room between them
                whole = {m: c // last.gap for m, c in rest.terms.items() if not m or c % last.gap == 0}
                number = Polynomial({m: c for m, c in whole.items() if c})
                known = self._facts.bounds(number, conditions)
                if known.within(Interval(0, prod(d.extent for d in digits[:length]) - 1)):
                    others = grouped(rest - number.scale(last.gap), digits[length:])
                    if others is not None:
                        return Group(number, digits[:length]), *others
            return None if rest.terms or digits else ()

        return grouped(self._offset(load).add_constant(-written.places.start), written.places.digits)

    def _behind(self, written: _Written, there: BasicBlock, load: I.Load, here: BasicBlock) -> bool:
        """Does the load come after the stores in the same round of the loops around them, and behind those whose
        iterations are told apart?"""
        around = written.loops[0].parent if written.loops else self._loops.loop_of[there]
        if (around is not None and here not in around) or (written.loops and here in written.loops[0]):
            return False
        return self._loops.precedes(written.stores[-1], load)

    # -- what it wrote

    def _may_compute(self, load: I.Load, written: _Written, groups: tuple[Group, ...]) -> bool:
        """Can the value be computed again where it is loaded, without more work than a few additions, and from memory
        that neighbouring threads read side by side?"""
        here = self._facts.block_of[load]
        seen = Reached([written.stores[0].operands[0]], lambda v: not self._known(v, here, written))
        repeated = self._straight and self._loops.loop_of[here] is not None
        floating = 0
        for one in seen:
            if not isinstance(one, I.Instruction) or len(seen) > _LONGEST:
                return False
            if callee_name(one) in self._extents:
                continue
            if one in written.counters:
                seen.add([written.counters[one][1].start])
                continue
            if callee_name(one) in (marks.LANE, marks.WARP):
                return False
            choice = self._choice(one)
            if isinstance(one, I.Load):
                if not self._is_input(one) or not (repeated or self._side_by_side(one, written, groups)):
                    return False
                if self._straight and not self._has_first(one):
                    return False
            elif choice is None and (isinstance(one, I.Phi) or not speculatable(one)):
                return False
            else:
                floating += T.is_float(one.type) and choice is None
            seen.add(choice if choice is not None else one.operands)
        return floating <= _ARITHMETIC

    def _known(self, value: Value, here: BasicBlock, written: _Written) -> bool:
        """Is a value the same for all threads when they store, and there where the load is?"""
        if not isinstance(value, I.Instruction):
            return True
        home = self._facts.block_of[value]
        if written.loops and home in written.loops[0]:
            return False
        return self._uniform.uniform(value) and (home is here or self._loops.dominators.dominates(home, here))

    def _side_by_side(self, load: I.Load, written: _Written, groups: tuple[Group, ...]) -> bool:
        """Do most neighbouring threads read neighbouring numbers, or the same?"""
        writer = {name: np.full(self._threads.count, n) for name, n in written.places.first.items()}
        for group in groups:
            number, _ = self._threads.split(group.number, zero=True)
            for divisor, modulus, digit in group:
                own = number // divisor if modulus is None else number // divisor % modulus
                for name, count in digit.counts.items():
                    writer[name] = writer[name] + count * own
        thread = np.zeros(self._threads.count, np.int64)
        for name, extent in reversed(written.threads.extents.items()):
            thread = thread * extent + writer[name].clip(0, extent - 1)
        own, rest = written.threads.split(self._facts.form_at(load.operands[0], self._facts.block_of[load]).polynomial)
        if any(written.threads.split(Polynomial.atom(atom))[1].terms == {} for atom in rest.atoms):
            return False
        steps = np.abs(np.diff(own[thread] + (writer[MEMBER] if load in written.moved else 0)))
        near = (steps == 0) | (steps == self._layout.alloc_size(load.type))
        return 2 * int(near.sum()) >= len(steps)

    def _base(self, load: I.Load) -> Value:
        """The memory that is loaded from, behind pointers that move on from round to round too."""
        form = self._facts.form_at(load.operands[0], self._facts.block_of[load]).polynomial
        found = [a.value for a in form.atoms if isinstance(a, Leaf) and T.is_pointer(a.value.type)]
        return found[0] if len(found) == 1 else I.base_of(load.operands[0])

    def _is_input(self, value: Value) -> bool:
        return isinstance(value, I.Load) and marks.reads_only(self._base(value))

    def _has_first(self, load: I.Load) -> bool:
        """Is there something to read at the beginning of the memory that is loaded from?"""
        base, size = self._base(load), self._layout.store_size(load.type)
        words = base.attributes if isinstance(base, Argument) else ()
        held = (w.removeprefix("dereferenceable(").rstrip(")") for w in words if w.startswith("dereferenceable("))
        return any(int(n) >= size for n in held)

    def _choice(self, value: Value) -> _Arms | None:
        """The condition of a phi behind an `if`, and its values where that holds and where it does not."""
        if not isinstance(value, I.Phi) or len(value.operands) != 2:
            return None
        block = self._facts.block_of[value]
        parent = self._loops.dominators.idom.get(block)
        branch = parent.terminator if parent is not None else None
        loops = self._loops.loop_of
        if parent is None or not isinstance(branch, I.CondBranch) or loops[parent] is not loops[block]:
            return None
        values: list[Value] = []
        for target in branch.targets:
            arm = parent if target is block else target
            straight = arm is parent or (arm.successors == [block] and self._facts.cfg.reachable_preds(arm) == [parent])
            if not straight or arm not in value.targets:
                return None
            values.append(value.operands[value.targets.index(arm)])
        return branch.operands[0], values[0], values[1]

    def _computed(self, load: I.Load, written: _Written, groups: tuple[Group, ...]) -> Value:
        block = next(b for b in self._kernel.blocks if load in b.instructions)
        rest = split_before(self._kernel, block, block.instructions.index(load))
        at = Builder(block)
        thread = _Thread(self._facts.block_of[load], self._numbers(at, written, groups), written)
        at, value = self._again(at, written.stores[0].operands[0], thread, {}, ())
        at.br(rest)
        return value

    def _numbers(self, at: Builder, written: _Written, groups: tuple[Group, ...]) -> dict[Name, Value]:
        """The numbers of the thread that wrote, and which of the stores it was."""
        found: dict[Name, Value] = {name: const_int(T.I32, n) for name, n in written.places.first.items()}
        for group in groups:
            number = emit(at, group.number, T.I32, self._operand)
            for divisor, modulus, digit in group:
                own = number if divisor == 1 else at.binary("udiv", number, const_int(T.I32, divisor))
                own = own if modulus is None else at.binary("urem", own, const_int(T.I32, modulus))
                for name, count in digit.counts.items():
                    if count:
                        counted = own if count == 1 else at.binary("mul", own, const_int(T.I32, count))
                        is_zero = int_value(found[name]) == 0
                        found[name] = counted if is_zero else at.binary("add", found[name], counted)
        return found

    def _operand(self, atom: Atom) -> Value:
        if isinstance(atom, Leaf):
            return atom.value
        if atom.loop not in self._counters:
            loop = atom.loop
            entries = [b for b in self._kernel.blocks if b not in loop and loop.header in b.successors]
            self._counters[loop] = count_iterations(loop, entries)
        return self._counters[atom.loop]

    def _again(self, at: Builder, value: Value, thread: _Thread, made: _Made, guards: _Guards) -> tuple[Builder, Value]:
        """The value as another thread computes it, and where to go on. `guards` have to hold for what is read to be
        there: where one does not, anything may be read instead."""
        if self._known(value, thread.here, thread.written) or value in made:
            return at, made.get(value, value)
        assert isinstance(value, I.Instruction)
        name = callee_name(value)
        if name in thread.numbers:
            return at, thread.numbers[name]
        if value in thread.written.counters:
            loop, counter = thread.written.counters[value]
            at, start = self._again(at, counter.start, thread, made, guards)
            number = at.cast("zext", thread.numbers[loop], T.I64)
            made[value] = replace(counter, start=start).after(at, number, ())
            return at, made[value]
        choice = self._choice(value)
        if choice is not None:
            choose = self._selected if self._straight else self._chosen
            at, made[value] = choose(at, choice, thread, made, guards)
            return at, made[value]
        copy = with_operands(value, [])
        for operand in value.operands:
            at, again = self._again(at, operand, thread, made, guards)
            copy.operands.append(again)
        if isinstance(value, I.Load):
            base = self._base(value)
            if value in thread.written.moved and int_value(thread.numbers[MEMBER]) != 0:
                copy.operands[0] = at.gep(T.I8, copy.operands[0], [at.cast("sext", thread.numbers[MEMBER], T.I64)])
                assert isinstance(copy, I.Load)
                copy.align = gcd(self._layout.alignment(value), thread.written.step)
            for guard in guards:
                copy.operands[0] = at.select(guard, copy.operands[0], base)
        copy.metadata = []
        made[value] = at.insert(copy)
        return at, copy

    def _chosen(
        self, at: Builder, choice: _Arms, thread: _Thread, made: _Made, guards: _Guards
    ) -> tuple[Builder, Value]:
        """The same branch as that thread has."""
        at, condition = self._again(at, choice[0], thread, made, guards)
        arms = [BasicBlock(name="arm"), BasicBlock(name="arm")]
        joined = BasicBlock(name="joined")
        index = self._kernel.blocks.index(at.block) + 1
        self._kernel.blocks[index:index] = [*arms, joined]
        at.cond_br(condition, arms[0], arms[1])
        incoming: list[tuple[Value, BasicBlock]] = []
        for arm, value in zip(arms, choice[1:], strict=True):
            end, again = self._again(Builder(arm), value, thread, dict(made), guards)
            end.br(joined)
            incoming.append((again, end.block))
        at = Builder(joined)
        return at, at.phi(incoming[0][0].type, incoming)

    def _selected(
        self, at: Builder, choice: _Arms, thread: _Thread, made: _Made, guards: _Guards
    ) -> tuple[Builder, Value]:
        """The value of the branch that thread takes, both being computed."""
        at, condition = self._again(at, choice[0], thread, made, guards)
        not_ = at.binary("xor", condition, const_int(T.I1, 1))
        at, first = self._again(at, choice[1], thread, dict(made), (*guards, condition))
        at, second = self._again(at, choice[2], thread, dict(made), (*guards, not_))
        return at, at.select(condition, first, second)
