"""The kinds of recipes, by which the reverse sweep has a value of the forward sweep again without a tape.

    Repeat      the instruction again, over its operands (arithmetic, casts, comparisons, pure calls, addresses)
    Reload      a load again, from memory that nothing overwrites after it
    Recall      a load again, from a copy of its memory (`ad.plan.snapshots`)
    ReadBack    a value from the output that it was stored to, in place of a slot of the tape
    Closed      a polynomial in iteration numbers: integers and pointers that step through a loop
    Gate        a phi of an acyclic region as selects over the branch conditions that lead to it
    Forward     a load as the value that an earlier loop stored there, computed for the iteration that stored it, or as
                what another source has (`ir.sources`)
    Resident    the address of a local object that lives in the tape

A recipe names the values that it reads.
"""

from __future__ import annotations

from jax_enzyme.ad.plan.gates import Choice
from jax_enzyme.ad.plan.snapshots import Snapshot
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.objects import MemoryObject
from jax_enzyme.analysis.polynomials import Polynomial
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.values import Argument, Value


@dataclass(frozen=True, eq=False)
class Repeat:
    operands: tuple[Value, ...]
    cost: float


@dataclass(frozen=True, eq=False)
class Reload:
    """`residents` are the local objects that have to live in the tape for the memory to be there."""

    operands: tuple[Value, ...]
    residents: tuple[MemoryObject, ...]
    cost: float = 2.0


@dataclass(frozen=True, eq=False)
class Recall:
    """A load again, `place` bytes behind the start of a copy of its memory."""

    snapshot: Snapshot
    place: Polynomial
    operands: tuple[Value, ...]
    cost: float = 2.0


@dataclass(frozen=True, eq=False)
class ReadBack:
    """What `store` left, `place` bytes behind a buffer: in place of a slot, where nothing overwrites it."""

    store: I.Store
    buffer: Argument
    place: Polynomial


@dataclass(frozen=True, eq=False)
class Closed:
    """`base` is the pointer that the polynomial is an offset (in bytes) from, None for an integer. `last` gives, per
    loop that the value is used outside of, the phi that holds its last iteration number there."""

    polynomial: Polynomial
    base: Value | None
    operands: tuple[Value, ...]
    cost: float = 1.0


@dataclass(frozen=True, eq=False)
class Gate:
    """A tree of choices: a leaf is a value, a node a condition with the trees for true and false."""

    tree: Choice
    operands: tuple[Value, ...]
    cost: float = 1.0


@dataclass(frozen=True, eq=False)
class Resident:
    residents: tuple[MemoryObject, ...]
    operands: tuple[Value, ...] = ()
    cost: float = 0.0


@dataclass(frozen=True, eq=False)
class Forward:
    """`value` as it was in iteration `index` of `loop` (None: in the current iterations)."""

    value: Value
    loop: Loop | None
    index: Polynomial
    operands: tuple[Value, ...]
    cost: float = 0.5


Recipe = Repeat | Reload | Recall | Closed | Gate | Forward | Resident
