"""Numbers that each thread adds to consecutive places: the lanes of a warp add them row by row.

    before    atomicrmw fadd ptr %p, double %x         after    lanes 0, 1 and 2 add the x, y and z of lane 0,
              atomicrmw fadd ptr %p + 8, double %y              lanes 3, 4 and 5 those of lane 1, ...
              atomicrmw fadd ptr %p + 16, double %z

Memory takes additions by sectors of 32 bytes, at the same pace whether a warp adds one number there or four. Threads
whose rows lie anywhere come to one sector for each number before, and to one or two for each row after. Where all lanes
of the warp are there at once, which they ask when they come by, they pass the numbers to each other by shuffles;
otherwise each adds its own.

This is done to what is launched, once it is derived (see `ad.device.copies`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from jax_enzyme.ad.device.groups import ask_innermost, is_beside
from jax_enzyme.ad.device.shuffles import warp_helper
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.polynomials import Polynomial
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.device import DeviceFunction
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.passes import run
from jax_enzyme.ir.values import Argument, BasicBlock, Value
from jax_enzyme.transform.cuda.shuffles import WARP_SIZE
from jax_enzyme.transform.device import canonical, restore
from jax_enzyme.transform.device.canonical import REGULAR, optimised
from jax_enzyme.transform.device.registers import WARP_ADD

_LONGEST = 8
"""Numbers of a row that are passed at once: each lane asks for as many numbers of each of so many others."""


@dataclass(frozen=True, eq=False)
class _Addition:
    """One addition: to the place `offset` bytes behind what `row` stands for, in the memory of a parameter."""

    instruction: I.AtomicRMW
    base: Argument
    row: Polynomial
    offset: int

    @property
    def size(self) -> int:
        return 8 if self.instruction.type == T.DOUBLE else 4


_Place = list[_Addition]
"""The additions to one place."""


def in_rows(function: DeviceFunction) -> DeviceFunction:
    """The same derivative with such additions made row by row; itself where there are none."""
    symbol, *others = function.symbols
    own = (f for f in function.module.functions.values() if not f.name.startswith(WARP_ADD))
    if others or not any(_adds(i) for f in own for i in f.instructions()):
        return function
    form = canonical(function)
    module = clone(form.module)
    if ask_innermost(module, module.functions[symbol], _whole_row):
        module = run(optimised(module, unroll=True), REGULAR)
    if not _Rows(module, module.functions[symbol]).rewrite():
        return function
    restored, shape = restore(module, form.shape)
    return replace(form, module=restored, shape=shape)


def _whole_row(loop: Loop, repeats: int) -> int:
    """How many iterations of a short loop are made at once: all, where they may make the additions of a row."""
    is_row = 0 < repeats < _LONGEST and any(_adds(i) for b in loop.blocks for i in b.instructions)
    return repeats + 1 if is_row else 1


def _adds(instruction: I.Instruction) -> bool:
    return (
        isinstance(instruction, I.AtomicRMW)
        and instruction.operation == "fadd"
        and instruction.type in (T.FLOAT, T.DOUBLE)
    )


class _Rows:
    """Rewrites the function of one thread in place."""

    def __init__(self, module: Module, function: Function) -> None:
        self._module = module
        self._function = function
        self._recurrences = Recurrences.of(function, module)
        self._used = {v for i in function.instructions() for v in i.operands}
        added = [I.base_of(i.operands[0]) for i in function.instructions() if isinstance(i, I.AtomicRMW | I.CmpXchg)]
        known = all(isinstance(base, Argument) for base in added)
        self._unadded = frozenset[Value](set(function.arguments) - set(added)) if known else frozenset[Value]()

    def rewrite(self) -> bool:
        """Whether there are rows."""
        found = False
        for block in self._function.blocks:
            loop = self._recurrences.loops.loop_of.get(block)
            if loop is not None and loop.children:
                continue  # what takes time lies further inside, and registers are scarce
            runs: list[list[_Place]] = []
            waiting: list[_Addition] = []
            places: dict[I.Instruction, int] = {}
            for instruction in block.instructions:
                addition = self._addition(instruction)
                if addition is not None:
                    waiting.append(addition)
                elif instruction.is_terminator or not is_beside(instruction, self._unadded):
                    rows = _rows(waiting)
                    runs += rows
                    places[instruction] = len(runs)
                    waiting = []
            if runs:
                found = True
                block.instructions = self._emitted(block, runs, places)
        return found

    def _emitted(
        self, block: BasicBlock, runs: list[list[_Place]], places: dict[I.Instruction, int]
    ) -> list[I.Instruction]:
        """The instructions of a block with its rows in front of those that `places` give the number of rows before."""
        at = Builder(BasicBlock())
        gone = {a.instruction for row in runs for place in row for a in place}
        done = 0
        for instruction in block.instructions:
            if instruction in gone:
                continue
            for row in runs[done : places.get(instruction, 0)]:
                self._add(at, row)
                done += 1
            at.block.instructions.append(instruction)
        return at.block.instructions

    def _addition(self, instruction: I.Instruction) -> _Addition | None:
        if not _adds(instruction) or instruction in self._used:
            return None
        assert isinstance(instruction, I.AtomicRMW)
        base = I.base_of(instruction.operands[0])
        if not isinstance(base, Argument):
            return None
        place = self._recurrences.form(instruction.operands[0]).polynomial
        constant = place.constant_term
        return _Addition(instruction, base, place - Polynomial.constant(constant), constant)

    def _add(self, at: Builder, row: Sequence[_Place]) -> None:
        first = row[0][0]
        pointer = first.instruction.operands[0]
        start, here = (at.cast("ptrtoint", p, T.I64) for p in (first.base, pointer))
        offset = at.binary("sub", here, start)
        values: list[Value] = []
        for place in row:
            total, *others = (a.instruction.operands[1] for a in place)
            for term in others:
                total = at.binary("fadd", total, term, ("reassoc", "nsz", "contract"))
            values.append(total)
        function = warp_helper(self._module, f"{WARP_ADD}row.{len(row)}.", _text(len(row)), first.instruction.type)
        at.call(function, [first.base, offset, *values], attributes=("convergent",))


def _rows(waiting: Sequence[_Addition]) -> list[list[_Place]]:
    """The additions to consecutive places, in rows of two and more."""
    groups: dict[tuple[object, ...], dict[int, _Place]] = {}
    for addition in waiting:
        row = frozenset(addition.row.terms.items())
        group = groups.setdefault((addition.base, addition.instruction.type, row), {})
        group.setdefault(addition.offset, []).append(addition)
    found: list[list[_Place]] = []
    for group in groups.values():
        current: list[_Place] = []
        for _, place in sorted(group.items()):
            if current and (place[0].offset - current[-1][0].offset != place[0].size or len(current) == _LONGEST):
                found.append(current)
                current = []
            current.append(place)
        found.append(current)
    return [row for row in found if len(row) > 1]


def _text(count: int) -> str:
    """The function that adds rows of so many numbers: number `n` of a row of lane `l` is added by lane
    `(l * count + n) % 32`."""
    values = ", ".join(f"TYPE %v{n}" for n in range(count))
    lines = [
        "declare i32 @__je_active_mask() convergent nounwind",
        "declare i32 @__je_lane() nounwind willreturn memory(none)",
        "declare TYPE @__je_shuffle_KIND(i32, TYPE, i32) convergent nounwind",
        "declare i64 @__je_shuffle_i64(i32, i64, i32) convergent nounwind",
        f"define internal void @{WARP_ADD}row.{count}.KIND(ptr %base, i64 %offset, {values}) "
        "convergent nounwind alwaysinline {",
        "entry:",
        "  %mask = call i32 @__je_active_mask() convergent",
        "  %full = icmp eq i32 %mask, -1",
        "  br i1 %full, label %together, label %alone",
        "alone:",
        "  %own = getelementptr i8, ptr %base, i64 %offset",
    ]
    for n in range(count):
        lines += [
            f"  %own.{n} = getelementptr TYPE, ptr %own, i64 {n}",
            f"  %old.{n} = atomicrmw fadd ptr %own.{n}, TYPE %v{n} monotonic",
        ]
    lines += ["  br label %done", "together:", "  %lane = call i32 @__je_lane()"]
    for turn in range(count):
        lines += [
            f"  %item.{turn} = add i32 %lane, {turn * WARP_SIZE}",
            f"  %owner.{turn} = udiv i32 %item.{turn}, {count}",
            f"  %number.{turn} = urem i32 %item.{turn}, {count}",
            f"  %row.{turn} = call i64 @__je_shuffle_i64(i32 -1, i64 %offset, i32 %owner.{turn}) convergent",
        ]
        for n in range(count):
            lines.append(
                f"  %x.{turn}.{n} = call TYPE @__je_shuffle_KIND(i32 -1, TYPE %v{n}, i32 %owner.{turn}) convergent"
            )
            before = f"%y.{turn}.{n - 1}" if n else "ZERO"
            lines += [
                f"  %is.{turn}.{n} = icmp eq i32 %number.{turn}, {n}",
                f"  %y.{turn}.{n} = select i1 %is.{turn}.{n}, TYPE %x.{turn}.{n}, TYPE {before}",
            ]
        lines += [
            f"  %start.{turn} = getelementptr i8, ptr %base, i64 %row.{turn}",
            f"  %wide.{turn} = zext i32 %number.{turn} to i64",
            f"  %at.{turn} = getelementptr TYPE, ptr %start.{turn}, i64 %wide.{turn}",
            f"  %sum.{turn} = atomicrmw fadd ptr %at.{turn}, TYPE %y.{turn}.{count - 1} monotonic",
        ]
    lines += ["  br label %done", "done:", "  ret void", "}"]
    return "\n".join(lines)
