"""The structural check of adjoints that are added to memory behind their loop (`ad.plan.late_sums`).

Each local array of such adjoints is written at one place, at the number of the iteration, in all iterations of the
reverse loop, and read only where the loop has been left: so every number that is read has been written by this run of
the loop. An error here is a defect of the engine.
"""

from __future__ import annotations

from jax_enzyme.ad.check.errors import EmissionError
from jax_enzyme.ad.emit.emission import Reverse
from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.dominators import Dominators
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.module import Function, uses
from jax_enzyme.ir.values import BasicBlock, Value


def check_late_sums(reverse: Reverse, code: Function) -> None:
    """Raises EmissionError where an array is used in another way."""
    if not reverse.late_sums:
        return
    dominators = Dominators(Cfg(code))
    users = uses(reverse.function)
    home = {i: block for block in reverse.function.blocks for i in block.instructions}
    for buffer, loop in reverse.late_sums.items():
        stores: list[BasicBlock] = []
        for item, _ in users.get(buffer, ()):
            for access, index in users.get(item, ()) if isinstance(item, I.GetElementPtr) else ((item, -1),):
                position = reverse.positions.get(home[access])
                if isinstance(access, I.Store) and index == 1 and position in loop.blocks and _is_number(item):
                    stores.append(position)
                elif not isinstance(access, I.Load) or position is not loop.preheader:
                    raise EmissionError(reverse.function, f"adjoints of {loop} are used before all are there")
        if len(stores) != 1 or not all(dominators.dominates(stores[0], latch) for latch in loop.latches):
            raise EmissionError(reverse.function, f"adjoints of {loop} are not kept in every iteration")


def _is_number(place: Value) -> bool:
    """Whether an address is that of the item of the current iteration."""
    number = place.operands[-1] if isinstance(place, I.GetElementPtr) and len(place.operands) == 2 else None
    return isinstance(number, I.Load) and isinstance(number.operands[0], I.Alloca)
