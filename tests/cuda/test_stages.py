"""The CUDA handler's stages, called as XLA's GPU run time calls them: on which device, with which stream, in which
order."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from jax_enzyme.frontends import load
from jax_enzyme.options import Options
from jax_enzyme.signature import Binding, parse, parse_launch
from jax_enzyme.xla_ffi import _ext
from jax_enzyme.xla_ffi.function import Specialised, function
from jax_enzyme.xla_ffi.recipe import encode
from tests.support.stand_in_driver import StandIn

SOURCE = """
extern "C" __global__ void probe(int n, const double *x, double *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 3 * x[i] + blockIdx.x;
}
"""
COMMAND_BUFFER_COMPATIBLE = 1
HAS_STATE = 256


@dataclass
class Program:
    """One call of a kernel over a batch of `batch`, in a run time."""

    stand_in: StandIn
    runtime: ctypes.CDLL
    handlers: dict[str, Any]
    address: int
    batch: int

    def initialize(self, device: int) -> None:
        self._check(self.runtime.runtime_initialize(self.handlers["initialize"], ctypes.c_void_p(self.address), device))

    def execute(self, device: int, x: np.ndarray, stream: int = 5) -> np.ndarray:
        y = np.full_like(x, np.nan)
        at = [ctypes.c_void_p(a.ctypes.data) for a in (x, y)]
        program = ctypes.c_void_p(self.address)
        execute = partial(self.runtime.runtime_execute, self.handlers["execute"], program, device)
        self._check(execute(ctypes.c_void_p(stream), *at, ctypes.c_int64(x.size)))
        return y

    def _check(self, failed: int) -> None:
        if failed:
            raise RuntimeError(self.runtime.runtime_text().decode())


Make = Callable[..., Program]


@pytest.fixture(scope="session")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    path = tmp_path_factory.mktemp("runtime") / "runtime.so"
    source = Path(__file__).parent / "stand_in_runtime.cpp"
    include = ["-isystem", jax.ffi.include_dir()]
    subprocess.run(["g++", "-std=c++17", "-shared", "-fPIC", *include, str(source), "-o", str(path)], check=True)
    library = ctypes.CDLL(str(path))
    library.runtime_text.restype = ctypes.c_char_p
    library.runtime_instantiate.restype = ctypes.c_void_p
    return library


@pytest.fixture(scope="session")
def handlers(runtime: ctypes.CDLL) -> dict[str, Any]:
    """The stages for platform CUDA, each of which has been asked about itself, as XLA does when it is registered."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    found = {k: ctypes.c_void_p(pointer(v, None)) for k, v in _ext.gpu_handlers().items()}
    asked = {k: runtime.runtime_ask(v) for k, v in found.items()}
    assert asked["instantiate"] & HAS_STATE and min(asked.values()) >= 0
    assert asked["execute"] & COMMAND_BUFFER_COMPATIBLE
    counted = ctypes.c_void_p(pointer(_ext.gpu_handlers(counts=True)["execute"], None))
    assert runtime.runtime_ask(counted) == 0, "one that waits for a count cannot be recorded"
    return found


@pytest.fixture
def make(stand_in: StandIn, runtime: ctypes.CDLL, handlers: dict[str, Any]) -> Make:
    def instantiate(block: int, batch: int = 1, n: int = 20) -> Program:
        signature = parse("n: i32, x: f64[n], out y: f64[n]")
        program = load(SOURCE, "probe", "cuda")
        program = replace(program, launch=parse_launch(signature, f"(n+{block - 1})//{block}", block))
        base = Specialised(program, signature, Binding.of({"n": n}, {}), Options(), "cuda")
        recipe = encode(function(base))
        launch = (ctypes.c_int64 * 11)(-(-n // block), 1, 1, block, 1, 1, 0, 1, 0, -1, 0)
        strides = (ctypes.c_int64 * 2)(8 * n, 8 * n)
        address = runtime.runtime_instantiate(
            handlers["instantiate"], f"probe {block}".encode(), recipe.encode(), launch, strides, ctypes.c_int64(batch)
        )
        if address is None:
            raise RuntimeError(runtime.runtime_text().decode())
        return Program(stand_in, runtime, handlers, address, batch)

    return instantiate


def test_modules_are_loaded_when_a_device_is_prepared(stand_in: StandIn, make: Make) -> None:
    """Execution, which may be recorded into a CUDA graph, only clears and launches."""
    program = make(block=4)
    assert stand_in.log == []
    program.initialize(0)
    assert stand_in.log == [
        "cuDeviceGet 0", "cuDevicePrimaryCtxRetain 0", "cuModuleLoadDataEx 0", "cuModuleGetFunction je_kernel_0",
    ]  # fmt: skip
    x = np.linspace(0.0, 1.0, 20)
    for _ in range(2):
        np.testing.assert_allclose(program.execute(0, x), 3 * x + np.arange(20) // 4, rtol=1e-14)
        assert stand_in.log == ["cuMemsetD8Async 160", "cuLaunchKernel je_kernel_0 5 1 1 4 1 1 0 device 0 stream 5"]
    assert stand_in.library.stand_in_depth() == 0


def test_every_device_has_its_own_module_and_context(stand_in: StandIn, make: Make) -> None:
    program = make(block=5)
    program.initialize(0)
    program.initialize(1)
    assert [line for line in stand_in.log if line.startswith("cuModuleLoad")] == [
        "cuModuleLoadDataEx 0",
        "cuModuleLoadDataEx 1",
    ]
    x = np.ones(20)
    program.execute(1, x, stream=9)
    program.execute(0, x, stream=7)
    assert [line.split(" 0 ", 1)[1] for line in stand_in.log if line.startswith("cuLaunch")] == [
        "device 1 stream 9", "device 0 stream 7",
    ]  # fmt: skip


def test_another_program_with_the_same_kernel_loads_nothing(stand_in: StandIn, make: Make) -> None:
    make(block=6).initialize(0)
    assert stand_in.log
    make(block=6).initialize(0)
    assert stand_in.log == []


def test_batch(stand_in: StandIn, make: Make) -> None:
    program = make(block=4, batch=3)
    x = np.linspace(0.0, 1.0, 60)
    np.testing.assert_allclose(program.execute(0, x), 3 * x + np.tile(np.arange(20) // 4, 3), rtol=1e-14)
    assert stand_in.launches()[0][1:4] == ["15", "1", "1"]


def test_unknown_device(make: Make) -> None:
    with pytest.raises(RuntimeError, match="kernel `probe`: could not find GPU 2"):
        make(block=7).initialize(2)
