"""A library in the place of a vendor's driver, whose launches run on the CPU: the entry of the very module that
code was made of (batch, pointers and all) is lowered for the grid that is launched, and called with the launch's
parameters."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from jax_enzyme.codegen.gpu import derived
from jax_enzyme.codegen.gpu.architecture import OLDEST, target
from jax_enzyme.codegen.gpu.entry import add_entries
from jax_enzyme.codegen.gpu.vector_adds import add_vectors
from jax_enzyme.codegen.host import host, target_machine
from jax_enzyme.codegen.loading import Built
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction, Buffer
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import clone_without_debug
from jax_enzyme.ir.module import Function as IRFunction
from jax_enzyme.ir.passes import inline_everything
from jax_enzyme.ir.values import Argument, BasicBlock
from jax_enzyme.primitives import compat, directions
from jax_enzyme.rules.helpers import link
from jax_enzyme.signature.launch import Shape
from jax_enzyme.transform.cuda.lower import lower
from jax_enzyme.xla_ffi import _ext, gpu
from jax_enzyme.xla_ffi.call import Batch
from jax_enzyme.xla_ffi.function import Function, Specialised
from jax_enzyme.xla_ffi.recipe import decode
from jax_enzyme.xla_ffi.registration import COUNTED
from tests.support import native
from tests.support.unoptimised import unoptimised

SOURCE = Path(__file__).parents[1] / "cuda" / "stand_in_driver.cpp"
_GRID = "je.grid"
TARGET = "jax_enzyme_cuda_on_host"
_RUN = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_char_p,
    ctypes.POINTER(ctypes.c_uint),
    ctypes.POINTER(ctypes.c_void_p),
)


class StandIn:
    """The library, loaded in the place of a vendor's driver, and the handler registered for the CPU."""

    def __init__(self, folder: Path, *, amd: bool = False) -> None:
        name = "libamdhip64.so.6" if amd else "libcuda.so.1"
        path = folder / name
        words = ["g++", "-std=c++17", "-O1", "-shared", "-fPIC", f"-Wl,-soname,{name}", str(SOURCE), "-o", str(path)]
        subprocess.run([*words, "-DHIP"] if amd else words, check=True)
        self.library = ctypes.CDLL(str(path))
        self.library.stand_in_log.restype = ctypes.c_char_p
        self.made: dict[bytes, tuple[str, int, bool]] = {}
        self.errors: list[BaseException] = []
        self._run = _RUN(self._launched)
        self.library.stand_in_run(self._run)
        assert _ext.driver_error(amd) == "", "another driver was there first"
        self.target = TARGET + ("_amd" if amd else "")
        for counts, name in ((False, self.target), (True, self.target + COUNTED)):
            handlers = _ext.gpu_handlers(counts, on_host=True, amd=amd)
            jax.ffi.register_ffi_target(name, handlers, platform="cpu")

    @property
    def log(self) -> list[str]:
        """What the library was asked since the last look."""
        lines = self.library.stand_in_log().decode().splitlines()
        self.library.stand_in_forget()
        return lines

    def launches(self) -> list[list[str]]:
        """The launches since the last look: name, grid, block, shared."""
        return [line.split()[1:9] for line in self.log if line.startswith("cuLaunchKernel")]

    def make_code(self, recipe: str, device: str, dimensions: int, counts: bool) -> str | bytes:
        """`gpu.make_code`, remembered."""
        code = _original_make_code(recipe, device, dimensions, counts)
        self.made[code.encode() if isinstance(code, str) else code] = (recipe, dimensions, counts)
        return code

    def _launched(self, code: int, size: int, name: bytes, geometry: Any, parameters: Any) -> int:
        try:
            built = _lowered(*self.made[ctypes.string_at(code, size)], name.decode(), tuple(geometry[:7]))
            (buffer,) = built.buffers
            values = [ctypes.cast(parameters[i], ctypes.POINTER(ctypes.c_uint64))[0] for i in range(buffer.shape[0])]
            native.call(built, [np.array(values, np.uint64)])
        except BaseException as error:
            self.errors.append(error)
            return 999
        return 0

    def call(self, function: Function, batch: Batch, operands: Sequence[jax.Array]) -> list[jax.Array]:
        """`gpu.call`, of the handler for the CPU."""
        return gpu.call(function, batch, operands, self.target)


_original_make_code = gpu.make_code


@cache
def _lowered(recipe: str, dimensions: int, counts: bool, name: str, geometry: tuple[int, ...]) -> Built:
    """What one launch does, as a function of the CPU: its buffer are the parameters of the launch."""
    function = decode(recipe)
    base = function.base
    made = derived.derived(base.program, base.signature, base.binding, function.steps, base.options).function
    if counts:
        assert made.count is not None
        made = made.count.function
    module = clone_without_debug(made.module)
    link(module)
    add_entries(module, made, dimensions, target(f"sm_{OLDEST}"))
    add_vectors(module, target("sm_90"))  # so that what these do is tested
    shape = Shape(geometry[0:3], geometry[3:6], geometry[6])  # pyright: ignore[reportArgumentType]
    module = inline_everything(module, [name])
    lowered = lower(module, name, shape, {}, host().triple, str(target_machine().target_data))
    kernel = lowered.functions[name]
    kernel.prefix = ()
    parameters = Argument(T.PTR, ("noalias",), name="parameters")
    at = Builder(BasicBlock(name="entry"))
    given = [at.load(a.type, at.offset(parameters, 8 * i), 8) for i, a in enumerate(kernel.arguments)]
    at.call(kernel, given)
    at.ret(const_int(T.I64, 0))
    lowered.functions[_GRID] = IRFunction(T.PTR, T.FunctionType(T.I64, (T.PTR,)), [parameters], [at.block], name=_GRID)
    buffers = (Buffer("parameters", "u64", (len(given),), "in"),)
    return unoptimised(ArrayFunction(lowered, _GRID, buffers))


@contextmanager
def launching(library: StandIn) -> Iterator[StandIn]:
    """Kernels that JAX lowers for its CPU are those for GPUs meanwhile, and launched by the library."""
    original = Specialised.on
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gpu, "make_code", library.make_code)
        patch.setattr(compat, "default_platform", lambda: "cuda")
        patch.setattr(Specialised, "on", lambda self, _: original(self, "cuda"))
        patch.setattr(directions, "call_on", lambda _: library.call)
        jax.clear_caches()
        library.library.stand_in_forget()
        yield library
    jax.clear_caches()
    failures, library.errors = library.errors, []
    assert not failures, failures[0]
    assert library.library.stand_in_depth() == 0, "a context was left current"


def is_driver_there(name: str = "libcuda.so.1") -> bool:
    """Whether this machine has a vendor's own driver."""
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True
