"""The first and the last iterations of a loop, which go to other neighbours or another way, are made apart.

    before    for i < n: { l = i == 0 ? n - 1 : i - 1; y[i] = x[i] - x[l]; }         a line that is closed to a ring

    after     y[0] = x[0] - x[n - 1];
              for 1 <= i < n: y[i] = x[i] - x[i - 1];

What is left goes to places at constant distances. So it is made vectors without a gather; in reverse what is added to
neighbours is no read and write after the other, but added up where it belongs (`ad.plan.late_sums`), and iterations
may come in any order (`ad.plan.turned`). LLVM makes iterations apart as well, where the whole of it is short.

Of loops around others those are, in which a loop inside goes another way throughout:

    before    for i < n: for j < m: { f = 0; if (i > 0) f += x[i - 1][j]; y[i][j] = f; }

    after     for j < m: y[0][j] = 0;
              for 1 <= i < n: for j < m: y[i][j] = x[i - 1][j];

A loop may be left in the midst of its last iteration, where the compiler followed what comes of `if (j < m - 1)` there:
that iteration is made apart, and what stays is left at its end alone.

An iteration chooses by a comparison of integers, as the smaller or the larger of two, or by a difference that is no
less than zero. Their sides are numbers of iterations, up to a factor and a constant, and the loop runs a constant
number of times: so for each it is known in which iterations it comes out how.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import eq, ge, gt, le, lt, ne

from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.analysis.polynomials import TooComplex
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.analysis.trips import full_count
from jax_enzyme.classes import dataclass, field
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import Cloner
from jax_enzyme.ir.marks import has_marks
from jax_enzyme.ir.module import Function, Module, Uses, callee_name, uses
from jax_enzyme.ir.reach import Reached
from jax_enzyme.ir.values import BasicBlock, Value
from jax_enzyme.transform.rewriting import on_copy, phis, replace_values

_FEWEST = 16
"""A loop of fewer iterations stays as it is: of ten, the two at the ends cost more than the others gain."""
_ENDS = 2
"""So many iterations at each end: neighbours of neighbours."""
_INSTRUCTIONS = 400
"""Of all that is made apart in one loop."""
_SCOPES = ("alias.scope", "noalias", "llvm.access.group")
"""What holds between the accesses of one iteration, of which there are several in one run of the loop now."""
_LESS = {"llvm.smin": "slt", "llvm.umin": "ult", "llvm.smax": "sgt", "llvm.umax": "ugt", "llvm.usub.sat": "uge"}
"""What has to hold of two operands for the first of them, or for their difference, to be the result."""
_HOLDS = {"eq": eq, "ne": ne, "lt": lt, "le": le, "gt": gt, "ge": ge}


@dataclass
class _Ends:
    """How many iterations of a loop are made apart, and what holds of comparisons and choices in all others."""

    loop: Loop
    again: int
    """How often the loop repeats."""
    first: int = 0
    last: int = 0
    usual: dict[I.Instruction, bool] = field(default_factory=dict[I.Instruction, bool])


def make_ends_apart(function: ArrayFunction) -> ArrayFunction:
    """The array function with such iterations apart, in a copy of the module; the function itself where it has none, or
    has loops that threads share."""
    module = function.module
    if has_marks(module) or not any(_found(module, module.functions[function.symbol])):
        return function
    return on_copy(function, _make_apart)


def _make_apart(module: Module, root: Function) -> bool:
    # Loops around others first: the compiler would leave a loop inside of what is made apart in the midst alone.
    while found := list(_found(module, root)):
        usual: dict[Value, Value] = {}
        around = {ends.loop for ends, _ in found}
        for ends, bound in found:
            if not any(loop in around for loop in ends.loop.ancestors if loop is not ends.loop):
                usual |= _make_room(root, ends, bound)
        replace_values(root, usual)
    return True


def _found(module: Module, root: Function) -> Iterator[tuple[_Ends, tuple[Value, Value] | None]]:
    """The loops of a function where this is possible, and short enough."""
    loops = Loops.of(root)
    users = uses(root)
    facts: Recurrences | None = None
    for loop in loops:
        if loop.preheader is None or len(loop.latches) > 1 or loop.latches[0] not in loop.exiting:
            continue
        if loop.length > _INSTRUCTIONS or not (choices := list(_choices(loop, users))):
            continue
        facts = facts or Recurrences(root, loops, module)
        exact = full_count(facts, loop).exact
        again = None if exact is None else exact.value
        if again is None or again + 1 < _FEWEST or not _is_left_alone(loop, users, facts):
            continue
        ends = _Ends(loop, again)
        for choice in choices:
            _look_at(ends, choice, facts)
        is_short = (ends.first + ends.last) * loop.length <= _INSTRUCTIONS
        if ends.usual and is_short and all(b in loop.latches or _stays(ends, b) for b in loop.exiting):
            bound = _bound(ends, facts) if ends.last else None
            if bound is not None or not ends.last:
                yield ends, bound


def _choices(loop: Loop, users: Uses) -> Iterator[I.Instruction]:
    """What decides in a loop where control goes, or which of two integers or pointers leads to a place in memory;
    in one around others, where control goes in those."""
    end = loop.latches[0].terminator
    inside = {block.terminator for child in loop.children for block in child.blocks}
    for instruction in (i for block in loop.blocks for i in block.instructions):
        if isinstance(instruction, I.Compare) and instruction.opcode == "icmp":
            decided = [user for user in _decided(instruction, users) if user is not end]
        elif _predicate(instruction) is not None:
            decided = [instruction]
        else:
            continue
        if loop.children:
            decides = any(d in inside for d in decided)
        else:
            decides = any(isinstance(d, I.CondBranch) or _leads_to_a_place(d, users) for d in decided)
        if decides:
            yield instruction


def _decided(comparison: I.Compare, users: Uses) -> Iterator[I.Instruction]:
    """What a comparison decides, by itself or with others (`i == 0 || i == n - 1`)."""
    found = Reached[Value]([comparison])
    for condition in found:
        for user, at in users.get(condition, ()):
            if isinstance(user, I.BinaryOp | I.Select) and user.type == T.I1:
                found.add([user])
            elif at == 0:
                yield user


def _predicate(choice: I.Instruction) -> str | None:
    """What decides: a comparison's own, or that of a call which returns one of two numbers."""
    if isinstance(choice, I.Compare):
        return choice.predicate
    name = callee_name(choice)
    return next((less for word, less in _LESS.items() if name.startswith(word + ".i")), None) if name else None


