"""Accesses against the bounds of their objects, reads of what nothing wrote, and the functions that allocate and free.

before    %v = load double, ptr %p            after    %o = sub i64 (ptrtoint %p), (ptrtoint %x)
                                                       %bad = icmp ugt i64 %o, <extent - 8>
                                                       ... (see `insertion`)
                                                       %v = load double, ptr %p
          %q = call ptr @malloc(i64 %n)                %q = call ptr @je_checked_malloc(ptr %tables, i64 %n)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loops import Loops
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import Buffer
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import with_operands
from jax_enzyme.ir.debug import comes_from_fortran, resolve
from jax_enzyme.ir.metadata import MDNode, MDRef
from jax_enzyme.ir.module import Function, GlobalVariable, Module, Uses, callee_name, declared_name, uses
from jax_enzyme.ir.values import Argument, BasicBlock, ConstantNull, Value, int_value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.transform.insertion import Check, put_behind
from jax_enzyme.transform.rewriting import Change, rewrite
from jax_enzyme.transform.sanitize.accesses import Access, accesses, local_offset, range_of, reported
from jax_enzyme.transform.sanitize.alignment import Alignment
from jax_enzyme.transform.sanitize.copies import copy_checks
from jax_enzyme.transform.sanitize.deferred import Deferred
from jax_enzyme.transform.sanitize.hoisting import Hoisting, Rows
from jax_enzyme.transform.sanitize.library import library_checks
from jax_enzyme.transform.sanitize.narrow import is_narrow, narrow_check
from jax_enzyme.transform.sanitize.provenance import Found, Known, Place, Provenance, may_be_found, root_of
from jax_enzyme.transform.sanitize.runtime import Runtime
from jax_enzyme.transform.sanitize.scalars import (
    MOVES,
    computed_with,
    holds_pattern,
    is_computed_with,
    least_of_narrow,
    pattern_of,
)

Checks = dict[I.Instruction, list[Check]]
_FREES = ("je_checked_free", "je_checked_realloc")
_ALLOCATES = ("je_checked_malloc", "je_checked_calloc", "je_checked_aligned_alloc")
_PLAIN = {"malloc": "malloc", "calloc": "calloc", "aligned_alloc": "aligned_alloc", "memalign": "aligned_alloc"}
_RESIZES = frozenset(("getline", "getdelim", "__getdelim"))
"""What gives memory back and takes other memory, in a library: its pointer is behind the first argument."""


class BoundsOfFunction:
    """The checks of one function's accesses. What pointers lead to is inserted by `insert`, after which instructions
    have the checks `before` and `behind` them."""

    def __init__(
        self,
        function: Function,
        runtime: Runtime,
        layout: DataLayout,
        buffers: Mapping[Argument, Buffer],
        records: MDRef,
        written: Collection[I.Instruction],
    ) -> None:
        """`written`: reads of what has certainly been written."""
        self._records = records
        keep_from_records(function, runtime.module, records)
        self.before: Checks = {}
        self.behind: Checks = {}
        self._function = function
        self._runtime, self._layout = runtime, layout
        self._buffers = buffers
        self._provenance = Provenance(function, runtime, layout, buffers, records)
        self._hoisting = Hoisting(self._provenance)
        self._deferred = Deferred(runtime, self._hoisting.versions)
        self._written = set(written)
        for version in self._hoisting.versions:
            self._written |= {version.twins[i] for i in self._written if i in version.twins}
        self.writes_somewhere = False
        self._alignment = Alignment(layout, runtime, buffers)
        self._loops = Loops.of(function)
        users = uses(function)
        for access in accesses(function.instructions(), layout):
            if access.instruction not in self._hoisting.own:
                self._look_at(access, users)
        for call in function.instructions():
            checks = library_checks(call, self._provenance, runtime)
            checks += copy_checks(call, self._provenance, users, runtime)
            if checks:
                self.before.setdefault(call, []).extend(checks)
            if isinstance(call, I.Call) and callee_name(call) in _FREES:
                self._provenance.record(call.arguments[1])  # the run time has to know what is no heap
        for instruction, check in self._deferred.checks(self._hoisting.is_quick):
            self.before.setdefault(instruction, []).append(check)
        self._provenance.complete()

    def _look_at(self, access: Access, users: Uses) -> None:
        hoisted = self._hoisting.places.get(access.instruction)
        place = hoisted or self._provenance.of(access.pointer)
        if place is None:
            return
        load = access.instruction
        aligned = self._alignment.check(load, by_rows=isinstance(hoisted, Rows))
        if aligned is not None:
            self.before.setdefault(load, []).append(aligned)
        if access.writes and not isinstance(place, Known):
            self.writes_somewhere = True
        if hoisted is None and isinstance(place, Known | Found) and not _is_inside(access, place):
            self.before.setdefault(load, []).append(self._bounds(access, place))
        if not isinstance(load, I.Load) or (isinstance(place, Known) and not place.fresh) or load in self._written:
            return
        narrow = is_narrow(load, users, self._runtime)
        if (pattern_of(load.type) is None and not narrow) or not is_computed_with(load, users):
            return
        if hoisted is not None:
            self._deferred.note(load)
        elif isinstance(place, Known | Found):
            self._unwritten(load, place, self._layout.store_size(load.type), users)

    @property
    def asks(self) -> bool:
        """Whether the run time has to know all objects."""
        return self._provenance.asks

    @property
    def notes(self) -> bool:
        """Whether something is noted in loops, and told behind them."""
        return bool(self._deferred.start)

    def insert(self, globals_: list[GlobalVariable], *, all_objects: bool) -> None:
        """Inserts, in place, what tells objects apart; where the run time is asked, it is told of all."""
        if all_objects:
            users = uses(self._function)
            locals_ = [i for i in self._function.instructions() if isinstance(i, I.Alloca) and may_be_found(i, users)]
            self._provenance.register([*locals_, *self._buffers, *(globals_ if self._buffers else ())])
        put_behind(self._function, self._provenance.behind)
        put_behind(self._function, self._deferred.behind)
        self._function.entry.instructions[:0] = [
            *self._provenance.start,
            *self._hoisting.start,
            *self._deferred.start,
        ]

    def _bounds(self, access: Access, place: Place) -> Check:
        def condition(at: Builder) -> Value:
            offset = local_offset(at, access.pointer, place, self._layout)
            base, extent = range_of(at, place, self._records)
            if offset is None:
                offset = at.binary("sub", at.cast("ptrtoint", access.pointer, T.I64), base)
            if isinstance(place, Known) and isinstance(access.size, int):
                if access.size > place.extent:
                    return const_int(T.I1, 1)
                return at.icmp("ugt", offset, const_int(T.I64, place.extent - access.size))
            if isinstance(access.size, int):
                given = [extent, const_int(T.I64, access.size - 1)]
                room = Declarations(self._runtime.module).invoke(at, "llvm.usub.sat.i64", T.I64, given)
                return at.icmp("uge", offset, room)
            size = _wide(at, access.size)
            far = at.icmp("ugt", offset, extent)
            long = at.icmp("ugt", size, at.binary("sub", extent, offset))
            some = at.icmp("ne", size, const_int(T.I64, 0))
            return at.binary("and", some, at.binary("or", far, long))

        def status(at: Builder) -> Value:
            address, base, extent = reported(at, access.pointer, place, self._layout, self._records)
            unit = access.size if isinstance(access.size, int) else 1
            if isinstance(place, Known):
                unit = place.unit
            return self._runtime.call(
                at, "outside", _record(place), address, base, extent, _wide(at, access.size), const_int(T.I64, unit),
                const_int(T.I32, int(access.writes)), self._text(place), self._runtime.place(access.instruction),
            )  # fmt: skip

        return Check(condition, status)

    def _unwritten(self, load: I.Load, place: Place, size: int, users: Uses) -> None:
        unit = const_int(T.I64, place.unit if isinstance(place, Known) else size)

        def told(at: Builder) -> list[Value]:
            address, base, _ = reported(at, load.operands[0], place, self._layout, self._records)
            return [_record(place), address, base, unit, self._text(place), self._runtime.place(load)]

        def status(at: Builder) -> Value:
            return self._runtime.call(at, "unwritten", *told(at))

        if least_of_narrow(load.type) is not None:
            check = narrow_check(load, self._runtime, told)
        else:
            check = Check(lambda at: holds_pattern(at, load), status, unsure=isinstance(place, Found))
            if later := self._used_later(load, users):
                for user in later:
                    self.before.setdefault(user, []).append(check)
                return
        self.behind.setdefault(load, []).append(check)

    def _used_later(self, load: I.Load, users: Uses) -> list[I.Instruction]:
        """The first in each block of what computes with a number, where all that is in other blocks than its read, and
        in no further loops: a part of a union, of which a copy of the whole is read, may mean nothing until a tag has
        been looked at."""
        using, home = set(computed_with(load, users)), self._loops.home
        if load not in home or not using <= home.keys():
            return []
        start, first = home[load][0], dict[BasicBlock, I.Instruction]()
        for user in sorted(using, key=lambda user: home[user][1], reverse=True):
            first[home[user][0]] = user
        around = (self._loops.loop_of[block] for block in first)
        if start in first or any(loop is not None and start not in loop for loop in around):
            return []
        return list(first.values())

    def _text(self, place: Place) -> Value:
        return self._runtime.text(place.text) if isinstance(place, Known) else ConstantNull(T.PTR)


def _is_inside(access: Access, place: Place) -> bool:
    """Whether an access is one of the object itself, as a whole or at its start."""
    fits = isinstance(place, Known) and isinstance(access.size, int) and access.size <= place.extent
    return fits and root_of(access.pointer) is access.pointer and not isinstance(access.pointer, I.Phi | I.Select)


def keep_from_records(function: Function, module: Module, records: MDRef) -> None:
    """Says of all that a kernel does to memory that it leaves the records alone, and of what allocates memory that it
    changes nothing but them of what there was before, in place."""
    for instruction in function.instructions():
        moves = isinstance(instruction, I.Call) and callee_name(instruction).startswith(MOVES)
        if moves or isinstance(instruction, I.Load | I.Store):
            own = next((resolve(module, n) for kind, n in instruction.metadata if kind == "noalias"), None)
            scopes = MDNode(operands=[*own.operands, *module.metadata[records.number].operands]) if own else records
            kept = [(kind, n) for kind, n in instruction.metadata if kind != "noalias"]
            instruction.metadata = [*kept, ("noalias", scopes)]
        elif isinstance(instruction, I.Call) and callee_name(instruction) in _ALLOCATES:
            instruction.metadata = [*instruction.metadata, ("alias.scope", records)]


def _record(place: Place) -> Value:
    return place.record if isinstance(place, Found) else ConstantNull(T.PTR)


def _wide(at: Builder, size: int | Value) -> Value:
    return const_int(T.I64, size) if isinstance(size, int) else at.wide(size)


# -- allocating and freeing


def own_memory(function: Function, runtime: Runtime) -> Checks:
    """Puts, in place, the run time's functions for those that allocate and free; the checks of what is freed."""
    checks: Checks = {}

    def change_of(instruction: I.Instruction) -> Change | None:
        name = declared_name(instruction)
        if not name or not isinstance(instruction, I.Call):
            return None
        if name in _PLAIN:
            return lambda at: _allocate(at, instruction, _PLAIN[name])
        if name == "free":
            return lambda at: _free(at, instruction)
        if name == "realloc":
            return lambda at: _realloc(at, instruction)
        return (lambda at: _hand_over(at, instruction, runtime)) if name in _RESIZES else None

    def _allocate(at: Builder, call: I.Call, name: str) -> Value:
        made = runtime.call(at, name, *(_wide(at, g) for g in call.arguments))
        checks[at.block.instructions[-1]] = _negative(call)
        return made

    def _negative(call: I.Call) -> list[Check]:
        """Sizes that are negative, and come as more than all there is: some callers go on where they get none."""
        sizes = [a for a in call.arguments if T.is_int(a.type) and ((known := int_value(a)) is None or known < 0)]
        return [_negative_size(runtime, call, size) for size in sizes]

    def _free(at: Builder, call: I.Call) -> Value:
        memory = call.arguments[0]
        status = runtime.call(at, "free", memory, runtime.place(call))
        # What flang frees at the end of a scope it looks at, and not what the source deallocates.
        if comes_from_fortran(runtime.module, call):
            none = runtime.failure("deallocates what is not allocated", call)
            status = at.select(at.icmp("eq", memory, ConstantNull(T.PTR)), none, status)
        last = at.block.instructions[-1]
        checks[last] = [_failed(status)]
        return status

    def _realloc(at: Builder, call: I.Call) -> Value:
        slot = _slot(function)
        made = runtime.call(at, "realloc", call.arguments[0], call.arguments[1], runtime.place(call), slot)
        status = at.load(T.I64, slot, 8)
        checks[at.block.instructions[-1]] = [*_negative(call), _failed(status)]
        return made

    rewrite(function, change_of)
    return checks


def _hand_over(at: Builder, call: I.Call, runtime: Runtime) -> Value:
    runtime.call(at, "hand_over", call.arguments[0])
    return at.insert(with_operands(call, list(call.operands)))


def _negative_size(runtime: Runtime, call: I.Call, size: Value) -> Check:
    status = runtime.failure("asks for memory of a negative size", call)
    return Check(lambda at: at.icmp("slt", size, const_int(size.type, 0)), lambda at: status)


def _failed(status: Value) -> Check:
    return Check(lambda at: at.icmp("ne", status, const_int(T.I64, 0)), lambda at: status)


def _slot(function: Function) -> Value:
    at = Builder.on_top(function)
    slot = at.alloca(T.I64, align=8)
    return slot
