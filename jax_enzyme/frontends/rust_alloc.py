"""Functions of Rust's crate `alloc` that rustc does not compile with a kernel: `String::clone`, how a `Vec<u8>` grows.

What is generic is compiled with what uses it. The rest of the crate, and instances that it has itself, is in its
library: machine code, and beside it the bitcode from which rustc optimises when it links (`-C lto`). Their bodies come
from that, so that the engine meets ordinary moves of memory. What never returns stays a call, which is a panic with its
place, and so does what makes text, which has no derivative. A kernel's panics end it: what would run while one passes
goes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from jax_enzyme.cache import DiskCache, digest
from jax_enzyme.classes import dataclass
from jax_enzyme.errors import CompileError
from jax_enzyme.frontends.llvm import read_together
from jax_enzyme.frontends.objects import read_archive
from jax_enzyme.frontends.rustc import library_folder
from jax_enzyme.frontends.source import Source
from jax_enzyme.ir import linking
from jax_enzyme.ir.inlining import expanded_attributes
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.passes import run
from jax_enzyme.ir.reader import parse
from jax_enzyme.rules.text import handles_text
from jax_enzyme.transform.withheld import drop_body

_FORMAT = "1"
"""Changes whenever the text of the library does for a reason that is not in the crate."""
_OF_ALLOC = re.compile(r"_R\w*5alloc")


@dataclass(frozen=True)
class _Library:
    functions: frozenset[str]
    text: str


def is_asked_for(declared: Iterable[str]) -> bool:
    """Whether the crate has bodies for some of these functions."""
    asked = {name for name in declared if _OF_ALLOC.match(name)}
    return bool(asked) and not asked.isdisjoint(_library().functions)


def text() -> str:
    """The crate as `ir.linking.link` takes libraries; empty where it is not installed, or cannot be read."""
    return _library().text


@cache
def _library() -> _Library:
    folder = library_folder()
    found = [] if folder is None else sorted(folder.glob("liballoc-*.rlib"))
    try:
        sources = read_archive(found[0]) if found else []
    except (CompileError, OSError):
        sources = []
    if len(sources) != 1:
        return _Library(frozenset(), "")
    caches, key = DiskCache.named("rust-alloc"), digest(_FORMAT, sources[0].contents)
    entry = caches.get(key)
    if entry is None:
        entry = _made(sources[0]).encode()
        caches.put(key, entry)
    names, _, rest = entry.decode().partition("\n")
    return _Library(frozenset(names.split()), rest)


def _made(source: Source) -> str:
    """The names of the functions that have bodies on one line, and what is linked on those behind it."""
    (read,) = read_together([(source, ())])
    if isinstance(read, CompileError):
        return "\n"
    module = parse(read)
    for function in module.functions.values():
        if function.blocks and (_never_returns(module, function.name) or handles_text(function.name)):
            drop_body(function)
    module = run(module, ["lower-invoke", "simplifycfg", "globaldce"])
    names = [f.name for f in module.functions.values() if f.blocks and _OF_ALLOC.match(f.name)]
    return f"{' '.join(names)}\n{linking.linkable(module)}"


def _never_returns(module: Module, name: str) -> bool:
    return "noreturn" in expanded_attributes(module, module.functions[name].attributes)
