"""CUDA, through the clang of the `ziglang` package and a device header of our own: no CUDA toolkit is needed.

With `flags=("--cuda-path=/usr/local/cuda",)` a toolkit's own headers are read instead; clang's part of these comes from
an installed clang, as the `ziglang` package has none.

What comes out is NVVM IR for no particular lowering: the same program becomes code of the CPU (`transform.cuda`) and of
a GPU. Sources may include the usual headers of C's library and of CUDA; ours stand in for them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from jax_enzyme.analysis.tbaa import draw_no_conclusions
from jax_enzyme.cache import DiskCache, digest
from jax_enzyme.errors import CompileError
from jax_enzyme.frontends import toolchain
from jax_enzyme.frontends.clang import LIST_HEADERS
from jax_enzyme.frontends.launch_brackets import joined
from jax_enzyme.frontends.llvm import read_ir
from jax_enzyme.frontends.read_ahead import included, read_ahead
from jax_enzyme.frontends.source import Source
from jax_enzyme.frontends.system_headers import system_headers
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import linking
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Module, callee_name, declare
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.writer import to_text
from jax_enzyme.own_sources import own_digest

_INCLUDE, _FIRST = Path(__file__).parent / "cuda_include", "jax_enzyme_cuda.h"
# Complex products and quotients as Thrust has them, without a search for infinities in what is not a number.
_DEVICE = ("--cuda-device-only", "--cuda-gpu-arch=sm_80", "--cuda-feature=+ptx80", "-fcomplex-arithmetic=improved")
_HOST = ("--cuda-host-only",)
_RELOCATABLE = "-fgpu-rdc"
_EXTERNAL = re.compile(r"__(?:intern|static)__[0-9a-f]{1,16}\b")
"""What stands behind the name of a static kernel then: a number of the file, without zeros in front."""
_READ = (
    "--cuda-path=/nonexistent", "-nocudainc", "-nocudalib", "-Xclang", "-target-sdk-version=12.9", "-std=c++17",
    "{ahead}", "-iquote", ".", "{flags}", "-nostdinc", "-isystem", str(_INCLUDE), "{system}",
    "-O2",
)  # fmt: skip
_READ_TOOLKIT = (
    "-nocudalib", "-Wno-unknown-cuda-version", "-Xclang", "-target-sdk-version=12.9", "-std=c++17",
    "-resource-dir", "{resources}", "-isystem", "{toolkit}/include/cccl",
    "-isystem", str(_INCLUDE.parent / "cuda_toolkit"), "-iquote", ".", "{flags}", "-O2",
)  # fmt: skip
_TOOLKIT = "--cuda-path="
_RESOURCES = "llvm-*/lib/clang/*/include/__clang_cuda_runtime_wrapper.h"
_WRITE = (
    "-S", "-emit-llvm", "-Xclang", "-disable-llvm-passes", "-fno-math-errno",
    # Types and names too: for devices clang writes no more than lines otherwise.
    "-g", "-Xclang", "-debug-info-kind=limited", "-fdebug-compilation-dir=.",
    # Of host functions, as `clang.py` has it.
    "-fno-stack-protector", "-fomit-frame-pointer",
    # As clang does for C: a product and a sum of one expression are fused where the processor can, on every platform.
    "-ffp-contract=on", "-fno-color-diagnostics", "-w",
    # What nvcc takes with a warning.
    "-Wno-register", "-Wno-c++11-narrowing", "-Wno-reserved-user-defined-literal",
    "{source}", "-o", "{output}",
)  # fmt: skip
_LIBRARY = re.compile(r"cublas(?:I?[SD](?!et|es)[a-z]|[GS]et(?:Vector|Matrix))|cufftExec|cusolverDn[SD](?!et|es)[a-z]")
"""What computes in libraries, or copies for them."""
_REWRITTEN, _OVERLAY = "launches.cu", "launches.yaml"
_TEXT_STARTS = ("; ModuleID", "target datalayout", "target triple", "source_filename")


def compile_cuda(source: Source, flags: Sequence[str]) -> str:
    """The NVVM IR of CUDA C++; NVVM IR itself, as text or bitcode, is taken as it is."""
    if _is_ir(source):
        return read_ir(source, flags)
    return _EXTERNAL.sub("", _compiled(source, flags, _DEVICE))


def compile_cuda_host(source: Source, flags: Sequence[str]) -> str | None:
    """The IR of the host functions of CUDA C++, in which a launch is a call of `cudaLaunchKernel`. None for a source
    that has none, NVVM IR."""
    return None if _is_ir(source) else _compiled(source, flags, _HOST)


def _as_meant(text: str) -> str:
    """CUDA programs read and write memory as other types than its own (`*(int4 *)&tile[i]`), and nvcc takes them as
    meant. In the disk cache: that takes as long as all else of a warm start."""
    cache, key = DiskCache.named("meant"), digest(own_digest(), text)
    entry = cache.get(key)
    if entry is not None:
        return entry.decode()
    module = parse(linking.without_imports(text))
    draw_no_conclusions(module)
    _ask_whether_captured(module)
    meant = to_text(module)
    cache.put(key, meant.encode())
    return meant


def _ask_whether_captured(module: Module) -> None:
    """In front of what libraries do at once stands a call that fails while a stream captures, in place."""
    kind = T.FunctionType(T.VOID, ())
    for function in list(module.functions.values()):
        for block in function.blocks:
            for call in [i for i in block.instructions if _LIBRARY.match(callee_name(i))]:
                asked = I.Call(T.VOID, "call", [declare(module, "__je_done_at_once", kind, ("nounwind",))], kind)
                asked.metadata = [(name, node) for name, node in call.metadata if name == "dbg"]
                block.instructions.insert(block.instructions.index(call), asked)


def _compiled(source: Source, flags: Sequence[str], side: Sequence[str]) -> str:
    try:
        return _compiled_by(source, flags, side)
    except CompileError as error:
        if _RELOCATABLE not in str(error) or _RELOCATABLE in side:
            raise
        # A kernel that launches another one: what is wanted may have nothing to do with it.
        return _compiled_by(source, flags, (*side, _RELOCATABLE))


def _compiled_by(source: Source, flags: Sequence[str], side: Sequence[str]) -> str:
    if source.function is not None:
        raise CompileError("a Python function is compiled for a signature", source.name, "pass it to je.kernel")
    zig = toolchain.zig()
    read = ("clang", "-x", "cuda", *side, *_reading(flags))
    write = (*LIST_HEADERS, *_WRITE)
    # With a user's flags headers may be others.
    ahead = partial(included, _FIRST) if flags else partial(read_ahead, zig, (*read, *write), _FIRST, source.lang)
    named = source if source.path is not None else replace(source, name="kernel.cu")
    text, given = joined(source.text), dict[str, bytes]()
    if text != source.text and source.path is not None:
        given = {_REWRITTEN: text.encode(), _OVERLAY: _overlay(source.path.resolve())}
        read = (*read, "-ivfsoverlay", f"{{folder}}/{_OVERLAY}")
    elif text != source.text:
        named = replace(named, contents=text.encode())
    recipe = toolchain.Recipe(zig, (*read, *write), ahead=ahead)
    return _as_meant(toolchain.compile_beside(named, recipe, flags, given, ())[0])


def _overlay(path: Path) -> bytes:
    """Has clang read another file, which lies beside this one, in the place of a source."""
    entry = {"name": str(path), "type": "file", "external-contents": _REWRITTEN}
    return json.dumps({"version": 0, "overlay-relative": True, "use-external-names": False, "roots": [entry]}).encode()


def _reading(flags: Sequence[str]) -> tuple[str, ...]:
    """The arguments by which clang reads a source: with our headers, or with those of the toolkit that a flag names."""
    toolkit = next((flag.removeprefix(_TOOLKIT) for flag in flags if flag.startswith(_TOOLKIT)), None)
    if toolkit is None:
        at = _READ.index("{system}")
        return (*_READ[:at], *system_headers(), *_READ[at + 1 :])
    if not (Path(toolkit) / "include" / "cuda_runtime.h").is_file():
        raise CompileError(
            f"there is no CUDA toolkit in {toolkit}: it has no include/cuda_runtime.h",
            f"flags=({_TOOLKIT + toolkit!r},)",
            "name the folder that has it, or leave the flag out: headers of our own are there",
        )
    found = sorted(Path("/usr/lib").glob(_RESOURCES), key=_version)
    if not found:
        raise CompileError(
            "a toolkit's headers need those of clang, `__clang_cuda_runtime_wrapper.h` and its like, and none are here",
            f"looked for /usr/lib/{_RESOURCES}",
            "apt install libclang-common-22-dev, or leave --cuda-path out",
        )
    places = {"{resources}": str(found[-1].parent.parent), "{toolkit}": toolkit}
    words = _READ_TOOLKIT
    for name, value in places.items():
        words = tuple(word.replace(name, value) for word in words)
    return words


def _version(path: Path) -> int:
    """Of clang: the folder above `include`."""
    number = path.parent.parent.name.split(".")[0]
    return int(number) if number.isdigit() else 0


def _is_ir(source: Source) -> bool:
    if source.contents.startswith((b"BC", b"\xde\xc0")):
        return True
    if source.path is not None and source.path.suffix in (".ll", ".bc"):
        return True
    lines = source.contents.decode(errors="replace").splitlines()
    return any(line.startswith(_TEXT_STARTS) for line in lines[:20])
