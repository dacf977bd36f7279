"""Says of comparisons with exact values what they hide: one warning for a kernel, which names the lines."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from jax_enzyme.cache import digest
from jax_enzyme.codegen.callers import callers
from jax_enzyme.codegen.memo import Memo
from jax_enzyme.errors import ShortcutWarning

if TYPE_CHECKING:
    from jax_enzyme.ad.shortcuts import ExactComparison

_REMEDY = (
    "If the kernel is smooth there, write it without the comparison, or give the derivative yourself (je.rule for a "
    "function that the kernel calls, jax.custom_jvp around the kernel); if it is a derivative of a derivative with "
    "respect to something else, differentiate with respect to both at once. If it is as you want it: "
    'warnings.filterwarnings("ignore", category=je.ShortcutWarning)'
)

_warned: Memo[None] = Memo(4096)


def warn(kernel: str, name: str, source: str, comparisons: Iterable[ExactComparison]) -> None:
    """One warning that names the comparisons of a derivative that are no proved shortcuts. `kernel` is the key of the
    kernel, `name` its name, and `source` that of its source; what has been warned of before, in this process, is left
    out."""
    places = dict.fromkeys(c.place or f"an unknown line of {source}" for c in comparisons if not c.proved)
    new = [place for place in places if not _warned.has(_key(kernel, place))]
    if not new:
        return
    _say(name, new)  # may raise, where warnings are errors
    for place in new:
        _warned.get(_key(kernel, place), lambda: None)


def _key(kernel: str, place: str) -> str:
    return digest(kernel, place)


def _say(name: str, places: Sequence[str]) -> None:
    warnings.warn(
        f"kernel `{name}` compares numbers that vary with exact values at {', '.join(places)}. Where they are equal, "
        "its derivatives are those of the side that is taken there: it is not proved that the other side does the same "
        f"there, or it is what only a derivative of a derivative varies, and its derivative may be missed. {_REMEDY}",
        ShortcutWarning,
        stacklevel=callers(),
    )


def to_bytes(comparisons: Sequence[ExactComparison]) -> bytes:
    return json.dumps([asdict(c) for c in comparisons]).encode()


def from_bytes(data: bytes) -> tuple[ExactComparison, ...]:
    rows = json.loads(data)
    if not rows:
        return ()  # without the engine
    from jax_enzyme.ad.shortcuts import ExactComparison

    return tuple(ExactComparison(**row) for row in rows)
