"""A kernel's computation in C, compiled by a compiler of the machine and called with memory of its own."""

from __future__ import annotations

import ctypes
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import jax_enzyme as je
from jax_enzyme.xla_ffi.function import Function

KINDS = {"f32": np.float32, "f64": np.float64, "i32": np.int32}


class InC:
    """A function of C with the parameters of a kernel, for the sizes of one `function` of it.

    `compiler` is a command line without files. Arrays are held here, by the names of parameters, and start from what
    `given` has of them.
    """

    def __init__(
        self, source: Path, compiler: Sequence[str], kernel: je.Kernel, function: Function, given: Mapping[str, Any]
    ) -> None:
        out = source.with_suffix(".so")
        subprocess.run([*compiler, "-shared", "-fPIC", str(source), "-o", str(out), "-lm"], check=True)
        shapes = {b.name: b.shape for b in function.buffers}
        dims = dict(function.base.binding.dims)
        self.arrays: dict[str, np.ndarray] = {}
        self._passed: list[Any] = []
        for param in kernel.signature.params:
            kind = KINDS[param.dtype]
            if param.by_value:
                value = dims[param.name] if param.name in dims else np.asarray(given[param.name]).item()
                self._passed.append(np.ctypeslib.as_ctypes_type(np.dtype(kind))(value))
                continue
            held = np.zeros(shapes[param.name], kind)
            if param.name in given:
                held[...] = given[param.name]
            self.arrays[param.name] = held
            self._passed.append(ctypes.c_void_p(held.ctypes.data))
        self.library = ctypes.CDLL(str(out))
        self._call = self.library[source.stem]

    def __call__(self) -> None:
        self._call(*self._passed)

    def seconds(self) -> float:
        """The processor time of one call."""
        began = time.thread_time_ns()
        self()
        return (time.thread_time_ns() - began) * 1e-9
