"""Where the functions that a kernel calls are found: the libraries that it names, this process, the run-time libraries,
SciPy's BLAS and LAPACK."""

from __future__ import annotations

import ctypes
import importlib
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache
from types import ModuleType

from jax_enzyme.codegen import mpi
from jax_enzyme.errors import LoweringError
from jax_enzyme.frontends.cpp_library import cpp_library
from jax_enzyme.frontends.fortran_runtime import fortran_library
from jax_enzyme.frontends.rustc import rust_library
from jax_enzyme.frontends.spelling import OF_THE_LINKER, spelling
from jax_enzyme.rules.effects import Effect, effect, writes_text
from jax_enzyme.rules.table import standard

# Looked through in this order, after those that the kernel names and the process itself: mathematics and its vector
# forms, what compilers call for complex and narrow arithmetic (`__muldc3`, `__truncdfhf2`), C++'s run time.
LIBRARIES = ("libm.so.6", "libmvec.so.1", "libgcc_s.so.1", "libstdc++.so.6")
# Each has a table of C function pointers; `dgemm_` in a kernel is `dgemm` there.
CAPSULES = ("scipy.linalg.cython_blas", "scipy.linalg.cython_lapack")
# Rust's older mangling: C++'s with a digest at the end.
_RUST = re.compile(r"^_ZN.*17h[0-9a-f]{16}E$")
_BY_OPENMP = "share loops out with directives of OpenMP, and -fopenmp among the flags (docs/parallel.md)"
# What no kernel may call, why, and what to do instead. What runs on threads of its own: a derivative would be summed by
# all of them at once, and what is known of OpenMP's functions is part of the kernel by now. What starts threads that
# nothing here knows of, of C++'s libraries, of POSIX and C11. What copies the process.
_OF_THREADS = re.compile(r"__kmpc_|__tgt_|kmp_|GOMP_|GOACC_|omp_(get|set|in|is|init|destroy|unset|test|target)_")
_REFUSED = (
    (
        _OF_THREADS,
        "it was compiled for OpenMP's threads in an unknown way",
        "pass its source with -fopenmp among the flags; or compile it without, for one thread",
    ),
    (
        re.compile(r"_ZNSt(3__1)?6(thread|future)|_ZNSt3__1(15__thread_struct|17__assoc)|(pthread|thrd)_create$"),
        "it starts threads of its own",
        _BY_OPENMP,
    ),
    (re.compile(r"v?fork$"), "a copy of this process would go on in Python", f"leave it out, or {_BY_OPENMP}"),
)
# What sanitized kernels call, and what keeps memory, is part of the extension, whose symbols the process does not show.
_CHECKS, _TAPES, _EXTENSION = "je_checked_", "je_tape_", "jax_enzyme.xla_ffi._ext"
# Large blocks of memory stay with the process between calls (`csrc/kept_memory.h`).
_KEPT_MEMORY = {name: f"je_memory_{name}" for name in ("malloc", "calloc", "free")}
# What compilers call for arithmetic that the processor has not, and mathematics on vectors.
_ARITHMETIC = re.compile(r"^(__[a-z]+[bhsdxt][fc]([bhsdxt]f)?\d?|__(mul|div)[hsdxt]c3|_ZGV\w+|sincos[fl]?|bcmp)$")
# Data of the C++ and C run times, and what the unwinder calls.
_TABLES = re.compile(r"^(_ZTV|_ZTI|_ZTS|__gxx_personality_v0$|rust_eh_personality$|std(in|out|err)$)")
# What compilers call of their own, and the standard libraries of C++, Fortran and Rust: much of it only where a call
# fails, and gone by the time that code is made.
_OF_RUN_TIMES = re.compile(r"__|_Fortran|_Z\w*St|_ZT|_R|_ZN(4core|3std|5alloc)")
# What libc++ alone has, for all that its headers declare: these classes have no version of their own in the name.
_OF_LIBCXX = re.compile(r"St3__1|St\d+bad_(cast|any_cast|optional_access|variant_access)(?![a-z_])")
# Buffers for streams stay with them, and what runs units of Fortran's may keep the names of files.
_KEEPING_OUTPUT = re.compile(r"^(setv?buf$|_Fortran)")
EXAMPLE = 'libraries=("libname.so",)'
"""How libraries are named."""
# What Numba's functions call where Python raises, and where BLAS fails: failures of the kernel, before there is code
# (`frontends.numba`), and what no rule's body does.
_FAILURES = {"python_exception", "numba_gil_ensure", "numba_gil_release"}


