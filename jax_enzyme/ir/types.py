"""The types of LLVM IR as immutable values, compared by structure.

Named structures are the exception that LLVM makes too: they are equal by name, and the module holds their bodies
(`Module.struct_bodies`), so that recursive types need no cycles.
"""

from __future__ import annotations

from jax_enzyme.classes import dataclass


@dataclass(frozen=True, slots=True)
class Type:
    """Base of all types; `str()` gives LLVM's spelling."""


class VoidType(Type):
    __slots__ = ()

    def __str__(self) -> str:
        return "void"


class LabelType(Type):
    __slots__ = ()

    def __str__(self) -> str:
        return "label"


class MetadataType(Type):
    __slots__ = ()

    def __str__(self) -> str:
        return "metadata"


class TokenType(Type):
    __slots__ = ()

    def __str__(self) -> str:
        return "token"


class AmxType(Type):
    __slots__ = ()

    def __str__(self) -> str:
        return "x86_amx"


@dataclass(frozen=True, slots=True)
class IntType(Type):
    bits: int

    def __str__(self) -> str:
        return f"i{self.bits}"


_FLOAT_SIZES = {"half": 2, "bfloat": 2, "float": 4, "double": 8, "x86_fp80": 10, "fp128": 16, "ppc_fp128": 16}


@dataclass(frozen=True, slots=True)
class FloatType(Type):
    """`kind` is LLVM's keyword: half, bfloat, float, double, x86_fp80, fp128 or ppc_fp128."""

    kind: str

    def __str__(self) -> str:
        return self.kind

    @property
    def size(self) -> int:
        """Bytes that a store of it writes."""
        return _FLOAT_SIZES[self.kind]


@dataclass(frozen=True, slots=True)
class PointerType(Type):
    address_space: int = 0

    def __str__(self) -> str:
        return "ptr" if self.address_space == 0 else f"ptr addrspace({self.address_space})"


@dataclass(frozen=True, slots=True)
class VectorType(Type):
    count: int
    element: Type
    scalable: bool = False

    def __str__(self) -> str:
        scale = "vscale x " if self.scalable else ""
        return f"<{scale}{self.count} x {self.element}>"


@dataclass(frozen=True, slots=True)
class ArrayType(Type):
    count: int
    element: Type

    def __str__(self) -> str:
        return f"[{self.count} x {self.element}]"


@dataclass(frozen=True, slots=True)
class StructType(Type):
    """A literal structure."""

    elements: tuple[Type, ...]
    packed: bool = False

    def __str__(self) -> str:
        if not self.elements:
            return "<{}>" if self.packed else "{}"
        body = "{ " + ", ".join(map(str, self.elements)) + " }"
        return f"<{body}>" if self.packed else body


@dataclass(frozen=True, slots=True)
class NamedStructType(Type):
    """A reference to `%name = type ...`; `name` is as LLVM prints it after `%`, quotes included where it needs them."""

    name: str

    def __str__(self) -> str:
        return f"%{self.name}"


@dataclass(frozen=True, slots=True)
class FunctionType(Type):
    result: Type
    parameters: tuple[Type, ...]
    variadic: bool = False

    def __str__(self) -> str:
        parts = [str(p) for p in self.parameters] + (["..."] if self.variadic else [])
        return f"{self.result} ({', '.join(parts)})"


@dataclass(frozen=True, slots=True)
class TargetExtType(Type):
    """`target("name", types..., ints...)`."""

    name: str
    types: tuple[Type, ...] = ()
    integers: tuple[int, ...] = ()

    def __str__(self) -> str:
        parts = [f'"{self.name}"', *map(str, self.types), *map(str, self.integers)]
        return f"target({', '.join(parts)})"


VOID = VoidType()
LABEL = LabelType()
METADATA = MetadataType()
TOKEN = TokenType()
I1 = IntType(1)
I8 = IntType(8)
I16 = IntType(16)
I32 = IntType(32)
I64 = IntType(64)
HALF = FloatType("half")
BFLOAT = FloatType("bfloat")
FLOAT = FloatType("float")
DOUBLE = FloatType("double")
PTR = PointerType()


def scalar(type_: Type) -> Type:
    """The element type of a vector, any other type itself."""
    return type_.element if isinstance(type_, VectorType) else type_


def bits(type_: Type) -> int:
    """Those of an integer."""
    assert isinstance(type_, IntType)
    return type_.bits


def is_float(type_: Type) -> bool:
    """True for a floating-point type or a vector of one."""
    return isinstance(scalar(type_), FloatType)


def is_int(type_: Type) -> bool:
    """True for an integer type or a vector of one."""
    return isinstance(scalar(type_), IntType)


def is_pointer(type_: Type) -> bool:
    """True for a pointer or a vector of pointers."""
    return isinstance(scalar(type_), PointerType)
