"""Implementations of one function for several platforms: which may be joined, and what each runs on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jax_enzyme.errors import SignatureError
from jax_enzyme.signature import Param, Signature
from jax_enzyme.xla_ffi.backend import PLATFORMS, platforms_of

if TYPE_CHECKING:
    from jax_enzyme.primitives.kernels import Kernel

Others = tuple[tuple[str, "Kernel"], ...]

_ALIASES = {"gpu": "cuda"}


def joined(kernel: Kernel, platform: str, other: object) -> Others:
    """The implementations beside a kernel's own, with `other` for a platform. SignatureError where they are not
    implementations of one function, or one of them would never run."""
    from jax_enzyme.primitives.kernels import Kernel

    name = _ALIASES.get(platform, platform)
    if name not in PLATFORMS:
        raise SignatureError(f"there is no platform {platform!r}", None, f"platforms: {', '.join(PLATFORMS)}, gpu")
    if not isinstance(other, Kernel):
        raise SignatureError(f"`on` joins kernels, and this is a {type(other).__name__}", None, "make it by je.kernel")
    runs = other.implementations.get(name)
    if runs is None:
        raise SignatureError(
            f"`{other.__name__}` has no code for {name}: it is written in {other.program.lang}",
            other.program.source_name,
            "a kernel for a GPU is written in CUDA" if name == "cuda" else None,
        )
    _check_same(kernel.signature, other.signature)
    others = {**dict(kernel.others), name: runs}
    if set(platforms_of(kernel.program)) <= set(others):
        raise SignatureError(
            f"`{kernel.__name__}` would run nowhere: {', '.join(sorted(others))} run other implementations",
            kernel.program.source_name,
            f"start from the other one: other.on({platforms_of(kernel.program)[0]!r}, kernel)",
        )
    return tuple(sorted(others.items()))


def implementations(kernel: Kernel, alone: Kernel) -> dict[str, Kernel]:
    """What a kernel runs on each platform. `alone` is the kernel without others."""
    return {**dict.fromkeys(platforms_of(kernel.program), alone), **dict(kernel.others)}


def _check_same(mine: Signature, theirs: Signature) -> None:
    for ours, other in zip(_buffers(mine), _buffers(theirs), strict=False):
        if ours != other:
            raise SignatureError(f"the implementations differ: `{ours[1]}` against `{other[1]}`", _both(mine, theirs))
    missing = _buffers(mine)[len(_buffers(theirs)) :] + _buffers(theirs)[len(_buffers(mine)) :]
    if missing:
        raise SignatureError(f"only one of the implementations has `{missing[0][1]}`", _both(mine, theirs))
    if mine.shape_names != theirs.shape_names or mine.order != theirs.order:
        raise SignatureError("the implementations differ in their dimensions or their order", _both(mine, theirs))


def _buffers(signature: Signature) -> list[tuple[object, str]]:
    """What two implementations must have in common, and how to show it: all that is no dimension. A scalar may be
    passed by value or by reference, and a status may be returned or not."""
    own = [p for p in signature.params if p.name not in signature.shape_names]
    out = [] if signature.result in (None, "status") else [Param("the return value", signature.result or "", "out", ())]
    return [((p.name, p.dtype, p.direction, p.dims or ()), str(p)) for p in (*own, *out)]


def _both(mine: Signature, theirs: Signature) -> str:
    return f"{mine}\n{theirs}"
