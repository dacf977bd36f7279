"""Eigenvalues and singular values, and their vectors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import eigh

from tests.rules.blas import cases
from tests.rules.blas.checks import check, cotangents, tangents
from tests.rules.blas.test_levels import Rng
from tests.rules.blas.test_solvers import N, kernel
from tests.support.engine import agree
from tests.support.engine import one_way as three_way

# Which sign a vector has is LAPACK's choice, and may change with the precision: in single precision, values alone.


@pytest.mark.parametrize("name", ["syev", "syevd"])
@pytest.mark.parametrize(
    ("letter", "jobz", "uplo", "n"),
    [("d", "V", "L", 4), ("d", "v", "U", 3), ("s", "N", "U", 4), ("d", "N", "L", 1), ("d", "V", "L", 0)],
)
def test_symmetric(letter: str, name: str, jobz: str, uplo: str, n: int, rng: Rng) -> None:
    check(cases.syev(rng, letter, name, jobz, uplo, n), rng)


@pytest.mark.parametrize("name", ["heev", "heevd"])
@pytest.mark.parametrize(
    ("letter", "jobz", "uplo", "n"),
    [("z", "V", "L", 4), ("z", "V", "U", 3), ("c", "N", "U", 4), ("z", "N", "L", 1), ("z", "V", "L", 0)],
)
def test_hermitian(letter: str, name: str, jobz: str, uplo: str, n: int, rng: Rng) -> None:
    check(cases.heev(rng, letter, name, jobz, uplo, n), rng)


@pytest.mark.parametrize("name", ["evr", "evx"])
@pytest.mark.parametrize(
    ("letter", "jobz", "range_", "uplo"),
    [("d", "V", "A", "L"), ("d", "V", "I", "U"), ("d", "V", "V", "L"), ("d", "N", "V", "U"), ("s", "N", "A", "L"),
     ("z", "V", "A", "U"), ("z", "V", "I", "L"), ("z", "V", "V", "U"), ("z", "N", "I", "L"), ("c", "N", "A", "U")],
)  # fmt: skip
def test_some_pairs(letter: str, name: str, jobz: str, range_: str, uplo: str, rng: Rng) -> None:
    check(cases.syevr(rng, letter, name, jobz, range_, uplo), rng)


@pytest.mark.parametrize(
    ("letter", "jobs", "m", "n"),
    [("d", "SS", 5, 3), ("d", "SS", 3, 5), ("d", "AA", 4, 4), ("d", "SN", 4, 3), ("d", "NS", 3, 4), ("s", "NN", 3, 4),
     ("d", "OS", 5, 3), ("d", "SO", 3, 3), ("d", "S", 5, 3), ("d", "S", 2, 4), ("s", "N", 4, 3), ("d", "A", 3, 3),
     ("d", "S", 0, 2), ("d", "O", 5, 3), ("d", "O", 3, 5),
     ("z", "SS", 5, 3), ("z", "SS", 3, 8), ("z", "SN", 8, 3), ("z", "NA", 3, 3), ("c", "N", 3, 4), ("z", "S", 2, 4)],
)  # fmt: skip
def test_singular(letter: str, jobs: str, m: int, n: int, rng: Rng) -> None:
    check(cases.gesvd(rng, letter, jobs, m, n), rng)


@pytest.mark.parametrize(
    ("letter", "jobs", "n"),
    [("d", "VV", 5), ("d", "NV", 4), ("d", "VN", 5), ("d", "NN", 5), ("s", "NN", 4), ("d", "VV", 1), ("d", "VV", 0),
     ("z", "VV", 4), ("z", "NV", 3), ("z", "NN", 4), ("c", "NN", 3)],
)  # fmt: skip
def test_general(letter: str, jobs: str, n: int, rng: Rng) -> None:
    check(cases.geev(rng, letter, jobs, n), rng)


def test_vectors_with_components_of_one_size_keep_the_one_that_is_real() -> None:
    """Those of a plane's turns: all have the same."""
    for seed in range(60):
        r = np.random.default_rng(seed)
        case, (a, b) = cases.geev(r, "z", "VV", 2), r.normal(size=2)
        numbers = case.numbers("a")
        numbers.values[numbers.mask] = [a, -b, b, a]
        found = tangents(case, {n: case.numbers(n).like(0.0) for n in case.floats} | {"a": numbers.like(1.0)})
        assert np.abs(found["vr"]).max() < 4 / abs(b)
        change = {"a": numbers.like(np.array([0.3, -0.7, 0.7, 0.3]))}
        found = tangents(case, {n: case.numbers(n).like(0.0) for n in case.floats} | change)
        for name in ("vl", "vr"):
            np.testing.assert_allclose(found[name], 0, atol=1e-9)


