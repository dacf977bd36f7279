"""The checks of a loop's version without checks, made in front of it; see `versions` and `affine`.

Where a loop reads a pointer that does not change (`row = a[i]`), it is read in front of it, if nothing that the loop
writes lies there. Reads of what nothing wrote are noted in the loop, and told behind it (`deferred`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.dominators import Dominators
from jax_enzyme.analysis.guards import Guards
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import uses
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import BasicBlock, ConstantNull, Value, int_value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.transform.loop_hints import ask
from jax_enzyme.transform.rewriting import replace_operands
from jax_enzyme.transform.sanitize.accesses import Access, accesses, bytes_behind, range_of
from jax_enzyme.transform.sanitize.affine import Affine
from jax_enzyme.transform.sanitize.apart import Groups, lie_apart
from jax_enzyme.transform.sanitize.counting import Counter
from jax_enzyme.transform.sanitize.endings import iterations
from jax_enzyme.transform.sanitize.guarded import Bound, bounds_of
from jax_enzyme.transform.sanitize.lookup import unknown_record
from jax_enzyme.transform.sanitize.narrow import may_be_pattern
from jax_enzyme.transform.sanitize.provenance import Found, Known, Place, Provenance, is_private
from jax_enzyme.transform.sanitize.scalars import holds_pattern, least_of_narrow, pattern_of
from jax_enzyme.transform.sanitize.tables import least_most
from jax_enzyme.transform.sanitize.versions import Round, Version, split_loops

_MOST_UNROLLED = 800
_FIRST = 1 << 8
_WORK = (I.BinaryOp, I.UnaryOp, I.CallBase, I.Load, I.Store, I.Select)
_Reads = Callable[[I.Load, Value], Value]
_Scans = Callable[[I.Load], tuple[Value, Value]]
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


@dataclass(frozen=True, eq=False)
class Rows:
    """Accesses from `low` to `high` behind each pointer of a table. In `room` is the address of the first one's first
    byte, and that behind the last one's last."""

    table: Range
    stride: int
    low: Value
    high: Value
    size: int
    room: Value


