"""Which object a pointer leads to, whatever has been added to it.

Where that is known it is an argument, a variable or null, whose extent is a constant (`Known`). Otherwise the run time
is asked for what a pointer leads to at the place where it comes from: from memory, from a call, from a caller. The
answer is the address of a record, base and extent, which goes with the pointer through phis and selects (`Found`), so
that a pointer that has left its object is not taken for one into another.

    before    %p = phi ptr [ %x, %entry ], [ %q, %loop ]       after    %p = phi ptr ...
              %q = load ptr, ptr %slot                                  %p.object = phi ptr [ %x.object, %entry ],
                                                                                            [ %q.object, %loop ]
                                                                        %q = load ptr, ptr %slot
                                                                        %q.object = (see `lookup`)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ITEM_BYTES, Buffer
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.debug import source_name
from jax_enzyme.ir.metadata import MDRef
from jax_enzyme.ir.module import Function, GlobalVariable, Uses, callee_name, used_at
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import (
    Argument,
    BasicBlock,
    ConstantExpr,
    ConstantNull,
    Poison,
    Undef,
    Value,
    int_value,
)
from jax_enzyme.transform.sanitize.lookup import GRAIN, record_of
from jax_enzyme.transform.sanitize.runtime import Runtime
from jax_enzyme.transform.sanitize.scalars import MOVES, element_of_argument, is_of_source, variable_name

_TEXTS = (".str", "str.", "alloc_", "_QQ")
"""What C, Rust and Fortran call constants without a name."""
_SAME_OBJECT = (
    "llvm.threadlocal.address", "llvm.launder.invariant.group", "llvm.strip.invariant.group", "llvm.ptr.annotation",
)  # fmt: skip

_OF_OWN = (*MOVES, "je_checked_fill", "je.hide", "llvm.lifetime.")
_KEEPS_NO_ADDRESS = (*MOVES, "llvm.lifetime.", "llvm.dbg.", "je_checked_", "_FortranA")
"""What is done with memory. Fortran's run-time library is handed descriptors, and keeps what they say."""


@dataclass(frozen=True, eq=False)
class Known:
    """`unit` is the size of an element, `fresh` says whether it starts without values."""

    base: Value
    extent: int
    text: str
    unit: int
    fresh: bool


@dataclass(frozen=True, eq=False)
class Found:
    record: Value


Place = Known | Found


def root_of(pointer: Value) -> Value:
    """The pointer from which another is computed."""
    while True:
        match pointer:
            case I.GetElementPtr() | I.Freeze() | I.Cast(opcode="bitcast" | "addrspacecast"):
                pointer = pointer.operands[0]
            case ConstantExpr(opcode="getelementptr" | "bitcast" | "addrspacecast"):
                pointer = pointer.operands[0]
            case I.Call() if pointer.callee.name.startswith(_SAME_OBJECT):
                pointer = pointer.arguments[0]
            case _:
                return pointer


