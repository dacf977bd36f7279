"""What one member of a group does from one meeting to the next: a copy of the blocks in between, inside the loops over
members, with what it knows from before at its start and what it has to remember at its ends."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import with_operands
from jax_enzyme.ir.module import Function, Module, callee_name, declare
from jax_enzyme.ir.reach import made_of, reached
from jax_enzyme.ir.values import BasicBlock, Constant, Value
from jax_enzyme.transform.cuda import marks
from jax_enzyme.transform.cuda.group import Emitter, Group, prepare
from jax_enzyme.transform.rewriting import phis


def for_group(module: Module, function: Function, group: Group, common: frozenset[Value] = frozenset()) -> Function:
    """The function for the whole group. `common` are local variables that its members share."""
    prepare(function, group)
    return _Together(module, function, group, common).run()


class _Together(Emitter):
    """All members go from one meeting to the next."""

    def member(self, start: BasicBlock) -> Member:
        return Member(self, start)


class Member:
    """The stretch of a function that begins at `start`."""

    def __init__(self, group: Emitter, start: BasicBlock) -> None:
        self.group = group
        self.start = start
        self.blocks = self._reached()
        inside = set(self.blocks)
        self.decided = [b for b in group.facts.decided if b in inside]
        self.live = group.live.get(start, [])
        own = {i for b in self.blocks for i in b.instructions}
        self.own = own
        # What is known from before and computed again (around a loop): one variable for both.
        self.changing = [v for v in self.live if v in own and not isinstance(v, I.Alloca)]
        self.known: dict[Value, Value] = {**group.arguments}
        self.slots: dict[Value, Value] = {}
        self.indices: dict[str, Value] = {}
        self.number: Value = const_int(T.I32, 0)

    def _reached(self) -> list[BasicBlock]:
        found = [self.start]
        for block in found:
            found += [t for t in dict.fromkeys(block.successors) if t not in found and not self.group.stops(block, t)]
        return found

    def emit(self, at: Builder, indices: dict[str, Value], done: BasicBlock) -> None:
        """Builds the stretch behind `at`; all its ends go to `done`."""
        group = self.group
        self.indices = indices
        self.number = group.member_number(at, indices)
        self._private(at)
        at = self.skip_the_absent(at, done)
        for value in self.live:
            if not isinstance(value, I.Alloca):
                self._restore(at, value)
        places = {b: group.new_block(b.name or "stretch") for b in self.blocks}
        at.br(places[self.start])
        copies: list[tuple[I.Instruction, BasicBlock]] = []
        for block in self.blocks:
            self._copy(block, places[block], copies)
        for copy, block in copies:
            self._connect(copy, block, places)
        for block in self.blocks:
            self._end(block, places[block], places, done)
        self._use_slots(places)

    # -- the beginning

    def _private(self, at: Builder) -> None:
        """Where the member's own local variables are."""
        for variable, place in self.group.locals.items():
            kind = self.group.sizes.get(variable)
            if kind is None:
                self.known[variable] = place
                self._lifetime(at, "start", variable)
            elif variable in self._wanted_locals:
                self.known[variable] = self.group.element(at, place, kind, self.number)

    def _lifetime(self, at: Builder, end: str, variable: Value) -> None:
        """Where there are no meetings, a variable holds nothing from one member to the next."""
        group = self.group
        if not group.several and variable not in group.common:
            kind = T.FunctionType(T.VOID, (T.PTR,))
            at.call(declare(group.module, f"llvm.lifetime.{end}.p0", kind), [group.locals[variable]])

    @cached_property
    def _wanted_locals(self) -> set[Value]:
        def needs(value: Value) -> list[Value]:
            kept = isinstance(value, I.Alloca) or value in self.own
            return made_of(value) if not kept and self.group.recomputed(value) else []

        used = [*self.live, *(o for i in self.own for o in i.operands)]
        return {v for v in reached(used, needs) if isinstance(v, I.Alloca)}

    def skip_the_absent(self, at: Builder, done: BasicBlock) -> Builder:
        """Goes to `done` for a member that takes no part; the builder where the others go on. The branches by which it
        may have left are asked in their order: only who did not take one may read what the next one depends on."""
        group, facts = self.group, self.group.facts
        if self.start is group.source.entry:
            return at
        if group.gone is not None:
            flag = at.load(T.I8, group.element(at, group.gone, T.I8, self.number))
            return self._present(at, at.icmp("ne", flag, const_int(T.I8, 0)), done)
        for block in facts.cfg.rpo:
            again = block is not self.start or facts.cfg.reaches(block, block)
            if block in facts.leaving and facts.dominators.dominates(block, self.start) and again:
                at = self._present(at, self._left(at, block), done)
        return at

    def _present(self, at: Builder, gone: Value, done: BasicBlock) -> Builder:
        here = self.group.new_block("present")
        at.cond_br(gone, done, here)
        return Builder(here)

    def _left(self, at: Builder, block: BasicBlock) -> Value:
        """Whether the member left by this branch."""
        condition = self._again(at, block.terminator.operands[0])
        leaves_if_true = block.terminator.targets[0] not in self.group.facts.skeleton
        return condition if leaves_if_true else at.binary("xor", condition, const_int(T.I1, 1))

    def _restore(self, at: Builder, value: Value) -> None:
        group = self.group
        found = self.remembered(at, value)
        if value in self.changing:
            self.slots[value] = group.top.alloca(value.type)
            at.store(found, self.slots[value])
        else:
            self.known[value] = found

    def remembered(self, at: Builder, value: Value) -> Value:
        """What the member knew before this stretch began."""
        group = self.group
        if group.facts.uniform(value):
            return group.value(value)
        if value not in group.context:
            return self._again(at, value)
        kind = value.type
        stored = T.I8 if kind == T.I1 else kind
        found = at.load(stored, group.element(at, group.context[value], stored, self.number))
        return at.cast("trunc", found, T.I1) if kind == T.I1 else found

    def _again(self, at: Builder, value: Value) -> Value:
        """Computes a cheap value anew."""
        if isinstance(value, Constant):
            return value
        if value in self.known and value not in self.own:
            return self.known[value]
        name = callee_name(value)
        if name in self.indices:
            return self.indices[name]
        if isinstance(value, I.Alloca):
            return self.known[value]
        if not isinstance(value, I.Instruction):
            return self.group.value(value)
        if self.group.facts.uniform(value):
            return self.group.value(value)
        return at.insert(with_operands(value, [self._again(at, o) for o in value.operands]))

    # -- the blocks

    def _copy(self, block: BasicBlock, place: BasicBlock, copies: list[tuple[I.Instruction, BasicBlock]]) -> None:
        for instruction in block.instructions[:-1]:
            name = callee_name(instruction)
            if isinstance(instruction, I.Alloca) or self._ends_here(block, instruction):
                continue
            if name in self.indices:
                self.known[instruction] = self.indices[name]
                continue
            copy = with_operands(instruction, instruction.operands)
            self.known[instruction] = copy
            place.instructions.append(copy)
            copies.append((copy, block))

    def _ends_here(self, block: BasicBlock, instruction: Value) -> bool:
        return block in self.group.facts.meeting and instruction is block.instructions[-2]

    def _connect(self, copy: I.Instruction, block: BasicBlock, places: dict[BasicBlock, BasicBlock]) -> None:
        if isinstance(copy, I.Phi):
            kept = [(v, b) for v, b in copy.incoming if b in places and not self.group.stops(b, block)]
            copy.operands = [self._mapped(v) for v, _ in kept]
            copy.targets = [places[b] for _, b in kept]
        else:
            copy.operands = [self._mapped(o) for o in copy.operands]

    def _mapped(self, value: Value) -> Value:
        """The value here; one that has a variable stays as it is until the loads are placed."""
        return value if value in self.slots else self.known.get(value, value)

    # -- the ends

    def _end(
        self, block: BasicBlock, place: BasicBlock, places: dict[BasicBlock, BasicBlock], done: BasicBlock
    ) -> None:
        group = self.group
        at = Builder(place)
        terminator = block.terminator
        if isinstance(terminator, I.Return):
            self.leave(at)
            for variable in group.locals:
                self._lifetime(at, "end", variable)
            at.br(done)
            return
        if block in group.facts.turning:
            at.br(self._stop(block, dict.fromkeys(terminator.targets), done))
            return
        copy = with_operands(terminator, terminator.operands)
        copy.operands = [self._mapped(o) for o in terminator.operands]
        stops: dict[BasicBlock, BasicBlock] = {}
        for target in dict.fromkeys(terminator.targets):
            stops[target] = self._stop(block, [target], done) if group.stops(block, target) else places[target]
        copy.targets = [stops[t] for t in terminator.targets]
        at.insert(copy)

    def leave(self, at: Builder) -> None:
        """The member is at its end."""
        group = self.group
        if group.gone is not None:
            at.store(const_int(T.I8, 1), group.element(at, group.gone, T.I8, self.number))
        for meeting, votes in group.votes.items():
            vote = const_int(T.I32, marks.neutral_vote(meeting))
            at.store(vote, group.element(at, votes, T.I32, self.number))

    def wait(self, at: Builder, target: BasicBlock) -> None:
        """The member has come to a meeting behind which `target` lies."""

    def _stop(self, block: BasicBlock, targets: Iterable[BasicBlock], done: BasicBlock) -> BasicBlock:
        """The block in which the member remembers what it needs where it goes on, at one of the targets."""
        group = self.group
        place = group.new_block("stop")
        at = Builder(place)
        for value in dict.fromkeys(v for target in targets for v in group.live[target]):
            array = group.context.get(value)
            if array is None or value not in self.own or self._ends_here(block, value):
                continue
            stored: Value = self._mapped(value)
            kind = value.type
            if kind == T.I1:
                stored = self._current(at, value)
                stored, kind = at.cast("zext", stored, T.I8), T.I8
            else:
                stored = self._current(at, value)
            at.store(stored, group.element(at, array, kind, self.number))
        if block in group.facts.meeting:
            meeting = block.instructions[-2]
            array = group.votes.get(meeting)
            if array is not None:
                at.store(self._current(at, meeting.operands[0]), group.element(at, array, T.I32, self.number))
            self.wait(at, block.terminator.targets[0])
        elif block not in group.facts.turning:
            (target,) = targets
            at = self._decide(at, block, target)
        at.br(done)
        return place

    def _current(self, at: Builder, value: Value) -> Value:
        if value in self.slots:
            return at.load(value.type, self.slots[value])
        return self.known.get(value, value)

    def _decide(self, at: Builder, block: BasicBlock, target: BasicBlock) -> Builder:
        """Says which way the group goes; all members have to agree."""
        group = self.group
        ways = [t for t in dict.fromkeys(block.successors) if t in group.facts.skeleton]
        mine = const_int(T.I32, ways.index(target))
        decision = group.decisions[block]
        if len(ways) > 1:
            before = at.load(T.I32, decision)
            agreed = at.binary("or", at.icmp("eq", before, const_int(T.I32, -1)), at.icmp("eq", before, mine))
            good, bad = group.new_block("agreed"), group.new_block("diverged")
            at.cond_br(agreed, good, bad)
            group.refuse(Builder(bad), block.terminator)
            at = Builder(good)
        at.store(mine, decision)
        return at

    # -- values that are known from before and computed again

    def _use_slots(self, places: dict[BasicBlock, BasicBlock]) -> None:
        """Loads before uses, stores behind definitions."""
        if not self.slots:
            return
        for place in places.values():
            made: list[I.Instruction] = []
            for instruction in place.instructions:
                if not isinstance(instruction, I.Phi):
                    self._load_operands(instruction, made)
                made.append(instruction)
            place.instructions = made
        for place in places.values():
            for phi in phis(place):
                # One value per block, also where a switch comes from there twice.
                loads: dict[tuple[Value, BasicBlock], I.Instruction] = {}
                for number, (operand, source) in enumerate(phi.incoming):
                    if operand in self.slots:
                        load = loads.get((operand, source))
                        if load is None:
                            load = loads[operand, source] = I.Load(operand.type, "load", [self.slots[operand]])
                            source.instructions.insert(len(source.instructions) - 1, load)
                        phi.operands[number] = load
        for value, slot in self.slots.items():
            copy = self.known.get(value)
            place = next((p for p in places.values() if copy in p.instructions), None)
            if not isinstance(copy, I.Instruction) or place is None:
                continue
            at = len(phis(place)) if isinstance(copy, I.Phi) else place.instructions.index(copy) + 1
            place.instructions.insert(at, I.Store(T.VOID, "store", [copy, slot]))

    def _load_operands(self, instruction: I.Instruction, made: list[I.Instruction]) -> None:
        for number, operand in enumerate(instruction.operands):
            if operand in self.slots:
                load = I.Load(operand.type, "load", [self.slots[operand]])
                instruction.operands[number] = load
                made.append(load)
