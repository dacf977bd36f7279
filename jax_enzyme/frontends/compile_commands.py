"""Files, flags and definitions from `compile_commands.json`, as CMake, Meson and Bear write it.

Of a command is kept what says something about the meaning of a source: where its headers lie, what is defined, which
standard it is in, how large its integers are. What says how to make code of it (levels of optimisation, processors,
debug information, warnings) is not.
"""

from __future__ import annotations

import difflib
import json
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jax_enzyme.classes import dataclass
from jax_enzyme.errors import CompileError

NAME = "compile_commands.json"
_WITH_FOLDER = ("-I", "-isystem", "-iquote", "-idirafter", "-include", "-imacros", "-J", "-module-dir")
_WITH_WORD = ("-D", "-U", "-x")
_KEPT = (
    "-std=", "-ansi", "-fopenmp", "-ffast-math", "-fno-fast-math", "-ffinite-math-only", "-fsigned-char",
    "-funsigned-char", "-fno-signed-char", "-fshort-enums", "-fwrapv", "-fno-strict-aliasing", "-fcommon",
    "-fno-common", "-ffp-contract=", "-fgnu89-inline", "-ffixed-form", "-ffree-form", "-ffixed-line-length",
    "-fdefault-", "-fcray-pointer", "-fbackslash", "-fimplicit-none", "-flarge-sizes", "-fno-exceptions",
    "-fno-rtti", "-cpp",
)  # fmt: skip
_RENAMED = {"-ffixed-line-length-none": "-ffixed-line-length=0", "-ffixed-line-length-132": "-ffixed-line-length=132"}
_SEPARATE = frozenset(("-o", "-MF", "-MT", "-MQ", "-arch", "-target", "-Xclang", "-mllvm", "-Xlinker"))

Ways = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Commands:
    """`path` is the file; `ways` the flags of each source, by its absolute name: as often as they differ."""

    path: Path
    ways: Mapping[str, Ways]

    def sources(self) -> list[str]:
        """All files that it names. CompileError where one is not there."""
        gone = next((name for name in self.ways if not os.path.isfile(name)), None)
        if gone is not None:
            raise CompileError(
                f"{NAME} names a file that is not there: {gone}",
                str(self.path),
                "build the project, if that makes it; or name the sources as well, beside compile_commands=",
            )
        return list(self.ways)

    def of(self, source: Path) -> Ways:
        """The flags of a source, in each way that it is compiled. CompileError where it is not there."""
        name = os.path.realpath(source)
        if name in self.ways:
            return self.ways[name]
        names = {os.path.basename(known): known for known in reversed(list(self.ways))}
        near = [names[one] for one in difflib.get_close_matches(source.name, list(names), 3, 0.8)]
        raise CompileError(
            f"{NAME} names no such file: {source}",
            str(self.path),
            f"did you mean {', '.join(near)}?"
            if near
            else f"it names {len(self.ways)} files: build the target of this one; or name both as sources, without "
            f'compile_commands=: ["{self.path}", "{source.name}"]',
        )


def read_commands(path: Path) -> Commands:
    """What a file, or the one in a build folder, says. CompileError where it is not there or makes no sense."""
    file = path / NAME if path.is_dir() else path
    try:
        entries = json.loads(file.read_text())
    except OSError as error:
        raise CompileError(
            f"{NAME} cannot be read: {error.strerror or error}",
            str(file),
            "cmake -DCMAKE_EXPORT_COMPILE_COMMANDS=ON and `bear -- make` write it; meson does always",
        ) from None
    except ValueError as error:
        raise CompileError(f"this is no JSON: {error}", str(file)) from None
    if not isinstance(entries, list):
        raise CompileError(f"{NAME} is a list of commands, and this is none", str(file))
    if not entries:
        raise CompileError(f"{NAME} names no file", str(file), "configure the project with what it builds switched on")
    found: dict[str, dict[tuple[str, ...], None]] = {}
    for entry in entries:
        name, flags = _entry(entry, file)
        found.setdefault(name, {})[flags] = None
    return Commands(file, {name: tuple(ways) for name, ways in found.items()})


def _entry(entry: Any, path: Path) -> tuple[str, tuple[str, ...]]:
    try:
        folder, file = str(entry["directory"]), str(entry["file"])
        words = entry["arguments"] if "arguments" in entry else shlex.split(entry["command"])
    except KeyError as error:
        raise CompileError(f"an entry of {NAME} has no {error}: {json.dumps(entry)}", str(path)) from None
    except (TypeError, ValueError) as error:
        raise CompileError(f"an entry of {NAME} makes no sense: {error!r}", str(path)) from None
    name = os.path.realpath(os.path.join(folder, file))
    try:
        told = list(_with_responses([str(word) for word in words[1:]], folder))
    except (OSError, ValueError) as error:
        raise CompileError(
            f"the command for {name} has a response file that cannot be read: {error}",
            str(path),
            "build the project, if that makes it",
        ) from None
    return name, tuple(_meaning(told, folder))


def _with_responses(words: Sequence[str], folder: str) -> Iterator[str]:
    """The words of a command, with those of the files for which `@file` stands."""
    for word in words:
        if word.startswith("@"):
            yield from shlex.split(Path(folder, word[1:]).read_text())
        else:
            yield word


def _meaning(words: Sequence[str], folder: str) -> Iterator[str]:
    rest = iter(words)
    for word in rest:
        if word in _SEPARATE:
            next(rest, None)
            continue
        place = next((flag for flag in _WITH_FOLDER if word.startswith(flag)), None)
        if place is not None:
            named = word[len(place) :].removeprefix("=") or next(rest, "")
            there = _joined(place, folder, named)
            yield from [f"{place}{there}"] if place in ("-I", "-J") else [place, there]
            continue
        flag = next((flag for flag in _WITH_WORD if word.startswith(flag)), None)
        if flag is not None:
            value = word[len(flag) :] or next(rest, "")
            if flag != "-x":
                yield f"{flag}{value}"
        elif word.startswith(_KEPT):
            yield _RENAMED.get(word, word)


def _joined(flag: str, folder: str, name: str) -> str:
    """A name as it is seen from anywhere. Headers that are included by name alone are looked for in folders first."""
    there = os.path.normpath(os.path.join(folder, name))
    return there if flag not in ("-include", "-imacros") or os.path.exists(there) else name