class Provenance:
    """The objects of one function's pointers. `start` and `behind` are the instructions to be inserted for them: at its
    start, and behind others. `asks`: a pointer may lead to any object, so that the run time has to know them all."""

    def __init__(
        self,
        function: Function,
        runtime: Runtime,
        layout: DataLayout,
        buffers: Mapping[Argument, Buffer],
        records: MDRef,
    ) -> None:
        self.start: list[I.Instruction] = []
        self.behind: dict[I.Instruction, list[I.Instruction]] = {}
        self.asks = False
        self.function = function
        self.runtime = runtime
        self.layout = layout
        self._buffers = buffers
        self.records = records
        self._tables: Value | None = None
        self._places: dict[Value, Place | None] = {}
        self._records: dict[Value, Value] = {}
        self._twins: list[tuple[I.Instruction, I.Phi | I.Select]] = []

    def of(self, pointer: Value) -> Place | None:
        """None where nothing is to be checked: functions, variables of libraries."""
        root = root_of(pointer)
        if root not in self._places:
            self._places[root] = self._place(root)
        return self._places[root]

    def register(self, values: Iterable[Value]) -> None:
        """Makes objects known to the run time, which tells them apart by `GRAIN` bytes; in place."""
        for value in values:
            if not isinstance(self.of(value), Known):
                continue
            if isinstance(value, I.Alloca):
                padding = T.ArrayType(GRAIN, T.I8)
                value.allocated_type = T.StructType((value.allocated_type, padding))
                value.align = max(value.align or 1, GRAIN)
            elif isinstance(value, GlobalVariable):
                given = [int(word.removeprefix("align ")) for word in value.suffix if word.startswith("align ")]
                kept = tuple(word for word in value.suffix if not word.startswith("align "))
                value.suffix = (*kept, f"align {max([GRAIN, *given])}")
            self.record(value)

    def _place(self, root: Value) -> Place | None:
        match root:
            case I.Alloca():
                return self._local(root)
            case Argument() if root in self._buffers:
                buffer = self._buffers[root]
                fresh = buffer.io in ("out", "scratch")
                return Known(root, buffer.nbytes, f"argument `{buffer.name}`", ITEM_BYTES[buffer.dtype], fresh)
            case GlobalVariable() if root.initializer is not None:
                size = self.layout.alloc_size(root.value_type)
                text = f"variable `{source_name(self.runtime.module, root)}`"
                if root.name.startswith(_TEXTS):
                    text = "a constant text"
                return Known(root, size, text, self._unit(root.value_type), False)
            case ConstantNull() | Undef() | Poison():
                return Known(ConstantNull(T.PTR), 0, "null", 1, False)
            case I.Phi() | I.Select():
                return self._merged(root)
            case Argument():
                self.asks = True
                return Found(self._find(root, self.start))
            case I.Invoke() | I.CallBr():
                return None
            case I.Instruction() if root.type == T.PTR:
                # What a call gives lies on the heap, or nowhere that is known.
                self.asks = self.asks or not isinstance(root, I.Call)
                return Found(self._find(root, self.behind.setdefault(root, [])))
            case ConstantExpr() if root.type == T.PTR:
                return Found(self._find(root, self.start))
            case _:
                return None

    def _local(self, alloca: I.Alloca) -> Place:
        count, size = int_value(alloca.operands[0]), self.layout.alloc_size(alloca.allocated_type)
        text = variable_name(alloca)
        if count is not None:
            unit = element_of_argument(alloca) or self._unit(alloca.allocated_type)
            return Known(alloca, count * size, text, unit, is_of_source(alloca))
        at = Builder(BasicBlock())
        whole = at.binary("mul", at.wide(alloca.operands[0]), const_int(T.I64, size))
        record = self.runtime.call(at, "object", alloca, whole, self.runtime.text(text))
        self.behind.setdefault(alloca, []).extend(at.block.instructions)
        return Found(record)

    def _unit(self, type_: T.Type) -> int:
        """The size of an element; what has one member, such as `std::array`, has that one's."""
        while True:
            match self.layout.body(type_):
                case T.ArrayType(element=inner):
                    type_ = inner
                case T.StructType(elements=(inner,)):
                    type_ = inner
                case _:
                    return self.layout.alloc_size(type_)

    def _find(self, value: Value, where: list[I.Instruction]) -> Value:
        at = Builder(BasicBlock())
        record = self.asked(at, value)
        where += at.block.instructions
        return record

    def asked(self, at: Builder, value: Value) -> Value:
        """The record of what a pointer leads to, as the run time knows it."""
        return record_of(at, self.tables(), at.cast("ptrtoint", value, T.I64), self.records)

    def tables(self) -> Value:
        """Where the run time keeps what it knows."""
        if self._tables is None:
            at = Builder(BasicBlock())
            self._tables = self.runtime.call(at, "flag")
            self.start[:0] = at.block.instructions
        return self._tables

    # -- pointers that are one or another

    def _merged(self, root: I.Instruction) -> Place | None:
        roots, merges = _sources(root)
        if len(roots) == 1:
            place = self.of(roots[0])
            # What is found in a loop may be found in a second version of that loop, too.
            if not isinstance(place, Found) or not isinstance(roots[0], I.Instruction):
                return place
        for merge in merges:
            twin = I.Phi(T.PTR, "phi", []) if isinstance(merge, I.Phi) else I.Select(T.PTR, "select", [])
            self._places[merge] = Found(twin)
            self._twins.append((merge, twin))
            self.behind.setdefault(merge, []).insert(0, twin)
        return self._places[root]

    def complete(self) -> None:
        """Lets the records of pointers that are one or another be those of what they are now that all loops have their
        versions, in place."""
        while self._twins:
            merge, twin = self._twins.pop()
            if isinstance(merge, I.Phi) and isinstance(twin, I.Phi):
                for value, block in merge.incoming:
                    twin.add(self.record(value), block)
            else:
                twin.operands += [merge.operands[0], *(self.record(value) for value in merge.operands[1:])]

    def record(self, pointer: Value) -> Value:
        """The record of the object that a pointer leads to; it is inserted with what else tells objects apart."""
        root = root_of(pointer)
        place = self.of(root)
        if isinstance(place, Found):
            return place.record
        key = ConstantNull(T.PTR) if place is not None and place.text == "null" else root
        if key not in self._records:
            at = Builder(BasicBlock())
            if place is None or place.text == "null":
                made = self._find(ConstantNull(T.PTR) if place is not None else root, at.block.instructions)
            else:
                extent, text = const_int(T.I64, place.extent), self.runtime.text(place.text)
                made = self.runtime.call(at, "object", root, extent, text)
            if isinstance(root, I.Instruction):
                self.behind.setdefault(root, []).extend(at.block.instructions)
            else:
                self.start += at.block.instructions
            self._records[key] = made
        return self._records[key]


