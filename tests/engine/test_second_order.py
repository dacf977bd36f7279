"""Hessian-vector products by forward mode over reverse mode are finite differences of the gradient; the other orders of
modes give the same numbers, where the engine differentiates what it has emitted, and so do third derivatives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
import pytest

import jax_enzyme as je
from tests.kernels.case import Case
from tests.kernels.corpus import CASES, case
from tests.support import through_jax
from tests.support.differences import derivative
from tests.support.engine import native
from tests.support.loops import LONG
from tests.support.second import ORDERS, Second
from tests.support.through_engine import Specialised

DOUBLE = tuple(row for row in CASES if not row.single)


@pytest.mark.parametrize("row", DOUBLE, ids=str)
def test_forward_over_reverse(row: Case) -> None:
    """Of reverse mode in one function."""
    second = Second(Specialised.of(row), row)
    _check(row, second.pulled_tangent(), second.pulled)


OVER_TAPES = (
    "adaptive_ode", "csr_matvec", "jacobi_swap", "kalman", "lu_pivot", "nested_exits", "sorted_list", "struct_stack",
)  # fmt: skip


@pytest.mark.parametrize("name", OVER_TAPES)
def test_forward_over_both_sweeps(name: str) -> None:
    """As JAX has it, with tangents of what is on the tape."""
    row = case(name)
    f = through_jax.active_function(row, through_jax.kernel(row))
    point = through_jax.active_arguments(row)
    r = row.generator(5)
    out = jax.eval_shape(f, point)
    weights = through_jax.like({n: r.normal(size=v.shape) for n, v in out.items()}, out)
    direction = through_jax.like({n: r.normal(size=v.shape) for n, v in point.items()}, point)
    gradient = jax.jit(lambda x: jax.vjp(f, x)[1](weights)[0])

    def flat(values: Mapping[str, Any]) -> np.ndarray:
        return np.concatenate([np.ravel(values[name]) for name in point])

    def along(t: float) -> np.ndarray:
        return flat(gradient({n: x + t * direction[n] for n, x in point.items()}))

    _check(row, flat(jax.jvp(gradient, (point,), (direction,))[1]), along)


def _check(row: Case, product: np.ndarray, gradient: Callable[[float], np.ndarray]) -> None:
    """A derivative is that of the gradient, which moves along a direction."""
    expected = derivative(gradient, row.step)
    size = max(float(np.max(np.abs(expected.value))), 1e-3 * float(np.max(np.abs(gradient(0.0)))))
    away = np.abs(product - expected.value)
    assert np.all(away <= 1e-7 * size + 10 * expected.error), (
        f"{row}: off by {np.max(away):.3g}, size {size:.3g}\n{product[:8]}\n{expected.value[:8]}"
    )


EVERY_ORDER = (
    "adaptive_ode", "jacobi_swap", "lu_pivot", "malloc_scratch", "nested_exits", "newton", "struct_stack",
    "switch_ops",
)  # fmt: skip
"""Run-time trip counts, allocation, exits, recursion, structures; all others have been checked once."""


@pytest.mark.parametrize("name", EVERY_ORDER)
def test_every_order(name: str) -> None:
    row = case(name)
    second = Second(Specialised.of(row), row)
    products = {order: second.product(order) for order in ORDERS}
    expected = products["fwd-over-rev"]
    assert expected != 0
    np.testing.assert_allclose(list(products.values()), expected, rtol=1e-9, err_msg=str(products))


WALK = """
    #include <math.h>
    static double walk(double *y, int n, double t) {
        if (n <= 0) return t * y[0];
        y[0] = t * y[1] * y[1];
        return walk(y + 1, n - 1, sin(t)) * y[0];
    }
