"""Numbers whose bits are in integers, and numbers that are made of integers: what is refused about them.

Copies of bits are copies of the number, and comparing them decides as comparing numbers does. Signs and exponents are
decisions too, whatever is computed of them, and numbers with another one's digits have been named
(`transform.number_fields`), as those have whose bits follow a straight line (`transform.lines_of_bits`). Anything else
means something for the number that is not known here:

    integer arithmetic      on the digits of a number that varies, where the result ends in a number, memory or a
                            function
    numbers out of integers that were computed from numbers that vary, as in fast exponentials: the integer is piecewise
                            constant, but what is meant is not. (2^n, with an n that was rounded, is what it says.)
                            It may have been rounded as a number first: `(int)round(x)`
    parts                   of a number: stored or loaded as a shorter integer, or as a number of another size
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property

from jax_enzyme.ad.facts.causes import BITS, HELD, MADE, PARTS, Cause
from jax_enzyme.ad.facts.half_numbers import takes_half
from jax_enzyme.ad.facts.tagged import PlainWords, computed_of
from jax_enzyme.analysis.accesses import reachable_objects
from jax_enzyme.analysis.activity import Activity
from jax_enzyme.analysis.bit_arithmetic import DIGITS, width
from jax_enzyme.analysis.byte_ranges import ByteRanges
from jax_enzyme.analysis.congruence import Congruence
from jax_enzyme.analysis.decisions import computes, decides, keeps, takes_bits
from jax_enzyme.analysis.fixpoint import fixpoint
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.number_bytes import WORD
from jax_enzyme.analysis.number_fields import NumberFields
from jax_enzyme.analysis.object_bytes import Bytes, OrderedSet, Place
from jax_enzyme.analysis.objects import (
    MemoryObject,
    call_effect,
    called_routine,
    copy_operands,
    is_copy,
    is_of_its_kind,
)
from jax_enzyme.analysis.rounding import is_whole
from jax_enzyme.analysis.tabled_bits import is_tabled
from jax_enzyme.analysis.tbaa import (
    is_certain_integer,
    is_fortran_integer,
    is_integer_of_c,
    is_of_any_type,
    is_of_shadow,
)
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import Buffer
from jax_enzyme.ir.module import Module, Uses, uses
from jax_enzyme.ir.reach import led_to, reached
from jax_enzyme.ir.values import Value, int_value, is_zero, lane_of
from jax_enzyme.rules.effects import Effect

_MANTISSA = {2: 7, 4: 23, 8: 52}
"""Bits of the mantissa by bytes of the number, the shorter one of two formats."""
_SIZES = {"f16": 2, "bf16": 2, "f32": 4, "c64": 4, "f64": 8, "c128": 8}
_ALL = 128
_READS_NOTHING = (Effect.ALLOCATE, Effect.FREE, Effect.MEMORY_SET, Effect.IGNORED)
_MOVES = frozenset(
    "zext sext trunc add sub mul and or xor shl lshr ashr udiv sdiv urem srem phi select freeze"
    " fadd fsub fmul fdiv fneg fpext fptrunc"
    " bitcast extractelement insertelement shufflevector extractvalue insertvalue".split()
)


@dataclass(frozen=True, eq=False)
class BitChecks:
    """The checks of one derivation. `numbers` are its buffers of floating-point numbers."""

    module: Module
    points_to: PointsTo
    activity: Activity
    numbers: Mapping[MemoryObject, Buffer]
    origin: Mapping[Value, I.Instruction]

    def tagged(self) -> tuple[frozenset[I.Instruction], frozenset[I.Load]]:
        """What is computed of integers that share their place with numbers, and those of them that are shorter than
        these, where nothing else is done with bits."""
        found = set[I.Instruction]()
        nothing = frozenset[I.Instruction](), frozenset[I.Load]()
        words = {word for _, _, lost in self._read_as_integers for word, lossy in lost.items() if lossy}
        # In a derivative the codes that tell what was read are constants, and would hide what numbers depend on.
        takes = not self._in_frames and (any(map(_is_short, words)) or self._are_halves_taken)
        if not (words or takes):
            return nothing
        shorter = frozenset(self._shorter if takes else ())
        plain = PlainWords(self.points_to, self.activity, self._in_frames, shorter)
        if not all(is_of_its_kind(word) or plain.may_be(word) for word in words):
            return nothing
        for users, fields, lost in self._read_as_integers:
            kinds: dict[tuple[T.Type, bool], list[I.Instruction]] = {}
            for word in lost:
                if word in words:
                    kinds.setdefault((word.type, word in shorter), []).append(word)
            for (_, is_shorter), of_kind in kinds.items():
                computed = computed_of(of_kind, users, fields, may_be_kept=not is_shorter)
                if computed is None:
                    return nothing
                found |= computed
        return frozenset(found), frozenset(filter(plain.may_be, shorter))

    @cached_property
    def _in_frames(self) -> bool:
        """Whether it is a derivative that is derived, which was itself found to be right."""
        return any(buffer.role != "primal" for buffer in self.numbers.values())

    @property
    def _are_halves_taken(self) -> bool:
        """Whether an integer is stored over a half of a double that varies, and integers are read of such halves."""
        stores = (i for i in self.points_to.instructions() if isinstance(i, I.Store) and self._is_half(i))
        return any(self._shorter) and any(self._access(store) is PARTS for store in stores)

    @property
    def _shorter(self) -> Iterator[I.Load]:
        """What is read of halves of the doubles that may be there, where nothing else that varies is."""
        for _, _, lost in self._read_as_integers:
            yield from (i for i in lost if isinstance(i, I.Load) and self._is_half(i))

    def _is_half(self, access: I.Load | I.Store) -> bool:
        numbers = self.activity.numbers
        return _is_short(I.accessed_value(access)) and numbers.are_doubles(access) and numbers.are_words(access)

    def refused(self) -> Iterator[tuple[I.Instruction, Cause]]:
        """Instructions that cannot be differentiated, and why."""
        yield from self._arithmetic()
        yield from ((load, HELD) for load in self.activity.beside if not self._is_half(load))
        for function in self.points_to.functions:
            for instruction in function.instructions():
                if isinstance(instruction, I.Store | I.Load) and (cause := self._access(instruction)):
                    yield instruction, cause
                elif self._is_made(instruction):
                    yield instruction, MADE
        yield from self._through_pointers()
        yield from ((call, PARTS) for call in self.points_to.instructions() if self._cuts_number(call))

    def _cuts_number(self, call: I.Instruction) -> bool:
        """Whether a call copies what varies, or clears memory, from or up to a place within a number that is read."""
        varied, numbers = self.activity.varied_objects, self.activity.numbers
        if self._in_frames or not isinstance(call, I.CallBase):
            return False
        if is_copy(call):
            target, source, length = copy_operands(call)
            if varied.isdisjoint(self.points_to.of(source)):
                return False  # as a text in the place of a number
        elif call_effect(call) is Effect.MEMORY_SET:
            target, length = call.operands[0], int_value(call.operands[2])
        else:
            return False
        if length is None or varied.isdisjoint(self.points_to.of(target)):
            return False
        return any(
            not number.told
            and part.certainly_meets(number)
            and part.cuts(number)
            and any(map(number.meets, numbers.of(item)))
            for item, part in self._ranges.behind(target, length)
            for number in self._read.get(item, ())
        )

    def _through_pointers(self) -> Iterator[tuple[I.Instruction, Cause]]:
        """Numbers that are loaded where pointers were stored, or made of pointers, that came from where numbers that
        vary may be: a pointer has no derivative."""
        numbers = self.activity.numbers
        every = list(self.points_to.instructions())
        loads = [i for i in every if isinstance(i, I.Load) and T.is_pointer(i.type) and numbers.may_be_read(i)]
        begin = {i for i in loads if numbers.may_be_in(i)}
        lost = self._trail(T.is_pointer, begin.__contains__)[1] if begin else {}
        for load in (i for i in every if isinstance(i, I.Load) and T.is_float(i.type)) if lost else ():
            parts = self._ranges.accessed(load)
            if any(part.meets(other) for item, part in parts for other in lost.get(item, ())):
                yield load, PARTS
        made = [i for i in every if i.opcode == "bitcast" and T.is_float(i.type)]
        values = self._trail(T.is_pointer, set(loads).__contains__)[0] if made and loads else ()

        def may_be_number(pointer: Value) -> bool:
            return pointer in values or not self.activity.varied_objects.isdisjoint(self.points_to.of(pointer))

        words = [i for i in every if i.opcode == "ptrtoint" and may_be_number(i.operands[0])] if made else []
        held = led_to(words, every, I.merged) if words else ()
        yield from ((cast, PARTS) for cast in made if cast.operands[0] in held)

    # -- arithmetic on bits

    @cached_property
    def _read_as_integers(self) -> Sequence[tuple[Uses, NumberFields, Mapping[I.Instruction, list[I.Instruction]]]]:
        """Function by function what may be bits of numbers, with the instructions in which digits get lost."""
        found: list[tuple[Uses, NumberFields, Mapping[I.Instruction, list[I.Instruction]]]] = []
        for function in self.points_to.functions:
            if sources := [i for i in function.instructions() if self._is_bits(i)]:
                users, fields = uses(function), NumberFields(function, self._is_bits)
                lost = {source: list(_lossy(source, users, fields, self.activity.tagged)) for source in sources}
                found.append((users, fields, lost))
        return found

    def _arithmetic(self) -> Iterator[tuple[I.Instruction, Cause]]:
        for _, _, lost in self._read_as_integers:
            for source, lossy in lost.items():
                read = source if isinstance(source, I.Load) else source.operands[0]
                cause = HELD if isinstance(read, I.Load) and not self._is_of_numbers(read) else BITS
                yield from ((user, cause) for user in lossy)

    def _is_bits(self, value: I.Instruction) -> bool:
        if not T.is_int(value.type) or value not in self.activity.varied:
            return False
        if is_of_its_kind(value):
            return True
        if isinstance(value, I.Cast) and value.opcode == "bitcast":
            return T.is_float(value.operands[0].type)
        if not isinstance(value, I.Load) or is_certain_integer(self.module, self.origin.get(value, value)):
            return False
        # What the source calls an integer is one; what it does not (a union, say) is held to be a number's bits.
        return (
            self._is_of_numbers(value)
            or is_of_any_type(self.module, self.origin.get(value, value))
            or self.activity.numbers.are_read(value)
        )

    def _is_of_numbers(self, load: I.Load) -> bool:
        """Whether what is loaded may lie in an array that the signature says to be of numbers."""
        return not self.points_to.of(load.operands[0]).isdisjoint(self.numbers)

    # -- integers that were computed from numbers

    @cached_property
    def _computed(self) -> Set[Value]:
        """Integers that were computed from numbers that vary, by rounding them in the end."""
        rounded, _ = self._trail(T.is_float, self._rounds)

        def begins(instruction: I.Instruction) -> bool:
            if isinstance(instruction, I.CallBase) or instruction.opcode in ("fptosi", "fptoui"):
                given = instruction.arguments if isinstance(instruction, I.CallBase) else instruction.operands
                return any(v in self.activity.varied or v in rounded for v in given)
            if instruction.opcode == "bitcast" and is_whole(instruction.operands[0]):
                return instruction.operands[0] in self.activity.varied
            return False

        return self._trail(T.is_int, begins)[0]

    def _rounds(self, instruction: I.Instruction) -> bool:
        """Is it a call that makes of a number that varies one that does not: `round`, `floor` and their like?"""
        if not isinstance(instruction, I.CallBase) or instruction in self.activity.varied:
            return False
        return any(v in self.activity.varied for v in instruction.arguments)

    def _trail(
        self, is_kind: Callable[[T.Type], bool], begins: Callable[[I.Instruction], bool]
    ) -> tuple[Set[Value], Mapping[MemoryObject, OrderedSet]]:
        """Integers, or numbers, that begin so, with all that is computed of them, and where they are kept."""
        stored: dict[MemoryObject, OrderedSet] = {}
        unread: dict[MemoryObject, dict[Bytes, list[I.Load]]] = {}

        def onward(node: Value | Place) -> Iterator[Value | Place]:
            if not isinstance(node, tuple):
                yield from (v for v in self._handed_on.get(node, ()) if isinstance(v, tuple) or is_kind(v.type))
                return
            item, part = node
            stored.setdefault(item, {})[part] = None
            if (left := unread.get(item)) is None:
                loads = self._ranges.loads.get(item, {})
                of_kind = ((other, [load for load in own if is_kind(load.type)]) for other, own in loads.items())
                left = unread[item] = {other: own for other, own in of_kind if own}
            for other in [other for other in left if other.certainly_meets(part)]:
                yield from left.pop(other)
            for copy, targets in self._ranges.copies_of.get(item, ()):
                yield from self._ranges.noted_in(targets, copy.moved(part), stored)

        begin = [i for i in self.points_to.instructions() if is_kind(i.type) and begins(i)]
        found = reached(begin, onward)
        return {value for value in found if not isinstance(value, tuple)}, stored

    @cached_property
    def _handed_on(self) -> Mapping[Value, Sequence[Value | Place]]:
        """What is computed of each value, what calls and functions get of it, and where it is stored."""
        found: dict[Value, list[Value | Place]] = {}

        def note(sources: Iterable[Value], result: Value | Place) -> None:
            for source in sources:
                found.setdefault(source, []).append(result)

        for instruction in self.points_to.instructions():
            match instruction:
                case I.Store(operands=[value, _]):
                    for place in self._ranges.accessed(instruction):
                        note([value], place)
                case I.CallBase():
                    for callee in self.points_to.callees(instruction):
                        for parameter, value in zip(callee.arguments, instruction.arguments, strict=False):
                            note([value], parameter)
                        note(callee.returned(), instruction)
                    note(() if T.is_pointer(instruction.type) else instruction.arguments, instruction)
                case _ if instruction.opcode in _MOVES:
                    note(I.merged(instruction) or instruction.operands, instruction)
                case _:
                    pass
        return found

    def _is_made(self, instruction: I.Instruction) -> bool:
        """Is it a number whose mantissa was computed as an integer?"""
        if not isinstance(instruction, I.Cast) or instruction.opcode != "bitcast":
            return False
        number = T.scalar(instruction.type)
        return isinstance(number, T.FloatType) and self._mantissa_is_computed(instruction.operands[0], number.size)

    def _mantissa_is_computed(self, value: Value, size: int) -> bool:
        return self._whole.get(value, _ALL) < _MANTISSA.get(size, _ALL)

    @cached_property
    def _whole(self) -> Mapping[Value, int]:
        """How many low bits of an integer that was computed from numbers are the same whatever these are: the greatest
        solution, since what is carried around a loop keeps bits as long as nothing in it changes them."""
        users: dict[Value, list[Value]] = {}
        found: list[Value] = []
        for function in self.points_to.functions:
            found += [v for v in (*function.arguments, *function.instructions()) if v in self._computed]
        for instruction in self.points_to.instructions() if found else ():
            for operand in instruction.operands:
                users.setdefault(operand, []).append(instruction)
        return fixpoint(found, lambda value: users.get(value, ()), _low_bits, _ALL)

    # -- parts of numbers

    def _access(self, access: I.Store | I.Load) -> Cause | None:
        value, pointer = I.accessed_value(access), access.operands[-1]
        if not self._concerns(access, value, pointer):
            return None
        if self._is_plain_integer(access):
            return None  # what is read there instead of it is told as the derivative runs
        of_numbers = value in self._computed or value in self.activity.varied
        places = self._ranges.accessed(access)
        for item, part in places:
            if not of_numbers and isinstance(access, I.Store) and self._is_apart_from_numbers(item, part, places):
                continue
            for other in self._others(item, access):
                if self._in_frames and part.typed and other.typed and part.number == other.number:
                    continue
                is_told = part.told and other.told and not of_numbers
                if is_told or self.activity.numbers.are_apart(item, part, other, places):
                    continue
                if self._in_frames and part.typed and other.typed and not of_numbers:
                    continue
                if not of_numbers and (part.is_adrift(other) or part.is_last_byte(other)):
                    continue
                meets = part.certainly_meets(other) or self.activity.numbers.are_mistaken(item, part, other)
                meets |= self._are_of_several_sizes(part, other)
                if not meets and not self._is_number_alone(value, item, part, other):
                    continue
                if cause := self._clash(value, part, other):
                    return cause
        return None

    def _are_of_several_sizes(self, part: Bytes, other: Bytes) -> bool:
        """Whether numbers of two sizes, each accessed as such, may be at one place, where nothing looks at that as the
        program runs."""
        are_numbers = part.number and other.number and part.size != other.size
        return are_numbers and not (self._in_frames or other.whole or other.copies) and part.meets(other)

    def _is_apart_from_numbers(self, item: MemoryObject, part: Bytes, places: Sequence[Place]) -> bool:
        """Whether no number that varies is where something else is stored: what is read there has none."""
        numbers = self.activity.numbers
        met = [other for other in numbers.of(item) if part.meets(other)]
        return not self._declared(item) and all(numbers.are_apart(item, part, other, places) for other in met)

    def _is_plain_integer(self, access: I.Store | I.Load) -> bool:
        """Whether an integer variable is written that has nothing to do with numbers that vary, but where doubles may
        lie that do; in C where such integers are read."""
        original = self.origin.get(access, access)
        if not isinstance(access, I.Store) or access.operands[0] in self._computed:
            return False
        if self._in_frames and is_zero(access.operands[0]):
            return True  # a shadow is cleared
        if self.activity.beside and not self._is_half(access):
            return False
        if is_integer_of_c(self.module, original) or self.activity.beside:
            return takes_half(self.module, self.activity, access, original)
        value = access.operands[0]
        if not isinstance(value.type, T.IntType) or value.type.bits >= WORD or value in self.activity.varied:
            return False
        if is_zero(value) and is_of_shadow(self.module, access):
            return True  # where an integer lies in what was derived, beside numbers
        return is_fortran_integer(self.module, original) and self.activity.numbers.are_at_most_doubles(access)

    def _is_number_alone(self, value: Value, item: MemoryObject, part: Bytes, other: Bytes) -> bool:
        """Whether nobody but who reads a number that may be there can read an integer that is stored."""
        if value not in self._computed or part.size != other.size or not part.meets(other):
            return False
        integers = self._integers.get(item, ())
        return integers is not None and not any(part.meets(read) for read in integers)

    @cached_property
    def _integers(self) -> Mapping[MemoryObject, list[Bytes] | None]:
        """Where integers are read of each object, directly; None where they may be read in other ways."""
        found: dict[MemoryObject, list[Bytes] | None] = {
            item: [part for part, loads in parts.items() if any(not T.is_float(load.type) for load in loads)]
            for item, parts in self._ranges.loads.items()
        }
        found |= {item: None for item, buffer in self.numbers.items() if buffer.is_result}
        for instruction in self.points_to.instructions():
            match instruction:
                case I.AtomicRMW() | I.CmpXchg():
                    found.update(dict.fromkeys(self.points_to.of(instruction.operands[0])))
                case I.CallBase() if call_effect(instruction) not in _READS_NOTHING:
                    found.update(dict.fromkeys(reachable_objects(self.points_to, instruction)))
                case _:
                    pass
        return found

    def _concerns(self, access: I.Store | I.Load, value: Value, pointer: Value) -> bool:
        if isinstance(access, I.Load):
            return T.is_float(value.type) and value in self.activity.varied
        if T.is_pointer(value.type):
            return False
        return value in self._computed or not self.activity.varied_objects.isdisjoint(self.points_to.of(pointer))

    def _clash(self, value: Value, part: Bytes, other: Bytes) -> Cause | None:
        if part.number:
            whole = part.size == other.size and not part.straddles(other)
            # All accesses of such memory are told; optimisers may have lost what says so of one in a derivative.
            is_told = (part.told and other.told) or (self._in_frames and (part.told or other.told))
            return PARTS if other.number and not whole and not is_told else None
        if self._mantissa_is_computed(value, other.size):
            return MADE
        return PARTS if other.number and not part.fits(other) else None

    def _others(self, item: MemoryObject, access: I.Store | I.Load) -> Sequence[Bytes]:
        """The numbers that an access has to do with: what a load may find, or what is read where a store leaves it."""
        if isinstance(access, I.Load):
            parts = [p for p in self.activity.numbers.of(item) if p.number]
            return [*parts, *self._declared(item)]
        return [*self._read.get(item, ()), *self._declared(item)]

    def _declared(self, item: MemoryObject) -> Sequence[Bytes]:
        buffer = self.numbers.get(item)
        if buffer is None or not buffer.nbytes or not (buffer.is_input or buffer.is_result):
            return ()
        size = _SIZES[buffer.dtype]
        return [Bytes(Congruence(0, size), size, whole=True)]

    @cached_property
    def _read(self) -> Mapping[MemoryObject, OrderedSet]:
        """The numbers that the program reads of each object, by itself or by a copy of it."""
        found: dict[MemoryObject, OrderedSet] = {
            item: dict.fromkeys(part for part, loads in parts.items() if any(T.is_float(load.type) for load in loads))
            for item, parts in self._ranges.loads.items()
        }
        for call in (i for i in self.points_to.instructions() if isinstance(i, I.CallBase)):
            if not is_copy(call) and (routine := called_routine(call)) is not None:
                for index in filter(routine.reads, routine.floats):
                    for item, part in self._ranges.called(call.operands[index], routine.scalar):
                        found.setdefault(item, {})[part] = None
        for copy in self._ranges.copies:
            found.setdefault(copy.to, {}).update(dict.fromkeys(self._declared(copy.to)))
        self._ranges.carry_back(found)
        return found

    # -- helpers

    @property
    def _ranges(self) -> ByteRanges:
        return self.activity.numbers.ranges


def _is_short(value: Value) -> bool:
    """Whether an integer has room in a half of a double."""
    return value.type in (T.I8, T.I16, T.I32)


def _constant(value: Value) -> int | None:
    return int_value(lane_of(value))


def _low_bits(value: Value, whole: Mapping[Value, int]) -> int:
    """How many low bits stay the same, by those of the operands; all of what is not computed from numbers."""
    if not isinstance(value, I.Instruction):
        return 0  # a parameter
    operands = value.operands[1:] if isinstance(value, I.Select) else value.operands
    if value.opcode in ("shl", "lshr") and _constant(operands[0]) is not None:
        return _ALL  # one of as many numbers as there are places: it steps as seldom as an exponent
    if (digits := DIGITS.get(width(value.type))) is not None and is_tabled(value, digits):
        return digits
    least = min((whole.get(v, _ALL) for v in operands), default=_ALL)
    match value.opcode:
        case "shl":
            by = _constant(value.operands[1])
            return least if by is None else min(_ALL, least + by)
        case "and":
            masks = [_constant(v) for v in value.operands]
            return max([least, *((m & -m).bit_length() - 1 if m else _ALL for m in masks if m is not None)])
        case "mul":
            factors = [_constant(v) for v in value.operands]
            return min(_ALL, least + max([0, *((f & -f).bit_length() - 1 for f in factors if f)]))
        case "add" | "sub" | "or" | "xor" | "zext" | "sext" | "trunc" | "phi" | "select" | "freeze":
            return least
        case _:
            return 0


def _lossy(source: I.Instruction, users: Uses, fields: NumberFields, known: Set[Value]) -> Iterator[I.Instruction]:
    """The first instruction on each way from a number's digits to another number, memory or function: none where they
    are merely copied, or only decide, or go into something `known`."""
    pending: list[tuple[I.Instruction, I.Instruction | None]] = [(source, None)]
    seen: set[tuple[Value, bool]] = set()  # a value may be merged of the number as it is and of what is computed of it
    while pending:
        value, computed = pending.pop()
        if (value, computed is None) in seen:
            continue
        seen.add((value, computed is None))
        for user, index in users.get(value, ()):
            if decides(user) or takes_bits(user) or user in known:
                continue
            if isinstance(user, I.Phi | I.Freeze) or (isinstance(user, I.Select) and index > 0):
                pending.append((user, computed))
            elif keeps(user):
                if computed is not None and fields.has_digits(value):
                    yield computed
            elif computes(user):
                pending.append((user, computed or user))
            elif fields.has_digits(value):
                yield computed or user
