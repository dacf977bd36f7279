"""One model in every language that there is a way in from: values and gradients agree to rounding."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numba
import numpy as np
import pytest

import jax_enzyme as je

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "languages"
IN_OUT = "n: i32, steps: i32, alpha: f64, u: f64[n], out result: f64[n]"
WITH_WORK = f"{IN_OUT}, scratch work: f64[n]"
STEPS = 20


def in_jax(steps: int, alpha: Any, u: Any) -> Any:
    def step(now: Any, _: Any) -> Any:
        mid = now[1:-1]
        return now.at[1:-1].add(alpha * (1 + 0.1 * mid**2) * (now[:-2] - 2 * mid + now[2:])), None

    return jax.lax.scan(step, u, length=steps)[0]


def from_numba(_: Path) -> je.Kernel:
    def heat(n, steps, alpha, u, result):  # type: ignore[no-untyped-def]
        result[:] = u
        for _ in range(steps):
            before = result.copy()
            for i in range(1, n - 1):
                k = alpha * (1 + 0.1 * before[i] ** 2)
                result[i] = before[i] + k * (before[i - 1] - 2 * before[i] + before[i + 1])

    return je.kernel(numba.njit(heat), "heat", IN_OUT)


def from_zig(folder: Path) -> je.Kernel:
    ir = folder / "heat.ll"
    compiler = [sys.executable, "-m", "ziglang", "build-obj", str(FOLDER / "heat.zig"), "-O", "ReleaseFast", "-fllvm"]
    subprocess.run([*compiler, f"-femit-llvm-ir={ir}", "-fno-emit-bin", "-fstrip"], check=True, cwd=folder)
    return je.kernel(ir, "heat", WITH_WORK)


def from_d(folder: Path) -> je.Kernel:
    # Bitcode: the compilers of some systems write types of pointers, which LLVM still reads there, and not in text.
    flags = ["-betterC", "-release", "-O1", "--output-bc", f"-of={folder / 'heat.bc'}"]
    subprocess.run(["ldc2", *flags, str(FOLDER / "heat.d")], check=True)
    return je.kernel(folder / "heat.bc", "heat", WITH_WORK)


LANGUAGES: dict[str, Callable[[Path], je.Kernel]] = {
    "c": lambda _: je.kernel(FOLDER / "heat.c", "heat", WITH_WORK),
    "c++": lambda _: je.kernel(FOLDER / "heat.cpp", "heat", IN_OUT, flags=("-std=c++20",)),
    "fortran": lambda _: je.kernel(FOLDER / "heat.f90", "heat", IN_OUT),
    "rust": lambda _: je.kernel(FOLDER / "heat.rs", "heat", IN_OUT),
    "numba": from_numba,
    "cuda": lambda _: je.kernel(FOLDER / "heat.cu", "heat", IN_OUT, grid=1, block="n", shared="8*n"),
    "zig": from_zig,
    "d": from_d,
}
NEEDS = {"fortran": "flang-22", "rust": "rustc", "d": "ldc2"}


@cache
def expected() -> tuple[Any, Any]:
    return both(lambda alpha, u: in_jax(STEPS, alpha, u))


def both(f: Callable[..., Any]) -> tuple[Any, Any]:
    u = 1 + jnp.sin(jnp.arange(12.0))
    weights = jnp.cos(jnp.arange(12.0))
    loss = jax.jit(jax.value_and_grad(lambda alpha, u: weights @ f(alpha, u) ** 2, (0, 1)))
    ahead = jax.jvp(f, (0.1, u), (1.0, weights))
    return loss(0.1, u), ahead


@pytest.mark.parametrize("language", LANGUAGES)
def test_language(language: str, tmp_path: Path) -> None:
    if language in NEEDS and shutil.which(NEEDS[language]) is None:
        pytest.skip(f"{NEEDS[language]} is not installed")
    heat = LANGUAGES[language](tmp_path)
    found = both(lambda alpha, u: heat(STEPS, alpha, u))
    for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected()), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-13)
