"""Loads of one place in all iterations of an innermost loop move before it, though the loop writes to the same array;
and what is loaded there and stored again is handed from one iteration to the next.

    for j > k: a[i][j] -= a[i][k] * a[k][j]

    before    loop:  %f = load double, ptr %p              after    %f = load double, ptr %p
                     ...                                            loop:  ...
                     store double %d, ptr %q                               store double %d, ptr %q

LLVM compares addresses of one array by what it is told of aliases, which is nothing; here what is written lies to the
right of what is read. In reverse, the adjoint of such a load would be added to memory in each iteration, and each would
wait for the one before; behind the loop it is the sum of a reduction, which can be vectorised.

What the last iteration loaded, and is read behind the loop (of the ends of a ring, made apart), is loaded again there:

    before    loop:    %b = load double, ptr %p              after    loop:    %b = load double, ptr %p
              behind:  %last = phi double [ %b, %loop ]               behind:  %q = phi ptr [ %p, %loop ]
                                                                               %last = load double, ptr %q

Its adjoint would be that of the last iteration, so that the loop is reversed from there on (`ad.plan.turned`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from jax_enzyme.analysis.accesses import Access
from jax_enzyme.analysis.alias import Alias
from jax_enzyme.analysis.evaluation import is_pure
from jax_enzyme.analysis.extents import is_inside
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.memory_uses import MemoryUses
from jax_enzyme.analysis.objects import call_effect
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.clone import with_operands
from jax_enzyme.ir.debug import NOTED
from jax_enzyme.ir.module import Function, Module, callee_name
from jax_enzyme.ir.sources import noted_sources
from jax_enzyme.ir.values import Value
from jax_enzyme.rules.effects import Effect
from jax_enzyme.transform.rewriting import on_copy, phis, substitute

_KEPT = ("dbg", "tbaa", NOTED)
_MEETINGS = (Effect.BARRIER, Effect.VOTE, Effect.SHUFFLE, Effect.FENCE)


def load_before_loops(function: ArrayFunction) -> ArrayFunction:
    """The array function with such loads before their loops, in a copy of the module; the function itself where there
    is nothing of the kind. Other threads may run it where that they write what it loads would be a race."""
    root = function.module.functions[function.symbol]
    loops = Loops.of(root)
    if not any(_candidates(loops, loop) or _sums(loops, loop) or _left(loops, loop) for loop in loops.all):
        return function
    return on_copy(function, lambda module, root: _Moves(module, root).run())


class _Moves:
    """What moves in one function, in place."""

    def __init__(self, module: Module, root: Function) -> None:
        self._root = root
        self._loops = Loops.of(root)
        self._facts = Recurrences(root, self._loops, module)
        self._layout = DataLayout(module)
        self._memory = MemoryUses(root, PointsTo(module, root), self._layout)
        self._alias = Alias(self._facts, self._memory)

    def run(self) -> bool:
        """Whether anything was moved."""
        copies = noted_sources(self._root)
        loads = ((loop, load) for loop in self._loops.all for load in _candidates(self._loops, loop))
        moved = [(loop, load) for loop, load in loads if load not in copies and self._may_begin(load, loop)]
        sums = [(loop, group) for loop in self._loops.all for group in self._handed_on(loop)]
        for loop, load in moved:
            self._facts.block_of[load].instructions.remove(load)
            loop.front.instructions.insert(-1, load)
        for loop, group in sums:
            _hand_on(self._root, loop, group)
        left = [(loop, phi) for loop in self._loops.all for phi in _left(self._loops, loop) if self._stays(phi, loop)]
        for loop, phi in left:
            _load_behind(self._root, loop, phi)
        return bool(moved or sums or left)

    def _stays(self, phi: I.Phi, loop: Loop) -> bool:
        """Whether a loop does not write what it loads, and leaves by a phi."""
        load = phi.operands[0]
        assert isinstance(load, I.Load)
        return self._is_alone(load, loop, (a for a in self._memory.inside(loop) if a.writes))

    def _may_begin(self, load: I.Load, loop: Loop) -> bool:
        """Whether a load may be made where the loop begins: what it reads is there, and stays."""
        base = I.base_of(load.operands[0])
        is_there = load in loop.header.instructions or is_inside(self._facts, self._layout, load, base, loop.front)
        return is_there and self._is_alone(load, loop, (a for a in self._memory.inside(loop) if a.writes))

    def _handed_on(self, loop: Loop) -> Iterator[list[I.Load | I.Store]]:
        """What every iteration of a loop loads from one place and stores there, and nothing else in it touches."""
        for group in _sums(self._loops, loop):
            if all(self._facts.once_per_iteration(self._facts.block_of[i], loop) for i in group):
                others = (access for access in self._memory.inside(loop) if access.instruction not in group)
                if isinstance(group[0], I.Load) and self._is_alone(group[0], loop, others):
                    yield group

    def _is_alone(self, load: I.Load, loop: Loop, others: Iterable[Access]) -> bool:
        """Whether nothing among other accesses in the loop comes to the place of one."""
        (own,) = self._memory.at(load)
        return all(self._alias.never_meet(other, own, loop) for other in others)


def _hand_on(root: Function, loop: Loop, group: list[I.Load | I.Store]) -> None:
    """What is loaded from one place and stored there again goes through a phi; the last of it is stored behind."""
    first, last = group[0], group[-1]
    (latch,), (behind,), before = loop.latches, loop.exits, loop.preheader
    assert isinstance(first, I.Load) and before is not None
    early = with_operands(first, first.operands)
    before.instructions.insert(-1, early)
    handed = I.Phi(first.type, "phi", [early], targets=[before])
    loop.header.instructions.insert(0, handed)
    replaced: dict[Value, Value] = {}
    now: Value = handed
    for access in group:
        if isinstance(access, I.Load):
            replaced[access] = now
        else:
            now = access.operands[0]
    handed.add(now, latch)
    outside = I.Phi(first.type, "phi", [now], targets=[latch])
    store = with_operands(next(i for i in reversed(group) if isinstance(i, I.Store)), [outside, last.operands[-1]])
    at = len(phis(behind))
    behind.instructions[at:at] = [outside, store]
    for block in loop.blocks:
        block.instructions = [i for i in block.instructions if i not in group or i in replaced]
    substitute(root, replaced)


def _sums(loops: Loops, loop: Loop) -> list[list[I.Load | I.Store]]:
    """What an innermost loop with one exit, at its end, loads from and stores to each place that it does not change:
    all accesses by one address, in the order in which they are made; first a load, and at least one store."""
    if not _has_one_end(loops, loop):
        return []
    groups: dict[Value, list[I.Load | I.Store]] = {}
    for instruction in (i for b in loops.blocks(loop) for i in b.instructions):
        if isinstance(instruction, I.Load | I.Store):
            groups.setdefault(instruction.operands[-1], []).append(instruction)
    inside = {i for block in loop.blocks for i in block.instructions}
    return [
        group
        for pointer, group in groups.items()
        if pointer not in inside
        and isinstance(group[0], I.Load)
        and any(isinstance(i, I.Store) for i in group)
        and all(_is_plain(i) and I.accessed_value(i).type == group[0].type for i in group)
    ]


def _left(loops: Loops, loop: Loop) -> list[I.Phi]:
    """What is read behind an innermost loop with one exit, at its end, of what its last iteration loaded."""
    if not _has_one_end(loops, loop):
        return []
    inside = {i for block in loop.blocks for i in block.instructions}
    behind = loop.exits[0]
    return [p for p in phis(behind) if isinstance(v := p.operands[0], I.Load) and v in inside and _is_plain(v)]


def _load_behind(root: Function, loop: Loop, phi: I.Phi) -> None:
    """A phi of what was loaded becomes a load behind the loop."""
    load, (latch,), (behind,) = phi.operands[0], loop.latches, loop.exits
    assert isinstance(load, I.Load)
    where = I.Phi(load.operands[0].type, "phi", [load.operands[0]], targets=[latch])
    again = with_operands(load, [where])
    again.metadata = [(kind, node) for kind, node in load.metadata if kind in _KEPT]
    behind.instructions.remove(phi)
    at = len(phis(behind))
    behind.instructions[at:at] = [again]
    behind.instructions.insert(0, where)
    substitute(root, {phi: again})


def _is_plain(access: I.Load | I.Store) -> bool:
    """Whether a number is loaded or stored, and nothing is said of when."""
    is_number = isinstance(I.accessed_value(access).type, T.FloatType)
    return is_number and I.is_plain(access)


def _is_closed(loop: Loop) -> bool:
    """Whether an innermost loop does nothing that may not come back, or after which other threads' writes are seen."""
    if loop.children or loop.preheader is None:
        return False
    inside = [i for block in loop.blocks for i in block.instructions]
    calls = [i for i in inside if isinstance(i, I.CallBase)]
    if any(isinstance(i, I.Fence) for i in inside) or any(call_effect(call) in _MEETINGS for call in calls):
        return False
    return all(callee_name(call).startswith("llvm.") or is_pure(call) for call in calls)


def _has_one_end(loops: Loops, loop: Loop) -> bool:
    """Whether such a loop is left at its end alone, for a block that nothing else leads to."""
    if not _is_closed(loop) or loop.exiting != loop.latches or len(loop.latches) != 1 or len(loop.exits) != 1:
        return False
    return loops.cfg.preds[loop.exits[0]] == loop.latches


def _candidates(loops: Loops, loop: Loop) -> list[I.Load]:
    """The plain loads of numbers that an innermost loop makes, perhaps, at an address from outside."""
    if not _is_closed(loop):
        return []
    inside = {i: None for block in loops.blocks(loop) for i in block.instructions}
    loads = (i for i in inside if isinstance(i, I.Load))
    return [load for load in loads if _is_plain(load) and load.operands[0] not in inside]
