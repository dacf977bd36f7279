"""Bodies of routines for real and complex numbers: values are SciPy's, and derivatives agree three ways."""

from __future__ import annotations

import re
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import lapack

import jax_enzyme as je
from tests.rules.blas.arrays import Array
from tests.support.engine import Native, agree, native
from tests.support.engine import one_way as three_way

N = 5
_AHEAD = """
  int one = 1, two = 2, three = 3, info = 0, room = 99, p[16], space[99];
  number work[99], tau[16], few[16];
  double reals[99];
"""
sides = pytest.mark.parametrize("uplo", ["U", "L"])
kinds = pytest.mark.parametrize("letter", ["d", "z"])


def kernel(letter: str, signature: str, calls: str, n: int = N) -> Native:
    """A kernel of these calls; `number` is real or complex, `?` the letter of a routine, and `F` the dtype of an array,
    as `f64` stands for real numbers."""
    calls, dtype = calls.replace("?", letter), {"d": "f64", "z": "c128"}[letter]
    names = sorted(set(re.findall(r"\b([dz]\w+_)\(", calls)))
    functions = "".join(f"{'double' if name[1:4] == 'lan' else 'void'} {name}();\n" for name in names)
    parameters = [
        f"{'double' if 'f64' in p else 'number'} *{p.removeprefix('inout ').removeprefix('out ').split(':')[0]}"
        for p in signature.split(", ")
    ]
    source = (
        f"typedef double {'_Complex ' if letter == 'z' else ''}number;\n{functions}"
        f"void k(int n, {', '.join(parameters)}) {{{_AHEAD}{calls}}}"
    )
    return native(source, "k", f"n: i32, {signature.replace('F[', f'{dtype}[')}", {"n": n})


def _random(letter: str, *shapes: tuple[int, ...]) -> list[Array]:
    r = np.random.default_rng(7)
    return [r.normal(size=shape) + (1j * r.normal(size=shape) if letter == "z" else 0) for shape in shapes]


def _packed(a: Array, uplo: str) -> Array:
    rows, columns = np.triu_indices(len(a)) if uplo == "L" else np.tril_indices(len(a))
    return a.T[rows, columns]


def test_hermitian_systems() -> None:
    a, b = _random("z", (4, 4), (2, 4))
    a = a + np.conj(a.T)
    a[np.diag_indices(4)] *= 0.1  # blocks of two
    subject = kernel(
        "z",
        "inout a: F[n,n], inout b: F[2,n]",
        """zhetrf_("L", &n, a, &n, p, work, &room, &info);
        zhetrs_("L", &n, &two, a, &n, p, b, &n, &info);
        zhetri_("L", &n, a, &n, p, work, &info);""",
        4,
    )
    found = subject.run((), [a.T, b])
    np.testing.assert_allclose(np.tril(found[0].T), np.tril(np.linalg.inv(a)), atol=1e-12)
    np.testing.assert_allclose(found[1].T, np.linalg.solve(a, b.T))
    agree(three_way(subject, [a.T, b]))


def test_packed_complex_symmetric_systems() -> None:
    a, b = _random("z", (4, 4), (2, 4))
    a = a + a.T
    a[np.diag_indices(4)] *= 0.1
    subject = kernel(
        "z",
        "inout q: F[n*(n+1)/2], inout b: F[2,n]",
        """zsptrf_("U", &n, q, p, &info); zsptrs_("U", &n, &two, q, p, b, &n, &info);""",
        4,
    )
    inputs = [_packed(a, "U"), b]
    found = subject.run((), inputs)
    np.testing.assert_allclose(found[0], _packed(lapack.zsytrf(a, lower=0)[0], "U"), atol=1e-12)
    np.testing.assert_allclose(found[1].T, np.linalg.solve(a, b.T))
    agree(three_way(subject, inputs))


