"""Derivatives of answers that a kernel searches for: `je.implicit`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jax_enzyme as je

# Its path has no derivative that is that of the answer: ends that are chosen by comparison, and a count of steps.
BISECTION = """
double root(double a, double b) {
    double lo = 0, hi = 10;
    for (int i = 0; i < 80; i++) {
        double x = (lo + hi) / 2;
        if (x * x * x + b * x > a) hi = x; else lo = x;
    }
    return lo;
}
"""
# x_i = a_i + 0.1 sin(sum of x): found by iterating; counts its steps.
FIELD = """
#include <math.h>
void field(int n, const double *a, double *x, int *steps) {
    for (int i = 0; i < n; i++) x[i] = 0;
    for (*steps = 0; *steps < 200; ++*steps) {
        double s = 0, moved = 0;
        for (int i = 0; i < n; i++) s += x[i];
        for (int i = 0; i < n; i++) {
            double next = a[i] + 0.1 * (i + 1) * sin(s);
            moved = fmax(moved, fabs(next - x[i]));
            x[i] = next;
        }
        if (moved < 1e-15) break;
    }
}
void left(int n, const double *x, const double *a, double *r) {
    double s = 0;
    for (int i = 0; i < n; i++) s += x[i];
    for (int i = 0; i < n; i++) r[i] = x[i] - a[i] - 0.1 * (i + 1) * sin(s);
}
"""
root = je.kernel(BISECTION, "root", "a: f64, b: f64 -> f64", lang="c")
field = je.kernel(FIELD, "field", "n: i32, a: f64[n], out x: f64[n], out steps: i32[]", lang="c")
left = je.kernel(FIELD, "left", "n: i32, x: f64[n], a: f64[n], out r: f64[n]", lang="c")


def cubic(x: Any, a: Any, b: Any) -> Any:
    return x**3 + b * x - a


def differences(f: Any, x: Any, i: int, step: float = 1e-5) -> Any:
    return (f(x.at[i].add(step)) - f(x.at[i].add(-step))) / (2 * step)


def test_both_modes_under_jit() -> None:
    found = je.implicit(root, cubic)
    a, b = 3.0, 2.0
    x = root(a, b)
    assert found(a, b) == x
    expected = np.array([1.0, -x]) / (3 * x**2 + b)
    np.testing.assert_allclose(jax.jit(jax.grad(found, (0, 1)))(a, b), expected, rtol=1e-12)
    np.testing.assert_allclose(jax.jacfwd(found, (0, 1))(a, b), expected, rtol=1e-12)


def test_second_derivatives_and_vmap() -> None:
    found = je.implicit(root, cubic)
    a = jnp.linspace(1.0, 4.0, 4)
    curved = jax.jit(jax.vmap(jax.grad(jax.grad(found)), (0, None)))(a, 2.0)
    x = jax.vmap(root, (0, None))(a, 2.0)
    np.testing.assert_allclose(curved, -6 * x / (3 * x**2 + 2.0) ** 3, rtol=1e-10)


@pytest.mark.parametrize(
    ("residual", "solver"), [(left, "gmres"), (lambda x, a: left(x, a), "dense")], ids=["kernel", "function"]
)
def test_an_answer_of_many_numbers(solver: Any, residual: Any) -> None:
    found = je.implicit(field, residual, solver=solver)
    a = jnp.array([0.3, -0.2, 0.7])
    weights = jnp.array([1.0, 2.0, -1.0])

    def loss(a: Any) -> Any:
        return weights @ found(a)[0] ** 2

    expected = [differences(jax.jit(lambda a: weights @ field(a)[0] ** 2), a, i) for i in range(3)]
    np.testing.assert_allclose(jax.jit(jax.grad(loss))(a), expected, rtol=1e-7)
    np.testing.assert_allclose(jax.jit(jax.jacfwd(loss))(a), expected, rtol=1e-7)
    assert found(a)[1].dtype == jnp.int32


def test_arguments_by_name_and_python_integers() -> None:
    source = "double f(int k, double a) { double x = 1; for (int i = 0; i < k; i++) x = (x + a / x) / 2; return x; }"
    newton = je.kernel(source, "f", "k: i32, a: f64 -> f64", lang="c")
    found = je.implicit(newton, lambda x, k, a: x * x - a)
    np.testing.assert_allclose(jax.grad(lambda a: found(a=a, k=20))(2.0), 0.5 / np.sqrt(2.0), rtol=1e-12)


def test_no_root_of_the_residual_has_no_derivative() -> None:
    other = je.implicit(root, lambda x, a, b: cubic(x, a, b) + 1)
    assert other(3.0, 2.0) == root(3.0, 2.0)
    assert np.isnan(jax.grad(other)(3.0, 2.0)) and np.isnan(jax.jacfwd(other)(3.0, 2.0))


@pytest.mark.parametrize("answer", [("x", "y"), (0, -1), None], ids=["by name", "by place", "all"])
def test_two_unknowns(answer: tuple[str, str] | tuple[int, int] | None) -> None:
    source = "void f(double a, double *x, double *y) { *x = a * a; *y = a + *x; }"
    pair = je.kernel(source, "f", "a: f64, out x: f64[], out y: f64[]", lang="c")
    found = je.implicit(pair, lambda xy, a: (xy[0] - a * a, xy[1] - a - xy[0]), result=answer)
    np.testing.assert_allclose(jax.jacrev(found)(3.0), (6.0, 7.0), rtol=1e-12)
    if answer is not None:
        with pytest.raises(je.ArgumentError, match="does not determine `y`"):
            je.implicit(pair, lambda x, a: x - a * a, result=answer[0])


def test_what_does_not_fit() -> None:
    with pytest.raises(je.ArgumentError, match="`z` is no floating-point result"):
        je.implicit(root, cubic, result="z")
    with pytest.raises(je.ArgumentError, match="result=1 is neither the name nor the place"):
        je.implicit(root, cubic, result=1)
    for neither in (True, 0.5, {"x"}, np.int64(1)):
        with pytest.raises(je.ArgumentError, match="neither the name nor the place"):
            je.implicit(root, cubic, result=neither)
    for first in (0, np.int64(0), np.uint8(0)):
        assert jax.grad(je.implicit(root, cubic, result=first))(3.0, 2.0) == jax.grad(je.implicit(root, cubic))(
            3.0, 2.0
        )
    with pytest.raises(je.ArgumentError, match="parameter `x` is neither"):
        je.implicit(root, left)
    with pytest.raises(je.ArgumentError, match="no solver"):
        je.implicit(root, cubic, solver="lu")  # type: ignore[arg-type]
    with pytest.raises(je.ArgumentError, match="has 2 numbers and the answer 1"):
        jax.grad(je.implicit(root, lambda x, a, b: jnp.stack([x, a])))(1.0, 2.0)
    with pytest.raises(je.ArgumentError, match="missing argument"):
        je.implicit(root, cubic)(1.0)
