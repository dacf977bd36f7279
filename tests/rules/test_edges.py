"""Where a derivative does not exist, the rules do what jax.numpy does."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Module
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.rules.emit import emit
from jax_enzyme.rules.expr import Const, Expr
from jax_enzyme.rules.table import standard
from tests.rules.native import Compiled, define

inf, nan = math.inf, math.nan

CASES: dict[str, tuple[Callable[..., Any], list[tuple[float, ...]]]] = {
    "fabs": (jnp.abs, [(0.0,), (-0.0,), (inf,), (-inf,), (nan,)]),
    "sqrt": (jnp.sqrt, [(0.0,), (-0.0,), (inf,), (-1.0,)]),
    "cbrt": (jnp.cbrt, [(0.0,), (inf,)]),
    "log": (jnp.log, [(0.0,), (-0.0,), (inf,)]),
    "log1p": (jnp.log1p, [(-1.0,), (inf,)]),
    "asin": (jnp.arcsin, [(1.0,), (-1.0,), (2.0,)]),
    "acos": (jnp.arccos, [(1.0,), (-1.0,), (2.0,)]),
    "atanh": (jnp.arctanh, [(1.0,), (-1.0,)]),
    "acosh": (jnp.arccosh, [(1.0,)]),
    "tanh": (jnp.tanh, [(inf,), (-inf,), (40.0,)]),
    "expm1": (jnp.expm1, [(-inf,), (-50.0,)]),
    "exp2": (jnp.exp2, [(-inf,), (0.0,)]),
    "atan2": (jnp.arctan2, [(0.0, 0.0), (0.0, 1.0), (0.0, -1.0), (1.0, 0.0), (inf, 1.0)]),
    "hypot": (jnp.hypot, [(0.0, 2.0), (-3.0, 0.0)]),
    "pow": (
        jnp.power,
        [(0.0, 2.0), (0.0, 1.0), (0.0, 0.5), (0.0, -1.0), (0.0, 3.0), (2.0, 0.0), (-2.0, 3.0), (-2.0, 0.0)],
    ),
    "copysign": (jnp.copysign, [(0.0, 1.0), (-0.0, -1.0), (2.0, -1.0), (-2.0, 1.0)]),
    "maximum": (jnp.maximum, [(1.0, 1.0), (0.0, -0.0), (nan, 1.0), (1.0, nan), (inf, inf), (1.0, 2.0)]),
    "minimum": (jnp.minimum, [(1.0, 1.0), (0.0, -0.0), (nan, 1.0), (1.0, nan), (-inf, 1.0), (1.0, 2.0)]),
    "fmax": (jnp.fmax, [(nan, 1.0), (1.0, nan), (1.0, 2.0), (2.0, 1.0)]),
    "fmin": (jnp.fmin, [(nan, 1.0), (1.0, nan), (1.0, 2.0), (2.0, 1.0)]),
    "fdim": (lambda x, y: jnp.maximum(x - y, 0.0), [(1.0, 1.0), (2.0, 1.0), (1.0, 2.0)]),
    "fmod": (jnp.fmod, [(5.5, 2.0), (-5.5, 2.0), (4.0, 2.0), (1.0, inf)]),
    "lgamma": (jax.lax.lgamma, [(-1.0,), (-2.5,), (0.5,)]),
    "digamma": (jax.lax.digamma, [(-2.5,), (0.5,)]),
    "modf_fraction": (lambda x: jnp.modf(x)[0], [(2.0,), (-2.0,), (0.0,)]),
    "frexp_fraction": (lambda x: jnp.frexp(x)[0], [(3.0,), (-4.0,), (0.75,)]),
}
# x**0 is one everywhere; fmax must not depend on the order of its arguments; digamma has poles with two signs, and
# becomes flat at infinity. At the origin of hypot and at the pole of lgamma versions of JAX differ.
OURS: dict[tuple[str, int, tuple[float, ...]], float] = {
    ("pow", 0, (0.0, 0.0)): 0.0,
    ("fmax", 0, (1.0, 1.0)): 0.5,
    ("fmax", 1, (1.0, 1.0)): 0.5,
    ("fmin", 0, (0.0, -0.0)): 0.5,
    ("hypot", 0, (0.0, 0.0)): 0.5,
    ("hypot", 1, (0.0, 0.0)): 0.5,
    ("lgamma", 0, (0.0,)): nan,
    ("digamma", 0, (0.0,)): nan,
    ("digamma", 0, (-1.0,)): nan,
    ("digamma", 0, (inf,)): 0.0,
}


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    module = Module()
    declarations = Declarations(module)
    for name in CASES:
        rule = standard().functions[name]
        for index, partial in enumerate(rule.partials):
            function, builder = define(module, f"{name}.{index}", T.DOUBLE, [T.DOUBLE] * rule.arity)
            values = list(function.arguments)
            y = declarations.call(builder, name, values, T.DOUBLE)
            known = {f"x{i}": v for i, v in enumerate(values)} | {"y": y}
            formula = partial if isinstance(partial, Expr) else Const(0)
            builder.ret(emit(formula, builder, known, declarations, T.DOUBLE))
    return Compiled(module)


@pytest.mark.parametrize("name, point", [(name, point) for name, (_, points) in CASES.items() for point in points])
def test_edges_follow_jax(compiled: Compiled, name: str, point: tuple[float, ...]) -> None:
    function = CASES[name][0]
    for index in range(len(point)):
        expected = jax.grad(function, index)(*map(jnp.float64, point))
        value = compiled[f"{name}.{index}"](*point)
        np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-12, err_msg=f"by argument {index}")


@pytest.mark.parametrize("name, index, point", OURS)
def test_edges_of_our_own(compiled: Compiled, name: str, index: int, point: tuple[float, ...]) -> None:
    np.testing.assert_equal(compiled[f"{name}.{index}"](*point), OURS[name, index, point])
