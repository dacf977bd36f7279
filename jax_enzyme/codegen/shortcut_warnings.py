"""Says of comparisons with exact values what they hide, once per kernel and place."""

from __future__ import annotations

import inspect
import json
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from jax_enzyme.ad.shortcuts import ExactComparison
from jax_enzyme.cache import digest
from jax_enzyme.codegen.memo import Memo
from jax_enzyme.errors import ShortcutWarning

_REMEDY = (
    "If the kernel is smooth there, write it without the comparison, or give the derivative yourself (je.rule for a "
    "function that the kernel calls, jax.custom_jvp around the kernel); if it is a derivative of a derivative with "
    "respect to something else, differentiate with respect to both at once. If it is as you want it: "
    'warnings.filterwarnings("ignore", category=je.ShortcutWarning)'
)
_OURS = ("jax_enzyme", "jax", "jaxlib")

_warned: Memo[None] = Memo(4096)


def warn(kernel: str, name: str, source: str, comparisons: Iterable[ExactComparison]) -> None:
    """Warns of the comparisons of a derivative that are no proved shortcuts. `kernel` is the kernel's key, `name` its
    name, and `source` that of its source; what has been warned of before, in this process, is left out."""
    for comparison in comparisons:
        if not comparison.proved:
            _warned.get(digest(kernel, repr(comparison.place)), lambda c=comparison: _say(name, source, c))


def _say(name: str, source: str, comparison: ExactComparison) -> None:
    where = comparison.place or f"an unknown line of {source}"
    warnings.warn(
        f"kernel `{name}` compares a number that varies with an exact value at {where}. Where they are equal, its "
        "derivatives are those of the side that is taken there: it is not proved that the other side does the same "
        f"there, or it is what only a derivative of a derivative varies, and its derivative may be missed. {_REMEDY}",
        ShortcutWarning,
        stacklevel=_callers(),
    )


def _callers() -> int:
    """How far up whoever wants the derivative is, for `warnings.warn` in the function that asks."""
    level, frame = 0, inspect.currentframe()
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package not in _OURS and Path(frame.f_code.co_filename).is_file():
            return level
        level, frame = level + 1, frame.f_back
    return 1


def to_bytes(comparisons: Sequence[ExactComparison]) -> bytes:
    return json.dumps([asdict(c) for c in comparisons]).encode()


def from_bytes(data: bytes) -> tuple[ExactComparison, ...]:
    return tuple(ExactComparison(**row) for row in json.loads(data))
