"""Whether a kernel is what its signature says: found when it is made, not when it is first called."""

from __future__ import annotations

from jax_enzyme.cache import DiskCache, digest
from jax_enzyme.codegen.environment import environment
from jax_enzyme.codegen.reading import looked_at
from jax_enzyme.codegen.selection import check_selected
from jax_enzyme.frontends.program import Program
from jax_enzyme.signature import Signature
from jax_enzyme.transform.bind import check_signature


def check_fits(program: Program, signature: Signature) -> None:
    """SignatureError where they do not fit, CompileError where the program names instructions that this processor does
    not have. What did fit is remembered on disk, so that the program need not be read again for that."""
    disk = DiskCache.named("fits")
    key = digest(environment(), program.key, str(signature), signature.order)
    if disk.get(key) is None:
        with looked_at(program) as module:
            if program.launch is None:
                check_selected(module)
            check_signature(module, program.symbol, signature)
        disk.put(key, b"1")
