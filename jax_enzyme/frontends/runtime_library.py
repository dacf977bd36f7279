"""Bodies for what compilers leave as calls into run-time libraries whose source the engine cannot see.

The folder `runtime` holds our own sources of such functions, in C and C++. Those that a program calls and does not
define are compiled by zig's clang, once, and linked into the program, so that the engine meets ordinary loops. Rust
has bodies of its own (`frontends.rust_alloc`). They carry no debug information: whatever happens in them is told at the
line of the user's source that called them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib import resources

from jax_enzyme.cache import DiskCache, digest
from jax_enzyme.frontends import rust_alloc, toolchain
from jax_enzyme.frontends.fortran_classes import knows_types, with_known_types
from jax_enzyme.frontends.mpi_objects import makes_objects, without_objects
from jax_enzyme.frontends.mpi_pairs import reduces_pairs, without_pairs
from jax_enzyme.frontends.source import Source
from jax_enzyme.ir import linking
from jax_enzyme.ir.passes import inline_everything
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.writer import to_text

_FORMAT = "3"
"""Changes whenever linking would give another module for a reason that is not in the key."""

_COMMAND = (
    "c++", "-x", "c++",
    "-std=c++20", "-mcpu=baseline", "-O2", "-fno-exceptions",
    # Each function by itself: half of the work of every kernel that inlines them, done once.
    "-S", "-emit-llvm", "-fno-inline", "-fno-vectorize", "-fno-slp-vectorize", "-fno-unroll-loops", "-g0",
    # The caller's memory has types of its own language, mostly.
    "-fno-strict-aliasing", "-fno-math-errno", "-fno-sanitize=all", "-fno-stack-protector", "-fomit-frame-pointer",
    "-fno-color-diagnostics", "-w",
    "{flags}", "{source}", "-o", "{output}",
)  # fmt: skip
_DECLARED = re.compile(r'^declare [^@\n]*@(?:"([^"]*)"|([-\w$.]+))\(', re.M)
_PROVIDES = re.compile(r"^// provides: (.*)$", re.M)
_OWN_FLAGS = re.compile(r"^// flags: (.*)$", re.M)
LARGE = 200_000
"""Characters of a module from which on it pays to leave out what a kernel does not need."""

_MPI_OF_FORTRAN = "mpi_fortran.cpp"
_RUST = "alloc"
"""A crate of Rust's own, whose source is not ours."""
_LAST = frozenset({"numba_no_destructors.cpp"})
_INCLUDE = re.compile(r'^#include "(\w+\.h)"\n', re.M)


def complete(ir: str, *roots: str, reduced: bool = False) -> str:
    """The module with a body for each function that it declares and a library of ours defines, for these functions.
    What they have no use for is left out, where that is not done yet (`reduced`); a small module that needs nothing
    stays as it is."""
    if "@MPI_" in ir or "@mpi_" in ir:
        ir = _with_plain_mpi(ir, roots)
    if (reduced or len(ir) < LARGE) and not _needed(ir, frozenset()):
        return ir
    cache = DiskCache.named("completed")
    key = digest(_FORMAT, ir, " ".join(roots), toolchain.zig().version, *_sources().values())
    entry = cache.get(key)
    if entry is not None:
        return entry.decode()
    linked: frozenset[str] = frozenset()
    ir = ir if reduced else linking.reachable(ir, roots)
    while needed := _needed(ir, linked):
        ir = linking.link(ir, [_compiled(name) for name in needed])
        linked = linked.union(needed)
    if knows_types(ir):
        ir = with_known_types(ir)
    ir = toolchain.portable(ir)
    cache.put(key, ir.encode())
    return ir


def _with_plain_mpi(ir: str, roots: Sequence[str]) -> str:
    """The module without those objects of MPI's that can be said without them."""
    if _asks_mpi_in_fortran(ir):
        called = parse(linking.link(linking.reachable(ir, roots), [_compiled(_MPI_OF_FORTRAN)]))
        ir = to_text(inline_everything(called, roots, ["sroa", "instcombine", "simplifycfg"]))
    if reduces_pairs(ir):
        ir = without_pairs(linking.reachable(ir, roots))
    return without_objects(linking.reachable(ir, roots)) if makes_objects(ir) else ir


def _asks_mpi_in_fortran(ir: str) -> bool:
    """Whether a module makes requests, datatypes or operations of MPI as Fortran does, packs or buffers messages, or
    reduces pairs. What they are of is known when it is said by value, as C says it."""
    makes = "type_ op_create_ alltoallw_ pack_ unpack_ bsend_ send_init_ ssend_init_ rsend_init_ recv_init_".split()
    return any(f"@mpi_{name}" in ir for name in makes) or reduces_pairs(ir)


def provides(name: str) -> bool:
    """Whether a library of ours defines a function."""
    return any(pattern.fullmatch(name) for pattern in _libraries().values())


def _needed(ir: str, linked: frozenset[str]) -> list[str]:
    """The libraries that define what a module declares, less those that have been linked."""
    names = [quoted or plain for quoted, plain in _DECLARED.findall(ir)]
    declared = " ".join(names)
    found = [name for name, pattern in _libraries().items() if name not in linked and pattern.search(declared)]
    if _RUST not in linked and rust_alloc.is_asked_for(names):
        found.append(_RUST)
    # A default for what no other library defines.
    return [name for name in found if name not in _LAST] or found


def _compiled(name: str) -> str:
    if name == _RUST:
        return rust_alloc.text()
    source = Source("c++", name, _sources()[name].encode())
    recipe = toolchain.Recipe(toolchain.zig(), _COMMAND, lambda ir: linking.linkable(parse(ir)), "linkable")
    flags = " ".join(_OWN_FLAGS.findall(_sources()[name])).split()
    return toolchain.compile_cached(source, recipe, flags)


@cache
def _libraries() -> dict[str, re.Pattern[str]]:
    """By the name of each source, what matches the functions that it defines."""
    found: dict[str, re.Pattern[str]] = {}
    for name, text in _sources().items():
        provided = " ".join(_PROVIDES.findall(text)).split()
        found[name] = re.compile(rf"(?:^| )(?:{'|'.join(provided)})(?= |$)")
    return found


@cache
def _sources() -> dict[str, str]:
    """The sources by name, with what they include put in."""
    folder = resources.files("jax_enzyme.frontends").joinpath("runtime")
    texts = {file.name: file.read_text(encoding="utf-8") for file in folder.iterdir() if file.is_file()}

    def expanded(text: str) -> str:
        """With each header where it is first named."""
        included: set[str] = set()

        def contents(match: re.Match[str]) -> str:
            if match[1] in included:
                return ""
            included.add(match[1])
            return _INCLUDE.sub(contents, texts[match[1]].replace("#pragma once\n", ""))

        return _INCLUDE.sub(contents, text)

    return {name: expanded(text) for name, text in sorted(texts.items()) if name.endswith(".cpp")}
