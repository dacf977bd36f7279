"""Which units of a set define the Fortran modules that others use.

A module that is only used for its types, constants and interfaces is not compiled: the file that describes it does,
and whoever needs a procedure or variable of it says so by a symbol that names the module.

    _QMgridPstep    the procedure `step` of the module `grid`, which may have its body in a submodule
    _QMgridEwidth   its variable `width`
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from functools import cached_property

from jax_enzyme.errors import CompileError
from jax_enzyme.frontends import fortran_modules
from jax_enzyme.frontends.gathering import Unit
from jax_enzyme.ir.reach import reached

_OF_MODULE = re.compile(r"_QM([a-z0-9_]+)")


class ModuleMakers:
    """The Fortran units of a set, by the modules that they define."""

    def __init__(self, units: Sequence[Unit]) -> None:
        self._units = units

    @cached_property
    def _interfaces(self) -> dict[Unit, fortran_modules.Interface]:
        return {unit: fortran_modules.interface(unit.source) for unit in self._units if unit.source.lang == "fortran"}

    @cached_property
    def _all(self) -> dict[str, list[Unit]]:
        """The units that define each module."""
        found: dict[str, list[Unit]] = {}
        for unit, interface in self._interfaces.items():
            for name in sorted(interface.defines):
                found.setdefault(name, []).append(unit)
        return found

    @cached_property
    def _first(self) -> dict[str, Unit]:
        """The unit that defines each module. CompileError where two do, one of which the user named, or modules use one
        another in a circle."""
        for name, (first, *others) in self._all.items():
            for other in others:
                if first.named or other.named:
                    raise CompileError(
                        f"two sources define the Fortran module `{name}`: {first.name} and {other.name}",
                        other.name,
                        "leave one of them out",
                    )
        makers = {name: units[0] for name, units in self._all.items()}
        needs = {n: sorted(self._interfaces[unit].needs & makers.keys()) for n, unit in makers.items()}
        if ring := fortran_modules.circle(needs):
            shown = " uses ".join(f"`{name}` ({makers[name].name})" for name in [*ring, ring[0]])
            raise CompileError(
                f"Fortran modules use one another in a circle: {shown}",
                makers[ring[0]].name,
                "put what both need into a module of its own, or one of them into a submodule",
            )
        return makers

    def providers(self, unit: Unit) -> set[Unit]:
        """The other units whose modules a unit uses itself."""
        interface = self._interfaces.get(unit)
        names = interface.needs & self._first.keys() if interface is not None else frozenset[str]()
        return {self._first[name] for name in names} - {unit}

    def behind(self, units: Iterable[Unit]) -> list[Unit]:
        """The units whose modules some units use, directly or not."""
        return [*reached((used for unit in units for used in self.providers(unit)), self.providers)]

    def having(self, symbols: Iterable[str], done: Container[Unit]) -> tuple[list[Unit], list[str]]:
        """The units that define the modules that symbols name, and the symbols that this does not tell of: of no module
        of one unit alone, or of one that is done."""
        found: dict[Unit, None] = {}
        untold: list[str] = []
        for symbol in symbols:
            match = _OF_MODULE.match(symbol)
            makers = self._all.get(match[1], ()) if match is not None else ()
            if len(makers) == 1 and makers[0] not in done:
                found[makers[0]] = None
            else:
                untold.append(symbol)
        return list(found), untold
