"""Loops with loops inside whose iterations may run in lockstep: eight at a time, each instruction for all of them.

    for i: { for j: u[j] = x[i][j] - m[j];  for j: for k < j: q += L[j][k] * u[k];  s += q * q }

Every iteration takes the same way (no branch depends on its number or on numbers), and none sees what another one
leaves in memory. Of each object that the loop writes one of these is proved:

- *divided*: no iteration writes a byte that another one touches (`analysis.independence`, or pair by pair
  `analysis.later_writes`),
- *renewed*: each iteration has written all that it touches of it before it reads any, or clears all of that in the end,
  as the reverse of such a loop does (`PrivateMemory.renewal`); so iterations may have copies, and what is there behind
  the loop is what the last iteration left,
- *added to*: by sums whose order is free (`reassoc`), at places that are the same for all iterations; or at places that
  differ for those of a block, or that data say, each number loaded, added to and stored again before any other. What
  data say may be one place for several iterations: there they add one after the other.

A store of the same number to the same place in all iterations, as of what they share to the tape, is one for all: of
such an object all else is divided.

What iterations hand on are counters, sums whose order is free, and sums of one addition in the order of the source.

What a value is to the iterations (`shapes`): the same for all (not in the table); so much more for one than for the one
before, where it is an integer or an address (a number); or any (None).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from math import prod

from jax_enzyme.analysis.accesses import Access
from jax_enzyme.analysis.accumulation import Chain, chain
from jax_enzyme.analysis.digits import overlap
from jax_enzyme.analysis.evaluation import is_pure
from jax_enzyme.analysis.extents import argument_size, room
from jax_enzyme.analysis.independence import Independence
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.objects import MemoryObject, call_effect
from jax_enzyme.analysis.polynomials import Leaf, Polynomial, TooComplex
from jax_enzyme.analysis.private_memory import Renewed
from jax_enzyme.classes import dataclass, field
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import callee_name, is_fused
from jax_enzyme.ir.values import Argument, BasicBlock, Value, int_value
from jax_enzyme.remembered import remembered
from jax_enzyme.rules.effects import Effect

_REGISTER = 64
"""The bytes of a number that is computed for all iterations: eight, or sixteen where all numbers are `float`. That is
one register of AVX-512, or two of AVX2. Twice as many where their sums are added to memory: adding up the lanes of two
takes hardly longer than those of one."""
_BLOCKS = 4
"""There should be so many times as many iterations as run at once."""
_BYTES = 1 << 15
"""Of copies of memory: about half of the nearest cache, in which an iteration finds its own now."""
_ROW, _GATHERED_ROW = 32, 16
"""LLVM makes good vectors of innermost loops of so many iterations over what lies side by side; better ones already of
shorter loops where that does not lie side by side for the iterations around them."""
_UNKNOWN = 16
_NOBODY_WAITS = 1 << 40
"""So many iterations of a loop inside of a loop."""
_GATHERED = 0.5
"""A number that lies apart from that of the next iteration, in operations."""
_ADDED_APART = 4
"""The same of a number to which one iteration after the other is added."""
_LONG = 8
"""An operation that takes long, or a call, in others."""
ELEMENTWISE = (
    "llvm.fmuladd.", "llvm.fma.", "llvm.fabs.", "llvm.sqrt.", "llvm.copysign.", "llvm.minnum.", "llvm.maxnum.",
    "llvm.minimum.", "llvm.maximum.", "llvm.floor.", "llvm.ceil.", "llvm.trunc.", "llvm.rint.", "llvm.nearbyint.",
    "llvm.round.", "llvm.smax.", "llvm.smin.", "llvm.umax.", "llvm.umin.",
)  # fmt: skip
"""Functions that exist for vectors, and compute each number of one as they compute it alone."""
_BULK = (Effect.MEMORY_SET, Effect.MEMORY_COPY)
_WHOLE = (8, 16, 32, 64)
_PLAIN = (I.BinaryOp, I.UnaryOp, I.Cast, I.Compare, I.Select, I.Freeze, I.Phi, I.GetElementPtr)
_AFFINE = ("add", "sub", "mul", "shl", "or", "sext", "zext", "trunc", "phi", "getelementptr")


@dataclass(frozen=True, eq=False)
class Lockstep:
    """A loop whose iterations may run in lockstep, `width` at a time. `ordered`: phis of its header that are sums in
    order, with their additions; `free`: those whose order is free; `renewed`: objects of which iterations have copies,
    with how and with the size of all numbers in them and of the object; `added`: the stores to those that they add to,
    with the loads that their sums begin with."""

    loop: Loop
    blocks: tuple[BasicBlock, ...]
    count: int | Polynomial
    width: int
    counters: tuple[tuple[I.Phi, int], ...]
    ordered: Mapping[I.Phi, I.Instruction]
    free: frozenset[I.Phi]
    renewed: Mapping[Value, tuple[Renewed, int, int]]
    added: Mapping[I.Instruction, I.Instruction]
    apart: Mapping[I.Instruction, I.Instruction]
    """Stores to what iterations add to where data say, one after the other, with the loads that their sums begin
    with."""
    shapes: Mapping[Value, int | None]
    sites: Mapping[I.Instruction, Value]
    """The objects that are renewed or added to, by access."""


@dataclass(eq=False)
class _Memory:
    """Of a `Lockstep`, and besides: stores that are the same in all iterations, and the loads and stores of what is
    added to at places that differ."""

    renewed: dict[Value, tuple[Renewed, int, int]] = field(default_factory=dict)
    added: dict[I.Instruction, I.Instruction] = field(default_factory=dict)
    apart: dict[I.Instruction, I.Instruction] = field(default_factory=dict)
    sites: dict[I.Instruction, Value] = field(default_factory=dict)
    common: list[I.Store] = field(default_factory=list)
    scattered: list[I.Load | I.Store] = field(default_factory=list)


class InLockstep(Independence):
    """The facts about one function."""

    def candidates(self) -> list[Loop]:
        """The loops that may be worth it, by their shape and cost alone."""
        return [loop for loop in self.loops.all if self._may_gain(loop)]

    def found(self) -> list[Lockstep]:
        """The outermost loops that are worth it and proved."""
        found: list[Lockstep] = []
        pending = list(self.loops.roots)
        while pending:
            loop = pending.pop(0)
            share = self._proved(loop) if self._may_gain(loop) else None
            if share is None:
                pending += loop.children
            else:
                found.append(share)
        return found

    def waiting(self) -> list[Loop]:
        """Loops that are worth it, and not proved for the order of sums in loops inside, which derivatives free."""
        left = [loop for loop in self.candidates() if self._proved(loop) is None]
        return [loop for loop in left if self._proved(loop, in_any_order=True) is not None]

    @remembered
    def _may_gain(self, loop: Loop) -> bool:
        if not loop.children or loop.exiting != loop.latches or len(loop.latches) != 1 or loop.preheader is None:
            return False
        if self._repeated(loop) is None or self._iterations(loop) < _BLOCKS * self._width(loop):
            return False
        inside = [i for b in loop.blocks for i in b.instructions]
        return all(map(_is_known, inside)) and self._gains(loop)

    @remembered
    def _width(self, loop: Loop) -> int:
        """How many iterations run at a time."""
        found = {v.type for b in loop.blocks for i in b.instructions for v in (i, *i.operands) if T.is_float(v.type)}
        return _REGISTER // max((self._layout.store_size(t) for t in found), default=8)

    def reverse_gains(self, loop: Loop) -> bool:
        """Whether the reverse of a loop that is worth it may be so as well: where a sum was in order, it is a row; and
        to what iterations share and what each has of its own, in one object, it adds one after the other."""
        shared: dict[Value, set[bool]] = {}
        for access in (a for b in loop.blocks for a in _accesses(b) if T.is_float(I.accessed_value(a).type)):
            shared.setdefault(I.base_of(access.operands[-1]), set()).add(not self._step(access, loop))
        return all(len(ways) == 1 for ways in shared.values()) and self._gains(loop, in_reverse=True)

    def _gains(self, loop: Loop, in_reverse: bool = False) -> bool:
        """Whether most work is arithmetic in loops inside, of which LLVM makes no good vectors, on numbers that
        iterations share or that lie side by side for them."""
        own = inner = rows = gathered = 0.0
        for block in loop.blocks:
            home, times = self.loops.loop_of[block], self._times(block, loop)
            assert home is not None
            work = times * sum(_work(i) for i in block.instructions)
            apart = sum(self._step(i, loop) not in (0, self._size(i)) for i in _accesses(block))
            gathered += times * apart
            if home is loop:
                own += work
            elif self._lies_in_rows(home, in_reverse) and self._iterations(home) >= (
                _GATHERED_ROW if apart or in_reverse else _ROW
            ):
                rows += work
            else:
                inner += work
        return inner > own + rows and _GATHERED * gathered < inner

    def _repeated(self, loop: Loop) -> int | Polynomial | None:
        """How many iterations a loop has, where that is known in front of it."""
        length = self.length(loop)
        return self.count(loop) if length is None else length[1]

    def _iterations(self, loop: Loop) -> int:
        """About how many iterations a loop has: what the bounds of a type allow says nothing."""
        expected = self._expected(loop)
        return expected if expected < _NOBODY_WAITS else _UNKNOWN

    def _step(self, access: I.Load | I.Store, loop: Loop) -> int:
        """How far the places of an access in two iterations are apart in bytes, all else being the same; 0 also where
        that is not known."""
        growth = self._growth(access.operands[-1], self._home(access), loop)
        return abs(growth[1].value or 0) if growth is not None and len(growth) == 2 else 0

    def _lies_in_rows(self, loop: Loop, in_reverse: bool) -> bool:
        """Does an innermost loop access numbers side by side, and add up none in order, or hand on sums alone?"""
        if loop.children:
            return False
        carried = [i for i in loop.header.instructions if isinstance(i, I.Phi) and T.is_float(i.type)]
        if not all(self._is_sum(phi, loop) if in_reverse else self._free_sum(phi, loop) for phi in carried):
            return False
        return all(self._step(a, loop) in (0, self._size(a)) for b in loop.blocks for a in _accesses(b))

    def _size(self, access: I.Load | I.Store) -> int:
        return self._layout.store_size(I.accessed_value(access).type)

    def _growth(self, value: Value, block: BasicBlock, loop: Loop) -> list[Polynomial] | None:
        """What a value is in the first iteration of a loop and, where that is not all, how much more in each next one,
        as it is used in a block; None where it is neither."""
        try:
            parts = self._facts.form_at(value, block).polynomial.coefficients(self._facts.iteration(loop))
        except TooComplex:
            return None
        return parts if len(parts) <= 2 else None

    # -- proof

    @remembered
    def _proved(self, loop: Loop, *, in_any_order: bool = False) -> Lockstep | None:
        """What is proved of a loop, `in_any_order` as if its sums were free; None where something is not."""
        count = self._repeated(loop)
        if count is None or self._is_in_a_cycle(loop) or self._hindering_calls(loop, ()):
            return None
        found = {phi: sum_ for phi, sum_ in self._sums(loop).items() if T.is_float(phi.type)}
        ordered = {} if in_any_order else self._ordered(found, loop)
        if ordered is None:
            return None
        free = {phi for phi in found if phi not in ordered}
        counters = self._counters(loop, found, None)
        if isinstance(counters, str) or any(phi.type == T.I1 for phi, _ in counters):
            return None
        given = dict[Value, int | None]([*counters, *((phi, None) for phi in free)])
        aside = {*ordered, *ordered.values()}
        memory = self._memory_of(loop, self._shapes(loop, given, aside, ()))
        if memory is None or not self._is_worth(memory.apart, loop):
            return None
        renewed, added, sites = memory.renewed, memory.added, memory.sites
        shapes = self._shapes(loop, given, aside, {*sites, *memory.apart.values()})
        if not self._go_together(loop, shapes, sites) or any(o in shapes for s in memory.common for o in s.operands):
            return None
        if any(abs(shapes.get(a.operands[-1]) or 0) < self._size(a) for a in memory.scattered):
            return None
        width = self._width(loop)
        if (
            added
            and not free
            and self._iterations(loop) >= 2 * _BLOCKS * width
            and 2 * width * _bytes(renewed) <= _BYTES
        ):
            width *= 2
        blocks = tuple(self.loops.blocks(loop))
        return Lockstep(
            loop,
            blocks,
            count,
            width,
            counters,
            ordered,
            frozenset(free),
            renewed,
            added,
            memory.apart,
            shapes,
            sites,
        )

    def _ordered(self, found: Mapping[I.Phi, Chain], loop: Loop) -> dict[I.Phi, I.Instruction] | None:
        """Of sums that go around a loop those in order, with their additions; None where one is neither free nor of one
        addition."""
        ordered: dict[I.Phi, I.Instruction] = {}
        for phi, sum_ in found.items():
            if sum_.kind == "fadd" and all(map(_is_free, sum_.steps - {phi})):
                continue
            if (addition := self._single_addition(phi, loop)) is None:
                return None
            ordered[phi] = addition
        return ordered

    def _is_in_a_cycle(self, loop: Loop) -> bool:
        """Is a loop part of, or around, a cycle with several entries, which is no loop?"""
        reaches = self.loops.cfg.reaches
        return any(
            source in loop or (reaches(target, loop.header) and reaches(loop.header, source))
            for source, target in self.loops.irreducible
        )

    def _single_addition(self, phi: I.Phi, loop: Loop) -> I.Instruction | None:
        """What a phi of the header goes on with, where it is one addition to it and nothing else in the loop uses
        either."""
        ends = loop.ends(phi)
        if ends is None or not isinstance(addition := ends[1], I.BinaryOp | I.Call) or not T.is_float(phi.type):
            return None
        is_sum = addition.opcode == "fadd" or (addition.opcode == "fsub" and addition.operands[0] is phi)
        is_sum |= is_fused(addition)
        if not is_sum or addition.operands.count(phi) != 1 or self.loops.loop_of[self._home(addition)] is not loop:
            return None
        if isinstance(addition, I.Call) and addition.operands[2] is not phi:
            return None
        users = [u for v in (phi, addition) for u, _ in self._uses.get(v, ()) if self._home(u) in loop]
        return addition if set(users) == {phi, addition} else None

    def _home(self, instruction: I.Instruction) -> BasicBlock:
        return self._facts.block_of[instruction]

    def _is_worth(self, apart: Mapping[I.Instruction, I.Instruction], loop: Loop) -> bool:
        """Whether there is much else to do than to add one after the other."""
        if not apart:
            return True
        work = sum(self._times(b, loop) * sum(map(_work, b.instructions)) for b in loop.blocks)
        return _ADDED_APART * sum(self._times(self._home(store), loop) for store in apart) < work

    def _times(self, block: BasicBlock, loop: Loop) -> int:
        """How often a block runs in an iteration of a loop around it."""
        home = self.loops.loop_of[block]
        assert home is not None
        return prod(self._iterations(around) for around in home.ancestors if loop.encloses(around.parent))

    def _memory_of(self, loop: Loop, shapes: Mapping[Value, int | None]) -> _Memory | None:
        """What each object that a loop writes is to its iterations; None where it is nothing that is known. `shapes`:
        of addresses, as far as no copies of memory lead to them."""
        found = _Memory()
        for item in self._written(loop):
            places = self._places(item, loop)
            if not isinstance(places, str) and overlap(places) is None:
                continue
            inside = list(self._of(item, loop))
            if item.site is None or not self._is_own(item) or any(len(a.objects) != 1 for a in inside):
                return None
            meeting = self._meeting(inside, loop)
            if all(write is a and isinstance(write.instruction, I.Store) for write, a in meeting):
                found.common.extend(write.instruction for write, _ in meeting if isinstance(write.instruction, I.Store))
                continue
            if not all(_is_simple(a) and I.base_of(a.pointer) is item.site for a in inside):
                return None
            how = self._renewal(item, inside, loop)
            if how is not None:
                found.renewed[item.site] = how
            elif self._combinations.adds(inside, loop) and (stores := self._free_stores(inside, loop)) is not None:
                where_data_say = any(shapes.get(a.operands[1], 0) is None for a in stores)
                if where_data_say or any(self._step(a, loop) for a in stores):
                    if not self._are_undisturbed(stores, inside):
                        return None
                    if where_data_say:
                        found.apart |= stores
                    else:
                        found.scattered += [*stores, *stores.values()]
                    continue
                found.added |= stores
            else:
                return None
            found.sites |= {a.instruction: item.site for a in inside}
        return found if self._width(loop) * _bytes(found.renewed) <= _BYTES else None

    def _meeting(self, inside: list[Access], loop: Loop) -> list[tuple[Access, Access]]:
        """The writes of one iteration and the accesses of others that may touch the same, pair by pair: none for row i
        of a matrix, where all read row j."""
        pairs = ((write, a) for write in inside if write.writes for a in inside)
        return [(write, a) for write, a in pairs if not self._alias.later.are_divided(write, a, loop)]

    def _are_undisturbed(self, stores: Mapping[I.Store, I.Load], inside: list[Access]) -> bool:
        """Is each number stored again before another one of the object is loaded or stored? Then each is added to for
        all iterations of a block at once, whichever of these add to the same place by another access."""
        others = {a.instruction for a in inside}
        for store, load in stores.items():
            block = self._home(load)
            if self._home(store) is not block or list(stores.values()).count(load) != 1:
                return False
            row = block.instructions
            if not others.isdisjoint(row[row.index(load) + 1 : row.index(store)]):
                return False
        return True

    def _renewal(self, item: MemoryObject, inside: list[Access], loop: Loop) -> tuple[Renewed, int, int] | None:
        """How an object is renewed, where all its numbers are of one size and lie at multiples of that, with it and the
        object's own."""
        sizes = {a.size for a in inside if isinstance(a.instruction, I.Load | I.Store)}
        size = argument_size(item.site) if isinstance(item.site, Argument) else room(self._layout, item)
        if len(sizes) != 1 or size is None or not (each := sizes.pop()) or size % each:
            return None
        if any((a.size or 1) % each or not self._is_in_units(a, item.site, each) for a in inside):
            return None
        how = self._private.renewal(item, inside, loop, size)
        return None if how is None else (how, each, size)

    def _is_in_units(self, access: Access, site: Value | None, each: int) -> bool:
        """Is all that is added to the address of an object a multiple of so many bytes?"""
        if site is None:
            return False
        try:
            address = self._facts.form_at(access.pointer, self._home(access.instruction)).polynomial
        except TooComplex:
            return False
        return all(by % each == 0 for by in (address - Polynomial.atom(self._facts.leaf(site))).terms.values())

    def _free_stores(self, inside: list[Access], loop: Loop) -> dict[I.Store, I.Load] | None:
        """The stores of what is added to numbers in an object, with the loads of these; None where an order is kept."""
        found: dict[I.Store, I.Load] = {}
        for load in (a.instruction for a in inside if isinstance(a.instruction, I.Load)):
            sum_ = self._free_sum(load, loop)
            if sum_ is None:
                return None
            found |= {user: load for user, _ in sum_.ends if isinstance(user, I.Store)}
        return found

    def _free_sum(self, start: I.Instruction, loop: Loop) -> Chain | None:
        """The sum that begins with a value, where its order is free."""
        sum_ = chain(start, self._uses, loop.blocks, self._facts.block_of)
        is_free = sum_ is not None and sum_.kind == "fadd" and all(map(_is_free, sum_.steps - {start}))
        return sum_ if is_free else None

    def _is_sum(self, start: I.Instruction, loop: Loop) -> bool:
        """The same in whatever order."""
        sum_ = chain(start, self._uses, loop.blocks, self._facts.block_of)
        return sum_ is not None and sum_.kind == "fadd"

    # -- what values are to iterations

    def _shapes(
        self, loop: Loop, given: Mapping[Value, int | None], aside: Collection[Value], copied: Collection[Value]
    ) -> dict[Value, int | None]:
        """The shapes of values, from those that are given. What is loaded by one of `copied` is any."""
        shapes = dict(given)
        order = [i for b in self._facts.loops.blocks(loop) for i in b.instructions]
        changed = True
        while changed:
            changed = False
            for instruction in order:
                if instruction in shapes and (shapes[instruction] is None or instruction in given):
                    continue
                if instruction in aside or instruction.type == T.VOID:
                    continue
                shape = None if instruction in copied else self._shape(instruction, shapes, loop)
                if shape != 0 and shapes.get(instruction, 0) != shape:
                    shapes[instruction] = shape
                    changed = True
        return shapes

    def _go_together(
        self, loop: Loop, shapes: Mapping[Value, int | None], sites: Mapping[I.Instruction, Value]
    ) -> bool:
        """Whether neither the way of an iteration depends on what it is, nor an address of copied or common memory."""
        for instruction in (i for b in loop.blocks for i in b.instructions):
            is_end = instruction is loop.latches[0].terminator
            if isinstance(instruction, I.CondBranch) and instruction.operands[0] in shapes and not is_end:
                return False
            places = instruction.operands[1 if isinstance(instruction, I.Store) else 0 :]
            if instruction in sites and any(o in shapes for o in places):
                return False
            is_bulk = isinstance(instruction, I.Call) and call_effect(instruction) in _BULK
            if is_bulk and instruction not in sites:
                return False
        return True

    def _shape(self, instruction: I.Instruction, shapes: Mapping[Value, int | None], loop: Loop) -> int | None:
        """0 where it is the same for all."""
        varying = [o for o in instruction.operands if o in shapes]
        if not varying:
            return 0
        if isinstance(instruction, I.Load) or instruction.opcode not in _AFFINE or T.is_float(instruction.type):
            return None
        if any(shapes[o] is None for o in varying):
            return None
        return self._steady(instruction, shapes, loop)

    def _steady(self, value: I.Instruction, shapes: Mapping[Value, int | None], loop: Loop) -> int | None:
        """How much more an integer or an address is for the next iteration."""
        growth = self._growth(value, self._home(value), loop)
        leaves = [a.value for part in growth or () for a in part.atoms if isinstance(a, Leaf)]
        if growth is None or any(leaf is value or leaf in shapes for leaf in leaves):
            return None
        return growth[1].value if len(growth) == 2 else 0


