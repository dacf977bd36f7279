"""The tape: where each kept value lives.

A *frame* is a block of memory of fixed layout. The root frame is the tape itself; its size is known when the code is
emitted, so it can be an XLA buffer. A loop whose number of iterations has a proved bound gives each of its values an
array in the frame around it, indexed by iteration numbers (one array per value: the innermost index runs fastest, so
that vector loads are possible, or that of a loop in lockstep around it; `ad.plan.packing` where inner loops differ in
length). A loop without a bound gets a
frame per iteration, from an arena, as the forward sweep goes. If it is known how long a loop is when control comes to
it, its frames are a *row*, allocated there. Else each is a *node*, allocated in its iteration; nodes are chained
backwards. The frame around the loop keeps the row, or the last node. Numbers of which no iteration has two share a slot
(`ad.plan.arms`).

    root frame   [ value A: 8 bytes ][ value B: n x m x 8 bytes ][ last node of loop L: 8 bytes ][ row of M: 8 bytes ]
    node of L    [ node before: 8 bytes ][ value C: 8 bytes ] ...
    row of M     [ value D: 8 bytes ][ value E: 8 bytes ][ value D: 8 bytes ][ value E: 8 bytes ] ...

Where many threads share the memory that nodes lie in, a node is known by a number instead of an address, and follows
the one before it directly, unless nodes of inner loops come between: then it keeps that one's number (`ad.emit.nodes`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from functools import cache
from math import prod

from jax_enzyme.ad.facts.copying import ALIGNMENT, whole
from jax_enzyme.ad.facts.instrument import Instrumented
from jax_enzyme.ad.facts.threads import Threads
from jax_enzyme.ad.plan.arms import Arms
from jax_enzyme.ad.plan.packing import Packing, flat, longest, packing
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.polynomials import Polynomial
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.analysis.tbaa import READS_INTEGER, own_access, tape_access
from jax_enzyme.classes import dataclass, field, replace
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.marks import LOCKSTEP_BACK
from jax_enzyme.ir.metadata import MDNode, MDString, MDValue
from jax_enzyme.ir.module import GlobalVariable
from jax_enzyme.ir.values import BasicBlock, ConstantInt, Value
from jax_enzyme.remembered import remembered

_BOUNDED_BUT_NOT_EXACT, _SHARED_BUT_NOT_EXACT = 1024, 1 << 17
"""Below so many iterations there is room for the most that a loop may have, where only the run knows how many it has:
several threads may run one whose tape is an array, if it is marked."""
_GUESS = 64.0
_DOMAIN = MDNode(operands=[MDString("je.tape")])
_MANY_ROWS, _NEAR = 128, 2048
"""So many rows of numbers that lie side by side, longer than so many bytes, are more pages than a core finds at once,
and are not read ahead: then what one iteration keeps lies side by side, but for triangles, whose places are in tables
that iterations in lockstep must not depend on."""
_SCOPES = {n: MDNode(operands=[MDString(f"je.tape.{n}"), _DOMAIN]) for n in (1, 2, 4, 8, 16)}
"""Alias scopes of slots, by the bytes of an item."""


@dataclass(eq=False)
class Frame:
    """`loop` is None for the root; `size` and `align` grow as slots are added. `length` is how many there are in a row,
    None of all other frames."""

    loop: Loop | None
    size: int = 0
    align: int = 1
    length: Polynomial | None = None


@dataclass(frozen=True, eq=False)
class Slot:
    """`loops` index the slot, with the number of iterations of each, the last fastest: outermost first, but one in
    lockstep, in whose iterations items lie side by side, comes last. `step` is the bytes per item.
    `offset` counts bytes of one thread: with `threads`, everything before it is there once per thread. `may_be_bits`
    says of an integer that it may be the bits of a number, or an address; `is_lasting`, that the slot's memory holds
    nothing but its values while the function runs. `repeated` are loops around the value in whose iterations it is the
    same."""

    frame: Frame
    offset: int
    loops: tuple[tuple[Loop, int], ...]
    step: int
    type: T.Type
    threads: Threads | None = None
    may_be_bits: bool = True
    packing: Packing | None = None
    is_lasting: bool = False
    repeated: frozenset[Loop] = frozenset()

    @property
    def nest(self) -> list[Loop]:
        """The loops that index the slot as they are nested, outermost first."""
        return sorted((loop for loop, _ in self.loops), key=lambda loop: loop.depth)

    @property
    def items(self) -> int:
        """How many there is room for."""
        return _items(self.loops, self.packing)

    @property
    def size(self) -> int:
        """In bytes, of one thread."""
        return self.step * self.items


@dataclass(eq=False)
class Tape:
    """All frames and slots of one function. Keys of slots are values, objects, snapshots, or (`"last"`, loop) for the
    row or the last node of a loop, (`"before"`, loop) for the node before. `may_be_bits` says of a value that is an
    integer whether it may be the bits of a number, or an address. `threads` share the root frame, `node_threads` all
    nodes. `is_entered_once` says that no call of the function begins before another one ended, in memory that the first
    one used; `packs`, that nests may be packed; `arms` are the slots that values of several blocks may share;
    `is_shared` says of a loop that it is marked."""

    code: Instrumented
    recurrences: Recurrences
    layout: DataLayout
    may_be_bits: Callable[[Value], bool]
    threads: Threads | None = None
    node_threads: Threads | None = None
    is_entered_once: bool = False
    packs: bool = True
    arms: Arms[Slot] | None = None
    is_shared: Callable[[Loop], bool] = lambda loop: False
    root: Frame = field(default_factory=lambda: Frame(None))
    frames: dict[Loop, Frame] = field(default_factory=dict)
    slots: dict[Hashable, Slot] = field(default_factory=dict)

    @remembered
    def bound(self, loop: Loop) -> int | None:
        """A number of iterations that the loop never exceeds, where its values are to be kept in arrays; else None."""
        count = self.recurrences.trip_count(loop)
        if count.maximum is None:
            return None
        exact = count.exact is not None and count.exact.value is not None
        shared = count.exact is not None and loop.parent is None and self.is_shared(loop)
        short = exact or count.maximum < (_SHARED_BUT_NOT_EXACT if shared else _BOUNDED_BUT_NOT_EXACT)
        return count.maximum + 1 if short else self._longest(loop)

    def _longest(self, loop: Loop) -> int | None:
        """The same where it is known, iteration by iteration of a loop around, how long a loop is. Only packed is there
        as much room as it needs."""
        around: list[tuple[Loop, int]] = []
        for outer in reversed(list(loop.ancestors)[1:]):
            bound = self.bound(outer)
            if bound is None:
                return None
            around.append((outer, bound))
        return longest(self.recurrences, around, loop) if self._may_pack(len(around) + 1) else None

    def frequency(self, block: BasicBlock, repeated: Collection[Loop] = ()) -> float:
        """How often a block runs, estimated from the bounds of the loops around it, without some that repeat it."""
        total = 1.0
        nest: list[tuple[Loop, int]] = []
        for loop in self.code.nest(block):
            bound = self.bound(loop)
            if bound is not None and loop in repeated:
                continue
            if bound is None:
                total *= _GUESS * _items(nest, self._packing(nest))
                nest = []
            else:
                nest.append((loop, bound))
        return total * _items(nest, self._packing(nest))

    def add(self, value: Value, block: BasicBlock, repeated: Collection[Loop] = ()) -> Slot:
        """A slot for a value made in `block`; one item for all iterations of loops in which it is the same."""
        stored = T.I8 if value.type == T.I1 else value.type
        size = self.layout.alloc_size(stored)
        frame, loops = self._place(block)
        may_be_bits = T.is_int(stored) and self.may_be_bits(value)
        own = tuple((loop, bound) for loop, bound in loops if loop not in repeated)

        def made() -> Slot:
            return self._slot(frame, own, size, stored, may_be_bits)

        inner, is_number = self.code.loop_of(block), T.is_float(stored) or (T.is_int(stored) and not may_be_bits)
        if own != loops:
            self.slots[value] = replace(made(), repeated=frozenset(loop for loop, _ in loops).intersection(repeated))
        elif self.arms is not None and inner is not None and is_number:
            self.slots[value] = self.arms.slot(inner, block, stored, made)
        else:
            self.slots[value] = made()
        return self.slots[value]

    def add_bytes(self, key: Hashable, size: int, block: BasicBlock | None = None) -> Slot:
        """Room for an object in the root frame; for one in each iteration of the loops around a block, which have
        bounds, if it is given."""
        loops = () if block is None else self._place(block)[1]
        step = whole(size) if loops else size
        self.slots[key] = self._slot(self.root, loops, step, T.I8)
        return self.slots[key]

    def add_copy(self, key: Hashable, size: int, block: BasicBlock) -> Slot:
        """Room for so many bytes that are copied in each run of a block."""
        frame, loops = self._place(block)
        self.slots[key] = self._slot(frame, loops, whole(size), T.I8)
        return self.slots[key]

    def frame_of(self, loop: Loop) -> Frame:
        """The layout of the frames of a loop without a bound, made at first use together with the slot of its row or
        its last node."""
        if loop not in self.frames:
            linked, length = self.node_threads is None, self._length(loop)
            self.frames[loop] = Frame(loop, 8 if linked and length is None else 0, length=length)
            frame, loops = self._place(loop.front)
            self.slots["last", loop] = self._slot(frame, loops, 8, T.PTR if linked else T.I64)
            if not linked and frame.loop is not None and ("before", frame.loop) not in self.slots:
                self.slots["before", frame.loop] = self._slot(frame, (), 8, T.I64)
        return self.frames[loop]

    def _length(self, loop: Loop) -> Polynomial | None:
        """How many iterations a loop has, where that can be computed in front of it. Threads that share a tape have
        nodes alone."""
        count = self.recurrences.trip_count(loop)
        shared = self.threads is not None or self.node_threads is not None
        if shared or count.exact is None or count.maximum is None:
            return None
        return count.exact.add_constant(1) if self.recurrences.is_invariant(count.exact, loop) else None

    def node_size(self, loop: Loop) -> int:
        """The bytes from one node to the next: any may follow any."""
        align = max(frame.align for frame in self.frames.values())
        return whole(self.frames[loop].size, align)

    def row_step(self, loop: Loop) -> T.ArrayType:
        """What lies between two frames of a row, as a type."""
        frame = self.frames[loop]
        return T.ArrayType(whole(frame.size, frame.align), T.I8)

    @property
    def is_static(self) -> bool:
        """Whether the whole tape is the root frame, and holds no pointers: it can cross from one call to another."""
        return not self.frames and not self.has_pointers

    @property
    def has_pointers(self) -> bool:
        """Whether addresses are kept."""
        return any(T.is_pointer(s.type) for s in self.slots.values())

    def tables(self) -> Iterator[GlobalVariable]:
        """The tables of packed slots."""
        for packed in dict.fromkeys(slot.packing for slot in self.slots.values()):
            yield from packed.tables if packed is not None else ()

    def _place(self, block: BasicBlock) -> tuple[Frame, tuple[tuple[Loop, int], ...]]:
        frame, loops = self.root, []
        for loop in self.code.nest(block):
            bound = self.bound(loop)
            if bound is None:
                frame, loops = self.frame_of(loop), []
            else:
                loops.append((loop, bound))
        return frame, tuple(loops)

    def _slot(
        self, frame: Frame, loops: Sequence[tuple[Loop, int]], size: int, type_: T.Type, may_be_bits: bool = False
    ) -> Slot:
        align = min(ALIGNMENT, max(self.layout.align(type_), 8 if size >= 8 else 1))
        if loops or size > 8:
            align = ALIGNMENT
        beside = self._beside(loops, type_)
        loops, packed = beside or (loops, self._packing(loops))
        # What lies side by side begins at multiples of what does, so that iterations never meet, whatever slot it is.
        offset = whole(frame.size, max(align, size * loops[-1][1]) if beside else align)
        frame.size = offset + size * _items(loops, packed)
        frame.align = max(frame.align, align)
        threads = self.threads if frame.loop is None else self.node_threads
        is_lasting = self.is_entered_once and frame is self.root
        return Slot(frame, offset, tuple(loops), size, type_, threads, may_be_bits, packed, is_lasting)

    def _beside(
        self, loops: Sequence[tuple[Loop, int]], type_: T.Type
    ) -> tuple[Sequence[tuple[Loop, int]], Packing | None] | None:
        """The order of the loops, and how those before the last are packed, where a number of each iteration of a loop
        in lockstep is to lie side by side; None elsewhere."""
        numbers = [n for n, (loop, _) in enumerate(loops[:-1]) if _is_in_lockstep(loop)]
        if not numbers or not T.is_float(type_) or not self._may_pack(len(loops)):
            return None
        (loop, bound), others = loops[numbers[0]], [*loops[: numbers[0]], *loops[numbers[0] + 1 :]]
        size = self.layout.alloc_size(type_)
        packed, side = self._packing(others), whole(bound, ALIGNMENT // size)
        rows = _items(others, packed)
        if packed is None and rows > _MANY_ROWS and side * size > _NEAR:
            return None
        packed = packed and replace(packed, beside=side)
        fits = rows * bound <= _items(loops, self._packing(loops))
        return ([*others, (loop, side)], packed) if fits else None

    def _packing(self, loops: Sequence[tuple[Loop, int]]) -> Packing | None:
        """How the items of a nest are packed."""
        return self._packing_of(tuple(loops)) if self._may_pack(len(loops)) else None

    def _may_pack(self, depth: int) -> bool:
        """Threads that share a tape run side by side: theirs is not packed, nor is anything but a nest."""
        return self.packs and depth > 1 and self.threads is None and self.node_threads is None

    @remembered
    def _packing_of(self, loops: tuple[tuple[Loop, int], ...]) -> Packing | None:
        return packing(self.recurrences, loops)


def _is_in_lockstep(loop: Loop) -> bool:
    return any(kind == LOCKSTEP_BACK for latch in loop.latches for kind, _ in latch.terminator.metadata)


def _items(loops: Sequence[tuple[Loop, int]], packed: Packing | None) -> int:
    return prod(bound for _, bound in loops) if packed is None else packed.items


def marked(slot: Slot, access: Value) -> Value:
    """A load or store of a slot, which says what it is of: where optimisers have merged the accesses to several nodes,
    this is what tells numbers from what else lies in one of them. Memory of threads holds one thing at each place for
    as long as they run, which is said as well."""
    if slot.threads is not None:
        tag = own_access(slot.type)
        tags = [] if tag is None else [tag]
    elif T.is_int(slot.type) and not slot.may_be_bits:
        tags = [READS_INTEGER]
    else:
        tags = tape_access(slot.type)
    if slot.is_lasting and slot.step in _SCOPES:
        tags = [*tags, *_scopes(slot.step)]
    if tags:
        assert isinstance(access, I.Load | I.Store)
        access.metadata += tags
    return access


@cache
def _scopes(size: int) -> tuple[tuple[str, MDValue], ...]:
    """Says that items of this size share no memory with those of others. LLVM's loop vectoriser knows the distances
    between accesses of one size, does not ask for types, and would compare the addresses of others at run time."""
    others = [scope for other, scope in _SCOPES.items() if other != size]
    return ("alias.scope", MDNode(operands=[_SCOPES[size]])), ("noalias", MDNode(operands=[*others]))


def address(builder: Builder, slot: Slot, base: Value, iteration: Callable[[Loop], Value]) -> Value:
    """The address of a slot's item for the current iterations; `base` is the frame's."""
    threads = slot.threads
    pointer = builder.offset(base, slot.offset * (1 if threads is None else threads.count))
    numbers = [iteration(loop) for loop, _ in slot.loops]
    if slot.packing is not None:
        index: Value | None = slot.packing.index(builder, numbers)
    else:
        index = flat(builder, numbers, [ConstantInt(T.I64, bound) for _, bound in slot.loops])
    if threads is not None:
        index = threads.interleaved(builder, index)
    if index is None:
        return pointer
    return builder.gep(T.ArrayType(slot.step, T.I8), pointer, [index])