def _leads_to_a_place(choice: I.Instruction, users: Uses) -> bool:
    start: list[Value] = [choice] if isinstance(choice, I.Select | I.CallBase) else []
    found = Reached(start)
    for item in found:
        for user, _ in users.get(item, ()):
            if isinstance(user, I.GetElementPtr):
                return True
            if isinstance(user, I.BinaryOp | I.Cast | I.Select) and isinstance(user.type, T.IntType):
                found.add([user])
    return False


def _is_left_alone(loop: Loop, users: Uses, facts: Recurrences) -> bool:
    """Whether all that is read of it behind the loop goes through the phis of its exits, and all may be copied."""
    behind = {phi for block in loop.exits for phi in phis(block)}
    for instruction in (i for block in loop.blocks for i in block.instructions):
        if isinstance(instruction, I.Alloca) or "convergent" in getattr(instruction, "attributes", ()):
            return False
        for user, _ in users.get(instruction, ()):
            if facts.block_of[user] not in loop and user not in behind:
                return False
    return True


def _stays(ends: _Ends, block: BasicBlock) -> bool:
    """Whether all iterations between the ends go on in the loop behind a block that may leave it."""
    branch = block.terminator
    test = branch.operands[0] if isinstance(branch, I.CondBranch) else None
    return isinstance(test, I.Compare) and test in ends.usual and branch.targets[not ends.usual[test]] in ends.loop


def _look_at(ends: _Ends, choice: I.Instruction, facts: Recurrences) -> None:
    """Makes room for a choice at the ends, if it is always the same between them."""
    predicate = _predicate(choice)
    assert predicate is not None
    first, step = _difference(choice, predicate, ends.loop, facts) or (0, 0)
    if step == 0:
        return
    holds = _HOLDS[predicate[-2:]]
    # All that changes is where the difference is zero: in front of that iteration, in it, or behind it.
    zero = -first // step
    near = range(max(zero - 1, 1), min(zero + 3, ends.again + 1))
    turns = [k for k in near if holds(first + step * (k - 1), 0) != holds(first + step * k, 0)]
    low = max((k for k in turns if k <= _ENDS), default=0)
    high = min((k for k in turns if k > _ENDS), default=ends.again + 1)
    if ends.again + 1 - high <= _ENDS and low + (ends.again + 1 - high):
        ends.first, ends.last = max(ends.first, low), max(ends.last, ends.again + 1 - high)
        ends.usual[choice] = holds(first + step * low, 0)


def _difference(choice: I.Instruction, predicate: str, loop: Loop, facts: Recurrences) -> tuple[int, int] | None:
    """What the first operand is more than the second in the first iteration, and how that changes from one to the next:
    as integers, without a wrap."""
    bits = facts.bits(choice.operands[0].type)
    if bits is None or T.is_pointer(choice.operands[0].type):
        return None
    block = facts.block_of[choice]
    try:
        sides = [facts.form_at(value, block) for value in choice.operands[:2]]
        exact = [facts.is_signed] if predicate[0] == "s" else [facts.is_unsigned]
        if predicate in ("eq", "ne"):
            exact = [facts.is_signed, facts.is_unsigned]
        if not any(all(is_exact(side, bits) for side in sides) for is_exact in exact):
            return None
        parts = (sides[0].polynomial - sides[1].polynomial).coefficients(facts.iteration(loop))
    except TooComplex:
        return None
    numbers = [part.value for part in parts]
    if len(numbers) != 2 or numbers[0] is None or numbers[1] is None:
        return None
    return numbers[0], numbers[1]