@pytest.mark.parametrize("trans", ["N", "T", "C"])
def test_complex_tridiagonal_systems(trans: str) -> None:
    below, middle, above, b = _random("z", (N - 1,), (N,), (N - 1,), (2, N))
    middle *= np.array([1, 0.1, 3, 0.1, 1])  # some rows change places
    subject = kernel(
        "z",
        "inout l: F[n-1], inout d: F[n], inout u: F[n-1], inout b: F[2,n], inout e: F[n-1], inout r: f64[n]",
        f"""number l1[16], d1[16], u1[16], second[16];
        for (int i = 0; i < n; i++) {{ d1[i] = d[i]; if (i + 1 < n) l1[i] = l[i], u1[i] = u[i]; }}
        ?gtsv_(&n, &two, l1, d1, u1, b, &n, &info);
        ?gttrf_(&n, l, d, u, second, p, &info);
        ?gttrs_("{trans}", &n, &two, l, d, u, second, p, b, &n, &info);
        ?ptsv_(&n, &two, r, e, b, &n, &info);
        ?pttrs_("U", &n, &two, r, e, b, &n, &info);""",
    )
    inputs = [below, middle, above, b, above, np.arange(N) + 7.0]
    whole = np.diag(middle) + np.diag(below, -1) + np.diag(above, 1)
    turned = {"N": whole, "T": whole.T, "C": np.conj(whole.T)}[trans]
    definite = np.diag(np.arange(N) + 7.0) + np.diag(above, -1) + np.diag(np.conj(above), 1)
    expected = np.linalg.solve(definite, np.linalg.solve(turned, np.linalg.solve(whole, b.T)))
    np.testing.assert_allclose(subject.run((), inputs)[3].T, np.linalg.solve(np.conj(definite), expected))
    agree(three_way(subject, inputs))


@pytest.mark.parametrize(("norm", "uplo"), [("M", "U"), ("1", "L"), ("I", "U"), ("F", "L")])
@kinds
def test_norms(letter: str, uplo: str, norm: str) -> None:
    (a,) = _random(letter, (N, N))
    hermitian = f'zlanhe_("{norm}", "{uplo}", &n, a, &n, reals)' if letter == "z" else "0"
    subject = kernel(
        letter,
        "a: F[n,n], out y: f64[4]",
        f"""y[0] = ?lange_("{norm}", &n, &three, a, &n, reals);
        y[1] = ?lansy_("{norm}", "{uplo}", &n, a, &n, reals);
        y[2] = ?lantr_("{norm}", "{uplo}", "{"NU"[norm == "F"]}", &n, &n, a, &n, reals);
        y[3] = {hermitian};""",
    )
    part = np.tril(a.T) if uplo == "L" else np.triu(a.T)
    symmetric, unit = (
        part + part.T - np.diag(np.diag(part)),
        part + (norm == "F") * (np.eye(N) - np.diag(np.diag(part))),
    )
    full = part + np.conj(part.T)
    full[np.diag_indices(N)] = np.diag(part).real
    order = {"M": lambda x: np.abs(x).max(), "F": np.linalg.norm}
    by = order.get(norm, lambda x: np.linalg.norm(x, 1 if norm == "1" else np.inf))
    expected = [by(a.T[:, :3]), by(symmetric), by(unit), by(full) if letter == "z" else 0]
    np.testing.assert_allclose(subject.run((), [a])[0], expected)
    agree(three_way(subject, [a]))


@pytest.mark.parametrize("norm", ["1", "I"])
@kinds
def test_conditions(letter: str, norm: str) -> None:
    (a,) = _random(letter, (N, N))
    definite = a @ np.conj(a.T) + np.eye(N)
    subject = kernel(
        letter,
        "inout a: F[n,n], inout b: F[n,n], out y: f64[3]",
        f"""double size = ?lange_("{norm}", &n, &n, a, &n, reals);
        ?trcon_("{norm}", "L", "N", &n, a, &n, y + 2, work, reals, &info);
        ?getrf_(&n, &n, a, &n, p, &info);
        ?gecon_("{norm}", &n, a, &n, &size, y, work, reals, &info);
        size = 2;
        ?potrf_("U", &n, b, &n, &info); ?pocon_("U", &n, b, &n, &size, y + 1, work, reals, &info);""",
    )
    size = np.linalg.norm(a.T, 1 if norm == "1" else np.inf)
    expected = [
        lapack.get_lapack_funcs("gecon", (a,))(lapack.get_lapack_funcs("getrf", (a,))(a.T)[0], size, norm)[0],
        lapack.get_lapack_funcs("pocon", (a,))(np.linalg.cholesky(definite.T).conj().T, 2.0)[0],
        lapack.get_lapack_funcs("trcon", (a,))(a.T, norm, "L")[0],
    ]
    inputs = [a, definite]
    np.testing.assert_allclose(subject.run((), inputs)[-1], expected)
    agree(three_way(subject, inputs))


