"""Objects become callable addresses.

Of each object that it linked, an LLJIT keeps some 8 kB until it goes itself. So each serves a number of objects, and
goes with the last of their code.

Code goes with the last `Code` that is for it. Whoever calls an address holds one: XLA's executables do (see
`csrc/kernel_table.h`). It stays for good where something outside may keep an address in it: after constructors have
run, whose destructors wait for the end of the process, and where functions are called that nobody can say that of.
"""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import threading
from functools import cache
from weakref import WeakValueDictionary

import llvmlite.binding as llvm

from jax_enzyme.codegen import mpi
from jax_enzyme.codegen.host import host, target_machine
from jax_enzyme.codegen.mappings import require_room
from jax_enzyme.codegen.symbols import addresses, leaves_nothing
from jax_enzyme.errors import LoweringError
from jax_enzyme.frontends.elf import undefined_symbols
from jax_enzyme.frontends.shared_libraries import opened
from jax_enzyme.ir.native import gone_before


class Code:
    """An object that is linked into this process, as long as this lives. `address` is that of the symbol in it that was
    asked for."""

    def __init__(self, address: int, tracker: llvm.ResourceTracker, engine: llvm.LLJIT) -> None:
        self.address = address
        self._tracker = gone_before(engine, tracker)  # it unlinks the object when it goes
        self._engine = engine


class Jit:
    """Links objects into this process. Safe to use from several threads."""

    def __init__(self) -> None:
        host()
        self._machine = target_machine()
        self._engine: llvm.LLJIT | None = None
        self._left = 0
        self._lock = threading.Lock()
        self._names = itertools.count()
        self._linked: WeakValueDictionary[tuple[bytes, str, tuple[str, ...]], Code] = WeakValueDictionary()
        self._permanent: list[Code] = []

    def code(self, code: bytes, symbol: str, initialiser: str | None = None, libraries: tuple[str, ...] = ()) -> Code:
        """An object with a symbol of it, linked, and initialised, unless an equal one was.

        Every symbol that the object needs is looked up first, in the shared libraries of these names before the
        process: a missing one is a LoweringError that names it, a missing library a CompileError.
        """
        key = (hashlib.sha256(code).digest(), symbol, libraries)
        with self._lock:
            found = self._linked.get(key)
            if found is None:
                found = self._linked[key] = self._link(code, symbol, initialiser, libraries)
            return found

    def _link(self, code: bytes, symbol: str, initialiser: str | None, libraries: tuple[str, ...]) -> Code:
        engine = self._next_engine()
        library = llvm.JITLibraryBuilder()
        library.add_object_img(code)
        library.export_symbol(symbol)
        if initialiser is not None:
            library.export_symbol(initialiser)
        needed = undefined_symbols(code) if host().is_elf else ()
        given = tuple(map(opened, libraries))
        if any(map(mpi.of_mpi, needed)) and (found := mpi.library(given)) is not None:
            mpi.start(found)
        if host().is_elf:
            for name, address in addresses(needed, given).items():
                library.import_symbol(name, address)
        else:
            library.add_current_process()
        try:
            tracker = library.link(engine, f"je.{next(self._names)}")
        except RuntimeError as error:
            raise LoweringError(
                f"LLVM could not link the kernel into this process: {error}",
                remedy="this is a defect of jax_enzyme: please report it with the source of the kernel",
            ) from error
        linked = Code(tracker[symbol], tracker, engine)
        if initialiser is not None or not host().is_elf or not leaves_nothing(needed):
            self._permanent.append(linked)
        if initialiser is not None:
            ctypes.CFUNCTYPE(None)(tracker[initialiser])()
        return linked

    def _next_engine(self) -> llvm.LLJIT:
        """The linker for one more object, which its code holds."""
        if self._engine is None or self._left == 0:
            require_room()
            self._engine = llvm.create_lljit_compiler(self._machine, use_jit_link=True, suppress_errors=True)
            self._left = _OBJECTS_EACH
        self._left -= 1
        return self._engine


_OBJECTS_EACH = 128
_starting = threading.Lock()


def jit() -> Jit:
    """The linker of this process."""
    with _starting:
        return _only()


@cache
def _only() -> Jit:
    return Jit()
