"""Of which kinds values are kept in memory that several kinds use, so that each reads its own.

    int *count = pool + at;   count[k] = 0;  ...  count[k]++;       integers are stored, and read again
    int *q = (int *)(a + at); *q += 0x100000;                       words of doubles: there is nothing else to be read

The source says of which type each access is. At places of which it is not known whether they are one, that is believed
of a kind (numbers of one size, or integers) which a program both stores there and reads: where it stores nothing but
what it has made of such reads, these have read something else.

    fact        "may be of its own kind": constants, and what is computed of such values and constants alone
    memory      a load, of what stores of its kind leave where it may be; of anything where memory is filled by other
                means: given, copied to (of numbers where the copy is said to be of such), written by calls or by
                accesses of no type; of zeros where memory is cleared, but not as an integer of the length of a number,
                whose derivative is told as it runs
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Literal, TypeAlias

from jax_enzyme.analysis.accesses import accesses, clears
from jax_enzyme.analysis.byte_ranges import ByteRanges
from jax_enzyme.analysis.fixpoint import fixpoint
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.object_bytes import Bytes, Place
from jax_enzyme.analysis.objects import MemoryObject, allocates_zeros, call_effect, is_copy
from jax_enzyme.analysis.tbaa import copied_type
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.reach import Reached
from jax_enzyme.ir.values import Constant, Value
from jax_enzyme.remembered import remembered
from jax_enzyme.rules.effects import Effect

_Node: TypeAlias = Value | Place
"""A value, or where one is stored."""
_Fill: TypeAlias = T.Type | Literal["zeros"] | None
"""What memory is filled with: numbers or integers of a type, zeros, or anything."""
_WORD = 8
_COMPUTES = (I.BinaryOp, I.UnaryOp, I.Cast, I.GetElementPtr)


class KeptKinds:
    """Of the functions of one `PointsTo`."""

    def __init__(self, points_to: PointsTo, ranges: ByteRanges) -> None:
        self._points_to, self._ranges = points_to, ranges
        self._read, self._filled = set[MemoryObject](), dict[MemoryObject, set[_Fill]]()
        for access in (a for f in points_to.functions for a in accesses(points_to, f, ranges.layout)):
            if not (access.kills or isinstance(access.instruction, I.Load | I.Store)):
                self._read |= access.objects if access.reads else set()
                for item in access.objects if access.writes else ():
                    self._filled.setdefault(item, set()).add(self._fill(access.instruction))

    def are_at(self, item: MemoryObject, part: Bytes) -> bool:
        """Whether values of a part's kind may be kept where it is."""
        loaded = self._ranges.loads.get(item, ())
        is_read = item in self._read or item.is_given or any(_is_alike(part, p) for p in loaded)
        return is_read and self._are_stored(item, part)

    def _are_stored(self, item: MemoryObject, part: Bytes) -> bool:
        return self._is_filled_with(item, part) or any(self._is_own[item, p] for p in self._stored(item, part))

    def _fill(self, instruction: I.Instruction) -> _Fill:
        if clears(instruction):
            return "zeros"
        is_told = isinstance(instruction, I.CallBase) and is_copy(instruction)
        return copied_type(self._points_to.module, instruction) if is_told else None

    @remembered
    def _is_filled_with(self, item: MemoryObject, part: Bytes) -> bool:
        """Whether values of a part's kind may be in memory that is filled by other means than stores."""
        fills = {*self._filled.get(item, ()), *_at_first(item)}
        if None in fills or ("zeros" in fills and (part.number or part.size < _WORD)):
            return True
        sizes = {self._ranges.layout.store_size(kind) for kind in fills if isinstance(kind, T.FloatType)}
        return part.size in sizes if part.number else any(T.is_int(kind) for kind in fills if isinstance(kind, T.Type))

    @remembered
    def _stored(self, item: MemoryObject, part: Bytes) -> tuple[Bytes, ...]:
        """What is stored that a part may be."""
        return tuple(p for p in self._ranges.stores.get(item, ()) if _is_alike(part, p))

    @cached_property
    def _is_own(self) -> Mapping[_Node, bool]:
        """Whether a value may be of its own kind, or one that is stored somewhere."""
        places = [(item, part) for item, parts in self._ranges.stores.items() for part in parts]
        sources: dict[_Node, list[_Node]] = {}
        onward: dict[_Node, list[_Node]] = {}
        nodes = Reached[_Node](places)
        for node in nodes:
            sources[node] = found = list(self._from(node))
            nodes.add(found)
            for source in found:
                onward.setdefault(source, []).append(node)

        def may_be_own(node: _Node, facts: Mapping[_Node, bool]) -> bool:
            match node:
                case I.Load():
                    return self._is_filled(node) or any(facts[source] for source in sources[node])
                case I.Cast(opcode="bitcast") if T.is_float(node.type) != T.is_float(node.operands[0].type):
                    return False
                case I.Instruction() if isinstance(node, _COMPUTES):
                    return all(isinstance(v, Constant) or facts[v] for v in sources[node])
                case _:
                    return not sources[node] or any(facts[source] for source in sources[node])

        return fixpoint([*nodes.all][::-1], lambda node: onward.get(node, ()), may_be_own, False)

    def _from(self, node: _Node) -> Iterator[_Node]:
        """What decides about a value, or about what is stored at a place."""
        match node:
            case (item, part):
                yield from (store.operands[0] for store in self._ranges.stores[item][part])
            case I.Load():
                for item, part in self._ranges.accessed(node):
                    yield from ((item, p) for p in self._stored(item, part))
            case I.Instruction() if isinstance(node, _COMPUTES) or I.merged(node):
                yield from (I.merged(node) or node.operands)
            case _:
                pass

    def _is_filled(self, load: I.Load) -> bool:
        """Whether a load is of memory that is filled by other means than stores."""
        places = self._ranges.accessed(load)
        return not places or any(self._is_filled_with(item, part) for item, part in places)


def _at_first(item: MemoryObject) -> Sequence[_Fill]:
    """What memory holds before anything is stored there."""
    match item.site:
        case I.Alloca():
            return ()
        case I.CallBase() if call_effect(item.site) is Effect.ALLOCATE:
            return ["zeros"] if allocates_zeros(item.site) else ()
        case _:
            return [None]


def _is_alike(one: Bytes, other: Bytes) -> bool:
    """Whether two parts may be of one kind, and at one place. What has no type may be of any kind, as an integer."""
    is_one_kind = one.size == other.size and one.number == other.number
    return one.meets(other) and (is_one_kind or not (other.typed or other.number))
