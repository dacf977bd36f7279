"""Groups whose members may be at different meetings: the lanes of a warp under divergent control flow.

    while (1) {                                      until the block has to meet, or all lanes are done
      while (1) {
        k = least place where a lane waits           places in the order of the function, loops in one piece
        if (k is no place of the warp) break
        switch (k) { for each lane that waits at k: go on from k up to the next meeting, and wait there }
      }
      if (all are done) return
      meet the block; for each lane: go on from k ...
    }

Each lane has a place: the meeting that it waits at. The lanes that are furthest behind go first, all that wait at the
same place together, so that ways that part come together again where they join, as on a device. A vote or a shuffle
is one of the lanes that run together. To the barrier of the block all lanes of the warp come that are not done.

Nothing is the same for all lanes here: every value that lives across a meeting is kept for each lane, or computed
again.
"""

from __future__ import annotations

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.dominators import Dominators
from jax_enzyme.analysis.loops import Loops
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.dominance import reverse_post_order
from jax_enzyme.ir.module import Function, Module, callee_name, declare
from jax_enzyme.ir.values import BasicBlock, Constant, Value
from jax_enzyme.transform.cuda import marks
from jax_enzyme.transform.cuda.group import Emitter, Group, prepare
from jax_enzyme.transform.cuda.member import Member
from jax_enzyme.transform.cuda.uniform import Uniformity

_OUTER = 1 << 16
_DONE = -1


def for_divergent_group(module: Module, function: Function, group: Group, common: frozenset[Value]) -> Function:
    """As `group.for_group`, for one axis, and right if members take different ways to meetings."""
    prepare(function, group)
    return Dispatcher(module, function, group, common).run()


class Separate(Uniformity):
    """The facts where members share nothing but what the larger group knows. There is no skeleton."""

    def __init__(self, function: Function, indices: list[str], meets: tuple[str, ...]) -> None:
        self.function = function
        self.cfg = Cfg(function)
        self.indices = frozenset(indices)
        self.meets = frozenset(meets)
        self.meeting = {b for b in self.cfg.rpo if self.is_meeting_block(b)}
        self.skeleton = set()
        self.local = {}
        self.leaving = set()
        self.decided = set()
        self.turning = set()
        self.dominators = Dominators(self.cfg)

    def uniform(self, value: Value) -> bool:
        if isinstance(value, Constant):
            return True
        name = callee_name(value)
        return name in marks.INDICES and name not in self.indices


def _loops_whole(facts: Uniformity) -> list[BasicBlock]:
    """The blocks in reverse post-order, what lies behind a loop behind all of its blocks: lanes that leave it wait for
    the others, as where ways come together."""
    behind = {loop.header: loop.exits for loop in Loops(facts.cfg, facts.dominators)}
    return reverse_post_order(facts.cfg.entry, lambda b: [*behind.get(b, ()), *facts.cfg.succs[b]])


