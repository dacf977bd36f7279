"""A set of sources: what is compiled of it, when, and how a program for one function is put together.

A set is to a kernel what a static library is to a program: only what the function needs is compiled, directly or not,
found by the names that sources are likely to define (`definitions`); of sources that the user named one by one also
those that may define the same once more. The modules are linked by LLVM, and all that the function has no use for is
dropped before anything else is done.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from functools import cached_property, reduce
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from jax_enzyme.cache import digest
from jax_enzyme.errors import CompileError
from jax_enzyme.frontends import class_types, symbols, toolchain
from jax_enzyme.frontends.assembly import check_assembled, has_assembly, meant
from jax_enzyme.frontends.built_in import flags_without, put_for
from jax_enzyme.frontends.candidates import (
    Candidates,
    any_may_define,
    is_known,
    known_functions,
    may_be_renamed,
    may_bind,
    may_define,
    may_have,
    may_paste,
    may_rename,
    plain,
    with_part_of,
)
from jax_enzyme.frontends.clang import READS_ERRNO, SETS_ERRNO, compile_c, compile_cpp
from jax_enzyme.frontends.compiled import Compiled, check_together, defined_twice, first_of
from jax_enzyme.frontends.cuda import compile_cuda
from jax_enzyme.frontends.cuda_host import as_text, host_side, is_on_device, load_host_function, with_launched
from jax_enzyme.frontends.definitions import generic
from jax_enzyme.frontends.flang import compile_fortran, compile_with_modules, module_files
from jax_enzyme.frontends.fortran_moves import with_moved_memory
from jax_enzyme.frontends.fortran_types import with_common_sizes
from jax_enzyme.frontends.gathering import Unit
from jax_enzyme.frontends.instances import chosen, instance
from jax_enzyme.frontends.llvm import read_ir, read_together
from jax_enzyme.frontends.missing_files import with_advice
from jax_enzyme.frontends.module_makers import ModuleMakers
from jax_enzyme.frontends.processes import side_by_side
from jax_enzyme.frontends.program import Program
from jax_enzyme.frontends.routines import without_routines
from jax_enzyme.frontends.runtime_library import complete
from jax_enzyme.frontends.rustc import compile_rust
from jax_enzyme.frontends.source import AS_WRITTEN, SUFFIXES, Source
from jax_enzyme.frontends.spelling import find, spelling, written
from jax_enzyme.frontends.two_ways import compiled_in_two_ways
from jax_enzyme.ir import linking

Blas = Literal["rules", "source"]
"""Where routines of BLAS and LAPACK come from that have rules and that the sources define."""

FRONTENDS: Mapping[str, Callable[[Source, Sequence[str]], str]] = MappingProxyType(
    {
        "c": compile_c,
        "c++": compile_cpp,
        "fortran": compile_fortran,
        "rust": compile_rust,
        "llvm": read_ir,
        "cuda": compile_cuda,
    }
)
"""What turns a source of each language, with compiler flags, into the text of an LLVM module."""

_UNKNOWN = re.compile("error: (no |use of undeclared|unknown|call to undeclared)")
_MEANT = re.compile("did you mean '([^']+)'")
_LISTED = 6


class SourceSet:
    """Units and what they became. Equal units are equal sets; compiling is done once for all functions of a set, by
    whichever thread asks first."""

    def __init__(self, units: Sequence[Unit], blas: Blas = "rules") -> None:
        self.units = tuple(units)
        self._blas: Blas = blas
        self._done: dict[Unit, Compiled | CompileError] = {}
        self._modules: dict[Unit, toolchain.Files] = {}
        """The files of the modules of units that are not compiled, since others only use these."""
        self._candidates = Candidates(self.units)
        self._module_makers = ModuleMakers(self.units)
        self._makers_of: dict[str, list[Unit]] = {}
        """What was compiled first for a name that no text defines."""
        self._calling: dict[frozenset[str], SourceSet] = {}
        """The same sources where some functions of C's library are called by their names."""
        self._same: set[tuple[Unit, frozenset[str]]] = set()
        """Names of units that are the same in all ways in which their project compiles them."""
        self._lock = threading.RLock()
        for unit in units:
            _check_language(unit)

    @property
    def place(self) -> str:
        """What the set is called in messages."""
        names = list(dict.fromkeys(unit.name for unit in self.units))
        more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
        return ", ".join(names[:_LISTED]) + more

    @property
    def folders(self) -> tuple[Path, ...]:
        """Where its files are."""
        return tuple(dict.fromkeys(unit.source.path.parent for unit in self.units if unit.source.path is not None))

    @cached_property
    def as_written(self) -> SourceSet:
        """The same sources for the checking mode, which looks for mistakes that optimisers make use of."""
        return self._with(AS_WRITTEN, "fortran", "rust")

    @cached_property
    def _with_calls(self) -> SourceSet:
        """The same sources for rules about functions of Fortran, which its compiler has inlined otherwise."""
        return self._with(AS_WRITTEN, "fortran")

    @cached_property
    def _with_errno(self) -> SourceSet:
        """The same sources for programs that look at what functions of libm leave in `errno`."""
        return self._with(SETS_ERRNO, "c", "c++")

    def _own_calls(self, put: frozenset[str]) -> SourceSet:
        """The same sources with calls of those functions that they define, of `put`, which clang takes for the
        library's."""
        with self._lock:
            able = [unit for unit in self.units if unit.source.lang in ("c", "c++")]
            if len(self.units) > 1:
                hiding = set(self._candidates.hiding(sorted(put), ()))
                named = (u for u in able if u.named and (u.likely is None or not put.isdisjoint(u.likely)))
                able = [*named, *(u for u in able if u in hiding)]
            self._compile(able)
            compiled = [one for unit in able if isinstance(one := self._done.get(unit), Compiled)]
            mentioning = (one for one in compiled if has_assembly(one.ir) or any(f"@{n}" in one.ir for n in put))
            own = put & frozenset[str]().union(*(one.names.defined | meant(one.ir) for one in mentioning))
            if own and own not in self._calling:
                flags = flags_without(own)
                self._calling[own] = reduce(lambda sources, flag: sources._with(flag, "c", "c++"), flags, self)
            return self._calling.get(own, self)

    def _with(self, flag: str, *languages: str) -> SourceSet:
        wanted = [unit.source.lang in languages and flag not in unit.flags for unit in self.units]
        units = [unit.with_flag(flag) if want else unit for unit, want in zip(self.units, wanted, strict=True)]
        return SourceSet(units, self._blas) if any(wanted) else self

    def program(self, symbol: str | None, also: Collection[str] = (), ruled: Collection[str] = ()) -> Program:
        """The program of a function, by its symbol or by what it is called in its source; of the only one where there
        is no symbol. `also` are symbols of others that it is handed, `ruled` those for which the user has
        rules, which are about their bodies. CompileError where it is not there, or something
        does not compile or is defined twice."""
        with self._lock:
            if symbol is None:
                self._compile(self.units)
            if (on_host := self._host_function(symbol, also, ruled)) is not None:
                return on_host
            in_fortran = [unit for unit in self.units if unit.source.lang == "fortran"]
            if any_may_define(in_fortran, map(plain, ruled)) and self._with_calls is not self:
                return self._with_calls.program(symbol, also, ruled)
            home, root = self._home(symbol)
            roots = (root, *also)
            home = self._described(home, frozenset(roots))
            others = [found for name in also if (found := self._find_or_compile(name))]
            alone = len(self.units) == 1
            if alone:
                parts = [(home, self._text_of(home, frozenset(roots)))]
                self._check_ways(home, frozenset(roots))
            else:
                parts = self._needed([(home, root), *others])
            named = [one for one in self._compiled() if one.unit.named]
        members = [one for one, _ in parts]
        check_together(members, named)
        texts = [text for _, text in parts]
        if self._blas == "rules":
            texts = [without_routines(text, one.names, (*roots, *ruled)) for one, text in parts]
        if len(self.units) > 1:
            try:
                declared = [(one.unit.source.lang == "fortran", one.names.sizes) for one in members]
                texts = [linking.linked(with_common_sizes(texts, declared), roots)]
            except RuntimeError as error:
                raise CompileError(f"LLVM cannot link the sources: {error}", self.place) from None
        source = home.unit.source
        text = with_moved_memory(texts[0])
        if READS_ERRNO in text and READS_ERRNO in linking.reachable(text, roots) and self._with_errno is not self:
            return self._with_errno.program(symbol, also, ruled)
        if (own := self._own_calls(put_for(text))) is not self:
            return own.program(symbol, also, ruled)
        check_assembled(text, roots, ruled, source.name)
        reduced = not alone or home.is_large
        return Program(complete(text, *roots, reduced=reduced), root, source.lang, source.name)

    def symbols(self, names: Sequence[str]) -> dict[str, str]:
        """The symbols of functions, by what they are called in their source; what no source defines is left out.
        CompileError where a name is not unique, or a named source does not compile."""
        with self._lock:
            found = {name: self._find_or_compile(name) or self._instance(name, [], self.units) for name in names}
            return {name: one[1] for name, one in found.items() if one is not None}

    @cached_property
    def key(self) -> str:
        """A digest of the contents of the units, and how they are compiled."""
        units = ((u.source.lang, u.name, u.source.contents, *u.flags, *map(repr, u.ways), "") for u in self.units)
        return digest(self._blas, *chain.from_iterable(units))

    def functions(self) -> list[str]:
        """What the functions of all sources are called in them."""
        with self._lock:
            self._compile(self.units)
            found = {str(spelling(name)) for one in self._compiled() for name in one.external}
            if any(unit.source.lang == "cuda" for unit in self.units):
                found.update(name for name in self._hosts.functions() if not name.startswith("__device_stub__"))
            return sorted(found)

    # The function

    def _home(self, symbol: str | None) -> tuple[Compiled, str]:
        """What defines the function, and its symbol."""
        if symbol is None:
            external = [name for one in self._compiled() for name in one.external]
            root = symbols.only(external, self._where())
            return next(one for one in self._compiled() if root in one.external), root
        found = self._find_or_compile(symbol)
        if found is not None:
            return found
        self._raise_failure(written(symbol).name.lower())
        meant: list[str] = []
        if made := self._instance(symbol, meant, self.units):
            return made
        self._compile(self._candidates.near(written(symbol).name.lower()))
        for one in self._compiled():
            for flags in one.unit.ways:
                other = self._one(one.unit, flags)
                if isinstance(other, Compiled) and find(symbol, other.names.functions):
                    raise compiled_in_two_ways(one.unit, flags, symbol)
        external = [name for one in self._compiled() for name in one.external]
        if procedures := [p for unit in self.units for p in generic(unit.source, symbol.rpartition("::")[2])]:
            raise symbols.generic_name(symbol, procedures, external, self.place)
        raise symbols.not_found(symbol, external, meant, self._where(), self._language)

    def _where(self) -> str:
        """The place of the sources, with how many of them are not known for what they define."""
        failures = [(unit, self._done.get(unit)) for unit in self.units]
        failed = [one for unit, one in failures if isinstance(one, CompileError) and not self._is_part(unit)]
        if not failed:
            return self.place
        do = "does" if len(failed) == 1 else "do"
        return f"{self.place}, of which {len(failed)} {do} not compile, the first at {failed[0].place}"

    def _described(self, one: Compiled, wanted: frozenset[str]) -> Compiled:
        """The module of a unit with all classes that the types of functions lead to."""
        unit = one.unit
        if unit.source.lang != "c++" or class_types.ALL in unit.flags:
            return one
        if not class_types.only_names(self._text_of(one, wanted), wanted):
            return one
        whole = self._one(unit.with_flag(class_types.ALL))
        if isinstance(whole, CompileError):
            raise whole
        self._done.update({key: whole for key, done in self._done.items() if done is one})
        return whole

    def _text_of(self, one: Compiled, wanted: frozenset[str]) -> str:
        """As much of a module as some of its functions need, where it pays to find that."""
        return one.part(wanted)[0] if one.is_large or len(self.units) > 1 else one.ir

    def _host_function(self, symbol: str | None, also: Collection[str], ruled: Collection[str]) -> Program | None:
        """The program of a host function of CUDA sources, or of one of others beside them; None for all else."""
        on_devices = [unit for unit in self.units if unit.source.lang == "cuda"]
        if symbol is None or not on_devices:
            return None
        if apart := self._apart_from(on_devices, (symbol, *also), ruled):
            return apart
        self._compile(on_devices)
        compiled = [one for unit in on_devices if isinstance(one := self._done[unit], Compiled)]
        if len(self.units) == 1:
            one = self._done[self.units[0]]
            if isinstance(one, CompileError):
                raise one
            try:
                return load_host_function(one.unit.source, symbol, one.ir, one.unit.flags)
            except symbols.NotUnique:
                raise
            except CompileError:
                if self._instance(symbol, [], self.units) is None:
                    raise
                return None  # an instance of a kernel
        if any(is_on_device(one.ir, symbol, one.unit.source, kernels=True) for one in compiled):
            return None
        on_device = any(is_on_device(one.ir, symbol, one.unit.source, kernels=False) for one in compiled)
        if on_device and not self._hosts.symbols([symbol]):
            return None
        return with_launched(self._hosts.program(symbol, also, ruled), [one.ir for one in compiled])

    def _apart_from(self, on_devices: Sequence[Unit], roots: Sequence[str], ruled: Collection[str]) -> Program | None:
        """That of a function in other languages; None where CUDA sources may have a part in it, or are named."""
        texts = [as_text(unit) for unit in on_devices]
        may = any(u.named for u in on_devices) or any_may_define(texts, (written(root).name.lower() for root in roots))
        if may or not self._apart.units:
            return None
        try:
            found = self._apart.program(roots[0], roots[1:], ruled)
        except CompileError:  # told with all sources
            return None
        used = linking.reachable(found.ir, (found.symbol, *roots[1:]))
        return None if any_may_define(texts, map(plain, linking.names(used).needed)) else found

    @cached_property
    def _apart(self) -> SourceSet:
        """The same sources without those in CUDA."""
        return SourceSet([unit for unit in self.units if unit.source.lang != "cuda"], self._blas)

    @cached_property
    def _hosts(self) -> SourceSet:
        """The same sources with the host's side of those in CUDA. What does not compile is kept as for the device."""
        sides = [host_side(unit) if unit.source.lang == "cuda" else (unit, None) for unit in self.units]
        hosts = SourceSet([unit for unit, _ in sides], self._blas)
        hosts._done.update((unit, failure) for unit, failure in sides if failure is not None)
        return hosts

    def _find_or_compile(self, symbol: str) -> tuple[Compiled, str] | None:
        """What defines a function among all units, and its symbol."""
        asked = written(symbol).name.lower()
        for units in self._candidates.defining(written(symbol)):
            self._compile(units)
            if (found := self._find(symbol)) is not None:
                return found
        self._raise_failure(asked)
        renaming = (unit for unit in self.units if unit in self._done and may_be_renamed(unit, asked))
        found = self._instance(symbol, [], renaming)
        while found is None and (waiting := [unit for unit in self._waiting() if may_have(unit, symbol)]):
            self._compile(with_part_of(asked, waiting) or waiting)
            found = self._find(symbol)
        return found

    def _find(self, symbol: str) -> tuple[Compiled, str] | None:
        functions = {name: None for one in self._compiled() for name in one.names.functions}
        root = symbols.chosen(symbol, list(functions), self.place)
        if root is None:
            return None
        homes = [one for one in self._compiled() if root in one.names.functions]
        strong = first_of([one for one in homes if root in one.names.strong])
        local = [one for one in homes if root in one.names.local]
        if len(strong) > 1 or (not strong and len(local) > 1):
            raise defined_twice(root, *(strong or local)[:2])
        return (strong or homes)[0], root

    def _instance(self, symbol: str, meant: list[str], units: Iterable[Unit]) -> tuple[Compiled, str] | None:
        """A function that units do not emit by themselves, or under another name: of a template, static and unused, or
        renamed by a macro. None where none has it; `meant` is then what the compiler thinks is meant."""
        name = written(symbol).name.encode()
        able = [unit for unit in units if unit.source.lang in ("c", "c++", "cuda") and may_have(unit, symbol)]
        for unit in sorted(able, key=lambda unit: name not in unit.source.contents):
            done = self._done.get(unit)
            asked = instance(done.unit if isinstance(done, Compiled) else unit, symbol)
            ir = asked and _tried(asked, symbol, meant)
            if not asked or not ir:
                continue
            one = Compiled(asked, ir)
            defined = one.names.functions
            found = find(symbol, defined) or [name for name in chosen(one.ir, symbol) if name in defined]
            if len(found) == 1:
                self._done[unit] = one
                return one, found[0]
        return None

    # What it needs

    def _needed(self, roots: Sequence[tuple[Compiled, str]]) -> list[tuple[Compiled, str]]:
        """The modules that functions need, their own first, each with the text of as much of it as they need."""
        while True:
            members, missing, unset = self._closure(roots)
            wanted, untold = self._module_makers.having(missing, self._done)
            wanted = [*wanted, *self._candidates.having((*untold, *unset), self._done)] or self._rivals(members)
            # What nobody else has comes from a language's library, and not where a named source has it after all.
            wanted = wanted or self._candidates.hiding(
                known_functions(missing, [one.ir for one, _ in members]), self._done
            )
            unknown = [] if wanted else [plain(name) for name in missing if not is_known(name)]
            if not wanted:
                for name in map(plain, missing) if self._blas == "source" else unknown:
                    self._raise_failure(name)
            if unknown:
                used = self._module_makers.behind(one.unit for one, _ in members)
                wanted = [unit for unit in used if unit not in self._done and may_bind(unit, unknown)]
            if not wanted:
                guessed = {name: with_part_of(name, self._waiting()) for name in unknown}
                wanted = {unit: None for units in guessed.values() for unit in units}
                for name, units in guessed.items():
                    self._makers_of.setdefault(name, units)
            if not wanted:
                for one, names in members:
                    self._check_ways(one, names)
                return [(one, one.part(names)[0]) for one, names in members]
            self._compile(wanted)

    def _rivals(self, members: Iterable[tuple[Compiled, frozenset[str]]]) -> list[Unit]:
        """The named units that may define once more what modules have of what is needed, which is an error."""
        defined = (name for one, names in members for name in sorted(one.part(names)[1].strong))
        return [unit for unit in self._candidates.having(defined, self._done) if unit.named]

    def _closure(
        self, roots: Sequence[tuple[Compiled, str]]
    ) -> tuple[list[tuple[Compiled, frozenset[str]]], list[str], list[str]]:
        """Of what is compiled the modules that some functions need, as far as they need them; the names that none of
        them defines; and those of which another may have what counts."""
        homes: dict[str, list[Compiled]] = {}
        for one in self._compiled():
            for name in one.names.defined:
                homes.setdefault(name, []).append(one)
        wanted: dict[int, set[str]] = {}
        members: dict[int, Compiled] = {}
        for one, root in roots:
            members[id(one)] = one
            wanted.setdefault(id(one), set()).add(root)
        missing: dict[str, None] = {}
        unset: dict[str, None] = {}
        # What is asked of large modules is collected: each other set of names is another part of them.
        pending, large = dict[int, Compiled](), dict[int, Compiled]()
        for one in members.values():
            (large if one.is_large else pending)[id(one)] = one
        while pending or large:
            _, one = (pending or large).popitem()
            names = one.part(frozenset(wanted[id(one)]))[1]
            for name in sorted(names.needed | names.shared):
                found = [home for home in homes.get(name, ()) if name in home.names.strong]
                # What the user named comes before what a folder or a library has.
                found = first_of(found)
                if name in names.needed:
                    found = found or homes.get(name, [])
                if not found:
                    (missing if name in names.needed else unset)[name] = None
                for home in found:
                    known = wanted.setdefault(id(home), set())
                    if name not in known or id(home) not in members:
                        known.add(name)
                        members[id(home)] = home
                        (large if home.is_large else pending)[id(home)] = home
        return [(one, frozenset(wanted[key])) for key, one in members.items()], [*missing], [*unset]

    def _check_ways(self, one: Compiled, wanted: frozenset[str]) -> None:
        """CompileError where the project compiles a unit in several ways, and not all make the same of what is wanted,
        or of the Fortran modules that it defines or uses."""
        key = (one.unit, wanted)
        if key in self._same:
            return
        for flags in one.unit.ways:
            other = self._one(one.unit, flags)
            if isinstance(other, CompileError):
                raise compiled_in_two_ways(one.unit, flags, min(wanted, default=""), other)
            if one.modules != other.modules or not linking.same(one.ir, other.ir, wanted):
                raise compiled_in_two_ways(one.unit, flags, min(wanted, default=""))
        self._same.add(key)
        for provider in self._module_makers.providers(one.unit):
            self._check_module_ways(provider)

    # Compiling

    @property
    def _language(self) -> str:
        return self.units[0].source.lang

    def _compiled(self) -> list[Compiled]:
        return [one for unit in self.units if isinstance(one := self._done.get(unit), Compiled)]

    def _is_made(self, unit: Unit, whole: Container[Unit]) -> bool:
        """Whether a unit is compiled, if it is one of those of which code is wanted; or else its modules are there."""
        return unit in self._done or (unit in self._modules and unit not in whole)

    def _waiting(self) -> list[Unit]:
        return [unit for unit in self.units if unit not in self._done]

    def _raise_failure(self, name: str) -> None:
        """Raises what kept a source from compiling that may define a name. Where it is another that does not compile,
        a name that nobody defines is told as that. What another source includes is a part of that one, unless that does
        not compile either."""
        for unit, failure in self._done.items():
            meant = may_define(unit, name) or may_rename(unit, name)
            meant = meant or (unit in self._makers_of.get(name, ()) and may_paste(unit))
            if isinstance(failure, CompileError) and meant and not self._is_part(unit):
                raise failure

    def _is_part(self, unit: Unit) -> bool:
        path = unit.source.path and os.path.realpath(unit.source.path)
        whole = (other for other in self.units if not isinstance(self._done.get(other), CompileError))
        return any(path in other.included for other in whole)

    def _compile(self, units: Iterable[Unit]) -> None:
        """Compiles units, in threads, and before them the modules that they use, as far as users need those. What fails
        is raised where the user named the source, and kept otherwise: it may not be needed."""
        whole = dict.fromkeys(unit for unit in units if unit not in self._done)
        wanted = list(dict.fromkeys([*whole, *self._module_makers.behind(whole)]))
        while wanted := [unit for unit in wanted if not self._is_made(unit, whole)]:
            ready = [unit for unit in wanted if self._module_makers.providers(unit).isdisjoint(wanted)]
            given = [unit for unit in ready if unit.source.lang == "llvm"]
            read = read_together([(unit.source, unit.flags) for unit in given])
            self._done.update((unit, self._finished(unit, ir)) for unit, ir in zip(given, read, strict=True))
            alone = [unit for unit in ready if unit not in whole]
            for unit, files in zip(alone, side_by_side(self._module_files, alone), strict=True):
                if isinstance(files, CompileError):
                    self._done[unit] = files
                else:
                    self._modules[unit] = files
            others = [unit for unit in ready if not self._is_made(unit, whole)]
            self._done.update(zip(others, side_by_side(self._one, others), strict=True))
        for unit in self.units:
            failure = self._done.get(unit)
            if unit.named and isinstance(failure, CompileError):
                raise failure

    def _one(self, unit: Unit, flags: Sequence[str] | None = None) -> Compiled | CompileError:
        flags = unit.flags if flags is None else flags
        try:
            modules = self._modules_for(unit)
        except CompileError as error:  # of the source that has one
            return error
        try:
            if unit.source.lang != "fortran":
                return Compiled(unit, FRONTENDS[unit.source.lang](unit.source, flags))
            return Compiled(unit, *compile_with_modules(unit.source, flags, modules))
        except CompileError as error:
            return with_advice(error, unit, self.units)

    def _finished(self, unit: Unit, ir: str | CompileError) -> Compiled | CompileError:
        return with_advice(ir, unit, self.units) if isinstance(ir, CompileError) else Compiled(unit, ir)

    # Fortran's modules

    def _module_files(self, unit: Unit, flags: Sequence[str] | None = None) -> toolchain.Files | CompileError:
        """The files of the modules that a unit defines, made without compiling it."""
        try:
            return module_files(unit.source, unit.flags if flags is None else flags, self._modules_for(unit))
        except CompileError as error:
            return with_advice(error, unit, self.units)

    def _modules_of(self, unit: Unit) -> toolchain.Files:
        """The files of the modules that a unit defines. CompileError where it does not compile."""
        made = self._done.get(unit)
        if isinstance(made, CompileError):
            raise made
        return self._modules[unit] if made is None else made.modules

    def _modules_for(self, unit: Unit) -> toolchain.Files:
        """The module files that a unit needs, directly or not."""
        behind = self._module_makers.behind([unit])
        return {name: file for other in behind for name, file in self._modules_of(other).items()}

    def _check_module_ways(self, unit: Unit) -> None:
        """CompileError where the project compiles a unit in several ways, and not all write the same modules, or those
        that it uses."""
        key = (unit, frozenset[str]())
        if key in self._same:
            return
        for flags in unit.ways:
            other = self._module_files(unit, flags)
            if isinstance(other, CompileError):
                raise compiled_in_two_ways(unit, flags, "", other)
            if other != self._modules_of(unit):
                raise compiled_in_two_ways(unit, flags, "")
        self._same.add(key)
        for provider in self._module_makers.providers(unit):
            self._check_module_ways(provider)


