"""One parameter of a signature: dtype, direction and shape."""

from __future__ import annotations

from typing import Literal as Choice

from jax_enzyme.classes import dataclass
from jax_enzyme.signature.expressions import Expression

DTYPES = ("bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bf16", "f16", "f32", "f64", "c64", "c128")
INTEGERS = frozenset({"i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"})
WIDE = frozenset({"i64", "u64", "f64", "c128"})
"""The dtypes that JAX has only with 64-bit types enabled."""

Direction = Choice["in", "out", "inout", "scratch"]
DIRECTIONS: tuple[Direction, ...] = ("in", "out", "inout", "scratch")


def integer_range(dtype: str) -> tuple[int, int]:
    """The least and the greatest value of an integer dtype."""
    bits = int(dtype[1:])
    return (0, 2**bits - 1) if dtype[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter. `dims` is None for a scalar passed by value, `()` for a pointer to one value; `value` that of an
    integer which is the same in every call."""

    name: str
    dtype: str
    direction: Direction = "in"
    dims: tuple[Expression, ...] | None = None
    value: int | None = None

    @property
    def by_value(self) -> bool:
        return self.dims is None

    @property
    def is_scalar(self) -> bool:
        return not self.dims

    @property
    def is_input(self) -> bool:
        return self.direction in ("in", "inout")

    @property
    def rank(self) -> int:
        return len(self.dims or ())

    @property
    def type_text(self) -> str:
        """The part after the colon: `f64[n,d]`."""
        return self.dtype if self.dims is None else f"{self.dtype}[{','.join(map(str, self.dims))}]"

    def __str__(self) -> str:
        prefix = "" if self.direction == "in" else f"{self.direction} "
        value = "" if self.value is None else f" = {self.value}"
        return f"{prefix}{self.name}: {self.type_text}{value}"
