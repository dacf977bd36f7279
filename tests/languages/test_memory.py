"""What a kernel allocates is given back: by the primal, by forward mode and by reverse mode."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from jax_enzyme.codegen import derived
from jax_enzyme.ir.arrays import Jvp, Vjp
from tests.languages.conftest import KERNELS
from tests.support.engine import Native, native
from tests.support.native import call
from tests.support.tools import need

CALLS = 500
SIZE = 400
X = np.random.default_rng(0).uniform(0.3, 1.7, SIZE)


def resident_bytes() -> int:
    fields = Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * 4096


def kernel(name: str) -> Native:
    match name:
        case "grown":
            need("flang-22")
            source, signature = "arrays.f90", "n: i32[], x: f64[n], out y: f64[n]"
            return native((KERNELS / source).read_text(), name, signature, {"n": SIZE}, lang="fortran", order="F")
        case _:
            source, signature = "library.cpp", "n: i32, x: f64[n], out y: f64[n]"
            return native((KERNELS / source).read_text(), name, signature, {"n": SIZE}, lang="c++")


@pytest.mark.parametrize("name", ["grown", "vectors"])
def test_flat(name: str) -> None:
    code = kernel(name)
    steps = ((), (Jvp((True, False)),), (Vjp((True, False), (False, True)),))
    built = [derived.build(code.program, code.signature, code.binding, s, code.options) for s in steps]
    runs = list(zip(built, ([X], [X, X], [X, X]), strict=True))

    def rounds(count: int) -> None:
        for _ in range(count):
            for function, arrays in runs:
                call(function, arrays)

    rounds(CALLS // 5)
    before = resident_bytes()
    rounds(CALLS)
    # One array that is not freed would be 3.2 kB a call.
    assert resident_bytes() - before < 1_000_000
