"""The three-way check below JAX: a kernel's derivatives run as native code on NumPy arrays.

For tangents v of all floating inputs and cotangents w of all floating outputs, the numbers <w, J v> from forward mode,
from reverse mode (in one function, and split with a tape where that exists) and from central differences agree.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import partial
from typing import Literal
from zlib import crc32

import numpy as np

from jax_enzyme.codegen import derived
from jax_enzyme.frontends import load
from jax_enzyme.ir.arrays import Augmented, Buffer, Jvp, Pullback, Vjp
from jax_enzyme.options import Options
from jax_enzyme.signature import Binding, parse
from tests.support.native import call


@dataclass(frozen=True)
class Native:
    """A kernel bound to shapes, as functions of arrays."""

    program: object
    signature: object
    binding: Binding
    options: Options = field(default_factory=Options)

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        return derived.layout(self.program, self.signature, self.binding, (), self.options)

    def run(self, steps: tuple, arrays: list) -> list[np.ndarray]:
        return call(derived.build(self.program, self.signature, self.binding, steps, self.options), arrays)


def native(
    source: str, symbol: str | None, signature: str, dims: dict[str, int], lang: str | None = "c", **kw
) -> Native:
    """A kernel from inline source."""
    return Native(load(source, symbol, lang, kw.pop("flags", ())), parse(signature, **kw), Binding.of(dims, {}))


def pair(ws: list[np.ndarray], ys: list[np.ndarray]) -> float:
    """The real inner product."""
    return float(sum(np.sum(np.real(np.conj(w) * y)) for w, y in zip(ws, ys, strict=True)))


def random_like(rng: np.random.Generator, buffer: Buffer, scale: float = 1.0) -> np.ndarray:
    values = rng.standard_normal(buffer.shape) * scale
    if buffer.dtype.startswith("c"):
        values = values + 1j * rng.standard_normal(buffer.shape) * scale
    return np.asarray(values)


@dataclass(frozen=True)
class Numbers:
    """<w, J v> four ways; `split` is None where no split derivative exists, or nobody asked for it."""

    differences: float
    forward: float
    reverse: float
    split: float | None
    scale: float


Sweeps = Literal["apart", "together", "both"]


def by_turns(number: int) -> Sweeps:
    """Of many kernels that show something else, each is reversed in one of the two ways."""
    return "apart" if number % 2 else "together"


def three_way(kernel: Native, inputs: list, seed: int = 0, step: float = 1e-6, sweeps: Sweeps = "both") -> Numbers:
    """Computes <w, J v> all ways at `inputs` (one per input buffer) for random v and w. `sweeps`: reverse mode in one
    function, split where that is possible, or both; `reverse` is of the way that was asked for."""
    rng = np.random.default_rng(seed)
    buffers = kernel.buffers
    given = [b for b in buffers if b.is_input]
    wanted = tuple(b.is_input and b.is_floating for b in buffers)
    seeded = tuple(b.is_result and b.is_floating for b in buffers)
    tangents = [random_like(rng, b) for b in given if b.is_floating]
    outputs = [b for b in buffers if b.is_result]
    cotangents = [random_like(rng, b) for b in outputs if b.is_floating]
    primal = kernel.run((), inputs)
    assert all(np.all(np.isfinite(p)) for p in primal if p.dtype.kind in "fc"), "the primal is not finite"

    def floats(results: list[np.ndarray]) -> list[np.ndarray]:
        return [r for r, b in zip(results, outputs, strict=True) if b.is_floating]

    def moved(h: float) -> list[np.ndarray]:
        directions = iter(tangents)
        return floats(
            kernel.run(
                (),
                [
                    np.asarray(x) + h * next(directions) if b.is_floating else x
                    for x, b in zip(inputs, given, strict=True)
                ],
            )
        )

    # Richardson extrapolation of central differences: error O(h^4).
    def central(h: float) -> float:
        return pair(cotangents, [(a - b) / (2 * h) for a, b in zip(moved(h), moved(-h), strict=True)])

    differences = (4 * central(step * 100) - central(step * 200)) / 3
    both = kernel.run((Jvp(wanted),), inputs + tangents)
    assert all(_same(a, b) for a, b in zip(primal, both[: len(primal)], strict=True)), "primal of forward mode differs"
    forward = pair(cotangents, both[len(primal) :])
    vjp = Vjp(wanted, seeded)
    result_of = {b.name: r for b, r in zip(outputs, primal, strict=True)}
    splits = sweeps != "together" and derived.split(
        kernel.program, kernel.signature, kernel.binding, vjp, kernel.options
    )
    reverse = split = None
    if sweeps != "apart" or not splits:
        reverse = pair(tangents, pulled(kernel, (vjp,), inputs, cotangents, {}))
    if splits:
        augmented = Augmented(wanted, seeded)
        layout = derived.layout(kernel.program, kernel.signature, kernel.binding, (augmented,), kernel.options)
        results = kernel.run((augmented,), inputs)
        finals = {
            (b.role, b.of if b.role == "primal" else -1): r
            for b, r in zip([b for b in layout if b.is_result], results, strict=True)
        }
        for name, array in result_of.items():
            index = next(i for i, b in enumerate(buffers) if b.name == name)
            assert _same(array, finals["primal", index]), "primal of augmented differs"
        split = pair(tangents, pulled(kernel, (Pullback(wanted, seeded),), inputs, cotangents, finals))
    scale = sum(float(np.sum(np.abs(w))) for w in cotangents) + 1e-300
    found = split if reverse is None else reverse
    assert found is not None
    return Numbers(differences, forward, found, split, scale)


together = partial(three_way, sweeps="together")
"""For what is the same to both ways: how threads, lanes and their memory are run."""


def one_way(kernel: Native, inputs: list, step: float = 1e-6) -> Numbers:
    """Reverse mode in one of the two ways, which the name of the test chooses: for tests of many things that are done
    before there are two ways, as a language's constructs are, rules of functions, and what numbers are moved as."""
    name, _, _ = os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")
    return three_way(kernel, inputs, step=step, sweeps=by_turns(crc32(name.encode())))


