"""What an iteration of a marked loop looks for in several steps, or under a condition alone, as one step of what it has
found.

    before                                                  after
    %best = phi [ %b0, %entry ], [ %b, %latch ]             %best = phi [ %b0, %entry ], [ %next, %latch ]
    %inner = phi [ %best, %body ], [ %b, %loop ]            %inner = phi [ -inf, %body ], [ %b, %loop ]
    %better = fcmp ogt %a, %inner                           ...
    %b = select %better, %a, %inner                         %b = select %better, %a, %inner
                                                            %found = fcmp ogt %b, %best
                                                            %next = select %found, %b, %best

So it has the one form that is known to run in any order (`transform.named_choices`). Where of equals the first one
counts, it does in both, and what starts with the worst of all numbers replaces nothing that the loop would not have
replaced. What belongs to the best one goes with it. Where the last one counts, an iteration that finds nothing may
replace the worst of all numbers by itself: nothing may belong to it then.

Under a condition it is a choice by one comparison first.

    before    %better = fcmp ogt double %a, %best           after    %x = select i1 %g, double %a, double -inf
              %k = select i1 %g, i1 %better, i1 false                %k = fcmp ogt double %x, %best
              %b = select i1 %k, double %a, double %best             %b = select i1 %k, double %x, double %best

The worst of all numbers is better than none, where of equals the first one counts; so it is for integers. Arms without
code that only choose become selects before:

    before    br i1 %better, label %arm, label %next        after    %b = select i1 %better, double %a, double %best
              next: %b = phi [ %a, %arm ], [ %best, %before ]        br label %next
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from math import inf

from jax_enzyme.analysis.loops import Loop
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_float, const_int, zero
from jax_enzyme.ir.module import Function, Uses
from jax_enzyme.ir.reach import Reached
from jax_enzyme.ir.values import BasicBlock, Constant, Value, is_zero
from jax_enzyme.transform.rewriting import go_one_way, phis, remove_unreachable, replace_operands

_STRICT = {"olt": "ogt", "ogt": "olt"}
_LOOSE = {"ole": "oge", "oge": "ole", "ule": "uge", "uge": "ule"}
_TURNED = {**_STRICT, **_LOOSE}
"""Relations, and what they are of the two the other way round: of equals the first one counts, or the last one."""
_NEGATED = {"uge": "olt", "ule": "ogt", "ogt": "ule", "olt": "uge", "ugt": "ole", "ult": "oge"}


@dataclass(frozen=True, eq=False)
class Search:
    """What a phi of a header becomes in an iteration: `steps`, of which the last one is what it is next."""

    held: I.Phi
    last: Value
    steps: Mapping[Value, BasicBlock]

    def changes(self) -> list[I.Select]:
        return [s for s in self.steps if isinstance(s, I.Select)]

    def step_of(self, change: I.Select) -> Value:
        """What stays where nothing is chosen."""
        return next(v for v in change.operands[1:] if v in self.steps)


def searches(loop: Loop, used: Uses, home: Mapping[Value, BasicBlock]) -> Iterator[Search]:
    """The phis of a loop's header that are changed by selects alone, and asked for by comparisons alone."""
    for phi in phis(loop.header):
        found = _search(phi, loop, used, home)
        if found is not None:
            yield found


def join_steps(root: Function, loop: Loop, used: Uses, home: Mapping[Value, BasicBlock]) -> None:
    """Makes one step of several in each iteration of a loop, in place."""
    if loop.exiting != loop.latches or len(loop.exit_edges) != 1:
        return
    by_conditions: dict[frozenset[Value], list[Search]] = {}
    for found in searches(loop, used, home):
        by_conditions.setdefault(frozenset(s.operands[0] for s in found.changes()), []).append(found)
    for conditions, group in by_conditions.items():
        relations = {s: _relation(s, conditions) for s in group}
        leader = next((s for s in group if relations[s] is not None), None)
        if leader is None or len(leader.steps) == 2 or not _is_alone(conditions, group, leader, used):
            continue
        relation = relations[leader] or ""
        start = next(v for v, b in leader.held.incoming if b not in loop)
        if relation in _STRICT or (len(group) == 1 and isinstance(start, Constant)):
            _join(root, loop, group, leader, relation)


def _search(phi: I.Phi, loop: Loop, used: Uses, home: Mapping[Value, BasicBlock]) -> Search | None:
    if not isinstance(phi.type, T.FloatType | T.IntType):
        return None
    asked: set[Value] = set()

    def is_change(user: I.Instruction, index: int) -> bool | None:
        if isinstance(user, I.Compare):
            asked.add(user)
            return None
        return isinstance(user, I.Select) and index > 0

    steps = steps_of(phi, loop, used, home, is_change)
    if steps is None:
        return None
    found = Search(phi, phi.operands[phi.targets.index(loop.latches[0])], steps)
    changes = found.changes()
    if any(sum(v in steps for v in s.operands[1:]) != 1 for s in changes):
        return None
    return found if asked <= {s.operands[0] for s in changes} else None


