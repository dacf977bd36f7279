"""Array functions: the one calling convention that every kernel and every derived function has.

An *array function* is an IR function `i64 f(ptr, ptr, ...)`: one pointer per buffer, none of which alias, and a status
as its result (0: all went well). Scalars are buffers of one element. The engine maps array functions to array
functions, and the run time knows nothing else. The buffers of a derived function follow from those of its base alone:

    Jvp         the base's buffers, then one tangent per active buffer, in order, with the io of its primal
    Vjp         the base's buffers (`out` becomes `scratch`: the forward sweep runs inside), then the shadows
    Augmented   the base's buffers, then residuals: the tape, and scratch buffers whose contents reverse needs
    Pullback    what reverse reads (inputs, final contents of outputs, residuals), then the shadows

A *shadow* holds a cotangent: on entry that of an output (io `inout`, result discarded), on exit that of an input (io
`out`, zero on entry), for an `inout` buffer one after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Literal

from jax_enzyme.classes import dataclass, replace
from jax_enzyme.ir.module import Module, take_apart

Io = Literal["in", "out", "inout", "scratch"]
Role = Literal["primal", "tangent", "shadow", "initial", "final", "tape"]

ITEM_BYTES = {
    "bool": 1, "i8": 1, "u8": 1, "i16": 2, "u16": 2, "i32": 4, "u32": 4, "i64": 8, "u64": 8,
    "bf16": 2, "f16": 2, "f32": 4, "f64": 8, "c64": 8, "c128": 16,
}  # fmt: skip
FLOATING = frozenset({"bf16", "f16", "f32", "f64", "c64", "c128"})


@dataclass(frozen=True)
class Buffer:
    """One parameter of an array function.

    `role` says what it is to the base function's buffer number `of`: `primal` the buffer itself, `tangent` its tangent,
    `shadow` its cotangent; in a Pullback `initial` is the value that went into an `in` or `inout` buffer and `final`
    what the forward sweep left in an `inout`, `out` or `scratch` one; `tape` belongs to no buffer (`of` is -1).
    `zero`: filled with zeros before each call. `discard`: an `inout` whose final contents mean nothing. `grows`:
    scratch whose first extent, 0 here, only the call itself finds out. `lanes`: the last extent is that of directions,
    which lie side by side whatever the order of the others.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    io: Io
    role: Role = "primal"
    of: int = -1
    zero: bool = False
    discard: bool = False
    grows: bool = False
    lanes: bool = False

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * ITEM_BYTES[self.dtype]

    @property
    def is_input(self) -> bool:
        return self.io in ("in", "inout")

    @property
    def is_result(self) -> bool:
        return self.io == "out" or (self.io == "inout" and not self.discard)

    @property
    def is_floating(self) -> bool:
        return self.dtype in FLOATING


@dataclass(frozen=True)
class Jvp:
    """Forward mode. `tangents[i]`: buffer i has a tangent on entry (only floating `in`/`inout` buffers may).

    `lanes`: for so many tangents of one point at once, one beside the other in a last dimension; 0: for one, without
    that dimension. The same of cotangents in the other steps."""

    tangents: tuple[bool, ...]
    lanes: int = 0


@dataclass(frozen=True)
class Vjp:
    """Reverse mode in one function. `wanted[i]`: the cotangent of input buffer i is asked for; `seeded[i]`: output
    buffer i has a cotangent that is not zero. Both are indexed by the base's buffers."""

    wanted: tuple[bool, ...]
    seeded: tuple[bool, ...]
    lanes: int = 0


@dataclass(frozen=True)
class Augmented(Vjp):
    """The base function, keeping a tape for the Pullback of the same masks."""


@dataclass(frozen=True)
class Pullback(Vjp):
    """The reverse sweep alone, reading what Augmented of the same masks kept."""


Step = Jvp | Vjp
Derivation = tuple[Step, ...]


@dataclass(frozen=True, eq=False)
class ArrayFunction:
    """A module, the symbol of an array function in it, and its buffers in parameter order."""

    module: Module
    symbol: str
    buffers: tuple[Buffer, ...]

    @property
    def is_derivative(self) -> bool:
        """Whether it has buffers that only derivatives have."""
        return any(b.role != "primal" for b in self.buffers)


