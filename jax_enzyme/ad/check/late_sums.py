"""The structural check of adjoints that are added to memory behind their loops (`ad.plan.late_sums`).

Each local array of such adjoints is zero at the start of the function where anything of it may stay as it is. It is
written at one place, at the item that the numbers of the iterations give, in all iterations of the reverse loops, and
read only where the outermost of them has been left, from a place on that is so far in that nothing outside of the array
is read: so every item that is read is zero or has been written by this run of the loops. Where the length of a loop
differs, what may be read behind the last item that this run has written is cleared there, and the loop that reads ends
at that item. An error here is a defect of the engine.
"""

from __future__ import annotations

from jax_enzyme.ad.check.errors import EmissionError
from jax_enzyme.ad.emit.addresses import element_alignment
from jax_enzyme.ad.emit.emission import Reverse
from jax_enzyme.ad.plan.late_sums import Gather
from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.dominators import Dominators
from jax_enzyme.analysis.objects import call_effect
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.module import Function, Uses, uses
from jax_enzyme.ir.values import BasicBlock, Value, int_value
from jax_enzyme.rules.effects import Effect


def check_late_sums(reverse: Reverse, code: Function) -> None:
    """Raises EmissionError where an array is used in another way."""
    if not reverse.late_sums:
        return
    dominators = Dominators(Cfg(code))
    users = uses(reverse.function)
    home = {i: block for block in reverse.function.blocks for i in block.instructions}
    for buffer, gather in reverse.late_sums.items():
        stores: list[BasicBlock] = []
        ends: list[set[Value]] = []
        numbers: set[Value] = set()
        is_clear = not gather.has_zeros
        for item, _ in users.get(buffer, ()):
            if isinstance(item, I.CallBase) and call_effect(item) is Effect.MEMORY_SET:
                is_clear = is_clear or home[item] is reverse.function.entry
                continue
            end = _end(gather, item, users) if gather.ragged else None
            if end is not None:
                ends.append(end)
                continue
            for access, index in users.get(item, ()) if isinstance(item, I.GetElementPtr) else ((item, -1),):
                position = reverse.positions.get(home[access])
                is_stored = isinstance(access, I.Store) and index == 1
                if is_stored and position is not None and position in gather.nest[-1].blocks:
                    numbers = _check_number(reverse, gather, item)
                    stores.append(position)
                elif not isinstance(access, I.Load) or position is not gather.loop.preheader:
                    raise EmissionError(reverse.function, f"adjoints of {gather.loop} are used before all are there")
        if not is_clear or gather.ragged != (len(ends) == 1 and not numbers.isdisjoint(ends[0])):
            raise EmissionError(reverse.function, f"adjoints of {gather.loop} have no zeros around them")
        latches = [latch for loop in gather.nest for latch in loop.latches]
        if len(stores) != 1 or not all(dominators.dominates(stores[0], latch) for latch in latches):
            raise EmissionError(reverse.function, f"adjoints of {gather.loop} are not kept in every iteration")


def _end(gather: Gather, place: Value, users: Uses) -> set[Value] | None:
    """The variables that begin as the number of the last iteration, where an address is that behind the last item of a
    loop whose length differs: as much is cleared there as may be read, and the loop that reads the items ends there."""
    clears = [i for i, _ in users[place] if isinstance(i, I.CallBase) and call_effect(i) is Effect.MEMORY_SET]
    number = place.operands[-1] if isinstance(place, I.GetElementPtr) else place
    if not isinstance(number, I.BinaryOp) or number.opcode != "add" or int_value(number.operands[1]) != gather.rim + 1:
        return None
    size = gather.rim * element_alignment(next(iter(gather.shifts)).type, None)
    bounds = [i for i, index in users[number] if isinstance(i, I.Compare) and index == 1 and i.predicate == "ult"]
    if [int_value(clear.operands[2]) for clear in clears] != [size] or len(bounds) != 1:
        return None
    return {i.operands[1] for i, index in users[number.operands[0]] if isinstance(i, I.Store) and index == 0}


def _check_number(reverse: Reverse, gather: Gather, place: Value) -> set[Value]:
    """The variables that have the numbers of the current iterations, one for each loop; EmissionError where an address
    is not that of the item of these."""
    steps: dict[Value, int] = {}
    start, sums = 0, [place.operands[-1]] if isinstance(place, I.GetElementPtr) and len(place.operands) == 2 else []
    while sums:
        term = sums.pop()
        constant = int_value(term)
        if constant is not None:
            start += constant
        elif isinstance(term, I.BinaryOp) and term.opcode == "add":
            sums += term.operands
        elif isinstance(term, I.BinaryOp) and term.opcode == "mul":
            number, step = term.operands[0], int_value(term.operands[1])
            if not isinstance(number, I.Load) or step is None or number.operands[0] in steps:
                break
            steps[number.operands[0]] = step
        else:
            break
    variables = all(isinstance(variable, I.Alloca) for variable in steps)
    if sums or not variables or start != gather.start or sorted(steps.values()) != sorted(gather.steps):
        raise EmissionError(reverse.function, f"an adjoint of {gather.loop} is kept at another place")
    return set(steps)
