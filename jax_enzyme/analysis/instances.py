"""Local variables that are new in each iteration of a loop: a mark of their lifetime says that nothing is left of what
the iteration before wrote.

    loop:
      call void @llvm.lifetime.start.p0(ptr %tile)        what %tile holds is undefined from here on
      ... stores to %tile, loads from it ...
      call void @llvm.lifetime.end.p0(ptr %tile)

What an iteration reads, it has written itself; so the variable may as well lie somewhere else in each of them.
"""

from __future__ import annotations

from jax_enzyme.analysis.loops import Loops
from jax_enzyme.analysis.objects import call_effect
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.module import callee_name
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import BasicBlock, Value
from jax_enzyme.remembered import remembered
from jax_enzyme.rules.effects import Effect

_START = "llvm.lifetime.start."
_MEMORY = (Effect.IGNORED, Effect.MEMORY_COPY, Effect.MEMORY_SET)


class Instances:
    """The variables of one function that begin in one place, before all that is done with them."""

    def __init__(self, loops: Loops) -> None:
        self._loops = loops
        self._starts: dict[Value, I.Call] = {}
        marks: dict[Value, list[I.Call]] = {}
        for call in (i for block in loops.cfg.rpo for i in block.instructions):
            if isinstance(call, I.Call) and callee_name(call).startswith(_START):
                marks.setdefault(call.operands[-2], []).append(call)
        alone = {v: starts[0] for v, starts in marks.items() if isinstance(v, I.Alloca) and len(starts) == 1}
        if not alone:
            return
        users: dict[Value, list[I.Instruction]] = {v: [] for v in alone}
        for instruction in loops.home:
            for operand in instruction.operands:
                if operand in users:
                    users[operand].append(instruction)
        for variable, start in alone.items():
            if all(self._is_within(user, variable, start) for user in users[variable]):
                self._starts[variable] = start

    def start(self, variable: Value) -> I.Call | None:
        """Where a variable begins, if nothing is done with it but behind that mark."""
        return self._starts.get(variable)

    def meet(self, first: I.Instruction, second: I.Instruction, variable: Value) -> bool:
        """May control come from one access to another before the variable begins anew?"""
        home = self._loops.home
        (block, position), (other, later) = home[first], home[second]
        if block is other and later > position:
            return True
        return other in self._after(block, home[self._starts[variable]][0])

    @remembered
    def _after(self, block: BasicBlock, start: BasicBlock) -> frozenset[BasicBlock]:
        """The blocks that control may come to from the end of one without passing the mark."""

        def following(one: BasicBlock) -> list[BasicBlock]:
            return [b for b in self._loops.cfg.succs[one] if b is not start]

        return frozenset(reached(following(block), following))

    def _is_within(self, user: I.Instruction, variable: Value, start: I.Call) -> bool:
        """Whether an instruction does nothing with a variable but to access memory or to compute an address, behind
        its mark."""
        match user:
            case I.Load() | I.GetElementPtr():
                pass
            case I.Store():
                if user.operands[0] is variable:
                    return False
            case I.Call():
                if call_effect(user) not in _MEMORY:
                    return False
                if call_effect(user) is Effect.IGNORED:
                    return True
            case _:
                return False
        return self._loops.precedes(start, user)
