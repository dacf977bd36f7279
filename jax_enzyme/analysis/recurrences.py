"""Scalar evolution: closed forms of integers and pointers over the iterations of loops, trip counts, ranges.

The facts rest on one another (a trip count on the range of an outer induction variable, that on the outer trip count, a
packed index on the inner one), so all are found on demand through one `Memo`. Every fact is about executions without
undefined behaviour, and a closed form about a value that is not poison. What cannot be shown is left open: a value
without a closed form is a `Leaf` of the forms that contain it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

from jax_enzyme.analysis.guards import Condition, Guards
from jax_enzyme.analysis.implications import bounds, vanishes
from jax_enzyme.analysis.integer_facts import UNKNOWN, Form, TripCount
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.analysis.memo import Memo
from jax_enzyme.analysis.phi_ranges import header_phi_range
from jax_enzyme.analysis.polynomials import Atom, Iteration, Leaf, Polynomial, TooComplex
from jax_enzyme.analysis.quotients import division
from jax_enzyme.analysis.ranges import Interval, Transfer, full_range, hull_of, unsigned_range
from jax_enzyme.analysis.simulation import Simulation, simulate
from jax_enzyme.analysis.trips import trip_count
from jax_enzyme.classes import dataclass, replace
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.naming import local_names
from jax_enzyme.ir.values import BasicBlock, Value, int_value
from jax_enzyme.remembered import remembered

F = TypeVar("F")
_MAX_ITERATION = (1 << 63) - 1


@dataclass(frozen=True)
class Recurrence:
    """The chain {c0,+,c1,+,...}<loop>: at iteration k the value is the sum of `cj * C(k, j)`, modulo 2**bits.

    The coefficients are invariant in the loop: constants, iteration numbers of outer loops, values from outside."""

    coefficients: tuple[Polynomial, ...]
    loop: Loop

    def __str__(self) -> str:
        return "{" + ",+,".join(map(str, self.coefficients)) + "}<" + self.loop.header.name + ">"


class Recurrences:
    """Facts about the integers of a function. `module`, where given, is asked for `!range` nodes and struct sizes;
    `effort` is how many questions an answer may lead to."""

    @staticmethod
    def of(function: Function, module: Module | None = None) -> Recurrences:
        """Those of a function as it is now."""
        return Recurrences(function, Loops.of(function), module)

    def __init__(self, function: Function, loops: Loops, module: Module | None = None, effort: int = 10_000) -> None:
        self.function = function
        self.cfg = cfg = loops.cfg
        self.loops = loops
        self.dominators = loops.dominators
        self.guards = Guards(cfg, loops.dominators)
        self.sources: dict[Condition, frozenset[Value] | None] = {}
        self._transfer = Transfer(function, module, self)
        self.block_of: dict[Value, BasicBlock] = {**self._transfer.block_of}
        self._layout = DataLayout(module or Module())
        self._memo = Memo(work=effort)
        self._pending: dict[I.Phi, None] = {}
        self._assumed: list[tuple[Polynomial, Interval]] = []
        self._iterations = {loop: Iteration(loop, rank) for rank, loop in enumerate(loops.all)}
        self._leaves: dict[Value, Leaf] = {}
        # Where control comes back to: what follows from itself goes through a phi there.
        self._turns = {loop.header for loop in loops.all} | {target for _, target in loops.irreducible}
        returns = [b for b in cfg.rpo if isinstance(b.terminator, I.Return | I.Resume)]
        self._returning = {b for b in cfg.rpo if b in returns or any(cfg.reaches(b, r) for r in returns)}

    # What the engine asks.

    def closed_form(self, value: Value, loop: Loop) -> Recurrence | None:
        """The value, as used inside `loop`, as a chain in the loop's iteration number; None if it has none."""
        if self.bits(value.type) is None:
            return None
        parts = self.form_at(
            value, loop.header if self.block_of.get(value) not in loop.blocks else self.block_of[value]
        )
        coefficients = parts.polynomial.coefficients(self.iteration(loop))
        if not all(self.is_invariant(c, loop) for c in coefficients):
            return None
        return Recurrence(tuple(coefficients), loop)

    def trip_count(self, loop: Loop) -> TripCount:
        """How often the loop's back edge is taken: see `TripCount`."""

        def compute() -> TripCount:
            try:
                return trip_count(self, loop)
            except TooComplex:
                return UNKNOWN

        return self._memo.get(("trips", loop), compute, lambda: UNKNOWN, cut=True)

    def repeats(self, loop: Loop) -> int | None:
        """How often the loop's back edge is taken, where that is a constant."""
        exact = self.trip_count(loop).exact
        return None if exact is None else exact.value

    def step(self, phi: I.Phi, loop: Loop) -> int | None:
        """The constant by which a phi of the loop's header goes on in each iteration; None where it does otherwise."""
        recurrence = self.closed_form(phi, loop)
        parts = () if recurrence is None else recurrence.coefficients
        return parts[1].value if len(parts) == 2 else None

    def range_of(self, value: Value) -> Interval:
        """The signed range of a scalar integer, where it is defined."""
        full = full_range(T.bits(value.type))
        return self._memo.get(
            ("range", value), lambda: self._range(value, full), lambda: full, isinstance(value, I.Phi)
        )

    def range_at(self, value: Value, block: BasicBlock) -> Interval:
        """The range of a value as it is used in `block`: conditions that dominate the block count."""
        return self._refined(value, self.guards.at(block), block)

    def iteration(self, loop: Loop) -> Iteration:
        """The atom that stands for the loop's iteration number."""
        return self._iterations[loop]

    def leaf(self, value: Value) -> Leaf:
        """The atom that stands for a value."""
        if value not in self._leaves:
            self._leaves[value] = Leaf(value, len(self._iterations) + len(self._leaves))
        return self._leaves[value]

    def memoised(self, key: Hashable, compute: Callable[[], F], fallback: F) -> F:
        """A further fact in the common table."""
        return self._memo.get(key, compute, lambda: fallback, cut=True)

    def once_per_iteration(self, block: BasicBlock, loop: Loop) -> bool:
        """Is the block run exactly once in every iteration that takes the back edge?"""
        return self.loops.loop_of[block] is loop and all(self.dominators.dominates(block, b) for b in loop.latches)

    @remembered
    def simulation(self, loop: Loop, source: BasicBlock) -> Simulation | None:
        """What leads to the exit of a loop at the branch that ends `source`. Each loop is run once, however often the
        facts that rest on it are asked for."""
        return simulate(self, loop, source)

    # Closed forms.

    @staticmethod
    def bits(type_: T.Type) -> int | None:
        """The width in which values of the type are computed with; None for types that have no closed forms."""
        if isinstance(type_, T.IntType):
            return type_.bits if 1 < type_.bits <= 64 else None
        return 64 if isinstance(type_, T.PointerType) and type_.address_space == 0 else None

    def form(self, value: Value) -> Form:
        """The closed form of an integer (2 to 64 bits) or pointer, where it is defined: a polynomial in the iteration
        numbers of the loops around it and in leaves, modulo 2**bits (`polynomials.emit` computes it). Each leaf
        dominates the value; it stands for the leaf's value in the same iterations."""
        constant = int_value(value)
        if constant is not None:
            return Form(Polynomial.constant(constant), True, constant >= 0)
        if not isinstance(value, I.Instruction) or value not in self.block_of:
            return self._opaque(value)
        cut = isinstance(value, I.Phi) and self.block_of[value] in self._turns
        return self._memo.get(("form", value), lambda: self._compute(value), lambda: self._opaque(value), cut)

    def form_at(self, value: Value, block: BasicBlock) -> Form:
        """The closed form of a value as it is used in `block`, outside of loops that the definition is in perhaps."""
        form = self.form(value)
        home = self.block_of.get(value)
        loop = self.loops.loop_of.get(home) if home is not None else None
        while loop is not None and block not in loop:
            left = self._leave(form, loop)
            if left is None:
                return self._opaque(value)
            form, loop = left, loop.parent
        return form

    def exact_at(self, value: Value, block: BasicBlock) -> Form:
        """A form that is the value over the integers, and not modulo 2**bits alone: the value itself where its parts
        may wrap."""
        form, bits = self.form_at(value, block), self.bits(value.type) or 0
        return form if self.is_signed(form, bits) or self.is_unsigned(form, bits) else self._opaque(value)

    def _leave(self, form: Form, loop: Loop) -> Form | None:
        """A form after the loop: what it was in the last iteration."""
        k = self.iteration(loop)
        if any(isinstance(a, Leaf) and self.block_of.get(a.value) in loop.blocks for a in form.polynomial.atoms):
            return None
        if k not in form.polynomial.atoms:
            return form
        last = self.trip_count(loop).exact
        if last is None:
            return None
        try:
            return replace(form, polynomial=form.polynomial.substitute(k, last))
        except TooComplex:
            return None

    def is_invariant(self, polynomial: Polynomial, loop: Loop) -> bool:
        """Does it have one value from entering the loop to leaving it?"""
        for atom in polynomial.atoms:
            if isinstance(atom, Iteration):
                if atom.loop is loop or not atom.loop.encloses(loop):
                    return False
            elif self.block_of.get(atom.value) in loop.blocks:
                return False
        return True

    def _opaque(self, value: Value) -> Form:
        pointer = isinstance(value.type, T.PointerType)
        return Form(Polynomial.atom(self.leaf(value)), True, pointer)

    def _compute(self, value: I.Instruction) -> Form:
        bits = self.bits(value.type)
        try:
            form = self._operation(value) if bits is not None else None
        except TooComplex:
            form = None
        if form is None or bits is None:
            return self._opaque(value)
        if form.signed or form.unsigned:
            return form
        return replace(form, polynomial=form.polynomial.modulo(bits))

    def _operation(self, value: I.Instruction) -> Form | None:
        match value:
            case I.BinaryOp():
                return self._binary(value)
            case I.Cast():
                return self._cast(value)
            case I.GetElementPtr():
                return self._address(value)
            case I.Phi():
                return self._phi(value)
            case _:
                return None

    def _operand(self, user: I.Instruction, index: int) -> Form:
        return self.form_at(user.operands[index], self.block_of[user])

    def _binary(self, value: I.BinaryOp) -> Form | None:
        x, y = self._operand(value, 0), self._operand(value, 1)
        flags = value.flags
        constant = y.polynomial.value
        match value.opcode:
            case "add" | "sub" | "mul":
                p, q = x.polynomial, y.polynomial
                result = p + q if value.opcode == "add" else p - q if value.opcode == "sub" else p * q
                result = self._joined(result, self.block_of[value]) if value.opcode == "add" else result
            case "or" if "disjoint" in flags:
                result, flags = self._joined(x.polynomial + y.polynomial, self.block_of[value]), ("nuw", "nsw")
            case "shl" if constant is not None and 0 <= constant < 64:
                result = x.polynomial.scale(1 << constant)
            case "xor" if constant == -1:
                return Form(x.polynomial.scale(-1).add_constant(-1), x.signed)
            case "and" if constant is not None and constant > 0 and constant & (constant + 1) == 0:
                inside = self._moved_into(x.polynomial, constant)
                return Form(inside, True, True) if self._fits(inside, Interval(0, constant)) else None
            case "ashr" if (narrow := _sign_extended(value)) is not None:
                inner = self.form_at(narrow[0], self.block_of[value])
                return Form(inner.polynomial, True) if self._fits(inner.polynomial, full_range(narrow[1])) else None
            case "lshr" | "ashr" | "udiv" | "sdiv" if constant is not None:
                return self._quotient(value, x, constant)
            case _:
                return None
        bits = self.bits(value.type) or 0
        nuw = "nuw" in flags and self.is_unsigned(x, bits) and self.is_unsigned(y, bits)
        nsw = "nsw" in flags and self.is_signed(x, bits) and self.is_signed(y, bits)
        return Form(result, nsw, nuw)

    def _quotient(self, value: I.BinaryOp, x: Form, constant: int) -> Form | None:
        """A division without remainder of a number that is what its closed form says."""
        bits = self.bits(value.type) or 0
        divisor = 1 << constant if value.opcode.endswith("shr") and 0 <= constant < bits - 1 else constant
        quotient = x.polynomial.divide(divisor) if divisor > 0 else None
        exact = self.is_signed if value.opcode in ("ashr", "sdiv") else self.is_unsigned
        if quotient is None or not exact(x, bits):
            return None
        return Form(quotient, exact == self.is_signed, exact == self.is_unsigned)

    def _moved_into(self, polynomial: Polynomial, mask: int) -> Polynomial:
        """The polynomial less a multiple of `mask + 1`, so that it is within the mask, where there is such a multiple:
        (i + 0xffffffff) & 0xffffffff is i - 1, where i is 1 at least."""
        reach = self.interval(polynomial)
        begin = reach.low & ~mask
        return polynomial.add_constant(-begin) if reach.high - begin <= mask else polynomial

    def _joined(self, sum_: Polynomial, block: BasicBlock) -> Polynomial:
        """A sum in which a quotient meets its remainder: 8 (x >> 3) + (x & 7) is x, and so is (x & ~7) + (x & 7)."""
        parts = [(a, found) for a in sum_.atoms if isinstance(a, Leaf) and (found := division(a.value)) is not None]
        for rest, r in parts if len(parts) > 1 else ():
            times = sum_.terms.get(((rest, 1),), 0) if r.weight == 0 else 0
            for whole, q in parts if times else ():
                held = times * q.weight
                if q.weight == 0 or q.divisor != r.divisor or sum_.terms.get(((whole, 1),)) != held:
                    continue
                x, y = self.form_at(r.of, block), self.form_at(q.of, block)
                exact = all(self.is_signed(f, self.bits(v.type) or 0) for f, v in ((x, r.of), (y, q.of)))
                in_limits = exact and self.interval(y.polynomial).within(q.limits)
                if in_limits and (x.polynomial - y.polynomial).value == 0:
                    gone = Polynomial.atom(rest).scale(times) + Polynomial.atom(whole).scale(held)
                    return sum_ - gone + x.polynomial.scale(times)
        return sum_

    def _cast(self, value: I.Cast) -> Form | None:
        source = self.bits(value.operands[0].type)
        if source is None or value.opcode not in ("zext", "sext", "trunc"):
            return None
        x = self._operand(value, 0)
        if value.opcode == "trunc":
            exact = "nsw" in value.flags and self.is_signed(x, source)
            return Form(x.polynomial if exact else x.polynomial.modulo(self.bits(value.type) or source), exact)
        if value.opcode == "sext":
            return Form(x.polynomial, True) if x.signed or self._fits(x.polynomial, full_range(source)) else None
        if x.unsigned or self._fits(x.polynomial, unsigned_range(source)):
            return Form(x.polynomial, True, True)
        positive = "nneg" in value.flags or self.range_at(value.operands[0], self.block_of[value]).low >= 0
        return Form(x.polynomial, True, True) if positive and self.is_signed(x, source) else None

    def _address(self, value: I.GetElementPtr) -> Form | None:
        """A pointer, as the base's address plus the offset in bytes."""
        base = self._operand(value, 0)
        total, exact = base.polynomial, base.unsigned and bool({"inbounds", "nusw"} & set(value.flags))
        moves = self._layout.moves(value.source_type, value.operands[1:])
        if moves is None:
            return None
        total = total.add_constant(moves[0])
        for index, size in moves[1]:
            width = self.bits(index.type)
            if width is None:
                return None
            form = self.form_at(index, self.block_of[value])
            signed = self.is_signed(form, width)
            if width < 64 and not signed:
                return None
            exact = exact and signed
            total += form.polynomial.scale(size)
        return Form(self._joined(total, self.block_of[value]), exact, exact)

    def _phi(self, phi: I.Phi) -> Form | None:
        block = self.block_of[phi]
        loop = self.loops.loop_of.get(block)
        if loop is not None and loop.header is block:
            ends = self.header_operands(phi, loop)
            return self._around(phi, loop, *ends) if ends is not None else None
        incoming = [(v, b) for v, b in phi.incoming if b in self.cfg.index]
        if len({v for v, _ in incoming}) == 1:
            value = incoming[0][0]
            form = self.form_at(value, block)
            return form if self._available(form.polynomial, block) else None
        return self._merge(block, incoming) if len(incoming) == 2 else None

    def header_operands(
        self, phi: I.Phi, loop: Loop
    ) -> tuple[tuple[Value, BasicBlock], tuple[Value, BasicBlock]] | None:
        """(value, block) on entry and from the latch, if there is one of each."""
        inside = {v: b for v, b in phi.incoming if b in loop}
        outside = {v: b for v, b in phi.incoming if b not in loop and b in self.cfg.index}
        if len(inside) != 1 or len(outside) != 1:
            return None
        return next(iter(outside.items())), next(iter(inside.items()))

    def _around(
        self, phi: I.Phi, loop: Loop, entry: tuple[Value, BasicBlock], latch: tuple[Value, BasicBlock]
    ) -> Form | None:
        """A header's phi: with itself as a leaf, the latch's value less the leaf is the step, summed up."""
        start = self.form_at(*entry)
        before = len(self._assumed)
        self._pending[phi] = None
        then = self.form_at(*latch)
        del self._pending[phi]
        try:
            form = self._solve(phi, loop, start, then, latch[0])
        except TooComplex:
            form = None
        return form if self._settle(self.leaf(phi), form, before) else None

    def _solve(self, phi: I.Phi, loop: Loop, start: Form, then: Form, latch: Value) -> Form | None:
        k, own = self.iteration(loop), self.leaf(phi)
        parts = then.polynomial.coefficients(own)
        if len(parts) == 1:
            return self._lagging(start, then, loop)
        step = parts[0]
        invariant = [self.is_invariant(c, loop) for c in step.coefficients(k)]
        if len(parts) > 2 or parts[1].value != 1 or not all(invariant):
            return None
        form = Form(start.polynomial + step.summed(k), start.signed and then.signed)
        return replace(form, unsigned=self._grows(phi, start, latch))

    def _fits(self, polynomial: Polynomial, limits: Interval) -> bool:
        """Does the polynomial stay within the limits? While a phi in it is being solved that is assumed, and made sure
        of afterwards: an index that is narrowed and widened again in each iteration is found in this way."""
        if self.interval(polynomial).within(limits):
            return True
        if not any(isinstance(atom, Leaf) and atom.value in self._pending for atom in polynomial.atoms):
            return False
        self._assumed.append((polynomial, limits))
        return True

    def _settle(self, own: Leaf, form: Form | None, before: int) -> bool:
        """Checks what was assumed about a phi, now that its closed form is found. It holds for one iteration after the
        other: the form is right in this one, hence what was assumed, hence the form is right in the next."""
        mine = [(p, limits) for p, limits in self._assumed[before:] if own in p.atoms]
        self._assumed[before:] = [(p, limits) for p, limits in self._assumed[before:] if own not in p.atoms]
        holds = form is not None or not mine
        if form is not None:
            try:
                holds = all(self._fits(p.substitute(own, form.polynomial), limits) for p, limits in mine)
            except TooComplex:
                holds = False
        if not holds:
            self._memo.doubt()
        return holds

    def _grows(self, phi: I.Phi, start: Form, latch: Value) -> bool:
        """`latch` is `add nuw phi, step` with every number a known unsigned one: then no iteration wraps."""
        if not isinstance(latch, I.BinaryOp) or latch.opcode != "add" or "nuw" not in latch.flags:
            return False
        steps = [x for x in latch.operands if x is not phi]
        bits = self.bits(phi.type) or 0
        return len(steps) == 1 and self.is_unsigned(self.form(steps[0]), bits) and self.is_unsigned(start, bits)

    def _lagging(self, start: Form, then: Form, loop: Loop) -> Form | None:
        """A phi that holds what another value was one iteration ago, and started as what that was before the first."""
        k = self.iteration(loop)
        if not all(self.is_invariant(c, loop) for c in then.polynomial.coefficients(k)):
            return None
        before = then.polynomial.substitute(k, Polynomial.atom(k).add_constant(-1))
        if (start.polynomial - before).coefficients(k)[0].terms:
            return None
        return Form(before, start.signed and then.signed)

    def _merge(self, block: BasicBlock, incoming: Sequence[tuple[Value, BasicBlock]]) -> Form | None:
        """A phi where paths join: one side's form, if the conditions on the other edge make the two equal there."""
        forms = [self.form_at(value, pred) for value, pred in incoming]
        for form, other, (_, pred) in (
            (forms[0], forms[1], incoming[1]),
            (forms[1], forms[0], incoming[0]),
        ):
            if not self._available(form.polynomial, block):
                continue
            difference = form.polynomial - other.polynomial
            if not difference.terms or vanishes(self, difference, self.guards.on_edge(pred, block)):
                return Form(form.polynomial, form.signed and other.signed, form.unsigned and other.unsigned)
        return None

    def _available(self, polynomial: Polynomial, block: BasicBlock) -> bool:
        for atom in polynomial.atoms:
            if isinstance(atom, Iteration):
                if block not in atom.loop:
                    return False
                continue
            home = self.block_of.get(atom.value)
            if home is not None and (home is block or not self.dominators.dominates(home, block)):
                return False
        return True

    # Ranges.

    def is_signed(self, form: Form, bits: int) -> bool:
        """Is the form's polynomial, over the integers, the value read as signed?"""
        return form.signed or self.interval(form.polynomial).within(full_range(bits))

    def is_unsigned(self, form: Form, bits: int) -> bool:
        """Is the form's polynomial, over the integers, the value read as unsigned?"""
        return form.unsigned or self.interval(form.polynomial).within(unsigned_range(bits))

    def interval(self, polynomial: Polynomial) -> Interval:
        """An interval that contains the polynomial's values, over the whole execution."""
        inner = [a for a in polynomial.atoms if isinstance(a, Iteration)]
        for atom in sorted(inner, key=lambda a: -a.loop.depth):
            last = self.trip_count(atom.loop).exact
            if last is None:
                continue
            first, *slopes = polynomial.coefficients(atom)
            ranges = [slope.interval(self.atom_range) for slope in slopes]
            up = all(r.low >= 0 for r in ranges)
            if not up and not all(r.high <= 0 for r in ranges):
                continue
            # Monotone in this iteration number: the ends are the first and the last iteration.
            try:
                ends = self.interval(first), self.interval(polynomial.substitute(atom, last))
            except TooComplex:
                continue
            found = Interval(ends[0].low, ends[1].high) if up else Interval(ends[1].low, ends[0].high)
            return found.meet(polynomial.interval(self.atom_range))
        return polynomial.interval(self.atom_range)

    def bounds(self, polynomial: Polynomial, conditions: Iterable[Condition]) -> Interval:
        """An interval that contains the polynomial's values wherever the conditions hold."""
        return bounds(self, polynomial, conditions)

    def atom_range(self, atom: Atom) -> Interval:
        """The values that an atom takes over the whole execution."""
        if isinstance(atom, Iteration):
            maximum = self.trip_count(atom.loop).maximum
            return Interval(0, _MAX_ITERATION if maximum is None else maximum)
        return unsigned_range(64) if isinstance(atom.value.type, T.PointerType) else self.range_of(atom.value)

    def _range(self, value: Value, full: Interval) -> Interval:
        known = self._transfer.range_of(value)
        home = self.block_of.get(value)
        if home is None or self.bits(value.type) is None:
            return known
        form = self.form(value)
        if form.polynomial.is_atom(self.leaf(value)):
            return known
        found = self.bounds(form.polynomial, self.guards.at(home))
        known = known.meet(found) if form.signed or found.within(full) else known
        loop = self.loops.loop_of.get(home)
        if isinstance(value, I.Phi) and loop is not None and loop.header is home:
            # As far as the conditions let it go that lead into the loop and round it: `i < n`, of `i += 96`.
            ends = self.header_operands(value, loop) or ()
            edges = [self.edge_range(v, block, home) for v, block in ends]
            known = known.meet(hull_of(n for e in edges for n in (e.low, e.high))) if edges else known
        return known

    def _refined(self, value: Value, conditions: Iterable[Condition], block: BasicBlock) -> Interval:
        known = self.range_of(value)
        bits = self.bits(value.type)
        if bits is None or int_value(value) is not None:
            return known
        form = self.form_at(value, block)
        return known.meet(self.bounds(form.polynomial, conditions)) if self.is_signed(form, bits) else known

    def operand_range(self, value: Value, block: BasicBlock) -> Interval:
        return self.range_at(value, block)

    def edge_range(self, value: Value, source: BasicBlock, target: BasicBlock) -> Interval:
        """The range of a value when control goes from `source` to `target`."""
        return self._refined(value, self.guards.on_edge(source, target), source)

    def phi_range(self, phi: I.Phi) -> Interval | None:
        block = self.block_of[phi]
        loop = self.loops.loop_of.get(block)
        return header_phi_range(self, phi, loop) if loop is not None and loop.header is block else None

    def ends_program(self, block: BasicBlock) -> bool:
        """Does no return come after this block?"""
        return block not in self._returning

    # Printing.

    def describe(self) -> str:
        """The trip count of each loop, then each value with a closed form or a range, in the order of the function."""
        names = local_names(self.function)

        def name_of(value: Value) -> str:
            return names.get(value, f"@{value.name}")

        lines = [
            "  " * (loop.depth - 1) + f"loop {name_of(loop.header)}: {self.trip_count(loop).text(name_of)}"
            for loop in self.loops
        ]
        for block in self.cfg.rpo:
            for value in block.instructions:
                if self.bits(value.type) is None:
                    continue
                form = self.form(value)
                facts = "" if form.polynomial.is_atom(self.leaf(value)) else f" = {form.polynomial.text(name_of)}"
                if isinstance(value.type, T.IntType):
                    known = self.range_of(value)
                    facts += "" if known == full_range(value.type.bits) else f" in {known}"
                if facts:
                    lines.append(f"{name_of(value)}{facts}")
        return "\n".join(lines)

    __str__ = describe


def _sign_extended(value: I.BinaryOp) -> tuple[Value, int] | None:
    """(x, bits) for `ashr (shl x, c), c`, which is the sign extension of x's low bits."""
    shifted, amount = value.operands[0], int_value(value.operands[1])
    if not isinstance(shifted, I.BinaryOp) or shifted.opcode != "shl" or not isinstance(value.type, T.IntType):
        return None
    if amount is None or int_value(shifted.operands[1]) != amount or not 0 < amount < value.type.bits:
        return None
    return shifted.operands[0], value.type.bits - amount
