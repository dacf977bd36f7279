"""Checks one call of a routine: its tangent against differences, its reverse against the tangent.

What a routine may not touch is no number everywhere, and must still be afterwards. Between the forward and the reverse
call, all that was not promised to be stable is overwritten.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from jax_enzyme.ir import types as T
from jax_enzyme.rules.blas.table import Kind, Result, Routine, routines
from tests.rules.blas import library
from tests.rules.blas.arrays import Array, Numbers, random

Value = str | int | Numbers | Array


@dataclass
class Case:
    """A call: a value for every parameter. `inactive` are parameters without shadow because their old contents are no
    numbers, or because a test wants it so. What is left of `destroyed` ones has no derivative."""

    symbol: str
    values: Mapping[str, Value]
    inactive: frozenset[str] = frozenset()
    destroyed: frozenset[str] = frozenset()

    @property
    def routine(self) -> Routine:
        return routines()[self.symbol]

    def numbers(self, name: str) -> Numbers:
        value = self.values[name]
        assert isinstance(value, Numbers)
        return value

    @property
    def floats(self) -> list[str]:
        return [p.name for p in self.routine.parameters if p.is_float]

    @property
    def written(self) -> list[str]:
        return [p.name for p in self.routine.parameters if p.is_float and p.writes]

    @property
    def active(self) -> list[str]:
        return [n for n in self.floats if n not in self.inactive]

    def in_double(self) -> Case:
        """The same call in double precision."""
        values = {name: _widened(v) if isinstance(v, Numbers) else v for name, v in self.values.items()}
        (same,) = (
            r
            for r in routines().values()
            if r.scalar == T.DOUBLE
            and (r.name, r.is_complex, r.parameters)
            == (self.routine.name, self.routine.is_complex, self.routine.parameters)
        )
        return replace(self, symbol=same.symbol, values=values)


def _widened(numbers: Numbers) -> Numbers:
    return replace(numbers, values=numbers.values.astype(np.result_type(numbers.values, np.float64)))


class Memory:
    """The arguments of one call in memory of their own."""

    def __init__(self, case: Case, changed: Mapping[str, Array] | None = None) -> None:
        self.case = case
        self.arrays: dict[str, Array] = {}
        for parameter in case.routine.parameters:
            value = case.values[parameter.name]
            if parameter.is_float:
                assert isinstance(value, Numbers)
                self.arrays[parameter.name] = ((changed or {}).get(parameter.name, value.values)).copy()
            elif parameter.kind is Kind.FLAG:
                self.arrays[parameter.name] = np.frombuffer(str(value).encode(), np.uint8).copy()
            else:
                self.arrays[parameter.name] = np.atleast_1d(np.array(value, np.int32))

    def pointers(self) -> library.Arguments:
        return [library.pointer(self.arrays[p.name]) for p in self.case.routine.parameters]

    def shadows(self, arrays: Mapping[str, Array]) -> library.Arguments:
        return [library.pointer(arrays.get(name)) for name in self.case.floats]

    def overwrite(self, but: Sequence[str]) -> None:
        for name, array in self.arrays.items():
            if name not in but:
                array[...] = np.nan if array.dtype.kind in "fc" else 77


Outputs = dict[str, Array]


def outputs(case: Case, changed: Mapping[str, Array] | None = None) -> Outputs:
    """What the routine computes: the arrays that it writes, and its result as `return`."""
    memory = Memory(case, changed)
    result = library.primal(case.routine, memory.pointers())
    found = {name: memory.arrays[name][case.numbers(name).mask] for name in case.written}
    return {**found, "return": np.array([result])}


def differences(case: Case, direction: Mapping[str, Array], h: float = 1e-3) -> Outputs:
    def at(t: float) -> Outputs:
        changed = {name: case.numbers(name).values + t * dot for name, dot in direction.items()}
        return outputs(case, changed)

    far, near = (at(2 * h), at(-2 * h)), (at(h), at(-h))
    return {k: (8 * (near[0][k] - near[1][k]) - (far[0][k] - far[1][k])) / (12 * h) for k in near[0]}


def tangents(case: Case, direction: Mapping[str, Array], gap: float = np.nan) -> Outputs:
    """The tangents of what the routine computes; its value is compared with that of the routine on the way."""
    memory = Memory(case)
    dots = {name: case.numbers(name).with_gap(direction[name], gap) for name in case.active}
    value, tangent = library.jvp(case.routine, memory.pointers(), memory.shadows(dots))
    expected = outputs(case)
    found = {**{n: memory.arrays[n][case.numbers(n).mask] for n in case.written}, "return": np.array([value])}
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name], err_msg=f"value of {name}")
    for name, array in memory.arrays.items():
        if name in case.floats and name not in case.written:
            np.testing.assert_array_equal(array, case.numbers(name).values, err_msg=f"{name} was changed")
    for name, dot in dots.items():
        numbers = case.numbers(name)
        np.testing.assert_array_equal(dot[~numbers.mask], numbers.like(0, gap)[~numbers.mask], err_msg=f"gap of {name}")
        if name not in case.written:
            np.testing.assert_array_equal(dot[numbers.mask], direction[name][numbers.mask], err_msg=name)
    result = {n: dots[n][case.numbers(n).mask] for n in case.written if n in dots}
    return {**result, "return": np.array([tangent])}


def cotangents(case: Case, seeds: Mapping[str, Array], seed: float, stable: int, gap: float = np.nan) -> Outputs:
    """The cotangents of all arguments, given those of what the routine computes."""
    memory = Memory(case)
    bars = {n: case.numbers(n).with_gap(seeds.get(n, case.numbers(n).like(0.0)), gap) for n in case.active}
    value, frame, _ = library.forward(case.routine, memory.pointers(), memory.shadows(bars), stable)
    expected = outputs(case)
    for name in case.written:
        np.testing.assert_array_equal(memory.arrays[name][case.numbers(name).mask], expected[name])
    assert value == expected["return"][0]
    memory.overwrite([n for k, n in enumerate(case.floats) if stable >> k & 1])
    library.reverse(case.routine, frame, seed)
    for name, bar in bars.items():
        numbers = case.numbers(name)
        np.testing.assert_array_equal(bar[~numbers.mask], numbers.like(0, gap)[~numbers.mask], err_msg=f"gap of {name}")
    return {n: bar[case.numbers(n).mask] for n, bar in bars.items()}


def real_dot(a: Array, b: Array) -> float:
    """The scalar product of complex numbers as pairs of real ones."""
    return float(np.sum((np.conj(a) * b).real))


def check(case: Case, rng: np.random.Generator) -> None:
    single = case.routine.scalar == T.FLOAT
    tolerance, distance = (3e-5, 3e-4) if single else (1e-10, 1e-8)
    direction = {n: case.numbers(n).like(_random_like(rng, case, n)) for n in case.active}
    tangent = tangents(case, direction)
    difference = differences(case.in_double(), direction)
    for name in case.destroyed:
        del tangent[name]
    for name, dot in tangent.items():
        scale = 1 + np.max(np.abs(difference[name]), initial=0)
        np.testing.assert_allclose(dot / scale, difference[name] / scale, atol=distance, err_msg=f"tangent of {name}")
    seeds = {n: case.numbers(n).like(_random_like(rng, case, n)) for n in case.written if n in tangent}
    seed = -0.7 if case.routine.result is Result.NUMBER else 0.0
    left = seed * float(tangent["return"][0])
    left += sum(real_dot(bar[case.numbers(n).mask], tangent[n]) for n, bar in seeds.items())
    for stable, gap in ((0, np.nan), ((1 << len(case.floats)) - 1, 1.25)):
        found = cotangents(case, seeds, seed, stable, gap)
        right = sum(real_dot(bar, direction[n][case.numbers(n).mask]) for n, bar in found.items())
        size = 1 + sum(float(np.sum(np.abs(b * direction[n][case.numbers(n).mask]))) for n, b in found.items())
        assert abs(left - right) <= tolerance * size, f"{case}: <ybar, ydot> = {left}, <xbar, xdot> = {right}"


def check_subsets(case: Case, rng: np.random.Generator) -> None:
    """Without the shadows of some arguments the rest has the same derivatives."""
    direction = {n: case.numbers(n).like(_random_like(rng, case, n)) for n in case.active}
    seeds = {n: case.numbers(n).like(_random_like(rng, case, n)) for n in case.written}
    whole = cotangents(case, seeds, 0.7, 0)
    inputs = [n for n in case.floats if n not in case.written]
    for bits in range(1, 2 ** len(inputs)):
        inactive = frozenset(n for k, n in enumerate(inputs) if bits >> k & 1)
        part = Case(case.symbol, case.values, inactive)
        without = {n: case.numbers(n).like(0.0) if n in inactive else d for n, d in direction.items()}
        expected, found = tangents(case, without), tangents(part, direction, gap=1.25)
        for name in expected:
            np.testing.assert_allclose(found[name], expected[name], atol=1e-12, err_msg=f"without {inactive}")
        for name, bar in cotangents(part, seeds, 0.7, 0).items():
            np.testing.assert_allclose(bar, whole[name], atol=1e-12, err_msg=f"{name} without {inactive}")
    silent = Case(case.symbol, case.values, frozenset(case.written))
    if case.written and case.routine.result is Result.NOTHING:
        for name, bar in cotangents(silent, {}, 0.0, 0).items():
            assert not bar.any(), name


def _random_like(rng: np.random.Generator, case: Case, name: str) -> Array:
    numbers = case.numbers(name)
    values = random(rng, int(numbers.mask.sum()), numbers.values.dtype)
    if numbers.real is not None:
        values[numbers.real[numbers.mask]] = values[numbers.real[numbers.mask]].real
    return values
