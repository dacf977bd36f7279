"""Functions that the handlers know: built here, or rebuilt from the recipe that a stored program carries.

Machine code stays as long as an executable of XLA's calls it, or Python has it; what was published last stays a while
besides, until XLA makes its executable. Whatever is gone when it is asked for is rebuilt.
"""

from __future__ import annotations

from functools import lru_cache

from jax_enzyme.errors import LoweringError
from jax_enzyme.xla_ffi import _ext
from jax_enzyme.xla_ffi.function import Function
from jax_enzyme.xla_ffi.recipe import content_key, decode, key_of
from jax_enzyme.xla_ffi.registration import register


def publish(function: Function) -> str:
    """Builds a function, makes it known to the handlers, and returns its key (`recipe.content_key`)."""
    return _published(function)[0]


def rebuild(key: str, recipe: str) -> _ext.Code:
    """Builds what a recipe describes and makes it known. The extension calls this for a stored program. LoweringError
    unless this user, or somebody trusted, made the recipe and it is the one with this key."""
    if key_of(recipe) != key:
        raise LoweringError(
            "a stored program has the recipe of one kernel under the key of another", remedy="export it again"
        )
    built = decode(recipe).build()
    return _ext.publish(key, built.address, built)


@lru_cache(maxsize=64)
def _published(function: Function) -> tuple[str, _ext.Code]:
    register()
    key = content_key(function)
    built = function.build()
    return key, _ext.publish(key, built.address, built)
