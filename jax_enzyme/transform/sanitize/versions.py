"""Nests of counting loops in two versions: one without the checks that have been made in front, and the nest as it is.

    before    for (j = 0; j < m; j++)             after    if (<a[i][0] and a[i][m - 1] are inside>)
                (check a[i][j]) s += a[i][j];                for (j = 0; j < m; j++) s += a[i][j];
                                                         else
                                                           for (j = 0; j < m; j++) (check a[i][j]) s += a[i][j];

What fails, and where, is as before: a loop that leaves an object, or may, is the second. A nest is as large as all can
be looked at in front of it that can be in front of the innermost loops; these have versions of their own in the second,
and where a nest goes over what it changes itself (rows that take turns in a loop over time), so have nests inside of
it.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Mapping, Sequence

from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import Cloner
from jax_enzyme.ir.module import Function, Uses, uses
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import BasicBlock, Value
from jax_enzyme.transform.rewriting import phis, redirect_phis
from jax_enzyme.transform.sanitize.counting import Counter, counter_of

_MOST_INSTRUCTIONS = 600
_OTHERS = (I.AtomicRMW, I.CmpXchg, I.Fence, I.Switch, I.IndirectBranch, I.Alloca)


@dataclass(eq=False)
class Version:
    """A nest of loops without checks, with the blocks that lead there: `look`, in which `choice` decides between both,
    and `start`. `twins` are its blocks and instructions, by those of the nest."""

    loop: Loop
    counters: Mapping[Loop, Counter]
    look: BasicBlock
    choice: I.CondBranch
    start: BasicBlock
    blocks: list[BasicBlock]
    twins: Mapping[Value, Value]
    by_tables: bool = False  # what has been looked at in front is more than the loop's own reads
    reads: bool = False  # something has been read in front, which the loop may write to, such that it is never entered

    def put_in_front(self, new: Sequence[I.Instruction]) -> None:
        """Inserts instructions before the choice, in place."""
        self.look.instructions[-1:-1] = new

    def demand(self, condition: Value) -> None:
        """Enters this version only where a condition holds, too, in place."""
        at = Builder.before(self.look, self.choice)
        self.choice.operands[0] = at.binary("and", self.choice.operands[0], condition)

    def again(self, function: Function) -> Version:
        """A version like this one beside it, in place, entered where its choice is true (it is never, so far)."""
        cloner, ways, start = Cloner(), BasicBlock(), BasicBlock()
        blocks = cloner.blocks(self.blocks)
        head = _block(self.twins[self.loop.header])
        Builder(ways).cond_br(const_int(T.I1, 0), start, self.start)
        Builder(start).br(_block(cloner.map[head]))
        self.choice.targets[0] = ways
        redirect_phis(_block(cloner.map[head]), self.start, start)
        _lead_on(self.loop, self.blocks, cloner.map)
        place = function.blocks.index(self.start)
        function.blocks[place:place] = [ways, start, *blocks]
        choice, twins = ways.terminator, {old: cloner.map.get(twin, twin) for old, twin in self.twins.items()}
        assert isinstance(choice, I.CondBranch)
        return Version(self.loop, self.counters, ways, choice, start, blocks, twins, self.by_tables)

    @property
    def exits(self) -> list[BasicBlock]:
        """Where both versions go on."""
        return [block for block in self.loop.exits if not isinstance(block.terminator, I.Unreachable)]


class Round(enum.Enum):
    """Which loops have versions: the outermost that are worth it; nests inside of those that may never be entered; and
    the innermost."""

    OUTERMOST = enum.auto()
    INSIDE = enum.auto()
    INNERMOST = enum.auto()


def split_loops(
    function: Function, found: list[Version], round_: Round, worth: Callable[[Loop, Mapping[Loop, Counter]], bool]
) -> list[Version]:
    """Makes versions, in place, of loops in simplified and loop-closed form that are worth it. The choice is the loop
    as it is."""
    users, made = uses(function), list[Version]()
    done = {block for version in found for block in version.blocks}
    done |= {version.loop.header for version in found if not version.loop.children and not version.by_tables}
    pending = list(Loops.of(function).roots)
    if round_ is Round.INSIDE:
        doubtful = {version.loop.header for version in found if version.reads}
        pending = [
            child
            for loop in reached(pending, lambda one: one.children)
            if loop.header in doubtful
            for child in loop.children
        ]
    while pending:
        loop = pending.pop()
        if loop.header in done:
            continue
        counters = counters_in(loop)
        if (
            loop in counters
            and not (round_ is Round.INNERMOST and loop.children)
            and not (round_ is Round.INSIDE and not loop.children)
            and loop.length <= _MOST_INSTRUCTIONS
            and _is_closed(loop, users)
            and worth(loop, counters)
        ):
            made.append(_split(function, loop, counters))
        else:
            pending += loop.children
    return made


def _is_closed(loop: Loop, users: Uses) -> bool:
    """Whether what a loop computes is used behind it by phis of its exits alone, and its calls do nothing to memory."""
    inside = {i for block in loop.blocks for i in block.instructions}
    return leaves_objects(loop) and all(
        user in inside or isinstance(user, I.Phi) for i in inside for user, _ in users.get(i, ())
    )


def leaves_objects(loop: Loop) -> bool:
    """Whether nothing in a loop makes or frees an object."""
    for instruction in (i for block in loop.blocks for i in block.instructions):
        if isinstance(instruction, I.CallBase) and not instruction.callee.name.startswith("llvm."):
            return False
        if isinstance(instruction, _OTHERS):
            return False
    return True


def counters_in(loop: Loop) -> dict[Loop, Counter]:
    """What a loop and those inside of it count, as far as that is known."""
    found = {} if (counter := counter_of(loop)) is None else {loop: counter}
    for child in loop.children:
        found |= counters_in(child)
    return found


def _split(function: Function, loop: Loop, counters: Mapping[Loop, Counter]) -> Version:
    order = [block for block in function.blocks if block in loop.blocks]
    cloner = Cloner()
    blocks = cloner.blocks(order)
    for call in [copy for block in blocks for copy in block.instructions if isinstance(copy, I.CallBase)]:
        call.bundles = []  # hints about what may be read in front
    plain, quick = BasicBlock(), BasicBlock()
    Builder(plain).br(loop.header)
    Builder(quick).br(_block(cloner.map[loop.header]))
    for phi in phis(loop.header):
        phi.targets = [plain if b is loop.front else b for b in phi.targets]
        twin = cloner.map[phi]
        assert isinstance(twin, I.Phi)
        twin.targets = [quick if b is loop.front else b for b in twin.targets]
    last = loop.front.instructions.pop()
    look = BasicBlock()
    Builder(look).cond_br(const_int(T.I1, 0), quick, plain)
    choice = look.terminator
    assert isinstance(choice, I.CondBranch)
    choice.metadata = list(last.metadata)
    Builder(loop.front).br(look)
    _lead_on(loop, loop.blocks, cloner.map)
    place = function.blocks.index(loop.front) + 1
    function.blocks[place:place] = [look, quick, *blocks, plain]
    return Version(loop, counters, look, choice, quick, blocks, cloner.map)


def _lead_on(loop: Loop, blocks: Collection[BasicBlock], twins: Mapping[Value, Value]) -> None:
    """What is used behind a loop comes from the twins of blocks, too."""
    for exit_ in loop.exits:
        for phi in phis(exit_):
            for value, block in list(phi.incoming):
                if block in blocks:
                    phi.add(twins.get(value, value), _block(twins[block]))


def _block(value: Value) -> BasicBlock:
    assert isinstance(value, BasicBlock)
    return value
