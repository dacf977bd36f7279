"""Which files a kernel opens, looks for or changes: each with its name, where a constant says it, and what happens
with it."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise, repeat

from jax_enzyme.analysis.fortran_io import NEW_UNIT, Purpose, purpose, specified, statements, unit_of
from jax_enzyme.classes import dataclass, replace
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import GlobalVariable, Module, constant_bytes, declared_name
from jax_enzyme.ir.reach import Reached
from jax_enzyme.ir.values import BasicBlock, Value, int_value
from jax_enzyme.rules.files import reads
from jax_enzyme.rules.opened import (
    ANYTHING,
    Way,
    has_path,
    in_rust,
    maps_files,
    openings,
    reads_by_mpi,
    reads_standard_input,
    writes_in_rust,
)

_DEVICES, _EMPTY = "/dev/", ("/dev/null", "/dev/zero")
_STANDARD_INPUT = ("stdin", "__stdinp", "_ZNSt3__13cinE")


@dataclass(frozen=True)
class FileUse:
    """`name`: None where it is not known."""

    instruction: I.Instruction
    name: str | None
    way: Way

    def may_meet(self, other: FileUse) -> bool:
        """Whether both may be of one file, links aside."""
        if self.name is None or other.name is None:
            return True
        one, two = (posixpath.normpath(name) for name in (self.name, other.name))
        if posixpath.basename(one) != posixpath.basename(two):
            return False
        return one == two or posixpath.isabs(one) != posixpath.isabs(two) or ".." in (one + two)


def file_uses(module: Module) -> list[FileUse]:
    """All uses of files in a module that hold anything."""
    instructions = [i for f in module.functions.values() for i in f.instructions()]
    every = (*_of_functions(instructions), *_of_statements(module))
    return [_of_device(use) for use in every if use.name not in _EMPTY]


def _of_device(use: FileUse) -> FileUse:
    """What a device says (`/dev/urandom`, a terminal) is not there a second time."""
    reads_device = use.name is not None and use.name.startswith(_DEVICES) and Way.LOOKS in use.way
    return replace(use, way=Way.CONSUMES) if reads_device else use


def _of_functions(instructions: list[I.Instruction]) -> Iterator[FileUse]:
    names = {declared_name(i) for i in instructions}
    rust_writes = any(map(writes_in_rust, names))
    nothing_reads = not any(reads(name) or reads_by_mpi(name) or maps_files(name) for name in names)
    for instruction in instructions:
        if any(isinstance(v, GlobalVariable) and v.name in _STANDARD_INPUT for v in instruction.operands):
            yield FileUse(instruction, None, Way.CONSUMES)
        if not isinstance(instruction, I.CallBase) or not (name := declared_name(instruction)):
            continue
        given = instruction.arguments
        if reads_standard_input(name):
            yield FileUse(instruction, None, Way.CONSUMES)
        for way, path in zip(in_rust(name, rust_writes), chain(_rust_paths(name, given), repeat(None)), strict=False):
            yield FileUse(instruction, path, way)
        for opening in openings(name, len(given)):
            mode = None if opening.mode is None else given[opening.mode]
            asked = None if mode is None else text(mode) or int_value(mode)
            way = opening.ways(asked)
            if nothing_reads and way == ANYTHING:
                way = Way.CHANGES
            yield FileUse(instruction, None if opening.name is None else text(given[opening.name]), way)


def _rust_paths(name: str, given: Sequence[Value]) -> Iterator[str | None]:
    """The paths that a function of Rust's library is given, each by its address and its length, as far as they are
    constants."""
    for address, length in pairwise(given) if has_path(name) else ():
        if T.is_pointer(address.type) and T.is_int(length.type):
            yield None if int_value(length) is None else text(address, length)


@dataclass(frozen=True)
class _Statement:
    """A statement of Fortran about a unit. `unit`: a number, or the variable that holds one that OPEN chose; None: any.
    `texts`: what its specifiers say, with their lengths."""

    begin: I.CallBase
    unit: int | Value | None
    texts: Mapping[str, tuple[Value, Value]]

    @property
    def file(self) -> str | None:
        found = self.texts.get("File")
        return None if found is None else text(*found)

    def says(self, what: str) -> str:
        """What a specifier says; nothing where no constant says it."""
        found = self.texts.get(what)
        return (None if found is None else text(*found)) or ""

    def is_of(self, other: _Statement) -> bool:
        """Whether both may be about one unit."""
        return self.unit is None or other.unit is None or self.unit == other.unit


def _of_statements(module: Module) -> Iterator[FileUse]:
    chosen = _chosen_units(module)
    every = {
        begin: _Statement(begin, _unit(begin, calls, chosen), specified(calls))
        for begin, calls in statements(module).items()
    }
    of = {kind: [s for begin, s in every.items() if purpose(begin) is kind] for kind in Purpose}
    openings = _Openings(module, of[Purpose.OPENS])
    yield from (use for opened in of[Purpose.OPENS] if (use := _of_open(opened, of, openings)) is not None)
    for closed in of[Purpose.CLOSES]:
        if closed.says("Status").upper() == "DELETE":
            yield from (FileUse(closed.begin, opened.file, Way.CHANGES) for opened in openings.of(closed))
    for asked in of[Purpose.ASKS]:
        yield FileUse(asked.begin, text(*asked.begin.operands[:2]), Way.LOOKS)
    # Standard input, and a file that has been opened before, go on where they were.
    for kind, way in ((Purpose.READS, Way.CONSUMES), (Purpose.WRITES, Way.CHANGES)):
        loose = (s for s in of[kind] if not openings.of(s))
        yield from (FileUse(s.begin, None, way) for s in loose)


class _Openings:
    """Which statements that open units others may follow: units are opened again, for other files."""

    def __init__(self, module: Module, opens: Sequence[_Statement]) -> None:
        self._opens: dict[I.Instruction, _Statement] = {o.begin: o for o in opens}
        self._home = {i: b for f in module.functions.values() for b in f.blocks for i in b.instructions}
        self._function = {b: f for f in module.functions.values() for b in f.blocks}
        self._behind = {o.begin: self._followers(o) for o in opens}

    def of(self, statement: _Statement) -> list[_Statement]:
        """Those that a statement goes back to: in its function the last ones, if any."""
        found = list(filter(statement.is_of, self._opens.values()))
        function = self._function[self._home[statement.begin]]
        here = [o for o in found if self._function[self._home[o.begin]] is function]
        last = [o for o in here if statement.begin in self._behind[o.begin]]
        return [o for o in found if o not in here] + last if last else found

    def _followers(self, opened: _Statement) -> set[I.Instruction]:
        """What control may come to before the unit is opened again."""
        found: set[I.Instruction] = set()
        blocks = Reached[BasicBlock]([])

        def go(instructions: Iterable[I.Instruction], block: BasicBlock) -> None:
            for instruction in instructions:
                found.add(instruction)
                again = self._opens.get(instruction)
                if again is not None and again.unit is not None and again.unit == opened.unit:
                    return
            blocks.add(block.successors)

        home = self._home[opened.begin]
        go(home.instructions[home.instructions.index(opened.begin) + 1 :], home)
        for block in blocks:
            go(block.instructions, block)
        return found


def _of_open(opened: _Statement, of: Mapping[Purpose, Sequence[_Statement]], openings: _Openings) -> FileUse | None:
    """What happens with a file that is opened; None where it is the kernel's own."""
    way = Way(0)
    for kind, each in ((Purpose.READS, Way.LOOKS), (Purpose.WRITES, Way.CHANGES)):
        if any(opened in openings.of(s) for s in of[kind]):
            way |= each
    back = (*of[Purpose.CLOSES], *of[Purpose.REWINDS])
    if Way.LOOKS in way and isinstance(opened.unit, int) and not any(map(opened.is_of, back)):
        return FileUse(opened.begin, None, Way.CONSUMES)  # opened again, it goes on where it was
    match opened.says("Status").upper():
        case "SCRATCH":
            return None
        case "REPLACE":
            return FileUse(opened.begin, opened.file, Way.REPLACES)
        case _:
            return FileUse(opened.begin, opened.file, way)


