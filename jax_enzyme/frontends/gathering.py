"""What a user gives as sources, taken apart into units: files of one language each, with the flags that they get."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatch
from functools import cached_property
from glob import glob
from pathlib import Path
from typing import cast

from jax_enzyme.classes import dataclass, field, replace
from jax_enzyme.errors import CompileError
from jax_enzyme.frontends.cargo import MANIFEST, crates, needs_cargo, package_of
from jax_enzyme.frontends.compile_commands import NAME, Commands, Ways, read_commands
from jax_enzyme.frontends.definitions import Texts, bound, every_word, included, likely, mentioned, renamed
from jax_enzyme.frontends.fortran_parts import in_parts
from jax_enzyme.frontends.objects import ARCHIVES, OBJECTS, SHARED, read_archive, read_object, refuse_shared
from jax_enzyme.frontends.source import SUFFIXES, Source, identify, looks_like_path, where_it_may_be

Flags = Sequence[str] | Mapping[str, Sequence[str]]
"""Flags for all sources, or for those of a language or with a name, which may be a pattern."""

_COMPILED_ELSEWHERE = frozenset(("llvm",))
_FAMILIES = {"c": "c", "c++": "c", "cuda": "c"}
_LISTED = 6


@dataclass(frozen=True)
class Unit:
    """One source with the flags of its compiler. `named`: the user named it, rather than a folder or pattern that it
    is in, which is number `item` of what the user gave. `name` is the source's. `ways` are the flags with which its
    project compiles it besides; `texts` has what is known of its text, and of those of all units of its set."""

    source: Source
    flags: tuple[str, ...]
    named: bool = True
    item: int = 0
    ways: Ways = ()
    texts: Texts = field(default_factory=Texts, compare=False, repr=False)

    @property
    def name(self) -> str:
        return self.source.name

    def with_flag(self, flag: str) -> Unit:
        """The same with one flag more, in front of the others, which may say otherwise."""
        return replace(self, flags=(flag, *self.flags), ways=tuple((flag, *way) for way in self.ways))

    @cached_property
    def likely(self) -> frozenset[str] | None:
        """The names that the source may define, None where its text does not tell."""
        return likely(self.source, self.flags, self.texts)

    @cached_property
    def bound(self) -> frozenset[str] | None:
        """The names that a Fortran source may give to symbols as they are. None in other languages, and where flags say
        what symbols are called."""
        if self.source.lang != "fortran" or any("underscoring" in flag for flag in self.flags):
            return None
        return bound(self.source)

    @cached_property
    def mentioned(self) -> frozenset[str] | None:
        """All words of the source and of what it includes, None where these do not tell what it defines."""
        return mentioned(self.source, self.flags, self.texts)

    @cached_property
    def words(self) -> frozenset[str] | None:
        """The same in C++ too, and None where what it defines may be called otherwise."""
        return every_word(self.source, self.flags, self.texts)

    @cached_property
    def renamed(self) -> Mapping[str, frozenset[str]]:
        """By names, those for which macros put them."""
        return renamed(self.source, self.flags, self.texts)

    @cached_property
    def included(self) -> frozenset[str]:
        """The real paths of the files that it includes."""
        return included(self.source, self.flags)


def gather(source: object, lang: str | None, flags: Flags = (), compile_commands: object = None) -> tuple[Unit, ...]:
    """The units of a source, or of a sequence of sources: paths, folders, patterns, text, bitcode, object files, static
    libraries, `compile_commands.json` for what it names. Without a source, all that `compile_commands` names.
    CompileError where something is none of these."""
    commands, among = None, dict[str, Ways]()
    if compile_commands is not None:
        if not isinstance(compile_commands, str | os.PathLike):
            raise CompileError(f"compile_commands= is a path, not {compile_commands!r}")
        commands = read_commands(Path(os.fsdecode(compile_commands)))
    if source is None:
        if commands is None:
            raise CompileError("there is no source", None, "pass a path, a sequence of paths, or compile_commands=")
        found = [(one, False, 0) for one in _commanded(commands, lang)]
    else:
        items = several(source)
        if not items:
            raise CompileError("the sequence of sources is empty", None, "pass at least one")
        found: list[tuple[Source, bool, int]] = []
        has_text = any(isinstance(item, str) and not _is_path(item) for item in items)
        for i, item in enumerate(items):
            if isinstance(item, str | os.PathLike) and os.path.basename(os.fsdecode(item)) == NAME:
                database = read_commands(Path(os.fsdecode(item)))
                found += [(one, False, i) for one in _commanded(database, lang)]
                among = {**database.ways, **among}
            else:
                said = None if has_text and _tells_its_language(item) else lang
                found += [(*pair, i) for pair in _expanded(item, said, len(items) > 1, _for_rust(flags))]
    unique: dict[object, tuple[Source, bool, int]] = {}
    for one, named, item in found:
        place = (one.path and os.path.realpath(one.path), one.name, one.contents)
        known = unique.get(place)
        unique[place] = (one, named, item) if known is None else (*known[:1], named or known[1], known[2])
    units, texts = list[Unit](), Texts()
    for one, named, item in unique.values():
        first, *others = dict.fromkeys(_ways(one, flags, commands, among))
        units.append(Unit(one, first, named, item, tuple(others), texts))
    _check_flags(units, flags)
    return tuple(units if len(units) == 1 else map(_without_flags, units))


def several(source: object) -> list[object]:
    """The items of a sequence of sources; one that is alone as the only item."""
    alone = isinstance(source, str | bytes | bytearray | memoryview) or not isinstance(source, Sequence)
    return [source] if alone else list(cast("Sequence[object]", source))


def _without_flags(unit: Unit) -> Unit:
    """Flags for a set of sources do not concern those that are not compiled."""
    return replace(unit, flags=()) if unit.source.lang in _COMPILED_ELSEWHERE else unit


def _commanded(commands: Commands, lang: str | None) -> Iterator[Source]:
    for name in commands.sources():
        if _language(Path(name)):
            yield from _sources(name, lang, False)


def _for_rust(flags: Flags) -> Sequence[str]:
    return flags.get("rust", ()) if isinstance(flags, Mapping) else flags


def _is_path(item: object) -> bool:
    return isinstance(item, os.PathLike) or (isinstance(item, str) and bool(item.strip()) and looks_like_path(item))


def _tells_its_language(item: object) -> bool:
    """Whether a source is in a language of its own, or stands for files that are, whatever text beside it is in."""
    if not _is_path(item):
        return False
    path = Path(os.fsdecode(item))  # pyright: ignore[reportArgumentType]
    return _language(path) is not None or not path.is_file()


def _expanded(
    item: object, lang: str | None, among_others: bool, for_rust: Sequence[str]
) -> Iterator[tuple[Source, bool]]:
    """The sources that an item stands for, and whether it names them one by one."""
    if not _is_path(item):
        if callable(item) and among_others:
            name = getattr(item, "__name__", "function")
            raise CompileError(f"the Python function `{name}` cannot be one of several sources", None, "pass it alone")
        yield identify(item, lang), True
        return
    path = Path(os.fsdecode(item))  # pyright: ignore[reportArgumentType]
    package = package_of(path)
    if package is not None and (path.name == MANIFEST or needs_cargo(package)):
        yield from ((crate, False) for crate in crates(package, for_rust))
        files = [] if path.is_file() else _in_folder(path, with_crate=False)
    elif path.is_dir():
        files = _in_folder(path)
    elif any(mark in str(path) for mark in "*?[") and not path.exists():
        files = [Path(name) for name in sorted(glob(str(path), recursive=True)) if _kind(Path(name))]
        if not files:
            raise CompileError("no source file matches the pattern", str(path), where_it_may_be(path))
    else:
        # Members of a library are there for whoever needs them.
        for one in _sources(path, lang, among_others):
            found = [one] if among_others else in_parts(one)
            yield from ((part, path.suffix not in ARCHIVES and len(found) == 1) for part in found)
        return
    for file in files:
        yield from ((part, False) for one in _sources(file, lang, True) for part in in_parts(one))


def _in_folder(folder: Path, *, with_crate: bool = True) -> list[Path]:
    """The sources in a folder itself; where there are none, what was compiled. Without its crate all but what is in
    Rust, and there may be none."""
    files = sorted(file for file in folder.iterdir() if file.is_file())
    crate = next((file for file in (folder / "lib.rs", folder / "src" / "lib.rs") if file.is_file()), None)
    in_crate = crate is not None or not with_crate
    sources = [f for f in files if _language(f) not in (None, "llvm") and not (in_crate and f.suffix == ".rs")]
    if not with_crate:
        return sources
    found = [*sources, *([crate] if crate else [])] or [file for file in files if _kind(file)]
    if not found:
        below = sorted({f.parent for f in folder.rglob("*") if _language(f) and f.is_file()})
        raise CompileError(
            "the folder has no source files",
            str(folder),
            f"there are some in {', '.join(map(str, below[:_LISTED]))}: pass these, or a pattern such as "
            f"{str(folder / '**' / '*.c')!r}"
            if below
            else f"files whose names end in {' '.join(SUFFIXES)} are sources",
        )
    return found


def _language(path: Path) -> str | None:
    return SUFFIXES.get(path.suffix) or SUFFIXES.get(path.suffix.lower())


def _kind(path: Path) -> bool:
    """Whether a file is a source, or may hold bitcode."""
    return path.is_file() and (_language(path) is not None or path.suffix in OBJECTS | ARCHIVES)


def _sources(item: str | Path, lang: str | None, among_others: bool) -> list[Source]:
    path = Path(item)
    if path.suffix in SHARED or ".so." in path.name:
        raise refuse_shared(path)
    if path.suffix in OBJECTS | ARCHIVES and path.is_file():
        return [read_object(path)] if path.suffix in OBJECTS else read_archive(path)
    known = _language(path)
    if among_others and lang is not None and known is not None and known != lang:
        if known in _FAMILIES and lang in _FAMILIES:
            return [identify(path, lang)]
        if known == "llvm":
            return [identify(path, None)]
        raise CompileError(
            f'lang="{lang}", and by its name this source is {known}',
            str(path),
            "leave lang= out: each source is of the language that its suffix tells",
        )
    return [identify(path, lang)]


def _ways(source: Source, flags: Flags, commands: Commands | None, among: Mapping[str, Ways]) -> Ways:
    """In each way those of the database (`among`: of those among the sources, which need not name all), then the user's
    own."""
    known: Ways = ((),)
    if source.path is not None and source.lang not in _COMPILED_ELSEWHERE:
        known = among.get(os.path.realpath(source.path), known) if commands is None else commands.of(source.path)
    if isinstance(flags, Mapping):
        flags = [flag for key, given in flags.items() if _is_for(key, source) for flag in given]
    return tuple((*way, *flags) for way in known)


def _is_for(key: str, source: Source) -> bool:
    if key == source.lang or key == source.name:
        return True
    return source.path is not None and (fnmatch(source.path.name, key) or fnmatch(str(source.path), key))


def _check_flags(units: Sequence[Unit], flags: Flags) -> None:
    if not isinstance(flags, Mapping):
        return
    for key in flags:
        if not any(_is_for(key, unit.source) for unit in units):
            listed = ", ".join(unit.name for unit in units[:_LISTED])
            raise CompileError(
                f"there are flags for {key!r}, which is no source here and no language of one",
                f"the sources: {listed}{' ...' if len(units) > _LISTED else ''}",
                'keys are languages ("c", "fortran"), names of files, or patterns ("*.f90")',
            )
