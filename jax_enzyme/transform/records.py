"""Builds what a function takes besides arrays and numbers, in front of its call: structures, arrays of pointers.

    "p: {k: f64, x: f64[n]*}*", n = 4

    ptr %p.k, ptr %p.x      ->      %p = alloca i8, i64 16
                                    %1 = load double, ptr %p.k
                                    store double %1, ptr %p
                                    %2 = getelementptr i8, ptr %p, i64 8
                                    store ptr %p.x, ptr %2
                                    call void @f(ptr %p)

Everything is an array of blocks: a member of `{...}[n]` has n of them in its buffer, one behind the other, and so have
the structures and tables of pointers that it leads to. What is written in place is copied back behind the call.
A pointer to results has to be what it was: results that a function puts elsewhere would be lost, and the call fails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import gcd, prod
from typing import Protocol

from jax_enzyme.classes import dataclass, field
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ITEM_BYTES
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.instructions import Instruction
from jax_enzyme.ir.values import BasicBlock, ConstantNull, Value
from jax_enzyme.signature.expressions import Expression, evaluate
from jax_enzyme.signature.formals import Formal, FunctionOf, Null, Plain, Record, Status, Text
from jax_enzyme.signature.params import Param
from jax_enzyme.transform.described import Described
from jax_enzyme.transform.layouts import POINTER_BYTES, Layout

SCALARS: dict[str, T.Type] = {
    "i8": T.I8, "u8": T.I8, "i16": T.I16, "u16": T.I16, "i32": T.I32, "u32": T.I32, "i64": T.I64, "u64": T.I64,
    "bf16": T.BFLOAT, "f16": T.HALF, "f32": T.FLOAT, "f64": T.DOUBLE,
}  # fmt: skip
PARTS: dict[str, T.Type] = {"c64": T.FLOAT, "c128": T.DOUBLE}
"""The type of both parts of a complex number."""
_STRAIGHT = 8
"""So few repetitions are written one after the other, so that nothing is in memory that could be in registers."""
_ALIGN = 16


def dtype_of(kind: T.Type) -> str | None:
    """What signatures call a type; None where they have no word for it."""
    return next((d for d, t in SCALARS.items() if t == kind), None)


def is_pair(kind: T.Type, part: T.Type) -> bool:
    """Whether a type is one by which targets pass a complex number."""
    return kind in (T.VectorType(2, part), T.StructType((part, part)), T.ArrayType(2, part))


@dataclass(frozen=True)
class Blocks:
    """Block number `i` lies `i * stride` bytes behind `base`."""

    base: Value
    stride: int


class Exchange(Protocol):
    """What is done to members that are descriptors, in front of the call and behind it (`descriptors.Exchanged`)."""

    def put(self, composer: Composer, formal: Formal, known: Described, own: Value, place: Value) -> None: ...

    def take(self, composer: Composer, formal: Formal, known: Described, own: Value, place: Value) -> None: ...


def of_argument(name: str, size: int) -> str:
    """What room on the stack is called that holds an argument's elements of so many bytes: pointers, structures."""
    return f"{name}.argument.{size}"