def _is_known(instruction: I.Instruction) -> bool:
    """Whether something can be run for eight iterations at once."""
    if isinstance(instruction, I.Call):
        if call_effect(instruction) in (Effect.IGNORED, *_BULK):
            return instruction.type == T.VOID
        kinds = (instruction.type, *(a.type for a in instruction.arguments))
        is_known = is_pure(instruction) or callee_name(instruction).startswith(ELEMENTWISE)
        return is_known and not any(map(T.is_pointer, kinds)) and all(map(_is_single, kinds))
    if not all(_is_single(v.type) for v in (instruction, *instruction.operands) if v.type != T.VOID):
        return False
    if isinstance(instruction, I.Load | I.Store):
        kind = I.accessed_value(instruction).type
        whole = T.is_float(kind) or (isinstance(kind, T.IntType) and kind.bits in _WHOLE)
        return I.is_plain(instruction) and whole
    return isinstance(instruction, (*_PLAIN, I.Branch, I.CondBranch))


def _is_single(type_: T.Type) -> bool:
    """Whether there are vectors of a type that lie in memory as its numbers do side by side."""
    return type_ in (T.DOUBLE, T.FLOAT, T.PTR) or (isinstance(type_, T.IntType) and type_.bits <= _WHOLE[-1])


def _accesses(block: BasicBlock) -> Iterator[I.Load | I.Store]:
    return (i for i in block.instructions if isinstance(i, I.Load | I.Store))


def _work(instruction: I.Instruction) -> int:
    match instruction:
        case I.Call() if not callee_name(instruction).startswith(ELEMENTWISE):
            return _LONG if T.is_float(instruction.type) else 0
        case I.BinaryOp(opcode="fdiv"):
            return _LONG
        case I.BinaryOp() | I.Call() | I.UnaryOp():
            return int(T.is_float(instruction.type))
        case _:
            return 0


def _bytes(renewed: Mapping[Value, tuple[Renewed, int, int]]) -> int:
    return sum(size for _, _, size in renewed.values())


def _is_simple(access: Access) -> bool:
    instruction = access.instruction
    if isinstance(instruction, I.Call) and call_effect(instruction) is Effect.MEMORY_SET:
        return access.size is not None and int_value(instruction.operands[3]) == 0
    return isinstance(instruction, I.Load | I.Store)


def _is_free(value: Value) -> bool:
    """Whether a step of a sum may be made in any order."""
    return isinstance(value, I.Phi | I.Select) or (isinstance(value, I.Instruction) and "reassoc" in value.flags)
