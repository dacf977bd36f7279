"""Counting loops in two versions: one without the checks that have been made in front of it, and the loop as it is.

    before    for (j = 0; j < m; j++)             after    if (<a[i][0] and a[i][m - 1] are inside>)
                (check a[i][j]) s += a[i][j];                for (j = 0; j < m; j++) s += a[i][j];
                                                         else
                                                           for (j = 0; j < m; j++) (check a[i][j]) s += a[i][j];

What fails, and where, is as before: a loop that leaves an object, or may, is the second. Where all that is looked at
is known in front of loops around it, it is looked at there once, and the loop is the first without another look.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.dominators import Dominators
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import Cloner
from jax_enzyme.ir.module import Function, Uses, uses
from jax_enzyme.ir.values import BasicBlock, Value
from jax_enzyme.transform.rewriting import phis
from jax_enzyme.transform.sanitize.affine import Counter, counter_of

_MOST_INSTRUCTIONS = 600
_OTHERS = (I.AtomicRMW, I.CmpXchg, I.Fence, I.Switch, I.IndirectBranch, I.Alloca)


@dataclass(eq=False)
class Version:
    """The loop without checks, with the blocks that lead there: `look`, in which `choice` decides between both, and
    `start`. `copies` are its instructions, by those of the loop."""

    loop: Loop
    counter: Counter
    look: BasicBlock
    choice: I.CondBranch
    start: BasicBlock
    blocks: list[BasicBlock]
    copies: dict[I.Instruction, I.Instruction]
    exits: list[BasicBlock] = field(default_factory=list)

    def put_in_front(self, new: Sequence[I.Instruction]) -> None:
        """Inserts instructions before the choice, in place."""
        self.look.instructions[-1:-1] = new

    def pass_by(
        self, certain: Value, values: Mapping[I.Instruction, tuple[Value, Value]]
    ) -> dict[I.Instruction, Value]:
        """Goes to this version, in place, without a look at what has been put in front, where `certain` is true. Of the
        pairs of `values` it is to use the first there, and the second otherwise: the phis of both."""
        before = self.loop.preheader
        assert before is not None
        before.instructions.pop()
        at = Builder(before)
        at.cond_br(certain, self.start, self.look)
        before.instructions[-1].metadata = list(self.choice.metadata)
        merged = {
            old: I.Phi(pair[0].type, "phi", list(pair), targets=[before, self.look]) for old, pair in values.items()
        }
        self.start.instructions[:0] = merged.values()
        return dict(merged)


def split_loops(function: Function, worth: Callable[[Loop, Counter], bool]) -> list[Version]:
    """Makes the versions, in place, of loops in simplified and loop-closed form. The choice is the loop as it is."""
    cfg = Cfg(function)
    users, found = uses(function), list[Version]()
    for loop in Loops(cfg, Dominators(cfg)).all:
        counter = counter_of(loop)
        size = sum(len(block.instructions) for block in loop.blocks)
        if (
            loop.children
            or counter is None
            or size > _MOST_INSTRUCTIONS
            or not _is_closed(loop, users)
            or not worth(loop, counter)
        ):
            continue
        found.append(_split(function, loop, counter))
    return found


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


def _split(function: Function, loop: Loop, counter: Counter) -> Version:
    assert loop.preheader is not None
    order = [block for block in function.blocks if block in loop.blocks]
    cloner = Cloner()
    blocks = cloner.blocks(order)
    copies = {
        i: copy
        for block, twin in zip(order, blocks, strict=True)
        for i, copy in zip(block.instructions, twin.instructions, strict=True)
    }
    for call in [copy for copy in copies.values() if isinstance(copy, I.CallBase)]:
        call.bundles = []  # hints about what may be read in front
    plain, quick = BasicBlock(), BasicBlock()
    Builder(plain).br(loop.header)
    Builder(quick).br(_block(cloner.map[loop.header]))
    for phi in phis(loop.header):
        phi.targets = [plain if b is loop.preheader else b for b in phi.targets]
        twin = copies[phi]
        twin.targets = [quick if b is loop.preheader else b for b in twin.targets]
    last = loop.preheader.instructions.pop()
    look = BasicBlock()
    Builder(look).cond_br(const_int(T.I1, 0), quick, plain)
    choice = look.terminator
    assert isinstance(choice, I.CondBranch)
    choice.metadata = list(last.metadata)
    Builder(loop.preheader).br(look)
    for exit_ in loop.exits:
        for phi in phis(exit_):
            for value, block in list(phi.incoming):
                if block in loop.blocks:
                    phi.add(cloner.map.get(value, value), _block(cloner.map[block]))
    place = function.blocks.index(loop.preheader) + 1
    function.blocks[place:place] = [look, quick, *blocks, plain]
    exits = [block for block in loop.exits if not isinstance(block.terminator, I.Unreachable)]
    return Version(loop, counter, look, choice, quick, blocks, copies, exits)


def _block(value: Value) -> BasicBlock:
    assert isinstance(value, BasicBlock)
    return value
