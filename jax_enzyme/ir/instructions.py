"""Instructions: one class per shape of instruction, the opcode as LLVM spells it.

Every instruction keeps *all* its value operands in `operands` (a list, in the order below) and its target blocks in
`targets`, so that a generic walk or a substitution needs no case per class. Fields that are not values are attributes.

    class            operands                            targets
    UnaryOp          [x]
    BinaryOp         [x, y]
    Cast             [x]
    Compare          [x, y]
    Select           [condition, then, else]
    Phi              [value per incoming edge]           [block per incoming edge] (predecessors, not successors)
    Freeze           [x]
    Alloca           [count]
    Load             [pointer]
    Store            [value, pointer]
    GetElementPtr    [base, index...]
    Call             [argument..., callee]
    Branch           []                                  [destination]
    CondBranch       [condition]                         [then, else]
    Switch           [value, case constant...]           [default, case target...]
    Return           [] or [value]
    Unreachable      []
    ExtractValue     [aggregate]
    InsertValue      [aggregate, element]
    ExtractElement   [vector, index]
    InsertElement    [vector, element, index]
    ShuffleVector    [x, y]
    AtomicRMW        [pointer, value]
    CmpXchg          [pointer, expected, new]
    Fence            []
    VAArg            [list]
    Invoke           [argument..., callee]               [normal, unwind]
    CallBr           [argument..., callee]               [fallthrough, indirect...]
    IndirectBranch   [address]                           [possible destination...]
    LandingPad       [clause value...]
    Resume           [x]
    CatchSwitch      [parent]                            [handler..., unwind?]
    FuncletPad       [parent, argument...]               (catchpad, cleanuppad)
    FuncletReturn    [pad]                               [destination?] (catchret, cleanupret)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jax_enzyme.classes import dataclass, field
from jax_enzyme.ir import types as T
from jax_enzyme.ir.values import BasicBlock, Value

if TYPE_CHECKING:
    from jax_enzyme.ir.metadata import DebugRecord, MDValue

TERMINATORS = frozenset(
    "ret br switch indirectbr invoke callbr resume unreachable catchswitch catchret cleanupret".split()
)
INTEGER_DIVISIONS = frozenset("udiv sdiv urem srem".split())
"""What a divisor of zero makes undefined: processors end the process."""


@dataclass(eq=False, slots=True)
class Instruction(Value):
    """Base of all instructions. `flags` are the words after the opcode in LLVM's order (`nuw nsw`, `fast`, `inbounds`,
    `exact`, `disjoint`, `samesign`, `nneg`, `tail`, `volatile` ...). `metadata` are the `!kind !node` attachments, in
    order. `records` are the debug records printed before the instruction."""

    opcode: str
    operands: list[Value]
    flags: tuple[str, ...] = field(default=(), kw_only=True)
    metadata: list[tuple[str, MDValue]] = field(default_factory=list, kw_only=True)
    records: tuple[DebugRecord, ...] = field(default=(), kw_only=True)
    targets: list[BasicBlock] = field(default_factory=list, kw_only=True)

    @property
    def is_terminator(self) -> bool:
        return self.opcode in TERMINATORS

    @property
    def successors(self) -> list[BasicBlock]:
        """Successor blocks, in order, repeats kept; empty for what is no terminator."""
        return self.targets if self.opcode in TERMINATORS else []


class UnaryOp(Instruction):
    """fneg."""

    __slots__ = ()


class BinaryOp(Instruction):
    """add sub mul udiv sdiv urem srem shl lshr ashr and or xor fadd fsub fmul fdiv frem."""

    __slots__ = ()


class Cast(Instruction):
    """trunc zext sext fptrunc fpext fptoui fptosi uitofp sitofp ptrtoint ptrtoaddr inttoptr bitcast addrspacecast."""

    __slots__ = ()


@dataclass(eq=False, slots=True)
class Compare(Instruction):
    """icmp, fcmp."""

    predicate: str


class Select(Instruction):
    __slots__ = ()


class Phi(Instruction):
    """`targets[i]` is the predecessor from which `operands[i]` comes."""

    __slots__ = ()

    @property
    def incoming(self) -> list[tuple[Value, BasicBlock]]:
        return list(zip(self.operands, self.targets, strict=True))

    @incoming.setter
    def incoming(self, pairs: list[tuple[Value, BasicBlock]]) -> None:
        self.operands, self.targets = [value for value, _ in pairs], [block for _, block in pairs]

    def add(self, value: Value, block: BasicBlock) -> None:
        """One more incoming edge."""
        self.operands.append(value)
        self.targets.append(block)


class Freeze(Instruction):
    __slots__ = ()


@dataclass(eq=False, slots=True)
class Alloca(Instruction):
    """`count_printed` says whether the element count was written; `flags` may hold `inalloca`, `swifterror`."""

    allocated_type: T.Type
    align: int | None = None
    count_printed: bool = False

    @property
    def address_space(self) -> int:
        assert isinstance(self.type, T.PointerType)
        return self.type.address_space


@dataclass(eq=False, slots=True)
class Load(Instruction):
    """`flags` may hold `atomic`, `volatile`; `ordering` with its scope as printed (`syncscope("agent") acquire`)."""

    align: int | None = None
    ordering: str = ""


@dataclass(eq=False, slots=True)
class Store(Instruction):
    align: int | None = None
    ordering: str = ""


@dataclass(eq=False, slots=True)
class GetElementPtr(Instruction):
    source_type: T.Type


@dataclass(eq=False, slots=True)
class CallBase(Instruction):
    """What call, invoke and callbr share. `parameter_attributes[i]` are the attributes of argument i; `attributes`
    those after the parenthesis (`#3`, `nounwind` ...), `bundles` the operand bundles."""

    function_type: T.FunctionType
    calling_convention: str = ""
    return_attributes: tuple[str, ...] = ()
    parameter_attributes: list[tuple[str, ...]] = field(default_factory=list)
    attributes: tuple[str, ...] = ()
    bundles: list[tuple[str, list[Value]]] = field(default_factory=list)
    type_printed_in_full: bool = False

    @property
    def callee(self) -> Value:
        return self.operands[-1]

    @property
    def arguments(self) -> list[Value]:
        return self.operands[:-1]


class Call(CallBase):
    """`flags` hold `tail`/`musttail`/`notail` and fast-math words, in LLVM's order."""

    __slots__ = ()


