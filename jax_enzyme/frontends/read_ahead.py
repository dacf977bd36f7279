"""Headers that clang reads once for all sources: it keeps what it knows after them, and starts from there.

    before    -include all.h                                       300 of the 370 ms that a kernel of ten lines takes
    after     -Xclang -include-pch -Xclang ahead.headers           10 ms

Code is the same in both ways; debug information has no declarations (`using std::sin`) that nothing asks for. Times of
files stay out of it: clang knows a header that it read by its name and size, or would read one that was installed again
a second time. Whether headers are what they were is seen as for all else that the cache keeps.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from jax_enzyme.cache import DiskCache
from jax_enzyme.errors import CompileError
from jax_enzyme.frontends.source import Source
from jax_enzyme.frontends.toolchain import CACHE, Ahead, Recipe, Tool, compile_beside, listed

_STATE, _LIST = "ahead.headers", "output.headers"
_WRITE = ("-Xclang", "-emit-pch", "-Xclang", "-fno-pch-timestamp")
_READ = ("-Xclang", "-include-pch", "-Xclang", f"{{folder}}/{_STATE}", "-Xclang", "-fno-validate-pch")


def included(header: str) -> Ahead:
    """A header in front of a source, which is read for each."""
    return Ahead(("-include", header), {}, ())


def read_ahead(tool: Tool, words: Sequence[str], header: str, lang: str) -> Ahead:
    """What stands for a header in front of a source that the words of a recipe compile, without flags of a user."""
    if not DiskCache.named(CACHE).is_writable():
        return included(header)
    ahead = included(header)
    stands_for = {"{ahead}": ahead.words, "{flags}": (), "{output}": (f"{{folder}}/{_STATE}",)}
    own = [part for word in words for part in stands_for.get(word, (word,))]
    try:
        made = compile_beside(_nothing(lang, header), Recipe(tool, (*own, *_WRITE), keeps=".headers"), (), {}, ())[1]
    except CompileError:  # told of the user's source
        return ahead
    return Ahead(_READ, {_STATE: made[_STATE]}, listed(made[_LIST].decode()))


def _nothing(lang: str, name: str) -> Source:
    """A source that is still there when clang tells of an error: it opens it where what it tells is about headers."""
    return Source(lang, name, path=Path(os.devnull))