class Dispatcher(Emitter):
    """`places` number the starts; those behind a meeting of the larger group come last. `waiting` holds the place of
    each lane."""

    def examined(self) -> Uniformity:
        names = [axis.index for axis in self.group.axes]
        return Separate(self.source, names, (*self.group.meets, *self.group.outer))

    def emit(self) -> None:
        before = {b.terminator.targets[0]: b.instructions[-2] for b in self.facts.meeting}
        self.meetings: dict[BasicBlock, I.Instruction] = before
        order = {b: n for n, b in enumerate(_loops_whole(self.facts))}
        self.places = {s: order[s] + (_OUTER if self._is_outer(s) else 0) for s in self.starts}
        self.waiting = self.top.alloca(T.ArrayType(self.group.size, T.I32))
        self.fill(self.top, self.waiting, 0, 4 * self.group.size)
        self._outer_indices()
        inner, settled, ready, finish = (self.new_block(n) for n in ("inner", "settled", "ready", "finish"))
        at, least, most = self._scan(Builder(inner))
        own = [s for s in self.starts if not self._is_outer(s)]
        self._switch(at, least, own, settled, inner)
        at = Builder(settled)
        # Warps take different numbers of rounds up to here, and have to be apart from the rounds of the block.
        words = ("convergent", "noduplicate", "nounwind", "memory(inaccessiblemem: readwrite)")
        at.call(declare(self.module, marks.SETTLED, T.FunctionType(T.VOID, ()), words), [])
        at.cond_br(at.icmp("eq", least, const_int(T.I32, _DONE)), finish, ready)
        at = Builder(ready)
        together, apart = self.new_block("together"), self.new_block("apart")
        at.cond_br(at.icmp("eq", least, most), together, apart)
        self.refuse(Builder(apart))
        nowhere = self.new_block("nowhere")
        self._switch(Builder(together), least, [s for s in self.starts if self._is_outer(s)], nowhere, inner)
        Builder(nowhere).unreachable()
        Builder(finish).ret()
        self.top.br(inner)  # only now: variables were added up to here

    def _is_outer(self, start: BasicBlock) -> bool:
        meeting = self.meetings.get(start)
        return meeting is not None and marks.group_of(meeting) in self.group.outer

    def _outer_indices(self) -> None:
        """What the larger group knows is computed once."""
        for instruction in self.source.instructions():
            name = callee_name(instruction)
            if name in marks.INDICES and name not in self.facts.indices:
                self.skeleton[instruction] = self.top.call(self.module.functions[name], [])

    def _switch(self, at: Builder, place: Value, starts: list[BasicBlock], other: BasicBlock, back: BasicBlock) -> None:
        """Goes on from the start with this number, and then to `back`; to `other` if there is none."""
        blocks = [self.new_block("place") for _ in starts]
        cases: list[Value] = [const_int(T.I32, self.places[s]) for s in starts]
        at.insert(I.Switch(T.VOID, "switch", [place, *cases], targets=[other, *blocks]))
        for start, block in zip(starts, blocks, strict=True):
            here = Builder(block)
            if start in self.meetings:
                here = self.meet(here, self.meetings[start])
            self.members(here, start).br(back)

    def _scan(self, at: Builder) -> tuple[Builder, Value, Value]:
        """The least place where a lane waits, as an unsigned number, and the greatest of those that are not done."""
        before, body, after = at.block, self.new_block("scan"), self.new_block("scanned")
        at, lane = at.enter(body, const_int(T.I32, 0))
        least = at.phi(T.I32, [(const_int(T.I32, _DONE), before)])
        most = at.phi(T.I32, [(const_int(T.I32, 0), before)])
        place = at.load(T.I32, self.element(at, self.waiting, T.I32, lane))
        low = at.least(place, least)
        further = at.binary("and", at.icmp("ne", place, const_int(T.I32, _DONE)), at.icmp("ugt", place, most))
        high = at.select(further, place, most)
        following = at.binary("add", lane, const_int(T.I32, 1), ("nuw", "nsw"))
        for phi, value in ((lane, following), (least, low), (most, high)):
            phi.add(value, body)
        at.cond_br(at.icmp("ult", following, self.limits[self.group.axes[0].index]), body, after)
        at = Builder(after)
        return at, at.phi(T.I32, [(low, body)]), at.phi(T.I32, [(high, body)])

    def is_elsewhere(self, at: Builder, start: BasicBlock, member: Value) -> Value:
        """Does a lane not wait at the place of a start?"""
        place = at.load(T.I32, self.element(at, self.waiting, T.I32, member))
        return at.icmp("ne", place, const_int(T.I32, self.places[start]))

    def absent(self, at: Builder, meeting: I.Call, member: Value) -> Value | None:
        start = next(s for s, m in self.meetings.items() if m is meeting)
        return self.is_elsewhere(at, start, member)

    def member(self, start: BasicBlock) -> Member:
        return Lane(self, start)


class Lane(Member):
    """A stretch of one lane, which runs if the lane waits at its start."""

    def __init__(self, group: Dispatcher, start: BasicBlock) -> None:
        super().__init__(group, start)
        self.dispatcher = group

    def skip_the_absent(self, at: Builder, done: BasicBlock) -> Builder:
        here = self.group.new_block("here")
        at.cond_br(self.dispatcher.is_elsewhere(at, self.start, self.number), done, here)
        return Builder(here)

    def remembered(self, at: Builder, value: Value) -> Value:
        if value is not self.dispatcher.meetings.get(self.start):
            return super().remembered(at, value)
        vote = self.group.value(value)  # counted just now; kept for what lies behind further meetings
        at.store(vote, self.group.element(at, self.group.context[value], value.type, self.number))
        return vote

    def leave(self, at: Builder) -> None:
        self._place(at, _DONE)

    def wait(self, at: Builder, target: BasicBlock) -> None:
        self._place(at, self.dispatcher.places[target])

    def _place(self, at: Builder, number: int) -> None:
        waiting = self.group.element(at, self.dispatcher.waiting, T.I32, self.number)
        at.store(const_int(T.I32, number), waiting)