@dataclass
class Composer:
    """Builds at `at`. `buffers` are the arrays by name, `constants` the values of names; `symbol` gives a function of
    the source, `text` a constant of characters; `fail` ends the call with a message."""

    at: Builder
    buffers: Mapping[str, Value]
    constants: Mapping[str, int]
    symbol: Callable[[str, str], Value]
    text: Callable[[str], Value]
    fail: Callable[[str], None]
    exchange: Exchange
    blocks: list[BasicBlock] = field(default_factory=list[BasicBlock])
    slots: list[Instruction] = field(default_factory=list[Instruction])
    afterwards: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    places: dict[str, Blocks] = field(default_factory=dict[str, Blocks])
    statuses: list[Value] = field(default_factory=list[Value])

    def pointer(self, formal: Plain) -> Value:
        """A pointer to an array, or to the first of its pointers."""
        return self._array(formal, 1).base

    def structures(self, record: Record, layout: Layout) -> Value:
        """A pointer to structures with their contents."""
        return self._structures(record, layout, 1).base

    def extents(self, dims: Sequence[Expression]) -> list[int]:
        """The values of dimensions."""
        return [self._size(dim) for dim in dims]

    def status(self) -> Value:
        """A pointer to an integer that says afterwards whether the function failed."""
        slot = self.slot(ITEM_BYTES["i32"])
        self.at.store(const_int(T.I32, 0), slot, ITEM_BYTES["i32"])
        self.statuses.append(slot)
        return slot

    def slot(self, nbytes: int, align: int = _ALIGN, name: str = "") -> Value:
        """Room on the stack, wherever it is asked for."""
        entry = Builder(BasicBlock())
        room = entry.alloca(T.ArrayType(max(nbytes, 1), T.I8), align=max(align, _ALIGN))
        room.name = name
        self.slots += entry.block.instructions
        return room

    def finish(self) -> None:
        """Copies back what the function wrote in place."""
        for step in reversed(self.afterwards):
            step()

    def drain(self, record: Record, layout: Layout, place: Value) -> None:
        """Copies the members of one structure into their buffers."""
        self._drain(record, layout, place, _FIRST)

    def require(self, holds: Value, text: str) -> None:
        """Ends the call with a message where something does not hold."""
        fails, goes_on = BasicBlock(), BasicBlock()
        self.at.cond_br(holds, goes_on, fails)
        self._enter(fails)
        self.fail(text)
        self.at.unreachable()
        self._enter(goes_on)

    # -- arrays

    def _array(self, formal: Plain, outer: int) -> Blocks:
        """Of `outer` blocks of this array: where they are, or the first pointers to them."""
        param = formal.param
        own = [self._size(dim) for dim in formal.own or ()]
        if param.name in self.constants:
            return Blocks(self._constant(param), 0)
        sizes: list[int] = []
        for rank in formal.levels:
            sizes.append(prod(own[:rank]))
            del own[:rank]
        blocks = Blocks(self.buffers[param.name], prod(own) * ITEM_BYTES[param.dtype])
        for depth in reversed(range(len(sizes))):
            blocks = self._table(param, blocks, outer * prod(sizes[: depth + 1]), sizes[depth])
        return blocks

    def _table(self, param: Param, inner: Blocks, count: int, size: int) -> Blocks:
        """Pointers to so many blocks, in blocks of `size` pointers."""
        room = self.slot(count * POINTER_BYTES, name=of_argument(param.name, POINTER_BYTES))
        table = Blocks(room, POINTER_BYTES)

        def fill(index: Value) -> None:
            self.at.store(self._at(inner, index), self._at(table, index), POINTER_BYTES)

        def check(index: Value) -> None:
            self._check_pointer(param, self._at(table, index), self._at(inner, index))

        self._repeat(count, fill)
        if param.direction in ("out", "inout"):
            self.afterwards.append(lambda: self._repeat(count, check))
        return Blocks(table.base, size * POINTER_BYTES)

    def _constant(self, param: Param) -> Value:
        slot = self.slot(ITEM_BYTES[param.dtype])
        self.at.store(const_int(SCALARS[param.dtype], self.constants[param.name]), slot, ITEM_BYTES[param.dtype])
        return slot

    def _size(self, dim: Expression) -> int:
        return evaluate(dim, self.constants)

    # -- structures

    def _structures(self, record: Record, layout: Layout, outer: int) -> Blocks:
        size = prod(self._size(dim) for dim in record.count or ())
        nbytes = max(outer * size * layout.size, self._end_of_tail(record, layout))
        room = self.slot(nbytes, layout.align, of_argument(record.name, layout.size))
        self._prepare(record, layout, outer * size)
        whole = Blocks(room, layout.size)
        self._repeat(outer * size, lambda index: self._fill(record, layout, self._at(whole, index), index))
        drained = self._drained(record, layout)
        if drained:
            self.afterwards.append(
                lambda: self._repeat(
                    outer * size, lambda index: self._drain(record, layout, self._at(whole, index), index)
                )
            )
        return Blocks(room, size * layout.size)

    def _end_of_tail(self, record: Record, layout: Layout) -> int:
        """The bytes of a structure up to the end of an array of any size in it; 0 where it has none."""
        last = record.members[-1]
        if not isinstance(last, Plain) or not last.is_tail:
            return 0
        return layout.offsets[-1] + prod(self._size(dim) for dim in last.own or ()) * ITEM_BYTES[last.param.dtype]

    def _prepare(self, record: Record, layout: Layout, outer: int) -> None:
        """What the members of so many structures lead to."""
        for member, inner in zip(record.members, layout.inner, strict=True):
            if isinstance(member, Plain) and not member.in_place:
                self.places[member.param.name] = self._array(member, outer)
            elif isinstance(member, Record) and inner is not None:
                if member.is_pointer:
                    self.places[member.name] = self._structures(member, inner, outer)
                else:
                    self._prepare(member, inner, outer * self._count(member))

    def _fill(self, record: Record, layout: Layout, address: Value, block: Value) -> None:
        for member, offset, inner, known in layout.of(record):
            place, align = self.at.offset(address, offset), gcd(offset, layout.size, _ALIGN)
            if known is not None:
                self.exchange.put(self, member, known, self._leading(member, block), place)
            elif isinstance(member, Plain) and member.in_place:
                self._put(member, place, align, block)
            elif isinstance(member, Record) and inner is not None and not member.is_pointer:
                self._each(member, inner, place, block, self._fill)
            else:
                self.at.store(self._leading(member, block), place, min(align, POINTER_BYTES))

    def _leading(self, member: Formal, block: Value) -> Value:
        """The pointer that a member is."""
        match member:
            case Plain():
                return self._at(self.places[member.param.name], block)
            case Record():
                return self._at(self.places[member.name], block)
            case Null():
                return ConstantNull(T.PTR)
            case FunctionOf():
                return self.symbol(member.name, member.symbol)
            case Text():
                return self.text(member.value)
            case Status():
                return self.status()

    def _put(self, member: Plain, place: Value, align: int, block: Value) -> None:
        param = member.param
        if param.name in self.constants:
            value = const_int(SCALARS[param.dtype], self.constants[param.name])
            self.at.store(value, place, min(align, ITEM_BYTES[param.dtype]))
        elif param.direction != "scratch":
            self.copy(member, self._own(member, block), place, align)

    def _drain(self, record: Record, layout: Layout, address: Value, block: Value) -> None:
        for member, offset, inner, known in layout.of(record):
            place = self.at.offset(address, offset)
            if known is not None:
                self.exchange.take(self, member, known, self._leading(member, block), place)
            elif isinstance(member, Plain):
                if member.param.direction not in ("out", "inout"):
                    continue
                if member.in_place:
                    self.copy(member, place, self._own(member, block), gcd(offset, layout.size, _ALIGN))
                elif record.is_pointer:
                    self._check_pointer(member.param, place, self._leading(member, block))
            elif isinstance(member, Record) and inner is not None and not member.is_pointer:
                self._each(member, inner, place, block, self._drain)

    def _check_pointer(self, param: Param, place: Value, wanted: Value) -> None:
        now = self.at.load(T.PTR, place, 1)
        lost = f"the kernel made `{param.name}` another pointer, and the results behind it are lost"
        self.require(self.at.icmp("eq", now, wanted), lost)

    def _drained(self, record: Record, layout: Layout) -> bool:
        """Whether there is anything to do behind the call."""
        return any(
            known is not None
            or (
                (member.in_place or record.is_pointer) and member.param.direction in ("out", "inout")
                if isinstance(member, Plain)
                else isinstance(member, Record)
                and inner is not None
                and not member.is_pointer
                and self._drained(member, inner)
            )
            for member, _, inner, known in layout.of(record)
        )

    def _each(
        self,
        record: Record,
        layout: Layout,
        place: Value,
        block: Value,
        body: Callable[[Record, Layout, Value, Value], None],
    ) -> None:
        """For each structure of an array in place."""
        count = self._count(record)
        whole = Blocks(place, layout.size)

        def one(index: Value) -> None:
            inner = index
            if count > 1:
                inner = self.at.binary("add", self.at.binary("mul", block, const_int(T.I64, count)), index)
            body(record, layout, self._at(whole, index), block if count == 1 else inner)

        self._repeat(count, one)

    def _count(self, record: Record) -> int:
        return prod(self._size(dim) for dim in record.count or ())

    # -- pieces

    def _own(self, member: Plain, block: Value) -> Value:
        """Where a number or array in place lies in its buffer."""
        param = member.param
        nbytes = prod(self._size(dim) for dim in member.own or ()) * ITEM_BYTES[param.dtype]
        return self._at(Blocks(self.buffers[param.name], nbytes), block)

    def copy(self, member: Plain, source: Value, target: Value, align: int) -> None:
        """Copies the elements of a number or array from one place to another."""
        dtype, count = member.param.dtype, prod(self._size(dim) for dim in member.own or ())
        kind = PARTS.get(dtype) or SCALARS.get(dtype, T.I8)
        if dtype in PARTS:
            count *= 2
        nbytes = ITEM_BYTES[dtype] // 2 if dtype in PARTS else ITEM_BYTES[dtype]

        def one(index: Value) -> None:
            value = self.at.load(kind, self._at(Blocks(source, nbytes), index), min(align, nbytes))
            self.at.store(value, self._at(Blocks(target, nbytes), index), min(align, nbytes))

        self._repeat(count, one)

    def _at(self, blocks: Blocks, index: Value) -> Value:
        if blocks.stride == 0 or index is _FIRST:
            return blocks.base
        offset = self.at.binary("mul", index, const_int(T.I64, blocks.stride))
        return self.at.gep(T.I8, blocks.base, [offset])

    def _repeat(self, count: int, body: Callable[[Value], None]) -> None:
        """The body for each index below a number."""
        if count <= _STRAIGHT:
            for index in range(count):
                body(const_int(T.I64, index) if index else _FIRST)
            return
        loop, done = BasicBlock(), BasicBlock()
        _, index = self.at.enter(loop)
        self._enter(loop)
        body(index)
        self.at.count_on(index, loop, const_int(T.I64, count), done)
        self._enter(done)

    def _enter(self, block: BasicBlock) -> None:
        self.blocks.append(block)
        self.at.block = block


_FIRST = const_int(T.I64, 0)
