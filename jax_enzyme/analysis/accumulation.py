"""What the iterations of a loop add up: in values that go around it, and in memory.

A *chain* starts from a value, the phi of the header or a load, and every step of it is the value before combined with
something else: `s + a`, `s - a`, `fmuladd(a, b, s)`, the lanes of a vector in any order; or `s * a`; or `s && a`; or
the larger of `s` and `a`. Phis and selects join steps of one chain, or put one number in their place (`if (bad) ok =
0`). Nothing else may use a step, so that who starts the chain from zero gets what is to be added.

A *choice* is the best of all with what belongs to it: several phis, of which all are replaced at once, where something
is better than the first one of them:

    %best = phi double [ %b0, %entry ], [ %b, %loop ]        %better = fcmp olt double %a, %best
    %where = phi i64 [ -1, %entry ], [ %w, %loop ]           %b = select i1 %better, double %a, double %best
                                                             %w = select i1 %better, i64 %i, i64 %where
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

from jax_enzyme.analysis.loops import Loop
from jax_enzyme.classes import dataclass, replace
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Uses, callee_name, is_fused
from jax_enzyme.ir.values import BasicBlock, Value, int_value, is_zero

_KINDS = {
    "fadd": "fadd", "fsub": "fadd", "fmul": "fmul", "add": "add", "sub": "add", "mul": "mul",
    "and": "and", "or": "or", "xor": "xor",
}  # fmt: skip
_LANES = "llvm.vector.reduce.fadd."
_EXTREMES = ("llvm.maxnum.", "llvm.minnum.", "llvm.maximum.", "llvm.minimum.", "llvm.maximumnum.", "llvm.minimumnum.")
_RELATIONS = ("gt", "ge", "lt", "le")
_INTEGER_EXTREMES = ("llvm.smax.", "llvm.smin.", "llvm.umax.", "llvm.umin.")


SET = "set"
"""The kind of a chain whose steps replace the value by one number, the same for all, or keep it."""


@dataclass(frozen=True)
class Chain:
    """`kind` is how two parts of the sum are joined: an opcode, the name of a function, or `select`, with `sample` the
    step to imitate. `ends` are the users that are no steps, with their operands' numbers. `leader`: the chain that
    decides what is chosen here, where that is another one; `strict`: of equals the first one stays, and no NaN is
    chosen. `only`: the one iteration that changes the value, if it is no sum."""

    start: Value
    kind: str
    sample: I.Instruction
    steps: frozenset[Value]
    ends: tuple[tuple[I.Instruction, int], ...]
    leader: Chain | None = None
    strict: bool = True
    only: int | None = None


def chain(start: Value, uses: Uses, blocks: Set[BasicBlock], home: Mapping[Value, BasicBlock]) -> Chain | None:
    """The chain from a value inside `blocks`; None where it is used otherwise, or by nothing."""
    steps: set[Value] = {start}
    joins: list[I.Instruction] = []
    ends: list[tuple[I.Instruction, int]] = []
    kinds: dict[str, I.Instruction] = {}
    pending = [start]
    while pending:
        value = pending.pop()
        for user, index in uses.get(value, ()):
            if home.get(user) not in blocks or isinstance(user, I.Store):
                ends.append((user, index))
                continue
            if isinstance(user, I.Phi):
                if user is start:
                    continue
                step: tuple[str, I.Instruction] | None = ("", user)
            else:
                step = _step(user, index, uses)
            if step is None:
                return None
            kind, result = step
            if kind:
                kinds.setdefault(kind, result)
            else:
                joins.append(result)
            if result not in steps:
                steps.add(result)
                pending.append(result)
    replaced = [(j, int_value(o)) for j in joins for o in _joined(j) if o not in steps]
    kinds = kinds or dict(zip([SET], (j for j, _ in replaced), strict=False))
    if len(kinds) != 1:
        return None
    ((kind, sample),) = kinds.items()
    if replaced and not _absorbs(kind, start.type, {number for _, number in replaced}):
        return None
    if any(_is_doubled(s, steps) for s in steps if isinstance(s, I.Instruction) and s is not start):
        return None
    return Chain(start, kind, sample, frozenset(steps), tuple(ends))


def guarded(load: I.Load, uses: Uses, preds: Mapping[BasicBlock, Sequence[BasicBlock]]) -> Chain | None:
    """The same of a number in memory that a larger or a smaller one replaces, where that is all that it is loaded for:
    `if (a > m[j]) m[j] = a`."""
    users = uses.get(load, ())
    compared = users[0][0] if len(users) == 1 else None
    deciding = uses.get(compared, ()) if isinstance(compared, I.Compare) else ()
    branch = deciding[0][0] if len(deciding) == 1 else None
    if not isinstance(compared, I.Compare) or not isinstance(branch, I.CondBranch):
        return None
    other = next((o for o in compared.operands if o is not load), load)
    for arm, target in enumerate(branch.targets):
        stores = [i for i in target.instructions if isinstance(i, I.Store) and i.operands[0] is other]
        if len(stores) != 1 or len(preds[target]) != 1 or branch.targets.count(target) != 1:
            continue
        chosen = I.Select(load.type, "select", [compared, *((load, other) if arm else (other, load))])
        step = _extreme(compared, chosen, load, uses)
        if step is not None:
            return Chain(load, step[0], chosen, frozenset({load, chosen}), ((stores[0], 0),))
    return None


def carried_sum(phi: I.Phi, loop: Loop, uses: Uses, home: Mapping[Value, BasicBlock]) -> Chain | None:
    """What a phi of a loop's header adds up, where nothing needs it but its own steps, and what is behind the loop only
    what it comes to."""
    found = chain(phi, uses, loop.blocks, home)
    following = next((v for v, b in phi.incoming if b in loop), None)
    if found is None or following not in found.steps:
        return None
    is_left = all(home[u] not in loop and u.operands[n] is following for u, n in found.ends)
    return found if is_left else None


def choices(
    phis: Sequence[I.Phi], uses: Uses, blocks: Set[BasicBlock], home: Mapping[Value, BasicBlock]
) -> Iterator[Chain]:
    """The choices among the phis of a loop's header, leaders first. In strict ones what a part begins with is never
    better than what another part has: so the best of parts, each begun with the same, is the best of all."""
    by_condition: dict[I.Compare, list[Chain]] = {}
    for phi in phis:
        found = _chosen(phi, uses, blocks, home)
        if found is not None:
            by_condition.setdefault(found[0], []).append(found[1])
    for compared, chains in by_condition.items():
        if {u for u, _ in uses[compared]} != {c.sample for c in chains}:
            continue
        leader = next((c for c in chains if set(compared.operands) == set(c.sample.operands[1:])), None)
        if leader is None or any(compared in _users(c.start, uses) for c in chains if c is not leader):
            continue
        if any(_stays_if(c) != _stays_if(leader) for c in chains):
            continue
        yield leader
        yield from (replace(c, leader=leader) for c in chains if c is not leader)


def says_any(chain: Chain) -> bool:
    """Does a chain say whether anything was chosen: 0 at first, then 1? (`transform.named_choices`)"""
    assert isinstance(chain.start, I.Phi)
    two = (*chain.start.operands, *chain.sample.operands[1:])
    return chain.leader is not None and [int_value(v) for v in two if v not in chain.steps] == [0, 1]


def _stays_if(chain: Chain) -> bool:
    """What the comparison says where nothing is chosen."""
    return chain.sample.operands[1] is chain.start


def _chosen(
    phi: I.Phi, uses: Uses, blocks: Set[BasicBlock], home: Mapping[Value, BasicBlock]
) -> tuple[I.Compare, Chain] | None:
    """By which comparison a phi is replaced, or stays; what else uses it inside of the loop is that comparison."""
    chosen = next((v for v, b in phi.incoming if b in blocks), None)
    if not isinstance(chosen, I.Select) or not isinstance(phi.type, T.FloatType | T.IntType):
        return None
    compared, *two = chosen.operands
    if not isinstance(compared, I.Compare) or two.count(phi) != 1 or compared.predicate[-2:] not in _RELATIONS:
        return None
    ends = tuple((u, n) for u, n in uses[chosen] if home.get(u) not in blocks)
    inside = [u for u, _ in uses[chosen] if home.get(u) in blocks]
    if inside != [phi] or not _users(phi, uses) <= {chosen, compared}:
        return None
    strict = _is_strict(compared, two[0] is not phi)
    return compared, Chain(phi, f"select {compared.predicate}", chosen, frozenset({phi, chosen}), ends, strict=strict)


def _is_strict(compared: I.Compare, if_true: bool) -> bool:
    """Is something chosen only where it is less, or greater, and no NaN?"""
    if compared.opcode == "icmp":
        return compared.predicate[1:] in (("lt", "gt") if if_true else ("le", "ge"))
    return compared.predicate in (("olt", "ogt") if if_true else ("ule", "uge"))


def _users(value: Value, uses: Uses) -> set[I.Instruction]:
    return {user for user, _ in uses.get(value, ())}


def _absorbs(kind: str, type_: T.Type, numbers: set[int | None]) -> bool:
    """Is it one number by which steps replace others, and stays the value that then?"""
    ones = {-1, 1} if type_ == T.I1 else {-1}
    known = {"and": {0}, "or": ones}.get(kind, numbers if kind == SET else set[int | None]())
    return len(numbers) == 1 and None not in numbers and numbers <= known


def _joined(join: I.Instruction) -> Sequence[Value]:
    return join.operands if isinstance(join, I.Phi) else join.operands[1:]


def _is_doubled(step: I.Instruction, steps: set[Value]) -> bool:
    """Does a step combine two of the chain?"""
    return not isinstance(step, I.Phi | I.Select) and sum(o in steps for o in step.operands) != 1


def _step(user: I.Instruction, index: int, uses: Uses) -> tuple[str, I.Instruction] | None:
    """The kind and result of the next step; an empty kind where steps are joined."""
    match user:
        case I.BinaryOp() if user.opcode in _KINDS:
            return None if user.opcode in ("sub", "fsub") and index == 1 else (_KINDS[user.opcode], user)
        case I.Call():
            if is_fused(user):
                return ("fadd", user) if index == 2 else None
            name = callee_name(user)
            if name.startswith(_LANES):
                return ("fadd", user) if index == 0 and "reassoc" in user.flags else None
            return (name, user) if name.startswith((*_EXTREMES, *_INTEGER_EXTREMES)) else None
        case I.Select() if (logical := _logical(user)) is not None and user.operands.count(user.operands[index]) == 1:
            return (logical, user) if index in (0, 1 + (logical == "or")) else None
        case I.Select() if index > 0:
            compared = user.operands[0]
            if isinstance(compared, I.Compare) and set(compared.operands) == set(user.operands[1:]):
                return _extreme(compared, user, user.operands[index], uses)
            return "", user
        case I.Compare():
            users = uses.get(user, ())
            single = users[0][0] if len(users) == 1 else None
            if isinstance(single, I.Select) and users[0][1] == 0 and set(single.operands[1:]) == set(user.operands):
                return _extreme(user, single, user.operands[index], uses)
            return None
        case _:
            return None


def _logical(chosen: I.Select) -> str | None:
    """`and` where a choice is `x && y`, that is `x ? y : false`; `or` where it is `x ? true : y`."""
    if chosen.type != T.I1:
        return None
    if is_zero(chosen.operands[2]):
        return "and"
    return "or" if int_value(chosen.operands[1]) in (1, -1) else None


def _extreme(compared: I.Compare, chosen: I.Select, value: Value, uses: Uses) -> tuple[str, I.Instruction] | None:
    """The larger or the smaller of a step and something else, where nothing else depends on which it is."""
    relation = compared.predicate.lstrip("uso")
    if relation not in _RELATIONS or len(uses.get(compared, ())) != 1:
        return None
    # What is chosen where the comparison `value relation other` holds.
    less = (relation[0] == "l") == (compared.operands[0] is value)
    smallest = less == (chosen.operands[1] is value)
    return f"select {'min' if smallest else 'max'} {compared.predicate}", chosen