class Hoisting:
    """`places`: the accesses that are checked in front of their loops, and their objects; `own`: what has been put
    there. `versions` are the loops."""

    def __init__(self, provenance: Provenance) -> None:
        self.places: dict[I.Instruction, Place | Rows] = {}
        self.own: set[I.Instruction] = set()
        self.start: list[I.Instruction] = []
        self._provenance = provenance
        self._order = {block: n for n, block in enumerate(provenance.function.blocks)}
        self._layout, self._records = provenance.layout, provenance.records
        kind = T.FunctionType(T.I64, (T.I64, T.I64))
        self._least = Declarations(provenance.runtime.module).function("llvm.usub.sat.i64", kind)
        self._spare: Value | None = None
        users = uses(provenance.function)
        variables = [i for i in provenance.function.instructions() if isinstance(i, I.Alloca)]
        private = [v for v in variables if is_private(v, users) and int_value(v.operands[0]) is not None]
        self._addresses: dict[Value, Value] = {v: const_int(T.I64, n << 32) for n, v in enumerate(private, _FIRST)}
        self.versions: list[Version] = []
        for round_ in Round:
            self._scans = round_ is not Round.INNERMOST
            made = split_loops(provenance.function, self.versions, round_, self._is_worth)
            apart = {one: one.again(provenance.function) for one in made if self._writes_rows(one)}
            self.versions += [*made, *apart.values()]
            cfg = Cfg(provenance.function)
            self._guards = Guards(cfg, Dominators(cfg))
            self._home = {i: block for block in cfg.rpo for i in block.instructions}
            for version in made:
                self._say(version, apart.get(version))

    # -- what can be said

    def _accesses(self, loop: Loop) -> list[Access]:
        blocks = sorted(loop.blocks, key=self._order.__getitem__)
        own = [i for block in blocks for i in block.instructions if i not in self.own]
        return list(accesses(own, self._layout))

    def _is_worth(self, loop: Loop, counters: Mapping[Loop, Counter]) -> bool:
        """Whether something can be looked at in front of a nest, and all that can be in front of innermost loops."""
        whole = self._whole(loop, counters)
        inner = [one for one in reached([loop], lambda around: around.children) if not one.children]
        for one in inner if loop.children else ():
            own = self._affine(one, {k: c for k, c in counters.items() if k is one}, _unread, None)
            linear = [access for access in self._accesses(one) if self._is_linear(own, access)]
            if not all(self._is_linear(whole, access) for access in linear):
                return False
        return any(self._is_linear(whole, access) for access in self._accesses(loop))

    def _whole(self, loop: Loop, counters: Mapping[Loop, Counter]) -> Affine:
        """What is linear in a nest, before anything is read in front of it."""
        return self._affine(loop, counters, _unread, _unscanned if self._scans else None)

    def _affine(self, loop: Loop, counters: Mapping[Loop, Counter], load: _Reads, scan: _Scans | None) -> Affine:
        """Nothing is read in front of a loop that may write anywhere."""
        writes = [a for a in self._accesses(loop) if a.writes]
        written: dict[Value, list[range]] = {}
        for write in writes:
            place = bytes_behind(write.pointer, write.size, self._layout) if isinstance(write.size, int) else None
            if place is not None:
                written.setdefault(place[0], []).append(place[1])
        affine = Affine(loop, counters, self._layout, load, scan, self._addresses, written)
        known = all(affine.is_linear(a.pointer) or affine.is_fixed(affine.root(a.pointer)) for a in writes)
        return affine if known else Affine(loop, counters, self._layout, None, None, self._addresses)

    @staticmethod
    def _is_linear(affine: Affine, access: Access) -> bool:
        """Whether an access is at a linear address, and only where counters are inside of their bounds."""
        plain = isinstance(access.instruction, I.Load | I.Store) and isinstance(access.size, int)
        if not plain or affine.is_early(access.instruction, access.pointer) or not affine.is_linear(access.pointer):
            return False
        root = affine.root(access.pointer)
        return affine.is_fixed(root) or affine.is_row(root)

    def _writes_rows(self, version: Version) -> bool:
        """Whether a nest reads rows of a table, and writes to them or elsewhere."""
        affine = self._whole(version.loop, version.counters)
        linear = [access for access in self._accesses(version.loop) if self._is_linear(affine, access)]
        rows = any(affine.is_row(affine.root(access.pointer)) for access in linear)
        return rows and any(access.writes for access in linear)

    # -- saying it

    def _say(self, version: Version, apart: Version | None) -> None:
        """`apart` is the same for where groups of accesses lie apart."""
        own, claimed, by_tables = self._claim(version.loop, version.counters)
        version.reads = bool(own.loads) or by_tables
        version.choice.operands[0] = own.holds()
        if apart is not None:
            self._say_apart(own, claimed, apart)
        version.put_in_front(own.at.block.instructions)
        self.own.update(own.at.block.instructions)
        for one in (version,) if apart is None else (version, apart):
            one.by_tables = by_tables
            _replace(one, {one.twins[old]: new for old, new in own.loads.items()})
            self._unroll(one)
            for access, span in claimed:
                self.places[_twin(one, access)] = span if isinstance(span, Rows) else span.place

    def _say_apart(self, affine: Affine, claimed: list[tuple[Access, Range | Rows]], version: Version) -> None:
        """Lets a version be entered where what it writes lies apart from all else, which is said of its accesses."""
        groups = Groups(affine.at)
        for access, span in claimed:
            root = affine.root(access.pointer)
            by_rows = isinstance(span, Rows)
            table = affine.fixed(affine.root(root.operands[0]) if by_rows and isinstance(root, I.Load) else root)
            low, high = _ends(affine.at, span)
            groups.add((table, by_rows), _twin(version, access), low, high, writes=access.writes)
        version.choice.operands[0] = groups.apart()
        groups.say(self._provenance.runtime.module, version.start)

    def _unroll(self, version: Version) -> None:
        """Asks to unroll what is so without checks: notes are in the way of LLVM's own judgement."""
        for loop in reached([version.loop], lambda around: around.children):
            runs = iterations(loop)
            work = sum(isinstance(i, _WORK) for block in loop.blocks for i in block.instructions)
            twin = version.twins[loop.latches[0].terminator]
            if runs is not None and work * runs <= _MOST_UNROLLED:
                assert isinstance(twin, I.Instruction)
                ask(self._provenance.runtime.module, twin)

    def _claim(
        self, loop: Loop, counters: Mapping[Loop, Counter]
    ) -> tuple[Affine, list[tuple[Access, Range | Rows]], bool]:
        """What has to hold in front of a loop, for the accesses that are linear in it; where these lie; and whether
        tables are looked at for it."""
        slots: list[Range] = []
        writes: list[Range | Rows | Place] = []
        claimed: list[tuple[Access, Range | Rows]] = []
        tables: dict[Value, Range] = {}

        def table_of(load: I.Load) -> Range:
            if load not in tables:
                tables[load] = self._table(affine, load)
                slots.append(tables[load])
            return tables[load]

        affine = self._affine(
            loop,
            counters,
            lambda old, address: self._read(affine, old, address, slots),
            (lambda load: self._scan(affine, table_of(load), load)) if self._scans else None,
        )
        for access in self._accesses(loop):
            root = affine.root(access.pointer)
            place = self._provenance.of(affine.fixed(root)) if affine.is_fixed(root) else None
            span: Range | Rows | Place = place or _ANYWHERE
            if self._is_linear(affine, access) and place is not None:
                span = self._span(affine, access, place)
                claimed.append((access, span))
            elif self._is_linear(affine, access) and isinstance(root, I.Load) and not affine.is_fixed(root):
                span = self._rows(affine, access, root, table_of(root))
                claimed.append((access, span))
            if access.writes:
                writes.append(span)
        for slot in slots:
            for write in writes:
                if not isinstance(write, Rows):
                    affine.demand(lambda at, s=slot, w=write: self._apart(at, s, w))
        for write in writes if slots else ():
            if isinstance(write, Rows):
                self._rows_apart(affine, write, slots)
        return affine, claimed, bool(tables)

    # -- tables

    def _table(self, affine: Affine, load: I.Load) -> Range:
        """All that a load of a table may read, which is demanded to be inside of its object."""
        place = self._provenance.of(affine.fixed(affine.root(load.operands[0]))) or _ANYWHERE
        table = Range(*affine.interval(load.operands[0]), self._layout.store_size(load.type), place)
        inside = self._inside(affine.at, table)
        affine.demand(lambda _: inside)
        return table

    def _count(self, affine: Affine, table: Range, stride: int) -> Value:
        """How many elements are looked at: none where what holds so far does not let them be read."""
        at = affine.at
        way = at.binary("sdiv", at.binary("sub", table.last, table.first), const_int(T.I64, stride))
        return at.select(affine.holds(), at.binary("add", way, const_int(T.I64, 1)), _ZERO)

    def _scan(self, affine: Affine, table: Range, load: I.Load) -> tuple[Value, Value]:
        """The least and the greatest number in a table."""
        stride, at, room = affine.stride(load.operands[0]), affine.at, self._variable(2)
        root = affine.fixed(affine.root(load.operands[0]))
        first = at.gep(T.I8, root, [at.binary("sub", table.first, self._address(at, root))], ())
        function = least_most(self._provenance.runtime.module, table.size, stride)
        written = at.call(function, [first, self._count(affine, table, stride), room])
        affine.demand(lambda _: written)
        return at.load(T.I64, room, 8), at.load(T.I64, at.offset(room, 8), 8)

    def _rows(self, affine: Affine, access: Access, root: I.Load, table: Range) -> Rows:
        """Where an access by way of a table of pointers lies, which is demanded to be inside of their objects."""
        assert isinstance(access.size, int) and isinstance(access.instruction, I.Load | I.Store)
        low, high = affine.interval_where(access.pointer, self._bounds_at(access))
        rows = Rows(table, affine.stride(root.operands[0]), low, high, access.size, self._variable(2))
        align = const_int(T.I64, access.instruction.align or 1)
        inside = self._provenance.runtime.call(affine.at, "rows_inside", *self._words(affine, rows), align, rows.room)
        affine.demand(lambda at: at.icmp("ne", inside, const_int(T.I32, 0)))
        return rows

    def _words(self, affine: Affine, rows: Rows) -> list[Value]:
        count, (stride, size) = self._count(affine, rows.table, rows.stride), (rows.stride, rows.size)
        first, place = rows.table.first, rows.table.place
        if isinstance(place, Known) and place.base in self._addresses:
            way = affine.at.binary("sub", first, self._addresses[place.base])
            first = affine.at.binary("add", affine.at.cast("ptrtoint", place.base, T.I64), way)
        return [first, count, const_int(T.I64, stride), rows.low, rows.high, const_int(T.I64, size)]

    def _rows_apart(self, affine: Affine, rows: Rows, slots: list[Range]) -> None:
        """What is written by way of a table is demanded to lie elsewhere than what has been read in front."""
        at, room = affine.at, self._variable(2 * len(slots))
        for number, slot in enumerate(slots):
            for word, end in enumerate(_ends(at, slot)):
                at.store(end, at.offset(room, 16 * number + 8 * word), 8)
        words = [*self._words(affine, rows), room, const_int(T.I64, len(slots))]
        apart = self._provenance.runtime.call(at, "rows_apart", *words)
        affine.demand(lambda at: at.icmp("ne", apart, const_int(T.I32, 0)))

    def _variable(self, words: int) -> Value:
        at = Builder(BasicBlock())
        room = at.alloca(T.ArrayType(words, T.I64), align=8)
        self.start += at.block.instructions
        return room

    def _read(self, affine: Affine, old: I.Load, address: Value, slots: list[Range]) -> Value:
        """A read in front of the loop, where what is read is inside of its object."""
        at, place = affine.at, self._provenance.of(address) or _ANYWHERE
        where = affine.interval(old.operands[0])[0]
        slot = Range(where, where, self._layout.store_size(old.type), place)
        slots.append(slot)
        inside = self._inside(at, slot)
        affine.demand(lambda _: inside)
        made = at.load(old.type, at.select(inside, address, self._safe()), old.align)
        made.metadata = [(kind, node) for kind, node in old.metadata if kind in _WHERE]
        if pattern_of(old.type) is not None:
            affine.demand(lambda at: at.icmp("eq", holds_pattern(at, made), const_int(T.I1, 0)))
        elif least_of_narrow(old.type) is not None:
            affine.demand(lambda at: at.icmp("eq", may_be_pattern(at, made), const_int(T.I1, 0)))
        return made

    def _bounds_at(self, access: Access) -> list[Bound]:
        """What conditions say where an access is."""
        return bounds_of(self._guards.at(self._home[access.instruction]))

    def _span(self, affine: Affine, access: Access, place: Place) -> Range:
        """Where a linear access lies, which is demanded to be inside of its object."""
        assert isinstance(access.size, int)
        first, last = affine.interval_where(access.pointer, self._bounds_at(access))
        span = Range(first, last, access.size, place)
        inside = self._inside(affine.at, span)
        affine.demand(lambda _: inside)
        if isinstance(place, Found) and pattern_of(access.instruction.type) and not access.writes:
            unknown = unknown_record(affine.at, self._provenance.tables())
            affine.demand(lambda at: at.icmp("ne", place.record, unknown))
        return span

    def _inside(self, at: Builder, span: Range) -> Value:
        base, extent = self._range(at, span.place)
        offsets = [at.binary("sub", address, base) for address in dict.fromkeys((span.first, span.last))]
        if isinstance(span.place, Known):
            room: Value = const_int(T.I64, max(span.place.extent - span.size + 1, 0))
        else:
            room = at.call(self._least, [extent, const_int(T.I64, span.size - 1)])
        result = at.icmp("ult", offsets[0], room)
        for offset in offsets[1:]:
            result = at.binary("and", result, at.icmp("ult", offset, room))
        return result

    def _range(self, at: Builder, place: Place) -> tuple[Value, Value]:
        if isinstance(place, Known) and place.base in self._addresses:
            return self._addresses[place.base], const_int(T.I64, place.extent)
        return range_of(at, place, self._records)

    def _address(self, at: Builder, pointer: Value) -> Value:
        """What is said of where a pointer leads: of a variable whose address nobody is told, such that it may become a
        register, it is another, where no object lies that something else leads to."""
        return self._addresses.get(pointer) or at.cast("ptrtoint", pointer, T.I64)

    def _apart(self, at: Builder, slot: Range, write: Range | Place) -> Value:
        """Whether what a loop writes lies elsewhere than what has been read in front of it."""
        if write is _ANYWHERE:
            return const_int(T.I1, 0)
        if not isinstance(write, Range):
            mine, its = self._range(at, slot.place)[0], self._range(at, write)[0]
            return at.binary("and", at.icmp("ne", mine, its), at.icmp("ne", its, _ZERO))
        return lie_apart(at, _ends(at, slot), _ends(at, write))

    @cached_property
    def is_quick(self) -> Value:
        """Whether this is no run of the kernel that is to tell what another has noted."""
        at = Builder(BasicBlock())
        again = at.load(T.I32, at.offset(self._provenance.tables(), 4), 4)
        result = at.icmp("eq", at.binary("and", again, const_int(T.I32, 1)), const_int(T.I32, 0))
        self.start += at.block.instructions
        return result

    def _safe(self) -> Value:
        """Memory that may be read in any case."""
        if self._spare is None:
            at = Builder(BasicBlock())
            self._spare = at.alloca(T.I64, align=16)
            at.store(_ZERO, self._spare, 8)
            self.start += at.block.instructions
        return self._spare


def _ends(at: Builder, span: Range | Rows) -> tuple[Value, Value]:
    """Where accesses begin, and end."""
    if isinstance(span, Rows):
        return at.load(T.I64, span.room, 8), at.load(T.I64, at.offset(span.room, 8), 8)
    return span.first, at.binary("add", span.last, const_int(T.I64, span.size))


def _twin(version: Version, access: Access) -> I.Instruction:
    twin = version.twins[access.instruction]
    assert isinstance(twin, I.Instruction)
    return twin


def _replace(version: Version, replaced: Mapping[Value, Value]) -> None:
    replace_operands((i for b in (*version.blocks, *version.loop.exits) for i in b.instructions), replaced)
    for block in version.blocks:
        block.instructions = [i for i in block.instructions if i not in replaced]


def _unread(load: I.Load, _: Value) -> Value:
    return load


def _unscanned(_: I.Load) -> tuple[Value, Value]:
    return _ZERO, _ZERO