def _unit(begin: I.CallBase, calls: Iterable[I.CallBase], chosen: frozenset[Value]) -> int | Value | None:
    for call in calls:
        if call.callee.name == NEW_UNIT:
            return call.operands[1] if call.operands[1] in chosen else None
    if purpose(begin) in (None, Purpose.ASKS):
        return None
    match unit_of(begin):
        case I.Load(operands=[place]) if place in chosen:
            return place
        case number:
            return int_value(number)


def _chosen_units(module: Module) -> frozenset[Value]:
    """The variables that hold nothing but units that OPEN chose."""
    found: set[Value] = set()
    others: set[Value] = set()
    for instruction in (i for f in module.functions.values() for i in f.instructions()):
        if declared_name(instruction) == NEW_UNIT:
            found.add(instruction.operands[1])
        elif not isinstance(instruction, I.Load) and not declared_name(instruction).startswith("llvm.lifetime."):
            others.update(instruction.operands)
    return frozenset(v for v in found - others if isinstance(v, I.Alloca))


def text(value: Value, length: Value | None = None) -> str | None:
    """The text that a constant pointer leads to."""
    data = constant_bytes(value)
    size = None if length is None else int_value(length)
    return None if data is None else data[:size].partition(b"\0")[0].decode(errors="surrogateescape").rstrip(" ")
