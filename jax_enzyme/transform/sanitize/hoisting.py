"""The checks of a loop's version without checks, made in front of it; see `versions` and `affine`.

Where a loop reads a pointer that does not change (`row = a[i]`), it is read in front of it, if nothing that the loop
writes lies there. Reads of what nothing wrote are noted in the loop, and looked for behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from jax_enzyme.analysis.loops import Loop
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.values import BasicBlock, ConstantNull, Value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.transform.sanitize.accesses import Access, accesses, range_of
from jax_enzyme.transform.sanitize.affine import Affine, Counter
from jax_enzyme.transform.sanitize.lookup import unknown_record
from jax_enzyme.transform.sanitize.provenance import Found, Known, Place, Provenance
from jax_enzyme.transform.sanitize.scalars import holds_pattern, pattern_of
from jax_enzyme.transform.sanitize.versions import Version, counters_in, leaves_objects, split_loops

_ZERO = const_int(T.I64, 0)
_WHERE = ("dbg", "tbaa", "alias.scope", "noalias")  # what is said of where a read lies, and not of what it gives
_ANYWHERE = Known(ConstantNull(T.PTR), 0, "", 1, False)
"""Where nothing that is read in front of a loop is known to be apart from."""


@dataclass(frozen=True, eq=False)
class Range:
    """The least and the greatest address of an access, which lies in one object."""

    first: Value
    last: Value
    size: int
    place: Place


class Hoisting:
    """`places`: the accesses that are checked in front of their loops, and their objects; `own`: what has been put
    there. `versions` are the loops."""

    def __init__(self, provenance: Provenance) -> None:
        self.places: dict[I.Instruction, Place] = {}
        self.own: set[I.Instruction] = set()
        self.start: list[I.Instruction] = []
        self._provenance = provenance
        self._order = {block: n for n, block in enumerate(provenance.function.blocks)}
        self._layout, self._records = provenance.layout, provenance.records
        kind = T.FunctionType(T.I64, (T.I64, T.I64))
        self._least = Declarations(provenance.runtime.module).function("llvm.usub.sat.i64", kind)
        self._spare: Value | None = None
        self._kept: dict[Version, dict[Value, Value]] = {}
        self._originals: dict[I.Instruction, Access] = {}
        self.versions = split_loops(provenance.function, self._is_worth)
        for version in self.versions:
            self._say(version)

    # -- what can be said

    def _accesses(self, loop: Loop) -> list[Access]:
        blocks = sorted(loop.blocks, key=self._order.__getitem__)
        own = [i for block in blocks for i in block.instructions if i not in self.own]
        return list(accesses(own, self._layout))

    def _is_worth(self, loop: Loop, counter: Counter) -> bool:
        affine = self._affine(loop, {loop: counter}, lambda load, _: load)
        return any(self._is_linear(affine, access) for access in self._accesses(loop))

    def _affine(self, loop: Loop, counters: Mapping[Loop, Counter], load: Callable[[I.Load, Value], Value]) -> Affine:
        """Nothing is read in front of a loop that may write anywhere."""
        affine = Affine(loop, counters, self._layout, load)
        writes = [a for a in self._accesses(loop) if a.writes]
        known = all(affine.is_linear(a.pointer) or affine.is_fixed(affine.root(a.pointer)) for a in writes)
        return affine if known else Affine(loop, counters, self._layout, None)

    @staticmethod
    def _is_linear(affine: Affine, access: Access) -> bool:
        """Whether an access is at a linear address, and only where counters are inside of their bounds."""
        plain = isinstance(access.instruction, I.Load | I.Store) and isinstance(access.size, int)
        if not plain or affine.is_early(access.instruction):
            return False
        return affine.is_linear(access.pointer) and affine.is_fixed(affine.root(access.pointer))

    # -- saying it

    def _say(self, version: Version) -> None:
        own, linear = self._claim(version.loop, {version.loop: version.counter})
        version.choice.operands[0] = _all(own)
        loads, outer = own.loads, self._around(version, own.loads)
        version.put_in_front(own.at.block.instructions)
        self.own.update(own.at.block.instructions)
        if outer is not None:
            loop, nest = outer
            loads = version.pass_by(_all(nest), {old: (nest.loads[old], new) for old, new in loads.items()})
            assert loop.preheader is not None
            loop.preheader.instructions[-1:-1] = nest.at.block.instructions
            self.own.update(nest.at.block.instructions)
        _replace(version, {version.copies[old]: new for old, new in loads.items()})
        self._kept[version] = self._keep(version, loads)
        for access in linear:
            root = own.root(access.pointer)
            place = self._provenance.of(loads[root] if isinstance(root, I.Load) and root in loads else root)
            assert place is not None
            self.places[version.copies[access.instruction]] = place
            self._originals[version.copies[access.instruction]] = access

    def _claim(self, loop: Loop, counters: Mapping[Loop, Counter]) -> tuple[Affine, list[Access]]:
        """What has to hold in front of a loop, for the accesses that are linear in it."""
        slots: list[Range] = []
        writes: list[Range | Place] = []
        linear: list[Access] = []
        affine = self._affine(loop, counters, lambda old, address: self._read(affine, old, address, slots))
        for access in self._accesses(loop):
            root = affine.root(access.pointer)
            place = self._provenance.of(affine.fixed(root)) if affine.is_fixed(root) else None
            if place is None:
                if access.writes:
                    writes.append(_ANYWHERE)
                continue
            if self._is_linear(affine, access):
                linear.append(access)
                span = self._span(affine, access, place)
                if access.writes:
                    writes.append(span)
            elif access.writes:
                writes.append(place)
        for slot in slots:
            for write in writes:
                affine.demand(lambda at, s=slot, w=write: self._apart(at, s, w))
        return affine, linear

    def _around(self, version: Version, loads: Mapping[I.Instruction, Value]) -> tuple[Loop, Affine] | None:
        """The outermost loop in front of which all that is checked in front of a loop can be, and what has to hold
        there."""
        found: Loop | None = None
        wanted = self._accesses(version.loop)
        own = self._affine(version.loop, {version.loop: version.counter}, lambda load, _: load)
        linear = [access for access in wanted if self._is_linear(own, access)]
        for loop in list(version.loop.ancestors)[1:]:
            counters = counters_in(loop)
            if loop not in counters or not leaves_objects(loop):
                break
            affine = self._affine(loop, counters, lambda load, _: load)
            fixed = all(affine.is_fixed(load) for load in loads)
            if not fixed or not all(self._is_linear(affine, access) for access in linear):
                break
            found = loop
        if found is None:
            return None
        affine, _ = self._claim(found, counters_in(found))
        for load in loads:
            affine.fixed(load)
        return found, affine

    def span_of(self, load: I.Instruction, version: Version) -> tuple[Range, list[I.Instruction]]:
        """Where a load of a loop's version without checks reads, and what says so at a place behind the loop."""
        access, kept = self._originals[load], self._kept[version]
        affine = Affine(
            version.loop,
            {version.loop: version.counter},
            self._layout,
            lambda old, _: affine.at.load(old.type, kept[old], 8),
        )
        assert isinstance(access.size, int)
        first, last = affine.interval(access.pointer)
        place, root = self.places[load], affine.root(access.pointer)
        if root in kept:
            place = Found(self._provenance.asked(affine.at, affine.fixed(root)))
        return Range(first, last, access.size, place), affine.at.block.instructions

    def _keep(self, version: Version, loads: Mapping[I.Instruction, Value]) -> dict[Value, Value]:
        """Variables in which what a version reads in front of it is kept, for what is said behind both versions."""
        kept: dict[Value, Value] = {}
        start, at = Builder(BasicBlock()), Builder(BasicBlock())
        for old, value in loads.items():
            kept[old] = start.alloca(value.type, align=8)
            at.store(value, kept[old], 8)
        self.start += start.block.instructions
        version.start.instructions[-1:-1] = at.block.instructions
        self.own.update(at.block.instructions)
        return kept

    def _read(self, affine: Affine, old: I.Load, address: Value, slots: list[Range]) -> Value:
        """A read in front of the loop, where what is read is inside of its object."""
        at, place = affine.at, self._provenance.of(address) or _ANYWHERE
        where = at.cast("ptrtoint", address, T.I64)
        slot = Range(where, where, self._layout.store_size(old.type), place)
        slots.append(slot)
        inside = self._inside(at, slot)
        affine.demand(lambda _: inside)
        made = at.load(old.type, at.select(inside, address, self._safe()), old.align)
        made.metadata = [(kind, node) for kind, node in old.metadata if kind in _WHERE]
        if pattern_of(old.type) is not None:
            affine.demand(lambda at: at.icmp("eq", holds_pattern(at, made), const_int(T.I1, 0)))
        return made

    def _span(self, affine: Affine, access: Access, place: Place) -> Range:
        """Where a linear access lies, which is demanded to be inside of its object."""
        assert isinstance(access.size, int)
        first, last = affine.interval(access.pointer)
        span = Range(first, last, access.size, place)
        inside = self._inside(affine.at, span)
        affine.demand(lambda _: inside)
        if isinstance(place, Found) and pattern_of(access.instruction.type) and not access.writes:
            unknown = unknown_record(affine.at, self._provenance.tables())
            affine.demand(lambda at: at.icmp("ne", place.record, unknown))
        return span

    def _inside(self, at: Builder, span: Range) -> Value:
        base, extent = range_of(at, span.place, self._records)
        offsets = [at.binary("sub", address, base) for address in dict.fromkeys((span.first, span.last))]
        if isinstance(span.place, Known):
            room: Value = const_int(T.I64, max(span.place.extent - span.size + 1, 0))
        else:
            room = at.call(self._least, [extent, const_int(T.I64, span.size - 1)])
        result = at.icmp("ult", offsets[0], room)
        for offset in offsets[1:]:
            result = at.binary("and", result, at.icmp("ult", offset, room))
        return result

    def _apart(self, at: Builder, slot: Range, write: Range | Place) -> Value:
        """Whether what a loop writes lies elsewhere than what has been read in front of it."""
        if write is _ANYWHERE:
            return const_int(T.I1, 0)
        if not isinstance(write, Range):
            mine, its = range_of(at, slot.place, self._records)[0], range_of(at, write, self._records)[0]
            return at.binary("and", at.icmp("ne", mine, its), at.icmp("ne", its, _ZERO))
        behind = at.binary("add", write.last, const_int(T.I64, write.size))
        before = at.icmp("ule", at.binary("add", slot.first, const_int(T.I64, slot.size)), write.first)
        return at.binary("or", before, at.icmp("ule", behind, slot.first))

    def _safe(self) -> Value:
        """Memory that may be read in any case."""
        if self._spare is None:
            at = Builder(BasicBlock())
            self._spare = at.alloca(T.I64, align=16)
            at.store(_ZERO, self._spare, 8)
            self.start += at.block.instructions
        return self._spare


def _all(affine: Affine) -> Value:
    """Whether all that is demanded holds."""
    holds: Value = const_int(T.I1, 1)
    for condition in affine.conditions:
        holds = affine.at.binary("and", holds, condition)
    return holds


def _replace(version: Version, replaced: dict[I.Instruction, Value]) -> None:
    for block in (*version.blocks, *version.loop.exits):
        for instruction in block.instructions:
            instruction.operands = [
                replaced.get(v, v) if isinstance(v, I.Instruction) else v for v in instruction.operands
            ]
    for block in version.blocks:
        block.instructions = [i for i in block.instructions if i not in replaced]
