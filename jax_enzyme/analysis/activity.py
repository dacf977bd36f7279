"""Activity: which values and memory objects carry a derivative from the inputs of interest to the outputs of interest.

    varied   lattice {no, yes} per value and object, forward: yes where it may depend on a varied input
    useful   lattice {no, yes} per value and object, backward: yes where a seeded output may depend on it
    active   varied and useful; for forward mode every output counts, and active means varied

Both are least fixed points, the first of a worklist (`analysis.dependence`), the second of what flows lead back to, so
a `no` is proved: the derivative there is exactly zero. Only floating-point values (and aggregates or bit copies of
them) can be active. Objects are those of `memory.PointsTo`.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator

from jax_enzyme.analysis.decisions import only_decides, only_moves
from jax_enzyme.analysis.dependence import Worklist
from jax_enzyme.analysis.flow import flow, holds_float
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.number_bytes import WORD, NumberBytes
from jax_enzyme.analysis.objects import (
    MemoryObject,
    call_effect,
    called_routine,
    copy_operands,
    is_defined_call,
    is_of_its_kind,
)
from jax_enzyme.analysis.tbaa import is_fortran_integer, is_integer_of_c
from jax_enzyme.analysis.told_apart import ToldApart
from jax_enzyme.analysis.usefulness import Part, Usefulness
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import Jvp, Step
from jax_enzyme.ir.module import Function, Module, uses
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import Constant, Value
from jax_enzyme.rules.blas.table import Routine
from jax_enzyme.rules.effects import Effect
from jax_enzyme.rules.table import Rules

_PACKED = "bits in aggregates"

_BIT_COPIES = frozenset(["load", "phi", "select", "freeze", "bitcast", "extractvalue", "insertvalue"])


class Activity:
    """Solved activity of one differentiation. `inputs` and `outputs` are buffer objects; `outputs=None`: all count.
    `in_frames`: of a derivative, in whose frames integers lie that are kept for the reverse sweep."""

    def __init__(
        self,
        points_to: PointsTo,
        rules: Rules,
        inputs: Collection[MemoryObject],
        outputs: Collection[MemoryObject] | None,
        tagged: frozenset[I.Instruction] = frozenset(),
        beside: frozenset[I.Load] = frozenset(),
        *,
        in_frames: bool = False,
    ) -> None:
        self._points_to = points_to
        self._given = rules, inputs, outputs
        self._in_frames = in_frames
        self.tagged = tagged
        """What is computed of integers that may be bits of numbers, and varies as those do (`ad.facts.tagged`)."""
        self.beside = beside
        """Those of the integers that are shorter than the doubles that may be in their place."""
        self._layout = DataLayout(points_to.module)
        self.varied_objects: set[MemoryObject] = set(inputs)
        self.numbers = NumberBytes(
            points_to,
            frozenset(inputs),
            lambda item: self._work.read(item),
            lambda ranges: ToldApart(points_to, ranges, in_frames).are_apart,
            _stored_again(points_to),
        )
        self.varied: set[Value] = set()
        self._returned = {f: f.returned() for f in points_to.functions}
        every = points_to.instructions()
        self._flows = {i: tuple(i.operands[n] for n in flow(i, rules)) for i in every}
        self._flows.update({i: tuple(i.operands) for i in tagged})
        instructions = [i for i, through in self._flows.items() if through or isinstance(i, I.TOUCHES_MEMORY)]
        self._packs_bits = any(map(_is_aggregate_load, instructions))
        self._integers = dict(self._integer_reads())
        self._work = Worklist(instructions, self._varied_step)
        self._work.run()
        self._work.close()
        self.halves = frozenset(i for i, counts in self._integers.items() if counts and self._may_be_half(i))
        """Integers that are read where a number that varies may be. A right program reads none of its bytes so; but
        what becomes of them would be as useful as the number."""
        held = [points_to.of(load.operands[0]) for load in self.halves]
        self._memory_of_halves = frozenset[MemoryObject]().union(*held)
        self.useful: set[Value] = set()
        self.useful_objects: set[MemoryObject] = set(outputs or ())
        self._all_useful = outputs is None
        if outputs is not None:
            self._solve_useful(instructions, outputs)

    def tagging(self, tagged: frozenset[I.Instruction], beside: frozenset[I.Load]) -> Activity:
        """The same with these."""
        return Activity(self._points_to, *self._given, tagged, beside, in_frames=self._in_frames)

    def value(self, value: Value) -> bool:
        """Whether a value is active."""
        return value in self.varied and (self._all_useful or value in self.useful)

    def object(self, item: MemoryObject) -> bool:
        """Whether a memory object holds anything active."""
        return item in self.varied_objects and (self._all_useful or item in self.useful_objects)

    def memory(self, pointer: Value) -> bool:
        """Whether any object that a pointer may point to is active."""
        return any(self.object(o) for o in self._points_to.of(pointer))

    @property
    def has_codes(self) -> bool:
        """Whether shadows hold codes besides numbers: what was read as an integer (`ad.facts.half_numbers`)."""
        return bool(self.halves or self.beside)

    def keeps_halves(self, pointer: Value) -> bool:
        """Whether such integers may be read in memory that a pointer may lead to. Those beside numbers are also read of
        copies of what they were stored in: any memory may have them."""
        return bool(self.beside) or not self._memory_of_halves.isdisjoint(self._points_to.of(pointer))

    def _integer_reads(self) -> Iterator[tuple[I.Load, bool]]:
        """What Fortran and C read as integers (no words that are copied: these may be numbers), and whether for more
        than to count, compare and index."""
        module = self._points_to.module
        for function in self._points_to.functions:
            loads = [i for i in function.instructions() if isinstance(i, I.Load) and _is_integer(module, i)]
            users = uses(function) if loads else {}
            for load in loads:
                if _is_narrow(load) or not only_moves(load, users):
                    yield load, not only_decides(load, users)

    def _may_be_half(self, load: I.Load) -> bool:
        """Whether an integer that is read may, as far as is known, be a part of a double that varies, and of nothing
        else. In C, where numbers are copied in halves as well, only where it is not known to be one."""
        if load not in self._integers or not self.numbers.are_doubles(load):
            return False
        if is_fortran_integer(self._points_to.module, load):
            return True
        return self.numbers.may_be_read(load) and not self.numbers.are_read(load)

    def _can_carry(self, value: Value) -> bool:
        """Floats, aggregates of them, and integers that are mere copies of bits (loaded, merged, reinterpreted)."""
        if holds_float(value.type):
            return True
        if not T.is_int(value.type) or not isinstance(value, I.Instruction):
            return False
        return value.opcode in _BIT_COPIES or value in self.tagged or is_of_its_kind(value)

    # -- forward -------------------------------------------------------------------------------------------------------

    def _varies(self, value: Value) -> bool:
        if value in self.varied:
            return True
        self._work.read(value)
        return False

    def _mark(self, value: Value) -> None:
        if isinstance(value, Constant) or value in self.varied or not self._can_carry(value):
            return
        self.varied.add(value)
        self._work.changed(value)

    def _mark_objects(self, objects: Iterable[MemoryObject], news: Collection[MemoryObject]) -> None:
        """Objects hold numbers that vary, some at places where none was known."""
        for item in objects:
            if item not in self.varied_objects or item in news:
                self.varied_objects.add(item)
                self._work.changed(item)

    def _mark_stored(self, store: I.Instruction, pointer: Value, value: Value) -> None:
        self._mark_objects(self._points_to.written(pointer), self.numbers.stored(store, value))

    def _mark_copied(self, call: I.CallBase) -> None:
        """Only where numbers that vary are among what is copied: a text beside a number may be copied alone."""
        target, source, _ = copy_operands(call)
        if self._varied_memory(source):
            news = self.numbers.copied(call)
            self._mark_objects([o for o in self._points_to.written(target) if self.numbers.of(o)], news)

    def _varied_memory(self, pointer: Value) -> bool:
        objects = self._points_to.of(pointer)
        for item in objects:
            self._work.read(item)
        return not self.varied_objects.isdisjoint(objects)

    def _varied_step(self, instruction: I.Instruction) -> None:
        match instruction:
            case I.Load():
                self._varied_load(instruction)
            case I.Store():
                value, pointer = instruction.operands
                if self._varies(value):
                    self._mark_stored(instruction, pointer, value)
            case I.AtomicRMW() | I.CmpXchg():
                pointer = instruction.operands[0]
                for value in instruction.operands[1:]:
                    if self._varies(value):
                        self._mark_stored(instruction, pointer, value)
                if self._varied_memory(pointer):
                    self._mark(instruction)
            case I.CallBase():
                self._varied_call(instruction)
            case I.ExtractValue() if T.is_int(instruction.type) and not self._bits_are_packed():
                pass  # the number that makes the aggregate vary is another of its elements
            case _:
                self._varied_result(instruction)
                if isinstance(instruction, I.InsertValue) and T.is_int(instruction.operands[1].type):
                    self._pack_bits(instruction.operands[1])

    def _varied_result(self, instruction: I.Instruction) -> None:
        if instruction not in self.varied and any(map(self._varies, self._flows[instruction])):
            self._mark(instruction)

    def _bits_are_packed(self) -> bool:
        self._work.read(_PACKED)
        return self._packs_bits

    def _pack_bits(self, element: Value) -> None:
        if self._varies(element) and not self._packs_bits:
            self._packs_bits = True
            self._work.changed(_PACKED)

    def _varied_load(self, load: I.Load) -> None:
        if not self._varied_memory(load.operands[0]):
            return
        is_integer = T.is_int(load.type) and (not self.numbers.may_be_read(load) or self._may_be_half(load))
        if not is_integer:
            self._mark(load)

    def _varied_call(self, call: I.CallBase) -> None:
        if is_defined_call(call):
            callee = call.callee
            assert isinstance(callee, Function)
            for parameter, argument in zip(callee.arguments, call.arguments, strict=False):
                if self._varies(argument):
                    self._mark(parameter)
            if any([self._varies(returned) for returned in self._returned[callee]]):
                self._mark(call)
            return
        match call_effect(call):
            case Effect.MEMORY_COPY | Effect.REALLOCATE:
                self._mark_copied(call)
            case Effect.PURE_INT if is_of_its_kind(call):
                word = call.operands[0]
                if self._varies(word) or (isinstance(word, I.Load) and self._is_among_numbers(word)):
                    self._mark(call)
            case _ if (routine := _routine(call)) is not None:
                self._varied_routine(call, routine)
            case _:
                self._varied_result(call)

    def _is_among_numbers(self, load: I.Load) -> bool:
        return self._varied_memory(load.operands[0]) and self.numbers.may_be_read(load)

    def _varied_routine(self, call: I.CallBase, routine: Routine) -> None:
        """A routine's outputs vary with any of its inputs, and with those of other processes."""
        varied = [routine.reads(i) and self._varied_memory(call.operands[i]) for i in routine.floats]
        if not any(varied) and not routine.communicates:
            return
        if holds_float(call.type):
            self._mark(call)
        for index in routine.floats:
            if routine.writes(index):
                pointer = call.operands[index]
                news = self.numbers.written(pointer, routine.scalar)
                self._mark_objects(self._points_to.written(pointer), news)

    # -- backward ------------------------------------------------------------------------------------------------------

    def _solve_useful(self, instructions: Collection[I.Instruction], outputs: Collection[MemoryObject]) -> None:
        """What outputs depend on: the flows, followed back from them, and from what is useful in any case."""
        usefulness = Usefulness(self._points_to, self._layout)
        start: list[Value | MemoryObject] = list(outputs)
        for instruction in instructions:
            self._note_use(usefulness, instruction)
            if instruction in self.halves:
                start += self._points_to.of(instruction.operands[0])
            elif (routine := _routine(instruction)) is not None and routine.communicates:
                start += (part.item for part in self._read(usefulness, instruction, routine))
        self.useful, self.useful_objects = usefulness.of(start)

    def _note_use(self, noted: Usefulness, instruction: I.Instruction) -> None:
        """What an instruction makes, or writes, and what that depends on."""
        if noted.moves(instruction, self._can_carry):
            return
        if (routine := _routine(instruction)) is None:
            noted.flows(instruction, self._flows[instruction])
            return
        sources = self._read(noted, instruction, routine)
        noted.flows(instruction, sources)
        for n in filter(routine.writes, routine.floats):
            noted.writes(instruction.operands[n], None, sources)

    def _read(self, noted: Usefulness, call: I.Instruction, routine: Routine) -> list[Part]:
        return [p for n in filter(routine.reads, routine.floats) for p in noted.parts(call.operands[n], None)]


