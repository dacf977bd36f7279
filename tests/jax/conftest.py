"""Every test of a transformation runs over all example kernels, with the engine and with the stand-in, which takes a
tape or does without one by turns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import jax_enzyme as je
from jax_enzyme.frontends import Program
from jax_enzyme.signature import parse, solve
from jax_enzyme.xla_ffi.registration import CPU_TARGET
from tests.jax.kernels import COLUMNS, EULER, EXAMPLES, GATHER, POLY, POWER, SINGLE, SPIN, Example
from tests.jax.stand_in import StandIn


@cache
def stand_in(splits: bool) -> StandIn:
    """One for all tests, as machine code is shared by content too."""
    return StandIn({e.symbol: e.body for e in EXAMPLES}, splits)


@cache
def in_jax(example: Example) -> Callable[..., Any]:
    """One for all subjects: what JAX has traced and compiled is known by the function."""
    signature = parse(example.signature, example.order)

    @jax.jit
    def function(*args: Any) -> Any:
        args = tuple(jnp.asarray(a) for a in args)
        given = {p.name: a for p, a in zip(signature.caller_params, args, strict=True)}
        dims = solve(signature, {name: tuple(a.shape) for name, a in given.items()})
        found = example.body(jnp, **dims, **given)
        out = tuple(found[r.name] for r in signature.results)
        return out[0] if len(out) == 1 else out

    return function


@dataclass(frozen=True)
class Subject:
    """A kernel under test, the same function in jax.numpy, and arguments for both."""

    example: Example
    kernel: je.Kernel
    stand_in: StandIn | None
    args: tuple[Any, ...]

    @property
    def floats(self) -> tuple[int, ...]:
        return self.example.floats

    @property
    def expected(self) -> Callable[..., Any]:
        """The function in jax.numpy, as one program and not operation by operation."""
        return in_jax(self.example)

    def other_args(self, seed: int) -> tuple[Any, ...]:
        return self.example.args(np.random.default_rng(seed))

    def batch_args(self, size: int, which: tuple[int, ...] | None = None) -> tuple[Any, ...]:
        """Arguments with a new leading dimension on some of them."""
        many = [self.other_args(seed) for seed in range(size)]
        where = range(len(self.args)) if which is None else which
        return tuple(np.stack([m[i] for m in many]) if i in where else a for i, a in enumerate(self.args))

    def close(self, actual: Any, expected: Any) -> None:
        """Asserts that two results agree: structure, dtype and value."""
        assert jax.tree.structure(actual) == jax.tree.structure(expected)
        for a, e in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
            assert np.shape(a) == np.shape(e)
            assert jnp.result_type(a) == jnp.result_type(e)
            if a.dtype != jax.dtypes.float0:
                tolerance = self.example.tolerance
                np.testing.assert_allclose(np.asarray(a), np.asarray(e), rtol=tolerance, atol=tolerance)

    def scalar(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A real scalar of the kernel's floating results, so that jax.grad applies."""

        def total(*args: Any) -> Any:
            leaves = jax.tree.leaves(function(*args))
            floating = [leaf for leaf in leaves if jnp.issubdtype(leaf.dtype, jnp.inexact)]
            return sum(jnp.sum(jnp.real(leaf * (1.5 - 0.5 * n)) ** 2) for n, leaf in enumerate(floating))

        return total

    def vary(self, function: Callable[..., Any], args: tuple[Any, ...] | None = None) -> Callable[..., Any]:
        """A function of the differentiable arguments alone."""
        fixed = self.args if args is None else args

        def of_floats(*values: Any) -> Any:
            full = list(fixed)
            for i, value in zip(self.floats, values, strict=True):
                full[i] = value
            return function(*full)

        return of_floats

    @property
    def has_integer_results(self) -> bool:
        return any(jnp.issubdtype(leaf.dtype, jnp.integer) for leaf in jax.tree.leaves(self.kernel(*self.args)))

    @property
    def is_complex(self) -> bool:
        return any(jnp.iscomplexobj(a) for a in self.args)

    def calls(self, function: Callable[..., Any], *args: Any) -> list[str]:
        """The kernel's calls in what is left of a program after dead code is gone, without its name."""
        lines = jax.jit(function).lower(*args).as_text().splitlines()
        named = [line.split('name = "')[1].split('"')[0] for line in lines if f"@{CPU_TARGET}" in line]
        return sorted(name.replace(f"({self.example.symbol})", "") for name in named)

    @property
    def points(self) -> tuple[Any, ...]:
        """The differentiable arguments."""
        return tuple(jnp.asarray(self.args[i]) for i in self.floats)

    def directions(self, seed: int) -> tuple[Any, ...]:
        """Random tangents for them."""
        other = self.other_args(seed)
        return tuple(jnp.asarray(other[i]) for i in self.floats)


