"""Loads whose adjoints are added to memory after their loops instead of in them, so that both can be vectorised.

    forward   for i: y[i] = f(x[i-1], x[i], x[i+1])

    reverse   for i: x_[i-1] += a; x_[i] += b; x_[i+1] += c       each addition waits for that of the iteration before
    so        for i: A[i] = a; B[i] = b; C[i] = c                 and no two iterations touch the same place
              for i: x_[i] += A[i+1] + B[i] + C[i-1]              each place gathers what its readers have for it

The order of additions to an adjoint is ours to choose, if nothing else happens to it in between: what is loaded is what
was there in front of the loops, so that no reverse of a write comes behind the addition. `A`, `B` and `C` are local
memory, small enough for a near cache, with rims of zeros for the ends of the second loop, which goes over all places
that anything in the first one reads. The same holds for nests of loops whose iterations come to places in the order of
memory: there, `A` has zeros where rows have rims as well. What is the adjoint of several loads is kept once, also where
they have other signs, or factors that no iteration changes (`x[i+1] - x[i-1]`, `w[0] * x[i-1] + w[1] * x[i]`). Places
may be some items apart from one iteration to the next, as members of records are (`u[3 * i]`, `u[3 * (i + 1)]`): only
those that one iteration shares with others are gathered together.
A loop may be of another length each time (`for t: for i < t: v[i] = f(v[i], v[i+1])`): what lies behind its last item
is set to zero before it is read then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from math import prod

from jax_enzyme.ad.facts.functions import ALONE, Facts
from jax_enzyme.ad.plan.recipes import Recipes
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.polynomials import TooComplex
from jax_enzyme.analysis.words import Words
from jax_enzyme.classes import dataclass, field, replace
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.inlining import recursive_functions
from jax_enzyme.ir.module import is_fused, uses
from jax_enzyme.ir.values import Constant, Value
from jax_enzyme.transform.carried_loads import LENGTHS, longest
from jax_enzyme.transform.rewriting import phis

_BUFFERS = 1 << 18
"""Bytes of local memory, of all loops of a function together."""
_BUFFER = 1 << 17
"""Bytes of it for what is added together: with more, the second-nearest cache has no room left for what is added to."""
_OF_EACH_CALL = 1 << 12
"""Bytes of it in a function that calls itself: there are as many as calls, on one stack."""
_MOST_APART = 16
"""Items from a place to that of the next iteration: of each line that is read, no more than a part is used."""
_NEAR = 4096
"""Places at so small a distance that LLVM's vectoriser sees a store that the next load must wait for."""


@dataclass(frozen=True, eq=False)
class Gather:
    """Loads whose adjoints are added together, behind the outermost loop of `nest` (outermost first). Each place is
    `apart` items of the array behind the one before. From one iteration of a loop to the next, those of each load are
    so many places further (`steps`); in one iteration, its place is so many behind the first one (`shifts`). The one
    loop of a `ragged` one has as many iterations as `counts` says, or fewer. Loads that are `alike` have one adjoint
    but for its sign. `factors` are those of loads that the nest does not change, where without these fewer adjoints
    differ."""

    nest: tuple[Loop, ...]
    counts: tuple[int, ...]
    steps: tuple[int, ...]
    shifts: Mapping[I.Load, int]
    apart: int = 1
    ragged: bool = False
    alike: bool = False
    factors: Mapping[I.Load, tuple[Value, ...]] = field(default_factory=dict[I.Load, tuple[Value, ...]])

    @property
    def loop(self) -> Loop:
        """The loop behind which everything is added."""
        return self.nest[0]

    @property
    def rim(self) -> int:
        """How many items may be asked for before the first one that is kept, and after the last one."""
        return max(self.shifts.values())

    @property
    def span(self) -> int:
        """From the first place of a load to behind the last one."""
        return _span(self.steps, self.counts)

    @property
    def room(self) -> int:
        """Items of what is kept of one adjoint, with its rims."""
        return self.span + 2 * self.rim

    @property
    def start(self) -> int:
        """Where what is kept of the first iterations lies."""
        back = (-step * (count - 1) for step, count in zip(self.steps, self.counts, strict=True) if step < 0)
        return self.rim + sum(back)

    @property
    def first(self) -> Mapping[Loop, int]:
        """The iterations at which a load comes to the first of its places."""
        both = zip(self.nest, self.steps, self.counts, strict=True)
        return {loop: 0 if step > 0 else count - 1 for loop, step, count in both}

    @property
    def has_zeros(self) -> bool:
        """Whether any item stays as it is at the start."""
        return self.room > prod(self.counts)


