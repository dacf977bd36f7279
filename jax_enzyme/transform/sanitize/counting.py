"""What a loop counts, from where, how far, and by which steps."""

from __future__ import annotations

from jax_enzyme.analysis.counters import tests
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.values import Value

WIDTHS = (T.I32, T.I64)
MOST_STEP = 1 << 16


@dataclass(frozen=True)
class Counter:
    """What a loop counts, by `step`, from a start; the test `predicate(counter, bound)` keeps it going. `late`: the
    test is at the loop's end; `ahead`: it is of the next value."""

    phi: I.Phi
    start: Value
    step: int
    predicate: str
    bound: Value
    late: bool
    ahead: bool


def counter_of(loop: Loop) -> Counter | None:
    """What a loop counts, where it has a preheader and one latch."""
    if loop.preheader is None or len(loop.latches) != 1:
        return None
    for test in tests(loop):
        phi, step, added = test.counted.phi, test.counted.step, test.counted.added
        ends = loop.ends(phi)
        if phi.type not in (*WIDTHS, T.PTR) or ends is None or abs(step) > MOST_STEP or added not in (0, step):
            continue
        up, down = {"slt", "sle", "ult", "ule", "ne"}, {"sgt", "sge", "ugt", "uge", "ne"}
        is_certain = test.block in (loop.header, loop.latches[0]) and test.counted.casts <= {"sext"}
        if is_certain and test.predicate in (up if step > 0 else down):
            late = test.block is loop.latches[0]
            return Counter(phi, ends[0], step, test.predicate, test.bound, late, added == step)
    return None