def jvp_buffers(base: tuple[Buffer, ...], step: Jvp) -> tuple[Buffer, ...]:
    """The buffers of the forward derivative: see the module's table."""
    tangents: list[Buffer] = []
    for index, (buffer, given) in enumerate(zip(base, step.tangents, strict=True)):
        if given and not (buffer.is_floating and buffer.is_input):
            raise ValueError(f"buffer {buffer.name} ({buffer.io} {buffer.dtype}) cannot have a tangent on entry")
        if given or (buffer.is_floating and buffer.io != "in"):
            # An inout buffer without a tangent on entry starts from zero.
            lone = buffer.io == "inout" and not given
            tangents.append(
                replace(
                    buffer,
                    name=f"{buffer.name}_dot",
                    role="tangent",
                    of=index,
                    io=("scratch" if buffer.discard else "out") if lone else buffer.io,
                    zero=lone or buffer.io in ("out", "scratch"),
                    discard=buffer.discard and not lone,
                )
            )
    own = tuple(replace(b, role="primal", of=i) for i, b in enumerate(base))
    return own + tuple(tangents)


def shadow_buffers(base: tuple[Buffer, ...], step: Vjp) -> tuple[Buffer, ...]:
    """The cotangent buffers of a Vjp or Pullback, in the order of the base's buffers."""
    shadows: list[Buffer] = []
    for index, (buffer, wanted, seeded) in enumerate(zip(base, step.wanted, step.seeded, strict=True)):
        if not buffer.is_floating:
            continue
        if wanted and not buffer.is_input:
            raise ValueError(f"buffer {buffer.name} ({buffer.io}) is no input: it has no cotangent to ask for")
        if seeded and not buffer.is_result:
            raise ValueError(f"buffer {buffer.name} ({buffer.io}) is no output: it has no cotangent to give")
        if buffer.io == "in" and not wanted:
            continue
        io: Io = ("inout" if seeded else "out") if wanted else ("inout" if seeded else "scratch")
        shadows.append(
            replace(
                buffer,
                name=f"{buffer.name}_bar",
                role="shadow",
                of=index,
                io=io,
                zero=not seeded,
                discard=io == "inout" and not wanted,
            )
        )
    return tuple(shadows)


def vjp_buffers(base: tuple[Buffer, ...], step: Vjp) -> tuple[Buffer, ...]:
    """The buffers of the combined reverse derivative: see the module's table."""
    own: list[Buffer] = []
    for index, buffer in enumerate(base):
        if buffer.io == "out":
            own.append(replace(buffer, role="primal", of=index, io="scratch"))
        elif buffer.io == "inout":
            own.append(replace(buffer, role="primal", of=index, discard=True))
        else:
            own.append(replace(buffer, role="primal", of=index))
    return (*own, *shadow_buffers(base, step))


def of_module(change: Callable[[Module], Module]) -> Callable[[ArrayFunction], ArrayFunction]:
    """A pass over modules as one over array functions."""

    def changed(function: ArrayFunction) -> ArrayFunction:
        module = change(function.module)
        return function if module is function.module else replace(function, module=module)

    return changed


def through(function: ArrayFunction, *passes: Callable[[ArrayFunction], ArrayFunction]) -> ArrayFunction:
    """The array function after passes in turn; itself where none of them had anything to do. What lies between is taken
    apart."""
    result = function
    for change in passes:
        after = change(result)
        if after.module is not result.module and result.module is not function.module:
            take_apart(result.module, after.module)
        result = after
    return result


def is_linear(buffer: Buffer, step: Step) -> bool:
    """Whether a buffer of a derivative is one of the tangents or cotangents that its last step has brought."""
    return buffer.role == ("tangent" if isinstance(step, Jvp) else "shadow")


def wide_buffers(buffers: tuple[Buffer, ...], step: Step) -> tuple[Buffer, ...]:
    """The buffers of a derivative for `step.lanes` directions at once, of those for one."""
    return tuple(replace(b, shape=(*b.shape, step.lanes), lanes=True) if is_linear(b, step) else b for b in buffers)
