"""What is in terms of loops and other routines: bands, packed triangles, inverses, symmetric systems, least squares.
Values are NumPy's, or LAPACK's through SciPy; derivatives agree three ways."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import lapack

from tests.rules.blas.arrays import Array
from tests.support.engine import Native, agree, native
from tests.support.engine import one_way as three_way

N = 5
_LETTERS = {"c": "const char *", "i": "const int *", "p": "int *", "f": "double *", "n": "int", "v": "double"}
sides = pytest.mark.parametrize("uplo", ["U", "L"])
_AHEAD = """
  int one = 1, two = 2, back = -1, info = 0, room = 64, four = 4, p[16];
  double work[64], tau[16], alpha = 0.7, beta = 1.3;
"""


def kernel(signature: str, calls: str, **declared: str) -> Native:
    """A kernel of these calls. A declaration has a letter for each parameter: c a flag, i an integer, p pivots, f
    numbers; n and v are an integer and a number by value."""
    functions = [f"void {s}({', '.join(_LETTERS[t] for t in types)});\n" for s, types in declared.items()]
    names = [parameter.removeprefix("inout ").split(":")[0] for parameter in signature.split(", ")]
    parameters = ", ".join(f"double *{name}" for name in names[1:])
    return native(f"{''.join(functions)}void k(int n, {parameters}) {{{_AHEAD}{calls}}}", "k", signature, {"n": N})


def _random(*shapes: tuple[int, ...]) -> list[Array]:
    r = np.random.default_rng(7)
    return [r.normal(size=shape) for shape in shapes]


def _symmetric(stored: Array, uplo: str) -> Array:
    part = np.tril(stored) if uplo == "L" else np.triu(stored)
    return part + part.T - np.diag(np.diag(part))


def _band(stored: Array, below: int, above: int) -> Array:
    """The matrix of a band, whose columns are the rows of `stored`."""
    full = np.zeros((N, N))
    for j in range(N):
        for i in range(max(0, j - above), min(N, j + below + 1)):
            full[i, j] = stored[j, above + i - j]
    return full


@sides
@pytest.mark.parametrize("trans", ["N", "T"])
def test_bands(uplo: str, trans: str) -> None:
    a, x, y = _random((N, 4), (N,), (N,))
    a[:, [0, 2]] += 3
    subject = kernel(
        "n: i32, inout a: f64[n,4], inout x: f64[n], inout y: f64[n]",
        f"""dtbsv_("{uplo}", "{trans}", "N", &n, &two, a, &four, x, &back);
        dtbmv_("{uplo}", "{trans}", "U", &n, &two, a, &four, x, &one);
        dgbmv_("{trans}", &n, &n, &one, &two, &alpha, a, &four, x, &back, &beta, y, &one);
        dsbmv_("{uplo}", &n, &two, &alpha, a, &four, y, &back, &beta, x, &one);""",
        dtbsv_="ccciififi", dtbmv_="ccciififi", dgbmv_="ciiiiffififfi", dsbmv_="ciiffififfi",
    )  # fmt: skip
    triangle = _band(a, *((2, 0) if uplo == "L" else (0, 2)))
    unit = triangle - np.diag(np.diag(triangle)) + np.eye(N)
    full = _band(a, 1, 2)
    turned = (lambda m: m.T) if trans == "T" else (lambda m: m)
    u = turned(unit) @ np.linalg.solve(turned(triangle), x[::-1])[::-1]
    v = 0.7 * turned(full) @ u[::-1] + 1.3 * y
    u = 0.7 * _symmetric(triangle, uplo) @ v[::-1] + 1.3 * u
    np.testing.assert_allclose(subject.run((), [a, x, y])[1:], [u, v])
    agree(three_way(subject, [a, x, y]))


@pytest.mark.parametrize(("uplo", "order"), [("U", 101), ("U", 102)])
def test_bands_and_packed_triangles_in_c(uplo: str, order: int) -> None:
    """By rows, one triangle is the other: both are asked for."""
    a, b, x, y = _random((N, 4), (N * (N + 1) // 2,), (N,), (N,))
    a[:, [0, 2]] += 3
    b += 2
    side = {"U": 121, "L": 122}[uplo if order == 102 else "UL"[uplo == "U"]]
    other = {101: 112, 102: 111}[order]
    subject = kernel(
        "n: i32, inout a: f64[n,4], inout b: f64[n*(n+1)/2], inout x: f64[n], inout y: f64[n]",
        f"""cblas_dtbsv({order}, {side}, {other}, 131, n, 2, a, 4, x, 1);
        cblas_dtbmv({order}, {side}, {other}, 131, n, 2, a, 4, y, 1);
        cblas_dspr({order}, {side}, n, 0.1, x, 1, b);
        cblas_dspr2({order}, {side}, n, 0.2, x, 1, y, 1, b);
        cblas_dtpsv({order}, {side}, {other}, 131, n, b, x, 1);
        cblas_dtpmv({order}, {side}, {other}, 131, n, b, y, 1);
        cblas_dspmv({order}, {side}, n, 0.7, b, x, 1, 1.3, y, 1);
        cblas_dsbmv({order}, {side}, n, 2, 0.7, a, 4, y, 1, 1.3, x, 1);
        cblas_dgbmv({order}, {other}, n, n, {"1, 2" if order == 102 else "2, 1"}, 0.7, a, 4, x, 1, 1.3, y, 1);""",
        cblas_dtbsv="nnnnnnfnfn", cblas_dtbmv="nnnnnnfnfn", cblas_dspr="nnnvfnf", cblas_dspr2="nnnvfnfnf",
        cblas_dtpsv="nnnnnffn", cblas_dtpmv="nnnnnffn", cblas_dspmv="nnnvffnvfn", cblas_dsbmv="nnnnvfnfnvfn",
        cblas_dgbmv="nnnnnnvfnfnvfn",
    )  # fmt: skip
    i, j = np.indices((N, N))
    columns = [(q, p) for p, q in zip(*np.nonzero((i >= j).T if uplo == "L" else (i <= j).T), strict=True)]
    packed, triangle = np.zeros((N, N)), _band(a, *((2, 0) if uplo == "L" else (0, 2)))
    packed[tuple(zip(*columns, strict=True))] = b
    part = np.tril if uplo == "L" else np.triu
    u, v = np.linalg.solve(triangle, x), triangle @ y
    packed += part(0.1 * np.outer(u, u) + 0.2 * (np.outer(u, v) + np.outer(v, u)))
    u, v = np.linalg.solve(packed, u), packed @ v
    v = 0.7 * _symmetric(packed, uplo) @ u + 1.3 * v
    u = 0.7 * _symmetric(triangle, uplo) @ v + 1.3 * u
    v = 0.7 * _band(a, 1, 2) @ u + 1.3 * v
    np.testing.assert_allclose(subject.run((), [a, b, x, y])[2:], [u, v])
    agree(three_way(subject, [a, b, x, y]))


@sides
def test_inverses(uplo: str) -> None:
    a, b, c = _random((N, N), (N, N), (N, N))
    b = b @ b.T + np.eye(N)
    c += 3 * np.eye(N)
    subject = kernel(
        "n: i32, inout a: f64[n,n], inout b: f64[n,n], inout c: f64[n,n]",
        f"""dgetrf_(&n, &n, a, &n, p, &info); dgetri_(&n, a, &n, p, work, &room, &info);
        dpotrf_("{uplo}", &n, b, &n, &info); dpotri_("{uplo}", &n, b, &n, &info);
        dtrtri_("{uplo}", "N", &n, c, &n, &info);""",
        dgetrf_="iifipp", dgetri_="ifipfip", dpotrf_="cifip", dpotri_="cifip", dtrtri_="ccifip",
    )  # fmt: skip
    found = subject.run((), [a, b, c])
    mine = np.tril if uplo == "U" else np.triu
    np.testing.assert_allclose(found[0], np.linalg.inv(a))
    np.testing.assert_allclose(mine(found[1]), mine(np.linalg.inv(b)))
    np.testing.assert_allclose(found[2], np.linalg.inv(mine(c)) + c - mine(c))
    agree(three_way(subject, [a, b, c]))


@sides
@pytest.mark.parametrize("scale", [0.1, 1, 9])
def test_symmetric_systems(uplo: str, scale: float) -> None:
    """With blocks of two, of both, and of one."""
    a, b = _random((N, N), (2, N))
    a = _symmetric(a, uplo)
    a[np.diag_indices(N)] *= scale
    subject = kernel(
        "n: i32, inout a: f64[n,n], inout b: f64[2,n], inout c: f64[n,n]",
        f"""for (int i = 0; i < n * n; i++) c[i] += a[i];
        dsysv_("{uplo}", &n, &two, a, &n, p, b, &n, work, &room, &info);
        dsytrf_("{uplo}", &n, c, &n, p, work, &room, &info);
        dsytri_("{uplo}", &n, c, &n, p, work, &info);""",
        dsysv_="ciifipfifip", dsytrf_="cifipfip", dsytri_="cifipfp",
    )  # fmt: skip
    c = np.zeros((N, N))
    found = subject.run((), [a, b, c])
    np.testing.assert_allclose(found[0].T, lapack.dsytrf(a, lower=uplo == "L")[0], atol=1e-12)
    np.testing.assert_allclose(found[1].T, np.linalg.solve(a, b.T))
    mine = np.tril if uplo == "U" else np.triu
    np.testing.assert_allclose(mine(found[2]), mine(np.linalg.inv(a)))
    agree(three_way(subject, [a, b, c]))


@sides
def test_packed_symmetric_systems(uplo: str) -> None:
    a, b = _random((N, N), (2, N))
    a = _symmetric(a, uplo)
    a[np.diag_indices(N)] *= 0.1  # blocks of two
    rows, columns = np.triu_indices(N) if uplo == "L" else np.tril_indices(N)  # a column of it is one after the other
    packed = a[rows, columns]
    subject = kernel(
        "n: i32, inout a: f64[n*(n+1)/2], inout b: f64[2,n], inout c: f64[n*(n+1)/2]",
        f"""for (int i = 0; i < n * (n + 1) / 2; i++) c[i] += a[i];
        dspsv_("{uplo}", &n, &two, a, p, b, &n, &info);
        dsptrf_("{uplo}", &n, c, p, &info);
        dsptri_("{uplo}", &n, c, p, work, &info);""",
        dspsv_="ciifpfip", dsptrf_="cifpp", dsptri_="cifpfp",
    )  # fmt: skip
    zero = np.zeros(packed.size)
    found = subject.run((), [packed, b, zero])
    np.testing.assert_allclose(found[1].T, np.linalg.solve(a, b.T))
    np.testing.assert_allclose(found[2], np.linalg.inv(a)[rows, columns])
    agree(three_way(subject, [packed, b, zero]))


@sides
@pytest.mark.parametrize("norm", ["M", "1", "I", "F"])
def test_norms_of_symmetric_matrices(uplo: str, norm: str) -> None:
    (a,) = _random((N, N))
    source = f"""double dlansy_(const char *, const char *, const int *, const double *, const int *, double *);
    double k(int n, const double *a) {{ double work[16]; return dlansy_("{norm}", "{uplo}", &n, a, &n, work); }}"""
    subject = native(source, "k", "n: i32, a: f64[n,n] -> f64", {"n": N})
    whole = _symmetric(a.T, uplo)
    expected = np.abs(whole).max() if norm == "M" else np.linalg.norm(whole, "fro" if norm == "F" else 1)
    np.testing.assert_allclose(subject.run((), [a])[0], expected)
    agree(three_way(subject, [a]))


@pytest.mark.parametrize("name", ["dlarfg_", "dlarfgp_"])
@pytest.mark.parametrize("sign", [1, -1])
def test_single_reflections(name: str, sign: int) -> None:
    """The reflection of a vector takes the vector itself, and the columns of another matrix, to where it says."""
    a, c = _random((N,), (N, N))
    a[0] = sign * 0.7
    subject = kernel(
        "n: i32, inout a: f64[n], inout c: f64[n,n]",
        f"""double v[16]; int rest = n - 1;
        {name}(&n, a, a + 1, &one, tau);
        v[0] = 1; for (int i = 1; i < n; i++) v[i] = a[i];
        dlarf_("L", &n, &n, v, &one, tau, c, &n, work); dlarf_("R", &rest, &n, v, &one, tau, c + 1, &n, work);""",
        **{name: "iffif", "dlarf_": "ciififfif"},
    )
    found = subject.run((), [a, c])
    beta = np.linalg.norm(a) * (-sign if name == "dlarfg_" else 1)
    np.testing.assert_allclose(found[0][0], beta)
    v = np.append(1, found[0][1:])
    h = np.eye(N) - 2 * np.outer(v, v) / (v @ v)
    np.testing.assert_allclose(h @ a, beta * np.eye(N)[0], atol=1e-14)
    expected = h @ c.T
    expected[1:] = expected[1:] @ h
    np.testing.assert_allclose(found[1].T, expected, atol=1e-13)
    agree(three_way(subject, [a, c]))


@pytest.mark.parametrize("trans", ["N", "T"])
@pytest.mark.parametrize("rows", [3, 7])
def test_least_squares(rows: int, trans: str) -> None:
    a, b = _random((N, rows), (2, 7))
    subject = kernel(
        f"n: i32, inout a: f64[n,{rows}], inout b: f64[2,7]",
        f'int m = {rows}, ld = 7; dgels_("{trans}", &m, &n, &two, a, &m, b, &ld, work, &room, &info);',
        dgels_="ciiifififip",
    )
    matrix = a.T if trans == "N" else a
    expected = np.linalg.lstsq(matrix, b[:, : len(matrix)].T, rcond=None)[0]
    np.testing.assert_allclose(subject.run((), [a, b])[1][:, : len(expected)].T, expected)
    agree(three_way(subject, [a, b]))


@pytest.mark.parametrize(("rows", "rank"), [(3, 3), (7, N), (7, 3), (4, 2)])
def test_least_squares_with_pivots(rows: int, rank: int) -> None:
    r = np.random.default_rng(3)
    a, b = r.normal(size=(rows, rank)) @ r.normal(size=(rank, N)), r.normal(size=(2, 7))
    subject = kernel(
        f"n: i32, inout a: f64[n,{rows}], inout b: f64[2,7]",
        f"""int m = {rows}, ld = 7, order[8] = {{0}}, rank; double least = 1e-8;
        dgelsy_(&m, &n, &two, a, &m, b, &ld, order, &least, &rank, work, &room, &info);
        for (int i = 0; i < n * m; i++) a[i] = 0;
        for (int r = 0; r < 2; r++) for (int i = n; i < ld; i++) b[i + r * ld] = 0;""",
        dgelsy_="iiififipfpfip",
    )
    expected = np.linalg.lstsq(a, b[:, :rows].T, rcond=1e-8)[0]
    np.testing.assert_allclose(subject.run((), [a.T, b])[1][:, :N].T, expected, atol=1e-12)
    if rank in (rows, N):  # others have no derivative in directions in which the rank grows
        agree(three_way(subject, [a.T, b]))


def test_orthogonal_matrices() -> None:
    a, b, c = _random((3, N), (N, 3), (N, N))
    subject = kernel(
        "n: i32, inout a: f64[3,n], inout b: f64[n,3], inout c: f64[n,n]",
        """int three = 3;
        dgeqrf_(&n, &three, a, &n, tau, work, &room, &info);
        dormqr_("R", "T", &n, &n, &three, a, &n, tau, c, &n, work, &room, &info);
        dorgqr_(&n, &three, &three, a, &n, tau, work, &room, &info);
        dgelqf_(&three, &n, b, &three, tau, work, &room, &info);
        dormlq_("L", "N", &n, &n, &three, b, &three, tau, c, &n, work, &room, &info);
        dorglq_(&three, &n, &three, b, &three, tau, work, &room, &info);""",
        dgeqrf_="iififfip", dormqr_="cciiififfifip",
        dorgqr_="iiififfip", dgelqf_="iififfip",
        dormlq_="cciiififfifip", dorglq_="iiififfip",
    )  # fmt: skip
    found = subject.run((), [a, b, c])
    whole = np.linalg.qr(a.T, mode="complete")[0]
    wide = np.linalg.qr(b, mode="complete")[0].T
    np.testing.assert_allclose(found[0].T, whole[:, :3])
    np.testing.assert_allclose(found[1].T, wide[:3])
    agree(three_way(subject, [a, b, c]))
