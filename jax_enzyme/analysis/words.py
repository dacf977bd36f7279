"""Which floating-point numbers, and which pointers, lie at each place of each memory object.

    lattice     a set of facts per object: a scalar type at an offset (`analysis.congruence`); least fixed point
    sources     the type of a buffer in the signature, loads and stores of numbers and pointers, constants of globals,
                routines of BLAS; what the source says of an access (TBAA) that is of integers in LLVM IR
    transfer    copies of memory carry facts both ways

Compilers copy numbers as integers. What an integer that is loaded may hold follows from the facts about its place:
where there are none, it holds no number. C says that memory which was written as `double` is not read as `long`, so a
load that the source calls one of integers holds only what was written as something else (by `memcpy`, as integers).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import islice
from math import gcd
from typing import NamedTuple

from jax_enzyme.analysis.congruence import MANY, Congruence, repeated
from jax_enzyme.analysis.extents import aligned, at_multiple, extent, inside
from jax_enzyme.analysis.flow import holds_float
from jax_enzyme.analysis.lanes import Lanes
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.objects import MemoryObject, called_routine, copy_operands, is_copy
from jax_enzyme.analysis.offsets import Offsets
from jax_enzyme.analysis.tbaa import accessed_type, copied_type, is_certain_integer
from jax_enzyme.classes import dataclass, replace
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import Buffer
from jax_enzyme.ir.module import GlobalVariable
from jax_enzyme.ir.reach import Reached, made_of, reached
from jax_enzyme.ir.values import (
    Argument,
    Constant,
    ConstantAggregate,
    ConstantSplat,
    ConstantTable,
    Poison,
    Undef,
    Value,
    ZeroInitializer,
)
from jax_enzyme.remembered import remembered

DTYPES: Mapping[str, T.FloatType] = {
    "f64": T.DOUBLE, "f32": T.FLOAT, "c128": T.DOUBLE, "c64": T.FLOAT, "f16": T.HALF, "bf16": T.BFLOAT
}  # fmt: skip
"""The numbers that buffers consist of."""

Piece = tuple[int, T.Type]
"""A scalar at so many bytes behind where an access starts; negative where it starts before."""
_Access = tuple[frozenset[tuple[MemoryObject, Offsets]], int, tuple[tuple[int, T.Type, bool], ...]]
"""Where it is, how it is aligned, and what scalars it is of."""
_INTEGER_ARITHMETIC = frozenset(
    "zext sext trunc add sub mul and or xor shl lshr ashr udiv sdiv urem srem phi select freeze ptrtoint ptrtoaddr"
    " bitcast extractelement insertelement shufflevector extractvalue insertvalue".split()
)


class _Scalar(NamedTuple):
    """`plain` says that the source writes or reads the place by the name of this very type."""

    type: T.Type
    size: int
    plain: bool


@dataclass(frozen=True)
class _Fact:
    place: Congruence
    type: T.Type
    size: int
    plain: bool


@dataclass(frozen=True)
class _Passed:
    """What a copy that leads from many objects to many others carries, by the distance from where it starts: facts go
    from each source here and on to each target, so that the work is their sum and not their product."""

    copy: I.CallBase
    back: bool


class _Held:
    """Facts about one object, in the order in which they were found."""

    def __init__(self) -> None:
        self.facts: dict[_Fact, None] = {}
        self._places: defaultdict[T.Type, list[Congruence]] = defaultdict(list)
        self._wide: list[_Fact] = []

    def add(self, new: _Fact) -> None:
        if new not in self.facts:
            self.facts[new] = None
            self._places[new.type].append(new.place)
            if new.place.modulus:
                self._wide.append(new)

    def note(self, new: _Fact) -> None:
        """Adds a fact unless others say as much; beyond a number of them, `repeated`: a copy within one object would
        carry facts on for ever."""
        if new in self.facts:
            return
        alike = self._places[new.type]
        if len(alike) >= MANY:
            new = replace(new, place=repeated(new.place, alike))
        # A fact about one place says as much as no other one.
        covering = (f for f in self._wide if f.type == new.type and f.plain <= new.plain)
        if not any(f.place.join(new.place) == f.place for f in covering):
            self.add(new)


_Holder = MemoryObject | _Passed
_Facts = dict[_Holder, _Held]


@dataclass(frozen=True)
class _Way:
    """Of a copy of `size` bytes (None: nobody knows how many): what is at `place` in one object goes `there` in its
    `twin`; numbers of one type `alone`, if there is one."""

    item: _Holder
    place: Congruence
    twin: _Holder
    there: Congruence
    size: int | None
    alone: T.Type | None


class Words:
    """Facts about all objects of a `PointsTo`; `buffers` are those of its root, by parameter."""

    def __init__(self, points_to: PointsTo, buffers: Mapping[Argument, Buffer]) -> None:
        self.points_to = points_to
        self.buffers = buffers
        self._layout = DataLayout(points_to.module)
        self._integers: set[Value] = set()

    def numbers(self, pointer: Value, size: int, access: I.Instruction | None = None) -> frozenset[Piece] | None:
        """The numbers that may lie, wholly or partly, within `size` bytes behind a pointer; of those that `access` may
        meet. None where nobody knows what memory that is."""
        found = self._meets(pointer, size)
        if found is None:
            return None
        careful = access is not None and accessed_type(self.points_to.module, access) == T.I1
        return frozenset((d, f.type) for d, f in found if T.is_float(f.type) and not (careful and f.plain))

    def pointers(self, pointer: Value, size: int) -> frozenset[Piece] | None:
        """The same for pointers."""
        found = self._meets(pointer, size)
        return None if found is None else frozenset((d, f.type) for d, f in found if T.is_pointer(f.type))

    @remembered
    def are_aligned(self, kind: T.Type) -> bool:
        """Whether every access to numbers of a kind says that its address is a multiple of their size."""
        return not any(map(partial(self._is_loose, kind), self._accesses))

    def _is_loose(self, kind: T.Type, access: I.Load | I.Store) -> bool:
        type_ = I.accessed_value(access).type
        align = access.align
        return T.scalar(type_) == kind and align is not None and align < self._layout.store_size(kind)

    def scalars(self, pointer: Value, size: int) -> frozenset[Piece] | None:
        """The numbers and pointers that may lie wholly within so many bytes behind a pointer. None where nobody knows
        what memory that is."""
        found = self._meets(pointer, size)
        return None if found is None else frozenset((d, f.type) for d, f in found if 0 <= d <= size - f.size)

    @cached_property
    def _accesses(self) -> list[I.Load | I.Store]:
        functions = self.points_to.functions
        return [i for f in functions for i in f.instructions() if isinstance(i, I.Load | I.Store)]

    def may_be_pointer(self, value: Value) -> bool:
        """Whether an integer may be a pointer that was loaded as one, or a part of it, or be computed from such."""
        seen = Reached([value], lambda v: isinstance(v, I.Instruction) and bool(self.points_to.of(v)))
        for item in seen:
            if isinstance(item, I.Load):
                if self.pointers(item.operands[0], self._layout.store_size(item.type)) != frozenset():
                    return True
            elif isinstance(item, I.CallBase) or (
                isinstance(item, I.Cast) and item.opcode in ("ptrtoint", "ptrtoaddr")
            ):
                return True
            else:
                seen.add(made_of(item))
        return False

    def may_be_bits(self, value: Value) -> bool:
        """Whether an integer may be the bits of a number, or an address, or be computed from such bits."""
        if self.points_to.of(value):
            return True
        seen = Reached([value], lambda v: v not in self._integers and not isinstance(v, Constant))
        for item in seen:
            match item:
                case I.Load():
                    held = self.numbers(item.operands[0], self._layout.store_size(item.type), item)
                    if held != frozenset() and not is_certain_integer(self.points_to.module, item):
                        return True
                case I.Cast(operands=[operand]) if T.is_float(operand.type):
                    if item.opcode == "bitcast":
                        return True
                case I.CallBase():
                    if not item.callee.name.startswith("llvm.") or any(holds_float(a.type) for a in item.arguments):
                        return True
                    seen.add(item.arguments)
                case I.Compare():
                    pass
                case I.Instruction() if item.opcode in _INTEGER_ARITHMETIC:
                    seen.add(item.operands)
                case _:
                    return True
        self._integers |= seen.all.keys()
        return False

    def of(self, item: MemoryObject) -> frozenset[T.FloatType]:
        """The types of the numbers that an object holds anywhere."""
        return frozenset(f.type for f in self._facts.get(item, ()) if isinstance(f.type, T.FloatType))

    def is_array(self, item: MemoryObject) -> bool:
        """Whether an object is an array of numbers and nothing else, as the signature has it."""
        return (
            isinstance(item.site, Argument) and item.site in self.buffers and (self.buffers[item.site].dtype in DTYPES)
        )

    def pattern(self, pointers: tuple[Value, ...]) -> tuple[int, frozenset[Piece]] | None:
        """What lies behind each of these pointers, the same for all: the period in bytes after which it repeats (0: it
        does not), and the scalars within one period. None where that is not known."""
        period = 0
        found: list[tuple[Congruence, _Fact]] = []
        for pointer in pointers:
            places = self.points_to.place(pointer)
            if not places or self.points_to.unknown in places:
                return None
            for item, place in places.items():
                for fact in self._facts.get(item, ()):
                    found.append((fact.place - place, fact))
                    period = gcd(period, found[-1][0].modulus)
        pieces = {(c.offset % period if period else c.offset, f.type) for c, f in found}
        return period, frozenset(pieces)

    def describe(self) -> str:
        """One line per object, for tests and reports."""
        lines: list[str] = []
        for item, facts in self._facts.items():
            held = sorted(f"{f.type} at {_text(f.place)}" for f in facts)
            lines.append(f"{item}: {', '.join(dict.fromkeys(held))}")
        return "\n".join(lines)

    def _meets(self, pointer: Value, size: int) -> frozenset[tuple[int, _Scalar]] | None:
        places = self.points_to.places(pointer)
        if not places or self.points_to.unknown in places:
            return None
        near = (self._near(item, place, size) for item, offsets in places.items() for place in offsets)
        return frozenset[tuple[int, _Scalar]]().union(*near)

    @remembered
    def _near(self, item: MemoryObject, place: Congruence, size: int) -> frozenset[tuple[int, _Scalar]]:
        """What `size` bytes at a place of an object meet: the same for all pointers that lead there, and for all facts
        about one type."""
        return frozenset(
            (d, _Scalar(fact.type, fact.size, fact.plain))
            for fact in self._facts.get(item, ())
            for d in _distances(place, fact, size)
        )

    # -- facts

    @cached_property
    def _facts(self) -> dict[MemoryObject, dict[_Fact, None]]:
        facts: _Facts = {}
        lanes = Lanes()
        noted: set[_Access] = set()
        copies: list[I.CallBase] = []
        for argument, buffer in self.buffers.items():
            kind = DTYPES.get(buffer.dtype)
            item = self.points_to.objects.get(argument)
            if kind is not None and item is not None:
                size = self._layout.store_size(kind)
                _add(facts, item, _Fact(Congruence(0, size), kind, size, plain=True))
        for item in list(self.points_to.objects.values()):
            if isinstance(item.site, GlobalVariable) and item.site.initializer is not None:
                for place, kind, size in self._constants(item.site.initializer, 0):
                    _add(facts, item, _Fact(place, kind, size, plain=True))
        for function in self.points_to.functions:
            for instruction in function.instructions():
                if isinstance(instruction, I.CallBase):
                    if is_copy(instruction):
                        copies.append(instruction)
                    self._note_routine(facts, instruction)
                else:
                    self._note_access(facts, instruction, lanes, noted)
        self._carry(facts, list(dict.fromkeys(way for copy in copies for way in self._ways(copy))))
        return {item: held.facts for item, held in facts.items() if isinstance(item, MemoryObject)}

    def _constants(self, value: Constant, start: int) -> Iterator[tuple[Congruence, T.Type, int]]:
        match value:
            case ConstantTable():
                yield from self._in_table(value.type, start)
            case ConstantAggregate():
                offsets = self._layout.offsets(value.type)
                for element, offset in zip(value.elements, offsets, strict=True):
                    yield from self._constants(element, start + offset)
            case ConstantSplat() | ZeroInitializer() | Undef() | Poison():
                return
            case _ if T.is_float(value.type) or T.is_pointer(value.type):
                yield Congruence(start, 0), value.type, self._layout.store_size(value.type)
            case _:
                return

    def _in_table(self, type_: T.Type, start: int) -> Iterator[tuple[Congruence, T.Type, int]]:
        """The numbers of a table, those of all rows at once."""
        body = self._layout.body(type_)
        if isinstance(body, T.StructType):
            for offset, element in self._layout.parts(body):
                yield from self._in_table(element, start + offset)
            return
        count = 1
        while isinstance(body, T.ArrayType):
            count, body = count * body.count, self._layout.body(body.element)
        step = self._layout.alloc_size(body)
        for offset, kind in self._layout.scalars(body, start) if count else ():
            if T.is_float(kind):
                yield Congruence.bounded(offset, offset + (count - 1) * step, step), kind, self._layout.store_size(kind)

    def _note_access(self, facts: _Facts, instruction: I.Instruction, lanes: Lanes, noted: set[_Access]) -> None:
        """Those of an access, unless another one is of the same at the same places: where memory has escaped, many
        pointers may lead to all of it."""
        accessed = I.accessed(instruction)
        if accessed is None or not isinstance(instruction, I.Load | I.Store | I.AtomicRMW | I.CmpXchg):
            return
        pointer, type_ = accessed
        align = instruction.align or self._layout.align(type_)
        named = accessed_type(self.points_to.module, instruction)
        found: list[tuple[int, T.Type, bool]] = []
        for offset, scalar in self._layout.scalars(type_):
            plain = named == scalar
            kind = named if T.is_int(scalar) and isinstance(named, T.FloatType | T.PointerType) else scalar
            if not T.is_int(kind):
                size = self._layout.store_size(kind)
                pieces = ((start, kind) for start in range(0, max(self._layout.store_size(scalar) - size, 0) + 1, size))
            elif kind == type_ and isinstance(instruction, I.Store):
                words = reached(instruction.operands[:1], I.merged)
                pieces = ((start, number.type) for word in words for start, number in lanes.numbers(word))
            else:
                continue
            found += ((offset + start, piece, plain or kind is named) for start, piece in pieces)
        access = (frozenset(self.points_to.targets(pointer).items()), align, tuple(found))
        if not found or access in noted:
            return
        noted.add(access)
        places = list(self._accessed(pointer, align))
        for start, piece, plain in found:
            size = self._layout.store_size(piece)
            for item, place in places:
                at = inside(place + Congruence(start, 0), size, self._extent(item))
                if at is not None:
                    _add(facts, item, _Fact(at, piece, size, plain))

    @remembered
    def _extent(self, item: _Holder) -> int | None:
        return extent(self._layout, item) if isinstance(item, MemoryObject) else None

    def _accessed(self, pointer: Value, align: int) -> Iterator[tuple[MemoryObject, Congruence]]:
        """Where an access of this alignment may be; in one order in every process, since the first facts count most."""
        for item, offsets in self.points_to.places(pointer).items():
            unit = gcd(align, aligned(self._layout, item))
            yield from ((item, at_multiple(place, unit)) for place in sorted(offsets))

    def _note_routine(self, facts: _Facts, call: I.CallBase) -> None:
        routine = called_routine(call)
        if routine is None:
            return
        size = self._layout.store_size(routine.scalar)
        for index in routine.floats:
            for item, place in self.points_to.place(call.operands[index]).items():
                at = Congruence.of(place.offset, gcd(place.modulus, size))
                _add(facts, item, _Fact(at, routine.scalar, size, plain=True))

    def _ways(self, call: I.CallBase) -> Iterator[_Way]:
        """A copy carries facts both ways."""
        target, source, size = copy_operands(call)
        alone = copied_type(self.points_to.module, call)
        for one, other in ((source, target), (target, source)):
            from_, to = (list(self.points_to.place(end).items()) for end in (one, other))
            if len(from_) > 2 and len(to) > 2:
                passed = _Passed(call, back=one is target), Congruence(0, 0)
                yield from (_Way(*end, *passed, size, alone) for end in from_)
                yield from (_Way(*passed, *end, size, alone) for end in to)
            else:
                yield from (_Way(*a, *b, size, alone) for a in from_ for b in to)

    def _carry(self, facts: _Facts, ways: Sequence[_Way]) -> None:
        """Carries facts over copies until there are no more: each of them over each copy once."""
        carried = dict.fromkeys(ways, 0)
        pending = ways
        while pending:
            for way in pending:
                if way.item not in facts:
                    continue
                new = list(islice(facts[way.item].facts, carried[way], None))
                carried[way] += len(new)
                held = facts.setdefault(way.twin, _Held())
                room = self._extent(way.twin)
                for fact in new:
                    if way.alone is not None and fact.type != way.alone:
                        continue
                    for moved in _moved(fact, way.place, way.there, way.size):
                        at = inside(moved, fact.size, room)
                        if at is not None:
                            held.note(_Fact(at, fact.type, fact.size, plain=False))
            pending = [way for way in ways if way.item in facts and len(facts[way.item].facts) > carried[way]]


def _add(facts: _Facts, item: _Holder, fact: _Fact) -> None:
    facts.setdefault(item, _Held()).add(fact)


def _distances(place: Congruence, fact: _Fact, size: int) -> Iterator[int]:
    """How far behind `place` the fact's scalar may start, so that it overlaps `size` bytes there."""
    difference = fact.place - place
    if difference.modulus == 0:
        if -fact.size < difference.offset < size:
            yield difference.offset
        return
    first = 1 - fact.size
    start = first + (difference.offset - first) % difference.modulus
    yield from range(start, size, difference.modulus)


def _moved(fact: _Fact, place: Congruence, there: Congruence, size: int | None) -> Iterator[Congruence]:
    """Where a fact comes to lie when `size` bytes from `place` on are copied to `there`: those of an array one by one,
    unless they are many; none where it stays behind."""
    distance = fact.place - place
    if distance.modulus == 0:
        if distance.offset >= 0 and (size is None or distance.offset <= size - fact.size):
            yield there + distance
    elif size is None:
        yield there + distance
    else:
        each = range(distance.offset % distance.modulus, size - fact.size + 1, distance.modulus)
        yield from (there + Congruence(at, 0) for at in each) if len(each) <= MANY // 2 else (there + distance,)


def _text(place: Congruence) -> str:
    return f"{place.offset}" if place.modulus == 0 else f"{place.offset} mod {place.modulus}"
