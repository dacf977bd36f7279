"""The modules of a set of sources, and what must not be among those that are linked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from jax_enzyme.cache import DiskCache, digest
from jax_enzyme.classes import dataclass, field
from jax_enzyme.errors import CompileError
from jax_enzyme.frontends import symbols
from jax_enzyme.frontends.assembly import assembled
from jax_enzyme.frontends.flang import AS_LOWERED, excerpt, finished
from jax_enzyme.frontends.gathering import Unit
from jax_enzyme.frontends.runtime_library import LARGE
from jax_enzyme.frontends.spelling import spelling
from jax_enzyme.ir import linking
from jax_enzyme.ir.debug import function_location
from jax_enzyme.ir.linking import Names
from jax_enzyme.ir.module import GlobalVariable
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.values import is_zero

_FORMAT = "3"
"""Changes whenever the parts of a module would be others."""
_SMALL = 20_000
"""Characters of a module up to which it does not pay to look for the part of it that is needed."""


@dataclass(frozen=True)
class Compiled:
    """The module of a unit, and the files of the Fortran modules that it defines."""

    unit: Unit
    ir: str
    modules: Mapping[str, bytes] = field(default_factory=dict[str, bytes])

    @cached_property
    def names(self) -> Names:
        """What the module defines and needs."""
        found = linking.names(self.ir)
        own = assembled(self.ir)
        return replace(found, defined=found.defined | own, strong=found.strong | own) if own else found

    @property
    def is_large(self) -> bool:
        """Whether it pays to leave out what a function does not need before anything else."""
        return len(self.ir) >= LARGE

    def part(self, wanted: frozenset[str]) -> tuple[str, Names]:
        """As much of the module as some of what it defines needs, and the names of that. A small module that needs
        nothing of others is taken whole, and one that defines nothing else."""
        as_lowered = self.ir.startswith(AS_LOWERED)
        is_small = len(self.ir) < _SMALL and not self.names.needed
        whole = is_small or wanted.issuperset(self.names.defined | self.names.local)
        if whole and not as_lowered:
            return self.ir, self.names
        known = self._parts.get(wanted)
        if known is None:
            ir = self._finished(wanted) if as_lowered else self.ir
            known = self._parts[wanted] = linking.reduced(ir, wanted)
        return known

    def _finished(self, wanted: frozenset[str]) -> str:
        """As much of a module as some of what it defines needs, finished, from the disk cache if it is there."""
        cache = DiskCache.named("parts")
        source, flags = self.unit.source, self.unit.flags
        key = digest(_FORMAT, self.ir, source.name, source.contents, *flags, "", *sorted(wanted))
        entry = cache.get(key)
        if entry is not None:
            return entry.decode()
        found = finished(excerpt(self.ir, wanted, self.names.defined, source, flags), source, flags)
        cache.put(key, found.encode())
        return found

    @cached_property
    def _parts(self) -> dict[frozenset[str], tuple[str, Names]]:
        return {}

    @cached_property
    def external(self) -> list[str]:
        """The functions that it defines for others."""
        return symbols.external_functions(self.ir)


def check_together(members: Sequence[Compiled], named: Sequence[Compiled]) -> None:
    """CompileError where modules are of different machines, or two define one name: modules that are linked, and those
    of sources that the user named."""
    on_devices = [one for one in members if one.unit.source.lang == "cuda"]
    if on_devices and len(on_devices) < len(members):
        other = next(one for one in members if one.unit.source.lang != "cuda")
        raise CompileError(
            f"a CUDA source cannot be linked with one in {other.unit.source.lang}: "
            f"{on_devices[0].unit.name} and {other.unit.name}",
            other.unit.name,
            "device code is compiled from CUDA sources: pass these alone",
        )
    homes: dict[str, Compiled] = {}
    for one in {id(one): one for one in (*members, *named)}.values():
        for name in sorted(one.names.strong):
            first = homes.setdefault(name, one)
            if first is not one:
                raise defined_twice(name, first, one)


def first_of(found: Sequence[Compiled]) -> list[Compiled]:
    """Of those that define a name the ones that the user named, else those of the first folder or library that has it,
    as a linker takes them."""
    named = [one for one in found if one.unit.named]
    return named or [one for one in found if one.unit.item == found[0].unit.item]


def defined_twice(name: str, first: Compiled, second: Compiled) -> CompileError:
    places = [_line(name, one) for one in (first, second)]
    if places[0] == places[1]:  # in a file that both include
        places = [f"{place} in {one.unit.name}" for place, one in zip(places, (first, second), strict=True)]
    spelled = str(spelling(name))
    shown = f"`{name}`" if name == spelled else f"`{spelled}` ({name})"
    remedy = "leave one of them out of the sources; of a folder name the one that is meant as well, by its path"
    if all(_may_be_tentative(name, one) for one in (first, second)):
        remedy = f'if they are one variable, in a header without `extern`: flags={{"c": ("-fcommon",)}}; else {remedy}'
    return CompileError(f"two sources define {shown}: {places[0]} and {places[1]}", places[1], remedy)


def _may_be_tentative(name: str, one: Compiled) -> bool:
    """Whether it is a variable of C without an initialiser, or with zeros."""
    variable = parse(one.ir).symbol(name)
    if one.unit.source.lang != "c" or not isinstance(variable, GlobalVariable):
        return False
    return variable.initializer is not None and is_zero(variable.initializer)


def _line(name: str, one: Compiled) -> str:
    """Where a function is defined, as well as that is known."""
    module = parse(one.ir)
    function = module.functions.get(name)
    return (function_location(module, function) if function is not None else None) or one.unit.name
