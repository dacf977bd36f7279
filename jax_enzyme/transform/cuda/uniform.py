"""What the members of a group have in common: values, and the control flow from one meeting to the next.

A group runs as one program: its *skeleton* follows the blocks from which a meeting can still be reached, once for the
group, and at the start and after every meeting all members run, one after the other, up to their next meeting. The
skeleton needs the values that are the same for all members (*uniform*), and the directions of its branches. What all
of several members read at one address is the same for all, since no one may write there before the next meeting: that
would be a race. All other memory differs. A branch on a value that is not uniform is one of three kinds:

    local       no meeting lies between it and the block where its ways join: members go their own ways, the skeleton
                goes on where they join
    leaving     all ways but one lead to the end without a meeting: members that take them are gone, the others go on
    decided     meetings lie behind it: members stop there too, and the group follows the way that all of them took.
                Members that take different ways to meetings are an error of the kernel

Where a loop with meetings in it may end by a uniform condition, members stop as well (`turning`): what they do in the
loop and what they do behind it are then loops over members of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.dominators import Dominators
from jax_enzyme.analysis.loops import Loops
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.dominance import immediate_dominators, reverse_post_order
from jax_enzyme.ir.module import Function, callee_name, uses
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import Argument, BasicBlock, Constant, Value, int_value
from jax_enzyme.transform.cuda import marks

_PURE = (
    I.BinaryOp, I.UnaryOp, I.Cast, I.Compare, I.Select, I.Phi, I.Freeze, I.GetElementPtr, I.ExtractValue, I.InsertValue,
)  # fmt: skip
_PURE_CALLS = (
    "llvm.smin.", "llvm.smax.", "llvm.umin.", "llvm.umax.", "llvm.abs.", "llvm.ctpop.", "llvm.ctlz.", "llvm.cttz.",
    "llvm.bitreverse.", "llvm.bswap.", "llvm.fshl.", "llvm.fshr.", "llvm.fptosi.sat.", "llvm.fptoui.sat.",
)  # fmt: skip


def speculatable(instruction: I.Instruction) -> bool:
    """May this be computed where the program would not have computed it?"""
    if isinstance(instruction, I.Call):
        name = callee_name(instruction)
        return name in marks.INDICES or name.startswith(_PURE_CALLS)
    if instruction.opcode in I.INTEGER_DIVISIONS:
        divisor = int_value(instruction.operands[1])
        return divisor is not None and divisor not in (0, -1)
    return isinstance(instruction, _PURE)


def _may_agree(instruction: I.Instruction) -> bool:
    """Does it read memory that is not a member's own?"""
    if not isinstance(instruction, I.Load) or not I.is_plain(instruction):
        return False
    base = I.base_of(instruction.operands[0])
    return isinstance(base, Argument) and not any(w.startswith("byval") for w in base.attributes)


