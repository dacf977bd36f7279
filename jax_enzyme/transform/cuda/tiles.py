"""Shared memory that is a copy of what the kernel reads is read at the source.

    before    s[y][x] = a[row * n + p + x]; __syncthreads(); ... s[y][k] ...        y, x: the thread
    after     ... a[row * n + p + k] ...

A processor has caches, so the copy is of no use there; and to a derivative it is a burden: the tile is overwritten in
the next round, so that every number read from it would have to be kept, while inputs can be read again.

It is done for an array whose stores every thread of the block comes to, each at a place of its own, if what is stored
is computed from indices, what all threads share, and inputs. A place is then known to be written by one thread,
whose index follows from the address as digits follow from a number. That it holds what that thread stored in this round
is what the kernel's barriers are there for: without them it would race. A tile that is read across, as in a transpose,
stays: there the copy is of use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.dominators import Dominators
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.analysis.polynomials import Atom, Leaf, Polynomial, emit
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import with_operands
from jax_enzyme.ir.module import Function, GlobalVariable, Module, callee_name
from jax_enzyme.ir.reach import Reached, reached
from jax_enzyme.ir.values import Argument, BasicBlock, Value
from jax_enzyme.signature.launch import Shape
from jax_enzyme.transform.cuda import marks
from jax_enzyme.transform.cuda.group import Group, prepare
from jax_enzyme.transform.cuda.spaces import is_dynamic, uses
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
    prepare(kernel, Group((), (marks.MEET_BLOCK,), (marks.MEET_WARP,)))
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
class _Thread:
    """Another thread, as code in block `here` finds its numbers, by their names."""

    here: BasicBlock
    numbers: Mapping[str, Value]


@dataclass(frozen=True)
class _Written:
    """A store, and how its address follows from the thread's numbers: coefficients by axis, largest first."""

    store: I.Store
    start: int
    size: int
    digits: tuple[tuple[int, str, int], ...]

    def meets(self, other: _Written) -> bool:
        """May two stores write the same byte? Members of a structure in an array do not, nor do two arrays."""
        if abs(self.start - other.start) >= max(self._reach(), other._reach()):
            return False
        first, second = sorted((self, other), key=lambda s: s.start)
        least = min((d[0] for d in self.digits), default=0)
        beside = first.start + first.size <= second.start and second.start + second.size - first.start <= least
        return self.digits != other.digits or not beside

    def _reach(self) -> int:
        return self.size + sum(factor * (extent - 1) for factor, _, extent in self.digits)


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
        self._extents = {n: e for n, e in zip(marks.THREADS, shape.block, strict=True) if e > 1}
        self._counters: dict[Loop, Value] = {}

    def run(self, note: Note | None) -> None:
        plans = self._plans()
        for _, _, threads in plans:
            for polynomial in threads.values():
                for atom in polynomial.atoms:
                    self._operand(atom)  # counters are added while blocks are still those that were analysed
        replaced: dict[Value, Value] = {load: self._computed(load, s, q) for load, s, q in plans}
        if note is not None:
            for load, _, _ in plans:
                value = replaced[load]
                if isinstance(value, I.Instruction):
                    note(load, value)
            return
        substitute(self._kernel, replaced)

    def _plans(self) -> list[tuple[I.Load, _Written, dict[str, Polynomial]]]:
        """Every load of the array, the store that wrote what it reads, and the numbers of the thread that did; nothing
        where that is not known of each."""
        accesses = self._accesses() or []
        stores: list[_Written] = []
        for store in accesses:
            written = self._written(store) if isinstance(store, I.Store) else None
            if isinstance(store, I.Store) and written is None:
                return []
            stores += [written] if written is not None else []
        plans: list[tuple[I.Load, _Written, dict[str, Polynomial]]] = []
        for load in accesses:
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
        found: list[I.Load | I.Store] = []
        pointers: list[Value] = [self._variable]
        for pointer in pointers:
            for instruction in self._kernel.instructions():
                if pointer not in instruction.operands:
                    continue
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

    def _written(self, store: I.Store) -> _Written | None:
        """A store that every thread comes to, at a place of its own."""
        if self._facts.block_of[store] not in self._common:
            return None
        digits: list[tuple[int, str, int]] = []
        start = 0
        for monomial, factor in self._offset(store).terms.items():
            atom = monomial[0][0] if len(monomial) == 1 and monomial[0][1] == 1 else None
            name = callee_name(atom.value) if isinstance(atom, Leaf) else ""
            if not monomial:
                start = factor
            elif name in self._extents and factor > 0:
                digits.append((factor, name, self._extents[name]))
            else:
                return None
        digits.sort()
        span = self._layout.store_size(store.operands[0].type)
        for factor, _, extent in digits:
            if factor < span:
                return None
            span = factor * extent
        if {name for _, name, _ in digits} != set(self._extents) or len(digits) != len(self._extents):
            return None
        size = self._layout.store_size(store.operands[0].type)
        return _Written(store, start, size, tuple(reversed(digits)))

    # -- who wrote it

    def _source(self, load: I.Load, stores: list[_Written]) -> tuple[_Written, dict[str, Polynomial]] | None:
        """The last store before a load that wrote what is loaded, and the numbers of the thread that did."""
        found = [(s, q) for s in stores if (q := self._thread_of(load, s)) is not None]
        return next((f for f in found if not any(self._comes_between(f[0], o, load) for o in stores)), None)

    def _comes_between(self, store: _Written, other: _Written, load: I.Load) -> bool:
        """May another store to the same places come after a store and before a load?"""
        if other is store or not other.meets(store):
            return False
        there, home, here = (self._facts.block_of[i] for i in (other.store, store.store, load))
        if there is home:
            return home.instructions.index(other.store) > home.instructions.index(store.store)
        if there is here and here.instructions.index(other.store) < here.instructions.index(load):
            return True
        return here in reached(there.successors, lambda block: block.successors, lambda block: block is not home)

    def _thread_of(self, load: I.Load, written: _Written) -> dict[str, Polynomial] | None:
        """The numbers of the thread that wrote what is loaded."""
        here, there = self._facts.block_of[load], self._facts.block_of[written.store]
        if load.type != written.store.operands[0].type or not self._behind(written.store, there, load, here):
            return None
        conditions = self._facts.guards.at(here)
        rest = self._offset(load).add_constant(-written.start)
        found: dict[str, Polynomial] = {}
        for factor, name, extent in written.digits:
            whole = Polynomial({m: c // factor for m, c in rest.terms.items() if c % factor == 0})
            known = self._facts.bounds(whole, conditions)
            if known.low < 0 or known.high >= extent:
                return None
            found[name] = whole
            rest = rest - whole.scale(factor)
        return None if rest.terms else found

    def _behind(self, store: I.Store, there: BasicBlock, load: I.Load, here: BasicBlock) -> bool:
        """Does the load come after the store in the same round of the loops around the store?"""
        around = self._loops.loop_of[there]
        if around is not None and here not in around:
            return False
        return self._loops.precedes(store, load)

    # -- what it wrote

    def _may_compute(self, load: I.Load, written: _Written, threads: Mapping[str, Polynomial]) -> bool:
        """Can the value be computed again where it is loaded, without more work than a few additions, and from memory
        that neighbouring threads read side by side?"""
        here = self._facts.block_of[load]
        seen = Reached([written.store.operands[0]], lambda v: not self._known(v, here))
        floating = 0
        for one in seen:
            if not isinstance(one, I.Instruction) or len(seen) > _LONGEST:
                return False
            if callee_name(one) in self._extents:
                continue
            if callee_name(one) in (marks.LANE, marks.WARP):
                return False
            choice = self._choice(one)
            if isinstance(one, I.Load):
                if not self._is_input(one) or not self._side_by_side(one, threads):
                    return False
                if self._straight and not self._has_first(one):
                    return False
            elif choice is None and (isinstance(one, I.Phi) or not speculatable(one)):
                return False
            else:
                floating += T.is_float(one.type) and choice is None
            seen.add(choice if choice is not None else one.operands)
        return floating <= _ARITHMETIC

    def _known(self, value: Value, here: BasicBlock) -> bool:
        """Is a value the same for all threads, and there where the load is?"""
        if not isinstance(value, I.Instruction):
            return True
        home = self._facts.block_of[value]
        return self._uniform.uniform(value) and (home is here or self._loops.dominators.dominates(home, here))

    def _side_by_side(self, load: I.Load, threads: Mapping[str, Polynomial]) -> bool:
        """Do neighbouring threads read neighbouring numbers, or the same?"""
        fastest = next(iter(self._extents), "")
        pointer = self._facts.form_at(load.operands[0], self._facts.block_of[load]).polynomial
        step = 0
        for atom in pointer.atoms:
            name = callee_name(atom.value) if isinstance(atom, Leaf) else ""
            for inner in threads[name].atoms if name in threads else ():
                if isinstance(inner, Leaf) and isinstance(inner.value, I.Call) and callee_name(inner.value) == fastest:
                    outer, here = pointer.coefficients(atom), threads[name].coefficients(inner)
                    factors = [parts[1].value if len(parts) == 2 else None for parts in (outer, here)]
                    if factors[0] is None or factors[1] is None:
                        return False
                    step += factors[0] * factors[1]
        return abs(step) in (0, self._layout.alloc_size(load.type))

    @staticmethod
    def _is_input(value: Value) -> bool:
        return isinstance(value, I.Load) and marks.reads_only(I.base_of(value.operands[0]))

    def _has_first(self, load: I.Load) -> bool:
        """Is there something to read at the beginning of the memory that is loaded from?"""
        base, size = I.base_of(load.operands[0]), self._layout.store_size(load.type)
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

    def _computed(self, load: I.Load, written: _Written, threads: Mapping[str, Polynomial]) -> Value:
        block = next(b for b in self._kernel.blocks if load in b.instructions)
        rest = split_before(self._kernel, block, block.instructions.index(load))
        at = Builder(block)
        numbers = {n: emit(at, p, T.I32, self._operand) for n, p in threads.items()}
        here = self._facts.block_of[load]
        at, value = self._again(at, written.store.operands[0], _Thread(here, numbers), {}, ())
        at.br(rest)
        return value

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
        if self._known(value, thread.here) or value in made:
            return at, made.get(value, value)
        assert isinstance(value, I.Instruction)
        name = callee_name(value)
        if name in thread.numbers:
            return at, thread.numbers[name]
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
            base = I.base_of(value.operands[0])
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
