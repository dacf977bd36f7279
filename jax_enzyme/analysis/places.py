"""Where in each memory object a pointer may point: byte offsets, up to multiples of the stride of arrays.

    lattice     per SSA value a few congruences (`analysis.congruence`) for each object that it may point into, and for
                the value as a plain integer (0 for null); for each place of each object the same for the pointers
                stored there, so that a counter beside a pointer does not move it
    join        the congruences of both, key by key; one that includes all where there are many, or around a loop
    transfer    an object's own address is offset 0; address arithmetic adds; what is not understood is any offset; the
                counter of a loop with constant bounds is each of its values

So a member of a structure in an array has its offset modulo the size of the structure, however the loop is written, and
the elements of a small array in it have theirs.
Which objects there are to point into is what `memory.PointsTo` says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from math import gcd

from jax_enzyme.analysis.congruence import ANY, Congruence, copied_to, overlap
from jax_enzyme.analysis.dependence import Worklist
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.memory import MemoryObject, PointsTo, call_effect, leaves_pointers
from jax_enzyme.analysis.tbaa import copied_type
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import GlobalVariable
from jax_enzyme.ir.values import (
    Constant,
    ConstantAggregate,
    ConstantExpr,
    ConstantNull,
    GlobalValue,
    Poison,
    Undef,
    Value,
)
from jax_enzyme.ir.values import int_value as constant_value
from jax_enzyme.rules.effects import Effect

Offsets = frozenset[Congruence]
Place = Mapping[MemoryObject | None, Offsets]
_START: Offsets = frozenset([Congruence(0, 0)])
_ANYWHERE: Offsets = frozenset([ANY])
_MANY = 16
_MANY_JOINED = 4
_MANY_STORED = 4
"""So many congruences are kept for each object: of a value, of a phi, of what is stored in one place. More are replaced
by fewer that include them all (`_fewer`), so what is said of a pointer stays true, only less exact."""
_MANY_STEPS = 4
"""The values of a counter with so few are told one by one; of one with more, as a range."""
_MANY_OBJECTS = 32
"""A pointer that may lead to so many objects, those of a whole hierarchy of classes, has one congruence for each."""
_MANY_FIELDS = 64
"""With pointers stored at more places in an object, each of them may be anywhere in it."""
_POINTER = 8
_SAME = frozenset("freeze addrspacecast ptrtoint ptrtoaddr inttoptr zext sext".split())
_NOWHERE: Place = {}


class Places:
    """The solved relation for all functions that a `PointsTo` is about. Addresses lead where this relation itself finds
    that they do, if `follows`: what `follows_all` confirms or not. Otherwise they lead wherever `points_to` has them
    lead, and to any place there."""

    def __init__(self, points_to: PointsTo, follows: bool = True) -> None:
        self._points_to = points_to
        self._follows = follows
        self._layout = DataLayout(points_to.module)
        self._values: dict[Value, dict[MemoryObject | None, Offsets]] = {}
        self._contents: dict[MemoryObject, dict[Congruence, dict[MemoryObject | None, Offsets]]] = {}
        self._counters: dict[Value, Offsets | None] = {}
        instructions = [i for f in points_to.functions for i in f.instructions()]
        self._work: Worklist[I.Instruction] = Worklist(instructions, self._visit)
        for argument in points_to.root.arguments:
            if not T.is_pointer(argument.type):
                self._values[argument] = {None: _ANYWHERE}
        for item in points_to.objects.values():
            if isinstance(item.site, GlobalVariable) and item.site.initializer is not None:
                self._fill(item, item.site.initializer, 0)
        self._work.run()

    def _note_change(self, of: Value | MemoryObject, changed: bool) -> None:
        if changed:
            self._work.changed(of)

    @staticmethod
    def over(points_to: PointsTo) -> Places:
        """The relation over a solution, as exact as it confirms."""
        found = Places(points_to)
        return found if found.follows_all(points_to) else Places(points_to, follows=False)

    def follows_all(self, points_to: PointsTo) -> bool:
        """Whether every address that is read or written was followed to each object that it leads to by `points_to`,
        which has been found without what is asked here (but maybe with the places). If so, nothing has been stored
        unseen: the first address to be overlooked would be missing."""
        for function in points_to.functions:
            for instruction in function.instructions():
                for pointer in _addresses(instruction):
                    known = self._place(pointer)
                    if any(o not in known for o in points_to.of(pointer) if o is not points_to.unknown):
                        return False
        return True

    def of(self, pointer: Value) -> Mapping[MemoryObject, Congruence]:
        """The offset in each object that a pointer may point into."""
        return {item: _one(offsets) for item, offsets in self.each_of(pointer).items()}

    def each_of(self, pointer: Value) -> Mapping[MemoryObject, Offsets]:
        """The same, where a pointer has a few different ones."""
        return {o: frozenset(c.unbounded for c in cs) for o, cs in self.within(pointer).items()}

    def within(self, pointer: Value) -> Mapping[MemoryObject, Offsets]:
        """The same, with bounds where they are known."""
        known = self._place(pointer)
        return {o: known.get(o, _ANYWHERE) for o in self._points_to.of(pointer)}

    def _place(self, value: Value) -> Place:
        if value in self._points_to.objects:
            return {self._points_to.objects[value]: _START}
        number = constant_value(value)
        if number is not None:
            return {None: frozenset([Congruence(number, 0)])}
        match value:
            case GlobalValue():
                return dict.fromkeys(self._points_to.of(value), _START)
            case ConstantExpr(opcode="getelementptr"):
                return self._address(value, value.source_type, list(value.operands))
            case ConstantExpr() if value.opcode in _SAME:
                return self._place(value.operands[0])
            case ConstantNull():
                return {None: _START}
            case Poison() | Undef():
                return _NOWHERE
            case Constant():
                return self._anywhere(value)
            case _:
                self._work.read(value)
                return self._values.get(value, _NOWHERE)

    def _anywhere(self, value: Value) -> Place:
        if _is_narrow(value):
            return {None: _ANYWHERE}
        return {None: _ANYWHERE, **dict.fromkeys(self._points_to.of(value), _ANYWHERE)}

    def _join(self, value: Value, place: Place) -> None:
        known = self._values.setdefault(value, {})
        most = _MANY_JOINED if isinstance(value, I.Phi) else _MANY
        self._note_change(value, _merge(known, place, most if len(known) < _MANY_OBJECTS else 1))

    def _visit(self, instruction: I.Instruction) -> None:
        match instruction:
            case I.Store():
                self._put(instruction.operands[0], instruction.operands[1])
            case I.AtomicRMW() | I.CmpXchg():
                for value in instruction.operands[1:]:
                    self._put(value, instruction.operands[0])
                self._join(instruction, self._anywhere(instruction))
            case I.CallBase():
                self._call(instruction)
            case I.Phi() if (values := self._counted(instruction)) is not None:
                known = self._values.setdefault(instruction, {})
                self._note_change(instruction, _merge(known, {None: values}, _MANY))
            case _ if T.is_pointer(instruction.type) or T.is_int(instruction.type):
                self._join(instruction, self._result(instruction))
            case _:
                pass

    def _put(self, value: Value, pointer: Value) -> None:
        if not self._points_to.of(value) or _is_narrow(value):
            return
        single = T.is_pointer(value.type) or value.type == T.I64
        place = self._place(value) if single else self._anywhere(value)
        size = _POINTER if single else self._layout.store_size(value.type)
        for target, offsets in self._targets(pointer).items():
            for at in offsets if not target.is_constant else ():
                for part in range(0, size, _POINTER):
                    self._add(target, at + Congruence(part, 0), place)

    def _targets(self, pointer: Value) -> Mapping[MemoryObject, Offsets]:
        """The objects, and the places in them, that an access is taken to lead to."""
        objects = self._points_to.of(pointer)
        if not self._follows:
            return dict.fromkeys(objects, _ANYWHERE)
        return {o: cs for o, cs in self._place(pointer).items() if o is not None and o in objects}

    def _add(self, item: MemoryObject, at: Congruence, place: Place) -> None:
        """A pointer is stored somewhere."""
        fields = self._contents.setdefault(item, {})
        if at not in fields and len(fields) >= _MANY_FIELDS:
            joined: dict[MemoryObject | None, Offsets] = {}
            for held in fields.values():
                _merge(joined, held, _MANY_STORED)
            fields.clear()
            fields[ANY] = joined
            self._note_change(item, True)
        at = ANY if ANY in fields else at
        self._note_change(item, _merge(fields.setdefault(at, {}), place, _MANY_STORED))

    def _held(self, pointer: Value, size: int | None) -> Iterator[tuple[MemoryObject, Congruence, Congruence, Place]]:
        """The pointers in so many bytes behind an address (None: in what it leads to): in which object, where, from
        which place of the address on."""
        for item, offsets in self._targets(pointer).items():
            self._work.read(item)
            for here in offsets:
                for at, held in list(self._contents.get(item, {}).items()):
                    if size is None or overlap(at, _POINTER, here, size):
                        yield item, at, here, dict(held)

    def _fill(self, item: MemoryObject, value: Constant, start: int) -> None:
        """What a variable holds from the start."""
        match value:
            case ConstantAggregate() if not isinstance(value.type, T.VectorType):
                for element, offset in zip(value.elements, self._layout.offsets(value.type), strict=True):
                    self._fill(item, element, start + offset)
            case _ if T.is_pointer(value.type) and self._points_to.of(value):
                self._add(item, Congruence(start, 0), self._place(value))
            case _ if self._points_to.of(value):
                self._add(item, ANY, self._anywhere(value))
            case _:
                pass

    def _counted(self, phi: I.Phi) -> Offsets | None:
        if phi not in self._counters:
            self._counters[phi] = _values_of_counter(phi)
        return self._counters[phi]

    def _result(self, instruction: I.Instruction) -> Place:
        operands = instruction.operands
        found: dict[MemoryObject | None, Offsets]
        if isinstance(instruction.type, T.VectorType):
            return self._anywhere(instruction)
        match instruction:
            case I.GetElementPtr():
                return self._address(instruction, instruction.source_type, operands)
            case I.Load() if T.is_pointer(instruction.type) or (
                instruction.type == T.I64 and self._points_to.of(instruction)
            ):
                # Null as well: nobody notes where memory is cleared.
                found = {None: _START if T.is_pointer(instruction.type) else _ANYWHERE}
                for _, _, _, held in self._held(operands[0], _POINTER):
                    _merge(found, held, _MANY)
                return found
            case I.Select():
                found = dict(_without(self._place(operands[2]), operands[0], operands[2]))
                _merge(found, self._place(operands[1]), _MANY)
                return found
            case I.Phi():
                found = {}
                for value in operands:
                    _merge(found, self._place(value), _MANY)
                return found
            case _ if instruction.opcode in _SAME:
                return self._place(operands[0])
            case I.Cast(opcode="trunc"):
                return {k: frozenset(c.cut() for c in cs) for k, cs in self._place(operands[0]).items()}
            case I.BinaryOp():
                return self._arithmetic(instruction)
            case _:
                return self._anywhere(instruction)

    def _arithmetic(self, instruction: I.BinaryOp) -> Place:
        x, y = (self._place(v) for v in instruction.operands)
        if not x or not y:
            return _NOWHERE
        a, b = x.get(None), y.get(None)
        match instruction.opcode:
            case "add" if b is not None and len(y) == 1:
                return {k: _sums(cs, b) for k, cs in x.items()}
            case "add" if a is not None and len(x) == 1:
                return {k: _sums(cs, a) for k, cs in y.items()}
            case "sub" if b is not None and len(y) == 1:
                return {k: _sums(cs, _products(b, -1)) for k, cs in x.items()}
            case "sub" if any(k in y for k in x):
                return self._difference(x, y)
            case "mul" if a is not None and b is not None and len(x) == len(y) == 1:
                return {None: frozenset([_one(a) * _one(b)]) if len(a) * len(b) > _MANY else _multiplied(a, b)}
            case "shl" if a is not None and b is not None and len(x) == 1 and (by := _constant(b)) is not None:
                return {None: _products(a, 1 << by)} if 0 <= by < 63 else self._anywhere(instruction)
            case "ashr" | "lshr" if a is not None and b is not None and (by := _constant(b)) is not None:
                return {None: _shifted(instruction, a, by)} if len(x) == 1 else self._anywhere(instruction)
            case "and" if b is not None and len(y) == 1 and (mask := _constant(b)) is not None:
                return {k: frozenset(c.masked(mask) for c in cs) if k is None else _ANYWHERE for k, cs in x.items()}
            case "urem" if b is not None and len(y) == 1 and (divisor := _constant(b)) is not None and divisor > 0:
                return {None: frozenset([Congruence.bounded(0, divisor - 1, 1)])}
            case "or" if "disjoint" in instruction.flags and b is not None and len(y) == 1:
                return {k: _sums(cs, b) for k, cs in x.items()}
            case _:
                return self._anywhere(instruction)

    def _difference(self, x: Place, y: Place) -> Place:
        """Of two pointers: into the same object, as C has it, or both null."""
        found: dict[MemoryObject | None, Offsets] = {}
        for item, first in x.items():
            if item in y:
                _merge(found, {None: _sums(first, _products(y[item], -1))}, _MANY)
        return found

    def _address(self, value: Value, source: T.Type | None, operands: list[Value]) -> Place:
        if source is None or isinstance(value.type, T.VectorType):
            return self._anywhere(value)
        offset = self._offset(source, operands[1:])
        if offset is None:
            return _NOWHERE
        return {k: _sums(cs, offset) for k, cs in self._place(operands[0]).items()}

    def _offset(self, source: T.Type, indices: list[Value]) -> Offsets | None:
        """What the indices of a `getelementptr` add; None where nothing is known of one of them yet."""
        total = _START
        type_ = source
        for position, index in enumerate(indices):
            place = self._place(index)
            if not place:
                return None
            number = place.get(None, _ANYWHERE) if len(place) == 1 else _ANYWHERE
            body = self._layout.body(type_)
            if position == 0:
                total = _sums(total, _products(number, self._layout.alloc_size(type_)))
            elif isinstance(body, T.StructType):
                field = constant_value(index)
                if field is None:
                    return _ANYWHERE
                total = frozenset(c + Congruence(self._layout.offsets(body)[field], 0) for c in total)
                type_ = body.elements[field]
            else:
                assert isinstance(body, T.ArrayType | T.VectorType)
                type_ = body.element
                total = _sums(total, _products(number, self._layout.alloc_size(type_)))
        return total

    def _call(self, call: I.CallBase) -> None:
        callees = self._points_to.callees(call)
        for callee in callees:
            for parameter, argument in zip(callee.arguments, call.arguments, strict=False):
                self._join(parameter, self._place(argument))
            for block in callee.blocks:
                last = block.terminator
                if isinstance(last, I.Return) and last.operands:
                    self._join(call, self._place(last.operands[0]))
        if callees:
            return
        match call_effect(call):
            case Effect.MEMORY_COPY if copied_type(self._points_to.module, call) is not None:
                pass
            case Effect.MEMORY_COPY:
                self._copy(call.operands[0], call.operands[1], constant_value(call.operands[2]))
            case Effect.REALLOCATE:
                self._copy(call, call.operands[0], None)
            case Effect.ALLOCATE:
                pass
            case Effect.SAME_POINTER:
                self._join(call, {k: _ANYWHERE for k in self._place(call.operands[0])})
            case _:
                self._unknown(call)

    def _copy(self, target: Value, source: Value, length: int | None) -> None:
        for _, at, here, held in list(self._held(source, length)):
            for to, offsets in self._targets(target).items():
                for there in offsets if not to.is_constant else ():
                    self._add(to, copied_to(at, _POINTER, here, there, length), held)

    def _unknown(self, call: I.CallBase) -> None:
        """What a call may store, it may store at any offset."""
        if T.is_pointer(call.type) or T.is_int(call.type):
            self._join(call, self._anywhere(call))
        if call_effect(call) is not None or leaves_pointers(call):
            return
        given = [self._points_to.of(a) for a in call.arguments if not _is_narrow(a)]
        for item in frozenset[MemoryObject]().union(*given):
            anywhere: Place = dict.fromkeys(self._points_to.contents.get(item, ()), _ANYWHERE)
            self._add(item, ANY, anywhere)


def _addresses(instruction: I.Instruction) -> list[Value]:
    match instruction:
        case I.Load() | I.AtomicRMW() | I.CmpXchg():
            return instruction.operands[:1]
        case I.Store():
            return instruction.operands[1:]
        case I.CallBase() if call_effect(instruction) is Effect.MEMORY_COPY:
            return instruction.operands[:2]
        case I.CallBase() if call_effect(instruction) is Effect.REALLOCATE:
            return instruction.operands[:1]
        case _:
            return []


def _without(place: Place, condition: Value, value: Value) -> Place:
    """The place of a value that is chosen where a condition does not hold: in `i == n ? 0 : i` it is not n."""
    if not isinstance(condition, I.Compare) or condition.predicate != "eq" or condition.operands[0] is not value:
        return place
    excluded = constant_value(condition.operands[1])
    if excluded is None or None not in place:
        return place
    others = frozenset(_trimmed(c, excluded) for c in place[None] if c != Congruence(excluded, 0))
    return {**place, None: others or place[None]}


def _trimmed(numbers: Congruence, excluded: int) -> Congruence:
    if numbers.last != excluded:
        return numbers
    return Congruence.bounded(numbers.offset, excluded - numbers.modulus, numbers.modulus)


def _is_narrow(value: Value) -> bool:
    """A number, or an integer that is too short for a pointer: the pointers beside it are no concern of its."""
    scalar = T.scalar(value.type)
    return isinstance(scalar, T.FloatType) or (isinstance(value.type, T.IntType) and value.type.bits < 64)


def _merge(into: dict[MemoryObject | None, Offsets], place: Place, most: int) -> bool:
    """Joins a place into another, with so many congruences for each object at most; whether that changed it."""
    changed = False
    for key, offsets in place.items():
        old = into.get(key)
        if old is not None:
            # What another one includes goes, so that a join of many stays when its parts come again.
            offsets = frozenset(c for c in offsets if c not in old and not any(d.includes(c) for d in old))
            if not offsets:
                continue
        new = offsets if old is None else old | offsets
        if len(new) > 1:
            new = frozenset(c for c in new if not any(d.includes(c) for d in new if d is not c))
        if len(new) > most:
            new = _fewer(new, most)
        if new != old:
            into[key] = new
            changed = True
    return changed


def _one(offsets: Offsets) -> Congruence:
    return reduce(Congruence.join, offsets)


def _fewer(offsets: Offsets, most: int) -> Offsets:
    """At most so many congruences that include all of these: modulo the stride by which they include least besides."""
    starts = sorted({c.offset for c in offsets})
    strides = {b - a for i, a in enumerate(starts) for b in starts[i + 1 :]} if most > 1 else set[int]()
    best: tuple[float, int, Offsets] | None = None
    for stride in strides:
        found = frozenset(Congruence.of(c.offset, gcd(c.modulus, stride)) for c in offsets)
        if len(found) <= most:
            share = sum(1 / c.modulus for c in found), stride, found
            best = share if best is None or share[:2] < best[:2] else best
    return frozenset([_one(offsets)]) if best is None else best[2]


def _shifted(shift: I.BinaryOp, offsets: Offsets, by: int) -> Offsets:
    assert isinstance(shift.type, T.IntType)
    bits = shift.type.bits
    return frozenset(c.shifted_right(by % bits, bits, signed=shift.opcode == "ashr") for c in offsets)


def _constant(offsets: Offsets) -> int | None:
    (first, *rest) = offsets
    return first.offset if first.modulus == 0 and not rest else None


def _sums(xs: Offsets, ys: Offsets) -> Offsets:
    found = frozenset(x + y for x in xs for y in ys)
    return found if len(found) <= _MANY else _fewer(found, _MANY // 2)


def _products(xs: Offsets, factor: int) -> Offsets:
    return frozenset(x * Congruence(factor, 0) for x in xs)


def _multiplied(xs: Offsets, ys: Offsets) -> Offsets:
    return frozenset(x * y for x in xs for y in ys)


def _values_of_counter(phi: I.Phi) -> Offsets | None:
    """The values of a loop's counter that starts at a constant and goes to one by steps of 1 or -1; None for any other
    phi. The loop is left at its end, as optimisers turn loops: what is compared there is the counter, or what follows
    it, which the counter then never is."""
    if len(phi.operands) != 2 or not isinstance(phi.type, T.IntType):
        return None
    for start, (following, latch) in zip(phi.operands, reversed(phi.incoming), strict=True):
        first = constant_value(start)
        if first is None or not isinstance(following, I.BinaryOp) or following.opcode != "add":
            continue
        step = constant_value(following.operands[1])
        last = latch.terminator
        if following.operands[0] is not phi or step not in (1, -1) or not isinstance(last, I.CondBranch):
            continue
        test = last.operands[0]
        if not isinstance(test, I.Compare) or test.opcode != "icmp" or test.operands[0] not in (phi, following):
            continue
        end = constant_value(test.operands[1])
        leaves = phi not in last.targets[0].instructions
        equal = test.predicate == ("eq" if leaves else "ne") and (phi in last.targets[1 if leaves else 0].instructions)
        if not equal or end is None:
            continue
        final = end if test.operands[0] is phi else end - step
        count = (final - first) * step + 1
        if 0 < count <= _MANY_STEPS:
            return frozenset(Congruence(first + step * k, 0) for k in range(count))
        if count > 0:
            return frozenset([Congruence.bounded(min(first, final), max(first, final), 1)])
    return None
