"""Of vectors only the lanes that are used are loaded; where some are used as numbers and others as integers, as such.

    before    %v = load <8 x i16>, ptr %a                       (a short and its padding, then a double)
              %k = extractelement <8 x i16> %v, i64 0
              %w = bitcast <8 x i16> %v to <2 x double>
              %x = extractelement <2 x double> %w, i64 1

    after     %k = load i16, ptr %a
              %x = load double, ptr %a.8

Optimisers load neighbouring members of a structure as one vector. Which bits of it are used, and as what, is found
along its uses (`_Demand`); a load of which some bits are used as both stays. They also load one member of several
records with whatever lies between: lanes that nobody uses say nothing of what is there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from itertools import groupby
from operator import or_

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int, zero
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.module import Function, Module, uses
from jax_enzyme.ir.values import Value, int_value
from jax_enzyme.transform.rewriting import Change, remove_dead, rewrite
from jax_enzyme.transform.vector_shuffles import shuffled

_NUMBERS = {"double": 64, "float": 32}
_LOADED_WHOLE = (T.I8, T.I16, T.I32, T.I64)
Users = Mapping[Value, list[tuple[I.Instruction, int]]]


def split_mixed_loads(module: Module) -> Module:
    """A copy of the module in which such loads are split; the module itself where there are none."""
    if not any(_changes(f) for f in module.functions.values()):
        return module
    copy = clone(module)
    for function in copy.functions.values():
        rewrite(function, _changes(function).get)
        remove_dead(function)
    return copy


def _changes(function: Function) -> dict[I.Instruction, Change]:
    """What takes the place of each load, and of each cast of it."""
    loads = [i for i in function.instructions() if _is_candidate(i)]
    changes: dict[I.Instruction, Change] = {}
    users = uses(function) if loads else {}
    demand = _Demand(users)
    for load in loads:
        assert isinstance(load, I.Load)
        casts = [u for u, _ in users.get(load, ()) if u.opcode == "bitcast" and _width(u.type) is not None]
        views = {load: 0} | {view: start for cast in casts for view, start in _views(cast, users)}
        used = {v: demand.of_uses(load, casts) if v is load else demand.of(v) for v in views}
        numbers = reduce(or_, (_lanes(used[v], v.type) << at for v, at in views.items() if T.is_float(v.type)), 0)
        integers = reduce(or_, (used[v] << at for v, at in views.items() if not T.is_float(v.type)), 0)
        is_mixed = numbers and integers and not numbers & integers
        if is_mixed or 0 < _lanes(numbers | integers, load.type) < _all(load.type):
            changes.update({view: _Lanes(load, view.type, used[view], start) for view, start in views.items()})
    return changes


def _views(cast: I.Instruction, users: Users) -> list[tuple[I.Instruction, int]]:
    """The parts of a load that are used one by one, and the bits before each: those that are cut out of a word that is
    as wide as the load, so that what one of them holds says nothing of the others; else the word itself."""
    found: list[tuple[I.Instruction, int]] = []
    pending = [(user, 0) for user, _ in users.get(cast, ())] if isinstance(cast.type, T.IntType) else []
    while pending:
        user, start = pending.pop()
        shift = int_value(user.operands[1]) if user.opcode == "lshr" else None
        if user.opcode == "trunc" and _width(user.type) is not None:
            found.append((user, start))
        elif shift is not None and shift >= 0 and shift % 8 == 0 and user.type == cast.type:
            pending += [(following, start + shift) for following, _ in users.get(user, ())]
        else:
            return [(cast, 0)]
    width = _width(cast.type) or 0
    inside = all(start + (_width(view.type) or 0) <= width for view, start in found)
    return found if found and inside else [(cast, 0)]


def _is_candidate(load: I.Instruction) -> bool:
    if not isinstance(load, I.Load) or load.ordering or "volatile" in load.flags:
        return False
    return isinstance(load.type, T.VectorType) and _width(load.type) is not None


def _all(type_: T.Type) -> int:
    width = _width(type_)
    assert width is not None
    return (1 << width) - 1


def _lanes(bits: int, type_: T.Type) -> int:
    """All bits of the lanes of which some are given."""
    lane = _width(T.scalar(type_))
    assert lane is not None
    whole, count = (1 << lane) - 1, type_.count if isinstance(type_, T.VectorType) else 1
    return sum(whole << (i * lane) for i in range(count) if bits >> (i * lane) & whole)


class _Lanes:
    """Builds a value of some type from the bits behind an address, from some bit on, that are used; the others are
    zero."""

    def __init__(self, load: I.Load, type_: T.Type, bits: int, start: int) -> None:
        self._load = load
        self._type = type_
        self._bits = bits
        self._start = start // 8

    def __call__(self, at: Builder) -> Value:
        vector = self._type
        if not isinstance(vector, T.VectorType):
            if self._bits == _all(vector) and vector in _LOADED_WHOLE:
                return at.load(vector, *self._address(at, self._start))
            width = _all(vector).bit_length()
            vector = T.VectorType(width // 64, T.I64) if width % 64 == 0 else T.VectorType(width // 8, T.I8)
        result: Value = zero(vector)
        for start, count in self._runs(vector):
            result = self._with_run(at, result, vector, start, count)
        return result if vector == self._type else at.cast("bitcast", result, self._type)

    def _runs(self, vector: T.VectorType) -> Iterator[tuple[int, int]]:
        """The first of some lanes that are used, side by side, and how many these are."""
        lane = _all(vector.element)
        used = [self._bits >> (i * lane.bit_length()) & lane != 0 for i in range(vector.count)]
        for is_used, run in groupby(range(vector.count), used.__getitem__):
            if is_used:
                lanes = list(run)
                yield lanes[0], len(lanes)

    def _with_run(self, at: Builder, result: Value, vector: T.VectorType, start: int, count: int) -> Value:
        offset = self._start + start * _all(vector.element).bit_length() // 8
        pointer, known = self._address(at, offset)
        if count == 1:
            element = at.load(vector.element, pointer, known)
            return at.insert(I.InsertElement(vector, "insertelement", [result, element, const_int(T.I64, start)]))
        part = at.load(T.VectorType(count, vector.element), pointer, known)
        inside = range(start, start + count)
        wide = shuffled(at, part, None, [i - start if i in inside else -1 for i in range(vector.count)])
        return shuffled(at, result, wide, [i + vector.count if i in inside else i for i in range(vector.count)])

    def _address(self, at: Builder, offset: int) -> tuple[Value, int]:
        """That of a byte behind the load's own, and its alignment."""
        align = self._load.align or 1
        return at.offset(self._load.operands[0], offset), min(align, offset & -offset) if offset else align


