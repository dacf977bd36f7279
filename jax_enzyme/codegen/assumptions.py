"""What `je.ad.differentiate` assumes of a function, held against its canonical form.

A kernel is closed: its buffers are all there is, with known sizes, without pointers. A function of plain parameters is
one of a program. What its pointers lead to is the caller's (`memory.OPEN`), and so are file-scope variables; here it is
made sure that no derivative passes where the caller has given no memory for it:

    parameters      one that is const leads to no memory with derivatives
    result          a pointer that the function returns leads to parameters, or to what has no derivatives
    caller          memory behind pointers in memory has no derivatives: nothing active is stored there, and no pointer
                    that may lead there may lead to memory with derivatives as well
    variables       file-scope variables that are parameters of the array function have shadows of their own, which
                    start from zero, if no pointer of the caller's may lead there; in others there are no derivatives
    checkpoints     need the sizes of what a loop changes (`ad.plan.state`)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jax_enzyme.ad.facts.causes import (
    CALLERS_VARIABLE,
    INACTIVE_PARAMETER,
    POINTER_PARAMETER,
    RETURNED_POINTER,
    UNKNOWN_CALL,
    UNKNOWN_POINTER_CALL,
)
from jax_enzyme.ad.facts.errors import refuse
from jax_enzyme.analysis.accesses import accesses
from jax_enzyme.analysis.activity import Activity, activity_of
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.memory import map_of
from jax_enzyme.analysis.objects import MemoryObject, call_effect, leaves_pointers
from jax_enzyme.analysis.shadows import shadowed_objects
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction, Step
from jax_enzyme.ir.debug import location
from jax_enzyme.ir.module import Function, GlobalVariable, declared_name
from jax_enzyme.ir.values import Argument, Value
from jax_enzyme.rules.effects import Effect
from jax_enzyme.rules.user import rules_of
from jax_enzyme.transform.live_globals import LIVE


class Assumptions:
    """Of a plain function with a flag per parameter, whose canonical array function is `base`."""

    def __init__(self, base: ArrayFunction, function: Function, active: Sequence[bool]) -> None:
        self._module = base.module
        self._points_to = map_of(base)
        self._function = function
        self._active = active

    def check(self, step: Step) -> None:
        """DifferentiationError where a derivative would pass through memory of which the caller does not know."""
        points_to = self._points_to
        objects = [points_to.objects[a] for a in points_to.root.arguments]
        activity = activity_of(points_to, rules_of(self._module), step)
        shadowed = shadowed_objects(points_to, activity)
        if points_to.caller in shadowed:
            self._refuse_callers_memory(objects)
        for item, active, parameter in zip(objects, self._active, self._function.arguments, strict=False):
            if item in shadowed and not active and T.is_pointer(parameter.type):
                raise INACTIVE_PARAMETER.error(
                    place=self._place(item), number=parameter.index + 1, name=self._function.name
                )
            if points_to.contents.get(item, frozenset()) - {points_to.caller}:
                if item in shadowed:
                    self._refuse_unknown_calls(item)
                raise POINTER_PARAMETER.error(
                    place=self._place(item), number=parameter.index + 1, name=self._function.name
                )
        self._check_rows(objects)
        self._check_result(objects, activity)
        self._check_variables(shadowed)
        self._check_apart(activity)

    def _refuse_unknown_calls(self, item: MemoryObject) -> None:
        """Code that is not there may leave pointers in memory that it is given. Where it is given numbers with
        derivatives, these are what it may not have."""
        for call in self._instructions():
            if not isinstance(call, I.CallBase) or call_effect(call) is not None or leaves_pointers(call):
                continue
            given = [a for a in call.arguments if T.is_pointer(a.type) and item in self._points_to.of(a)]
            if given and (name := declared_name(call)):
                raise refuse(self._module, call, UNKNOWN_CALL, name=name)

    def _check_rows(self, objects: Sequence[MemoryObject]) -> None:
        """What is active has derivatives all through: numbers are not read behind pointers in its memory."""
        points_to = self._points_to
        numbers = [i for i in self._instructions() if isinstance(i, I.Load) and T.is_float(i.type)]
        if not any(points_to.caller in points_to.of(i.operands[0]) for i in numbers):
            return
        for load in self._instructions():
            if isinstance(load, I.Load) and T.is_pointer(load.type) and points_to.caller in points_to.of(load):
                for item, active in zip(objects, self._active, strict=False):
                    if active and item in points_to.of(load.operands[0]) and isinstance(item.site, Argument):
                        place, number = location(self._module, load), item.site.index + 1
                        raise POINTER_PARAMETER.error(place=place, number=number, name=self._function.name)

    def _check_result(self, objects: Sequence[MemoryObject], activity: Activity) -> None:
        """A derivative returns no pointer to derivatives: memory that the function makes, and returns, has none."""
        if not T.is_pointer(self._function.function_type.result):
            return
        parameters = len(self._function.arguments)
        held = self._points_to.contents.get(objects[parameters], frozenset()) - set(objects[:parameters])
        for item in held & activity.varied_objects:
            raise RETURNED_POINTER.error(place=self._place(item), name=self._function.name)

    def _refuse_callers_memory(self, objects: Sequence[MemoryObject]) -> None:
        """At the first pointer to the caller's memory: out of a parameter, out of a variable, or from a call."""
        points_to = self._points_to
        reads = [(i, points_to.of(p)) for i in self._instructions() for p in self._read_pointers(i)]
        for read, held in reads:
            for item, parameter in zip(objects, self._function.arguments, strict=False):
                if item in held:
                    place = location(self._module, read)
                    raise POINTER_PARAMETER.error(place=place, number=parameter.index + 1, name=self._function.name)
        for item in (o for _, held in reads for o in held if o.site is not None and _is_variable(o)):
            assert item.site is not None
            name = item.site.name.removesuffix(LIVE)
            raise CALLERS_VARIABLE.error(place=self._place(points_to.caller), name=name)
        for call in self._instructions():
            if isinstance(call, I.CallBase) and points_to.caller in points_to.of(call):
                raise refuse(self._module, call, UNKNOWN_POINTER_CALL)
        raise POINTER_PARAMETER.error(number="?", name=self._function.name)

    def _read_pointers(self, instruction: I.Instruction) -> Sequence[Value]:
        """Where an instruction reads pointers to the caller's memory from."""
        points_to = self._points_to
        match instruction:
            case I.Load(operands=[pointer]) if not T.is_float(instruction.type):
                return [pointer] if points_to.caller in points_to.of(instruction) else []
            case I.CallBase(operands=[_, pointer, *_]) if call_effect(instruction) is Effect.MEMORY_COPY:
                return [pointer]
            case _:
                return []

    def _check_variables(self, shadowed: frozenset[MemoryObject]) -> None:
        """Variables that are only declared are the program's, and have no shadow anywhere."""
        points_to = self._points_to
        for item in shadowed:
            if isinstance(item.site, GlobalVariable) and _is_variable(item):
                raise CALLERS_VARIABLE.error(place=self._place(item), name=item.site.name)
        for load in self._instructions():
            if isinstance(load, I.Load) and T.is_pointer(load.type) and points_to.of(load) <= {points_to.unknown}:
                for item in points_to.of(load.operands[0]):
                    site = item.site
                    if isinstance(site, GlobalVariable) and site.initializer is None and self._is_followed(load):
                        raise CALLERS_VARIABLE.error(place=location(self._module, load), name=site.name)

    def _check_apart(self, activity: Activity) -> None:
        """The caller's pointers may lead to file-scope variables, too: not to one with derivatives, or to one that is
        read where they are written through."""
        layout = DataLayout(self._module)
        found = [a for f in self._points_to.functions for a in accesses(self._points_to, f, layout)]
        through = [a for a in found if self._points_to.caller in a.objects and not T.is_pointer(a.instruction.type)]
        writes = any(a.writes for a in through)
        for item in filter(_is_variable, self._points_to.objects.values() if through else ()):
            read = any(item in a.objects and a.reads and T.is_float(a.instruction.type) for a in found)
            if item in activity.varied_objects or (writes and read):
                assert item.site is not None
                place = location(self._module, through[0].instruction)
                raise CALLERS_VARIABLE.error(place=place, name=item.site.name.removesuffix(LIVE))

    def _is_followed(self, pointer: Value) -> bool:
        """Whether a pointer is used for more than comparisons and calls."""
        users = [i for i in self._instructions() if pointer in i.operands]
        return any(not isinstance(i, I.CallBase | I.Compare) for i in users)

    def _instructions(self) -> Iterator[I.Instruction]:
        for function in self._points_to.functions:
            yield from function.instructions()

    def _place(self, item: MemoryObject) -> str | None:
        """Where memory is first written, or else read."""
        layout = DataLayout(self._module)
        found = [
            a for f in self._points_to.functions for a in accesses(self._points_to, f, layout) if item in a.objects
        ]
        found.sort(key=lambda a: not a.writes)
        return next((place for a in found if (place := location(self._module, a.instruction)) is not None), None)


def _is_variable(item: MemoryObject) -> bool:
    """Whether an object is a file-scope variable of the program's."""
    site = item.site
    if isinstance(site, GlobalVariable):
        return site.initializer is None and not site.is_constant
    return isinstance(site, Argument) and site.name.endswith(LIVE)
