"""Where the accesses of a counting loop lie, said in front of it: addresses that are linear in what the loop counts.

    for (j = 1; j < m; j++) s += a[i][j - 1];      the first and the last address: those of a[i][0] and a[i][m - 2]

Numbers of 32 bits are computed in 64, in which nothing wraps, and `conditions` say where that gives the same. What does
not change in the loop is computed in front of it; what is read from memory is read there, and is the same in the loop
where nothing that the loop writes lies in the same place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jax_enzyme.analysis.counters import tests
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import with_operands
from jax_enzyme.ir.reach import made_of
from jax_enzyme.ir.values import BasicBlock, Value, int_value

_SAFE = ("add", "sub", "mul", "and", "or", "xor")
_WIDTHS = (T.I32, T.I64)
_WIDENING = ("sext", "zext", "trunc")
_LEAF_BITS = 40
_FACTOR_BITS = 31
_DEPTH = 40


@dataclass(frozen=True)
class Counter:
    """What a loop counts, by `step`, from a start; the test `predicate(counter, bound)` keeps it going. `late`: the
    test is at the loop's end; `ahead`: it is of the next value."""

    phi: I.Phi
    start: Value
    step: int
    predicate: str
    bound: Value
    late: bool
    ahead: bool


def counter_of(loop: Loop) -> Counter | None:
    """What an innermost loop counts, where it has a preheader and one latch."""
    if loop.children or loop.preheader is None or len(loop.latches) != 1:
        return None
    for test in tests(loop):
        phi, step, added = test.counted.phi, test.counted.step, test.counted.added
        ends = loop.ends(phi)
        if phi.type not in _WIDTHS or ends is None or abs(step) > 1 << 16 or added not in (0, step):
            continue
        up = {"slt", "sle", "ult", "ule"} | ({"ne"} if step == 1 else set())
        down = {"sgt", "sge", "ugt", "uge"} | ({"ne"} if step == -1 else set())
        is_certain = test.block in (loop.header, loop.latches[0]) and test.counted.casts <= {"sext"}
        if is_certain and test.predicate in (up if step > 0 else down):
            late = test.block is loop.latches[0]
            return Counter(phi, ends[0], step, test.predicate, test.bound, late, added == step)
    return None


def _is_plain_shift(value: I.BinaryOp) -> bool:
    places = int_value(value.operands[1])
    return value.opcode == "shl" and places is not None and 0 <= places < 20


def _key(value: I.Instruction, operands: list[Value]) -> tuple[object, ...]:
    """What is equal for instructions that give the same."""
    given = tuple((v.type, int_value(v)) if int_value(v) is not None else v for v in operands)
    source = value.source_type if isinstance(value, I.GetElementPtr) else None
    return (value.opcode, value.type, source, *given)


