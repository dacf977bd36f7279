"""What the engine found and decided about one derivative, as plain data: for people to read, not for emission.

Everything here is read off the facts and the plan of a `Reversal`; places are those of the user's source as far as
debug information goes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from jax_enzyme.ad.facts.errors import describe
from jax_enzyme.ad.facts.functions import Facts
from jax_enzyme.ad.plan.choices import ALL, Choices
from jax_enzyme.ad.plan.recipe import Closed, Forward, Gate, ReadBack, Recall, Recipe, Reload, Repeat, Resident
from jax_enzyme.ad.plan.recipes import Recipes
from jax_enzyme.ad.plan.snapshots import Snapshot
from jax_enzyme.ad.plan.tape import Slot, Tape
from jax_enzyme.ad.plan.taping import ForwardPointer, Plan, block_of
from jax_enzyme.ad.reversal import Reversal, Routine, plan_reversal
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.objects import MemoryObject, call_effect, called_routine
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.arrays import ArrayFunction, Vjp
from jax_enzyme.ir.debug import location
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.values import BasicBlock, Value
from jax_enzyme.rules.effects import Effect
from jax_enzyme.rules.table import Rules

NOWHERE = "?"


@dataclass(frozen=True)
class Memory:
    """A piece of memory: a buffer, a local array, an allocation or a global; `kind` as in `analysis.memory`."""

    kind: str
    name: str
    place: str
    active: bool


@dataclass(frozen=True)
class Kept:
    """A value, or a local object, on the tape. `counts` are the iterations that it is kept for, outermost first; with
    `per_iteration` they repeat for each iteration of a loop whose number of iterations is not known in advance."""

    place: str
    what: str
    type: str
    counts: tuple[int, ...]
    nbytes: int
    per_iteration: bool
    why: str


@dataclass(frozen=True)
class Recomputed:
    """Values made at one place that the reverse sweep computes again, and by which recipe."""

    place: str
    recipe: str
    what: tuple[str, ...]


@dataclass(frozen=True)
class LoopFact:
    """`trips` says how often the body runs; `inert` loops have nothing to reverse."""

    function: str
    place: str
    depth: int
    trips: str
    inert: bool


@dataclass(frozen=True)
class Accumulation:
    """Where the reverse sweep adds to the cotangent of memory: the reverse of `reads` loads or copies of it. `way` is
    how: `plain`, `warp` or `atomic`, and `why`."""

    memory: str
    place: str
    reads: int
    way: str
    why: str


@dataclass(frozen=True)
class ReverseReport:
    """One reverse derivative. `tape_bytes` is the fixed part of the tape; `arena` says that more is allocated as the
    forward sweep runs."""

    splits: bool
    arena: bool
    tape_bytes: int
    active_values: int
    all_values: int
    memory: tuple[Memory, ...]
    kept: tuple[Kept, ...]
    recomputed: tuple[Recomputed, ...]
    loops: tuple[LoopFact, ...]
    accumulations: tuple[Accumulation, ...]

    @property
    def tape_by_line(self) -> tuple[tuple[str, int], ...]:
        """Bytes of the tape per source line, most first (columns are left out)."""
        total: Counter[str] = Counter()
        for kept in self.kept:
            total[line_of(kept.place)] += kept.nbytes
        return tuple(total.most_common())


def reverse_report(base: ArrayFunction, step: Vjp, rules: Rules, choices: Choices = ALL) -> ReverseReport:
    """The report of a reverse derivative of an array function in canonical form. Raises what planning it raises."""
    return report_of(plan_reversal(base, step, rules, choices=choices))


def report_of(reversal: Reversal) -> ReverseReport:
    """The report of a plan. `tape_bytes` are those of one thread."""
    places = _Places(reversal.facts)
    routines = [reversal.root, *reversal.inner.values()]
    values = [i for r in routines for i in r.function.instructions() if reversal.facts.origin.get(i) is not None]
    return ReverseReport(
        splits=reversal.splits,
        arena=reversal.needs_arena,
        tape_bytes=reversal.root.plan.tape.root.size,
        active_values=sum(map(reversal.facts.activity.value, values)),
        all_values=len(values),
        memory=tuple(_memory(reversal, places)),
        kept=tuple(k for r in routines for k in _kept(r, places)),
        recomputed=tuple(x for r in routines for x in _recomputed(r, places)),
        loops=tuple(x for r in routines for x in _loops(r, places)),
        accumulations=tuple(_accumulations(routines, reversal.facts, places)),
    )


def line_of(place: str) -> str:
    """`file:line` of `file:line:column`."""
    parts = place.split(":")
    return ":".join(parts[:-1]) if len(parts) > 2 and parts[-1].isdigit() and parts[-2].isdigit() else place


class _Places:
    """Places in the user's source of instrumented instructions."""

    def __init__(self, facts: Facts) -> None:
        self._origin = facts.origin
        self._module: Module = facts.module

    def of(self, value: Value | None) -> str:
        if isinstance(value, ForwardPointer):
            value = value.of
        source = self._origin.get(value, value) if value is not None else None
        return (location(self._module, source) if isinstance(source, I.Instruction) else None) or NOWHERE

    def of_block(self, block: BasicBlock) -> str:
        """The first place that is known in a block."""
        return next((p for p in map(self.of, block.instructions) if p != NOWHERE), NOWHERE)

    def of_value(self, value: Value, recipes: Recipes) -> str:
        """A value's own place; of one that was added to count or choose, that of its block."""
        found = self.of(value)
        inside = isinstance(value, I.Instruction | ForwardPointer)
        return self.of_block(block_of(recipes, value)) if found == NOWHERE and inside else found