@kinds
def test_scales_and_copies(letter: str) -> None:
    (a,) = _random(letter, (3, N))
    subject = kernel(
        letter,
        "inout a: F[3,n], out r: f64[n], out c: f64[3], out y: f64[6], out b: F[3,n]",
        """number from = a[3], on = a[4];
        ?geequ_(&n, &three, a, &n, r, c, y, y + 1, y + 2, &info);
        number square[9];
        for (int i = 0; i < 9; i++) square[i] = a[i] * a[i] + 5;
        ?poequ_(&three, square, &three, reals, y + 3, y + 4, &info);
        y[5] = reals[1];
        ?laset_("A", &n, &three, &from, &on, b, &n);
        ?lacpy_("L", &n, &three, a, &n, b, &n);
        ?laset_("U", &n, &three, &on, &from, a, &n);""",
    )
    found = subject.run((), [a])
    sizes = np.abs(a.T.real) + np.abs(a.T.imag)
    expected = lapack.get_lapack_funcs("geequ", (a,))(a.T)
    np.testing.assert_allclose(found[1], expected[0])
    np.testing.assert_allclose(found[2], expected[1])
    np.testing.assert_allclose(found[3][:3], [*expected[2:4], sizes.max()])
    square = (a.ravel()[[0, 4, 8]] ** 2 + 5).real
    np.testing.assert_allclose(found[3][3:], [np.sqrt(square.min() / square.max()), square.max(), square[1] ** -0.5])
    above = np.full((N, 3), a[0, 3])
    np.testing.assert_allclose(found[4].T, np.tril(a.T) + np.triu(above, 1))
    np.testing.assert_allclose(
        found[0].T, np.tril(a.T, -1) + np.triu(above / a[0, 3] * a[0, 4], 1) + a[0, 3] * np.eye(N, 3)
    )
    agree(three_way(subject, [a]))


@kinds
def test_least_squares_under_conditions(letter: str) -> None:
    a, b, c, d = _random(letter, (4, 6), (4, 2), (6,), (2,))
    subject = kernel(
        letter,
        "inout a: F[4,6], inout b: F[4,2], inout c: F[6], inout d: F[2], out x: F[4]",
        """int m = 6, columns = 4;
        ?gglse_(&m, &columns, &two, a, &m, b, &two, c, d, x, work, &room, &info);
        for (int i = 0; i < 24; i++) a[i] = 0;
        for (int i = 0; i < 8; i++) b[i] = 0;
        c[0] = c[1] = d[0] = d[1] = 0;""",
    )
    found = subject.run((), [a, b, c, d])
    expected = lapack.get_lapack_funcs("gglse", (a,))(a.T, b.T, c, d)
    np.testing.assert_allclose(found[4], expected[3])
    np.testing.assert_allclose(found[2][2], np.linalg.norm(a.T @ found[4] - c))
    agree(three_way(subject, [a, b, c, d]))