def _bound(ends: _Ends, facts: Recurrences) -> tuple[Value, Value] | None:
    """What tells iterations apart of the two that are compared at the end of a loop, and what it is in the last one
    that stays in it."""
    condition = ends.loop.latches[0].terminator.operands[0]
    if not isinstance(condition, I.Compare):
        return None
    for side in condition.operands:
        bits = None if T.is_pointer(side.type) else facts.bits(side.type)
        chain = None if bits is None else facts.closed_form(side, ends.loop)
        numbers = [] if chain is None else [c.value for c in chain.coefficients]
        if bits is None or len(numbers) != 2 or numbers[0] is None or not numbers[1]:
            continue
        if abs(numbers[1]) * (ends.again + 1) < 1 << bits:
            return side, const_int(side.type, numbers[0] + numbers[1] * (ends.again - ends.last))
    return None


def _make_room(root: Function, ends: _Ends, bound: tuple[Value, Value] | None) -> dict[Value, Value]:
    """Makes the iterations of one loop apart, and says what holds in the others."""
    loop, (latch,) = ends.loop, ends.loop.latches
    header, before = loop.header, loop.preheader
    (exit_,) = (target for source, target in loop.exit_edges if source is latch)
    assert before is not None
    carried = {phi: both for phi in phis(header) if (both := loop.ends(phi)) is not None}
    chain = _Chain(root, loop, before, {phi: start for phi, (start, _) in carried.items()})
    for _ in range(ends.first):
        chain.add(header)
    for phi, value in chain.entering.items():
        phi.incoming = [(value, chain.before), (carried[phi][1], latch)]
    if bound is not None:
        stays = latch.terminator.targets[0] is header
        latch.terminator.operands = [Builder.at_end(latch).icmp("ne" if stays else "eq", *bound)]
    chain = _Chain(root, loop, latch, {phi: then for phi, (_, then) in carried.items()})
    for _ in range(ends.last):
        chain.add(exit_)
    for phi in phis(exit_):
        phi.incoming = [(chain.map.get(v, v), chain.before) if b is latch else (v, b) for v, b in phi.incoming]
    return dict(_usual(ends))


class _Chain:
    """Iterations of a loop one behind the other, begun behind a block `before` with numbers `entering`."""

    def __init__(self, root: Function, loop: Loop, before: BasicBlock, entering: dict[I.Phi, Value]) -> None:
        self.before = before
        self.entering = entering
        self.map: dict[Value, Value] = {}
        self._root = root
        self._loop = loop
        self._blocks = [b for b in root.blocks if b in loop.blocks]
        self._carried = {phi: both[1] for phi in entering if (both := loop.ends(phi)) is not None}

    def add(self, behind: BasicBlock) -> None:
        """Puts one more iteration in front of a block to which the last block goes, or would stay in the loop."""
        cloner = Cloner()
        copies = dict(zip(self._blocks, cloner.blocks(self._blocks), strict=True))
        head, last = copies[self._loop.header], copies[self._loop.latches[0]]
        for value, copy in zip(self.entering.values(), phis(head), strict=True):
            copy.incoming = [(value, self.before)]
        for instruction in (i for copy in copies.values() for i in copy.instructions):
            instruction.metadata = [pair for pair in instruction.metadata if pair[0] not in _SCOPES]
        last.instructions.pop()
        Builder(last).br(behind)
        for source, target in self._loop.exit_edges:
            for phi in phis(target) if source is not self._loop.latches[0] else ():
                (value,) = (v for v, block in phi.incoming if block is source)
                phi.incoming = [*phi.incoming, (cloner.map.get(value, value), copies[source])]
        self.before.terminator.targets = [head if t is behind else t for t in self.before.terminator.targets]
        place = self._root.blocks.index(self.before) + 1
        self._root.blocks[place:place] = copies.values()
        self.map = cloner.map
        self.entering = {phi: self.map.get(then, then) for phi, then in self._carried.items()}
        self.before = last


def _usual(ends: _Ends) -> Iterator[tuple[Value, Value]]:
    """What stands for each choice between the ends."""
    for choice, holds in ends.usual.items():
        if isinstance(choice, I.Compare):
            yield choice, const_int(T.I1, holds)
        elif callee_name(choice).startswith("llvm.usub.sat."):
            block = next(b for b in ends.loop.blocks if choice in b.instructions)
            x, y, *_ = choice.operands
            yield choice, Builder.before(block, choice).binary("sub", x, y) if holds else const_int(choice.type, 0)
        else:
            yield choice, choice.operands[0 if holds else 1]