"""


def _agree_in_every_order(
    source: str, signature: str, arguments: Mapping[str, Any], orders: Sequence[str] = ORDERS
) -> None:
    kernel = native(source, "program", signature, {})
    second = Second(
        Specialised(kernel.program, kernel.signature, kernel.binding, kernel.options),
        Case("program", signature, lambda _: arguments),
    )
    products = [second.product(order) for order in orders]
    assert abs(products[0]) > 1e-3
    np.testing.assert_allclose(products, products[0], rtol=1e-9)


def test_every_order_of_recursion() -> None:
    """The forward sweep of a recursive function returns its frame beside its result: a pointer that has a shadow."""
    source = (
        WALK
        + """
        double program(double a, const double *x) {
            double y[4] = { x[0], x[1], x[2], x[3] };
            return walk(y, 3, a);
        }
    """
    )
    arguments = {"a": 0.7, "x": np.array([0.5, 1.1, -0.8, 1.3])}
    _agree_in_every_order(source, "a: f64, x: f64[4] -> f64", arguments)


def test_forward_over_reverse_of_a_tree() -> None:
    """Functions that call themselves return nodes, their shadows and frames in one structure: each leads to its own."""
    source = """
        #include <math.h>
        #include <stdlib.h>
        typedef struct node { double v; struct node *l, *r; int c; } node;
        static node *put(node *t, double v) {
            if (!t) {
                t = calloc(1, sizeof *t);
                t->v = v;
                t->c = 1;
            } else if (v < t->v) t->l = put(t->l, v);
            else t->r = put(t->r, v);
            return t;
        }
        static double sum(node *t) { return t ? sum(t->l) * t->c + sin(t->v) * t->v + sum(t->r) * 0.5 : 0.3; }
        double program(const double *x) {
            node *t = NULL;
            for (int i = 0; i < 4; i++) t = put(t, x[i] * x[3 - i] * (i + 1));
            return sum(t);
        }"""
    arguments = {"x": np.array([0.5, 1.1, 0.8, 1.3])}
    _agree_in_every_order(source, "x: f64[4] -> f64", arguments, ORDERS[:3])


def test_every_order_where_recursion_is_over() -> None:
    """What is loaded behind it is loaded again in front of its reverse, which writes cotangents alone."""
    source = (
        WALK
        + """
        void program(double a, double *y, double *z) {
            double t = walk(y, 3, a);
            for (int i = 0; i < 4; i++) z[i] = t * sin(y[i]) * y[i];
        }
    """
    )
    arguments = {"a": 0.7, "y": np.array([0.5, 1.1, -0.8, 1.3])}
    _agree_in_every_order(source, "a: f64, inout y: f64[4], out z: f64[4]", arguments)


def _over_checkpoints(name: str, checkpoint: object) -> Second:
    long = LONG[name]
    kernel = long.kernel(checkpoint)
    arguments = dict(zip([b.name for b in kernel.buffers if b.is_input], long.arguments(), strict=True))
    row = Case("kernel", long.signature, lambda _: arguments)
    return Second(Specialised(kernel.program, kernel.signature, kernel.binding, kernel.options), row)


CHECKPOINTED = (
    "a convergence loop", "several ways out", "a structure, memory for each step", "a linked list", "BLAS", "recursion",
    "records of numbers and integers that change places", "a structure whose buffers change places",
)  # fmt: skip


@pytest.mark.parametrize("name", CHECKPOINTED)
def test_forward_over_checkpointed_reverse(name: str) -> None:
    """Records and segments are differentiated like everything else."""
    products = [_over_checkpoints(name, checkpoint).product("fwd-over-rev") for checkpoint in ("sqrt", False)]
    assert products[1] != 0
    np.testing.assert_allclose(products[0], products[1], rtol=1e-10)


def test_reverse_over_checkpointed_reverse() -> None:
    """The loops of the reverse sweep free what they have allocated, and need not be cut."""
    name = "a structure whose buffers change places"
    products = [_over_checkpoints(name, "sqrt").product(order) for order in ("rev-over-rev", "fwd-over-rev")]
    assert products[1] != 0
    np.testing.assert_allclose(products[0], products[1], rtol=1e-10)


def test_third_order_of_a_checkpointed_loop() -> None:
    name = "a structure whose buffers change places"
    products = [_over_checkpoints(name, "log").third("rev"), _over_checkpoints(name, False).third("fwd")]
    assert products[1] != 0
    np.testing.assert_allclose(products[0], products[1], rtol=1e-10)


@pytest.mark.parametrize("name", ["sorted_list", "adaptive_ode", "nested_exits", "quadrature"])
def test_third_order(name: str) -> None:
    """Lists, run-time trip counts, exits, recursion: forward over forward over forward, and over reverse."""
    row = case(name)
    second = Second(Specialised.of(row), row)
    products = [second.third("fwd"), second.third("rev")]
    assert products[0] != 0
    np.testing.assert_allclose(products[1], products[0], rtol=1e-9)


@pytest.mark.parametrize("file", ["ir_entries.ll", "ir_nodes.ll"])
def test_forward_over_reverse_of_loops_with_several_entries(file: str) -> None:
    """What is kept of a branch is no part of the numbers that nodes of other loops have at its place."""
    random = np.random.default_rng(1)
    arguments = {"a": 0.7, "x": random.normal(size=8), "y": random.normal(size=8)}
    signature = "n: i32, a: f64, x: f64[n], inout y: f64[n] -> f64"
    row = Case("program", signature, lambda _: arguments, file=file)
    second = Second(Specialised.of(row), row)
    products = [second.product(order) for order in ("fwd-over-rev", "fwd-over-fwd")]
    assert abs(products[0]) > 1e-3
    np.testing.assert_allclose(products, products[0], rtol=1e-9)


def test_reverse_over_reverse_of_solutions() -> None:
    """The frames of a LAPACK routine have numbers, integers and pointers in them, and copies of numbers and pivots
    beside them."""
    source = """
        extern void dgesv_(const int *, const int *, double *, const int *, int *, double *, const int *, int *);
        void program(double *a, double *b) {
            const int n = 2, one = 1;
            int pivots[2], info;
            for (int k = 0; k < 4; k++) {
                a[0] += b[0] * b[1];
                dgesv_(&n, &one, a, &n, pivots, b, &n, &info);
            }
        }
    """
    arguments = {"a": np.array([2.0, 0.3, 0.5, 1.7]), "b": np.array([0.9, -0.4])}
    _agree_in_every_order(source, "inout a: f64[4], inout b: f64[2]", arguments, ("fwd-over-fwd", "rev-over-rev"))


def test_pow_has_a_mixed_derivative_where_the_exponent_is_zero() -> None:
    source = "#include <math.h>\ndouble f(const double *x) { return pow(x[0], x[1]); }"
    with jax.enable_x64(True):
        f = je.kernel(source, "f", "x: f64[2] -> f64", lang="c")
        expected = [[0, 1 / 1.7], [1 / 1.7, np.log(1.7) ** 2]]
        np.testing.assert_allclose(jax.hessian(f)(np.array([1.7, 0.0])), expected, rtol=1e-14)