def addresses(names: Iterable[str], given: Sequence[ctypes.CDLL] = ()) -> dict[str, int]:
    """The address of every name, in the libraries that are given or elsewhere; a LoweringError that lists those which
    nobody defines, or that are of threads."""
    found: dict[str, int] = {}
    missing: list[str] = []
    names = list(names)
    check_allowed(names, lambda _: None)
    for name in names:
        if name in OF_THE_LINKER:
            continue
        address = address_of(name, given)
        if address is None:
            missing.append(name)
        else:
            found[name] = address
    if missing:
        raise LoweringError(
            f"the kernel calls {_listed(missing)}, which neither its source nor this process defines",
            remedy=f"define it in the source, or name the library that has it: {EXAMPLE}",
        )
    return found


def is_refused(name: str) -> bool:
    """Whether a function is one that no kernel may call."""
    return any(pattern.match(name) for pattern, _, _ in _REFUSED)


def check_allowed(names: Collection[str], place: Callable[[str], str | None]) -> None:
    """LoweringError where functions of these names are called that no kernel may call; `place` says where."""
    for pattern, cause, remedy in _REFUSED:
        if refused := [name for name in names if pattern.match(name)]:
            where = next(filter(None, map(place, refused)), None)
            listed = _listed(str(spelling(name)) for name in refused[:3])
            raise LoweringError(f"the kernel calls {listed}: {cause}", where, remedy)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def address_of(name: str, given: Sequence[ctypes.CDLL] = ()) -> int | None:
    """The address of a function or variable by its name in object code, or None. Libraries that are given come before
    all others, but for what has a meaning of its own: a rule or an effect is that of C's function of the name."""
    if name.startswith((_CHECKS, _TAPES)) or name in _KEPT_MEMORY:
        extension = ctypes.CDLL(importlib.import_module(_EXTENSION).__file__)
        return _address(extension, _KEPT_MEMORY.get(name, name))
    if mpi.of_mpi(name):
        found = mpi.library(given)
        return _address(found, name) if found is not None else None
    if _is_of_languages(name):
        address = _address_elsewhere(name)
        return _address_in(given, name) if address is None else address
    address = _address_in(given, name)
    return _address_elsewhere(name) if address is None else address


def _is_of_languages(name: str) -> bool:
    return (
        any(known.match(name) for known in (_ARITHMETIC, _OF_RUN_TIMES, _TABLES))
        or effect(name) is not None
        or standard().for_call(name) is not None
    )


def _address_in(libraries: Iterable[ctypes.CDLL], name: str) -> int | None:
    return next((address for one in libraries if (address := _address(one, name)) is not None), None)


def _address_elsewhere(name: str) -> int | None:
    """The address in this process, or a run-time library."""
    address = _address_in(filter(None, map(_library, (None, *LIBRARIES))), name)
    if address is not None:
        return address
    if name.endswith("_") and not name.startswith("_"):
        return _capsule_address(name[:-1])
    library = _library_of_language(name)
    return _address(library, name) if library else None


def _address(library: ctypes.CDLL, name: str) -> int | None:
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value if hasattr(library, name) else None


def is_defined(name: str, given: Sequence[ctypes.CDLL] = ()) -> bool:
    """Whether `address_of` finds a name, or the run-time library of a language should have it: those are not made for
    the question. So is what `addresses` has words of its own for, and what only unwinding reads."""
    if (
        name in _FAILURES
        or name in OF_THE_LINKER
        or any(known.match(name) for known in (_OF_THREADS, _OF_RUN_TIMES, _TABLES))
    ):
        return True
    return address_of(name, given) is not None


def leaves_nothing(names: Iterable[str]) -> bool:
    """Whether functions of these names are known to keep no address of the code that called them, or in it, once that
    has returned: `atexit` does, and nobody knows of a function of the user's."""
    return all(_leaves_nothing(name) for name in names)


def _leaves_nothing(name: str) -> bool:
    if _ARITHMETIC.match(name) or _TABLES.match(name) or writes_text(name) or name.startswith(_TAPES):
        return True
    found = effect(name)
    if found is not None:
        return found is not Effect.OUTPUT or not _KEEPING_OUTPUT.match(name)
    return standard().for_call(name) is not None or (name.endswith("_") and _capsule_address(name[:-1]) is not None)


def _library_of_language(name: str) -> ctypes.CDLL | None:
    """The run-time library that a name can only come from."""
    if name.startswith("_Fortran"):
        return fortran_library()
    if name.startswith("_R") or _RUST.search(name):
        return rust_library()
    if _OF_LIBCXX.search(name):
        return cpp_library()
    return None


@cache
def _library(name: str | None) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None


def _capsule_address(name: str) -> int | None:
    for module in CAPSULES:
        table: dict[str, object] = getattr(_imported(module), "__pyx_capi__", {})
        if name in table:
            return _pointer(table[name])
    return None


@cache
def _imported(module: str) -> ModuleType | None:
    try:
        return importlib.import_module(module)
    except ImportError:
        return None


def _pointer(capsule: object) -> int | None:
    """The pointer in a capsule, whatever its name (Cython names a capsule by the function's C type)."""
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return pointer(capsule, name(capsule))