def _memory(reversal: Reversal, places: _Places) -> Iterator[Memory]:
    facts = reversal.facts
    root = reversal.root.function
    numbers: dict[Value, int] = {a: i for i, a in enumerate(root.arguments)}
    for item in facts.points_to.objects.values():
        if item.kind == "function":
            continue
        index = numbers.get(item.site) if item.site is not None else None
        name = reversal.base.buffers[index].name if index is not None else _object_name(item)
        yield Memory(item.kind, name, places.of(item.site), facts.activity.object(item))


def _object_name(item: MemoryObject) -> str:
    if isinstance(item.site, I.CallBase):
        return item.site.callee.name
    return item.site.name if item.site is not None and item.site.name else item.kind


def _kept(routine: Routine, places: _Places) -> Iterator[Kept]:
    plan = routine.plan
    counted = set[Slot]()
    for key, slot in plan.tape.slots.items():
        counts = tuple(count for _, count in slot.loops)
        per_iteration = slot.frame.loop is not None or not plan.recipes.is_root
        if isinstance(key, MemoryObject):
            why = "reverse reads it again, and the stack or heap would be gone"
            yield Kept(places.of(key.site), f"the memory of {key}", "bytes", counts, slot.size, per_iteration, why)
        elif isinstance(key, Snapshot):
            why = "a loop reads it, and it may be overwritten before reverse reads it again"
            place = places.of_block(key.loop.header)
            yield Kept(place, f"a copy of the {key}", "bytes", counts, slot.size, per_iteration, why)
        elif isinstance(key, Value):
            size, why = slot.size, _why_taped(plan, key)
            if slot in counted:
                size, why = 0, f"{why}; at the place of another one, of which no iteration has both"
            counted.add(slot)
            place = places.of_value(key, plan.recipes)
            yield Kept(place, _spelled(key), str(slot.type), counts, size, per_iteration, why)
        else:
            yield _chain(plan.tape, key, slot, places)


def _chain(tape: Tape, key: object, slot: Slot, places: _Places) -> Kept:
    assert isinstance(key, tuple)
    loop = key[1]
    assert isinstance(loop, Loop)
    counts = tuple(count for _, count in slot.loops)
    what, why = "the last iteration of a loop", "they are chained in an arena"
    if tape.frames[loop].length is not None:
        what, why = "the row of a loop", "it has memory from an arena when it begins"
    why = f"the number of its iterations has no bound that is known in advance: {why}"
    return Kept(places.of_block(loop.header), what, "ptr", counts, 8 * slot.items, slot.frame.loop is not None, why)


def _why_taped(plan: Plan, value: Value) -> str:
    if isinstance(value, ForwardPointer):
        return "only the forward sweep has it"
    if plan.recipes.of(value) is not None:
        return "keeping it costs less than computing it again"
    match value:
        case I.Phi() if _heads_loop(plan, value):
            return "carried from one iteration to the next"
        case I.Phi():
            return "depends on the way that control took"
        case I.Load():
            return "its memory may be overwritten before reverse reads it"
        case I.CallBase():
            return "the call cannot be repeated"
        case _:
            return "it cannot be had again from what reverse can read"


