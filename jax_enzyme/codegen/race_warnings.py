"""Says of a CUDA kernel, or of those that a host function launches, which accesses of shared memory are not proved
apart: one warning, which names the lines."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

from jax_enzyme.cache import DiskCache, digest
from jax_enzyme.codegen.callers import callers
from jax_enzyme.codegen.memo import Memo
from jax_enzyme.codegen.programs import shared_overlaps, specialisation_key
from jax_enzyme.errors import JaxEnzymeError, RaceWarning
from jax_enzyme.frontends.program import Program
from jax_enzyme.frontends.spelling import spelling
from jax_enzyme.signature import Binding, Signature

if TYPE_CHECKING:
    from jax_enzyme.transform.cuda.overlaps import Overlap

_SHOWN = 3

_found: Memo[str] = Memo(4096)
_said: Memo[None] = Memo(4096)


def warn(program: Program, signature: Signature, binding: Binding, version: Callable[[], str]) -> None:
    """One warning for a kernel in this process. `version` says which version of us looks: what was found stays on disk.
    A kernel that does not run on the CPU, where it is looked at, is not looked at."""
    if (program.launch is None and not program.device) or _said.has(program.key):
        return
    key = specialisation_key(program, signature, binding)
    found = _found.get(key, lambda: _stored(digest("overlaps", key, version()), program, signature, binding))
    if found:
        _say(program, found)  # may raise, where warnings are errors
        _said.get(program.key, lambda: None)


def _stored(key: str, program: Program, signature: Signature, binding: Binding) -> str:
    disk = DiskCache.named("gpu")
    data = disk.get(key)
    if data is None:
        data = _look(program, signature, binding).encode()
        disk.put(key, data)
    return data.decode()


def _look(program: Program, signature: Signature, binding: Binding) -> str:
    try:
        found = shared_overlaps(program, signature, binding)
    except JaxEnzymeError:
        return ""
    pairs = [f"{pair}{_kernel(program, pair)}" for pair in found]
    more = [f"{len(pairs) - _SHOWN} more"] if len(pairs) > _SHOWN else []
    return "; ".join((*pairs[:_SHOWN], *more))


def _kernel(program: Program, pair: Overlap) -> str:
    return f" (kernel `{spelling(pair.kernel).name}`)" if program.device else ""


def _say(program: Program, pairs: str) -> None:
    name = spelling(program.symbol).name
    where = f"kernels that `{name}` launches" if program.device else f"kernel `{name}`"
    remedy = "je.check_races(kernel, args) runs it and says whether they race"
    if program.device:
        remedy = "je.check_races(kernel, args) says whether they race, of the kernel itself, with its grid= and block="
    warnings.warn(
        f"in {where} different threads touch shared memory between the same two barriers, and it is not proved "
        f"that they stay apart: {pairs}. If they do not, the result is that of one order on the CPU and of any order "
        f"on a GPU. {remedy}. If all is as you "
        'want it: warnings.filterwarnings("ignore", category=je.RaceWarning)',
        RaceWarning,
        stacklevel=callers(),
    )