def steps_of(
    phi: I.Phi,
    loop: Loop,
    used: Uses,
    home: Mapping[Value, BasicBlock],
    is_change: Callable[[I.Instruction, int], bool | None],
) -> dict[Value, BasicBlock] | None:
    """What a phi of a loop's header comes to in an iteration, with the blocks: changes of it, and phis that join these.
    None where it is not changed, or where something else asks for it; who `is_change` says None of may."""
    ends = loop.ends(phi)
    found = Reached[Value]([phi])
    for value in found:
        for user, index in used.get(value, ()):
            if home[user] not in loop:
                if ends is None or value is not ends[1]:
                    return None
            elif (changes := isinstance(user, I.Phi) or is_change(user, index)) is False:
                return None
            elif changes:
                found.add([user])
    steps = {step: home[step] for step in found.all}
    joins = [s for s in steps if isinstance(s, I.Phi) and s is not phi]
    ways_meet = len({steps[j] for j in joins}) == len(joins) and all(v in steps for j in joins for v in j.operands)
    is_changed = ends is not None and ends[1] in steps and len(joins) + 1 < len(steps)
    return steps if ways_meet and is_changed else None


def _relation(search: Search, conditions: Collection[Value]) -> str | None:
    """How what is chosen is to what it replaces, where each step looks for that."""
    if not isinstance(search.held.type, T.FloatType) or search.held.type.kind not in ("float", "double"):
        return None
    found: set[str | None] = set()
    for change in search.changes():
        compared, step = change.operands[0], search.step_of(change)
        if not isinstance(compared, I.Compare) or compared.opcode != "fcmp":
            return None
        if set(compared.operands) != set(change.operands[1:]):
            return None
        stays = change.operands[1] is step
        relation = _NEGATED.get(compared.predicate) if stays else compared.predicate
        found.add(_TURNED.get(relation or "") if compared.operands[0] is step else relation)
    relation = found.pop() if len(found) == 1 and len(search.changes()) == len(conditions) else None
    return relation if relation in _TURNED else None


def _is_alone(conditions: Collection[Value], group: list[Search], leader: Search, used: Uses) -> bool:
    """Do the conditions decide about these searches alone, which all take the ways of the leader, and do they ask for
    what that holds alone?"""
    changes = {s for search in group for s in search.changes()}
    if any(user not in changes for c in conditions for user, _ in used[c]):
        return False
    others = [s for s in group if s is not leader]
    asking = {user for s in others for step in s.steps for user, _ in used.get(step, ())}
    return asking.isdisjoint(conditions) and all(_goes_with(s, leader) for s in others)


def _goes_with(search: Search, leader: Search) -> bool:
    """Is a search changed, and joined, wherever its leader is?"""
    twins: dict[Value, Value] = {search.held: leader.held}
    joins = {leader.steps[s]: s for s in leader.steps if isinstance(s, I.Phi)}
    changes = {s.operands[0]: s for s in leader.changes()}
    for step in search.steps:
        assert isinstance(step, I.Phi | I.Select)
        twin = joins.get(search.steps[step]) if isinstance(step, I.Phi) else changes.get(step.operands[0])
        if twin is None:
            return False
        twins[step] = twin
    if len(set(twins.values())) != len(leader.steps) or twins.get(search.last) is not leader.last:
        return False
    for step, twin in twins.items():
        if isinstance(step, I.Phi) and isinstance(twin, I.Phi) and step is not search.held:
            ways = dict((b, v) for v, b in twin.incoming)
            if any(twins[v] is not ways[b] for v, b in step.incoming):
                return False
        elif isinstance(step, I.Select) and isinstance(twin, I.Select):
            kept, kept_too = search.step_of(step), leader.step_of(twin)
            if twins[kept] is not kept_too or step.operands.index(kept) != twin.operands.index(kept_too):
                return False
    return True