class Invoke(CallBase):
    __slots__ = ()


class CallBr(CallBase):
    __slots__ = ()


class Branch(Instruction):
    __slots__ = ()


class CondBranch(Instruction):
    __slots__ = ()


class Switch(Instruction):
    __slots__ = ()

    @property
    def cases(self) -> list[tuple[Value, BasicBlock]]:
        return list(zip(self.operands[1:], self.targets[1:], strict=True))

    def add(self, case: Value, block: BasicBlock) -> None:
        """One more case."""
        self.operands.append(case)
        self.targets.append(block)


class IndirectBranch(Instruction):
    __slots__ = ()


class Return(Instruction):
    __slots__ = ()


class Unreachable(Instruction):
    __slots__ = ()


@dataclass(eq=False, slots=True)
class ExtractValue(Instruction):
    indices: tuple[int, ...]


@dataclass(eq=False, slots=True)
class InsertValue(Instruction):
    indices: tuple[int, ...]


class ExtractElement(Instruction):
    __slots__ = ()


class InsertElement(Instruction):
    __slots__ = ()


@dataclass(eq=False, slots=True)
class ShuffleVector(Instruction):
    """`mask` has one lane number per result lane, -1 for poison."""

    mask: tuple[int, ...]
    mask_type: T.Type


@dataclass(eq=False, slots=True)
class AtomicRMW(Instruction):
    operation: str
    ordering: str
    align: int | None = None


@dataclass(eq=False, slots=True)
class CmpXchg(Instruction):
    ordering: str
    align: int | None = None


@dataclass(eq=False, slots=True)
class Fence(Instruction):
    ordering: str


class VAArg(Instruction):
    __slots__ = ()


@dataclass(eq=False, slots=True)
class LandingPad(Instruction):
    """`clauses[i]` is `catch` or `filter` for `operands[i]`; `flags` may hold `cleanup`."""

    clauses: tuple[str, ...]


class Resume(Instruction):
    __slots__ = ()


@dataclass(eq=False, slots=True)
class CatchSwitch(Instruction):
    """`unwinds` says whether the last target is the unwind destination (else `unwind to caller`)."""

    unwinds: bool


class FuncletPad(Instruction):
    __slots__ = ()


class FuncletReturn(Instruction):
    __slots__ = ()


def merged(value: Value) -> list[Value]:
    """The values one of which a phi, a select or a `freeze` is; none for others."""
    if isinstance(value, Phi | Freeze):
        return value.operands
    return value.operands[1:] if isinstance(value, Select) else []


TOUCHES_MEMORY = (Load, Store, CallBase, AtomicRMW, CmpXchg, Fence)
"""Instructions that may read or write memory, or put accesses in order."""


def base_of(pointer: Value) -> Value:
    """The address that `getelementptr` instructions start from."""
    while isinstance(pointer, GetElementPtr):
        pointer = pointer.operands[0]
    return pointer


def is_plain(access: Load | Store) -> bool:
    """Whether nothing is said of when something is loaded or stored, or how often."""
    return not access.ordering and "volatile" not in access.flags


def accessed_value(access: Load | Store) -> Value:
    """What is loaded or stored."""
    return access if isinstance(access, Load) else access.operands[0]


def accessed(instruction: Instruction) -> tuple[Value, T.Type] | None:
    """The address that a load, a store or an atomic operation accesses, and the type of what is there."""
    match instruction:
        case Load():
            return instruction.operands[0], instruction.type
        case Store():
            return instruction.operands[1], instruction.operands[0].type
        case AtomicRMW() | CmpXchg():
            return instruction.operands[0], instruction.operands[1].type
        case _:
            return None
