"""What the sweeps have emitted, for those who check it."""

from __future__ import annotations

from collections.abc import Mapping

from jax_enzyme.ad.plan.late_sums import Gather
from jax_enzyme.ad.plan.snapshots import Snapshot
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.values import BasicBlock, Value


@dataclass(frozen=True, eq=False)
class Forward:
    """An emitted forward sweep: `blocks` leads from the blocks of the code to its own, `tape` is the root frame."""

    function: Function
    tape: Value
    blocks: dict[BasicBlock, BasicBlock]


@dataclass(frozen=True, eq=False)
class Reverse:
    """An emitted reverse sweep: `positions` says which block of the code each block reverses, `reloads` which load of
    the code a load from the primal's memory repeats, or which store left it, `recalls` which one a load from a copy of
    memory repeats, `kept` which value each other load from the tape is, `primal` which parameters are the primal's.
    `late_sums` are the local arrays of adjoints that are added to memory behind a loop, `turned` the loops that are
    gone through from the first iteration to the last, with its number."""

    function: Function
    tape: Value
    positions: dict[BasicBlock, BasicBlock]
    reloads: dict[Value, I.Load | I.Store]
    recalls: dict[Value, tuple[I.Load, Snapshot]]
    kept: dict[Value, Value]
    primal: frozenset[Value]
    late_sums: Mapping[Value, Gather]
    turned: Mapping[Loop, int]