def _span(steps: tuple[int, ...], counts: tuple[int, ...]) -> int:
    return 1 + sum(abs(step) * (count - 1) for step, count in zip(steps, counts, strict=True))


@dataclass(frozen=True)
class _Stream:
    """A load in all iterations of a nest: `place` is where it begins, without constants; see `Gather` for the rest."""

    load: I.Load
    place: frozenset[tuple[object, int]]
    offset: int
    steps: tuple[int, ...]
    apart: int

    def may_meet(self, other: _Stream, counts: tuple[int, ...], size: int) -> bool:
        """Whether one may come to a place of the other in a nest, where both begin at one place but for a constant,
        and numbers are of so many bytes."""
        if self.steps != other.steps or self.apart != other.apart:
            return True
        items, rest = divmod(abs(self.offset - other.offset), self.apart * size)
        return rest == 0 and items < _span(self.steps, counts)


def late_sums(recipes: Recipes, facts: Facts, words: Words, inert: Collection[Loop]) -> dict[I.Instruction, Gather]:
    """The loads of a function whose adjoints wait; `inert` are the loops that have no reverse."""
    if recipes.execution is not ALONE or not recipes.choices.late_sums or facts.activity.beside:
        return {}
    found: dict[I.Instruction, Gather] = {}
    finder: _Finder | None = None
    for loop in recipes.code.loops:
        if loop.children or loop in inert or longest(recipes.recurrences, loop) not in LENGTHS:
            continue
        finder = finder or _Finder(recipes, facts, words)
        found.update(finder.waiting(loop))
    return found


def _count(recipes: Recipes, loop: Loop) -> int | None:
    """The iterations of a loop with one latch, at which alone it is left, where their number is known."""
    return None if recipes.recurrences.repeats(loop) is None else longest(recipes.recurrences, loop)


