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

_READ = "-"
"""Between a content key and each number of a buffer."""


def publish(function: Function) -> tuple[str, frozenset[int]]:
    """Builds a function and makes it known to the handlers. Returns its key, `recipe.content_key` and the discarded
    `inout` buffers that the code only reads; and these."""
    key, read, _ = _published(function)
    return key, read


def rebuild(key: str, recipe: str) -> _ext.Code:
    """Builds what a recipe describes and makes it known. The extension calls this for a stored program. LoweringError
    unless this user, or somebody trusted, made the recipe, it is the one with this key, and the code writes to nothing
    that the program passes for reading."""
    content, *read = key.split(_READ)
    if key_of(recipe) != content:
        raise LoweringError(
            "a stored program has the recipe of one kernel under the key of another", remedy="export it again"
        )
    function = decode(recipe)
    built = function.build()
    if not built.read.issuperset(map(int, read)):
        raise LoweringError(
            f"a stored program has no copies of the cotangents that {function!r} writes to when it is built here",
            function.base.program.source_name,
            "export it again on this machine",
        )
    return _ext.publish(key, built.address, built)


@lru_cache(maxsize=64)
def _published(function: Function) -> tuple[str, frozenset[int], _ext.Code]:
    register()
    built = function.build()
    key = _READ.join((content_key(function), *map(str, sorted(built.read))))
    return key, built.read, _ext.publish(key, built.address, built)
