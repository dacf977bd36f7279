"""One kernel of the benchmark with its gradient: built, checked, ready to be timed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import Call
from jax_enzyme import frontends
from jax_enzyme.ir.arrays import Augmented, Buffer, Pullback, Vjp
from jax_enzyme.options import Options
from tests.support.differences import derivative
from tests.support.reference import reference
from tests.support.through_engine import specialise


@dataclass(frozen=True)
class ByHand:
    """The adjoint of a function in C: `<stem>_adjoint` of `adjoints/<stem>.c`.

    `order` is what it is called with: integers of `sizes`, arguments of the problem by name, `seed NAME` for the
    cotangent of a result, `bar NAME` for the gradient by an argument, `work` for memory of `work` doubles.
    """

    stem: str
    order: str
    sizes: Mapping[str, int]
    work: int = 0


@dataclass(frozen=True)
class Problem:
    """A kernel with its arguments and the arguments to differentiate by, and its adjoint by hand where there is one.

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
    items: int = 1
    step: float = 1e-3
    tolerance: float = 1e-7
    model: Callable[[Mapping[str, Any]], Mapping[str, np.ndarray]] | None = None
    hand: ByHand | None = None
    options: Options = field(default_factory=Options)


class WrongGradientError(Exception):
    """A gradient is not that of its function: its time would mean nothing."""


class Gradient:
    """A problem's function and its gradient at their addresses, each after a call.

    `seeds` are the cotangents of the results by name, `found` the gradient by argument, `build_seconds` the time from
    source to machine code of the function and of the gradient in one function.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        began = time.perf_counter()
        self._kernel = specialise(
            frontends.load(problem.path, problem.symbol), problem.signature, problem.arguments, problem.options
        )
        self._base = base = self._kernel.buffers
        self._step = Vjp(
            tuple(b.name in problem.wanted for b in base), tuple(b.is_floating and b.is_result for b in base)
        )
        built, combined = self._kernel.build(), self._kernel.build(self._step)
        self.build_seconds = time.perf_counter() - began
        floats = [b for b in base if b.is_floating and b.is_result]
        self.seeds: dict[str, np.ndarray] = {
            b.name: np.random.default_rng(7).normal(size=b.shape) if b.shape else np.ones(()) for b in floats
        }
        self.primal, self.combined = (Call(each, self._value, problem.items) for each in (built, combined))
        self.primal.seconds()
        self.combined.seconds()
        self.found = self._gradient(self.combined)

    @cached_property
    def split(self) -> tuple[Call, Call] | None:
        """The forward sweep that keeps a tape, and the pullback with what the forward sweep left, where the gradient
        can be split. Raises WrongGradientError where they find another gradient."""
        if not self._kernel.splits(self._step):
            return None
        masks = (self._step.wanted, self._step.seeded)
        forward = Call(self._kernel.build(Augmented(*masks)), self._value, self.problem.items)
        forward.seconds()
        kept = {_place(role, of, name): memory for (role, of, name), memory in forward.results.items()}

        def residual(buffer: Buffer) -> np.ndarray | None:
            return kept[_place(buffer.role, buffer.of, buffer.name)] if buffer.role in ("final", "tape") else None

        back = Call(self._kernel.build(Pullback(*masks)), self._value, self.problem.items, residual)
        back.seconds()
        self.compare(self._gradient(back), "in two sweeps")
        return forward, back

    @property
    def tape_bytes(self) -> int | None:
        """None where its size is not known before the call."""
        return None if self.split is None else sum(b.nbytes for b in self.split[0].buffers if b.role == "tape")

    def compare(self, other: Mapping[str, np.ndarray], whose: str, tolerance: float = 1e-9) -> None:
        """Raises WrongGradientError where another one's gradient differs by more than `tolerance` of an argument's
        largest entry."""
        for name in self.problem.wanted:
            size = max(float(np.max(np.abs(self.found[name]))), 1e-300)
            away = float(np.max(np.abs(self.found[name] - other[name]))) / size
            if not away <= tolerance:
                raise WrongGradientError(
                    f"{self.problem.name} {self.problem.size}, by {name}: that {whose} is {away:.1e} away from ours"
                )

    def check(self) -> None:
        """Raises WrongGradientError where the gradient along a random direction is not that of finite differences."""
        problem = self.problem
        model = problem.model or reference(problem.path, problem.symbol, problem.signature)
        r = np.random.default_rng(11)
        direction = {name: r.normal(size=np.shape(problem.arguments[name])) for name in problem.wanted}

        def along(t: float) -> np.ndarray:
            moved = {n: v + t * direction[n] if n in direction else v for n, v in problem.arguments.items()}
            out = model(moved)
            return np.array([sum(float(np.sum(seed * out[name])) for name, seed in self.seeds.items())])

        expected = derivative(along, problem.step)
        terms = [self.found[name] * direction[name] for name in problem.wanted]
        got, size = (sum(float(np.sum(f(t))) for t in terms) for f in (np.asarray, np.abs))
        away = abs(got - float(expected.value[0]))
        if not away <= problem.tolerance * max(size, 1e-300) + 10 * float(expected.error[0]):
            raise WrongGradientError(
                f"{problem.name} {problem.size}: {got!r}, finite differences {expected.value[0]!r}"
            )

    def _value(self, buffer: Buffer) -> Any:
        name = self._base[buffer.of].name if buffer.of >= 0 else buffer.name
        return self.seeds[name] if buffer.role == "shadow" else self.problem.arguments[name]

    def _gradient(self, call: Call) -> dict[str, np.ndarray]:
        return {self._base[of].name: memory[0] for (role, of, _), memory in call.results.items() if role == "shadow"}


def _place(role: str, of: int, name: str) -> tuple[bool, int, str]:
    """What a residual is called on both sides: a tape by its name, the final contents of a buffer by its number."""
    return (True, -1, name) if role == "tape" else (False, of, "")
