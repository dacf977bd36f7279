"""Registers the handlers with XLA. Imports as little as it can: JAX calls it in every process that makes a client."""

from __future__ import annotations

from functools import cache

import jax

from jax_enzyme.xla_ffi import _ext

CPU_TARGET = "jax_enzyme_cpu"
CUDA_TARGET = "jax_enzyme_cuda"
COUNTED = "_counted"
"""Behind a target's name: the one that counts iterations first."""


@cache
def register() -> None:
    """Makes the handlers known to XLA. Needs no client: where there is none yet, JAX keeps them for the first."""
    jax.ffi.register_ffi_target(CPU_TARGET, _ext.cpu_handlers(), platform="cpu")
    for counts, name in ((False, CUDA_TARGET), (True, CUDA_TARGET + COUNTED)):
        jax.ffi.register_ffi_target(name, _ext.gpu_handlers(counts), platform="CUDA")
        jax.ffi.register_ffi_target(name, _ext.gpu_handlers(counts, amd=True), platform="ROCM")