def pulled(kernel: Native, steps: tuple, inputs: list, cotangents: list, finals: dict) -> list[np.ndarray]:
    """The cotangents of all floating inputs, in order of the buffers."""
    base = kernel.buffers
    layout = derived.layout(kernel.program, kernel.signature, kernel.binding, steps, kernel.options)
    given = dict(zip([i for i, b in enumerate(base) if b.is_input], inputs, strict=True))
    seeds = dict(zip([i for i, b in enumerate(base) if b.is_result and b.is_floating], cotangents, strict=True))
    arrays: list = []
    for buffer in layout:
        if not buffer.is_input:
            continue
        match buffer.role:
            case "primal" | "initial":
                arrays.append(given[buffer.of])
            case "final":
                arrays.append(finals["primal", buffer.of])
            case "tape":
                arrays.append(finals["tape", -1])
            case _:
                arrays.append(seeds[buffer.of])
    results = kernel.run(steps, arrays)
    found = {b.of: r for b, r in zip([b for b in layout if b.is_result], results, strict=True) if b.role == "shadow"}
    return [found[i] for i, b in enumerate(base) if b.is_input and b.is_floating]


def agree(numbers: Numbers, tolerance: float = 1e-8, difference_tolerance: float = 1e-6) -> None:
    """Raises AssertionError, showing the numbers, where they do not agree."""
    size = max(abs(numbers.forward), abs(numbers.differences), 1e-8)
    assert abs(numbers.forward - numbers.reverse) <= tolerance * size, f"forward and reverse differ: {numbers}"
    if numbers.split is not None:
        assert abs(numbers.split - numbers.reverse) <= tolerance * size, f"split and combined differ: {numbers}"
    assert abs(numbers.forward - numbers.differences) <= difference_tolerance * size, f"differences disagree: {numbers}"


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal up to the last bits, in which vector versions of math functions may differ."""
    parts = a.real.dtype.itemsize
    loose = 1e-11 if parts >= 8 else 1e-5
    return bool(np.allclose(a, b, rtol=loose, atol=loose * float(np.max(np.abs(a), initial=0)), equal_nan=True))