def _tried(unit: Unit, symbol: str, meant: list[str]) -> str | None:
    """The IR of a unit that asks for a function by a name; None where it has none."""
    try:
        return FRONTENDS[unit.source.lang](unit.source, unit.flags)
    except CompileError as error:
        if _UNKNOWN.search(error.cause):
            meant += _MEANT.findall(error.cause)
            return None
        if "overloaded function" in error.cause or "ambiguous" in error.cause:
            candidates = [line for line in error.cause.splitlines() if "note: candidate" in line]
            instance = "" if "<" in symbol else f'"{symbol}<double>" or '
            raise CompileError(
                "\n".join([f"several functions of this name may be meant: `{symbol}`", *candidates]),
                unit.name,
                f'name the types of its parameters: {instance}"{symbol}(double const*, int)", for example',
            ) from None
        return None


def _check_language(unit: Unit) -> None:
    lang = unit.source.lang
    if lang not in FRONTENDS:
        low = lang.lower()
        meant = low if low in FRONTENDS else SUFFIXES.get(f".{low}")
        raise CompileError(
            f"there is no front end for the language {lang!r}",
            unit.name,
            f"{f'did you mean {chr(34)}{meant}{chr(34)}? ' if meant else ''}languages: {', '.join(FRONTENDS)}",
        )
