"""Solves dimensions from the shapes of arguments.

Every dim of an input gives an equation `expression = extent`. What solves what is decided once, from the signature
alone (`plan`), so that a signature whose dimensions cannot be solved is refused where it is written, not where it is
called:

1. a dim that is a name alone gives that name;
2. a polynomial with one unknown gives it (`n+1`, `2*n`, `n*n`, `d*(d+1)/2`, and `n*m` where `n` is known);
3. linear equations in several unknowns give them together (`n+m` and `n-m`).

Expressions with `//`, `%` or a division by a name are only checked, never solved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from math import isqrt

import numpy as np

from jax_enzyme.classes import dataclass
from jax_enzyme.errors import ArgumentError, SignatureError
from jax_enzyme.signature.expressions import (
    Expression,
    Name,
    Polynomial,
    degree,
    names_in,
    polynomial,
    polynomial_names,
    substitute,
)
from jax_enzyme.signature.model import Signature
from jax_enzyme.signature.params import Param, integer_range


@dataclass(frozen=True, slots=True)
class Equation:
    """Dim number `axis` of an input."""

    param: Param
    axis: int

    @property
    def expression(self) -> Expression:
        return (self.param.dims or ())[self.axis]


@dataclass(frozen=True, slots=True)
class SolveStep:
    """These equations give these names. One equation and one name, or a linear system."""

    names: tuple[str, ...]
    equations: tuple[Equation, ...]


@lru_cache(maxsize=256)
def plan(signature: Signature) -> tuple[SolveStep, ...]:
    """The steps that solve all names, in order; SignatureError, by name, if they do not exist."""
    equations = [Equation(p, axis) for p in signature.caller_params for axis in range(p.rank)]
    steps: list[SolveStep] = []
    known: set[str] = set()
    for equation in equations:
        if isinstance(equation.expression, Name) and equation.expression.name not in known:
            known.add(equation.expression.name)
            steps.append(SolveStep((equation.expression.name,), (equation,)))
    while (step := _single(equations, known) or _system(equations, known)) is not None:
        steps.append(step)
        known.update(step.names)
    missing = sorted(signature.shape_names - known)
    if missing:
        raise _unsolvable(signature, missing)
    return tuple(steps)


def _single(equations: Sequence[Equation], known: set[str]) -> SolveStep | None:
    for equation in equations:
        form = polynomial(equation.expression)
        unknown = [] if form is None else sorted(polynomial_names(form) - known)
        if len(unknown) == 1:
            return SolveStep((unknown[0],), (equation,))
    return None


def _system(equations: Sequence[Equation], known: set[str]) -> SolveStep | None:
    """A linear system with constant coefficients that determines some of the unknowns, by elimination."""
    rows: list[tuple[Equation, Polynomial]] = []
    for equation in equations:
        form = polynomial(equation.expression)
        if form is None:
            continue
        unknown_part = {m: c for m, c in form.items() if any(name not in known for name, _ in m)}
        if unknown_part and degree(unknown_part) == 1:
            rows.append((equation, unknown_part))
    unknowns = sorted({name for _, form in rows for name in polynomial_names(form)})
    matrix = [[form.get(((name, 1),), Fraction(0)) for name in unknowns] for _, form in rows]
    reduced, used = _eliminate(matrix)
    determined = [j for row in reduced for j in [_pivot(row)] if sum(1 for x in row if x) == 1]
    if not determined:
        return None
    return SolveStep(tuple(unknowns[j] for j in determined), tuple(rows[i][0] for i in used))


def _pivot(row: Sequence[Fraction]) -> int:
    return next(j for j, x in enumerate(row) if x)


def _eliminate(
    matrix: Sequence[Sequence[Fraction]], columns: int | None = None
) -> tuple[list[list[Fraction]], list[int]]:
    """Reduced row echelon form without zero rows, pivots in the first `columns` only, and the original rows that
    carry them."""
    rows = [(index, list(row)) for index, row in enumerate(matrix)]
    width = columns if columns is not None else len(matrix[0]) if matrix else 0
    done: list[tuple[int, list[Fraction]]] = []
    for column in range(width):
        chosen = next((entry for entry in rows if entry[1][column]), None)
        if chosen is None:
            continue
        rows.remove(chosen)
        index, row = chosen
        row = [x / row[column] for x in row]
        rows = [(i, [a - r[column] * b for a, b in zip(r, row, strict=True)]) for i, r in rows]
        done = [(i, [a - r[column] * b for a, b in zip(r, row, strict=True)]) for i, r in done]
        done.append((index, row))
    return [row for _, row in done], [index for index, _ in done]


def _unsolvable(signature: Signature, missing: Sequence[str]) -> SignatureError:
    name = missing[0]
    users = [p for p in signature.params if any(name in names_in(d) for d in p.dims or ())]
    where = ", ".join(f"`{p}`" for p in users)
    if not any(p.is_input for p in users):
        first = users[0]
        return SignatureError(
            f"the dimension `{name}` cannot be solved: no argument that the caller passes has it in its shape",
            f"it occurs only in {where}",
            f"where it is the same in every call, give it to je.kernel: `{name}=17`; otherwise let the caller pass"
            f" an array that has it: `inout {first.name}: {first.type_text}`, or another input",
        )
    listed = ", ".join(f"`{n}`" for n in missing)
    them = "it" if len(missing) == 1 else "them"
    return SignatureError(
        f"the dimension{'s' if len(missing) > 1 else ''} {listed} cannot be solved from the shapes of the arguments",
        f"{'it occurs' if len(missing) == 1 else 'they occur'} in {where}",
        f"give {them} an argument whose shape determines {them}, such as `f64[{name}]`; `//`, `%` and division by a"
        " name cannot be inverted",
    )


def solve(signature: Signature, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    """The value of every name that occurs in a shape, from the shapes of the inputs (whose ranks are right).

    Raises ArgumentError for shapes that do not agree: it names the argument, what it should be and what it is.
    """
    values: dict[str, int] = {}
    origin: dict[str, tuple[str, ...]] = {}
    for step in plan(signature):
        if len(step.names) == 1 and len(step.equations) == 1:
            solved = {step.names[0]: _root(step.names[0], step.equations[0], shapes, values)}
        else:
            solved = _solve_system(step, shapes, values)
        for name, value in solved.items():
            origin[name] = tuple(dict.fromkeys(e.param.name for e in step.equations))
            if name in signature:
                _check_range(signature[name], value, origin[name])
        values.update(solved)
    for param in signature.params:
        if param.dims and signature.is_passed(param):
            _check_shape(signature, param, shapes[param.name], values, origin)
        elif param.dims:
            signature.shape(param.name, values)
    return values


def _check_range(param: Param, value: int, origin: tuple[str, ...]) -> None:
    low, high = integer_range(param.dtype)
    if not low <= value <= high:
        raise ArgumentError(
            f"the dimension {param.name} = {value}, from `{', '.join(origin)}`, does not fit {param.dtype}"
        )


def _check_shape(
    signature: Signature,
    param: Param,
    actual: tuple[int, ...],
    values: Mapping[str, int],
    origin: Mapping[str, tuple[str, ...]],
) -> None:
    expected = signature.shape(param.name, values)
    if actual == expected:
        return
    names = sorted(frozenset[str]().union(*(names_in(dim) for dim in param.dims or ())))
    reasons = ", ".join(f"{n} = {values[n]} (from `{', '.join(origin[n])}`)" for n in names)
    raise ArgumentError(
        f"argument `{param.name}` has shape {_shape(actual)}, expected {_shape(expected)}",
        f"{param}" + (f" with {reasons}" if reasons else ""),
    )


def _shape(shape: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def _extent(equation: Equation, shapes: Mapping[str, tuple[int, ...]]) -> int:
    return shapes[equation.param.name][equation.axis]


def _form(equation: Equation) -> Polynomial:
    form = polynomial(equation.expression)
    assert form is not None, "the plan only solves polynomials"
    return form


def _root(name: str, equation: Equation, shapes: Mapping[str, tuple[int, ...]], values: Mapping[str, int]) -> int:
    """The only non-negative integer that makes one equation true."""
    extent = _extent(equation, shapes)
    if isinstance(equation.expression, Name):
        return extent
    form = substitute(_form(equation), values)
    coefficients = [Fraction(0)] * (degree(form) + 1)
    for monomial, coefficient in form.items():
        coefficients[monomial[0][1] if monomial else 0] += coefficient
    coefficients[0] -= extent
    place = f"axis {equation.axis} of {equation.param}"
    known = ", ".join(f"{n} = {values[n]}" for n in sorted(polynomial_names(_form(equation)) - {name}))
    with_known = f" with {known}" if known else ""
    if len(coefficients) == 1:
        raise ArgumentError(
            f"the dimension `{name}` cannot be told from `{equation.param.name}`: {equation.expression} does not depend"
            f" on it{with_known}",
            place,
        )
    roots = _integer_roots(coefficients)
    if len(roots) == 1:
        return roots[0]
    shape = _shape(shapes[equation.param.name])
    if not roots:
        cause = f"argument `{equation.param.name}` has shape {shape}, but no {name} >= 0 makes"
        cause += f" {equation.expression} = {extent}{with_known}"
    else:
        cause = f"the dimension `{name}` cannot be told from `{equation.param.name}` of shape {shape}:"
        cause += f" {equation.expression} = {extent} for {name} = {' and '.join(map(str, roots))}{with_known}"
    raise ArgumentError(cause, place)


def _integer_roots(coefficients: Sequence[Fraction]) -> list[int]:
    """The non-negative integer roots of the polynomial with these coefficients, constant first; the last is not 0."""
    if len(coefficients) == 2:
        candidates = {-coefficients[0] / coefficients[1]}
        return [int(c) for c in candidates if c.denominator == 1 and c >= 0]
    if len(coefficients) == 3:
        near = _quadratic_candidates(coefficients)
    else:
        found = np.roots([float(c) for c in reversed(coefficients)])
        near = {round(float(r.real)) + step for r in found for step in (-1, 0, 1)}
    return [n for n in sorted(near) if n >= 0 and sum(c * n**k for k, c in enumerate(coefficients)) == 0]


def _quadratic_candidates(coefficients: Sequence[Fraction]) -> set[int]:
    scale = coefficients[0].denominator * coefficients[1].denominator * coefficients[2].denominator
    c, b, a = (int(x * scale) for x in coefficients)
    discriminant = b * b - 4 * a * c
    if discriminant < 0:
        return set()
    root = isqrt(discriminant)
    return {(-b + sign * root) // (2 * a) for sign in (-1, 1)}


def _solve_system(step: SolveStep, shapes: Mapping[str, tuple[int, ...]], values: Mapping[str, int]) -> dict[str, int]:
    forms = [substitute(_form(equation), values) for equation in step.equations]
    unknowns = sorted({name for form in forms for name in polynomial_names(form)})
    matrix = [
        [
            *(form.get(((name, 1),), Fraction(0)) for name in unknowns),
            _extent(equation, shapes) - form.get((), Fraction(0)),
        ]
        for equation, form in zip(step.equations, forms, strict=True)
    ]
    reduced, _ = _eliminate(matrix, len(unknowns))
    solution = {unknowns[_pivot(row)]: row[-1] for row in reduced if sum(1 for x in row[:-1] if x) == 1}
    wrong = {name: solution[name] for name in step.names if solution[name] < 0 or solution[name].denominator != 1}
    if wrong:
        given = ", ".join(f"`{e.param.name}` of shape {_shape(shapes[e.param.name])}" for e in step.equations)
        found = ", ".join(f"{name} would be {value}" for name, value in wrong.items())
        raise ArgumentError(
            f"the shapes do not agree: {found}, from {given}", ", ".join(str(e.param) for e in step.equations)
        )
    return {name: int(solution[name]) for name in step.names}
