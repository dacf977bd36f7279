"""Registers the handler with XLA, once per process and at the first use, and makes functions known to it."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax

from jax_enzyme.cache import digest
from jax_enzyme.xla_ffi import _ext
from jax_enzyme.xla_ffi.backend import Built, default_backend
from jax_enzyme.xla_ffi.function import Function
from jax_enzyme.xla_ffi.recipe import decode, encode

CPU_TARGET = "jax_enzyme_cpu"


@cache
def register() -> None:
    """Makes the handler known to XLA."""
    jax.devices("cpu")  # a client that is made later would meet the handler before the type that it needs
    state: Any = _ext.cpu_state_type()
    jax.ffi.register_ffi_type("jax_enzyme_cpu_state", state, platform="cpu")
    jax.ffi.register_ffi_target(CPU_TARGET, _ext.cpu_handlers(), platform="cpu")


def publish(function: Function) -> str:
    """Builds a function, makes it known to the handler, and returns its key: a digest of its recipe, so that it is the
    same on every machine and for every version of this package that can read the recipe."""
    return _published(function)[0]


def rebuild(recipe: str) -> int:
    """Builds what a recipe describes and returns its address. The extension calls this for a stored program."""
    return _rebuilt(recipe).address


# Both caches keep machine code for the life of the process: XLA may hold an executable that calls it for as long.


@cache
def _published(function: Function) -> tuple[str, Built]:
    register()
    key = digest(encode(function))
    built = function.build()
    _ext.publish(key, built.address)
    return key, built


@cache
def _rebuilt(recipe: str) -> Built:
    return decode(recipe, default_backend()).build()
