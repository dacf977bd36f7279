"""CUDA, through the clang of the `ziglang` package and a device header of our own: no CUDA toolkit is needed.

What comes out is NVVM IR for no particular lowering: the same program becomes code of the CPU (`transform.cuda`) and of
a GPU. Sources may include the usual headers of C's library and of CUDA; ours stand in for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from jax_enzyme.errors import CompileError
from jax_enzyme.frontends import toolchain
from jax_enzyme.frontends.llvm import read_ir
from jax_enzyme.frontends.source import Source

_INCLUDE = Path(__file__).parent / "cuda_include"
_READ = (
    "clang", "-x", "cuda", "--cuda-device-only", "--cuda-gpu-arch=sm_80", "--cuda-path=/nonexistent", "-nocudainc",
    "-nocudalib", "--cuda-feature=+ptx80", "-std=c++17", "-include", "jax_enzyme_cuda.h", "-iquote", ".", "{flags}",
    "-isystem", str(_INCLUDE), "-isystem", "{builtin}", "-O2",
)  # fmt: skip
_WRITE = (
    "-S", "-emit-llvm", "-Xclang", "-disable-llvm-passes", "-fno-math-errno",
    # Types and names too: for devices clang writes no more than lines otherwise.
    "-g", "-Xclang", "-debug-info-kind=limited", "-fdebug-compilation-dir=.",
    # A kernel gives the same results on every platform: no products and sums are fused behind the source's back.
    "-ffp-contract=off", "-fno-color-diagnostics", "-w", "{source}", "-o", "{output}",
)  # fmt: skip
_LIST = ("-w", "-M", "-MF", "{dependencies}", "{source}")
_TEXT_STARTS = ("; ModuleID", "target datalayout", "target triple", "source_filename")


def compile_cuda(source: Source, flags: Sequence[str]) -> str:
    """The NVVM IR of CUDA C++; NVVM IR itself, as text or bitcode, is taken as it is."""
    if _is_ir(source):
        return read_ir(source, flags)
    if source.function is not None:
        raise CompileError("Numba functions are no CUDA source yet", source.name, "pass CUDA C++ or NVVM IR")
    zig = toolchain.zig()
    builtin = str(Path(zig.command[0]).parent / "lib" / "include")
    read = tuple(word.replace("{builtin}", builtin) for word in _READ)
    recipe = toolchain.Recipe(zig, (*read, *_WRITE), (*read, *_LIST))
    named = source if source.path is not None else replace(source, name="kernel.cu")
    return toolchain.compile_cached(named, recipe, flags)


def _is_ir(source: Source) -> bool:
    if source.contents.startswith((b"BC", b"\xde\xc0")):
        return True
    if source.path is not None and source.path.suffix in (".ll", ".bc"):
        return True
    lines = source.contents.decode(errors="replace").splitlines()
    return any(line.startswith(_TEXT_STARTS) for line in lines[:20])