def _join(root: Function, loop: Loop, group: list[Search], leader: Search, relation: str) -> None:
    none = worst(leader.held.type, relation)
    starts: dict[Value, Value] = {s.held: none if s is leader else zero(s.held.type) for s in group}
    if [leader.step_of(c) for c in leader.changes()] == [leader.held]:  # what it is about is asked below alone
        starts |= {c: next(v for v in c.operands[1:] if v not in s.steps) for s in group for c in s.changes()}
    replace_operands((i for b in loop.blocks for i in b.instructions), starts)
    latch = loop.latches[0]
    at = Builder.at_end(latch)
    better = at.fcmp(relation, leader.last, leader.held)
    left: dict[Value, Value] = {s.last: at.select(better, s.last, s.held) for s in group}
    for search in group:
        search.held.incoming = [(left[v] if b is latch else v, b) for v, b in search.held.incoming]
    replace_operands((i for b in root.blocks if b not in loop for i in b.instructions), left)


_OTHER_WAY = {"gt": "lt", "lt": "gt"}


@dataclass(frozen=True, eq=False)
class Guarded:
    """A `choice` of the `better` one of two by `both` a `guard` and a comparison of these, `relation` what it asks."""

    choice: I.Select
    both: I.Instruction
    guard: Value
    relation: str


def are_guarded(blocks: Collection[BasicBlock]) -> bool:
    return any(_arm(block) or any(_guarded(block)) for block in blocks)


def drop_guards(root: Function, blocks: Collection[BasicBlock]) -> None:
    """Takes guards into what is compared, in place."""
    home = {i: block for block in root.blocks for i in block.instructions}
    replaced: dict[Value, Value] = {}
    for found in [f for block in blocks for f in _guarded(block)]:
        if found.both in replaced:
            continue
        at = Builder.before(home[found.both], found.both)
        candidate, best = found.choice.operands[1:]
        other = at.select(found.guard, candidate, worst(candidate.type, found.relation))
        compare = at.fcmp if T.is_float(candidate.type) else at.icmp
        found.choice.operands[1] = other
        replaced[found.both] = compare(found.relation, other, best)
    replace_operands((i for b in root.blocks for i in b.instructions), replaced)


def join_arms(root: Function, blocks: Collection[BasicBlock]) -> None:
    """Makes selects of arms, in place."""
    for block in list(blocks):
        found = _arm(block)
        if found is None:
            continue
        arm, after = found
        condition, is_arm_first = block.terminator.operands[0], block.terminator.targets[0] is arm
        at = Builder.at_end(block)
        for phi in phis(after):
            ways = {b: v for v, b in phi.incoming}
            two = (ways[arm], ways[block]) if is_arm_first else (ways[block], ways[arm])
            chosen = ways[block] if two[0] is two[1] else at.select(condition, *two)
            phi.incoming = [(chosen if b is block else v, b) for v, b in phi.incoming]
        go_one_way(block, after)
    remove_unreachable(root)


def _arm(block: BasicBlock) -> tuple[BasicBlock, BasicBlock] | None:
    """The empty arm behind a block that chooses by what it compares, and the block behind both."""
    branch = block.terminator
    if len(branch.targets) != 2 or not isinstance(branch.operands[0], I.Compare):
        return None
    for arm, after in (branch.targets, branch.targets[::-1]):
        if arm is after or len(arm.instructions) != 1 or arm.successors != [after]:
            continue
        pairs = [dict((b, v) for v, b in phi.incoming) for phi in phis(after)]
        if any({w[arm], w[block]} == set(branch.operands[0].operands) for w in pairs if arm in w):
            return arm, after
    return None


def _guarded(block: BasicBlock) -> Iterator[Guarded]:
    for choice in (i for i in block.instructions if isinstance(i, I.Select)):
        both, better, best = choice.operands
        parts = _conjunction(both) if isinstance(better.type, T.FloatType | T.IntType) else None
        for compared, guard in (parts, parts[::-1]) if parts else ():
            if not isinstance(compared, I.Compare) or set(compared.operands) != {better, best}:
                continue
            turned = compared.operands[0] is not better
            sign, relation = compared.predicate[:-2], compared.predicate[-2:]
            if relation in _OTHER_WAY and sign in ("o", "s", "u") and (compared.opcode == "icmp" or sign == "o"):
                assert isinstance(both, I.Instruction)
                yield Guarded(choice, both, guard, sign + (_OTHER_WAY[relation] if turned else relation))
                break


def _conjunction(value: Value) -> tuple[Value, Value] | None:
    match value:
        case I.BinaryOp(opcode="and", operands=[x, y]):
            return x, y
        case I.Select(operands=[x, y, other]) if is_zero(other):
            return x, y
        case _:
            return None


def worst(type_: T.Type, relation: str) -> Value:
    """What is better, as a relation says, than nothing."""
    greater = "g" in relation
    if not isinstance(type_, T.IntType):
        return const_float(type_, -inf if greater else inf)
    low = -(1 << type_.bits - 1) if relation[0] == "s" else 0
    return const_int(type_, low if greater else low + (1 << type_.bits) - 1)
