"""Kernels that search for a root: derivatives of the answer, not of the path to it.

A routine that iterates (bisection, Newton, a self-consistent field) returns x with F(x, a) = 0. Its answer depends on
`a` through this equation alone, so (implicit function theorem; Griewank and Walther, Evaluating Derivatives, ch. 15)

    F_x dx + F_a da = 0,    dx = - F_x^{-1} F_a da

where F_x is the Jacobian of the residual at the answer. Only the residual is differentiated; the search may branch,
stop early, print, or have no derivative at all. The rule is a JVP that is linear in `da`: JAX transposes it for reverse
mode, maps it, and differentiates it again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.scipy.sparse.linalg import gmres

from jax_enzyme.errors import ArgumentError
from jax_enzyme.primitives.arguments import check_formals
from jax_enzyme.primitives.kernels import Kernel
from jax_enzyme.signature import match
from jax_enzyme.signature.params import INTEGERS

Solver = Callable[[Callable[[jax.Array], jax.Array], jax.Array], jax.Array]


def implicit(
    kernel: Kernel,
    residual: Callable[..., Any],
    *,
    result: str | int | Sequence[str | int] | None = None,
    solver: Literal["dense", "gmres"] | Solver = "dense",
    tolerance: float = 1e-4,
) -> Implicit:
    """A function with the values of `kernel` and the derivatives that the implicit function theorem gives.

    `residual` is zero where `kernel` has found its answer: a kernel, whose parameters have the names of results and
    parameters of `kernel`, or a function of JAX's that is called with the answer first and then with the arguments. It
    returns as many numbers as the answer has. `result` says which result is the answer, by name or place, or which ones
    are (then `residual` gets a tuple); left out, all results with floating-point numbers are the answer. Other results
    must be integers.

        >>> source = '''
        ... double root(double a) { double lo = 0, hi = 1 + a; while (hi - lo > 1e-14 * hi) {
        ...     double x = (lo + hi) / 2; if (x * x > a) hi = x; else lo = x; } return lo; }'''
        >>> search = je.kernel(source, "root", "a: f64 -> f64", lang="c")
        >>> root = je.implicit(search, lambda x, a: x * x - a)
        >>> with jax.enable_x64(True):
        ...     print(f"{jax.grad(search)(2.0):.3f} {jax.grad(root)(2.0):.3f}")  # the ends of the search move with a
        0.471 0.354

    `solver` solves the linear system of the derivative: "dense" makes the Jacobian of the residual and factorises it;
    "gmres" needs products with it only, for answers of many numbers; a function gets a linear function and a vector,
    and returns the solution. It has to be linear in the vector (`jax.lax.custom_linear_solve` makes it so).

    Derivatives are NaN where a Newton step from the answer would move it by more than `tolerance` of its size: the
    search has not come to a root of this residual, and the theorem says nothing there.

    Raises ArgumentError where names do not fit, or the residual has not the size of the answer.
    """
    check_formals(kernel.signature, "an implicit function")
    floating = [r.name for r in kernel.signature.results if r.dtype not in INTEGERS | {"bool"}]
    given = result if isinstance(result, Sequence) and not isinstance(result, str) else [result]
    names = floating if result is None else [_named(kernel, r) for r in given]
    _check_results(kernel, names, floating)
    if isinstance(residual, Kernel):
        _check_residual(kernel, residual, names)
    if not callable(solver) and solver not in ("dense", "gmres"):
        raise ArgumentError(f"solver={solver!r} is no solver", None, '"dense", "gmres" or a function')
    return Implicit(kernel, residual, tuple(names), given is result or len(names) > 1, solver, tolerance)


def _named(kernel: Kernel, result: Any) -> str:
    """The name of a result that is given by name or by place."""
    results = kernel.signature.results
    if isinstance(result, str):
        return result
    if isinstance(result, int | np.integer) and not isinstance(result, bool) and -len(results) <= result < len(results):
        return results[int(result)].name
    listed = f"the results of `{kernel.__name__}` are {', '.join(map(str, results))}"
    raise ArgumentError(f"result={result!r} is neither the name nor the place of a result", listed)


def _check_results(kernel: Kernel, names: Sequence[str], floating: Sequence[str]) -> None:
    listed = f"the results of `{kernel.__name__}` are {', '.join(map(str, kernel.signature.results))}"
    for name in names:
        if name not in floating:
            raise ArgumentError(f"`{name}` is no floating-point result", listed, "name what the residual determines")
    left = [name for name in floating if name not in names]
    if left:
        raise ArgumentError(
            f"the residual does not determine `{left[0]}`, which would have no derivative",
            listed,
            f"give `result={(*names, *left)}` and a residual for both, or compute `{left[0]}` from the answer in JAX",
        )
    if len(names) == 0:
        raise ArgumentError("there is no floating-point result to differentiate", listed)


def _check_residual(kernel: Kernel, residual: Kernel, names: Sequence[str]) -> None:
    known = {*names, *(p.name for p in kernel.signature.caller_params)}
    for param in residual.signature.caller_params:
        if param.name not in known:
            raise ArgumentError(
                f"the residual's parameter `{param.name}` is neither a result nor a parameter of `{kernel.__name__}`",
                f"there are {', '.join(sorted(known))}",
                "parameters of a residual that is a kernel go by their names",
            )


@dataclass(frozen=True)
class Implicit:
    """What `je.implicit` makes. Call it like the kernel."""

    kernel: Kernel
    residual: Callable[..., Any]
    names: tuple[str, ...]
    several: bool
    solver: Literal["dense", "gmres"] | Solver
    tolerance: float
    _places: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        every = [r.name for r in self.kernel.signature.results]
        object.__setattr__(self, "_places", tuple(map(every.index, self.names)))

    @property
    def __name__(self) -> str:
        return self.kernel.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        every = match(self.kernel.signature, args, kwargs)
        # Python's integers are constants of a kernel, and would be data if they went through JAX.
        constants = {i: v for i, v in enumerate(every) if isinstance(v, int | np.integer)}
        dynamic = [v for i, v in enumerate(every) if i not in constants]

        def joined(values: Sequence[Any]) -> list[Any]:
            rest = iter(values)
            return [constants[i] if i in constants else next(rest) for i in range(len(every))]

        @jax.custom_jvp
        def run(*values: Any) -> tuple[Any, ...]:
            found = self.kernel(*joined(values))
            return found if isinstance(found, tuple) else (found,)

        def rule(values: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
            found = run(*values)
            moved = self._moved(found, lambda given: joined(given), values, tangents)
            return found, tuple(
                moved[i] if i in moved else np.zeros(v.shape, jax.dtypes.float0) for i, v in enumerate(found)
            )

        run.defjvp(rule)
        results = run(*dynamic)
        return results[0] if len(results) == 1 else results

    def _moved(
        self,
        found: tuple[Any, ...],
        joined: Callable[[Sequence[Any]], list[Any]],
        values: tuple[Any, ...],
        tangents: tuple[Any, ...],
    ) -> Mapping[int, Any]:
        """The tangents of the answer, by place."""
        flat, answer_of = ravel_pytree(tuple(found[i] for i in self._places))

        def residual(x: jax.Array, given: Sequence[Any]) -> jax.Array:
            return ravel_pytree(self._residual(answer_of(x), joined(given)))[0]

        left, slope = jax.linearize(lambda x: residual(x, values), flat)
        if left.shape != flat.shape:
            raise ArgumentError(
                f"the residual has {left.size} numbers and the answer {flat.size}",
                f"the answer is {', '.join(self.names)}",
                "there has to be one equation for each number of the answer",
            )
        _, driven = jax.jvp(lambda *given: residual(flat, given), values, tangents)
        step = jax.lax.stop_gradient(self._solve(slope, left))
        size = jnp.maximum(1.0, jnp.max(jnp.abs(flat), initial=0.0))
        found_root = jnp.max(jnp.abs(step), initial=0.0) <= self.tolerance * size
        factor = jax.lax.stop_gradient(jnp.where(found_root, 1.0, math.nan).astype(flat.dtype))
        return dict(zip(self._places, answer_of(self._solve(slope, -driven) * factor), strict=True))

    def _residual(self, answer: tuple[Any, ...], args: Sequence[Any]) -> Any:
        if not isinstance(self.residual, Kernel):
            return self.residual(answer if self.several else answer[0], *args)
        params = self.kernel.signature.caller_params
        by_name = {p.name: v for p, v in zip(params, args, strict=True)} | dict(zip(self.names, answer, strict=True))
        return self.residual(**{p.name: by_name[p.name] for p in self.residual.signature.caller_params})

    def _solve(self, slope: Callable[[jax.Array], jax.Array], right: jax.Array) -> jax.Array:
        if callable(self.solver):
            return self.solver(slope, right)
        if self.solver == "gmres":
            # The tolerances of `gmres` depend on the right-hand side: JAX can transpose it as a whole only.
            return jax.lax.custom_linear_solve(slope, right, _by_products, _by_products)
        jacobian = jax.vmap(slope, in_axes=1, out_axes=1)(jnp.eye(right.size, dtype=right.dtype))
        return jnp.linalg.solve(jacobian, right)


def _by_products(slope: Callable[[jax.Array], jax.Array], right: jax.Array) -> jax.Array:
    return gmres(slope, right, tol=10 * float(jnp.finfo(right.dtype).eps))[0]