def may_be_found(variable: I.Alloca, users: Uses) -> bool:
    """Whether the address of a local variable may come back from where nothing is known of it: memory, or another
    function of the kernel. Where it may not, the run time has no use for it, and it may become a register."""
    start: list[Value] = [variable]
    pointers = reached(start, lambda p: (user for user, _ in users.get(p, ()) if _leads_on(user)))
    return not all(_keeps_nothing(user, index) for p in pointers for user, index in users.get(p, ()))


def is_private(variable: I.Alloca | Argument, users: Uses) -> bool:
    """Whether all that leads into a local variable or an argument is computed from its address, and from no other."""
    return all(_accesses(user, index) for user, index, _ in used_at(variable, users))


def _accesses(user: I.Instruction, index: int) -> bool:
    if isinstance(user, I.Load | I.Store):
        return isinstance(user, I.Load) or index == 1
    return isinstance(user, I.Call) and callee_name(user).startswith(_OF_OWN)


def _leads_on(user: Value) -> bool:
    goes_as_number = isinstance(user, I.Cast) and user.opcode == "ptrtoint"
    return goes_as_number or isinstance(user, I.GetElementPtr | I.Freeze | I.Phi | I.Select | I.BinaryOp)


def _keeps_nothing(user: Value, index: int) -> bool:
    match user:
        case I.Load() | I.Compare():
            return True
        case I.Store():
            return index == 1
        case I.Call():
            return callee_name(user).startswith(_KEEPS_NO_ADDRESS)
        case _:
            return _leads_on(user)


def _sources(root: I.Instruction) -> tuple[list[Value], list[I.Instruction]]:
    """What phis and selects choose from in the end, and all of them that are passed on the way."""
    start: list[Value] = [root]
    found = reached(start, lambda v: map(root_of, I.merged(v)) if isinstance(v, I.Phi | I.Select) else ())
    merges: list[I.Instruction] = [v for v in found if isinstance(v, I.Phi | I.Select)]
    return [v for v in found if v not in merges], merges
