"""One kernel of the benchmark: built, its gradient checked, then timed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import Call, medians
from jax_enzyme import frontends
from jax_enzyme.codegen.object import Built
from jax_enzyme.ir.arrays import Augmented, Buffer, Pullback, Vjp
from tests.support.differences import derivative
from tests.support.reference import reference
from tests.support.through_engine import Specialised, specialise


@dataclass(frozen=True)
class Problem:
    """A kernel with its arguments, the arguments to differentiate by, and what other tools reach (ratios).

    The gradient along a random direction is checked by finite differences of `model`, or of the kernel's own source
    built by another compiler, up to `tolerance` (relative): a step that adapts makes a function rough.
    """

    name: str
    size: str
    path: Path
    symbol: str
    signature: str
    arguments: Mapping[str, Any]
    wanted: tuple[str, ...]
    published: Mapping[str, float]
    items: int = 1
    step: float = 1e-3
    tolerance: float = 1e-7
    model: Callable[[Mapping[str, Any]], Mapping[str, np.ndarray]] | None = None


@dataclass(frozen=True)
class Figures:
    """Times are medians in seconds; `split` and `tape_bytes` are None where the gradient cannot be split."""

    primal: float
    combined: float
    split: float | None
    tape_bytes: int | None
    compile_seconds: float


class WrongGradientError(Exception):
    """A gradient is not that of its function: its time would mean nothing."""


def run(problem: Problem, budget: float) -> Figures:
    """Builds, checks, times."""
    began = time.perf_counter()
    program = frontends.load(problem.path, problem.symbol)
    kernel = specialise(program, problem.signature, problem.arguments)
    base = kernel.buffers
    step = Vjp(tuple(b.name in problem.wanted for b in base), tuple(b.is_floating and b.is_result for b in base))
    primal, combined = kernel.build(), kernel.build(step)
    compile_seconds = time.perf_counter() - began
    seeds = {b.name: np.random.default_rng(7).normal(size=b.shape) if b.shape else np.ones(()) for b in base}

    def value(buffer: Buffer) -> Any:
        name = base[buffer.of].name if buffer.of >= 0 else buffer.name
        return seeds[name] if buffer.role == "shadow" else problem.arguments[name]

    calls = {
        "primal": [Call(primal, value, problem.items)],
        "combined": [Call(combined, value, problem.items)],
    }
    _check(problem, calls["combined"][0], base, seeds)
    tape_bytes = None
    if kernel.splits(step):
        calls["split"] = _sweeps(problem, kernel, step, value)
        _check(problem, calls["split"][1], base, seeds)
        tape_bytes = _tape_bytes(kernel.build(Augmented(step.wanted, step.seeded)))
    found = medians(calls, budget)
    return Figures(found["primal"], found["combined"], found.get("split"), tape_bytes, compile_seconds)


def _sweeps(problem: Problem, kernel: Specialised, step: Vjp, value: Any) -> list[Call]:
    """The forward sweep that keeps a tape, and the pullback with what the forward sweep left."""
    forward = Call(kernel.build(Augmented(step.wanted, step.seeded)), value, problem.items)
    forward.seconds()
    kept = {_place(role, of, name): memory for (role, of, name), memory in forward.results.items()}

    def residual(buffer: Buffer) -> np.ndarray | None:
        return kept[_place(buffer.role, buffer.of, buffer.name)] if buffer.role in ("final", "tape") else None

    return [forward, Call(kernel.build(Pullback(step.wanted, step.seeded)), value, problem.items, residual)]


def _place(role: str, of: int, name: str) -> tuple[bool, int, str]:
    """What a residual is called on both sides: a tape by its name, the final contents of a buffer by its number."""
    return (True, -1, name) if role == "tape" else (False, of, "")


def _tape_bytes(built: Built) -> int:
    return sum(b.nbytes for b in built.buffers if b.role == "tape")


def _check(problem: Problem, call: Call, base: tuple[Buffer, ...], seeds: Mapping[str, np.ndarray]) -> None:
    """The gradient along a random direction is that of finite differences of the reference."""
    call.seconds()
    gradient = {base[of].name: memory[0] for (role, of, _), memory in call.results.items() if role == "shadow"}
    model = problem.model or reference(problem.path, problem.symbol, problem.signature)
    r = np.random.default_rng(11)
    direction = {name: r.normal(size=np.shape(problem.arguments[name])) for name in problem.wanted}

    def along(t: float) -> np.ndarray:
        moved = {n: v + t * direction[n] if n in direction else v for n, v in problem.arguments.items()}
        out = model(moved)
        return np.array([sum(float(np.sum(seeds[name] * out[name])) for name in out)])

    expected = derivative(along, problem.step)
    got = sum(float(np.sum(gradient[name] * direction[name])) for name in problem.wanted)
    size = max(sum(float(np.sum(np.abs(gradient[n] * direction[n]))) for n in problem.wanted), 1e-300)
    away = abs(got - float(expected.value[0]))
    if not away <= problem.tolerance * size + 10 * float(expected.error[0]):
        raise WrongGradientError(f"{problem.name} {problem.size}: {got!r}, finite differences {expected.value[0]!r}")
