"""Integers and pointers that all lanes of a warp agree on, whatever block they are in.

    value[t] = common + own[t]      for a thread t of a block: `common` is one number per warp, which need not be known
                                    but is a multiple of `step`, a power of two, or 0 where `step` is 0

    blockIdx.x * 64 + threadIdx.x           step 64, own 0 ... 63
    (blockIdx.x * 64 + threadIdx.x) / 32    step 2, own 0 ... 0, 1 ... 1
    ... < 288                               the same for all lanes, as 288 is a multiple of 32

Where 0 <= own < step, the numbers of a warp lie between two multiples of `step`, so that no overflow parts them, and a
comparison does where its limit, counted from the multiple below, lies among `own`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from jax_enzyme.ad.device.lanes import Lanes
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import GlobalVariable
from jax_enzyme.ir.values import Argument, Value
from jax_enzyme.transform.cuda.shuffles import WARP_SIZE
from jax_enzyme.transform.device.registers import REGISTER

_DEPTH = 24
"""Of what is computed by more steps lanes are not taken to agree."""
_SWAPPED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}


@dataclass(frozen=True)
class Split:
    step: int
    own: tuple[int, ...]

    @property
    def is_of_warps(self) -> bool:
        return all(v == self.own[t - t % WARP_SIZE] for t, v in enumerate(self.own))

    @property
    def is_contained(self) -> bool:
        """Whether the lanes of a warp lie between two multiples of `step`, or are known altogether."""
        return self.step == 0 or all(0 <= v < self.step for v in self.own)

    def parts(self, thread: int, limit: int) -> bool:
        """Whether some lanes of the warp that begins at a thread lie below a limit, between two multiples of `step`,
        and some do not."""
        warp = self.own[thread : thread + WARP_SIZE]
        return min(warp) < limit <= max(warp)

    @property
    def known(self) -> int | None:
        """The number that it is for all threads."""
        return self.own[0] if self.step == 0 and len(set(self.own)) == 1 else None


class Warps:
    """What lanes agree on in one function. `stable` says of a load that every thread would read the same there at any
    time."""

    def __init__(self, lanes: Lanes, stable: Callable[[I.Load], bool]) -> None:
        self._lanes = lanes
        self._stable = stable
        self._found: dict[Value, Split | None] = {}

    def agree(self, value: Value) -> bool:
        """Whether all lanes of a warp certainly have the same value."""
        found = self._split(value, _DEPTH)
        return found is not None and found.is_of_warps

    def _split(self, value: Value, depth: int) -> Split | None:
        known = self._lanes.of(value)
        if known is not None:
            return Split(0, tuple(known))
        if value not in self._found:
            self._found[value] = self._computed(value, depth) if depth else None
        return self._found[value]

    def _computed(self, value: Value, depth: int) -> Split | None:
        match value:
            case Argument() | GlobalVariable():
                return self._common()
            case I.Call():
                return self._common() if value.callee.name.startswith(f"{REGISTER}ctaid.") else None
            case I.Load() if not self._stable(value):
                return None
            case I.Load() | I.GetElementPtr() | I.Select() | I.Freeze():
                parts = [self._split(o, depth - 1) for o in value.operands]
                return self._common() if all(p is not None and p.is_of_warps for p in parts) else None
            case I.Cast() if value.opcode in ("zext", "sext", "trunc"):
                return self._cast(value, self._split(value.operands[0], depth - 1))
            case I.Compare() | I.BinaryOp():
                x, y = (self._split(o, depth - 1) for o in value.operands)
                if x is None or y is None:
                    return None
                if x.is_of_warps and y.is_of_warps and not isinstance(value, I.BinaryOp):
                    return self._common()
                return self._compared(value, x, y) if isinstance(value, I.Compare) else _combined(value, x, y)
            case _:
                return None

    def _cast(self, value: I.Cast, part: Split | None) -> Split | None:
        """Numbers of both types with room for what is known of them stay as they are."""
        if part is None:
            return None
        kinds = (value.type, value.operands[0].type)
        fits = all(isinstance(k, T.IntType) and max(part.own) < 1 << (k.bits - 1) for k in kinds)
        if fits and part.is_contained and min(part.own) >= 0:
            return part
        return self._common() if part.is_of_warps else None

    def _common(self) -> Split:
        return Split(1, (0,) * self._lanes.threads)

    def _compared(self, value: I.Compare, x: Split, y: Split) -> Split | None:
        kind = value.predicate[-2:]
        if not y.is_of_warps:
            x, y, kind = y, x, _SWAPPED[kind]
        if not y.is_of_warps or not x.is_contained or not x.step or kind in ("eq", "ne"):
            return None
        if y.step % x.step:
            return None
        # `x <= c` is `x < c + 1`.
        beyond = 1 if kind in ("le", "gt") else 0
        parts = any(x.parts(t, (v + beyond) % x.step) for t, v in enumerate(y.own) if t % WARP_SIZE == 0)
        return None if parts else self._common()


def _combined(value: I.BinaryOp, x: Split, y: Split) -> Split | None:
    opcode = "add" if value.opcode == "or" and "disjoint" in value.flags else value.opcode
    known = y.known
    match opcode:
        case "add":
            return Split(math.gcd(x.step, y.step), tuple(a + b for a, b in zip(x.own, y.own, strict=True)))
        case "sub":
            return Split(math.gcd(x.step, y.step), tuple(a - b for a, b in zip(x.own, y.own, strict=True)))
        case "mul" if known is not None:
            return _times(x, known)
        case "mul" if x.known is not None:
            return _times(y, x.known)
        case "shl" if known is not None and 0 <= known < 32:
            return _times(x, 1 << known)
        case "lshr" | "ashr" if known is not None and 0 <= known < 32:
            return _divided(x, 1 << known)
        case "udiv" if known is not None and known > 0 and known & (known - 1) == 0:
            return _divided(x, known)
        case "and" if known is not None and known & (known + 1) == 0 and x.step % (known + 1) == 0:
            return Split(0, tuple(v & known for v in x.own))
        case "and" if known is not None and known < 0 and -known & (-known - 1) == 0 and x.step % -known == 0:
            return Split(-known if x.step else 0, tuple(v & known for v in x.own))
        case _:
            return Split(1, (0,) * len(x.own)) if x.is_of_warps and y.is_of_warps else None


def _times(x: Split, factor: int) -> Split:
    return Split(x.step * (factor & -factor), tuple(v * factor for v in x.own))


def _divided(x: Split, divisor: int) -> Split | None:
    if x.step % divisor == 0 and x.is_contained and all(v >= 0 for v in x.own):
        return Split(x.step // divisor, tuple(v // divisor for v in x.own))
    return Split(1, (0,) * len(x.own)) if x.is_of_warps else None