class Uniformity:
    """The facts about one function and one group. Every meeting of the group is the last instruction of its block,
    but for the branch. `indices` are the functions that differ between members; `meets` are the meetings that count.
    `several`: there are at least two members, so that what they read of the kernel's parameters may be uniform.

    `skeleton` are the blocks from which a meeting can be reached; `local` maps a block to where its ways join;
    `leaving`, `decided` and `turning` are sets of blocks.
    """

    def __init__(
        self, function: Function, indices: Iterable[str], meets: Iterable[str], *, several: bool = False
    ) -> None:
        self.function = function
        self.cfg = Cfg(function)
        self.indices = frozenset(indices)
        self.meets = frozenset(meets)
        self._uses = uses(function)
        self.meeting = {b for b in self.cfg.rpo if self.is_meeting_block(b)}
        self.skeleton = self._before(self.meeting)
        self._returning = self._before({b for b in self.cfg.rpo if isinstance(b.terminator, I.Return)})
        agreed = {i for b in self.skeleton for i in b.instructions if _may_agree(i)} if several else set[Value]()
        self.divergent: set[Value] = {
            i
            for i in function.instructions()
            if not (speculatable(i) or self._meets(i) or i in agreed) or self._is_index(i)
        }
        self.local: dict[BasicBlock, BasicBlock] = {}
        self.leaving: set[BasicBlock] = set()
        self.decided: set[BasicBlock] = set()
        self.turning: set[BasicBlock] = set()
        while self._propagate() | self._classify():
            pass
        self.dominators = Dominators(self.cfg)
        self.turning = self._turning()

    def refresh(self) -> None:
        """After blocks were put on edges."""
        self.cfg = Cfg(self.function)
        self.dominators = Dominators(self.cfg)

    def _turning(self) -> set[BasicBlock]:
        found: set[BasicBlock] = set()
        passed = set(self.order(self.function.entry))
        for loop in Loops(self.cfg, self.dominators):
            if self.meeting.isdisjoint(loop.blocks):
                continue
            for block in loop.exiting:
                known = block in self.local or block in self.leaving or block in self.decided
                if block in passed and not known and len(self.cfg.succs[block]) == 2:
                    found.add(block)
        return found

    def order(self, entry: BasicBlock) -> list[BasicBlock]:
        """The blocks that the group comes to, definitions before uses."""

        def following(block: BasicBlock) -> list[BasicBlock]:
            if block not in self.skeleton:
                return []
            join = self.local.get(block)
            if join is not None:
                return [join]
            successors = list(dict.fromkeys(block.successors))
            if block in self.meeting or block in self.turning:
                return successors
            return [s for s in successors if s in self.skeleton]

        return reverse_post_order(entry, following)

    def is_meeting_block(self, block: BasicBlock) -> bool:
        return len(block.instructions) > 1 and self._meets(block.instructions[-2])

    def _meets(self, instruction: I.Instruction) -> bool:
        return marks.is_meeting(instruction) and marks.group_of(instruction) in self.meets

    def _is_index(self, instruction: I.Instruction) -> bool:
        return callee_name(instruction) in self.indices

    def uniform(self, value: Value) -> bool:
        return isinstance(value, Constant) or value not in self.divergent

    def _before(self, blocks: set[BasicBlock]) -> set[BasicBlock]:
        """Some blocks, and all from which control may come to them."""
        return set(reached(blocks, self.cfg.reachable_preds))

    # -- values

    def _propagate(self) -> bool:
        def onward(value: Value) -> Iterator[Value]:
            return (user for user, _ in self._uses.get(value, ()) if not self._meets(user))

        before = len(self.divergent)
        self.divergent = set(reached(self.divergent, onward))
        return len(self.divergent) > before

    # -- control

    def _classify(self) -> bool:
        """Finds the kinds of divergent branches; true if values became divergent or the kinds changed."""
        before = (len(self.divergent), len(self.leaving), len(self.decided))
        for block in self.cfg.rpo:
            if self._branches_divergently(block) and block not in self.decided:
                inside = [s for s in self.cfg.succs[block] if s in self.skeleton]
                if len(inside) == 1 and self._may_end(block):
                    (self.decided if self.cfg.reaches(block, block) else self.leaving).add(block)
        joins = self._joins()
        self.local = {}
        for block in self.cfg.rpo:
            if block in self.leaving or block in self.decided or not self._branches_divergently(block):
                continue
            join = joins.get(block)
            region = self._between(block, join)
            if join is None or any(b in self.meeting or b in self.decided or self._ends(b) for b in region):
                self.decided.add(block)
                continue
            self.local[block] = join
            for merged in (*region, join):
                self.divergent.update(i for i in merged.instructions if isinstance(i, I.Phi))
            self._differ(region)
        self._differ(
            reached(
                chain.from_iterable(self.cfg.succs[b] for b in (*self.leaving, *self.decided)),
                self.cfg.succs.__getitem__,
            )
        )
        return before != (len(self.divergent), len(self.leaving), len(self.decided))

    def _differ(self, blocks: Iterable[BasicBlock]) -> None:
        """Where one member alone may come, it may write in between to what it read."""
        self.divergent.update(i for b in blocks for i in b.instructions if isinstance(i, I.Load))

    def _branches_divergently(self, block: BasicBlock) -> bool:
        if block not in self.skeleton or len(self.cfg.succs[block]) < 2:
            return False
        return any(o in self.divergent for o in block.terminator.operands)

    def ways(self, block: BasicBlock) -> list[BasicBlock | None]:
        """Where the skeleton may go from a block of it."""
        inside: list[BasicBlock | None] = [s for s in self.cfg.succs[block] if s in self.skeleton]
        return [*inside, None] if self._ends(block) else inside

    def _ends(self, block: BasicBlock) -> bool:
        """Whether the skeleton may end after a block."""
        return block not in self.leaving and self._may_end(block)

    def _may_end(self, block: BasicBlock) -> bool:
        """Whether a member may get from here to the end without a meeting. One that fails never gets there."""
        return any(s not in self.skeleton and s in self._returning for s in self.cfg.succs[block])

    def _joins(self) -> dict[BasicBlock, BasicBlock | None]:
        """The immediate post-dominators in the skeleton; blocks that never leave it have none."""
        sources: dict[BasicBlock | None, list[BasicBlock]] = {}
        for block in self.cfg.rpo:
            if block in self.skeleton:
                for way in self.ways(block):
                    sources.setdefault(way, []).append(block)
        root: BasicBlock | None = None

        def backward(node: BasicBlock | None) -> list[BasicBlock]:
            return sources.get(node, [])

        order = reverse_post_order(root, backward)

        def following(node: BasicBlock | None) -> list[BasicBlock | None]:
            return [] if node is None else self.ways(node)

        found = immediate_dominators(order, following)
        return {block: join for block, join in found.items() if block is not None}

    def _between(self, block: BasicBlock, join: BasicBlock | None) -> set[BasicBlock]:
        """The blocks that control may pass from a branch to where its ways join."""

        def ways(node: BasicBlock) -> list[BasicBlock]:
            return [w for w in self.ways(node) if w is not None and w is not join]

        return set(reached(ways(block), ways))
