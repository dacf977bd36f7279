"""From what one member of a group does to what the whole group does.

    before    define void @f(...) { %t = call i32 @je.tid.x() ... call void @je.meet.block() ... }
    after     define void @f(...) { for t { ... up to the meeting }  for t { ... from the meeting on } }

The group is described by the loops over its members. Members run one after the other from one meeting to the next; the
skeleton (see `uniform`) decides in between where the group goes on. What a member knows across a meeting is recomputed
where that is cheap, is shared where it is uniform, and is kept in an array with an element per member otherwise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Protocol, TypeGuard

from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import with_operands
from jax_enzyme.ir.debug import location
from jax_enzyme.ir.module import Function, Module, callee_name
from jax_enzyme.ir.values import Argument, BasicBlock, Value, int_value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.transform.cuda import marks
from jax_enzyme.transform.cuda.failing import fail
from jax_enzyme.transform.cuda.liveness import coalesced, live_at_starts
from jax_enzyme.transform.cuda.uniform import Uniformity, speculatable
from jax_enzyme.transform.rewriting import phis, split_before

_DIVERGED = (
    "all threads of a team or a block come to the same barrier (__syncthreads), and all of a warp to the same warp "
    "operation"
)
_REMATERIALISED = 16
_ALREADY_CHEAP = (
    I.BinaryOp, I.Cast, I.Compare, I.Select, I.GetElementPtr, I.Freeze, I.Call,
)  # fmt: skip


@dataclass(frozen=True)
class Axis:
    """One loop over members: the index that it stands for, how often it runs at most, and, where that is not always as
    often, how to compute it."""

    index: str
    extent: int
    limit: Callable[[Builder], Value] | None = None


@dataclass(frozen=True)
class Group:
    """A group of members; the first axis runs fastest. `meets` are the meetings of the group, `outer` those that it
    comes to as a member of a larger group. `most` members are there where the extents of axes allow for more."""

    axes: tuple[Axis, ...]
    meets: tuple[str, ...] = ()
    outer: tuple[str, ...] = ()
    most: int | None = None

    @property
    def size(self) -> int:
        """The largest number of members."""
        total = 1
        for axis in self.axes:
            total *= axis.extent
        return total if self.most is None else min(total, self.most)

    @property
    def has_several(self) -> bool:
        """Are there always two members or more?"""
        return any(axis.extent > 1 and axis.limit is None for axis in self.axes)


def prepare(function: Function, group: Group) -> None:
    """Every meeting ends its block, and every decided branch has blocks of its own behind it."""
    names = (*group.meets, *group.outer)
    for block in function.blocks:
        block.instructions = [i for i in block.instructions if not callee_name(i).startswith("llvm.lifetime.")]
    for block in list(function.blocks):
        current = block
        while True:
            at = next(
                (n for n, i in enumerate(current.instructions) if marks.is_meeting(i) and marks.group_of(i) in names),
                None,
            )
            if at is None:
                break
            rest = split_before(function, current, at + 1, "met")
            current.instructions.append(I.Branch(T.VOID, "br", [], targets=[rest]))
            current = rest


class Stretch(Protocol):
    """What one member does from one meeting to the next (`member`)."""

    @property
    def decided(self) -> Iterable[BasicBlock]:
        """The branches in it that decide for all members."""
        ...

    def emit(self, at: Builder, indices: dict[str, Value], done: BasicBlock) -> None:
        """Builds the stretch behind `at`; all its ends go to `done`."""
        ...


class Emitter(ABC):
    """The function for the whole group, but for what a member does."""

    def __init__(self, module: Module, source: Function, group: Group, common: frozenset[Value]) -> None:
        self.module = module
        self.layout = DataLayout(module)
        self.source = source
        self.group = group
        self.common = common
        self.facts = self.examined()
        self._separate_ways()
        self.starts = self._starts()
        self.live = live_at_starts(self.source, self.starts)
        self.arguments = {a: Argument(a.type, a.attributes, a.index, name=a.name) for a in source.arguments}
        self.entry = BasicBlock(name="entry")
        self.blocks: list[BasicBlock] = [self.entry]
        self.top = Builder(self.entry)
        self.skeleton: dict[Value, Value] = {**self.arguments}
        self.limits: dict[str, Value] = {}
        self.context: dict[Value, Value] = {}
        self.votes: dict[I.Instruction, Value] = {}
        self.slots: dict[Value, Value] = {}
        self.decisions: dict[BasicBlock, Value] = {}
        self.locals: dict[Value, Value] = {}
        self.sizes: dict[Value, T.Type] = {}
        self.gone: Value | None = None

    # -- preparation

    def examined(self) -> Uniformity:
        """The facts that say where members stop."""
        group = self.group
        return Uniformity(
            self.source, [a.index for a in group.axes], (*group.meets, *group.outer), several=group.has_several
        )

    def _separate_ways(self) -> None:
        """A block of its own on every way from a branch at which members stop."""
        for block in (*self.facts.decided, *self.facts.turning):
            terminator = block.terminator
            for target in list(dict.fromkeys(terminator.targets)):
                if not self.stops(block, target):
                    continue
                between = BasicBlock(name="way")
                between.instructions = [I.Branch(T.VOID, "br", [], targets=[target])]
                self.source.blocks.insert(self.source.blocks.index(block) + 1, between)
                terminator.targets = [between if t is target else t for t in terminator.targets]
                for phi in phis(target):
                    first = phi.targets.index(block)
                    kept = [(v, b) for n, (v, b) in enumerate(phi.incoming) if b is not block or n == first]
                    phi.operands = [v for v, _ in kept]
                    phi.targets = [between if b is block else b for _, b in kept]
                if target in self.facts.skeleton:
                    self.facts.skeleton.add(between)
        self.facts.refresh()

    def _starts(self) -> list[BasicBlock]:
        """The blocks where members start after a meeting, the function's entry first."""
        found = [self.source.entry]
        for block in self.source.blocks:
            found += [t for t in dict.fromkeys(block.successors) if self.stops(block, t)]
        return found

    def stops(self, block: BasicBlock, target: BasicBlock) -> bool:
        """Do members stop on this edge until all have come to it?"""
        if block in self.facts.meeting or block in self.facts.turning:
            return True
        return block in self.facts.decided and target in self.facts.skeleton

    # -- the whole

    def run(self) -> Function:
        for axis in self.group.axes:
            self.limits[axis.index] = axis.limit(self.top) if axis.limit else const_int(T.I32, axis.extent)
        self._declare_locals()
        self._declare_context()
        self.emit()
        source = self.source
        function = Function(
            T.PTR,
            source.value_type,
            list(self.arguments.values()),
            self.blocks,
            source.prefix,
            source.return_attributes,
            source.attributes,
            name=source.name,
            metadata=source.metadata,
        )
        self.module.functions[source.name] = function
        return function

    def new_block(self, name: str) -> BasicBlock:
        block = BasicBlock(name=name)
        self.blocks.append(block)
        return block

    @property
    def several(self) -> bool:
        """Are there meetings at all?"""
        return len(self.starts) > 1

    def _declare_locals(self) -> None:
        """Local variables: one per member where they live across meetings."""
        for instruction in list(self.source.instructions()):
            if not isinstance(instruction, I.Alloca):
                continue
            kind = self._stride(instruction) if self.several else instruction.allocated_type
            if instruction in self.common or not self.several:
                made = self.top.alloca(kind, instruction.operands[0], instruction.align)
            else:
                made = self.top.alloca(T.ArrayType(self.group.size, kind), None, instruction.align)
                self.sizes[instruction] = kind
            assert isinstance(made, I.Alloca)
            made.count_printed = instruction.count_printed and instruction not in self.sizes
            made.name = instruction.name
            self.locals[instruction] = made
            if instruction in self.common:
                # What a shuffle reads from a lane that is not there.
                self.fill(self.top, made, 0, self.layout.alloc_size(kind))

    def _stride(self, variable: I.Alloca) -> T.Type:
        """The type of a local variable, padded so that each member's is aligned as the first is."""
        kind, size = variable.allocated_type, self.layout.alloc_size(variable.allocated_type)
        missing = -size % variable.align if variable.align else 0
        return T.StructType((kind, T.ArrayType(missing, T.I8))) if missing else kind

    def _declare_context(self) -> None:
        size = self.group.size
        kept = [v for v in dict.fromkeys(v for s in self.starts[1:] for v in self.live[s]) if self.kept(v)]
        for values in coalesced(kept, [self.live[s] for s in self.starts[1:]]):
            array = self.top.alloca(T.ArrayType(size, _stored(values[0].type)))
            self.context.update(dict.fromkeys(values, array))
        for block in self.facts.meeting:
            meeting = block.instructions[-2]
            if marks.vote_of(meeting):
                self.votes[meeting] = self.top.alloca(T.ArrayType(size, T.I32))
                self.fill(self.top, self.votes[meeting], marks.neutral_vote(meeting), 4 * size)
        for block in self.facts.decided:
            self.decisions[block] = self.top.alloca(T.I32)
        if self._leavers() and not self._known_gone():
            self.gone = self.top.alloca(T.ArrayType(size, T.I8))

    def kept(self, value: Value) -> bool:
        """Is a value that lives across a meeting kept in an array?"""
        if not self.facts.uniform(value):
            return not isinstance(value, I.Alloca) and not self.recomputed(value)
        return False

    def recomputed(self, value: Value) -> bool:
        """Is a value cheap to compute again from indices and uniform values?"""
        count = 0
        pending = [value]
        while pending:
            one = pending.pop()
            if self.facts.uniform(one) or isinstance(one, Argument):
                continue
            if callee_name(one) in [a.index for a in self.group.axes]:
                continue
            if isinstance(one, I.Alloca):
                continue
            count += 1
            if count > _REMATERIALISED:
                return False
            if self._loaded_again(one):
                pending += one.operands
                continue
            if not isinstance(one, _ALREADY_CHEAP) or T.is_float(one.type):
                return False
            if one.opcode in I.INTEGER_DIVISIONS or not speculatable(one):
                return False
            pending += [o for o in one.operands if not isinstance(o, Function)]
        return True

    def _loaded_again(self, value: Value) -> TypeGuard[I.Load]:
        """Is it a number that lies in memory which the kernel only reads?"""
        return isinstance(value, I.Load) and marks.reads_only(I.base_of(value.operands[0]))

    # -- members that have left

    def _leavers(self) -> list[BasicBlock]:
        """Branches by which some members may leave while others go on."""
        decided = [b for b in self.facts.decided if any(s not in self.facts.skeleton for s in b.successors)]
        return [*self.facts.leaving, *decided]

    def _known_gone(self) -> bool:
        """Can a member that has left be told from its indices alone, at every start?"""
        if any(b in self.facts.decided for b in self._leavers()):
            return False
        for block in self.facts.leaving:
            terminator = block.terminator
            if not isinstance(terminator, I.CondBranch) or not self.recomputed(terminator.operands[0]):
                return False
            for start in self.starts[1:]:
                if self.facts.cfg.reaches(block, start) and not self.facts.dominators.dominates(block, start):
                    return False
        return True

    # -- the skeleton

    def emit(self) -> None:
        """Builds the blocks of the group's function, from `top` on."""
        first = self.source.entry
        made: dict[BasicBlock, BasicBlock] = {}
        finish = BasicBlock(name="finish")

        def place_of(block: BasicBlock | None) -> BasicBlock:
            if block is None or (block not in self.facts.skeleton and block not in self.starts):
                return finish
            if block not in made:
                made[block] = self.new_block("group")
                order.append(block)
            return made[block]

        order: list[BasicBlock] = []
        target = place_of(first)
        if self.gone is not None:
            self.fill(self.top, self.gone, 0, self.group.size)
        copies: list[I.Instruction] = []
        ends: dict[BasicBlock, BasicBlock] = {}
        for block in self.facts.order(first):
            at = Builder(place_of(block))
            if block in self.starts:
                at = self.members(at, block)
            if block in self.facts.skeleton:
                copies += self._uniform_part(at, block)
                at = self._leave(at, block, place_of)
            else:
                at.br(finish)
            ends[block] = at.block
        for copy in copies:
            if isinstance(copy, I.Phi):
                kept = [(v, ends[b]) for v, b in copy.incoming if b in ends]
                copy.operands = [self.value(v) for v, _ in kept]
                copy.targets = [b for _, b in kept]
        self.top.br(target)  # only now: variables were added up to here
        Builder(finish).ret()
        self.blocks.append(finish)

    def value(self, value: Value) -> Value:
        """A uniform value in the skeleton."""
        return self.skeleton.get(value, value)

    def _uniform_part(self, at: Builder, block: BasicBlock) -> list[I.Instruction]:
        """Computes the uniform values of a block; returns the copies of phis, whose operands are to be filled in."""
        waiting: list[I.Instruction] = []
        for instruction in block.instructions[:-1]:
            if marks.is_meeting(instruction) and block in self.facts.meeting and instruction is block.instructions[-2]:
                continue
            if instruction.type == T.VOID or not self.facts.uniform(instruction):
                continue
            copy = with_operands(instruction, map(self.value, instruction.operands))
            self.skeleton[instruction] = copy
            if isinstance(copy, I.Phi):
                at.block.instructions.insert(len(phis(at.block)), copy)
                waiting.append(copy)
            else:
                at.insert(copy)
        return waiting

    def _leave(self, at: Builder, block: BasicBlock, place_of: Callable[[BasicBlock | None], BasicBlock]) -> Builder:
        """The end of a block of the skeleton; the builder where it really ended."""
        facts, terminator = self.facts, block.terminator
        if block in facts.meeting:
            at = self.meet(at, block.instructions[-2])
            at.br(place_of(terminator.targets[0]))
        elif block in facts.local:
            at.br(place_of(facts.local[block]))
        elif block in facts.leaving:
            at.br(place_of(next(s for s in block.successors if s in facts.skeleton)))
        elif block in facts.decided:
            decision = at.load(T.I32, self.decisions[block])
            ways = self._ways(block)
            cases: list[Value] = [const_int(T.I32, n) for n in range(len(ways))]
            at.insert(
                I.Switch(T.VOID, "switch", [decision, *cases], targets=[place_of(None), *(place_of(w) for w in ways)])
            )
        else:
            copy = with_operands(terminator, map(self.value, terminator.operands))
            turns = block in facts.turning
            copy.targets = [place_of(t if turns or t in facts.skeleton else None) for t in terminator.targets]
            at.insert(copy)
        return at

    def _ways(self, block: BasicBlock) -> list[BasicBlock]:
        return [t for t in dict.fromkeys(block.successors) if t in self.facts.skeleton]

    def meet(self, at: Builder, meeting: I.Instruction) -> Builder:
        """What the group does when all have met: counts the votes, and meets as a member of the next larger group."""
        assert isinstance(meeting, I.Call)
        name, vote = marks.group_of(meeting), marks.vote_of(meeting)
        result: Value | None = None
        if vote:
            at, result = self._count(at, meeting, vote)
        if name in self.group.outer:
            outer = {"count": "sum"}.get(vote, vote)
            call = at.call(marks.meeting(self.module, name, outer), [result] if result is not None else [])
            call.metadata = list(meeting.metadata)
            result = call
        if vote:
            assert result is not None
            self.skeleton[meeting] = result
        return at

    def _count(self, at: Builder, meeting: I.Call, vote: str) -> tuple[Builder, Value]:
        """The votes of all members that have not left, in one number."""
        before, body, step, after = (
            at.block,
            self.new_block("vote"),
            self.new_block("vote.step"),
            self.new_block("voted"),
        )
        total = self.limits[self.group.axes[0].index]
        for axis in self.group.axes[1:]:
            total = product(at, total, self.limits[axis.index])
        start = const_int(T.I32, marks.neutral_vote(meeting))
        at, member = at.enter(body, const_int(T.I32, 0))
        sum_ = at.phi(T.I32, [(start, before)])
        given = at.load(T.I32, self.element(at, self.votes[meeting], T.I32, member))
        absent = self.absent(at, meeting, member)
        if absent is not None:
            given = at.select(absent, start, given)
        opcode = {"and": "and", "all": "and", "count": "add", "sum": "add"}.get(vote, "or")
        if vote == "ballot":
            given = at.binary("shl", given, member)
        new = at.binary(opcode, sum_, given)
        at.br(step)
        at = Builder(step)
        sum_.add(new, step)
        at.count_on(member, body, total, after)
        at = Builder(after)
        return at, at.phi(T.I32, [(new, step)])

    def absent(self, at: Builder, meeting: I.Call, member: Value) -> Value | None:
        """Whether a member takes no part in a meeting, and what it voted before does not count; None where that cannot
        be. A member that has left has a neutral vote."""
        return None

    # -- members

    @abstractmethod
    def member(self, start: BasicBlock) -> Stretch:
        """The stretch that begins at `start`."""

    def element(self, at: Builder, array: Value, kind: T.Type, member: Value) -> Value:
        return at.gep(T.ArrayType(self.group.size, kind), array, [const_int(T.I64, 0), at.cast("zext", member, T.I64)])

    def fill(self, at: Builder, array: Value, byte: int, count: int) -> None:
        Declarations(self.module).memory(at, "memset", array, const_int(T.I8, byte), const_int(T.I64, count))

    def members(self, at: Builder, start: BasicBlock) -> Builder:
        """The loops in which all members run from `start` to their next meeting; the builder behind them."""
        stretch = self.member(start)
        for block in stretch.decided:
            at.store(const_int(T.I32, -1), self.decisions[block])
        indices: dict[str, Value] = {}
        latches: list[tuple[I.Phi, BasicBlock, BasicBlock, Value]] = []
        current = at
        for axis in reversed(self.group.axes):
            if axis.extent == 1:
                indices[axis.index] = const_int(T.I32, 0)
                continue
            body, latch = self.new_block("member"), self.new_block("member.next")
            current, index = current.enter(body, const_int(T.I32, 0))
            indices[axis.index] = index
            latches.append((index, body, latch, self.limits[axis.index]))
        inner = latches[-1][2] if latches else self.new_block("member.done")
        stretch.emit(current, indices, inner)
        after = self.new_block("members")
        if not latches:
            Builder(inner).br(after)
        for number, (index, body, latch, limit) in reversed(list(enumerate(latches))):
            Builder(latch).count_on(index, body, limit, latches[number - 1][2] if number else after)
        return Builder(after)

    def member_number(self, at: Builder, indices: dict[str, Value]) -> Value:
        """The position of a member in arrays."""
        number: Value | None = None
        for axis in reversed(self.group.axes):
            if axis.extent == 1:
                continue
            index = indices[axis.index]
            if number is None:
                number = index
            else:
                scaled = product(at, number, self.limits[axis.index])
                number = at.binary("add", scaled, index, ("nuw", "nsw"))
        return const_int(T.I32, 0) if number is None else number

    def refuse(self, at: Builder, branch: I.Instruction | None = None) -> None:
        """Ends the kernel: its threads came to different meetings, after a branch, where there was one alone."""
        place = None if branch is None else location(self.module, branch)
        fail(self.module, at, f"je.diverged.{place}", f"{_DIVERGED}: {place}" if place else _DIVERGED)


def product(at: Builder, left: Value, right: Value) -> Value:
    """Of two numbers whose product fits into 32 bits; the number where both are known."""
    known = int_value(left), int_value(right)
    if known[0] is not None and known[1] is not None:
        return const_int(T.I32, known[0] * known[1])
    if 1 in known:
        return left if known[1] == 1 else right
    return at.binary("mul", left, right, ("nuw", "nsw"))


def _stored(type_: T.Type) -> T.Type:
    """The type that a value has in memory."""
    return T.I8 if type_ == T.I1 else type_
