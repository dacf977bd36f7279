"""Which modules a Fortran source defines and uses, which files it reads, and in which order sources must be compiled.

module a        defines a.mod          use a            needs a.mod
submodule (a) b defines a-b.mod        submodule (a) b  needs a.mod
include 'c.inc' reads c.inc, beside the source or in a folder that -I names
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from jax_enzyme.classes import dataclass
from jax_enzyme.frontends.source import Source

_DEFINES = re.compile(
    r"^[ \t]*module[ \t]+(?!procedure\b|subroutine\b|function\b|pure\b|elemental\b)(\w+)[ \t]*(?:!.*)?$", re.I | re.M
)
_SUBMODULE = re.compile(r"^[ \t]*submodule[ \t]*\([ \t]*(\w+)[ \t]*(?::[ \t]*(\w+)[ \t]*)?\)[ \t]*(\w+)", re.I | re.M)
_USES = re.compile(
    r"^[ \t]*(?:\d+[ \t]+)?use\b[ \t]*(?:,[ \t]*(\w+)[ \t]*)?(?:::)?[ \t]*(\w+)[ \t]*(?:,|;|!|$)", re.I | re.M
)
_INCLUDES = re.compile(r"^[ \t]*#?[ \t]*include[ \t]*(['\"<])([^'\">\n]+)['\">]", re.I | re.M)
_INTRINSIC = ("iso_", "ieee_", "omp_lib", "__")
_MODULE_PLACES = ("-J", "-module-dir", "-fintrinsic-modules-path")


@dataclass(frozen=True)
class Interface:
    """The module files that a source has compilers write, and those that it needs, without their suffix."""

    defines: frozenset[str]
    needs: frozenset[str]


@dataclass(frozen=True)
class Places:
    """Flags told apart: the folders of `modules` and of `includes`, and the `others`, which name the latter too."""

    modules: tuple[str, ...]
    includes: tuple[str, ...]
    others: tuple[str, ...]


def interface(source: Source) -> Interface:
    """What a source says of modules."""
    text = "\n".join(_statements(source.text))
    defines = {match[1].lower() for match in _DEFINES.finditer(text)}
    needs = {match[2].lower() for match in _USES.finditer(text) if (match[1] or "").lower() != "intrinsic"}
    for match in _SUBMODULE.finditer(text):
        ancestor, parent, name = (word and word.lower() for word in match.groups())
        defines.add(f"{ancestor}-{name}")
        needs.add(f"{ancestor}-{parent}" if parent else ancestor)
    return Interface(frozenset(defines), frozenset(n for n in needs - defines if not n.startswith(_INTRINSIC)))


def _statements(text: str) -> Iterator[str]:
    """The lines of a text, those with several statements taken apart."""
    for line in text.splitlines():
        if ";" in line and line[0] not in "cC*!":
            yield from line.partition("!")[0].split(";")
        else:
            yield line


def folders(flags: Sequence[str]) -> Places:
    """The folders that flags name, with or without a blank behind the flag."""
    modules: list[str] = []
    includes: list[str] = []
    others: list[str] = []
    words = iter(flags)
    for word in words:
        flag = next((f for f in (*_MODULE_PLACES, "-I") if word.startswith(f)), None)
        if flag is None:
            others.append(word)
            continue
        folder = word[len(flag) :].removeprefix("=") or next(words, "")
        if flag == "-I":
            includes.append(folder)
            others.append(f"-I{folder}")
        else:
            modules.append(folder)
    return Places(tuple(modules), tuple(includes), tuple(others))


def read_files(source: Source, places: Places, given: Mapping[str, bytes]) -> list[str] | None:
    """The files that go into a source: what it includes, directly or not, and modules that flags lead to. None where
    one is not found: whoever compiles the source may know of more places."""
    own = source.path.parent if source.path is not None else Path()
    searched = [own, *map(Path, places.includes)]
    found: dict[str, None] = {}
    pending = [source.text]
    while pending:
        for match in _INCLUDES.finditer(pending.pop()):
            file = _first(searched, match[2])
            if file is None:
                return None
            if str(file) not in found:
                found[str(file)] = None
                pending.append(file.read_text(errors="replace"))
    for name in sorted(interface(source).needs):
        if f"{name}.mod" not in given:
            file = module_file(name, places)
            if file is None:
                return None
            found[str(file)] = None
    return [str(Path(file).absolute()) for file in found]


def module_file(name: str, places: Places) -> Path | None:
    """The file of a module that flags lead to."""
    return _first([Path(), *map(Path, (*places.includes, *places.modules))], f"{name}.mod")


def _first(folders: Sequence[Path], name: str) -> Path | None:
    return next((folder / name for folder in folders if (folder / name).is_file()), None)


def circle(needs: Mapping[str, Sequence[str]]) -> list[str]:
    """A way from something through what it needs back to itself; empty where there is none."""
    done: set[str] = set()
    for start in needs:
        way: list[str] = []
        if found := _way_back(start, needs, way, done):
            return found
    return []


def _way_back(name: str, needs: Mapping[str, Sequence[str]], way: list[str], done: set[str]) -> list[str]:
    if name in way:
        return way[way.index(name) :]
    if name in done:
        return []
    way.append(name)
    for needed in needs.get(name, ()):
        if found := _way_back(needed, needs, way, done):
            return found
    way.pop()
    done.add(name)
    return []
