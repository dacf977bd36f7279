"""What device code calls and does not define: `runtime.cu`, and NVIDIA's libdevice under it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from functools import cache
from importlib import resources
from importlib.util import find_spec
from pathlib import Path

import llvmlite.binding as llvm

from jax_enzyme.cache import DiskCache, digest
from jax_enzyme.codegen.copying import private_copy
from jax_enzyme.codegen.gpu.architecture import OLDEST, machine
from jax_enzyme.codegen.host import host
from jax_enzyme.codegen.optimise import retarget
from jax_enzyme.errors import LoweringError
from jax_enzyme.frontends import toolchain
from jax_enzyme.frontends.cuda import compile_cuda
from jax_enzyme.frontends.source import Source
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.writer import to_text

_FORMAT = "1"
_FILE = "libdevice.10.bc"


def complete(native: llvm.ModuleRef, context: llvm.ContextRef, machine: llvm.TargetMachine) -> None:
    """Defines, in place, what a module calls of the run time and of libdevice."""
    runtime = llvm.parse_assembly(runtime_text(), context)
    _link(native, runtime, machine)
    missing = [f.name for f in native.functions if f.is_declaration and f.name.startswith("__nv_")]
    if not missing:
        return
    path = libdevice()
    if path is None:
        listed = ", ".join(f"`{n.removeprefix('__nv_')}`" for n in sorted(missing))
        raise LoweringError(
            f"the kernel calls {listed}, which are in NVIDIA's libdevice, and {_FILE} is not on this machine",
            remedy="pip install nvidia-nvvm, or set CUDA_HOME to a CUDA toolkit",
        )
    _link(native, llvm.parse_bitcode(path.read_bytes(), context), machine)


def _link(native: llvm.ModuleRef, library: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
    """LLVM takes what has this linkage only where something refers to it, and nothing that the module defines."""
    library.triple = machine.triple
    library.data_layout = str(machine.target_data)
    for function in library.functions:
        if not function.is_declaration:
            function.linkage = llvm.Linkage.linkonce_odr
    native.link_in(library)


@cache
def runtime_text() -> str:
    """`runtime.cu` as LLVM IR, from the cache if it is there."""
    source = resources.files("jax_enzyme.codegen.gpu").joinpath("runtime.cu").read_bytes()
    cache = DiskCache.named("library")
    key = digest(_FORMAT, toolchain.zig().version, host().compiler, source)
    entry = cache.get(key)
    if entry is None:
        module = private_copy(parse(compile_cuda(Source("cuda", "runtime.cu", source), ())))
        retarget(module, machine(f"sm_{OLDEST}"))
        entry = to_text(module).encode()
        cache.put(key, entry)
    return entry.decode()


def libdevice() -> Path | None:
    """NVIDIA's library of device functions, in a wheel or a toolkit of this machine."""
    return next((path for folder in _folders() if (path := folder / _FILE).is_file()), None)


def _folders() -> Iterator[Path]:
    for name in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(name):
            yield Path(os.environ[name], "nvvm", "libdevice")
    for root in wheels():
        yield from sorted(root.glob("*/nvvm/libdevice"), reverse=True)
    compiler = shutil.which("nvcc")
    if compiler is not None:
        yield Path(compiler).resolve().parent.parent / "nvvm" / "libdevice"
    for root in ("/usr/local", "/opt"):
        for toolkit in sorted(Path(root).glob("cuda*"), reverse=True):
            yield toolkit / "nvvm" / "libdevice"


def wheels() -> Iterator[Path]:
    """The folders in which wheels of NVIDIA's put their files."""
    found = find_spec("nvidia")
    places = list(found.submodule_search_locations or ()) if found is not None else []
    yield from (
        Path(p) for p in dict.fromkeys([*places, *(str(Path(p, "nvidia")) for p in sys.path)]) if Path(p).is_dir()
    )
