"""The independent check: <w, J v> from forward mode, from reverse mode and from finite differences agree.

The finite differences are of the reference (`tests.support.reference`), which shares no code with the project.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.kernels.case import Case
from tests.support.differences import Estimate, derivative
from tests.support.reference import Reference, reference

Arrays = dict[str, np.ndarray]
ROUNDING = {True: 5e-5, False: 1e-10}  # how far forward and reverse mode may differ: single precision, double


class RoughError(Exception):
    """The finite differences are too rough to judge by: the function is not smooth enough at these inputs."""


@dataclass(frozen=True)
class Subject:
    """Something under test: the primal and both modes, over values by name.

    `jvp` takes a tangent for every active argument and gives one for every active output; `vjp` the other way round.
    """

    primal: Callable[[Mapping[str, Any]], Mapping[str, np.ndarray]]
    jvp: Callable[[Mapping[str, Any], Arrays], Mapping[str, np.ndarray]]
    vjp: Callable[[Mapping[str, Any], Arrays], Mapping[str, np.ndarray]]


@dataclass(frozen=True)
class Truth:
    """One direction through one case: tangents, cotangents, and the derivative along them by finite differences."""

    case: Case
    model: Reference
    tangents: Arrays
    cotangents: Arrays
    differences: dict[str, Estimate]

    @property
    def pairing(self) -> tuple[float, float, float]:
        """<w, J v>, the error of the finite differences in it, and the size of its terms."""
        value = error = size = 0.0
        for name, estimate in self.differences.items():
            weight = self.cotangents[name]
            value += float(np.sum(weight * estimate.value))
            error += float(np.sum(np.abs(weight) * estimate.error))
            size += float(np.sum(np.abs(weight * estimate.value)))
        return value, error, size


def truth(case: Case, salt: int = 1) -> Truth:
    """Finite differences of the case along a random direction. Raises RoughError where they say too little."""
    model = reference(case.path, case.entry, case.signature, case.flags)
    arguments = case.arguments
    outputs = model(arguments)
    tangents, cotangents = directions(case, model, outputs, salt)
    ends = np.cumsum([outputs[name].size for name in model.active_outputs])[:-1]

    def along(t: float) -> np.ndarray:
        moved = {n: np.float64(v) + t * tangents[n] if n in tangents else v for n, v in arguments.items()}
        results = model(moved)
        return np.concatenate([np.ravel(results[name]) for name in model.active_outputs])

    estimate = derivative(along, case.step)
    parts = zip(model.active_outputs, np.split(estimate.value, ends), np.split(estimate.error, ends), strict=True)
    shaped = {n: Estimate(v.reshape(outputs[n].shape), e.reshape(outputs[n].shape)) for n, v, e in parts}
    made = Truth(case, model, tangents, cotangents, shaped)
    _, error, size = made.pairing
    if not error <= 0.1 * case.tolerance * size:
        raise RoughError(f"{case}: finite differences are off by {error:.1e}, of {size:.1e}")
    return made


def directions(case: Case, model: Reference, outputs: Mapping[str, np.ndarray], salt: int) -> tuple[Arrays, Arrays]:
    """Random tangents of the active arguments and cotangents of the active outputs."""
    r = case.generator(salt)
    tangents = {name: r.normal(size=np.shape(case.arguments[name])) for name in model.active}
    cotangents = {name: r.normal(size=outputs[name].shape) for name in model.active_outputs}
    return tangents, cotangents


def check_primal(subject: Subject, case: Case) -> None:
    """The outputs are the reference's: integers exactly, floats up to rounding."""
    model = reference(case.path, case.entry, case.signature, case.flags)
    expected = model(case.arguments)
    got = subject.primal(case.arguments)
    assert list(got) == list(expected)
    close = 1e-4 if case.single else 1e-11
    for name, value in expected.items():
        if value.dtype.kind == "f":
            np.testing.assert_allclose(got[name], value, rtol=close, atol=close * np.max(np.abs(value), initial=0))
        else:
            np.testing.assert_array_equal(got[name], value, err_msg=name)


def check_forward(subject: Subject, known: Truth) -> float:
    """Every tangent of forward mode is the finite difference; returns <w, J v>."""
    case = known.case
    got = subject.jvp(case.arguments, known.tangents)
    assert set(got) == set(known.differences)
    total = 0.0
    largest = max(float(np.max(np.abs(e.value), initial=0)) for e in known.differences.values())
    for name, estimate in known.differences.items():
        size = max(float(np.max(np.abs(estimate.value), initial=0)), 1e-3 * largest)
        away = np.abs(np.asarray(got[name], np.float64) - estimate.value)
        allowed = _relative(case) * size + 10 * estimate.error
        assert np.all(away <= allowed), (
            f"{case}: forward mode, {name}: off by {np.max(away):.3g}, size {size:.3g}\n"
            f"forward     {np.ravel(got[name])[:8]}\ndifferences {np.ravel(estimate.value)[:8]}"
        )
        total += float(np.sum(known.cotangents[name] * np.asarray(got[name], np.float64)))
    return total


def check_reverse(subject: Subject, known: Truth, forward: float | None = None) -> None:
    """The pairing of reverse mode is that of finite differences, and that of forward mode to rounding."""
    case = known.case
    got = subject.vjp(case.arguments, known.cotangents)
    assert set(got) == set(known.tangents)
    reverse = sum(float(np.sum(known.tangents[n] * np.asarray(got[n], np.float64))) for n in known.tangents)
    value, error, size = known.pairing
    size = max(size, sum(float(np.sum(np.abs(known.tangents[n] * got[n]))) for n in known.tangents))
    assert abs(reverse - value) <= _relative(case) * size + 10 * error, (
        f"{case}: reverse mode gives {reverse!r}, finite differences {value!r}, forward mode {forward!r}\n"
        + "\n".join(f"{n}: {np.ravel(v)[:8]}" for n, v in got.items())
    )
    if forward is not None:
        assert abs(reverse - forward) <= ROUNDING[case.single] * size, (
            f"{case}: forward {forward!r}, reverse {reverse!r}"
        )


def check_modes(subject: Subject, case: Case, salt: int = 1) -> None:
    """<w, J v> of forward and of reverse mode alone."""
    model = reference(case.path, case.entry, case.signature, case.flags)
    tangents, cotangents = directions(case, model, model(case.arguments), salt)
    dots, bars = subject.jvp(case.arguments, tangents), subject.vjp(case.arguments, cotangents)
    terms = [w * dots[n] for n, w in cotangents.items()], [v * bars[n] for n, v in tangents.items()]
    forward, reverse = (sum(float(np.sum(t)) for t in side) for side in terms)
    size = max(sum(float(np.sum(np.abs(t))) for t in side) for side in terms)
    assert abs(reverse - forward) <= 1e-8 * size, f"{case}: forward {forward!r}, reverse {reverse!r}, size {size:.3g}"


def check(subject: Subject, case: Case, salt: int = 1) -> None:
    """All of it."""
    check_primal(subject, case)
    known = truth(case, salt)
    check_reverse(subject, known, check_forward(subject, known))


def _relative(case: Case) -> float:
    return 5e-5 if case.single else case.tolerance
