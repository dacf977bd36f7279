"""Numbers that each thread adds to consecutive places: the lanes of a warp add them row by row.

    before    atomicrmw fadd ptr %p, double %x         after    lanes 0, 1 and 2 add the x, y and z of lane 0,
              atomicrmw fadd ptr %p + 8, double %y              lanes 3, 4 and 5 those of lane 1, ...
              atomicrmw fadd ptr %p + 16, double %z

Memory takes additions by sectors of 32 bytes, at the same pace whether a warp adds one number there or four. Threads
whose rows lie anywhere come to one sector for each number before, and to one or two for each row after. Where all lanes
of the warp are there at once, which they ask when they come by, they pass the numbers to each other by shuffles;
otherwise each adds its own. Devices that add several numbers by one instruction do that instead
(`codegen.gpu.vector_adds`).

This is done to what is launched, once it is derived (see `ad.device.copies`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from math import gcd

from jax_enzyme.ad.device.groups import ask_innermost, is_beside
from jax_enzyme.ad.device.shuffles import warp_helper
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.polynomials import Polynomial
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import Buffer
from jax_enzyme.ir.builder import SUM_FLAGS, Builder
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.passes import run
from jax_enzyme.ir.values import Argument, BasicBlock, Value
from jax_enzyme.transform.cuda.shuffles import WARP_SIZE
from jax_enzyme.transform.device.canonical import REGULAR, optimised
from jax_enzyme.transform.device.registers import WARP_ADD

ROW = f"{WARP_ADD}row."
"""How the functions begin that add a row: of a base, an offset in bytes and the numbers."""
_LONGEST = 12
"""Numbers of a row that are passed at once: a lane holds its own and those that it gets."""
_UNROLLED = 10
"""Loops of so many iterations at most are unrolled, where they may make the additions of a row."""
_SHORT = 1 << 31
"""Places in fewer bytes are passed as 32 bits, by one shuffle."""


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


def unrolled_for_rows(module: Module, symbol: str) -> Module:
    """A canonical module with short loops unrolled that may make the additions of a row; in part changed in place."""
    if ask_innermost(module, module.functions[symbol], _whole_row):
        return run(optimised(module, unroll=True), REGULAR)
    return module


def add_in_rows(module: Module, function: Function, buffers: tuple[Buffer, ...]) -> bool:
    """Makes such additions row by row, in place, in a canonical function; whether there are any."""
    short = {a for a, b in zip(function.arguments, buffers, strict=True) if not b.grows and b.nbytes < _SHORT}
    return _Rows(module, function, short).rewrite()


def _whole_row(loop: Loop, repeats: int) -> int:
    """How many iterations of a short loop are made at once: all, where they may make the additions of a row."""
    is_row = 0 < repeats < _UNROLLED and any(adds(i) for b in loop.blocks for i in b.instructions)
    return repeats + 1 if is_row else 1


def adds(instruction: I.Instruction) -> bool:
    """Whether a floating-point number is added to memory, atomically."""
    return (
        isinstance(instruction, I.AtomicRMW)
        and instruction.operation == "fadd"
        and instruction.type in (T.FLOAT, T.DOUBLE)
    )


class _Rows:
    """Rewrites the function of one thread in place."""

    def __init__(self, module: Module, function: Function, short: Collection[Value]) -> None:
        self._module = module
        self._function = function
        self._short = short
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
        if not adds(instruction) or instruction in self._used:
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
        offset, kind = at.binary("sub", here, start), "i64"
        if first.base in self._short:
            offset, kind = at.cast("trunc", offset, T.I32), "i32"
        values: list[Value] = []
        for place in row:
            total, *others = (a.instruction.operands[1] for a in place)
            for term in others:
                total = at.binary("fadd", total, term, SUM_FLAGS)
            values.append(total)
        text = _text(len(row)).replace("OFFSET", kind)
        function = warp_helper(self._module, f"{ROW}{len(row)}.{kind}.", text, first.instruction.type)
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
            if current and place[0].offset - current[-1][0].offset != place[0].size:
                found += _parts(current)
                current = []
            current.append(place)
        found += _parts(current)
    return [row for row in found if len(row) > 1]


def _parts(row: list[_Place]) -> Iterator[list[_Place]]:
    """A row in parts that can be passed at once, of about the same length."""
    count = -(-len(row) // _LONGEST)
    ends = [len(row) * n // count for n in range(count + 1)]
    return (row[start:end] for start, end in pairwise(ends))


def _text(count: int) -> str:
    """The function that adds rows of so many numbers: number `n` of the row of lane `l` is the item `l * count + n`,
    and lane `d` adds the items `d`, `32 + d`, ... in turns.

    Items get there in `count` rounds, in each of which every lane sends one number and gets one. In round `s` lane `l`
    sends number `(s + k) % count`, where `k = l * g / 32` and `g` is what `count` and 32 have in common: so no two
    lanes send to the same one. In turn `t` lane `d` adds what came in round `(d + 32 t - t g / count) % count`. Both
    are rotations of registers, by what a lane's number says."""
    common = gcd(count, WARP_SIZE)
    groups = WARP_SIZE // common
    lines = [
        "declare i32 @__je_active_mask() convergent nounwind",
        "declare i32 @__je_ballot(i32, i32) convergent nounwind",
        "declare i32 @__je_lane() nounwind willreturn memory(none)",
        "declare TYPE @__je_shuffle_KIND(i32, TYPE, i32) convergent nounwind",
        "declare OFFSET @__je_shuffle_OFFSET(i32, OFFSET, i32) convergent nounwind",
        f"define internal void @{ROW}{count}.OFFSET.KIND(ptr %base, OFFSET %offset, "
        f"{', '.join(f'TYPE %v{n}' for n in range(count))}) convergent nounwind alwaysinline {{",
        "entry:",
        "  %mask = call i32 @__je_active_mask() convergent",
        "  %full = icmp eq i32 %mask, -1",
        "  br i1 %full, label %together, label %alone",
        "alone:",
        "  %own = getelementptr i8, ptr %base, OFFSET %offset",
    ]
    for n in range(count):
        lines += [
            f"  %own.{n} = getelementptr TYPE, ptr %own, i64 {n}",
            f"  %old.{n} = atomicrmw fadd ptr %own.{n}, TYPE %v{n} monotonic",
        ]
    lines += [
        "  br label %done",
        "together:",
        "  %lane = call i32 @__je_lane()",
        "  %all = call i32 @__je_ballot(i32 -1, i32 1) convergent",
        "  %none = xor i32 %all, -1",
        f"  %first = urem i32 %lane, {count}",
        f"  %group = lshr i32 %lane, {groups.bit_length() - 1}",
    ]
    for n in range(count):
        _note_lanes(lines, n, count)
    sent = _rotated(lines, "sent", [f"%v{n}" for n in range(count)], "%group", common)
    for n in range(count):
        lines += [
            f"  %source.{n} = and i32 %lanes.{n}, {WARP_SIZE - 1}",
            f"  %got.{n} = call TYPE @__je_shuffle_KIND(i32 -1, TYPE {sent[n]}, i32 %source.{n}) convergent",
        ]
    items = _rotated(lines, "item", [f"%got.{n}" for n in range(count)], "%first", count)
    for t in range(count):
        item = items[(WARP_SIZE * t - t * common // count) % count]
        lines += [
            f"  %from.{t} = lshr i32 %lanes.{t}, 5",
            f"  %owner.{t} = and i32 %from.{t}, {WARP_SIZE - 1}",
            f"  %row.{t} = call OFFSET @__je_shuffle_OFFSET(i32 -1, OFFSET %offset, i32 %owner.{t}) convergent",
            f"  %number.{t} = lshr i32 %lanes.{t}, 10",
            f"  %start.{t} = getelementptr i8, ptr %base, OFFSET %row.{t}",
            f"  %at.{t} = getelementptr TYPE, ptr %start.{t}, i32 %number.{t}",
            f"  %sum.{t} = atomicrmw fadd ptr %at.{t}, TYPE {item} monotonic",
        ]
    lines += ["  br label %done", "done:", "  ret void", "}"]
    return "\n".join(lines)


def _note_lanes(lines: list[str], n: int, count: int) -> None:
    """A word for each round and turn `n`: the lane that sends to this one in the round, the lane whose row it adds to
    in the turn, and which number of the row. The sender is in the group that sends a number of this lane's remainder.

    In a loop, words are computed before it. What is in them is taken out each time, for registers are scarcer: so
    LLVM must not know that `%none` is 0."""
    common = gcd(count, WARP_SIZE)
    groups = WARP_SIZE // common
    inverse = pow(count // common, -1, groups) if groups > 1 else 0
    lines += [
        f"  %less.{n} = sub i32 %lane, {n}",
        f"  %by.{n} = and i32 %less.{n}, {common - 1}",
        f"  %long.{n} = add i32 %by.{n}, {n}",
        f"  %over.{n} = icmp uge i32 %long.{n}, {count}",
        f"  %back.{n} = sub i32 %long.{n}, {count}",
        f"  %of.{n} = select i1 %over.{n}, i32 %back.{n}, i32 %long.{n}",
        f"  %rest.{n} = sub i32 %lane, %of.{n}",
        f"  %parts.{n} = ashr i32 %rest.{n}, {common.bit_length() - 1}",
        f"  %times.{n} = mul i32 %parts.{n}, {inverse}",
        f"  %inside.{n} = and i32 %times.{n}, {groups - 1}",
        f"  %behind.{n} = mul i32 %by.{n}, {groups}",
        f"  %sender.{n} = or disjoint i32 %inside.{n}, %behind.{n}",
        f"  %item.{n} = add i32 %lane, {n * WARP_SIZE}",
        f"  %whose.{n} = udiv i32 %item.{n}, {count}",
        f"  %which.{n} = urem i32 %item.{n}, {count}",
        f"  %high.{n} = shl i32 %which.{n}, 10",
        f"  %middle.{n} = shl i32 %whose.{n}, 5",
        f"  %upper.{n} = or disjoint i32 %high.{n}, %middle.{n}",
        f"  %word.{n} = or disjoint i32 %upper.{n}, %sender.{n}",
        f"  %lanes.{n} = xor i32 %word.{n}, %none",
    ]


def _rotated(lines: list[str], name: str, values: list[str], by: str, extent: int) -> list[str]:
    """Values rotated to the left by a number below `extent`: in steps of powers of two, each done or not."""
    for bit in range((extent - 1).bit_length()):
        lines += [
            f"  %{name}.bit.{bit} = and i32 {by}, {1 << bit}",
            f"  %{name}.stays.{bit} = icmp eq i32 %{name}.bit.{bit}, 0",
        ]
        turned = values[1 << bit :] + values[: 1 << bit]
        for n, (here, there) in enumerate(zip(values, turned, strict=True)):
            lines.append(f"  %{name}.{bit}.{n} = select i1 %{name}.stays.{bit}, TYPE {here}, TYPE {there}")
        values = [f"%{name}.{bit}.{n}" for n in range(len(values))]
    return values