def test_general_matrices_of_no_rows(capfd: pytest.CaptureFixture[str]) -> None:
    for letter in "dz":
        check(cases.geev(np.random.default_rng(1), letter, "VV", 0), np.random.default_rng(1))
    assert not "".join(capfd.readouterr()), "LAPACK finds fault with an argument"


def test_vectors_of_equal_values_have_no_derivative(rng: Rng) -> None:
    """The values have: their sum, for one."""
    case = cases.syev(rng, "d", n=2)
    a = case.numbers("a")
    a.values[a.mask] = [1, 0, 0, 1]
    one = a.like(np.array([0.3, 0.5, 0.5, -0.2]))
    found = tangents(case, {"a": one, "w": case.numbers("w").like(0.0), "work": case.numbers("work").like(0.0)})
    assert not np.isfinite(found["a"]).all()
    assert not np.isfinite(cotangents(case, {"a": one}, 0.0, 0)["a"]).all()


@pytest.mark.parametrize("name", ["u", "vt"])
def test_vectors_beyond_the_thin_factors_have_no_derivative(name: str, rng: Rng) -> None:
    case = cases.gesvd(rng, "d", "A", *((3, 2) if name == "u" else (2, 3)))
    found = tangents(case, {n: case.numbers(n).like(1.0) for n in case.floats})
    assert np.isnan(found[name]).any()
    assert np.isfinite(found["vt" if name == "u" else "u"]).all()
    seed = case.numbers(name).like(0.0)
    assert not cotangents(case, {name: seed}, 0.0, 0)["a"].any(), "what was not used has a derivative: zero"
    seed[case.numbers(name).mask] = 1.0
    assert np.isnan(cotangents(case, {name: seed}, 0.0, 0)["a"]).all()


@pytest.mark.parametrize(("itype", "jobz", "uplo"), [(1, "V", "L"), (1, "N", "U"), (2, "V", "U"), (3, "V", "L")])
def test_generalised(itype: int, jobz: str, uplo: str) -> None:
    r = np.random.default_rng(5)
    a, b = r.normal(size=(2, N, N))
    a, b = a + a.T + 6 * np.diag(np.arange(N)), b @ b.T + 3 * np.eye(N)
    subject = kernel(
        "n: i32, inout a: f64[n,n], inout b: f64[n,n], inout w: f64[n]",
        f'int kind = {itype}; double room_for[400]; int size = 400;'
        f'dsygv_(&kind, "{jobz}", "{uplo}", &n, a, &n, b, &n, w, room_for, &size, &info);'
        + ("" if jobz == "V" else "for (int i = 0; i < n * n; i++) a[i] = 0;"),
        dsygv_="iccifififfip",
    )  # fmt: skip
    w, v = eigh(a, b, lower=uplo == "L", type=itype, driver="gv")
    found = subject.run((), [a, b, np.zeros(N)])
    np.testing.assert_allclose(found[2], w)
    if jobz == "V":
        np.testing.assert_allclose(found[0].T, v)
    agree(three_way(subject, [a, b, np.zeros(N)]))


@pytest.mark.parametrize(("rows", "columns", "name"), [(6, N, "gelsd"), (4, N, "gelss")])
def test_smallest_solutions(rows: int, columns: int, name: str) -> None:
    r = np.random.default_rng(3)
    a, b = r.normal(size=(columns, rows)), r.normal(size=(2, max(rows, columns)))
    subject = kernel(
        f"n: i32, inout a: f64[n,{rows}], inout b: f64[2,{b.shape[1]}], inout s: f64[{min(rows, columns)}]",
        f"""int m = {rows}, ld = {b.shape[1]}, rank, counts[64], size = 400; double room_for[400], least = 1e-12;
        d{name}_(&m, &n, &two, a, &m, b, &ld, s, &least, &rank, room_for, &size, {"counts, " * (name == "gelsd")}&info);
        for (int i = 0; i < m * n; i++) a[i] = 0;""",
        **{f"d{name}_": "iiififi" + "ffpfi" + "p" * (name == "gelsd") + "p"},
    )  # fmt: skip
    found = subject.run((), [a, b, np.zeros(min(rows, columns))])
    expected = np.linalg.lstsq(a.T, b[:, :rows].T, rcond=None)
    np.testing.assert_allclose(found[1][:, :columns].T, expected[0])
    np.testing.assert_allclose(found[2], expected[3])
    if rows > columns:
        np.testing.assert_allclose((found[1][:, columns:] ** 2).sum(axis=1), expected[1])
    agree(three_way(subject, [a, b, np.zeros(min(rows, columns))]))