class _Finder:
    """Finds what can wait in one function."""

    def __init__(self, recipes: Recipes, facts: Facts, words: Words) -> None:
        self._recipes = recipes
        self._facts = facts
        self._words = words
        self._users = uses(recipes.code.function)
        recursive = {f.name for f in recursive_functions(recipes.points_to.module)}  # what is planned is a copy
        recurses = not recipes.is_root and recipes.code.function.name in recursive
        self._room = _OF_EACH_CALL if recurses else _BUFFERS

    def waiting(self, loop: Loop) -> dict[I.Instruction, Gather]:
        """The loads of an innermost loop that wait for its end, or for that of a loop around it: as many together as
        possible, and if there is a choice as short as possible."""
        found: dict[I.Instruction, Gather] = {}
        nests = list(self._nests(loop))
        together = [g for nest, counts in nests for g in self._together(nest, counts)]
        if not nests and not self._recipes.is_shared(loop):
            together = list(self._ragged(loop))
        for gather in map(self._with_factors, sorted(together, key=lambda g: -len(g.shifts))):
            if found.keys().isdisjoint(gather.shifts) and self._has_room(gather):
                alike = len(self._sums(gather)) == 1
                found.update(dict.fromkeys(gather.shifts, replace(gather, alike=alike)))
        if not nests:
            return found
        nest, counts = nests[0]
        alone = [s for s in self._streams(nest, counts) if s.load not in found and s.apart == 1]
        alone = [s for s in alone if self._recipes.alias.stays(s.load, nest[0])]
        for stream in _waiting(alone, counts[0], self._recipes):
            gather = Gather(nest, counts, stream.steps, {stream.load: 0})
            if self._has_room(gather):
                found[stream.load] = gather
        return found

    def _has_room(self, gather: Gather) -> bool:
        """Whether there is local memory left for it, which is its own then."""
        item = self._recipes.layout.store_size(next(iter(gather.shifts)).type)
        sums = (
            {self._scaled_sum(load, gather.loop)[0] for load in gather.shifts} if gather.factors else self._sums(gather)
        )
        size = gather.room * item * len(sums)
        if size > min(self._room, _BUFFER):
            return False
        self._room -= size
        return True

    def _nests(self, loop: Loop) -> Iterator[tuple[tuple[Loop, ...], tuple[int, ...]]]:
        """An innermost loop alone, with each loop around it that does nothing else as often, and so on. Loops that
        several threads may share are left as they are."""
        nest: tuple[Loop, ...] = ()
        counts: tuple[int, ...] = ()
        for around in loop.ancestors:
            if self._recipes.is_shared(around):
                return
            count = _count(self._recipes, around)
            inner = nest[0].preheader if nest else None
            if count is None or len(around.children) > 1:
                return
            if inner is not None and not self._recipes.recurrences.once_per_iteration(inner, around):
                return
            nest, counts = (around, *nest), (count, *counts)
            yield nest, counts

    def _together(self, nest: tuple[Loop, ...], counts: tuple[int, ...]) -> Iterator[Gather]:
        """Loads that come to neighbouring places, dense enough to go over all places from the first to the last."""
        alike: dict[object, list[_Stream]] = {}
        for stream in self._streams(nest, counts):
            apart = stream.apart * self._recipes.layout.store_size(stream.load.type)
            rest = stream.offset % apart if stream.apart > 1 else 0
            alike.setdefault((stream.place, stream.steps, stream.load.type, apart, rest), []).append(stream)
        for streams in alike.values():
            item = streams[0].apart * self._recipes.layout.store_size(streams[0].load.type)
            pending = sorted(streams, key=lambda s: s.offset)
            while pending:
                first = pending[0]
                reach = Gather(nest, counts, first.steps, {first.load: 0}).span // 2
                shifts = {s.load: divmod(s.offset - first.offset, item) for s in pending}
                near = {load: items for load, (items, rest) in shifts.items() if rest == 0 and items <= reach}
                gather = Gather(nest, counts, first.steps, near, first.apart)
                pending = [s for s in pending if s.load not in near]
                if gather.rim > 0 and gather.span <= 2 * prod(counts):
                    yield gather

    def _ragged(self, loop: Loop) -> Iterator[Gather]:
        """What comes together in an innermost loop whose length differs, from the first place to the last."""
        count = longest(self._recipes.recurrences, loop)
        assert count is not None
        for gather in self._together((loop,), (count,)):
            if gather.apart == 1 and gather.steps[0] > 0:
                yield replace(gather, ragged=True)

    def _streams(self, nest: tuple[Loop, ...], counts: tuple[int, ...]) -> list[_Stream]:
        """The loads of a nest with adjoints, in all its iterations, of numbers that lie side by side. Where several of
        them read what the nest writes, iterations wait for each other in any case. Where one does, it is what the
        iteration itself updates, and others come to other places: each second number of a row, or the rows beside."""
        found: list[_Stream] = []
        written: list[_Stream] = []
        for block in sorted(nest[-1].blocks, key=self._recipes.code.cfg.index.__getitem__):
            if not self._recipes.recurrences.once_per_iteration(block, nest[-1]):
                continue
            for load in block.instructions:
                if not isinstance(load, I.Load) or not isinstance(load.type, T.FloatType) or load.ordering:
                    continue
                if "volatile" in load.flags or not self._facts.has_adjoint(load):
                    continue
                stream = self._stream(load, nest, counts)
                if stream is not None:
                    found.append(stream)
                    if not self._may_wait(nest, load):
                        written.append(stream)
        size = self._recipes.layout.store_size

        def waits(stream: _Stream) -> bool:
            own = [w for w in written if w.place == stream.place]
            alone = all(w.offset == own[0].offset and self._is_updated(w.load, nest[-1]) for w in own)
            return alone and not any(stream.may_meet(w, counts, size(stream.load.type)) for w in own)

        return sorted(filter(waits, found), key=lambda s: s.offset)

    def _stream(self, load: I.Load, nest: tuple[Loop, ...], counts: tuple[int, ...]) -> _Stream | None:
        recurrences = self._recipes.recurrences
        size = self._recipes.layout.store_size(load.type)
        steps: list[int] = []
        try:
            place = recurrences.form_at(load.operands[0], recurrences.block_of[load]).polynomial
            for loop in nest:
                place, *rest = place.coefficients(recurrences.iteration(loop))
                step = rest[0].value if len(rest) == 1 else None
                if step is None or step % size:
                    return None
                steps.append(step // size)
        except TooComplex:
            return None
        reach = 1
        for step, count in zip(reversed(steps), reversed(counts), strict=True):
            if abs(step) < reach:
                return None  # iterations come to the same places
            reach = abs(step) * count
        apart = abs(steps[-1])
        if apart > _MOST_APART or any(step % apart for step in steps) or not recurrences.is_invariant(place, nest[0]):
            return None
        rest = place.add_constant(-place.constant_term)
        steps = [step // apart for step in steps]
        return _Stream(load, frozenset(rest.terms.items()), place.constant_term, tuple(steps), apart)

    def _may_wait(self, nest: tuple[Loop, ...], load: I.Load) -> bool:
        """Whether a load finds what was there in front of a nest; where it is not all read, it must be numbers."""
        loop, inner, points_to = nest[0], nest[-1], self._recipes.points_to
        objects = points_to.of(load.operands[0])
        if len(nest) > 1 and any(
            self._words.of(o) != frozenset([load.type]) or points_to.contents.get(o) for o in objects
        ):
            return False
        if self._recipes.alias.stays(load, loop):
            return True
        return len(nest) == 1 and not self._is_chain(inner) and self._recipes.alias.finds(load, loop)

    def _is_chain(self, loop: Loop) -> bool:
        """Whether what an iteration of a loop stores is handed on to the next one, which waits for it in any case."""
        stored = {s.operands[0] for block in loop.blocks for s in block.instructions if isinstance(s, I.Store)}
        return any(value in stored for phi in phis(loop.header) for value, block in phi.incoming if block in loop)

    def _is_updated(self, load: I.Load, loop: Loop) -> bool:
        """Whether an iteration of an innermost loop stores where it loads."""
        recurrences = self._recipes.recurrences
        place = recurrences.form_at(load.operands[0], recurrences.block_of[load]).polynomial
        stores = ((s, block) for block in loop.blocks for s in block.instructions if isinstance(s, I.Store))
        return any((recurrences.form_at(s.operands[1], at).polynomial - place).value == 0 for s, at in stores)

    def _sums(self, gather: Gather) -> set[Value]:
        return {self._sum_of(load) for load in gather.shifts}

    def _with_factors(self, gather: Gather) -> Gather:
        """With the factors of loads that no iteration changes, if fewer adjoints differ without them."""
        scaled = {load: self._scaled_sum(load, gather.loop) for load in gather.shifts}
        factors = {load: by for load, (_, by) in scaled.items() if by}
        is_less = len({sum_ for sum_, _ in scaled.values()}) < len(self._sums(gather))
        return replace(gather, factors=factors) if factors and is_less and not gather.ragged else gather

    def _scaled_sum(self, value: Value, loop: Loop) -> tuple[Value, tuple[Value, ...]]:
        """The sum that a value is a term of but for factors that a loop does not change, and these (no constants)."""
        factors: list[Value] = []
        block_of = self._recipes.recurrences.block_of
        users = self._users.get(value, ())
        while len(users) == 1:
            user, index = users[0]
            if (by := _factor(user, index)) is not None:
                if block_of.get(by) in loop.blocks or by is value:
                    break
                if not isinstance(by, Constant):
                    factors.append(by)
            elif user.opcode not in ("fadd", "fsub", "fneg") and not is_fused(user):
                break
            value = user
            users = self._users.get(value, ())
        return value, tuple(factors)

    def _sum_of(self, value: Value) -> Value:
        """The sum that a value is a term of, all of whose terms have one adjoint, or one and its negative."""
        users = self._users.get(value, ())
        while len(users) == 1 and users[0][0].opcode in ("fadd", "fsub", "fneg"):
            value = users[0][0]
            users = self._users.get(value, ())
        return value


def _factor(user: I.Instruction, index: int) -> Value | None:
    """What an instruction multiplies one of its operands by."""
    if user.opcode != "fmul" and not (is_fused(user) and index < 2):
        return None
    return user.operands[1 - index]


def _waiting(streams: Sequence[_Stream], count: int, recipes: Recipes) -> list[_Stream]:
    """All but one of those that come to the same places, or to near ones."""
    kept: list[_Stream] = []
    waiting: list[_Stream] = []
    for stream in streams:
        reach = max(count * recipes.layout.store_size(stream.load.type), _NEAR)
        meets = any(k.place == stream.place and 0 < stream.offset - k.offset < reach for k in kept)
        (waiting if meets else kept).append(stream)
    return waiting
