"""Finds compilers, runs them, and keeps what they made in the disk cache."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from pathlib import Path

from jax_enzyme.cache import DiskCache, digest
from jax_enzyme.classes import dataclass
from jax_enzyme.errors import CompileError
from jax_enzyme.frontends.processes import run
from jax_enzyme.frontends.source import Source
from jax_enzyme.working import LOG, working

CACHE = "ir"
_FORMAT = "5"
"""Changes whenever the same source would give other IR for a reason that is not in the key."""

_HEADER_VARIABLES = ("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH")


@dataclass(frozen=True)
class Tool:
    """A compiler: the words that start it, and a version to key caches with."""

    command: tuple[str, ...]
    version: str


@lru_cache(maxsize=1)
def zig() -> Tool:
    """The clang inside the `ziglang` package: C and C++ without anything but pip."""
    spec = importlib.util.find_spec("ziglang")
    if spec is None or spec.origin is None:
        raise CompileError(
            "no compiler for C and C++: the package ziglang is not installed", None, "pip install ziglang"
        )
    binary = Path(spec.origin).parent / ("zig.exe" if os.name == "nt" else "zig")
    if not binary.exists():
        raise CompileError("the package ziglang has no zig program in it", str(binary), "pip install --force ziglang")
    return Tool((str(binary),), f"ziglang {importlib.metadata.version('ziglang')}")


@lru_cache(maxsize=8)
def program(names: tuple[str, ...], purpose: str, remedy: str) -> Tool:
    """The first of these programs that is on the path."""
    for name in names:
        found = shutil.which(name)
        if found is not None:
            answer = subprocess.run([found, "--version"], capture_output=True, text=True, check=False)
            return Tool((found,), answer.stdout)
    raise CompileError(f"no compiler for {purpose}: {' or '.join(names)} is not on the path", None, remedy)


Files = Mapping[str, bytes]
"""Contents by name, of files that compilers write for one another."""


@dataclass(frozen=True)
class Ahead:
    """What a compiler is told of headers that come before a source: words, the files in its folder that they name, and
    the headers that these were made of."""

    words: tuple[str, ...]
    files: Files
    reads: Sequence[str]


@dataclass(frozen=True)
class Recipe:
    """How to call a compiler. Words of `compile` may hold `{source}`, `{folder}` (a temporary one) and `{output}`, the
    IR's file; the word `{flags}` stands for the user's flags. The files that the compiler read it writes to
    `{dependencies}`, as a Makefile rule, or to `{headers}`, one a line, or nowhere.

    Where no word has `{output}`, it writes no IR, which is empty then.

    `finish` does to the IR what is left to do, and `version` says in which way. `keeps` is the suffix of files that the
    compiler writes besides into `{folder}`. `ahead` makes what the word `{ahead}` stands for, where something has to be
    compiled; the IR does not depend on that.
    """

    tool: Tool
    compile: tuple[str, ...]
    finish: Callable[[str], str] | None = None
    version: str = ""
    keeps: str | None = None
    ahead: Callable[[], Ahead] | None = None


def compile_cached(source: Source, recipe: Recipe, flags: Sequence[str]) -> str:
    """The IR text that a compiler writes for a source, from the cache if nothing changed that it was made of."""
    return compile_beside(source, recipe, flags, {}, ())[0]


def compile_beside(
    source: Source, recipe: Recipe, flags: Sequence[str], given: Files, reads: Sequence[str] | None
) -> tuple[str, Files]:
    """The same with the files that the compiler finds in its folder, and with those that it `keeps` there. `reads` are
    files that go into the IR besides those that the recipe lists, None where nobody knows: nothing is cached then."""
    cacheable = reads is not None
    cache = DiskCache.named(CACHE)
    environment = [f"{name}={os.environ.get(name, '')}" for name in _HEADER_VARIABLES]
    words = (recipe.tool.version, *recipe.tool.command, *recipe.compile, recipe.version, *flags, *environment)
    beside = [part for name, contents in sorted(given.items()) for part in (name, contents)]
    key = digest(_FORMAT, *words, source.name, os.getcwd(), source.contents, *beside)
    entry = cache.get(key) if cacheable else None
    if entry is not None and (found := unpack(entry)) is not None:
        LOG.info("%s is in the disk cache", source.name)
        return found
    with (
        working(f"compiling {source.name}"),
        # A compiler that was interrupted may still be writing.
        tempfile.TemporaryDirectory(prefix="jax_enzyme-", ignore_cleanup_errors=True) as name,
    ):
        folder = Path(name)
        path = source.path
        if path is None or source.part:
            path = folder / Path(source.name).name
            path.write_bytes(source.contents)
        ahead = Ahead((), {}, ()) if recipe.ahead is None else recipe.ahead()
        for file, contents in (*given.items(), *ahead.files.items()):
            (folder / file).write_bytes(contents)
        output, rule, listing = folder / "output.ll", folder / "output.d", folder / "output.headers"
        places = {"source": path, "output": output, "folder": folder, "dependencies": rule, "headers": listing}
        words = [*recipe.tool.command]
        several = {"{flags}": flags, "{ahead}": [word.format(**places) for word in ahead.words]}
        for word in recipe.compile:
            words.extend(several[word] if word in several else [word.format(**places)])
        _run(source, words, folder)
        writes = any("{output}" in word for word in recipe.compile)
        ir = portable(_without_folder(output.read_text(), folder)) if writes else ""
        headers = [
            *(os.path.abspath(name) for name in dependencies(rule) if name != str(path)),
            *_read(listing),
            *(reads or ()),
            *ahead.reads,
        ]
        kept: dict[str, bytes] = {}
        if recipe.keeps is not None:
            written = (file for file in folder.glob(f"*{recipe.keeps}") if file.name not in given)
            kept = {file.name: file.read_bytes() for file in sorted(written)}
    if recipe.finish is not None:
        ir = recipe.finish(ir)
    if cacheable:
        cache.put(key, pack(ir, headers, kept))
    return ir, kept


def _run(source: Source, command: Sequence[str], folder: Path) -> None:
    try:
        result = run(command, folder)
    except OSError as error:
        raise CompileError(f"the compiler cannot be started: {error}", command[0]) from None
    if result.returncode:
        message = result.stderr.replace(f"{folder}{os.sep}", "")
        lines = [line for line in message.splitlines() if not line.startswith("zig: warning:")]
        first = next((m for line in lines if (m := re.match(r"(.+?:\d+(?::\d+)?): (?:fatal )?error", line))), None)
        raise CompileError(
            f"the {source.lang} source does not compile:\n" + "\n".join(lines),
            first[1] if first else source.name,
            "the compiler's own message is above; further flags go into flags=(...)",
        )


def portable(ir: str) -> str:
    """The IR without the CPU that a compiler wrote on every function (whoever runs the code decides), and without the
    versions of kernel and libc that zig writes into the triple."""
    ir = re.sub(r' "(?:target-cpu|target-features|tune-cpu)"="[^"]*"', "", ir)
    if emptied := re.findall(r"^attributes #(\d+) = \{ *\}\n", ir, re.M):
        # LLVM does not read a group without attributes.
        ir = re.sub(r"^attributes #\d+ = \{ *\}\n", "", ir, flags=re.M)
        reference = re.compile(rf" #(?:{'|'.join(emptied)})(?=[\s,])")
        lines = (line if line.startswith("@") else reference.sub("", line) for line in ir.splitlines(keepends=True))
        ir = "".join(lines)
    return re.sub(r'^(target triple = "[^"]*-linux)[\d.]*(-\w+?)[\d.]*"$', r'\1\2"', ir, count=1, flags=re.M)


def _without_folder(ir: str, folder: Path) -> str:
    """The IR without the name of a temporary folder, which differs from run to run: not in debug information, nor in
    strings (`__FILE__`, the places that Fortran's run time reports), nor in names that are digests of such strings."""
    prefix = f"{folder}{os.sep}"
    renamed: dict[str, str] = {}

    def shorter(match: re.Match[str]) -> str:
        name, between, length, text = match.groups()
        if prefix not in text:
            return match[0]
        short = text.replace(prefix, "")
        if digested := re.fullmatch(r"(_QQclX)[0-9a-fA-F]+", name):
            renamed[name] = digested[1] + digest(short)[:32]
        return f'@{name}{between}[{int(length) - len(prefix) * text.count(prefix)} x i8] c"{short}"'

    ir = re.sub(r'^@([-\w.$]+)( = [^\[\n]*)\[(\d+) x i8\] c"([^"\n]*)"', shorter, ir, flags=re.M)
    if renamed:
        ir = re.sub(r"_QQclX[0-9a-fA-F]+\b", lambda m: renamed.get(m[0], m[0]), ir)
    return ir.replace(prefix, "").replace(str(folder), ".")


def dependencies(rule: Path) -> list[str]:
    """The files that the rules of a Makefile list, each once."""
    try:
        lines = rule.read_text().replace("\\\n", " ").splitlines()
    except OSError:
        return []
    listed = " ".join(line.partition(": ")[2] for line in lines if not line.startswith("#"))
    names = [name.replace("\\ ", " ").replace("$$", "$") for name in re.findall(r"(?:\\ |\S)+", listed)]
    return list(dict.fromkeys(names))


def listed(text: str) -> list[str]:
    """The files that a list has, one a line, each once."""
    return [os.path.abspath(name) for name in dict.fromkeys(text.splitlines())]


def _read(listing: Path) -> list[str]:
    try:
        return listed(listing.read_text())
    except OSError:
        return []


def _file_digest(path: str) -> str:
    try:
        return digest(Path(path).read_bytes())
    except OSError:
        return ""


def pack(ir: str, headers: Sequence[str], kept: Files) -> bytes:
    """The entry of a cache: IR, the files that go into it, and those that were written beside it."""
    manifest = [[path, _file_digest(path)] for path in headers]
    sizes = [[name, len(contents)] for name, contents in kept.items()]
    return b"".join((json.dumps([manifest, sizes]).encode(), b"\n", *kept.values(), ir.encode()))


def unpack(entry: bytes) -> tuple[str, Files] | None:
    """The IR of an entry and the files beside it, or None if a header that went into it is not what it was."""
    head, _, contents = entry.partition(b"\n")
    manifest, sizes = json.loads(head)
    if any(_file_digest(path) != known for path, known in manifest):
        return None
    *ends, behind = accumulate((size for _, size in sizes), initial=0)
    files = {name: contents[at : at + size] for at, (name, size) in zip(ends, sizes, strict=True)}
    return contents[behind:].decode(), files
