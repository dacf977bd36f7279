"""What a program calls or reads, and nobody defines: not its sources, a rule, its shared libraries or this process; and
what it defines otherwise than it calls it."""

from __future__ import annotations

import ctypes
from collections.abc import Collection, Iterator, Sequence

from jax_enzyme.cache import DiskCache, digest
from jax_enzyme.codegen.disagreement import disagreement
from jax_enzyme.codegen.environment import environment
from jax_enzyme.codegen.layouts import layout_conflict
from jax_enzyme.codegen.reading import looked_at
from jax_enzyme.codegen.symbols import EXAMPLE, is_defined
from jax_enzyme.errors import CompileError
from jax_enzyme.frontends.program import Program
from jax_enzyme.frontends.shared_libraries import opened
from jax_enzyme.frontends.spelling import spelling
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import linking
from jax_enzyme.ir.debug import location
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.values import ConstantAggregate, ConstantExpr, Value
from jax_enzyme.rules.blas.table import bodies, routines
from jax_enzyme.rules.effects import effect
from jax_enzyme.rules.table import standard
from jax_enzyme.transform.openmp import TEAM

_REMEDY = (
    "add the sources that define them; or give rules (je.rule, je.inactive); or name the shared library that has them: "
    f"{EXAMPLE}"
)
_LISTED = 12
_PLACES = 3


def check_defined(program: Program, ruled: Collection[str]) -> None:
    """CompileError that lists all that is not defined, with who refers to it, or for a function that is called as
    something else than it is. `ruled` are functions that the user has rules for. Programs for devices are left to their
    own checks."""
    given = tuple(map(opened, program.libraries))
    if program.lang == "cuda" or not _unknown(_needed(program), ruled, given):
        return
    ir = linking.reachable(program.ir, {program.symbol})
    unknown = _unknown(linking.names(ir).needed, ruled, given)
    if not unknown:
        return
    module = parse(ir)
    lines = [f"`{spelling(name)}`: {', '.join(_users(module, name))}" for name in unknown[:_LISTED]]
    more = [f"and {len(unknown) - _LISTED} more"] if len(unknown) > _LISTED else []
    count = "a symbol" if len(unknown) == 1 else f"{len(unknown)} symbols"
    named = f", neither the sources nor {', '.join(program.libraries)}" if program.libraries else ""
    raise CompileError(
        "\n  ".join([f"`{program.symbol}` needs {count} that nobody defines{named}:", *lines, *more]),
        program.source_name,
        "; or ".join([*_fortran_names(unknown), _REMEDY]),
    )


def undefined(program: Program, names: Collection[str], ruled: Collection[str]) -> list[str]:
    """Those of some names that nobody defines who a program asks."""
    return _unknown(names, ruled, tuple(map(opened, program.libraries)))


def _fortran_names(unknown: Collection[str]) -> list[str]:
    """What to call instead of LAPACKE, which only hands its arguments on."""
    prefix = "LAPACKE_"
    found = {name: f"{name.removeprefix(prefix).removesuffix('_work')}_" for name in unknown if name.startswith(prefix)}
    names = [f"`{new}` instead of `{old}`" for old, new in found.items() if new in routines()]
    if not names:
        return []
    return [f"call Fortran's names of LAPACK, which have rules (matrices by columns, arguments by address): {names[0]}"]


def _needed(program: Program) -> list[str]:
    """What a program wants of others, whose calls are right. It is remembered on disk, so that the program need not be
    read again for that."""
    disk = DiskCache.named("checked")
    key = digest(environment(), program.key)
    known = disk.get(key)
    if known is not None:
        return known.decode().splitlines()
    with looked_at(program) as module:
        if _conflict(module) and (error := _conflict(parse(linking.reachable(program.ir, {program.symbol})))):
            raise error
        functions = [name for name, function in module.functions.items() if function.is_declaration]
        variables = [name for name, variable in module.globals.items() if variable.initializer is None]
    needed = [name for name in (*functions, *variables) if not name.startswith("llvm.")]
    disk.put(key, "\n".join(needed).encode())
    return needed


def _conflict(module: Module) -> CompileError | None:
    return disagreement(module) or layout_conflict(module)


def _unknown(needed: Collection[str], ruled: Collection[str], given: Sequence[ctypes.CDLL]) -> list[str]:
    return [name for name in sorted(needed) if name not in ruled and not _is_known(name, given)]


def _is_known(name: str, given: Sequence[ctypes.CDLL]) -> bool:
    return (
        effect(name) is not None
        or name in routines()
        or name in bodies()
        or standard().for_call(name) is not None
        or name == TEAM
        or is_defined(name, given)
    )


def _users(module: Module, name: str) -> list[str]:
    """Where a name is used, the first few places."""
    wanted = module.functions.get(name) or module.globals.get(name)
    places: dict[str, None] = {}
    for function in module.functions.values():
        for instruction in function.instructions():
            if any(_leads_to(operand, wanted) for operand in instruction.operands):
                verb = "called" if isinstance(instruction, I.CallBase) else "used"
                place = location(module, instruction)
                places[f"{verb} in `{spelling(function.name)}`" + (f" at {place}" if place else "")] = None
    listed = list(places)
    more = [f"and {len(listed) - _PLACES} more places"] if len(listed) > _PLACES else []
    return [*listed[:_PLACES], *more] or ["used by a table"]


def _leads_to(value: Value, wanted: Value | None) -> bool:
    return value is wanted or any(_leads_to(part, wanted) for part in _parts(value))


def _parts(value: Value) -> Iterator[Value]:
    if isinstance(value, ConstantExpr):
        yield from value.operands
    elif isinstance(value, ConstantAggregate):
        yield from value.elements
