"""The plan: for every value that the reverse sweep reads, whether it is taped or computed again.

The choice is a minimum cut. Each value is an edge whose capacity is what taping costs: bytes times the number of times
that the value is made. A value with a recipe can be had from the values that the recipe reads at the cost of the
recipe's instructions; one without can only come from the tape. The cut separates the forward sweep's values (source)
from what reverse reads (sink): values cut are taped, values on the sink's side are computed again.

    source --cost of recipe x trips--> in(v) --bytes x trips--> out(v) --> sink     (where reverse reads v)
    out(operand) --infinite--> in(v)                                                (v's recipe reads the operand)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import inf
from typing import Literal

from jax_enzyme.ad.facts.instrument import Instrumented
from jax_enzyme.ad.plan.mincut import Network
from jax_enzyme.ad.plan.near_quotients import exact, shared_divisions
from jax_enzyme.ad.plan.recipe import ReadBack, Recall, Recipe, Reload, Resident
from jax_enzyme.ad.plan.recipes import Recipes
from jax_enzyme.ad.plan.snapshots import Snapshot
from jax_enzyme.ad.plan.tape import Tape
from jax_enzyme.analysis.fixpoint import fixpoint
from jax_enzyme.analysis.objects import MemoryObject
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.values import Argument, BasicBlock, Value

What = Literal["shadow", "frame"]

_STORED_AGAIN = 4.0
"""What it costs to store once more, and to read, what lies near already: twice what another load does."""
_MOST_COPIES = 4
"""How often the reverse sweep may compute a function's instructions again on the average: where a plan needs more,
each place that needs a value counts. (The arms of a branch do not see what others compute: a number that grows along a
function and is read behind each step would be computed from the first step in each.)"""


class ForwardPointer(Value):
    """A pointer that only the forward sweep has, as a value to be taped: the shadow of a pointer, or the frame of a
    call."""

    def __init__(self, of: Value, what: What) -> None:
        super().__init__(T.PTR, name=f"{of.name}.{what}")
        self.of = of
        self.what = what


Pointers = dict[tuple[Value, What], ForwardPointer]


@dataclass(frozen=True, eq=False)
class Plan:
    """`taped` values have a slot in `tape`; `residents` are local objects that live there, and `snapshots` copies of
    memory; `read_back` are outputs, at hand where they are stored; all other values that reverse reads are free or
    `recomputed`: they have a recipe whose operands the plan covers as well. Of those, `near` are quotients that are
    made by a reciprocal. `pointers` are those that reverse reads and only the forward sweep has."""

    recipes: Recipes
    tape: Tape
    pointers: Pointers
    taped: frozenset[Value]
    read_back: Mapping[Value, ReadBack]
    residents: tuple[MemoryObject, ...]
    snapshots: tuple[Snapshot, ...]
    recomputed: frozenset[Value]
    near: frozenset[Value]

    @property
    def code(self) -> Instrumented:
        return self.recipes.code


def block_of(recipes: Recipes, value: Value) -> BasicBlock:
    """The block in which a value, or what a forward pointer belongs to, is made."""
    return recipes.block_of[value.of if isinstance(value, ForwardPointer) else value]


def make_plan(
    recipes: Recipes, tape: Tape, required: Mapping[Value, int], pointers: Pointers, resident: Collection[MemoryObject]
) -> Plan:
    """Decides for `required`, `pointers`, and everything that their recipes read. Slots are added to `tape`. The
    objects `resident` live in the tape in any case. With each value that is required go the places of the reverse sweep
    that read it, as bits: what one of them has computed again is not at hand in others."""
    read = {v: places for v, places in required.items() if not recipes.is_free(v)}
    wanted = [*read, *pointers.values()]
    near = shared_divisions(recipes, read)
    cut = _cheapest(recipes, tape, wanted, read, near)
    far = exact(recipes, cut.recomputed) if near.keys() & cut.recomputed else set[Value]()
    if near.keys() & far:
        near = {v: cost for v, cost in near.items() if v not in far}
        cut = _cheapest(recipes, tape, wanted, read, near)
        far = exact(recipes, cut.recomputed)
    living = recipes.freed_with([*cut.residents, *resident])
    residents = tuple(sorted(living, key=lambda o: _order(recipes, o.site)))
    back = {v: place for v in cut.taped if (place := recipes.read_back(v)) is not None}
    taped = cut.taped.difference(back)
    for value in sorted(taped, key=lambda v: _order(recipes, v)):
        tape.add(value, block_of(recipes, value), recipes.repeated(value))
    for item in residents:
        begin = recipes.begin(item)
        tape.add_bytes(item, recipes.object_size(item) or 0, recipes.block_of[begin] if begin is not None else None)
    snapshots = tuple(sorted(cut.snapshots, key=lambda s: recipes.code.cfg.index[s.loop.header]))
    for snapshot in snapshots:
        tape.add_copy(snapshot, snapshot.size, _front(snapshot))
    made_near = frozenset(near) & cut.recomputed - far
    return Plan(recipes, tape, pointers, taped, back, residents, snapshots, cut.recomputed, made_near)


def _front(snapshot: Snapshot) -> BasicBlock:
    """The block in which a copy is made."""
    return snapshot.loop.front


@dataclass(frozen=True, eq=False)
class _Cut:
    """What is taped, what is computed again, and the local objects and copies of memory that the tape has to hold for
    that; `seen` are all values that there was something to decide for."""

    seen: frozenset[Value]
    taped: frozenset[Value]
    recomputed: frozenset[Value]
    residents: tuple[MemoryObject, ...]
    snapshots: tuple[Snapshot, ...]


def _cheapest(
    recipes: Recipes, tape: Tape, wanted: Collection[Value], read: Mapping[Value, int], near: Mapping[Value, float]
) -> _Cut:
    """The cheapest way to have what is wanted, with the costs of quotients that are `near` as given."""
    cut = _cut(recipes, tape, wanted, {}, near)
    copies = _copies(recipes, read, cut.recomputed)
    if sum(copies[v] for v in cut.recomputed) > _MOST_COPIES * len(recipes.block_of):
        cut = _cut(recipes, tape, wanted, _copies(recipes, read, cut.seen), near)
    return cut


def _cut(
    recipes: Recipes, tape: Tape, wanted: Collection[Value], copies: Mapping[Value, int], near: Mapping[Value, float]
) -> _Cut:
    """The cheapest way to have what is wanted, where each value is computed again in so many places (else in one)."""
    tape_cost = recipes.choices.tape_cost
    network = Network()
    work = [*wanted]
    for value in work:
        network.edge(("out", value), "sink", inf)
    seen: set[Value] = set()
    objects: dict[MemoryObject, None] = {}
    copied: dict[Snapshot, None] = {}
    while work:
        value = work.pop()
        if value in seen:
            continue
        seen.add(value)
        trips = tape.frequency(block_of(recipes, value))
        recipe = _recipe(recipes, value)
        kept = _taping_cost(tape, value) * recipes.execution.operations_per_byte * tape_cost
        repeated = recipes.repeated(value)
        places = tape.frequency(block_of(recipes, value), repeated)
        # What follows from iteration numbers is not kept, however cheap the tape is: LLVM sees through it.
        counted = recipes.is_counted(value)
        capacity = inf if counted or isinstance(recipe, Resident) else kept * places + _STORED_AGAIN * (trips - places)
        network.edge(("in", value), ("out", value), capacity)
        if recipe is None:
            network.edge("source", ("in", value), inf)
            continue
        again = near.get(value, recipe.cost) * trips * copies.get(value, 1)
        network.edge("source", ("in", value), again if recipes.choices.recomputing or capacity == inf else inf)
        for operand in recipe.operands:
            if not recipes.is_free(operand):
                network.edge(("out", operand), ("in", value), inf)
                work.append(operand)
        for item in recipe.residents if isinstance(recipe, Reload | Resident) else ():
            network.edge(("object", item), ("in", value), inf)
            objects[item] = None
        if isinstance(recipe, Recall):
            network.edge(("object", recipe.snapshot), ("in", value), inf)
            copied[recipe.snapshot] = None
    for snapshot in copied:
        kept = snapshot.size * tape.frequency(_front(snapshot))
        network.edge("source", ("object", snapshot), kept * recipes.execution.operations_per_byte * tape_cost)
    for item in objects:
        begin = recipes.begin(item)
        trips = 1.0 if begin is None else tape.frequency(recipes.block_of[begin])
        network.edge("source", ("object", item), float(recipes.object_size(item) or 0) * trips * tape_cost)
    side = network.source_side("source", "sink") if seen else set()
    taped = frozenset(v for v in seen if ("in", v) in side and ("out", v) not in side)
    recomputed = frozenset(v for v in seen if ("in", v) not in side)
    residents = tuple(o for o in objects if ("object", o) not in side)
    return _Cut(frozenset(seen), taped, recomputed, residents, tuple(s for s in copied if ("object", s) not in side))


def _copies(recipes: Recipes, read: Mapping[Value, int], again: Collection[Value]) -> dict[Value, int]:
    """In how many places of the reverse sweep each value is needed, if `again` are computed from others in each."""
    readers: dict[Value, list[Value]] = {}
    for value in again:
        for operand in _operands(recipes, value):
            readers.setdefault(operand, []).append(value)

    def evaluate(value: Value, places: Mapping[Value, int]) -> int:
        bits = read.get(value, 0)
        for reader in readers.get(value, ()):
            bits |= places.get(reader, 0)
        return bits

    order = sorted({*read, *readers, *again}, key=lambda v: _order(recipes, v), reverse=True)
    onward = set(again)
    places = fixpoint(order, lambda v: _operands(recipes, v) if v in onward else (), evaluate, 0)
    return {value: bits.bit_count() for value, bits in places.items()}


def _recipe(recipes: Recipes, value: Value) -> Recipe | None:
    return None if isinstance(value, ForwardPointer) else recipes.of(value)


def _operands(recipes: Recipes, value: Value) -> list[Value]:
    """What a value is computed from again, but for what is free."""
    recipe = _recipe(recipes, value)
    return [] if recipe is None else [v for v in recipe.operands if not recipes.is_free(v)]


def _taping_cost(tape: Tape, value: Value) -> float:
    """Bytes, a pointer dearer than others: it keeps the tape from crossing between calls."""
    size = 1.0 if value.type == T.I1 else float(tape.layout.store_size(value.type))
    return size * (1000.0 if T.is_pointer(value.type) and not isinstance(value, ForwardPointer) else 1.0) + 0.5


def _order(recipes: Recipes, value: Value | None) -> tuple[int, int, str]:
    """Program order, and pointers that belong to a value behind it, so that a plan does not depend on the order of a
    set."""
    what = ""
    if isinstance(value, ForwardPointer):
        value, what = value.of, value.what
    if isinstance(value, Argument):
        return -1, value.index, what
    assert isinstance(value, I.Instruction)
    block, place = recipes.code.loops.home[value]
    return recipes.code.cfg.index[block], place, what
