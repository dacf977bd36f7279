"""Says of a header or module that a compiler did not find where it was looked for, and where there is one; of a
function that no header declares whether the C library has it; of a source in another language which that is; and of a
part of another source, which does not compile by itself, which source includes it."""

from __future__ import annotations

import ctypes
import os
import re
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path

from jax_enzyme.errors import CompileError
from jax_enzyme.frontends.gathering import Unit

_MISSING = re.compile(
    r"fatal error: '(?P<c>[^']+)' file not found|Source file '(?P<fortran>[^']+)' was not found"
    r"|Cannot parse module file for module '(?P<module>[^']+)': Source file"
)
_UNDECLARED = re.compile(r"call to undeclared (?:library )?function '(\w+)'")
_OLD = "[-Wimplicit-"
"""In errors about what C has declared by itself before 1999: functions, and all that has no type."""
_OLD_REMEDY = "this may be C from before 1999, where such things are int: flags={'c': ('-std=gnu89',)}"
_UNKNOWN = re.compile(r"error: (?:unknown type name|use of undeclared identifier) '")
_INCLUDING = (".c", ".cc", ".cpp", ".cxx", ".cu")
_MOST_BYTES = 1 << 20
"""Longer files are not looked through for what they include."""
_OTHER_LANGUAGE = {
    "c++": re.compile(r"unknown type name '(?:class|namespace|template|using|constexpr)'|'[a-z_]+' file not found"),
    "fortran": re.compile(r"unknown type name '(?:subroutine|function|module|program)'", re.IGNORECASE),
}
"""What C's compiler says of what is no C."""
_MAX_FOLDERS = 400
_LISTED = 6
_OF_A_PROJECT = tuple(".git configure configure.ac pyproject.toml setup.py PKG-INFO fpm.toml LICENSE COPYING".split())
"""What lies in the folder of a whole project."""
_TEMPLATES = (".in", ".cmake", ".in.cmake", ".cmake.in")
"""Behind the name of a header that configure, CMake or Meson makes: what they make it of."""


def with_advice(error: CompileError, unit: Unit, units: Sequence[Unit]) -> CompileError:
    """The error, with what is known of a file or a declaration that is missing. Others stay as they are."""
    other = (lang for lang, said in _OTHER_LANGUAGE.items() if unit.source.lang == "c" and said.search(error.cause))
    if lang := next(other, None):
        return CompileError(error.cause, error.place, f'this looks like another language: lang="{lang}"')
    match = _MISSING.search(error.cause)
    if match is None:
        return _with_extensions(error, unit)
    if name := match["module"]:
        cause = f"{unit.name} uses the module `{name}`, which none of the sources defines, and there is no {name}.mod"
        remedy = "add the file that has it to the sources, or name the folder of its .mod file: flags=('-Ifolder',)"
        return CompileError(f"{cause}\n{error.cause}", error.place, remedy)
    name = match["c"] or match["fortran"]
    including = _including(error, unit)
    near = [os.path.dirname(str(file)) or "." for file in (including or unit.name, unit.name)]
    searched = list(dict.fromkeys([*near, *_include_folders(unit.flags)]))
    more = f" and {len(searched) - _LISTED} more" if len(searched) > _LISTED else ""
    cause = f"{including or unit.name} includes {name}, which is in none of the folders: "
    cause += f"{', '.join(searched[:_LISTED])}{more}"
    unmade = (folder for folder in searched if _template(folder, name))
    paths = [path for path in (including, *(one.source.path for one in (unit, *units))) if path is not None]
    found = list(dict.fromkeys((*_of_python(name), *unmade, *_folders_with(name, paths))))
    template = _template(found[0], name) if found else None
    there = [folder for folder in found if not _template(folder, name)]
    if template:
        made = f", or that of one that is there, in {' or '.join(there)}" if there else ""
        remedy = (
            f"configure or CMake makes it of {template}: name the folder of what it made{made}: flags=('-Ifolder',)"
        )
    elif found:
        remedy = f"it is in {' and '.join(there)}: flags=('-I{found[0]}',)"
    else:
        remedy = f"name the folder that {name} is in: flags=('-Ifolder',)"
    return CompileError(f"{cause}\n{error.cause}", error.place, remedy)


