"""Implementations of one function for several platforms: which may be joined."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Protocol, TypeVar

from jax_enzyme.errors import SignatureError
from jax_enzyme.frontends import Program
from jax_enzyme.signature import RETURN, Signature
from jax_enzyme.xla_ffi.backend import PLATFORMS, platforms_of

_ALIASES = {"gpu": "cuda"}


class Joinable(Protocol):
    """A kernel, as far as it matters here."""

    @property
    def program(self) -> Program: ...

    @property
    def signature(self) -> Signature: ...


K = TypeVar("K", bound=Joinable)


def joined(
    kernel: K, others: Iterable[tuple[str, K]], platform: str, other: K, running: Mapping[str, K]
) -> tuple[tuple[str, K], ...]:
    """The implementations beside a kernel's own: `others`, and what `other` is `running` on a platform. SignatureError
    where they are not implementations of one function, or one of them would never run."""
    name = _ALIASES.get(platform, platform)
    if name not in PLATFORMS:
        raise SignatureError(f"there is no platform {platform!r}", None, f"platforms: {', '.join(PLATFORMS)}, gpu")
    runs = running.get(name)
    if runs is None:
        raise SignatureError(
            f"`{other.program.symbol}` has no code for {name}: it is written in {other.program.lang}",
            other.program.source_name,
            "a kernel for a GPU is written in CUDA" if name == "cuda" else None,
        )
    _check_same(kernel.signature, other.signature)
    every = {**dict(others), name: runs}
    if set(platforms_of(kernel.program, kernel.signature)) <= set(every):
        raise SignatureError(
            f"`{kernel.program.symbol}` would run nowhere: {', '.join(sorted(every))} run other implementations",
            kernel.program.source_name,
            f"start from the other one: other.on({platforms_of(kernel.program, kernel.signature)[0]!r}, kernel)",
        )
    return tuple(sorted(every.items()))


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
    out = [replace(p, name=p.name.replace(RETURN, "the return value", 1)) for p in signature.returned]
    return [((p.name, p.dtype, p.direction, p.dims or ()), str(p)) for p in (*own, *out)]


def _both(mine: Signature, theirs: Signature) -> str:
    return f"{mine}\n{theirs}"
