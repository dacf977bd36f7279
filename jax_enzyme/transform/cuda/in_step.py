"""Lanes of a warp go in step where shared memory is volatile, as programs from before CUDA 9 rely on.

before    a = load volatile s[t]; b = load volatile s[t + 16]; store volatile a + b, s[t]; c = load volatile s[t + 8]
after     a = load s[t]; b = load s[t + 16]; meet the warp; store a + b, s[t]; meet the warp; c = load s[t + 8]

A store is apart from what was accessed before and behind it, where no meeting lies in between already: in front of the
later one of the two, where lanes are together again that went different ways to the first; where only some lanes come
to the later one (`if (lane < 2) s[lane] = ...` behind a read), in front of the branch that parts them, as all have to
read before these store. Where only some lanes of an iteration come to a meeting, all meet at the end of the iteration:
those that went around it would be in the next one otherwise, in front of meetings that all come to. Behind a loop all
meet that left it, each in its iteration: what one reads there others may still store in the loop.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.dominators import Dominators, PostDominators
from jax_enzyme.analysis.loops import Loops
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function, GlobalVariable, Module, callee_name
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import BasicBlock, Constant, Value
from jax_enzyme.transform.cuda import marks
from jax_enzyme.transform.cuda.spaces import is_dynamic
from jax_enzyme.transform.private_globals import globals_in


def keep_in_step(module: Module, kernel: Function, shared: Collection[GlobalVariable]) -> bool:
    """Changes a kernel into which all is inlined; nothing in it is volatile behind that. Whether anything was."""
    accesses = [i for i in kernel.instructions() if isinstance(i, I.Load | I.Store)]
    volatile = {i for i in accesses if "volatile" in i.flags}
    if not volatile:
        return False
    places: dict[Value, set[Value]] = {i: _variables(i, shared) for i in accesses}
    needed = _meetings(kernel, {i: found for i, found in places.items() if found}, volatile)
    meeting = marks.meeting(module, marks.MEET_WARP)
    for block in kernel.blocks:
        made: list[I.Instruction] = []
        waiting: list[I.Instruction] = []
        for instruction in block.instructions:
            if callee_name(instruction) == marks.STEP:
                waiting = [instruction]
                made.append(instruction)
                continue
            if instruction in needed:
                call = I.Call(T.VOID, "call", [meeting], function_type=meeting.function_type)
                made.insert(made.index(waiting[0]) if instruction in volatile and waiting else len(made), call)
            waiting = [] if instruction in volatile else waiting
            made.append(instruction)
        block.instructions = [i for i in made if callee_name(i) != marks.STEP]
    for access in volatile:
        access.flags = tuple(flag for flag in access.flags if flag != "volatile")
    return True


def _meetings(
    kernel: Function, places: Mapping[Value, set[Value]], volatile: Collection[Value]
) -> dict[I.Instruction, None]:
    """Before which instructions the warp meets: between two accesses of the same variable, one of which stores, and one
    is volatile."""
    together = _Together(kernel)

    def apart(access: I.Instruction, other: I.Instruction) -> bool:
        stores = isinstance(access, I.Store) or isinstance(other, I.Store)
        shares = not places[access].isdisjoint(places.get(other, ()))
        return stores and shares and (access in volatile or other in volatile)

    found: dict[I.Instruction, None] = {}
    for block in kernel.blocks:
        for number, access in enumerate(block.instructions):
            if access not in places:
                continue
            while other := next((o for o in _behind(block, number + 1, found) if apart(access, o)), None):
                place = together.before(other, block)
                found[other if place in found else place] = None  # itself where there are ways around the place
    return found | dict.fromkeys(together.ends(found))


class _Together:
    """Where the lanes that go different ways to an access are together."""

    def __init__(self, kernel: Function) -> None:
        cfg = Cfg(kernel)
        self._dominators, self._behind = Dominators(cfg), PostDominators(cfg)
        self._loops = Loops(cfg, self._dominators)
        self._home = {i: block for block in kernel.blocks for i in block.instructions}

    def before(self, access: I.Instruction, first: BasicBlock) -> I.Instruction:
        """The last place in front of an access that all lanes come to that come from a block: itself, or the branch by
        which some of them alone go to it, or to the loop around it."""
        here = self._home[access]
        while not self._dominators.dominates(here, first):
            loop = self._loops.loop_of.get(here)
            around = [o.header for o in loop.ancestors if first not in o] if loop is not None else []
            top = around[-1] if around else here
            above = self._dominators.idom.get(top)
            if above is None or (not around and self._behind.dominates(here, above)):
                break
            here = above
        return access if here is self._home[access] else here.terminator

    def ends(self, places: Collection[I.Instruction]) -> Iterator[I.Instruction]:
        """The last instructions of iterations in which lanes may go around one of these places, and the first ones
        behind the loops around them, which lanes may leave before others."""
        for here in dict.fromkeys(self._home[place] for place in places):
            loop = self._loops.loop_of.get(here)
            for around in loop.ancestors if loop is not None else ():
                yield from (b.terminator for b in around.latches if not self._dominators.dominates(here, b))
                yield from (next(i for i in b.instructions if not isinstance(i, I.Phi)) for b in around.exits)


def _behind(block: BasicBlock, start: int, met: Collection[Value]) -> Iterator[I.Instruction]:
    """What may come behind a place before the next meeting; `met` are instructions in front of which there is one, and
    may grow in between."""
    seen = {(block, start)}
    pending = [(block, start)]
    while pending:
        here, first = pending.pop()
        for instruction in here.instructions[first:]:
            name = callee_name(instruction)
            if marks.is_meeting(instruction) or name.startswith(marks.SHUFFLE) or instruction in met:
                break
            yield instruction
            if instruction in met:
                break
        else:
            following = [(b, 0) for b in dict.fromkeys(here.successors) if (b, 0) not in seen]
            seen.update(following)
            pending += following


def _variables(access: I.Load | I.Store, shared: Collection[GlobalVariable]) -> set[Value]:
    """The shared variables that an address may lead into; those of dynamic size are one."""

    def made_of(value: Value) -> list[Value]:
        match value:
            case I.GetElementPtr() | I.Cast() | I.Freeze():
                return value.operands[:1]
            case I.Select():
                return value.operands[1:]
            case I.Phi():
                return value.operands
            case Constant():
                return list(globals_in(value))
            case _:
                return []

    found = [v for v in reached([access.operands[-1]], made_of) if v in shared]
    dynamic = next((v for v in shared if is_dynamic(v)), None)
    return {dynamic if dynamic is not None and isinstance(v, GlobalVariable) and is_dynamic(v) else v for v in found}
