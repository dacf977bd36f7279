"""Where the accesses of counting loops lie, said in front of them: addresses that are linear in what loops count.

    for (j = 1; j < m; j++) s += a[i][j - 1];      the least and the greatest address: those of a[i][0] and a[i][m - 2]

Of several loops, one inside of the other, it is the least and the greatest in all of them, or less and more than that.

Other numbers and pointers that go on by a constant follow the counter. Numbers of 32 bits are computed in 64, in which
nothing wraps, and what is demanded says where that gives the same. What does not change in the loop is computed in
front of it; what is read from memory is read there, and is the same in the loop where nothing that the loop writes lies
in the same place. Of numbers in a table (`x[at[i]]`, rows that start at `start[i]`) the least and the greatest are
looked for in all of the table that the loop reads; accesses by way of a table of pointers (`a[i][j]`) lie so far behind
each of these. What is chosen from such values, in whichever iteration (`if (x[i] > x[best]) best = i;`), lies between
the least and the greatest of them; conditions that hold where an access is (`if (i > 0)`) narrow that (`guarded`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import gcd
from types import MappingProxyType

from jax_enzyme.analysis.counters import step_to
from jax_enzyme.analysis.layout import DataLayout, Moves
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import with_operands
from jax_enzyme.ir.module import GlobalVariable
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import Argument, BasicBlock, Poison, Undef, Value, int_value
from jax_enzyme.remembered import remembered
from jax_enzyme.transform.rewriting import phis
from jax_enzyme.transform.sanitize.accesses import bytes_behind
from jax_enzyme.transform.sanitize.counting import MOST_STEP, WIDTHS, Counter
from jax_enzyme.transform.sanitize.guarded import Bound, narrowed
from jax_enzyme.transform.sanitize.provenance import root_of

_SAFE = ("add", "sub", "mul", "and", "or", "xor")
_ADDRESS_BITS = 48
_LEAF_BITS = 40
_FACTOR_BITS = 31
_DEPTH = 40
_ZERO = const_int(T.I64, 0)


def _shifts_within(value: I.BinaryOp) -> bool:
    """Whether a shift always has a result: members of a structure are parts of a word."""
    places = int_value(value.operands[1])
    return (
        value.opcode in ("shl", "lshr", "ashr")
        and value.type in WIDTHS
        and places in range(33 if value.type == T.I64 else 32)
    )


def _is_plain_shift(value: I.BinaryOp) -> bool:
    places = int_value(value.operands[1])
    return value.opcode == "shl" and places is not None and 0 <= places < 20


def _is_object(pointer: Value) -> bool:
    """Whether there is memory where a pointer leads."""
    if isinstance(pointer, Argument):
        return any(word.startswith("dereferenceable(") for word in pointer.attributes)
    return isinstance(pointer, I.Alloca | GlobalVariable)


def _number(value: I.BinaryOp) -> int:
    return int_value(value.operands[1]) or 0


def _room(value: Value) -> int:
    """The bits into which a number or an address has to fit, with sign, such that sums of it do not wrap."""
    return 32 if value.type == T.I32 else _LEAF_BITS if value.type == T.I64 else _ADDRESS_BITS


def _key(value: I.Instruction, operands: list[Value]) -> tuple[object, ...]:
    """What is equal for instructions that give the same."""
    given = tuple((v.type, int_value(v)) if int_value(v) is not None else v for v in operands)
    source = value.source_type if isinstance(value, I.GetElementPtr) else None
    return (value.opcode, value.type, source, *given)


class Affine:
    """What can be said of a loop and loops inside of it. Instructions are appended to `at`, which is in front of it."""

    def __init__(
        self,
        loop: Loop,
        counters: Mapping[Loop, Counter],
        layout: DataLayout,
        load: Callable[[I.Load, Value], Value] | None,
        scan: Callable[[I.Load], tuple[Value, Value]] | None = None,
        addresses: Mapping[Value, Value] = MappingProxyType({}),
        written: Mapping[Value, Sequence[range]] = MappingProxyType({}),
    ) -> None:
        """`counters` are of loops that are looked at; `load` builds a read in front of the loop, None: nothing is read
        there; `scan` what looks for the least and the greatest in a table, None: tables are not looked at. `addresses`
        are said of variables, instead of their own. `written`: the bytes behind pointers to which the loop writes."""
        self.at = Builder(BasicBlock())
        self._conditions: list[Value] = []
        self._holding: Value = const_int(T.I1, 1)
        self.loads: dict[I.Instruction, Value] = {}
        self._load = load
        self._scan = scan if load else None
        self._addresses = addresses
        self._layout = layout
        self._written = written
        self._before: dict[Value, Value] = {}
        self._made: dict[tuple[object, ...], Value] = {}
        self._inside = {i for block in loop.blocks for i in block.instructions}
        self._linear: dict[Value, bool] = {}
        self._fixed: dict[Value, bool] = {}
        self._counters: dict[Value, Counter] = {counter.phi: counter for counter in counters.values()}
        self._followers: dict[Value, tuple[Counter, Value, int]] = {}
        self._early: dict[Value, BasicBlock] = {}
        self._roots: dict[Value, Value] = {}
        self._bounds: tuple[Bound, ...] = ()
        for inner, counter in counters.items():
            self._early |= dict.fromkeys(() if counter.late else inner.header.instructions, inner.header)
            for phi in phis(inner.header):
                ends = inner.ends(phi) if phi.type in (*WIDTHS, T.PTR) and phi is not counter.phi else None
                step = None if ends is None else step_to(ends[1], phi)
                if ends is not None and step is not None and abs(step) <= MOST_STEP:
                    self._followers[phi] = counter, ends[0], step

    # -- what is possible

    def root(self, pointer: Value) -> Value:
        """The pointer from which another is computed, in front of loops where it moves on by a constant."""
        while True:
            pointer = root_of(pointer)
            if pointer in self._counters:
                pointer = self._counters[pointer].start
            elif pointer in self._followers:
                pointer = self._followers[pointer][1]
            elif pointer in self._inside and isinstance(pointer, I.Phi | I.Select):
                return self._chosen_root(pointer)
            else:
                return pointer

    def _chosen_root(self, pointer: I.Phi | I.Select) -> Value:
        """The root of all that a pointer is chosen from; itself where that is more than one."""
        if pointer not in self._roots:
            self._roots[pointer] = pointer
            leaves = self._leaves(pointer)
            roots = {self.root(leaf) for leaf in leaves} if leaves else {pointer}
            if len(roots) == 1:
                self._roots[pointer] = roots.pop()
        return self._roots[pointer]

    def _leaves(self, value: I.Phi | I.Select) -> list[Value] | None:
        """What a value is chosen from in the end, in any iteration; None where one of these comes before the test of a
        loop that moves it on."""
        start: list[Value] = [value]

        def chosen_from(merge: Value) -> list[Value]:
            is_merge = merge in self._inside and merge not in self._counters and merge not in self._followers
            return I.merged(merge) if is_merge and isinstance(merge, I.Phi | I.Select) else []

        found = list(reached(start, chosen_from))
        merges = [v for v in found if isinstance(v, I.Phi | I.Select) and chosen_from(v)]
        for merge in merges:
            ways = merge.targets if isinstance(merge, I.Phi) else [merge, merge]
            for leaf, way in zip(I.merged(merge), ways, strict=True):
                place = way.terminator if isinstance(way, BasicBlock) else way
                if leaf not in merges and self.is_early(place, leaf):
                    return None
        return [v for v in found if v not in merges]

    def _is_chosen(self, value: I.Phi | I.Select, depth: int) -> bool:
        leaves = self._leaves(value)
        known = bool(leaves) and not any(isinstance(leaf, Undef | Poison) for leaf in leaves or ())
        return known and all(self.is_linear(leaf, depth + 1) for leaf in leaves or ())

    def is_fixed(self, value: Value, depth: int = 0) -> bool:
        """Whether a value is the same in all iterations, as far as what it reads is."""
        if value not in self._inside:
            return True
        if value not in self._fixed:
            self._fixed[value] = False
            match value:
                case _ if depth > _DEPTH:
                    pass
                case I.Load() if self._load and value.type in (*WIDTHS, T.PTR) and not value.flags:
                    self._fixed[value] = self.is_fixed(value.operands[0], depth + 1) and not self._is_changed(value)
                case I.BinaryOp(opcode=opcode) if opcode in _SAFE or _shifts_within(value):
                    self._fixed[value] = all(self.is_fixed(v, depth + 1) for v in value.operands)
                case I.BinaryOp(opcode="sdiv" | "udiv" | "srem" | "urem") if int_value(value.operands[1]) not in (
                    None,
                    0,
                    -1,
                ):
                    self._fixed[value] = self.is_fixed(value.operands[0], depth + 1)
                case I.Cast(opcode="sext" | "zext" | "trunc") | I.GetElementPtr():
                    self._fixed[value] = all(self.is_fixed(v, depth + 1) for v in value.operands)
                case _:
                    pass
        return self._fixed[value]

    def _is_changed(self, load: I.Load) -> bool:
        """Whether the loop certainly writes where a load reads."""
        place = bytes_behind(load.operands[0], self._layout.store_size(load.type), self._layout)
        if place is None:
            return False
        root, own = place
        return any(own.start < other.stop and other.start < own.stop for other in self._written.get(root, ()))

    def is_linear(self, value: Value, depth: int = 0) -> bool:
        """Whether a value is linear in counters, or chosen from such values, a number of a table or a remainder: its
        least and its greatest can be said."""
        if self.is_fixed(value):
            return value.type in (*WIDTHS, T.PTR)
        if value not in self._linear:
            self._linear[value] = False

            def all_linear(*values: Value) -> bool:
                return all(self.is_linear(v, depth + 1) for v in values)

            match value:
                case _ if depth > _DEPTH or value.type not in (*WIDTHS, T.PTR):
                    pass
                case I.Load() if self._scan and not value.flags:
                    self._linear[value] = self._is_of_table(value, depth)
                case I.Phi():
                    self._linear[value] = self._moves_on(value, depth)
                case I.BinaryOp():
                    self._linear[value] = self._combines(value, depth)
                case I.Select() if value.type != T.PTR:
                    self._linear[value] = all_linear(*value.operands[1:])
                case I.Select():
                    self._linear[value] = self._is_chosen(value, depth)
                case I.Cast(opcode="sext" | "zext") if value.operands[0].type == T.I32 and value.type == T.I64:
                    self._linear[value] = all_linear(value.operands[0])
                case I.GetElementPtr():
                    steps = self._steps(value)
                    self._linear[value] = steps is not None and all_linear(
                        value.operands[0], *(index for index, _ in steps[1])
                    )
                case _:
                    pass
        return self._linear[value]

    def is_early(self, instruction: I.Instruction, pointer: Value) -> bool:
        """Whether an access comes before the test of a loop that moves it on, where what is counted may be beyond its
        bound."""
        header = self._early.get(instruction)
        if header is None:
            return False
        used = reached([pointer], lambda v: v.operands if v in self._inside and isinstance(v, I.Instruction) else ())
        return any(phi in used for phi in phis(header))

    def is_row(self, pointer: Value) -> bool:
        """Whether a pointer comes out of a table, in every iteration another."""
        return isinstance(pointer, I.Load) and not self.is_fixed(pointer) and self.is_linear(pointer)

    def stride(self, value: Value) -> int:
        """A number by which all that a linear number or address may be lie apart, its least and its greatest too."""
        match value:
            case _ if self.is_fixed(value):
                return 0
            case I.Phi() if value in self._counters:
                c = self._counters[value]
                return abs(c.step) if self.is_fixed(c.start) and self.is_fixed(c.bound) else 1
            case I.Phi() if value in self._followers:
                _, start, step = self._followers[value]
                return gcd(step, self.stride(start))
            case I.BinaryOp(opcode="add" | "sub"):
                return gcd(*map(self.stride, value.operands))
            case I.BinaryOp(opcode="srem" | "urem"):
                return 1
            case I.BinaryOp(opcode="mul"):
                by, number = sorted(value.operands, key=self.is_fixed, reverse=True)
                return self.stride(number) * abs(int_value(by) or 1)
            case I.BinaryOp():
                return self.stride(value.operands[0]) << _number(value)
            case I.Cast():
                return self.stride(value.operands[0])
            case I.GetElementPtr():
                steps = self._steps(value)
                assert steps is not None
                own = [size * self.stride(index) for index, size in steps[1]]
                return gcd(self.stride(value.operands[0]), *own)
            case _:
                return 1

    def _is_of_table(self, load: I.Load, depth: int) -> bool:
        address = load.operands[0]
        return (
            not self.is_early(load, address)
            and self.is_linear(address, depth + 1)
            and self.is_fixed(self.root(address))
            and self.stride(address) >= self._layout.store_size(load.type)
        )

    def _combines(self, value: I.BinaryOp, depth: int) -> bool:
        """Whether a sum, a multiple or a remainder is linear."""
        x, y = value.operands
        match value.opcode:
            case "add" | "sub":
                return self.is_linear(x, depth + 1) and self.is_linear(y, depth + 1)
            case "mul" if self.is_fixed(x):
                return self.is_linear(y, depth + 1)
            case "mul" | "srem" | "urem":
                return self.is_fixed(y) and self.is_linear(x, depth + 1)
            case _:
                return _is_plain_shift(value) and self.is_linear(x, depth + 1)

    def _moves_on(self, phi: I.Phi, depth: int) -> bool:
        if phi in self._counters:
            return self._is_counted(self._counters[phi], depth)
        if phi not in self._followers:
            return self._is_chosen(phi, depth)
        counter, start, _ = self._followers[phi]
        return self.is_linear(counter.phi, depth + 1) and self.is_linear(start, depth + 1)

    def _is_counted(self, counter: Counter, depth: int) -> bool:
        if counter.phi.type == T.PTR and not all(self.is_fixed(self.root(v)) for v in (counter.start, counter.bound)):
            return False  # in terms of rows
        if counter.predicate == "ne" and abs(counter.step) > 1:
            return self.is_fixed(counter.start) and self.is_fixed(counter.bound)
        return self.is_linear(counter.start, depth + 1) and self.is_linear(counter.bound, depth + 1)

    def _steps(self, gep: I.GetElementPtr) -> Moves | None:
        """The constant bytes of an address, and its indices with the bytes that each goes on by."""
        moves = self._layout.moves(gep.source_type, gep.operands[1:])
        if moves is None or any(size >= 1 << 20 or index.type not in WIDTHS for index, size in moves[1]):
            return None
        return moves if abs(moves[0]) < 1 << 40 else None

    # -- what is said

    def demand(self, build: Callable[[Builder], Value]) -> None:
        self._conditions.append(build(self.at))

    def holds(self) -> Value:
        """Whether all that has been demanded so far holds."""
        for condition in self._conditions:
            self._holding = self.at.binary("and", self._holding, condition)
        self._conditions.clear()
        return self._holding

    def _fit(self, interval: tuple[Value, Value], bits: int) -> None:
        """Numbers of 64 bits are to fit into so many, with sign."""
        half, whole = const_int(T.I64, 1 << (bits - 1)), const_int(T.I64, 1 << bits)
        for wide in dict.fromkeys(interval):
            known = int_value(wide)
            if known is None or abs(known) >= 1 << (bits - 1):
                self.demand(lambda at, w=wide: at.icmp("ult", at.binary("add", w, half), whole))

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

    def interval(self, value: Value) -> tuple[Value, Value]:
        """The least and the greatest that a linear number or address is, in 64 bits."""
        return self._interval(value, self._bounds)

    def interval_where(self, pointer: Value, bounds: Sequence[Bound]) -> tuple[Value, Value]:
        """The same of an address where bounds hold."""
        used = reached([pointer], lambda v: v.operands if v in self._inside and isinstance(v, I.Instruction) else ())
        self._bounds = tuple(
            bound
            for bound in bounds
            if bound.number in used
            and not self.is_fixed(bound.number)
            and self.is_linear(bound.number)
            and self.is_fixed(bound.other)
            and not (bound.number in self._counters and self._counters[bound.number].bound is bound.other)
        )
        found = self.interval(pointer)
        self._bounds = ()
        return found

    @remembered
    def _interval(self, value: Value, bounds: tuple[Bound, ...]) -> tuple[Value, Value]:
        ends = self._unbounded(value)
        for bound in bounds:
            if bound.number is value and self._is_had(bound.other):
                ends = narrowed(self.at, bound, ends, lambda other: self._plainly_wide(self.fixed(other)))
        return ends

    def _is_had(self, value: Value) -> bool:
        """Whether a value that does not change is there in front of the loop, or is computed of what is."""
        if value not in self._inside or value in self._before:
            return True
        assert isinstance(value, I.Instruction)
        if not all(map(self._is_had, value.operands)):
            return False
        return not isinstance(value, I.Load) or _key(value, [self.fixed(v) for v in value.operands]) in self._made

    def _unbounded(self, value: Value) -> tuple[Value, Value]:
        at = self.at
        if self.is_fixed(value) and not self._is_in_variable(value):
            wide = self._wide(self.fixed(value))
            return wide, wide
        match value:
            case I.Load():
                return self._scan(value) if self._scan and value.type != T.PTR else (_ZERO, _ZERO)
            case I.Phi() if value in self._counters:
                return self._counted(self._counters[value])
            case I.Phi():
                return self._of_other_iterations(value)
            case I.BinaryOp(opcode="add" | "sub"):
                first, second = (self.interval(v) for v in value.operands)
                if value.opcode == "sub":
                    second = second[::-1]
                least, most = (at.binary(value.opcode, a, b) for a, b in zip(first, second, strict=True))
                return least, most
            case I.BinaryOp(opcode="srem" | "urem") | I.Select():
                return self._chosen(value)
            case I.BinaryOp():
                by, number = sorted(value.operands, key=self.is_fixed, reverse=True)
                by = self.interval(by)[0] if value.opcode == "mul" else const_int(T.I64, 1 << _number(value))
                return self._product(self.interval(number), by)
            case I.Cast():
                number = self.interval(value.operands[0])
                self._fit(number, 32)
                if value.opcode == "zext":
                    self.demand(lambda at: at.icmp("sge", number[0], _ZERO))
                return number
            case I.GetElementPtr():
                return self._address(value)
            case _:
                raise AssertionError(value)

    def _chosen(self, value: I.Instruction) -> tuple[Value, Value]:
        """A remainder, or one of two numbers."""
        at = self.at
        if isinstance(value, I.Select):
            return self._of_other_iterations(value) if value.type == T.PTR else self._hull(value.operands[1:])
        number, by = self.interval(value.operands[0]), self.interval(value.operands[1])[0]
        self._fit(number, _room(value))
        for least, order in ((number[0], "sge"), (by, "sgt")):
            self.demand(lambda at, n=least, o=order: at.icmp(o, n, _ZERO))
        return _ZERO, at.binary("sub", by, const_int(T.I64, 1))

    def _hull(self, values: Sequence[Value]) -> tuple[Value, Value]:
        """The least and the greatest of some values."""
        at, (least, most) = self.at, self.interval(values[0])
        for low, high in map(self.interval, values[1:]):
            least = at.select(at.icmp("slt", low, least), low, least)
            most = at.select(at.icmp("sgt", high, most), high, most)
        return least, most

    def _of_other_iterations(self, value: I.Phi | I.Select) -> tuple[Value, Value]:
        """What moves on or is chosen, in whichever iteration: the bounds of this one may not have held there."""
        bounds, self._bounds = self._bounds, ()
        if isinstance(value, I.Phi) and value in self._followers:
            found = self._followed(value)
        else:
            found = self._hull(self._leaves(value) or [])
        self._bounds = bounds
        return found

    def _product(self, number: tuple[Value, Value], by: Value) -> tuple[Value, Value]:
        at, known = self.at, int_value(by)
        self._fit(number, _FACTOR_BITS)
        self._fit((by, by), _FACTOR_BITS)
        least, most = (at.binary("mul", end, by) for end in number)
        if known is None:
            down = at.icmp("slt", by, _ZERO)
            least, most = at.select(down, most, least), at.select(down, least, most)
        elif known < 0:
            least, most = most, least
        self._fit((least, most), _LEAF_BITS)
        return least, most

    def _address(self, pointer: I.GetElementPtr) -> tuple[Value, Value]:
        at, steps = self.at, self._steps(pointer)
        assert steps is not None
        least, most = self.interval(pointer.operands[0])
        for index, size in steps[1]:
            number = self.interval(index)
            self._fit(number, _room(index))
            own = [at.binary("mul", end, const_int(T.I64, size)) for end in number]
            least, most = at.binary("add", least, own[0]), at.binary("add", most, own[1])
        if steps[0]:
            least, most = (at.binary("add", end, const_int(T.I64, steps[0])) for end in (least, most))
        return least, most

    def _is_in_variable(self, value: Value) -> bool:
        if not isinstance(value, I.GetElementPtr) or root_of(value) not in self._addresses:
            return False
        return self._steps(value) is not None

    def _wide(self, value: Value) -> Value:
        if value in self._addresses:
            return self._addresses[value]
        wide = self._plainly_wide(value)
        if value.type == T.I32:
            return wide
        if not _is_object(value):
            self._fit((wide, wide), _room(value))
        return wide

    def _plainly_wide(self, value: Value) -> Value:
        known = int_value(value)
        if value.type == T.I32:
            return const_int(T.I64, known) if known is not None else self.at.cast("sext", value, T.I64)
        return self.at.cast("ptrtoint", value, T.I64) if value.type == T.PTR else value

    def _counted(self, c: Counter) -> tuple[Value, Value]:
        at, up, bits = self.at, c.step > 0, _room(c.phi)
        starts, bounds = (self.interval(v) if up else self.interval(v)[::-1] for v in (c.start, c.bound))
        width, one = const_int(T.I64, c.step), const_int(T.I64, 1 if up else -1)
        for number in dict.fromkeys((*starts, *bounds)):
            self._fit((number, number), bits)
            if c.predicate[0] == "u":
                self.demand(lambda at, n=number: at.icmp("sge", n, _ZERO))

        def last_below(bound: Value) -> Value:
            last = (
                bound
                if c.predicate in ("sle", "ule", "sge", "uge")
                else at.binary("sub", bound, width if c.predicate == "ne" else one)
            )
            if c.late and not c.ahead:
                return at.binary("add", last, width)
            return at.binary("sub", last, width) if c.ahead and not c.late else last

        # `starts` and `bounds` are those next to each other, and the others: the way is the longest from the first
        # start to the last bound.
        last = last_below(bounds[1])
        if c.predicate == "ne":
            order, nearest = "sle" if up else "sge", last_below(bounds[0])
            self.demand(lambda at: at.icmp(order, starts[1], nearest if c.late else at.binary("add", nearest, width)))
        if abs(c.step) > 1 and starts[0] is starts[1] and bounds[0] is bounds[1]:
            rest = at.binary("srem", at.binary("sub", last, starts[0]), const_int(T.I64, abs(c.step)))
            last = at.binary("sub", last, rest)
            if c.predicate == "ne":
                self.demand(lambda at: at.icmp("eq", rest, _ZERO))
        if c.late:
            beyond = at.icmp("slt" if up else "sgt", last, starts[1])
            last = at.select(beyond, starts[1], last)
        # Where the test fails in the end nothing may have wrapped around.
        tested = last if c.late and not c.ahead else at.binary("add", last, width)
        if c.ahead and not c.late:
            tested = at.binary("add", tested, width)
        self._fit((tested, tested), bits)
        if c.predicate[0] == "u":
            self.demand(lambda at: at.icmp("sge", tested, _ZERO))
        return (starts[0], last) if up else (last, starts[0])

    def _followed(self, phi: I.Phi) -> tuple[Value, Value]:
        """A number or an address that moves on as a counter does."""
        at, (counter, start, step) = self.at, self._followers[phi]
        least, most = self.interval(counter.phi)
        trips = at.binary("sdiv", at.binary("sub", most, least), const_int(T.I64, abs(counter.step)))
        way = at.binary("mul", trips, const_int(T.I64, step))
        first = self.interval(start)
        ends = (first[0], at.binary("add", first[1], way)) if step > 0 else (at.binary("add", first[0], way), first[1])
        self._fit(first, _room(phi))
        self._fit(ends, _room(phi))
        return ends