class _Demand:
    """Which bits of each value are used, as a number with so many bits."""

    def __init__(self, users: Users) -> None:
        self._users = users
        self._found: dict[Value, int] = {}

    def of(self, value: Value) -> int:
        if value not in self._found:
            self._found[value] = self.of_uses(value)
        return self._found[value]

    def of_uses(self, value: Value, but: Sequence[I.Instruction] = ()) -> int:
        """Of a value by all its users except some."""
        total = 0
        for user, index in self._users.get(value, ()):
            if user not in but:
                total |= self._by(user, index, value)
        return total

    def _by(self, user: I.Instruction, index: int, value: Value) -> int:
        width = _width(value.type)
        if width is None:
            return -1
        whole = (1 << width) - 1
        result = _width(user.type)
        if result is None:
            return whole
        match user:
            case I.ExtractElement() | I.InsertElement() | I.ShuffleVector():
                return sum(bits << to for bits, to in self._of_lanes(user, index, whole))
            case I.Cast(opcode="bitcast" | "trunc" | "zext") if user.opcode == "bitcast" or _is_scalar(user):
                return self.of(user) & whole
            case I.BinaryOp(opcode="lshr" | "shl" | "and") if _is_scalar(user) and index == 0:
                number = int_value(user.operands[1])
                if number is None or number < 0:
                    return whole
                used = self.of(user)
                if user.opcode == "and":
                    return used & number
                return (used << number if user.opcode == "lshr" else used >> number) & whole
            case _:
                return whole

    def _of_lanes(self, user: I.Instruction, index: int, whole: int) -> Iterator[tuple[int, int]]:
        """Bits that are used of an operand, and how far up they are in it."""
        vector = user.operands[0].type
        assert isinstance(vector, T.VectorType)
        lane = _width(vector.element)
        place = None if isinstance(user, I.ShuffleVector) else int_value(user.operands[-1])
        if lane is None or (place is None and not isinstance(user, I.ShuffleVector)):
            yield whole, 0
            return
        used, one = self.of(user), (1 << lane) - 1
        if isinstance(user, I.ShuffleVector):
            first = index * vector.count
            # Sums of bits would carry: each lane is counted once.
            chosen: dict[int, int] = {}
            for to, lane_ in enumerate(user.mask):
                if first <= lane_ < first + vector.count:
                    chosen[lane_ - first] = chosen.get(lane_ - first, 0) | (used >> (to * lane) & one)
            yield from ((bits, at * lane) for at, bits in chosen.items())
            return
        assert place is not None
        if isinstance(user, I.ExtractElement):
            yield (used, place * lane) if index == 0 else (whole, 0)
        elif index == 0:
            yield used & ~(one << (place * lane)), 0
        else:
            yield (used >> (place * lane) & one, 0) if index == 1 else (whole, 0)


def _is_scalar(instruction: I.Instruction) -> bool:
    return isinstance(instruction.type, T.IntType) and isinstance(instruction.operands[0].type, T.IntType)


def _width(type_: T.Type) -> int | None:
    """How many bits a value has, where that is told by its type and they are whole bytes."""
    match type_:
        case T.IntType(bits) if bits % 8 == 0:
            return bits
        case T.FloatType(kind):
            return _NUMBERS.get(kind)
        case T.VectorType(count, element, False):
            lane = _width(element)
            return None if lane is None else lane * count
        case _:
            return None
