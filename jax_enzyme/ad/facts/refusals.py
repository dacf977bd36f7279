"""What neither mode can prove right is refused before anything is emitted, each with its cause, place and remedy.

Activity follows derivatives through floating-point values and memory. Here is what it cannot follow, although numbers
may pass: a call of which nothing is known, arguments that are not named, the bits of a number in integer arithmetic,
memory that others may change, control that jumps where no block says.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property, partial

from jax_enzyme.ad.facts.bits import BitChecks
from jax_enzyme.ad.facts.causes import (
    ATOMIC,
    COMMUNICATION,
    DEVICE,
    GOTO,
    ORIGIN,
    POINTERS_AS_INTEGERS,
    SETJMP,
    THROUGH_FILE,
    UNKNOWN_CALL,
    VARIADIC,
    VOLATILE,
    Cause,
)
from jax_enzyme.ad.facts.distances import Distances
from jax_enzyme.ad.facts.errors import active_rule, refuse
from jax_enzyme.analysis.accesses import accesses
from jax_enzyme.analysis.activity import Activity
from jax_enzyme.analysis.congruence import Congruence, overlap
from jax_enzyme.analysis.files import Files
from jax_enzyme.analysis.flow import holds_float, is_opaque_call, rule_of
from jax_enzyme.analysis.fortran_io import hands_numbers_on, statement
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.objects import (
    MemoryObject,
    Objects,
    call_effect,
    called_routine,
    is_defined_call,
    is_memory_free,
    reachable_functions,
)
from jax_enzyme.analysis.shadows import shadowed_objects
from jax_enzyme.analysis.words import Words
from jax_enzyme.analysis.zeros import Zeros
from jax_enzyme.classes import dataclass
from jax_enzyme.errors import DifferentiationError
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.inlining import returns_twice
from jax_enzyme.ir.module import Function, GlobalVariable, Module, callee_name
from jax_enzyme.ir.reach import made_of, reached
from jax_enzyme.ir.values import Constant, Value
from jax_enzyme.remembered import remembered
from jax_enzyme.rules.effects import Effect
from jax_enzyme.rules.mpi.table import Communication, is_mpi
from jax_enzyme.rules.table import Rules

_EXCHANGES = ("xchg", "fadd", "fsub")


def refuse_unprovable(
    words: Words, activity: Activity, rules: Rules, origin: Mapping[Value, I.Instruction] | None = None
) -> Activity:
    """Raises DifferentiationError at the first instruction through which a derivative could be lost in silence.
    `origin` leads to the instructions of the source functions, where these are copies. The activity is the one given,
    or that with which the integers in tagged unions vary."""
    points_to = words.points_to
    module = points_to.module
    numbers = {points_to.objects[a]: buffer for a, buffer in words.buffers.items() if buffer.is_floating}
    bits = BitChecks(module, points_to, activity, numbers, origin or {})
    while True:  # and then perhaps what is computed of those, behind memory
        tagged, beside = bits.tagged()
        if tagged <= activity.tagged and beside <= activity.beside:
            break
        activity = activity.tagging(activity.tagged | tagged, activity.beside | beside)
        bits = BitChecks(module, points_to, activity, numbers, origin or {})
    launders = any(map(partial(_launders, points_to), points_to.instructions()))
    check = _Check(module, points_to, activity, rules, words, frozenset(numbers), launders, origin or {})
    for instruction in points_to.instructions():
        check.instruction(instruction)
    for instruction, cause in bits.refused():
        raise check.refused(instruction, cause)
    return activity


def memory_with_shadows(
    points_to: PointsTo,
    activity: Activity,
    origin: Mapping[Value, I.Instruction] | None = None,
    *,
    frees_shadows: bool = False,
) -> frozenset[MemoryObject]:
    """The objects that need shadows. Raises DifferentiationError at the first access for which one is needed, by way of
    a pointer that may lead to memory that code outside of the kernel has made and left where the kernel finds it
    (`open_memstream`): that has no shadow, and the pointer none that is defined. Where the derivative `frees_shadows`
    with what they are of, in a program of which the user says that functions are inactive, that is such an access too:
    these are the ones that may leave an address where numbers' memory was."""
    shadowed = shadowed_objects(points_to, activity)
    for instruction in points_to.instructions() if points_to.unknown in shadowed else ():
        followed = _followed_with_shadows(activity, instruction, frees_shadows=frees_shadows)
        if any(points_to.unknown in points_to.of(v) for v in followed):
            raise refuse(points_to.module, (origin or {}).get(instruction, instruction), ORIGIN)
    return shadowed