class Affine:
    """What can be said of one loop. Instructions are appended to `at`, which is in front of the loop."""

    def __init__(
        self, loop: Loop, counter: Counter, layout: DataLayout, load: Callable[[I.Load, Value], Value] | None
    ) -> None:
        """`load` builds a read in front of the loop; None: nothing is read there."""
        self.at = Builder(BasicBlock())
        self.conditions: list[Value] = []
        self.loads: dict[I.Instruction, Value] = {}
        self._load = load
        self._layout = layout
        self._counter = counter
        self._before: dict[Value, Value] = {}
        self._made: dict[tuple[object, ...], Value] = {}
        self._inside = {i for block in loop.blocks for i in block.instructions}
        self._linear: dict[Value, bool] = {}
        self._fixed: dict[Value, bool] = {}
        self._ends: tuple[Value, Value] | None = None

    # -- what is possible

    def is_fixed(self, value: Value, depth: int = 0) -> bool:
        """Whether a value is the same in all iterations, as far as what it reads is."""
        if value not in self._inside:
            return True
        if value not in self._fixed:
            self._fixed[value] = False
            same = isinstance(value, I.GetElementPtr) or (isinstance(value, I.Cast) and value.opcode in _WIDENING)
            match value:
                case I.Load():
                    same = bool(self._load) and value.type in (*_WIDTHS, T.PTR) and not value.flags
                case I.BinaryOp(opcode=opcode):
                    same = opcode in _SAFE or _is_plain_shift(value)
                case _:
                    pass
            self._fixed[value] = same and depth <= _DEPTH and all(self.is_fixed(v, depth + 1) for v in made_of(value))
        return self._fixed[value]

    def is_linear(self, value: Value, depth: int = 0) -> bool:
        """Whether a value is linear in the counter."""
        if value is self._counter.phi:
            return True
        if self.is_fixed(value):
            return value.type in (*_WIDTHS, T.PTR)
        if value not in self._linear:
            self._linear[value] = False
            parts = self._linear_parts(value) if depth <= _DEPTH and value.type in (*_WIDTHS, T.PTR) else None
            self._linear[value] = parts is not None and all(self.is_linear(v, depth + 1) for v in parts)
        return self._linear[value]

    def _linear_parts(self, value: Value) -> list[Value] | None:
        """What has to be linear for a value to be so; None where that is not enough."""
        match value:
            case I.BinaryOp(opcode="add" | "sub"):
                return value.operands
            case I.BinaryOp(opcode="mul") if any(self.is_fixed(v) for v in value.operands):
                return value.operands
            case I.BinaryOp(opcode="shl") if _is_plain_shift(value):
                return value.operands[:1]
            case I.Cast(opcode="sext" | "zext") if value.operands[0].type == T.I32 and value.type == T.I64:
                return value.operands
            case I.GetElementPtr() if (steps := self._steps(value)) is not None:
                return [value.operands[0], *(index for index, _ in steps[1])]
            case _:
                return None

    def _steps(self, gep: I.GetElementPtr) -> tuple[int, list[tuple[Value, int]]] | None:
        """The constant bytes of an address, and its indices with the bytes that each goes on by."""
        try:
            constant, steps = self._layout.steps(gep.source_type, gep.operands[1:])
        except ValueError:
            return None
        if any(size >= 1 << 20 or index.type not in _WIDTHS for index, size in steps):
            return None
        return (constant, steps) if abs(constant) < 1 << 40 else None

    # -- what is said

    def demand(self, build: Callable[[Builder], Value]) -> None:
        self.conditions.append(build(self.at))

    def _fits(self, wide: Value, bits: int) -> None:
        """A number of 64 bits is to fit into so many, with sign."""
        if int_value(wide) is not None and abs(int_value(wide) or 0) < 1 << (bits - 1):
            return
        half = const_int(T.I64, 1 << (bits - 1))
        whole = const_int(T.I64, 1 << bits)
        self.demand(lambda at: at.icmp("ult", at.binary("add", wide, half), whole))

    def fixed(self, value: Value) -> Value:
        """A value that is the same in all iterations, in front of the loop."""
        if value not in self._inside:
            return value
        if value not in self._before:
            assert isinstance(value, I.Instruction)
            operands = [self.fixed(v) for v in value.operands]
            # What is computed or read twice is the same, as no value changes in front of the loop: that two addresses
            # are one is what LLVM has to see, to vectorise.
            key = _key(value, operands)
            if key in self._made:
                made = self._before[value] = self._made[key]
                if isinstance(value, I.Load):
                    self.loads[value] = made
                return made
            match value:
                case I.Load():
                    assert self._load is not None
                    made = self.loads[value] = self._load(value, operands[0])
                case _:
                    copy = with_operands(value, operands)
                    copy.flags, copy.metadata = (), []
                    made = self.at.insert(copy)
            self._before[value] = self._made[key] = made
        return self._before[value]

    def ends(self) -> tuple[Value, Value]:
        """The least and the greatest number that is counted, in 64 bits."""
        if self._ends is None:
            self._ends = self._interval()
        return self._ends

    def _interval(self) -> tuple[Value, Value]:
        at, c = self.at, self._counter
        kind = c.phi.type
        start, bound = self._wide_fixed(self.fixed(c.start)), self._wide_fixed(self.fixed(c.bound))
        zero = const_int(T.I64, 0)
        if c.predicate[0] == "u":
            for number in (start, bound):
                self.demand(lambda at, n=number: at.icmp("sge", n, zero))
        one = const_int(T.I64, 1 if c.step > 0 else -1)
        last = bound if c.predicate.endswith("e") and c.predicate != "ne" else at.binary("sub", bound, one)
        width = const_int(T.I64, c.step)
        if c.late and not c.ahead:
            last = at.binary("add", last, width)
        if c.ahead and not c.late:
            last = at.binary("sub", last, width)
        if c.predicate == "ne":
            order = "sle" if c.step > 0 else "sge"
            self.demand(lambda at: at.icmp(order, start, last if c.late else at.binary("add", last, width)))
        if abs(c.step) > 1:
            far = at.binary("srem", at.binary("sub", last, start), const_int(T.I64, abs(c.step)))
            last = at.binary("sub", last, far)
        if c.late:
            beyond = at.icmp("slt" if c.step > 0 else "sgt", last, start)
            last = at.select(beyond, start, last)
        # Where the test fails in the end nothing may have wrapped around.
        tested = last if c.late and not c.ahead else at.binary("add", last, width)
        if c.ahead and not c.late:
            tested = at.binary("add", tested, width)
        self._fits(tested, 32 if kind == T.I32 else _LEAF_BITS)
        if c.predicate[0] == "u":
            self.demand(lambda at: at.icmp("sge", tested, zero))
        return (start, last) if c.step > 0 else (last, start)

    def _wide_fixed(self, value: Value) -> Value:
        if value.type == T.I32:
            known = int_value(value)
            return const_int(T.I64, known) if known is not None else self.at.cast("sext", value, T.I64)
        self._fits(value, _LEAF_BITS)
        return value

    def wide(self, value: Value, end: int) -> Value:
        """A linear number at one of the ends, in 64 bits."""
        at = self.at
        if value is self._counter.phi:
            return self.ends()[end]
        if self.is_fixed(value):
            return self._wide_fixed(self.fixed(value))
        match value:
            case I.BinaryOp(opcode="add" | "sub"):
                return at.binary(value.opcode, self.wide(value.operands[0], end), self.wide(value.operands[1], end))
            case I.BinaryOp():
                factors = [self.wide(v, end) for v in value.operands]
                for factor in factors if value.opcode == "mul" else factors[:1]:
                    self._fits(factor, _FACTOR_BITS)
                result = at.binary(value.opcode, factors[0], factors[1])
                self._fits(result, _LEAF_BITS)
                return result
            case I.Cast():
                number = self.wide(value.operands[0], end)
                self._fits(number, 32)
                if value.opcode == "zext":
                    self.demand(lambda at: at.icmp("sge", number, const_int(T.I64, 0)))
                return number
            case _:
                raise AssertionError(value)

    def address(self, pointer: Value, end: int) -> Value:
        """A linear address at one of the ends."""
        if self.is_fixed(pointer):
            return self.at.cast("ptrtoint", self.fixed(pointer), T.I64)
        assert isinstance(pointer, I.GetElementPtr)
        steps = self._steps(pointer)
        assert steps is not None
        result = self.address(pointer.operands[0], end)
        for index, size in steps[1]:
            number = self.wide(index, end)
            self._fits(number, 32 if index.type == T.I32 else _LEAF_BITS)
            result = self.at.binary("add", result, self.at.binary("mul", number, const_int(T.I64, size)))
        return self.at.binary("add", result, const_int(T.I64, steps[0])) if steps[0] else result

    def first_and_last(self, pointer: Value) -> tuple[Value, Value]:
        """The least and the greatest address that a pointer has."""
        first = self.address(pointer, 0)
        if self.is_fixed(pointer):
            return first, first
        last = self.address(pointer, 1)
        down = self.at.icmp("ugt", first, last)
        return self.at.select(down, last, first), self.at.select(down, first, last)