@pytest.mark.parametrize("tall", [True, False])
@pytest.mark.parametrize("trans", ["N", "C"])
def test_complex_orthogonal_factors(tall: bool, trans: str) -> None:
    m, k = (5, 3) if tall else (3, 5)
    a, b, c = _random("z", (k, m), (2, 5), (N, N))
    subject = kernel(
        "z",
        f"inout a: F[{k},{m}], inout b: F[2,5], inout c: F[n,n]",
        f"""int m = {m}, k = {k}; number copy[16];
        for (int i = 0; i < m * k; i++) copy[i] = a[i];
        zgels_("{trans}", &m, &k, &two, copy, &m, b, &n, work, &room, &info);
        """
        + (
            f"""zgeqrf_(&n, &three, a, &n, tau, work, &room, &info);
            zunmqr_("R", "{trans}", &n, &n, &three, a, &n, tau, c, &n, work, &room, &info);
            zungqr_(&n, &three, &three, a, &n, tau, work, &room, &info);"""
            if tall
            else f"""zgelqf_(&three, &n, a, &three, tau, work, &room, &info);
            zunmlq_("L", "{trans}", &n, &n, &three, a, &three, tau, c, &n, work, &room, &info);
            zunglq_(&three, &n, &three, a, &three, tau, work, &room, &info);"""
        ),
    )
    found = subject.run((), [a, b, c])
    matrix = a.T if trans == "N" else np.conj(a)
    expected = np.linalg.lstsq(matrix, b[:, : len(matrix)].T, rcond=None)[0]
    np.testing.assert_allclose(found[1][:, : len(expected)].T, expected)
    whole = np.linalg.qr(a.T if tall else np.conj(a), mode="complete")[0]
    turned = whole if (trans == "N") == tall else np.conj(whole.T)
    np.testing.assert_allclose(found[0].T, whole[:, :3] if tall else np.conj(whole.T)[:3])
    np.testing.assert_allclose(found[2].T, c.T @ turned if tall else turned @ c.T)
    agree(three_way(subject, [a, b, c]))


@sides
@kinds
@pytest.mark.parametrize("job", ["N", "V"])
def test_eigenvalues_of_packed_matrices(letter: str, job: str, uplo: str) -> None:
    (a,) = _random(letter, (N, N))
    a = a + np.conj(a.T)
    name, reals = ("spev", "") if letter == "d" else ("hpev", "reals, ")
    subject = kernel(
        letter,
        "inout q: F[n*(n+1)/2], out w: f64[n], out v: F[n,n]",
        f"""for (int i = 0; i < n * n; i++) v[i] = 0;
        ?{name}_("{job}", "{uplo}", &n, q, w, v, &n, work, {reals}&info);
        for (int i = 0; i < n * (n + 1) / 2; i++) q[i] = 0;""",
    )
    found = subject.run((), [_packed(a, uplo)])
    values, vectors, _ = getattr(lapack, {"d": "dsyev", "z": "zheev"}[letter])(a, lower=uplo == "L")
    np.testing.assert_allclose(found[1], values)
    np.testing.assert_allclose(found[2].T, vectors * (job == "V"), atol=1e-13)
    agree(three_way(subject, [_packed(a, uplo)]))


def test_eigenvalues_of_tridiagonal_matrices() -> None:
    d, e, z = _random("d", (N,), (N - 1,), (N, N))
    subject = kernel(
        "d",
        "inout d: f64[n], inout e: f64[n-1], inout z: f64[n,n], out w: f64[2,n], out v: f64[2,n,n]",
        """double others[16];
        for (int i = 0; i < n; i++) { w[i] = w[n + i] = tau[i] = d[i]; }
        for (int i = 0; i + 1 < n; i++) reals[i] = others[i] = few[i] = e[i];
        dstev_("V", &n, w, reals, v, &n, work, &info);
        dstevd_("V", &n, w + n, others, v + n * n, &n, work, &room, space, &room, &info);
        dsterf_(&n, tau, few, &info);
        dsteqr_("V", &n, d, e, z, &n, work, &info);
        for (int i = 0; i < n; i++) { d[i] -= tau[i]; if (i + 1 < n) e[i] = 0; }""",
    )
    found = subject.run((), [d, e, z])
    whole = np.diag(d) + np.diag(e, 1) + np.diag(e, -1)
    values, vectors, _ = lapack.dstev(d, e)
    np.testing.assert_allclose(found[0], 0, atol=1e-14)
    np.testing.assert_allclose(found[3], [values] * 2)
    np.testing.assert_allclose(found[4][0].T, vectors)
    np.testing.assert_allclose(whole @ found[4][1].T, found[4][1].T * values, atol=1e-13)
    np.testing.assert_allclose(found[2].T, z.T @ vectors)
    agree(three_way(subject, [d, e, z]))


