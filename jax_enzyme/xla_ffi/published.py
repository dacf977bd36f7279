"""Functions that the handlers know: built here, or rebuilt from the recipe that a stored program carries."""

from __future__ import annotations

from functools import cache

from jax_enzyme.xla_ffi import _ext
from jax_enzyme.xla_ffi.backend import Built
from jax_enzyme.xla_ffi.function import Function
from jax_enzyme.xla_ffi.recipe import content_key, decode
from jax_enzyme.xla_ffi.registration import register


def publish(function: Function) -> str:
    """Builds a function, makes it known to the handlers, and returns its key (`recipe.content_key`)."""
    return _published(function)[0]


def rebuild(recipe: str) -> int:
    """Builds what a recipe describes and returns its address. The extension calls this for a stored program."""
    return _rebuilt(recipe).address


# Both caches keep machine code for the life of the process: XLA may hold an executable that calls it for as long.


@cache
def _published(function: Function) -> tuple[str, Built]:
    register()
    key = content_key(function)
    built = function.build()
    _ext.publish(key, built.address)
    return key, built


@cache
def _rebuilt(recipe: str) -> Built:
    return decode(recipe).build()
