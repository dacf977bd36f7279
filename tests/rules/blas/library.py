"""The rules of BLAS and LAPACK, compiled and linked into this process, behind Python functions."""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Mapping, Sequence

import llvmlite.binding as llvm
import numpy as np

from jax_enzyme.codegen import library, symbols
from jax_enzyme.codegen.host import host
from jax_enzyme.codegen.jit import jit
from jax_enzyme.ir import types as T
from jax_enzyme.ir.writer import to_text
from jax_enzyme.rules.blas.table import Result, Routine, routines
from tests.rules.blas.arrays import Array

# Frames come from malloc and are never freed; the first word of the arena counts their bytes.
_ARENA = """
define ptr @je_arena_allocate(ptr %arena, i64 %bytes) {
  %before = load i64, ptr %arena
  %after = add i64 %before, %bytes
  store i64 %after, ptr %arena
  %memory = call ptr @malloc(i64 %bytes)
  ret ptr %memory
}
"""

_LINKED: list[object] = []
"""What keeps the code here."""


@functools.cache
def _addresses(letter: str) -> Mapping[str, int]:
    active = [r for r in routines().values() if r.is_active and r.letter == letter]
    return linked(letter, [name for r in active for name in (r.jvp, r.forward, r.reverse)])


def linked(letter: str, names: Sequence[str]) -> Mapping[str, int]:
    """The addresses of functions of the library."""
    text = to_text(library.definitions(letter, frozenset(names)))
    text = re.sub("^declare ptr @je_arena_allocate.*$", _ARENA, text, flags=re.M)
    listed = ", ".join(f"ptr @{name}" for name in names)
    text += f"\n@table = constant [{len(names)} x ptr] [{listed}]\n"
    native = llvm.parse_assembly(text, llvm.create_context())
    native.verify()
    # As code is generated that nobody waits for: the library is in the form that clang has optimised.
    machine = llvm.Target.from_triple(host().triple).create_target_machine(opt=0, reloc="pic", codemodel="small")
    code = jit().code(machine.emit_object(native), "table")
    _LINKED.append(code)
    table = (ctypes.c_void_p * len(names)).from_address(code.address)
    return {name: address for name, address in zip(names, table, strict=True) if address is not None}


def _number(routine: Routine) -> type[ctypes.c_float | ctypes.c_double]:
    return ctypes.c_float if routine.scalar == T.FLOAT else ctypes.c_double


class Pair(ctypes.Structure):
    """What a forward function returns that has a result of its own, in double precision."""

    _fields_ = (("value", ctypes.c_double), ("other", ctypes.c_void_p))


class Single(ctypes.Structure):
    _fields_ = (("value", ctypes.c_float), ("other", ctypes.c_void_p))


class Doubles(ctypes.Structure):
    _fields_ = (("value", ctypes.c_double), ("other", ctypes.c_double))


class Floats(ctypes.Structure):
    _fields_ = (("value", ctypes.c_float), ("other", ctypes.c_float))


Arguments = list[ctypes.c_void_p]


def pointer(array: Array | None) -> ctypes.c_void_p:
    return ctypes.c_void_p(None if array is None else array.ctypes.data)


def primal(routine: Routine, arguments: Arguments) -> float:
    """Calls the routine itself."""
    address = symbols.address_of(routine.symbol)
    result = {Result.NOTHING: None, Result.NUMBER: _number(routine), Result.INTEGER: ctypes.c_int}[routine.result]
    return ctypes.CFUNCTYPE(result, *[ctypes.c_void_p] * len(arguments))(address)(*arguments) or 0.0


def jvp(routine: Routine, arguments: Arguments, shadows: Arguments) -> tuple[float, float]:
    """The value and tangent of the result, zeros where there is none."""
    both = [*arguments, *shadows]
    result = None
    if routine.result is Result.NUMBER:
        result = Floats if routine.scalar == T.FLOAT else Doubles
    found = ctypes.CFUNCTYPE(result, *[ctypes.c_void_p] * len(both))(_addresses(routine.letter)[routine.jvp])(*both)
    return (found.value, found.other) if found is not None else (0.0, 0.0)


def forward(routine: Routine, arguments: Arguments, shadows: Arguments, stable: int) -> tuple[float, int, int]:
    """The result, the frame, and how many bytes were kept."""
    arena = np.zeros(1, np.int64)
    both = [*arguments, *shadows]
    types = [ctypes.c_void_p] * len(both) + [ctypes.c_long, ctypes.c_void_p]
    single = Single if routine.scalar == T.FLOAT else Pair
    result = single if routine.result is Result.NUMBER else ctypes.c_void_p
    found = ctypes.CFUNCTYPE(result, *types)(_addresses(routine.letter)[routine.forward])(*both, stable, pointer(arena))
    if isinstance(found, ctypes.Structure):
        return found.value, found.other, int(arena[0])
    return 0.0, found, int(arena[0])


def reverse(routine: Routine, frame: int, cotangent: float) -> None:
    address = _addresses(routine.letter)[routine.reverse]
    if routine.result is Result.NUMBER:
        ctypes.CFUNCTYPE(None, ctypes.c_void_p, _number(routine))(address)(frame, cotangent)
    else:
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)(frame)
