"""Objects become callable addresses: one LLJIT per process.

Code is never unloaded. A compiled XLA executable keeps the raw address of every kernel in it, and nothing tells us when
the last of them is gone; a kernel takes some tens of kilobytes, and the same object is linked only once.
"""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import threading
from functools import cache

import llvmlite.binding as llvm

from jax_enzyme.codegen.elf import undefined_symbols
from jax_enzyme.codegen.host import host, target_machine
from jax_enzyme.codegen.symbols import addresses
from jax_enzyme.errors import LoweringError


class Jit:
    """Links objects into this process. Safe to use from several threads."""

    def __init__(self) -> None:
        host()
        self._machine = target_machine()
        self._engine = llvm.create_lljit_compiler(self._machine, use_jit_link=True, suppress_errors=True)
        self._lock = threading.Lock()
        self._names = itertools.count()
        self._linked: dict[tuple[bytes, str], int] = {}

    def address(self, code: bytes, symbol: str, initialiser: str | None = None) -> int:
        """The address of a symbol of an object, which is linked, and initialised, unless an equal one was.

        Every symbol that the object needs is looked up first: a missing one is a LoweringError that names it.
        """
        key = (hashlib.sha256(code).digest(), symbol)
        with self._lock:
            if key not in self._linked:
                self._linked[key] = self._link(code, symbol, initialiser)
            return self._linked[key]

    def _link(self, code: bytes, symbol: str, initialiser: str | None) -> int:
        library = llvm.JITLibraryBuilder()
        library.add_object_img(code)
        library.export_symbol(symbol)
        if initialiser is not None:
            library.export_symbol(initialiser)
        if host().is_elf:
            for name, address in addresses(undefined_symbols(code)).items():
                library.import_symbol(name, address)
        else:
            library.add_current_process()
        try:
            tracker = library.link(self._engine, f"je.{next(self._names)}")
        except RuntimeError as error:
            raise LoweringError(
                f"LLVM could not link the kernel into this process: {error}",
                remedy="this is a defect of jax_enzyme: please report it with the source of the kernel",
            ) from error
        tracker.detach()
        if initialiser is not None:
            ctypes.CFUNCTYPE(None)(tracker[initialiser])()
        return tracker[symbol]


_starting = threading.Lock()


def jit() -> Jit:
    """The linker of this process."""
    with _starting:
        return _only()


@cache
def _only() -> Jit:
    return Jit()