@pytest.mark.parametrize(("rows", "name"), [(3, "gelss"), (7, "gelsd"), (7, "gelsy")])
def test_complex_least_squares(rows: int, name: str) -> None:
    a, b = _random("z", (N, rows), (2, 7))
    call = {
        "gelss": "few_reals, &least, &rank, work, &room, reals",
        "gelsd": "few_reals, &least, &rank, work, &room, reals, space",
        "gelsy": "order, &least, &rank, work, &room, reals",
    }[name]
    subject = kernel(
        "z",
        f"inout a: F[n,{rows}], inout b: F[2,7]",
        f"""int m = {rows}, ld = 7, rank, order[8] = {{0}};
        double least = 1e-8, few_reals[8];
        z{name}_(&m, &n, &two, a, &m, b, &ld, {call}, &info);
        for (int i = 0; i < n * m; i++) a[i] = 0;
        for (int r = 0; r < 2; r++) for (int i = n; i < ld; i++) b[i + r * ld] = 0;""",
    )
    expected = np.linalg.lstsq(a.T, b[:, :rows].T, rcond=None)[0]
    np.testing.assert_allclose(subject.run((), [a, b])[1][:, :N].T, expected)
    agree(three_way(subject, [a, b]))


@kinds
def test_systems_without_equations_or_unknowns(letter: str) -> None:
    """LAPACK returns at once, and leaves what it is given; `gels` clears it."""
    (b,) = _random(letter, (2, 3))
    reals = "reals, " if letter == "z" else ""
    subject = kernel(
        letter,
        "inout b: F[2,n], inout c: F[2,n], inout d: F[2,n], inout e: F[2,n], inout f: F[n]",
        f"""int none = 0, rank, order[2] = {{0}};
        number a[8];
        double least = 1e-8, few_reals[2];
        ?gelss_(&none, &two, &two, a, &one, b, &n, few_reals, &least, &rank, work, &room, {reals}&info);
        ?gelsd_(&three, &none, &two, a, &n, c, &n, few_reals, &least, &rank, work, &room, {reals}space, &info);
        ?gelsy_(&none, &two, &two, a, &one, d, &n, order, &least, &rank, work, &room, {reals}&info);
        ?gels_("N", &three, &none, &two, a, &n, e, &n, work, &room, &info);
        ?gglse_(&three, &none, &none, a, &n, a, &one, f, few, tau, work, &room, &info);""",
        3,
    )
    inputs = [b, b, b, b, b[0]]
    for found, expected in zip(subject.run((), inputs), [b, b, b, 0 * b, b[0]], strict=True):
        np.testing.assert_array_equal(found, expected)
    agree(three_way(subject, inputs))


def test_complex_numbers_with_infinite_parts_are_infinite() -> None:
    a = np.array([[1, complex(np.inf, -np.inf)], [2j, 3]])
    for norm in "M1I":
        subject = kernel("z", "a: F[n,n], out y: f64[1]", f'y[0] = ?lange_("{norm}", &n, &n, a, &n, reals);', 2)
        assert subject.run((), [a])[0] == lapack.zlange(norm, a.T) == np.inf


def test_norms_are_differentiated_twice() -> None:
    """Also where entries are zero, of the column whose norm it is."""
    (a,) = _random("z", (3, 3))
    a[1] *= 5
    a[1, 2] = 0
    source = """double zlange_();
    double k(int n, const double *a) { double work[8]; return zlange_("1", &n, &n, a, &n, work); }"""
    kernel_of_norm = je.kernel(source, "k", "n: i32, a: c128[n,n] -> f64", lang="c")

    def both(norm: Callable[[jax.Array], jax.Array]) -> tuple[jax.Array, jax.Array]:
        return jax.jvp(jax.grad(norm), (jnp.asarray(a),), (jnp.asarray(a) ** 2,))

    for found, expected in zip(both(kernel_of_norm), both(lambda x: jnp.max(jnp.sum(jnp.abs(x), axis=1))), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-13)
