"""How a CUDA kernel is launched: grid, block and dynamic shared memory, as expressions over dimensions and integers
that are given with the kernel."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from jax_enzyme.classes import dataclass
from jax_enzyme.errors import ArgumentError, SignatureError
from jax_enzyme.signature.expressions import EvaluationError, Expression, Literal, Name, evaluate, names_in, renamed
from jax_enzyme.signature.model import Signature
from jax_enzyme.signature.parser import parse_expression

MAX_THREADS = 1024
MAX_BLOCK = (1024, 1024, 64)
MAX_GRID = (2**31 - 1, 65535, 65535)
MAX_SHARED = 227 * 1024
"""Shared memory of one block, on the device that has most (sm_90)."""
MAX_STATIC_SHARED = 48 * 1024
"""What a kernel may declare with a fixed size, on every device."""

Extents = tuple[str, str, str]
_STUB = re.compile(r"(\d*)__device_stub__")


@dataclass(frozen=True)
class Launch:
    """An immutable value. The texts are expressions in canonical form, so that equal launches are equal values."""

    grid: Extents
    block: Extents
    shared: str = "0"

    def __str__(self) -> str:
        return f"grid=({', '.join(self.grid)}), block=({', '.join(self.block)}), shared={self.shared}"

    def shape(self, dims: Mapping[str, int]) -> Shape:
        """The launch for solved dimensions. ArgumentError where no device could do it."""
        grid = _three("grid", self.grid, dims, MAX_GRID)
        block = _three("block", self.block, dims, MAX_BLOCK)
        threads = block[0] * block[1] * block[2]
        if threads > MAX_THREADS:
            raise ArgumentError(
                f"a block of {block[0]} x {block[1]} x {block[2]} = {threads} threads is too large",
                _given("block", self.block, dims),
                f"a block has at most {MAX_THREADS} threads",
            )
        shared = _value("shared", self.shared, dims)
        if not 0 <= shared <= MAX_SHARED:
            wrong = "is negative" if shared < 0 else f"is more than any device has ({MAX_SHARED} bytes)"
            raise ArgumentError(f"shared memory of {shared} bytes {wrong}", _given("shared", (self.shared,), dims))
        return Shape(grid, block, shared)


@dataclass(frozen=True)
class Shape:
    """The numbers of one launch."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int

    @property
    def threads(self) -> int:
        """Threads per block."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def rows(self) -> int:
        """Threads along the last axis, of y and z, that has more than one."""
        y, z = (g * b for g, b in zip(self.grid[1:], self.block[1:], strict=True))
        return z if z > 1 else y


def parse_launch(signature: Signature, grid: object, block: object, shared: object = None) -> Launch:
    """The launch that the caller of `kernel` described. SignatureError where it cannot mean anything."""
    missing = [name for name, value in (("grid", grid), ("block", block)) if value is None]
    if missing:
        raise SignatureError(
            f"a CUDA kernel needs {' and '.join(f'{m}=' for m in missing)}",
            remedy='for example grid="(n+255)//256", block=256',
        )
    made = Launch(
        _extents("grid", grid, signature),
        _extents("block", block, signature),
        str(_expression("shared", 0 if shared is None else shared, signature)),
    )
    if not any(names_in(parse_expression(t)) for t in (*made.grid, *made.block, made.shared)):
        made.shape({})  # nothing depends on the arguments: what is wrong is wrong now
    return made


def _extents(what: str, given: object, signature: Signature) -> Extents:
    parts: Sequence[object] = given if isinstance(given, tuple | list) else (given,)
    if not 1 <= len(parts) <= 3:
        raise SignatureError(f"{what}= has {len(parts)} extents: {given!r}", remedy="one, two or three: x, y, z")
    texts = [str(_expression(what, part, signature)) for part in parts]
    texts += ["1"] * (3 - len(texts))
    return texts[0], texts[1], texts[2]


def _expression(what: str, part: object, signature: Signature) -> Expression:
    if isinstance(part, bool) or not isinstance(part, int | str):
        raise SignatureError(
            f"{what}={part!r} is neither an integer nor an expression over dimensions",
            remedy='an int, a string such as "(n+255)//256", or a tuple of up to three of them',
        )
    try:
        found = parse_expression(str(part))
    except SignatureError as error:
        raise SignatureError(f"{what}= {error.cause}", error.place, error.remedy) from None
    fixed = {p.name: Literal(p.value) for p in signature.params if p.value is not None}
    found = renamed(found, lambda name: fixed.get(name) or Name(name))
    unknown = sorted(names_in(found) - signature.shape_names)
    if unknown:
        known = ", ".join(sorted(signature.shape_names)) or "none"
        raise SignatureError(
            f"`{unknown[0]}` in {what}={part!r} is no dimension",
            f"dimensions: {known}",
            "a dimension is a name that occurs in the shape of an array",
        )
    return found


def _three(what: str, texts: Extents, dims: Mapping[str, int], limits: tuple[int, int, int]) -> tuple[int, int, int]:
    values = [_value(what, text, dims) for text in texts]
    for axis, value, limit in zip("xyz", values, limits, strict=True):
        if value < 1:
            raise ArgumentError(
                f"{what}.{axis} is {value}: there is nothing to launch",
                _given(what, texts, dims),
                "every extent is at least 1",
            )
        if value > limit:
            raise ArgumentError(
                f"{what}.{axis} is {value}, more than the {limit} that a device allows", _given(what, texts, dims)
            )
    return values[0], values[1], values[2]


def _value(what: str, text: str, dims: Mapping[str, int]) -> int:
    try:
        return evaluate(parse_expression(text), dims)
    except EvaluationError as error:
        raise ArgumentError(f"{what}= has no value: {error}", _given(what, (text,), dims)) from None


def _given(what: str, texts: Sequence[str], dims: Mapping[str, int]) -> str:
    names = sorted({name for text in texts for name in names_in(parse_expression(text))})
    values = ", ".join(f"{n} = {dims[n]}" for n in names)
    shown = ", ".join(texts)
    return f"{what}=({shown})" + (f" with {values}" if values else "")


def kernel_of_stub(stub: str) -> str | None:
    """The kernel that a function of the host launches which clang made for that, by its name: `_Z3addPf` for
    `_Z18__device_stub__addPf`. None for any other function."""
    found = _STUB.search(stub)
    if found is None:
        return None
    length = str(int(found[1]) - len("__device_stub__")) if found[1] else ""
    return stub[: found.start()] + length + stub[found.end() :]