def activity_of(points_to: PointsTo, rules: Rules, step: Step, *, in_frames: bool = False) -> Activity:
    """What is active in a step: of the memory that the parameters of the root lead to."""
    masks = (step.tangents, None) if isinstance(step, Jvp) else (step.wanted, step.seeded)
    objects = [points_to.objects[a] for a in points_to.root.arguments]
    inputs, outputs = (
        None if mask is None else [o for o, given in zip(objects, mask, strict=True) if given] for mask in masks
    )
    return Activity(points_to, rules, inputs or (), outputs, in_frames=in_frames)


def _routine(instruction: I.Instruction) -> Routine | None:
    if not isinstance(instruction, I.CallBase) or call_effect(instruction) is not None:
        return None
    return called_routine(instruction)


def _stored_again(points_to: PointsTo) -> Container[Value]:
    """The integers that are loaded and, as they are, stored: whatever they are called, numbers may be moved so."""
    stored = (i.operands[0] for i in points_to.instructions() if isinstance(i, I.Store))
    return reached((value for value in stored if T.is_int(value.type)), I.merged)


def _is_aggregate_load(instruction: I.Instruction) -> bool:
    return isinstance(instruction, I.Load) and isinstance(instruction.type, T.StructType | T.ArrayType)


def _is_integer(module: Module, load: I.Load) -> bool:
    """Whether a load reads an integer variable of Fortran, or one of C that has no room for a double."""
    return T.is_int(load.type) and (
        is_fortran_integer(module, load) or (_is_narrow(load) and is_integer_of_c(module, load))
    )


def _is_narrow(load: I.Load) -> bool:
    return isinstance(load.type, T.IntType) and load.type.bits < WORD