def _including(error: CompileError, unit: Unit) -> Path | None:
    """The file that includes what is missing, where it is not the source itself but another that that includes."""
    file = Path(re.sub(r"(:\d+)+$", "", error.place or ""))
    is_source = unit.source.path is not None and os.path.realpath(file) == os.path.realpath(unit.source.path)
    return file if file.is_file() and not is_source else None


def _with_extensions(error: CompileError, unit: Unit) -> CompileError:
    """Advice for functions that glibc declares only to those who ask for them, and for C as it was before 1999."""
    match = _UNDECLARED.search(error.cause)
    remedies: list[str] = []
    if match is not None and hasattr(ctypes.CDLL(None), match[1]):
        remedies.append(
            f"the C library has `{match[1]}`: include its header, and where that declares it as an extension only, "
            "flags=('-D_GNU_SOURCE',)"
        )
    if _OLD in error.cause:
        remedies.append(_OLD_REMEDY)
    return CompileError(error.cause, error.place, "; or ".join(remedies)) if remedies else _with_whole(error, unit)


def _with_whole(error: CompileError, unit: Unit) -> CompileError:
    """Advice for a file that other sources include, and that needs what stands in front of it there."""
    path = unit.source.path
    if path is None or not _UNKNOWN.search(error.cause):
        return error
    includes = re.compile(rf'^[ \t]*#[ \t]*include[ \t]*[<"](?:[^<>"\n]*/)?{re.escape(path.name)}[">]', re.MULTILINE)
    beside = [p for folder in (path.parent, path.parent.parent) for p in sorted(folder.glob("*")) if p != path]
    sources = [p for p in beside[:_MAX_FOLDERS] if p.suffix in _INCLUDING and p.stat().st_size < _MOST_BYTES]
    whole = [os.path.relpath(p) for p in sources if includes.search(p.read_text(errors="replace"))]
    if not whole:
        return error
    cause = f"{unit.name} is included by {' and '.join(whole[:_LISTED])}, and needs what stands in front of it there"
    return CompileError(f"{cause}\n{error.cause}", error.place, f"give the whole source: je.kernel({whole[0]!r}, ...)")


def _template(folder: str, name: str) -> str | None:
    """What a file in a folder is made of when the sources are configured, where it is not there itself."""
    names = [*(name + ending for ending in ("", *_TEMPLATES)), f"{os.path.splitext(name)[0]}.in"]
    paths = [os.path.join(folder, one) for one in names]
    found = next((path for path in paths if os.path.isfile(path)), None)
    return found if found != paths[0] else None


def _of_python(name: str) -> Iterator[str]:
    """Where this Python keeps its headers."""
    folder = sysconfig.get_paths()["include"]
    if (Path(folder) / name).is_file():
        yield folder


def _include_folders(flags: Sequence[str]) -> Iterator[str]:
    words = iter(flags)
    for word in words:
        if word in ("-I", "-isystem", "-iquote", "-idirafter"):
            yield next(words, "")
        elif word.startswith("-I"):
            yield word[2:]


def _upwards(folder: Path) -> Iterator[Path]:
    """A folder and two above it, within its project."""
    for up in ("", "..", "../.."):
        yield folder / up
        if any((folder / up / mark).exists() for mark in _OF_A_PROJECT):
            return


def _folders_with(name: str, paths: Sequence[Path]) -> Iterator[str]:
    """Folders near some files, those near the first one first, from which a name leads to a file, or to what one is
    made of. What lies above the folder of a whole project is not near."""
    parents = list(dict.fromkeys(path.parent for path in paths))
    seen: set[str] = set()
    above = [up for parent in parents for up in _upwards(parent)]
    for root in dict.fromkeys([*(up for parent in parents[:1] for up in _upwards(parent)), *parents, *above]):
        for folder, below, _ in os.walk(root):
            below[:] = [b for b in sorted(below) if b[0] != "." and os.path.realpath(f"{folder}/{b}") not in seen]
            seen.add(os.path.realpath(folder))
            if len(seen) > _MAX_FOLDERS:
                return
            if (Path(folder) / name).is_file() or _template(folder, name):
                yield os.path.relpath(folder) if not os.path.isabs(root) else os.path.normpath(folder)