def _heads_loop(plan: Plan, phi: I.Phi) -> bool:
    block = plan.recipes.block_of[phi]
    loop = plan.code.loop_of(block)
    return loop is not None and loop.header is block


def _spelled(value: Value) -> str:
    match value:
        case ForwardPointer(of=of, what="frame"):
            return f"what the reverse of {_spelled(of)} needs"
        case ForwardPointer(of=of):
            return f"the shadow of {_spelled(of)}"
        case I.Phi() if value.name.endswith((".choice", ".last", ".iteration")):
            return {"choice": "the branch taken", "last": "the number of iterations"}.get(
                value.name.rpartition(".")[2], "an iteration number"
            )
        case I.CallBase():
            return describe(value)
        case I.Instruction():
            return f"`{value.opcode}`"
        case _:
            return f"`{value.name}`"


_RECIPES: dict[type[Recipe | ReadBack], str] = {
    Repeat: "computed again",
    Reload: "read again, from memory that stays as it is",
    Recall: "read again, from a copy of its memory",
    ReadBack: "read from the output that it was stored to",
    Closed: "a formula of the iteration numbers",
    Gate: "chosen again by the branch conditions",
    Forward: "computed again where it had been stored",
    Resident: "the address of memory on the tape",
}


def _recomputed(routine: Routine, places: _Places) -> Iterator[Recomputed]:
    plan = routine.plan
    groups: dict[tuple[str, str], list[str]] = {}
    for value in sorted((*plan.recomputed, *plan.read_back), key=lambda v: _position(plan, v)):
        recipe = plan.read_back.get(value) or plan.recipes.of(value)
        if recipe is not None and not isinstance(value, I.GetElementPtr):
            place = line_of(places.of_value(value, plan.recipes))
            groups.setdefault((place, _RECIPES[type(recipe)]), []).append(_spelled(value))
    for (place, recipe), what in groups.items():
        yield Recomputed(place, recipe, tuple(what))


def _position(plan: Plan, value: Value) -> tuple[int, int]:
    block = plan.recipes.block_of[value]
    where = block.instructions.index(value) if isinstance(value, I.Instruction) else -1
    return plan.code.cfg.index[block], where


def _loops(routine: Routine, places: _Places) -> Iterator[LoopFact]:
    recurrences = routine.plan.recipes.recurrences
    for loop in routine.code.loops:
        count = recurrences.trip_count(loop)
        exact = count.exact.value if count.exact is not None else None
        if exact is not None:
            trips = str(exact + 1)
        elif count.maximum is not None:
            trips = f"at most {count.maximum + 1}"
        else:
            trips = "known at run time" if count.exact is not None else "not known in advance"
        inert = loop in routine.work.inert
        yield LoopFact(routine.function.name, places.of_block(loop.header), loop.depth, trips, inert)


def _accumulations(routines: list[Routine], facts: Facts, places: _Places) -> Iterator[Accumulation]:
    found: Counter[tuple[str, str, str, str]] = Counter()
    names: dict[Value, str] = {a: f"`{a.name}`" for a in routines[0].function.arguments}
    for routine in routines:
        for instruction in routine.function.instructions():
            for pointer in _read_pointers(instruction) if facts.has_adjoint(instruction) else ():
                for item in facts.points_to.of(pointer):
                    if item in facts.shadowed:
                        site = item.site
                        name = names.get(site, str(item)) if site is not None else str(item)
                        way, why = facts.execution.addition(facts, item, instruction)
                        found[name, line_of(places.of(instruction)), way, why] += 1
    for (memory, place, way, why), reads in sorted(found.items()):
        yield Accumulation(memory, place, reads, way, why)


def _read_pointers(instruction: I.Instruction) -> list[Value]:
    """The pointers to memory whose cotangent grows when the instruction is reversed."""
    match instruction:
        case I.Load():
            return [instruction.operands[0]]
        case I.CallBase() if call_effect(instruction) is Effect.MEMORY_COPY:
            return [instruction.operands[1]]
        case I.CallBase() if (routine := called_routine(instruction)) is not None:
            return [instruction.operands[i] for i in routine.floats if routine.reads(i)]
        case _:
            return []
