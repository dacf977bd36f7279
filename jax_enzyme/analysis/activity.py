"""Activity: which values and memory objects carry a derivative from the inputs of interest to the outputs of interest.

    varied   lattice {no, yes} per value and object, forward: yes where it may depend on a varied input
    useful   lattice {no, yes} per value and object, backward: yes where a seeded output may depend on it
    active   varied and useful; for forward mode every output counts, and active means varied

Both are solved as least fixed points, so a `no` is proved: the derivative there is exactly zero. Only floating-point
values (and aggregates or bit copies of them) can be active. Objects are those of `memory.PointsTo`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from jax_enzyme.analysis.flow import flow, holds_float, is_defined_call
from jax_enzyme.analysis.memory import MemoryObject, Objects, PointsTo, call_effect, called_routine
from jax_enzyme.analysis.number_bytes import NumberBytes, copy_operands
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.values import Constant, Value
from jax_enzyme.rules.blas.table import Routine
from jax_enzyme.rules.effects import Effect
from jax_enzyme.rules.table import Rules

_BIT_COPIES = frozenset(["load", "phi", "select", "freeze", "bitcast", "extractvalue", "insertvalue"])


class Activity:
    """Solved activity of one differentiation. `inputs` and `outputs` are buffer objects; `outputs=None`: all count."""

    def __init__(
        self,
        points_to: PointsTo,
        rules: Rules,
        inputs: Collection[MemoryObject],
        outputs: Collection[MemoryObject] | None,
    ) -> None:
        self._points_to = points_to
        self._rules = rules
        self.varied_objects: set[MemoryObject] = set(inputs)
        self.numbers = NumberBytes(points_to, frozenset(inputs))
        self.varied: set[Value] = set()
        self._packs_bits = any(_is_aggregate_load(i) for f in points_to.functions for i in f.instructions())
        self._solve(self._varied_step)
        self.useful: set[Value] = set()
        self.useful_objects: set[MemoryObject] = set(outputs or ())
        self._all_useful = outputs is None
        if not self._all_useful:
            self._solve(self._useful_step)

    def value(self, value: Value) -> bool:
        """Whether a value is active."""
        return value in self.varied and (self._all_useful or value in self.useful)

    def object(self, item: MemoryObject) -> bool:
        """Whether a memory object holds anything active."""
        return item in self.varied_objects and (self._all_useful or item in self.useful_objects)

    def memory(self, pointer: Value) -> bool:
        """Whether any object that a pointer may point to is active."""
        return any(self.object(o) for o in self._points_to.of(pointer))

    def describe(self) -> str:
        """Active values and objects, one a line."""
        lines = [f"object {o}" for o in self._points_to.objects.values() if self.object(o)]
        for function in self._points_to.functions:
            lines += [f"{function.name}: {v.name}" for v in function.instructions() if self.value(v)]
        return "\n".join(lines)

    def _solve(self, step: Callable[[Function, I.Instruction], bool]) -> None:
        changed = True
        while changed:
            changed = False
            for function in self._points_to.functions:
                for instruction in function.instructions():
                    changed |= step(function, instruction)

    # -- forward -------------------------------------------------------------------------------------------------------

    def _mark(self, value: Value) -> bool:
        if isinstance(value, Constant) or value in self.varied or not _can_carry(value):
            return False
        self.varied.add(value)
        return True

    def _mark_objects(self, pointer: Value) -> bool:
        return self._mark_all(self._points_to.written(pointer))

    def _mark_all(self, objects: Objects) -> bool:
        if objects <= self.varied_objects:
            return False
        self.varied_objects |= objects
        return True

    def _mark_stored(self, store: I.Instruction, pointer: Value, value: Value) -> bool:
        return self.numbers.stored(store, pointer, value) | self._mark_objects(pointer)

    def _mark_copied(self, call: I.CallBase) -> bool:
        """Only where numbers that vary are among what is copied: a text beside a number may be copied alone."""
        target, source, _ = copy_operands(call)
        if not self._varied_memory(source):
            return False
        changed = self.numbers.copied(call)
        held = frozenset(o for o in self._points_to.written(target) if self.numbers.of(o))
        return changed | self._mark_all(held)

    def _varied_memory(self, pointer: Value) -> bool:
        return not self.varied_objects.isdisjoint(self._points_to.of(pointer))

    def _varied_step(self, function: Function, instruction: I.Instruction) -> bool:
        match instruction:
            case I.Load():
                return self._varied_load(instruction)
            case I.Store():
                value, pointer = instruction.operands
                return value in self.varied and self._mark_stored(instruction, pointer, value)
            case I.AtomicRMW() | I.CmpXchg():
                pointer = instruction.operands[0]
                changed = False
                for value in instruction.operands[1:]:
                    changed |= value in self.varied and self._mark_stored(instruction, pointer, value)
                return (self._varied_memory(pointer) and self._mark(instruction)) or changed
            case I.CallBase():
                return self._varied_call(instruction)
            case I.ExtractValue() if T.is_int(instruction.type) and not self._packs_bits:
                return False  # the number that makes the aggregate vary is another of its elements
            case _:
                carries = any(instruction.operands[i] in self.varied for i in flow(instruction, self._rules))
                if carries and isinstance(instruction, I.InsertValue):
                    element = instruction.operands[1]
                    self._packs_bits |= T.is_int(element.type) and element in self.varied
                return carries and self._mark(instruction)

    def _varied_load(self, load: I.Load) -> bool:
        if load in self.varied or not self._varied_memory(load.operands[0]):
            return False
        return (not T.is_int(load.type) or self.numbers.may_be_read(load)) and self._mark(load)

    def _varied_call(self, call: I.CallBase) -> bool:
        if is_defined_call(call):
            callee = call.callee
            assert isinstance(callee, Function)
            changed = False
            for parameter, argument in zip(callee.arguments, call.arguments, strict=False):
                if argument in self.varied:
                    changed |= self._mark(parameter)
            for block in callee.blocks:
                last = block.terminator
                if isinstance(last, I.Return) and last.operands and last.operands[0] in self.varied:
                    changed |= self._mark(call)
            return changed
        match call_effect(call):
            case Effect.MEMORY_COPY | Effect.REALLOCATE:
                return self._mark_copied(call)
            case None if (routine := called_routine(call)) is not None:
                return self._varied_routine(call, routine)
            case _:
                carries = any(call.operands[i] in self.varied for i in flow(call, self._rules))
                return carries and self._mark(call)

    def _varied_routine(self, call: I.CallBase, routine: Routine) -> bool:
        """A routine's outputs vary with any of its inputs."""
        if not any(routine.reads(i) and self._varied_memory(call.operands[i]) for i in routine.floats):
            return False
        changed = holds_float(call.type) and self._mark(call)
        for index in routine.floats:
            if routine.writes(index):
                pointer = call.operands[index]
                changed |= self.numbers.written(pointer, routine.scalar) | self._mark_objects(pointer)
        return changed

    # -- backward ------------------------------------------------------------------------------------------------------

    def _use(self, value: Value) -> bool:
        if isinstance(value, Constant) or value in self.useful:
            return False
        self.useful.add(value)
        return True

    def _use_objects(self, pointer: Value) -> bool:
        objects = self._points_to.of(pointer)
        if objects <= self.useful_objects:
            return False
        self.useful_objects |= objects
        return True

    def _useful_memory(self, pointer: Value) -> bool:
        return not self.useful_objects.isdisjoint(self._points_to.of(pointer))

    def _useful_step(self, function: Function, instruction: I.Instruction) -> bool:
        match instruction:
            case I.Load():
                return instruction in self.useful and self._use_objects(instruction.operands[0])
            case I.Store():
                value, pointer = instruction.operands
                return self._useful_memory(pointer) and _can_carry(value) and self._use(value)
            case I.AtomicRMW() | I.CmpXchg():
                pointer, *values = instruction.operands
                if not self._useful_memory(pointer) and instruction not in self.useful:
                    return False
                changed = self._use_objects(pointer)
                for value in values:
                    changed |= _can_carry(value) and self._use(value)
                return changed
            case I.CallBase():
                return self._useful_call(instruction)
            case _ if instruction in self.useful:
                changed = False
                for index in flow(instruction, self._rules):
                    changed |= self._use(instruction.operands[index])
                return changed
            case _:
                return False

    def _useful_call(self, call: I.CallBase) -> bool:
        changed = False
        if is_defined_call(call):
            callee = call.callee
            assert isinstance(callee, Function)
            for parameter, argument in zip(callee.arguments, call.arguments, strict=False):
                if parameter in self.useful:
                    changed |= self._use(argument)
            if call in self.useful:
                for block in callee.blocks:
                    last = block.terminator
                    if isinstance(last, I.Return) and last.operands:
                        changed |= self._use(last.operands[0])
            return changed
        match call_effect(call):
            case Effect.MEMORY_COPY:
                return self._useful_memory(call.operands[0]) and self._use_objects(call.operands[1])
            case Effect.REALLOCATE:
                return self._useful_memory(call) and self._use_objects(call.operands[0])
            case None if (routine := called_routine(call)) is not None:
                return self._useful_routine(call, routine)
            case _ if call in self.useful:
                for index in flow(call, self._rules):
                    changed |= self._use(call.operands[index])
                return changed
            case _:
                return False

    def _useful_routine(self, call: I.CallBase, routine: Routine) -> bool:
        if call not in self.useful and not any(
            routine.writes(i) and self._useful_memory(call.operands[i]) for i in routine.floats
        ):
            return False
        changed = False
        for index in routine.floats:
            changed |= routine.reads(index) and self._use_objects(call.operands[index])
        return changed


def _is_aggregate_load(instruction: I.Instruction) -> bool:
    return isinstance(instruction, I.Load) and isinstance(instruction.type, T.StructType | T.ArrayType)


def _can_carry(value: Value) -> bool:
    """Floats, aggregates of them, and integers that are mere copies of bits (loaded, merged, reinterpreted)."""
    if holds_float(value.type):
        return True
    return T.is_int(value.type) and isinstance(value, I.Instruction) and value.opcode in _BIT_COPIES
