"""What device code calls and does not define: a run time per vendor, and NVIDIA's libdevice or ROCm's ocml under it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib import resources
from importlib.util import find_spec
from pathlib import Path

import llvmlite.binding as llvm

from jax_enzyme.cache import DiskCache, digest
from jax_enzyme.classes import dataclass
from jax_enzyme.codegen.gpu import architecture
from jax_enzyme.codegen.gpu.architecture import Target
from jax_enzyme.codegen.host import host
from jax_enzyme.codegen.optimise import retarget
from jax_enzyme.errors import LoweringError
from jax_enzyme.frontends import toolchain
from jax_enzyme.frontends.cuda import compile_cuda
from jax_enzyme.frontends.source import Source
from jax_enzyme.ir.clone import clone_without_debug
from jax_enzyme.ir.native import native_from_bitcode, native_from_text
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.writer import to_text

_FORMAT = "2"
_FILE = "libdevice.10.bc"
_AMD_FILE = "ocml.bc"
_COMPILED_FOR_AMD = (
    "-nogpulib", "-mcode-object-version=5", "-x", "c++", "-std=c++17", "-fno-exceptions", "-fno-math-errno",
    "-ffp-contract=on", "-w", "-Xclang", "-disable-llvm-passes", "-O2", "-S", "-emit-llvm", "{source}", "-o",
    "{output}",
)  # fmt: skip


@dataclass(frozen=True)
class _Library:
    """A vendor's library of mathematics: how its functions are called, its file, and how to get it."""

    prefix: str
    title: str
    file: str
    remedy: str
    find: Callable[[], Path | None]


def complete(native: llvm.ModuleRef, context: llvm.ContextRef, target: Target) -> None:
    """Defines, in place, what a module calls of the run time and of the vendor's library."""
    machine = target.machine()
    _link(native, native_from_text(runtime_text(target), context), machine)
    library = _library(target)
    missing = [f.name for f in native.functions if f.is_declaration and f.name.startswith(library.prefix)]
    if not missing:
        return
    path = library.find()
    if path is None:
        listed = ", ".join(f"`{_plain(n, library)}`" for n in sorted(missing))
        raise LoweringError(
            f"the kernel calls {listed}, which are in {library.title}, and {library.file} is not on this machine",
            remedy=library.remedy,
        )
    _link(native, native_from_bitcode(path.read_bytes(), context), machine)
    if target.vendor == "AMD":  # what ocml asks how to compile
        _link(native, native_from_text(runtime_text(target), context), machine)


def library_path(target: Target) -> Path | None:
    """The vendor's library on this machine."""
    return _library(target).find()


def _library(target: Target) -> _Library:
    if target.vendor == "NVIDIA":
        remedy = "pip install nvidia-nvvm, or set CUDA_HOME to a CUDA toolkit"
        return _Library("__nv_", "NVIDIA's libdevice", _FILE, remedy, libdevice)
    remedy = "apt install rocm-device-libs, or set ROCM_PATH to a ROCm"
    return _Library("__ocml_", "ROCm's device libraries", _AMD_FILE, remedy, device_libraries)


def _plain(name: str, library: _Library) -> str:
    """`sin` of `__nv_sin` and `__ocml_sin_f64`, `sinf` of the others."""
    stem = name.removeprefix(library.prefix)
    return stem.removesuffix("_f64") if not stem.endswith("_f32") else stem.removesuffix("_f32") + "f"


def _link(native: llvm.ModuleRef, library: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
    """LLVM takes what has this linkage only where something refers to it, and nothing that the module defines."""
    library.triple = machine.triple
    library.data_layout = str(machine.target_data)
    for function in library.functions:
        if not function.is_declaration:
            function.linkage = llvm.Linkage.linkonce_odr
    for variable in library.global_variables:
        if not variable.is_declaration and variable.linkage == llvm.Linkage.external:
            variable.linkage = llvm.Linkage.linkonce_odr
    native.link_in(library)


@cache
def runtime_text(target: Target) -> str:
    """The run time for a device as LLVM IR: its own part and `runtime.h`, from the cache if it is there."""
    if target.vendor == "AMD":
        source = Source("c++", "runtime_amd.cpp", _source("runtime_amd.cpp"))
        words = ("clang", f"--target={target.triple}", f"-mcpu={target.arch}", *_COMPILED_FOR_AMD)
        return toolchain.compile_cached(source, toolchain.Recipe(toolchain.zig(), words), ())
    contents = _source("runtime.cu")
    cache = DiskCache.named("library")
    key = digest(_FORMAT, toolchain.zig().version, host().compiler, contents)
    entry = cache.get(key)
    if entry is None:
        module = clone_without_debug(parse(compile_cuda(Source("cuda", "runtime.cu", contents), ())))
        retarget(module, architecture.target(f"sm_{architecture.OLDEST}").machine())
        entry = to_text(module).encode()
        cache.put(key, entry)
    return entry.decode()


def _source(name: str) -> bytes:
    folder = resources.files("jax_enzyme.codegen.gpu")
    return folder.joinpath(name).read_bytes() + folder.joinpath("runtime.h").read_bytes()


def libdevice() -> Path | None:
    """NVIDIA's library of device functions, in a wheel or a toolkit of this machine."""
    return next((path for folder in _folders() if (path := folder / _FILE).is_file()), None)


def device_libraries() -> Path | None:
    """ROCm's library of mathematics for devices, in a ROCm or where Debian has it."""
    roots = [Path(os.environ[name]) for name in ("ROCM_PATH", "HIP_PATH") if os.environ.get(name)]
    roots += sorted(Path("/opt").glob("rocm*"), reverse=True)
    places = [root / "amdgcn" / "bitcode" for root in roots]
    for pattern in ("*/amdgcn/bitcode", "amdgcn/bitcode", "llvm-*/lib/clang/*/amdgcn/bitcode"):
        places += sorted(Path("/usr/lib").glob(pattern), reverse=True)
    return next((path for place in places if (path := place / _AMD_FILE).is_file()), None)


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
