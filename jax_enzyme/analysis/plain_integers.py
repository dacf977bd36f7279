"""Where a program keeps integers that no number's bits went into, and reads them again.

    p[k] = k;  s += p[k];                 integers: by C's rules no number lies there then, whatever did before
    p[1] = (p[1] & 0xfffff) | 0x3ff00000  words of a number, where numbers are kept at this place and no other integers

Bits may come from words that are read where numbers are, and whatever is computed of them, by way of memory too: of
an object that such a word is stored to or copied to, every integer may be one (as in `ad.facts.tagged`, where it is
known which numbers vary).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.number_bytes import ByteRanges, Bytes, OrderedSet
from jax_enzyme.analysis.objects import MemoryObject, called_routine, copy_operands, is_copy
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import Value

_Accesses: TypeAlias = dict[MemoryObject, dict[Bytes, list[I.Instruction]]]


class PlainIntegers:
    """Of the functions of one `PointsTo`."""

    def __init__(self, points_to: PointsTo, ranges: ByteRanges) -> None:
        self._points_to, self._ranges = points_to, ranges
        self._numbers: dict[MemoryObject, OrderedSet] = {}
        self._loads: _Accesses = {}
        self._stores: _Accesses = {}
        self._onward: dict[Value, dict[Value | MemoryObject, None]] = {}
        self._copies: dict[MemoryObject, dict[MemoryObject, None]] = {}
        for instruction in points_to.instructions():
            self._note(instruction)
        self._bits = reached(self._begin(), self._goes_on)

    def are_at(self, item: MemoryObject, part: Bytes) -> bool:
        """Whether all of a part of an object is written and read as such an integer."""
        stores = self._stores.get(item, {})
        plain = any(part.is_at(p) and any(s.operands[0] not in self._bits for s in own) for p, own in stores.items())
        return plain and any(map(part.is_at, self._loads.get(item, ())))

    def _note(self, instruction: I.Instruction) -> None:
        match instruction:
            case I.Load() | I.Store():
                self._note_access(instruction)
            case I.CallBase() if is_copy(instruction):
                target, source, _ = copy_operands(instruction)
                for item in self._points_to.of(source):
                    self._copies.setdefault(item, {}).update(dict.fromkeys(self._points_to.of(target)))
            case I.CallBase():
                self._note_call(instruction)
            case _ if T.is_int(instruction.type) and not isinstance(instruction, I.Compare):
                for operand in I.merged(instruction) or instruction.operands:
                    self._onward.setdefault(operand, {})[instruction] = None
            case _:
                pass

    def _note_access(self, access: I.Load | I.Store) -> None:
        pointer, type_ = access.operands[-1], I.accessed_value(access).type
        if T.is_pointer(type_):
            return
        for item, part in self._ranges.accessed(access, pointer, type_):
            if part.number:
                self._numbers.setdefault(item, {})[part] = None
                continue
            accesses = self._loads if isinstance(access, I.Load) else self._stores
            accesses.setdefault(item, {}).setdefault(part, []).append(access)
            if isinstance(access, I.Store):
                self._onward.setdefault(access.operands[0], {})[item] = None

    def _note_call(self, call: I.CallBase) -> None:
        for callee in self._points_to.callees(call):
            for parameter, argument in zip(callee.arguments, call.arguments, strict=False):
                self._onward.setdefault(argument, {})[parameter] = None
            for value in callee.returned():
                self._onward.setdefault(value, {})[call] = None
        if (routine := called_routine(call)) is not None:
            for index in routine.floats:
                for item, part in self._ranges.called(call.operands[index], routine.scalar):
                    self._numbers.setdefault(item, {})[part] = None
        elif T.is_int(call.type):
            for argument in call.arguments:
                self._onward.setdefault(argument, {})[call] = None

    def _begin(self) -> Iterator[Value | MemoryObject]:
        for value in self._onward:
            if isinstance(value, I.Cast) and value.opcode == "bitcast" and T.is_float(value.operands[0].type):
                yield value
        for item, loads in self._loads.items():
            numbers = self._numbers.get(item, {})
            for part, own in loads.items():
                if any(map(part.certainly_meets, numbers)):
                    yield from own

    def _goes_on(self, found: Value | MemoryObject) -> Iterator[Value | MemoryObject]:
        if isinstance(found, MemoryObject):
            yield from (load for own in self._loads.get(found, {}).values() for load in own)
            yield from self._copies.get(found, ())
        else:
            yield from self._onward.get(found, ())