def compiled(build: Callable[[Callable[..., Any]], Any], function: Callable[..., Any]) -> Any:
    """`build(function)` as one program: by itself each operation of JAX around a kernel would be compiled alone."""
    return jax.jit(lambda: build(function))()


def make(example: Example, backend: str) -> Subject:
    """A kernel with the engine or a stand-in behind it."""
    args = example.args(np.random.default_rng(7))
    if backend == "engine":
        kernel = je.kernel(example.source, example.symbol, example.signature, lang="c", order=example.order)
        return Subject(example, kernel, None, args)
    behind = stand_in(backend == "taped")
    program = Program(f"; {backend}", example.symbol, "c", f"{example.symbol}.c")
    kernel = je.Kernel(program, parse(example.signature, example.order), backend=behind)
    return Subject(example, kernel, behind, args)


@pytest.fixture(autouse=True)
def wide_types() -> Iterator[None]:
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", True)


@pytest.fixture(autouse=True, scope="module")
def fresh_caches() -> Iterator[None]:
    """What JAX compiled for one file is of no use to the next, and a thousand programs take gigabytes."""
    yield
    jax.clear_caches()


@pytest.fixture(params=["taped", "tapeless", "engine"])
def backend(request: pytest.FixtureRequest) -> str:
    return request.param


Chosen = tuple[Example, str]
"""A kernel, and what is behind it."""


def _name(chosen: Chosen) -> str:
    return f"{chosen[0].symbol}-{chosen[1]}"


_BY_TURNS = [(e, ("taped", "tapeless")[n % 2]) for n, e in enumerate(EXAMPLES)]


@pytest.fixture(params=[*((e, "engine") for e in EXAMPLES), *_BY_TURNS], ids=_name)
def subject(request: pytest.FixtureRequest) -> Subject:
    return make(*request.param)


@pytest.fixture(params=EXAMPLES, ids=lambda e: e.symbol)
def engine_subject(request: pytest.FixtureRequest) -> Subject:
    """All kernels with the engine: for tests of what is around a kernel."""
    return make(request.param, "engine")


_OF_EACH_KIND = (POLY, POWER, EULER, GATHER, SINGLE)
_STAND_INS = ((EULER, "taped"), (SPIN, "taped"), (COLUMNS, "tapeless"))


def by_turns(choices: Iterable[str]) -> list[Any]:
    """Each choice with a kernel of the engine and a stand-in, which change from one choice to the next: parameters for
    the fixture `chosen_subject` and a name, for tests whose choices have little to do with the kernel."""
    found: list[Any] = []
    for n, choice in enumerate(choices):
        chosen = [(_OF_EACH_KIND[n % len(_OF_EACH_KIND)], "engine"), _STAND_INS[n % len(_STAND_INS)]]
        found += [pytest.param(c, choice, id=f"{_name(c)}-{choice}") for c in chosen]
    return found


@pytest.fixture
def chosen_subject(request: pytest.FixtureRequest) -> Subject:
    return make(*request.param)


@pytest.fixture(params=[*((e, "engine") for e in EXAMPLES), *_STAND_INS], ids=_name)
def deep_subject(request: pytest.FixtureRequest) -> Subject:
    """All kernels with the engine, some with the stand-in: for tests that compile a lot."""
    return make(*request.param)


@pytest.fixture(params=[*((e, "engine") for e in (EULER, GATHER, SINGLE)), *_STAND_INS[1:]], ids=_name)
def few_subject(request: pytest.FixtureRequest) -> Subject:
    """In-place memory, integers, single precision, complex numbers, columns; with a tape and without: for tests that
    multiply with something else, or of what has little to do with the kernel."""
    return make(*request.param)