def _followed_with_shadows(activity: Activity, instruction: I.Instruction, *, frees_shadows: bool) -> Sequence[Value]:
    """The addresses of an access whose shadows are followed where they lead to memory that has one."""
    match instruction:
        case I.Load() | I.Store():
            is_needed = T.is_pointer(I.accessed_value(instruction).type) or activity.memory(instruction.operands[-1])
            return instruction.operands[-1:] if is_needed else ()
        case I.CallBase() if call_effect(instruction) is Effect.MEMORY_COPY:
            return instruction.operands[:2]
        case I.CallBase() if call_effect(instruction) is Effect.FREE:
            return instruction.operands[:1] if frees_shadows else ()
        case I.CallBase() if not is_defined_call(instruction):
            return [v for v in instruction.arguments if T.is_pointer(v.type) and activity.memory(v)]
        case _:
            return ()


def _launders(points_to: PointsTo, instruction: I.Instruction) -> bool:
    """Whether an instruction makes a pointer of an integer that nobody knows to be one: also of one that was passed."""
    match instruction:
        case I.Cast(opcode="inttoptr", operands=[Constant()]):
            return False
        case I.Cast(opcode="inttoptr", operands=[value]):
            return not points_to.of(value) - {points_to.unknown}
        case I.Load(operands=[pointer]) if T.is_pointer(instruction.type):
            anything = frozenset([points_to.unknown])
            return points_to.of(instruction) == anything and anything.isdisjoint(points_to.of(pointer))
        case _:
            return False


