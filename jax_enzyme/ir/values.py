"""Values: everything an instruction can have as an operand. Constants, arguments, globals, blocks.

Values are compared by identity. Integer and float constants are cheap to make again, so no table of them is kept;
ask for their contents with `int_value` rather than comparing objects.

A class without fields of its own takes the methods of its base: every `dataclass` costs each process a millisecond.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jax_enzyme.classes import dataclass, field
from jax_enzyme.ir import types as T

if TYPE_CHECKING:
    from jax_enzyme.ir.instructions import Instruction


@dataclass(eq=False, slots=True)
class Value:
    """`name` is without its sigil and unquoted; the empty string where the writer has to number it."""

    type: T.Type
    name: str = field(default="", kw_only=True)


class Constant(Value):
    """Base of all constants, globals included."""

    __slots__ = ()


@dataclass(eq=False, slots=True)
class ConstantInt(Constant):
    """`value` is kept signed, in the range of the type; i1 true is -1 & 1 = 1."""

    value: int


@dataclass(eq=False, slots=True)
class ConstantFloat(Constant):
    """`text` is LLVM's spelling (`1.000000e+00`, `0x3FB999999999999A`, `0xH3C00`): exact for every kind."""

    text: str


class ConstantNull(Constant):
    """`null` of a pointer type."""

    __slots__ = ()


class ConstantToken(Constant):
    """`none` of the token type."""

    __slots__ = ()


class Undef(Constant):
    __slots__ = ()


class Poison(Constant):
    __slots__ = ()


class ZeroInitializer(Constant):
    """`zeroinitializer` of an aggregate, vector or target type."""

    __slots__ = ()


@dataclass(eq=False, slots=True)
class ConstantAggregate(Constant):
    """An array, structure or vector written element by element; the type says which."""

    elements: list[Constant]


@dataclass(eq=False, slots=True)
class ConstantTable(Constant):
    """An array or structure of so many numbers that it is kept as it was read. Its text names no symbol, and holds no
    address and nothing undefined; the type says where in it numbers of which kind are."""

    text: str


@dataclass(eq=False, slots=True)
class ConstantSplat(Constant):
    """`splat (T v)` of a vector type."""

    element: Constant


@dataclass(eq=False, slots=True)
class ConstantString(Constant):
    """`c"..."`; `data` are the bytes."""

    data: bytes


@dataclass(eq=False, slots=True)
class ConstantExpr(Constant):
    """A constant expression. `flags` are the words between opcode and parenthesis (`inbounds`, `nuw`, `inrange(...)`);
    `source_type` is the element type of a `getelementptr`. Casts take their destination from `type`."""

    opcode: str
    operands: list[Constant]
    flags: tuple[str, ...] = ()
    source_type: T.Type | None = None


@dataclass(eq=False, slots=True)
class BlockAddress(Constant):
    """`blockaddress(@function, %block)`."""

    function: Constant
    block: BasicBlock


@dataclass(eq=False, slots=True)
class DSOLocalEquivalent(Constant):
    """`dso_local_equivalent @f` and `no_cfi @f`; `keyword` is which."""

    keyword: str
    target: Constant


@dataclass(eq=False, slots=True)
class PtrAuth(Constant):
    """`ptrauth (ptr ..., i32 ..., ...)`."""

    operands: list[Constant]


@dataclass(eq=False, slots=True)
class InlineAsm(Value):
    """`asm flags "template", "constraints"` as a callee."""

    template: str
    constraints: str
    flags: tuple[str, ...] = ()


@dataclass(eq=False, slots=True)
class Argument(Value):
    """A parameter of a function. `attributes` are as printed between type and name, in order."""

    attributes: tuple[str, ...] = ()
    index: int = 0


@dataclass(eq=False, slots=True)
class GlobalValue(Constant):
    """Anything named with `@`. Its type as an operand is a pointer; `value_type` is what it points to."""

    value_type: T.Type


@dataclass(eq=False, slots=True)
class BasicBlock(Value):
    """A label and its instructions, the terminator last. `type` is the label type."""

    type: T.Type = field(default=T.LABEL)
    instructions: list[Instruction] = field(default_factory=list)

    @property
    def terminator(self) -> Instruction:
        return self.instructions[-1]

    @property
    def successors(self) -> list[BasicBlock]:
        return self.instructions[-1].successors

    def __repr__(self) -> str:
        return f"<block {self.name}>"


def int_value(value: Value) -> int | None:
    """The integer that a constant holds (scalar integer constants and null-like zeros), or None."""
    if isinstance(value, ConstantInt):
        return value.value
    if isinstance(value, ZeroInitializer) and isinstance(value.type, T.IntType):
        return 0
    return None


def parts_of(value: Value) -> Sequence[Constant]:
    """The constants that a constant expression, an aggregate or a splat is made of."""
    match value:
        case ConstantExpr(operands=parts) | ConstantAggregate(elements=parts):
            return parts
        case ConstantSplat(element=element):
            return [element]
        case _:
            return ()


def lane_of(value: Value) -> Value:
    """What stands in every lane of a constant vector that is the same everywhere; the value itself for others."""
    return value.element if isinstance(value, ConstantSplat) else value


def is_zero(value: Value) -> bool:
    """Whether a value is the constant of which all bits are zero."""
    match value:
        case ZeroInitializer() | ConstantNull():
            return True
        case ConstantInt():
            return value.value == 0
        case ConstantFloat():
            # In decimal -0.0 has a sign; in hexadecimal the digits are the bits.
            text = value.text
            return (
                set(text[2:].lstrip("HRKLM")) == {"0"} if text.startswith("0x") else text[0] != "-" and float(text) == 0
            )
        case _:
            return False
