"""What decides, besides a kernel, what becomes of it: this machine, and the sources of this package."""

from __future__ import annotations

from functools import cache

from jax_enzyme.cache import digest
from jax_enzyme.codegen.host import host
from jax_enzyme.codegen.pipelines import long_compiler
from jax_enzyme.codegen.vector_math import vector_library
from jax_enzyme.own_sources import own_digest


@cache
def environment() -> str:
    """What else decides what the same inputs compile to: this machine, and this package."""
    return digest(host().fingerprint, long_compiler(), vector_library(), own_digest())