@dataclass(frozen=True, eq=False)
class _Check:
    """`numbers` are the buffers of floating-point numbers; `launders` says that some pointers come from integers."""

    module: Module
    points_to: PointsTo
    activity: Activity
    rules: Rules
    words: Words
    numbers: frozenset[MemoryObject]
    launders: bool
    origin: Mapping[Value, I.Instruction]

    def instruction(self, instruction: I.Instruction) -> None:
        match instruction:
            case I.CallBr():
                raise self.refused(instruction, GOTO)
            case I.Load() | I.Store():
                self._access(instruction)
            case I.AtomicRMW() | I.CmpXchg():
                self._atomic(instruction)
            case I.CallBase() if call_effect(instruction) is Effect.MEMORY_COPY:
                self._copy(instruction)
            case I.CallBase():
                self._call(instruction)
            case I.Cast(opcode="inttoptr") if self._varied_memory(instruction) and self._is_of_pieces(instruction):
                raise self.refused(instruction, ORIGIN)
            case I.BinaryOp(opcode="sub") if self._distances.lead_across(instruction):
                raise self.refused(instruction, ORIGIN)
            case _:
                pass

    # -- calls

    @cached_property
    def _files(self) -> Files:
        return Files(self.points_to.functions, self.rules)

    def _call(self, call: I.CallBase) -> None:
        if returns_twice(self.module, call):
            raise self.refused(call, SETJMP)
        if is_defined_call(call):
            named = len(call.function_type.parameters)
            extra = call.arguments[named:] if call.function_type.variadic else []
            if any(map(self._reaches_varied, extra)) and not self._only_prints(call.callee):
                raise self.refused(call, VARIADIC)
        elif self._may_send(call):
            raise refuse(self.module, self._original(call), COMMUNICATION)
        elif hands_numbers_on(self.module, call) and self._could_pass_on(call):
            raise refuse(self.module, self._original(call), UNKNOWN_CALL, name=call.callee.name)
        elif is_opaque_call(call) and rule_of(call, self.rules) is None and self._could_pass_on(call):
            active_rule(self.module, self._original(call), self.rules)
        elif (reader := self._reader_after(call)) is not None and self._could_pass_on(call):
            raise refuse(self.module, self._original(call), THROUGH_FILE, name=reader)

    def _may_send(self, call: I.CallBase) -> bool:
        """Whether a call of MPI may hand numbers to another process in a way that has no rule: also as integers."""
        row = called_routine(call)
        if isinstance(row, Communication) and not row.communicates:
            if row.only_asks:
                return False
            return any(not self.activity.varied_objects.isdisjoint(self.points_to.of(a)) for a in call.arguments)
        return is_opaque_call(call) and is_mpi(call.callee.name) and rule_of(call, self.rules) is None

    def _reader_after(self, call: I.CallBase) -> str | None:
        """The function that may read what a call prints to a file. Fortran's statements have been dealt with."""
        prints = call_effect(call) is Effect.OUTPUT and statement(call) is None
        return self._files.reader_after(call) if prints else None

    def _only_prints(self, callee: Value) -> bool:
        """Whether a variadic function does nothing with what it is given beyond its parameters but print it, or make
        text of it."""
        assert isinstance(callee, Function)
        lists: frozenset[MemoryObject] = frozenset()
        for instruction in callee.instructions():
            if isinstance(instruction, I.VAArg):
                return False
            if _is_of(instruction, "llvm.va_start"):
                lists |= self.points_to.of(instruction.operands[0])
        return not any(self._reads_list(i, lists) for i in self.points_to.instructions())

    def _reads_list(self, instruction: I.Instruction, lists: frozenset[MemoryObject]) -> bool:
        if isinstance(instruction, I.Load):
            return not lists.isdisjoint(self.points_to.of(instruction.operands[0]))
        if not isinstance(instruction, I.CallBase) or lists.isdisjoint(
            frozenset[MemoryObject]().union(*map(self.points_to.of, instruction.arguments))
        ):
            return False
        harmless = call_effect(instruction) in (Effect.OUTPUT, Effect.IGNORED) or is_defined_call(instruction)
        if harmless or _is_of(instruction, "llvm.va_start", "llvm.va_end"):
            return False
        return rule_of(instruction, self.rules) is None  # text has a rule where no numbers are made of it again

    def _could_pass_on(self, call: I.CallBase) -> bool:
        """Whether a call of which nothing is known is given, or can reach, a number that varies: it may hand it on in
        ways that nobody sees, also to a later call."""
        if is_memory_free(call):
            return any(a in self.activity.varied for a in call.arguments)
        return any(map(self._reaches_varied, call.arguments)) or not self._outside.isdisjoint(
            self.activity.varied_objects
        )

    def _reaches_varied(self, value: Value) -> bool:
        if value in self.activity.varied:
            return True
        return not self._in_reach(self.points_to.of(value)).isdisjoint(self.activity.varied_objects)

    @cached_property
    def _outside(self) -> Objects:
        """What code that is not there finds by itself: variables of its own, and what is kept in them."""
        objects = self.points_to.objects
        return self._in_reach(o for v, o in objects.items() if isinstance(v, GlobalVariable) and v.initializer is None)

    def _in_reach(self, objects: Iterable[MemoryObject]) -> Objects:
        """What code that is given these objects may read and write, also by calls of functions among them."""
        return frozenset(reached(objects, lambda o: (*self.points_to.contents.get(o, ()), *self._used_by(o))))

    @remembered
    def _used_by(self, item: MemoryObject) -> Objects:
        if not isinstance(item.site, Function):
            return frozenset()
        used = (a.objects for f in reachable_functions(item.site) for a in accesses(self.points_to, f, self._layout))
        return frozenset[MemoryObject]().union(*used)

    @cached_property
    def _layout(self) -> DataLayout:
        return DataLayout(self.module)

    # -- memory

    def _access(self, instruction: I.Load | I.Store) -> None:
        pointer = instruction.operands[-1]
        if "volatile" in instruction.flags and self._varied_memory(pointer):
            raise self.refused(instruction, VOLATILE)
        value = I.accessed_value(instruction)
        if self._hides_pointers(value) if isinstance(instruction, I.Store) else self._is_of_parts(instruction):
            raise self.refused(instruction, POINTERS_AS_INTEGERS)
        lost = holds_float(value.type) and self._may_be_ours(pointer)
        if isinstance(instruction, I.Store):
            lost |= value in self.activity.varied
        if lost and self._is_lost(pointer):
            raise self._of_origin(instruction, pointer)

    def _copy(self, call: I.CallBase) -> None:
        target, source = call.operands[:2]
        if self._is_lost(target) and (self._varied_memory(source) or self._may_be_ours(target)):
            raise self._of_origin(call, target)
        if self._is_lost(source) and self._may_be_ours(source):
            raise self._of_origin(call, source)

    def _is_lost(self, pointer: Value) -> bool:
        """Whether it is not known what memory a pointer leads to."""
        objects = self.points_to.of(pointer)
        return not (objects and self.points_to.unknown not in objects) and not self._zeros.is_null(pointer)

    def _may_be_ours(self, pointer: Value) -> bool:
        """Whether a pointer of unknown origin may lead to numbers that the kernel was given, or its own."""
        return bool(self.numbers) and (self.launders or not self.points_to.of(pointer))

    def _of_origin(self, instruction: I.Instruction, pointer: Value) -> DifferentiationError:
        known = bool(self.points_to.of(pointer)) or not _is_fixed(pointer)
        return self.refused(instruction, ORIGIN if known else DEVICE)

    def _is_of_pieces(self, pointer: I.Cast) -> bool:
        """Whether a pointer is put together from parts of an address, which have no shadow each."""
        through = I.BinaryOp | I.Phi | I.Freeze | I.Select
        parts = reached(
            pointer.operands[:1],
            lambda v: made_of(v) if isinstance(v, through) else (),
            lambda v: isinstance(v, I.Instruction) and bool(self.points_to.of(v)),
        )
        return any(isinstance(part, I.Cast) and part.opcode in ("zext", "sext") for part in parts)

    @cached_property
    def _zeros(self) -> Zeros:
        return Zeros(self.points_to)

    @cached_property
    def _distances(self) -> Distances:
        return Distances(self.points_to, self.activity.varied_objects)

    def _hides_pointers(self, value: Value) -> bool:
        """Whether pointers to numbers that vary go into memory as integers that have no shadow."""
        if not isinstance(value.type, T.VectorType) or not isinstance(value, I.BinaryOp | I.Cast):
            return False
        if self.activity.varied_objects.isdisjoint(self.points_to.of(value)):
            return False
        return self.words.may_be_pointer(value)

    def _is_of_parts(self, load: I.Load) -> bool:
        """Whether a pointer to numbers that vary is read where parts of one, which have no shadow, may be kept."""
        if load.type not in (T.PTR, T.I64) or not self._parts or not self._varied_memory(load):
            return False
        word, places = self._layout.store_size(load.type), self.points_to.within(load.operands[0])
        return any(
            overlap(here, word, at, size)
            for item, offsets in places.items()
            for here in offsets
            for at, size in self._parts.get(item, ())
        )

    @cached_property
    def _parts(self) -> Mapping[MemoryObject, Collection[tuple[Congruence, int]]]:
        """Where integers are stored that are shorter than a pointer, and have bits of one."""
        found: dict[MemoryObject, dict[tuple[Congruence, int], None]] = {}
        for store in (i for i in self.points_to.instructions() if isinstance(i, I.Store)):
            value, pointer = store.operands
            size = self._layout.store_size(value.type)
            if size < self._layout.store_size(T.PTR) and self._varied_memory(value):
                for item, offsets in self.points_to.within(pointer).items():
                    found.setdefault(item, {}).update(((at, size), None) for at in offsets)
        return found

    def _varied_memory(self, pointer: Value) -> bool:
        return not self.activity.varied_objects.isdisjoint(self.points_to.of(pointer))

    def _atomic(self, instruction: I.AtomicRMW | I.CmpXchg) -> None:
        """Additions and exchanges of numbers have derivatives; arithmetic on integers is no concern of them."""
        if not self._varied_memory(instruction.operands[0]):
            return
        is_float = T.is_float(instruction.operands[1].type)
        if isinstance(instruction, I.AtomicRMW) and (
            (instruction.operation in _EXCHANGES) if is_float else instruction.operation != "xchg"
        ):
            return
        raise self.refused(instruction, ATOMIC)

    # -- messages

    def _original(self, instruction: I.Instruction) -> I.Instruction:
        return self.origin.get(instruction, instruction)

    def refused(self, instruction: I.Instruction, cause: Cause) -> DifferentiationError:
        return refuse(self.module, self._original(instruction), cause)


def _is_fixed(pointer: Value) -> bool:
    """Whether an address is a number that the program says."""
    if isinstance(pointer, I.Cast | I.GetElementPtr):
        return _is_fixed(pointer.operands[0])
    return isinstance(pointer, Constant)


def _is_of(instruction: I.Instruction, *names: str) -> bool:
    """A call of one of these intrinsics, whatever they are overloaded by."""
    return callee_name(instruction).startswith(names)
