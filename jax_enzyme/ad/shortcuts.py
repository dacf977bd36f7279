"""Derivatives at the exact values that a kernel asks for: `if (x[j] == 0) continue;`.

    before    %skip = fcmp oeq double %x, 0.0           after    br i1 false, label %next, label %body
              br i1 %skip, label %next, label %body

Where a comparison that decides about varying numbers is proved to be a shortcut (`analysis.shortcuts`), a derivative is
built from the function without it: at equality, too, the general side runs. Where it is not, the side that runs at
equality is differentiated, which may hide a derivative: that is to be said.

Only comparisons of values that vary are looked at. What does not vary, such as a weight that masks invalid numbers,
decides as before.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from threading import Lock

from jax_enzyme.ad.quotients import keep_zeros
from jax_enzyme.analysis.activity import Activity, activity_of
from jax_enzyme.analysis.consequences import Consequences, Ways
from jax_enzyme.analysis.equality import compared_places, exact_comparisons, holds_at_equality
from jax_enzyme.analysis.flow import holds_float
from jax_enzyme.analysis.halves import Halves, halves
from jax_enzyme.analysis.memory import PointsTo, map_of
from jax_enzyme.analysis.objects import MemoryObject, copy_operands, is_copy
from jax_enzyme.analysis.shortcuts import Decided, Shortcuts, Verdict
from jax_enzyme.analysis.single_values import asks_for_zero, integers_read, numbers_asked
from jax_enzyme.classes import dataclass, replace
from jax_enzyme.collector import collector_paused
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction, Buffer, Derivation, Jvp, Step
from jax_enzyme.ir.clone import clone_with_map, with_operands
from jax_enzyme.ir.debug import function_location, location
from jax_enzyme.ir.metadata import MDNode
from jax_enzyme.ir.module import Function, Module, uses
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import Argument, ConstantInt, Value, int_value
from jax_enzyme.remembered import remembered
from jax_enzyme.rules.table import Rules
from jax_enzyme.transform.equalities import ORDERED, STEPS, name_equalities
from jax_enzyme.transform.rewriting import go_one_way, remove_dead, remove_unreachable, replace_operands


@dataclass(frozen=True)
class ExactComparison:
    """A comparison of a varying value with an exact one, on which varying values depend. `place` is `file:line:column`,
    None without debug information. `proved`: it is a shortcut."""

    place: str | None
    proved: bool


@dataclass(frozen=True, eq=False)
class General:
    """An array function whose proved shortcuts take the general side, and the comparisons that there were."""

    function: ArrayFunction
    comparisons: tuple[ExactComparison, ...]


@collector_paused()
def general(base: ArrayFunction, step: Step, rules: Rules) -> General:
    """What a derivative is built from: `base` itself where it has no shortcuts."""
    known = _known(base, rules)
    with known.lock:
        return known.general(step)


class _Comparisons:
    """The comparisons of an array function, whatever is differentiated: what is proved of one is proved once."""

    def __init__(self, base: ArrayFunction, rules: Rules) -> None:
        self.lock = Lock()
        module = name_equalities(base.module, base.module.functions[base.symbol])
        self._base = base if module is base.module else replace(base, module=module)
        self._rules = rules
        self._root = module.functions[base.symbol]
        self._made: dict[tuple[I.Instruction, ...], ArrayFunction] = {(): base}

    @cached_property
    def _points_to(self) -> PointsTo:
        return map_of(self._base)

    @cached_property
    def _ways(self) -> Ways:
        return Ways(self._points_to)

    def general(self, step: Step) -> General:
        defined = [f for f in self._base.module.functions.values() if f.blocks]
        if not any(self._exact(f) or self._halves(f) or self._of_parts(f) for f in defined):
            return General(self._made[()], ())
        activity = activity_of(self._points_to, self._rules, step)
        consequences = Consequences(self._ways, activity)
        found: list[ExactComparison] = []
        proved: dict[I.Instruction, Function] = {}
        for function in self._points_to.functions:
            for comparison in self._exact(function):
                if not _varies(comparison, activity, self._points_to):
                    continue
                decided = self._shortcuts_of(function).choices(comparison)
                # Integers that show the answer stay those of the function: what they decide is not proved.
                shown = consequences.carry((*decided.others, *decided.integers))
                if not shown and not consequences.carry(c.instruction for c in decided.choices):
                    continue
                shown = shown or _is(STEPS, comparison)
                verdict = self._verdicts(function)[comparison]
                # Which of two numbers comes first, as sorting asks: where they are equal, either may.
                if verdict == "fails" or (verdict != "proved" and _is(ORDERED, comparison)):
                    continue
                if verdict == "proved":
                    proved[comparison] = function
                place = _place(self._base.module, function, comparison, decided)
                found.append(ExactComparison(place, verdict == "proved" and not shown))
        found += self._about_halves(activity, consequences)
        found += self._about_parts(activity, consequences)
        key = tuple(proved)
        if key not in self._made:
            self._made[key] = self._without(proved)
        return General(self._made[key], tuple(dict.fromkeys(found)))

    def _about_halves(self, activity: Activity, consequences: Consequences) -> Iterator[ExactComparison]:
        """What two orderings decide together. Where they make one integer, that is dealt with already."""

        for function in self._points_to.functions:
            for both in self._halves(function):

                def goes_on(item: object, both: Halves = both) -> bool:
                    return not _is_named(item) and not both.make(item)

                if not activity.varied.isdisjoint(both.numbers) and consequences.of_both(
                    both.as_below, both.as_above, goes_on
                ):
                    place = _place(self._base.module, function, both.as_above[0], Decided(()))
                    yield ExactComparison(place, False)

    def _about_parts(self, activity: Activity, consequences: Consequences) -> Iterator[ExactComparison]:
        """Questions for which a part of a number is 0, read from memory as an integer."""
        for function in self._points_to.functions:
            for question in self._of_parts(function):
                if activity.varied.isdisjoint(integers_read(question)) or not self._asks_for_zero(question):
                    continue
                if consequences.carry([question]):
                    yield ExactComparison(_place(self._base.module, function, question, Decided(())), False)

    @remembered
    def _asks_for_zero(self, question: I.Compare) -> bool:
        return asks_for_zero(question)

    @remembered
    def _of_parts(self, function: Function) -> Sequence[I.Compare]:
        """Questions about integers in memory alone, where numbers lie."""
        numbers = self._with_numbers
        return [
            i
            for i in function.instructions()
            if isinstance(i, I.Compare) and i.opcode == "icmp"
            if any(not numbers.isdisjoint(self._points_to.of(load.operands[0])) for load in integers_read(i))
        ]

    @cached_property
    def _with_numbers(self) -> set[MemoryObject]:
        """Arrays of numbers that are parameters, and memory to which nothing else is written: in records an integer may
        not be told from a number."""
        points_to = self._points_to
        parameters = zip(self._root.arguments, self._base.buffers, strict=True)
        given = {points_to.objects[a] for a, buffer in parameters if buffer.is_floating}
        written, others = set[MemoryObject](), set[MemoryObject]()
        copied: dict[MemoryObject, set[MemoryObject]] = {}
        for instruction in points_to.instructions():
            if isinstance(instruction, I.CallBase) and is_copy(instruction):
                target, source = (points_to.of(pointer) for pointer in copy_operands(instruction)[:2])
                written.update(target)
                for item in source:
                    copied.setdefault(item, set()).update(target)
            elif isinstance(instruction, I.Store):
                pure = holds_float(instruction.operands[0].type)
                (written if pure else others).update(points_to.written(instruction.operands[1]))

        def copies(item: MemoryObject) -> Iterable[MemoryObject]:
            return copied.get(item, ())

        return given | written.difference(reached(others, copies))

    @remembered
    def _halves(self, function: Function) -> Sequence[Halves]:
        return halves(function, self._points_to)

    @remembered
    def _shortcuts_of(self, function: Function) -> Shortcuts:
        return Shortcuts(self._base.module, function, self._rules, _initialised(self._base, self._root))

    @remembered
    def _exact(self, function: Function) -> tuple[I.Instruction, ...]:
        return tuple(exact_comparisons(function))

    @remembered
    def _verdicts(self, function: Function) -> Mapping[I.Instruction, Verdict]:
        """All comparisons of a function share an effort: they are gone through in their order, whichever is asked for
        first."""
        return self._shortcuts_of(function).verdicts(self._exact(function))

    def _without(self, comparisons: Mapping[I.Instruction, Function]) -> ArrayFunction:
        """The function in which these values are never equal to the constants."""
        module, copies = clone_with_map(self._base.module)
        for comparison, function in comparisons.items():
            keep_zeros(self._shortcuts_of(function), function, comparison, copies)
        never = {copies[c]: ConstantInt(T.I1, int(not holds_at_equality(c))) for c in comparisons}
        for function in module.functions.values():
            if any(i in never for i in function.instructions()):
                _go_on_counting(function, never)
                replace_operands(function.instructions(), never)
                _go_straight(function)
                remove_dead(function)
        return replace(self._base, module=module)


@lru_cache(maxsize=4)
def _known(base: ArrayFunction, rules: Rules) -> _Comparisons:
    return _Comparisons(base, rules)


def later(first: Sequence[ExactComparison], every: Sequence[ExactComparison]) -> tuple[ExactComparison, ...]:
    """The comparisons on which a derivative of a derivative depends: those of the first step, and those that vary in
    later steps alone, which decide as in the primal there, proved or not."""
    places = {c.place for c in first}
    return (*first, *(replace(c, proved=False) for c in every if c.place not in places))


def varied_inputs(steps: Derivation, layouts: Sequence[Sequence[Buffer]]) -> tuple[bool, ...]:
    """Which inputs of a kernel vary in any step; `layouts` has the buffers before each step."""
    found: set[int] = set()
    origin: list[int | None] = list(range(len(layouts[0])))
    for number, (step, buffers) in enumerate(zip(steps, layouts, strict=True)):
        if number:
            kept = ("primal", "initial", "final")
            origin = [origin[b.of] if b.role in kept and b.of < len(origin) else None for b in buffers]
        mask = step.tangents if isinstance(step, Jvp) else step.wanted
        found |= {o for o, given in zip(origin, mask, strict=True) if given and o is not None}
    return tuple(i in found and b.is_input and b.is_floating for i, b in enumerate(layouts[0]))


def _place(module: Module, function: Function, comparison: I.Instruction, decided: Decided) -> str | None:
    """Where a comparison is, or, where optimising lost that, what it decides or is of."""
    near = (comparison, *(c.instruction for c in decided.choices), *comparison.operands)
    known = (location(module, i) for i in near if isinstance(i, I.Instruction))
    return next((place for place in known if place is not None), function_location(module, function))


def _varies(comparison: I.Instruction, activity: Activity, points_to: PointsTo) -> bool:
    """Whether what is compared varies: a value, its bits, or memory."""
    places = compared_places(comparison.operands[0])
    if places is not None:
        return any(not activity.varied_objects.isdisjoint(points_to.of(place)) for place in places)
    varied = activity.varied
    return not varied.isdisjoint(comparison.operands) or not varied.isdisjoint(numbers_asked(comparison))


def _initialised(base: ArrayFunction, root: Function) -> Callable[[Value], bool]:
    """Whether a buffer holds numbers when the function is called."""

    def is_initialised(memory: Value) -> bool:
        if isinstance(memory, Argument):
            return memory in root.arguments and base.buffers[memory.index].is_input
        return not isinstance(memory, I.Instruction)

    return is_initialised


def _is(mark: tuple[str, MDNode], comparison: I.Instruction) -> bool:
    return any(kind == mark[0] for kind, _ in comparison.metadata)


def _is_named(item: object) -> bool:
    """Whether something chooses what an integer, made of orderings, is of equal numbers."""
    return isinstance(item, I.Select) and isinstance(item.operands[0], I.Compare) and _is(STEPS, item.operands[0])


def _go_on_counting(function: Function, comparisons: Container[Value]) -> None:
    """What is counted as a number, by a cast of a condition, goes by copies of comparisons, for the value that a
    derivative computes along: no choice depends on these."""
    users = uses(function)

    def conditions(value: Value) -> Iterable[I.Instruction]:
        return (u for u, _ in users.get(value, ()) if u.type == T.I1 and not isinstance(u, I.Compare | I.Phi))

    decided = reached((i for i in function.instructions() if i in comparisons), conditions)
    counts: list[I.Instruction] = [
        i for i in function.instructions() if isinstance(i, I.Cast) and i.operands[0] in decided
    ]
    needed = reached(counts, lambda i: (v for v in i.operands if isinstance(v, I.Instruction) and v in decided))
    copies: dict[Value, I.Instruction] = {i: with_operands(i, i.operands) for i in needed if i in decided}
    replace_operands((*copies.values(), *counts), copies)
    for block in function.blocks:
        block.instructions = [j for i in block.instructions for j in ((i, copies[i]) if i in copies else (i,))]


def _go_straight(function: Function) -> None:
    """Branches whose conditions are constants go one way."""
    for block in function.blocks:
        last = block.terminator
        condition = int_value(last.operands[0]) if isinstance(last, I.CondBranch) else None
        if condition is not None:
            go_one_way(block, last.targets[0 if condition else 1])
    remove_unreachable(function)
