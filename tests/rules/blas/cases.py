"""Calls of every routine, with random numbers. `letter` says which numbers: s, d, c or z."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.linalg import lapack

from tests.rules.blas.arrays import Numbers, matrix, scalar, vector
from tests.rules.blas.checks import Case

DTYPES = {letter: np.dtype(kind) for letter, kind in {"s": "f4", "d": "f8", "c": "c8", "z": "c16"}.items()}
REALS = {letter: np.dtype(kind) for letter, kind in {"s": "f4", "d": "f8", "c": "f4", "z": "f8"}.items()}
MIXED = {"s": "s", "d": "d", "c": "cs", "z": "zd"}
NORMS = {"s": "s", "d": "d", "c": "sc", "z": "dz"}

Rng = np.random.Generator


def two_vectors(rng: Rng, letter: str, name: str = "axpy", n: int = 5, incx: int = 2, incy: int = -3) -> Case:
    """axpy, copy, swap, and of real numbers dot; rot with its real scalars."""
    dtype = DTYPES[letter]
    values = {"n": n, "x": vector(rng, n, incx, dtype), "incx": incx, "y": vector(rng, n, incy, dtype), "incy": incy}
    values |= {"alpha": coefficient(-0.6, letter), "c": scalar(0.8, REALS[letter]), "s": scalar(0.6, REALS[letter])}
    return Case(f"{MIXED[letter] if name == 'rot' else letter}{name}_", values)


def one_vector(rng: Rng, letter: str, name: str = "scal", n: int = 5, incx: int = 3) -> Case:
    """scal, nrm2, asum, and rscal for a complex vector times a real number."""
    prefix = {"scal": letter, "rscal": MIXED[letter]}.get(name, NORMS[letter])
    alpha = scalar(-0.6, REALS[letter]) if name == "rscal" else coefficient(-0.6, letter)
    values = {"n": n, "x": vector(rng, n, incx, DTYPES[letter]), "incx": incx, "alpha": alpha}
    return Case(f"{prefix}{name.removeprefix('r')}_", values)


def coefficient(value: float, letter: str) -> Numbers:
    """alpha or beta: with an imaginary part, unless it is a special value."""
    complex_ = letter in "cz" and value not in (0.0, 1.0)
    return scalar(value * (1 - 0.5j) if complex_ else value, DTYPES[letter])


def _scalars(letter: str, alpha: float, beta: float, real: str = "") -> dict[str, Numbers]:
    def one(name: str, value: float) -> Numbers:
        return scalar(value, REALS[letter]) if name in real.split() else coefficient(value, letter)

    return {"alpha": one("alpha", alpha), "beta": one("beta", beta)}


def gemv(
    rng: Rng, letter: str, trans: str = "T", m: int = 3, n: int = 5, incx: int = 2, incy: int = -3,
    alpha: float = 1.3, beta: float = 0.7,
) -> Case:  # fmt: skip
    dtype = DTYPES[letter]
    rows, columns = (m, n) if trans == "N" else (n, m)
    values = {"trans": trans, "m": m, "n": n, **_scalars(letter, alpha, beta)}
    values |= {"a": matrix(rng, m, n, m + 2, dtype), "lda": m + 2}
    values |= {"x": vector(rng, columns, incx, dtype), "incx": incx}
    return Case(f"{letter}gemv_", {**values, "y": vector(rng, rows, incy, dtype), "incy": incy})


def ger(rng: Rng, letter: str, name: str = "", m: int = 3, n: int = 5, incx: int = 2, incy: int = -3) -> Case:
    """ger, geru or gerc."""
    name = name or ("gerc" if letter in "cz" else "ger")
    dtype = DTYPES[letter]
    values = {"m": m, "n": n, "alpha": coefficient(1.3, letter), "a": matrix(rng, m, n, m + 1, dtype), "lda": m + 1}
    values |= {"x": vector(rng, m, incx, dtype), "incx": incx, "y": vector(rng, n, incy, dtype), "incy": incy}
    return Case(f"{letter}{name}_", values)


def hermitian(rng: Rng, n: int, ld: int, letter: str, uplo: str) -> Numbers:
    """A triangle of a symmetric or Hermitian matrix: with a real diagonal."""
    a = matrix(rng, n, n, ld, DTYPES[letter], uplo)
    at = np.arange(n) * (ld + 1)
    a.values[at] = a.values[at].real
    a.real = np.zeros_like(a.mask)
    a.real[at] = True
    return a


def symv(
    rng: Rng, letter: str, uplo: str = "L", n: int = 5, incx: int = 2, incy: int = -3,
    alpha: float = 1.3, beta: float = 0.7,
) -> Case:  # fmt: skip
    """symv, or hemv for complex numbers."""
    dtype = DTYPES[letter]
    values = {"uplo": uplo, "n": n, **_scalars(letter, alpha, beta)}
    values |= {"a": hermitian(rng, n, n + 2, letter, uplo), "lda": n + 2}
    values |= {"x": vector(rng, n, incx, dtype), "incx": incx, "y": vector(rng, n, incy, dtype), "incy": incy}
    return Case(f"{letter}{'hemv' if letter in 'cz' else 'symv'}_", values)


def triangular(rng: Rng, n: int, ld: int, letter: str, uplo: str, diag: str = "N") -> Numbers:
    """A triangle that can be inverted without loss."""
    a = matrix(rng, n, n, ld, DTYPES[letter], uplo.lower() if diag == "U" else uplo)
    if diag == "N":
        at = np.arange(n) * (ld + 1)
        a.values[at] += 3 * np.sign(a.values[at].real)
    return a


def triangle_and_vector(
    rng: Rng, letter: str, name: str = "trsv", uplo: str = "L", trans: str = "T", diag: str = "N", n: int = 5,
    incx: int = -3,
) -> Case:  # fmt: skip
    """trmv, trsv"""
    values = {"uplo": uplo, "trans": trans, "diag": diag, "n": n, "lda": n + 2, "incx": incx}
    values |= {"a": triangular(rng, n, n + 2, letter, uplo, diag), "x": vector(rng, n, incx, DTYPES[letter])}
    return Case(f"{letter}{name}_", values)


def gemm(
    rng: Rng, letter: str, transa: str = "T", transb: str = "N", m: int = 3, n: int = 4, k: int = 5,
    alpha: float = 1.3, beta: float = 0.7,
) -> Case:  # fmt: skip
    dtype = DTYPES[letter]
    a, b = (m, k) if transa == "N" else (k, m), (k, n) if transb == "N" else (n, k)
    values = {"transa": transa, "transb": transb, "m": m, "n": n, "k": k, **_scalars(letter, alpha, beta)}
    values |= {"a": matrix(rng, *a, a[0] + 2, dtype), "lda": a[0] + 2}
    values |= {"b": matrix(rng, *b, b[0] + 1, dtype), "ldb": b[0] + 1}
    return Case(f"{letter}gemm_", {**values, "c": matrix(rng, m, n, m + 3, dtype), "ldc": m + 3})


def symm(
    rng: Rng, letter: str, name: str = "symm", side: str = "L", uplo: str = "L", m: int = 3, n: int = 4,
    alpha: float = 1.3, beta: float = 0.7,
) -> Case:  # fmt: skip
    """symm, hemm"""
    dtype = DTYPES[letter]
    order = m if side == "L" else n
    a = hermitian(rng, order, order + 2, letter, uplo)
    if name == "symm":
        a = matrix(rng, order, order, order + 2, dtype, uplo)
    values = {"side": side, "uplo": uplo, "m": m, "n": n, **_scalars(letter, alpha, beta), "a": a, "lda": order + 2}
    values |= {"b": matrix(rng, m, n, m + 1, dtype), "ldb": m + 1}
    return Case(f"{letter}{name}_", {**values, "c": matrix(rng, m, n, m + 3, dtype), "ldc": m + 3})


def rank_k(
    rng: Rng, letter: str, name: str = "syrk", uplo: str = "L", trans: str = "N", n: int = 3, k: int = 4,
    alpha: float = 1.3, beta: float = 0.7,
) -> Case:  # fmt: skip
    """syrk, syr2k, herk, her2k"""
    dtype = DTYPES[letter]
    trans = "C" if name.startswith("he") and trans == "T" else trans
    shape = (n, k) if trans == "N" else (k, n)
    real = {"herk": "alpha beta", "her2k": "beta"}.get(name, "")
    values = {"uplo": uplo, "trans": trans, "n": n, "k": k, **_scalars(letter, alpha, beta, real)}
    values |= {"a": matrix(rng, *shape, shape[0] + 2, dtype), "lda": shape[0] + 2}
    values |= {"b": matrix(rng, *shape, shape[0] + 1, dtype), "ldb": shape[0] + 1}
    c = hermitian(rng, n, n + 3, letter, uplo) if real else matrix(rng, n, n, n + 3, dtype, uplo)
    return Case(f"{letter}{name}_", {**values, "c": c, "ldc": n + 3})


def triangle_and_matrix(
    rng: Rng, letter: str, name: str = "trsm", side: str = "L", uplo: str = "L", trans: str = "T", diag: str = "N",
    m: int = 3, n: int = 4, alpha: float = -0.6,
) -> Case:  # fmt: skip
    """trmm, trsm"""
    order = m if side == "L" else n
    values = {"side": side, "uplo": uplo, "trans": trans, "diag": diag, "m": m, "n": n}
    values |= {"alpha": coefficient(alpha, letter), "lda": order + 2, "ldb": m + 1}
    values |= {"a": triangular(rng, order, order + 2, letter, uplo, diag)}
    return Case(f"{letter}{name}_", {**values, "b": matrix(rng, m, n, m + 1, DTYPES[letter])})


def potrf(rng: Rng, letter: str, uplo: str = "L", n: int = 5) -> Case:
    a = hermitian(rng, n, n + 2, letter, uplo)
    a.values[np.arange(n) * (n + 3)] += 2 * n
    return Case(f"{letter}potrf_", {"uplo": uplo, "n": n, "a": a, "lda": n + 2, "info": 0})


def potrs(rng: Rng, letter: str, uplo: str = "L", n: int = 4, nrhs: int = 3) -> Case:
    a = triangular(rng, n, n + 2, letter, uplo)
    at = np.arange(n) * (n + 3)
    a.values[at] = a.values[at].real
    values = {"uplo": uplo, "n": n, "nrhs": nrhs, "a": a, "lda": n + 2}
    return Case(
        f"{letter}potrs_", {**values, "b": matrix(rng, n, nrhs, n + 1, DTYPES[letter]), "ldb": n + 1, "info": 0}
    )


def _well_posed(rng: Rng, m: int, n: int, ld: int, letter: str) -> Numbers:
    """A matrix whose pivots lie off the diagonal, and far from a tie."""
    a = matrix(rng, m, n, ld, DTYPES[letter])
    k = min(m, n)
    a.values[np.arange(k) * ld + np.roll(np.arange(k), 1)] += 5
    return a


def getrf(rng: Rng, letter: str, m: int = 4, n: int = 4) -> Case:
    values = {"m": m, "n": n, "a": _well_posed(rng, m, n, m + 2, letter), "lda": m + 2, "info": 0}
    return Case(f"{letter}getrf_", {**values, "ipiv": np.zeros(max(1, min(m, n)))})


def getrs(rng: Rng, letter: str, trans: str = "T", n: int = 4, nrhs: int = 3) -> Case:
    dtype = DTYPES[letter]
    factors = matrix(rng, n, n, n + 2, dtype)
    factors.values[np.arange(n) * (n + 3)] += 4
    pivots = np.minimum(np.arange(n) + 2, n) if n else np.zeros(1)
    values = {"trans": trans, "n": n, "nrhs": nrhs, "a": factors, "lda": n + 2, "ipiv": pivots, "info": 0}
    return Case(f"{letter}getrs_", {**values, "b": matrix(rng, n, nrhs, n + 1, dtype), "ldb": n + 1})


def gesv(rng: Rng, letter: str, n: int = 4, nrhs: int = 3) -> Case:
    values = {"n": n, "nrhs": nrhs, "a": _well_posed(rng, n, n, n + 2, letter), "lda": n + 2, "info": 0}
    values |= {"ipiv": np.zeros(max(1, n)), "b": matrix(rng, n, nrhs, n + 1, DTYPES[letter]), "ldb": n + 1}
    return Case(f"{letter}gesv_", values)


def trtrs(rng: Rng, letter: str, uplo: str = "L", trans: str = "T", diag: str = "N", n: int = 4, nrhs: int = 3) -> Case:
    values = {"uplo": uplo, "trans": trans, "diag": diag, "n": n, "nrhs": nrhs, "lda": n + 2, "ldb": n + 1, "info": 0}
    values |= {"a": triangular(rng, n, n + 2, letter, uplo, diag)}
    return Case(f"{letter}trtrs_", {**values, "b": matrix(rng, n, nrhs, n + 1, DTYPES[letter])})


def laswp(rng: Rng, letter: str, incx: int = 1) -> Case:
    values = {"n": 3, "a": matrix(rng, 5, 3, 6, DTYPES[letter]), "lda": 6, "k1": 2, "k2": 4, "incx": incx}
    return Case(f"{letter}laswp_", {**values, "ipiv": np.array([9, 4, 3, 5, 9, 5, 9, 9])})


def band(rng: Rng, m: int, n: int, below: int, above: int, ld: int, letter: str) -> Numbers:
    """The entries of an m x n band, in columns of `ld`."""
    r, j = np.indices((ld, n))
    i = r - above + j
    inside = (i >= 0) & (i < m) & (r <= above + below)
    found = matrix(rng, ld, n, ld, DTYPES[letter])
    found.mask = inside.T.ravel() if n else np.zeros(1, bool)
    found.values = found.like(found.values[found.mask])
    return found


def gbtrf(rng: Rng, letter: str, m: int = 5, n: int = 5, kl: int = 2, ku: int = 1) -> Case:
    """Its pivots lie on and off the diagonal, far from a tie."""
    ld = 2 * kl + ku + 2
    a = band(rng, m, n, kl, kl + ku, ld, letter)
    for j in range(min(m, n)):
        a.values[kl + ku + min(j % 2, kl, m - 1 - j) + j * ld] += 6
    values = {"m": m, "n": n, "kl": kl, "ku": ku, "a": a, "lda": ld, "info": 0}
    return Case(f"{letter}gbtrf_", {**values, "ipiv": np.zeros(max(1, min(m, n)))})


def gbtrs(
    rng: Rng, letter: str, trans: str = "T", n: int = 5, nrhs: int = 2, kl: int = 2, ku: int = 1
) -> Case:  # fmt: skip
    ld = 2 * kl + ku + 2
    a = band(rng, n, n, kl, kl + ku, ld, letter)
    if n:
        a.values[kl + ku + np.arange(n) * ld] += 4
    pivots = np.minimum(np.arange(n) + 1 + np.arange(n) % 2 * kl, n) if n else np.zeros(1)
    values = {"trans": trans, "n": n, "kl": kl, "ku": ku, "nrhs": nrhs, "a": a, "lda": ld, "ipiv": pivots, "info": 0}
    return Case(f"{letter}gbtrs_", {**values, "b": matrix(rng, n, nrhs, n + 1, DTYPES[letter]), "ldb": n + 1})


def pbtrf(rng: Rng, letter: str, uplo: str = "L", n: int = 5, kd: int = 2) -> Case:
    ld = kd + 2
    a = band(rng, n, n, *((kd, 0) if uplo == "L" else (0, kd)), ld, letter)
    at = (0 if uplo == "L" else kd) + np.arange(n) * ld
    a.values[at] = a.values[at].real + 4 * n
    a.real = np.zeros_like(a.mask)
    a.real[at] = True
    return Case(f"{letter}pbtrf_", {"uplo": uplo, "n": n, "kd": kd, "a": a, "lda": ld, "info": 0})


def pbtrs(rng: Rng, letter: str, uplo: str = "L", n: int = 5, nrhs: int = 2, kd: int = 2) -> Case:
    a = pbtrf(rng, letter, uplo, n, kd).numbers("a")
    a.values[a.mask] /= 4
    values = {"uplo": uplo, "n": n, "kd": kd, "nrhs": nrhs, "a": a, "lda": kd + 2, "info": 0}
    return Case(f"{letter}pbtrs_", {**values, "b": matrix(rng, n, nrhs, n + 1, DTYPES[letter]), "ldb": n + 1})


def geqrf(rng: Rng, letter: str, m: int = 5, n: int = 3, name: str = "geqrf") -> Case:
    """geqrf, and geqp3 with the last column first."""
    a, size = matrix(rng, m, n, m + 1, DTYPES[letter]), 3 * n + 1
    values = {"m": m, "n": n, "a": a, "lda": m + 1, "jpvt": np.arange(n) == n - 1, "lwork": size, "info": 0}
    values |= {"tau": vector(rng, min(m, n), 1, DTYPES[letter]), "rwork": _few(2 * n, 1, REALS[letter])}
    destroyed = frozenset({"rwork"}) if letter in "cz" and name == "geqp3" else frozenset()
    return Case(f"{letter}{name}_", {**values, **_work(letter, size)}, destroyed=destroyed)


def multiplied(
    rng: Rng, letter: str, side: str = "L", trans: str = "N", m: int = 5, n: int = 3, k: int = 3
) -> Case:  # fmt: skip
    """ormqr or unmqr. `tau` is any, though a matrix Q has one for each v."""
    rows, size = (m, n) if side == "L" else (n, m)
    values = {"side": side, "trans": trans, "m": m, "n": n, "k": k, "lwork": max(1, size), "info": 0}
    values |= {"a": matrix(rng, rows, k, rows + 1, DTYPES[letter], "l"), "lda": rows + 1}
    values |= {"c": matrix(rng, m, n, m + 2, DTYPES[letter]), "ldc": m + 2}
    tau = vector(rng, k, 1, DTYPES[letter])
    name = "unmqr" if letter in "cz" else "ormqr"
    return Case(f"{letter}{name}_", {**values, "tau": tau, **_work(letter, max(1, size))})


def syev(rng: Rng, letter: str, name: str = "syev", jobz: str = "V", uplo: str = "L", n: int = 4) -> Case:
    """syev, syevd. Where only eigenvalues are asked for, the triangle is destroyed."""
    size = 1 + 6 * n + 2 * n * n
    a = matrix(rng, n, n, n + 1, DTYPES[letter], "A" if jobz.upper() == "V" else uplo)
    a.values[np.arange(n) * (n + 2)] += 4 * np.arange(n)  # far apart: signs are the same in double precision
    values = {"jobz": jobz, "uplo": uplo, "n": n, "a": a, "lda": n + 1, "lwork": size, "info": 0}
    values |= {"iwork": np.zeros(3 + 5 * n), "liwork": 3 + 5 * n, "w": vector(rng, n, 1, DTYPES[letter])}
    destroyed = frozenset() if jobz.upper() == "V" else frozenset({"a"})
    return Case(f"{letter}{name}_", {**values, **_work(letter, size)}, destroyed=destroyed)


def gesvx(rng: Rng, letter: str, fact: str = "N", trans: str = "N", n: int = 4, nrhs: int = 2) -> Case:
    """gesvx; where `trans` is U or L, posvx of this triangle. What is scaled is destroyed."""
    dtype, symmetric = DTYPES[letter], trans in "UL"
    a = hermitian(rng, n, n + 1, letter, trans) if symmetric else matrix(rng, n, n, n + 1, dtype)
    a.values[np.arange(n) * (n + 2)] += 8
    if fact == "E":  # rows and columns that are far from one another in size
        size = 10.0 ** (2 * np.arange(n)) if symmetric else 1e3 ** np.arange(n)
        stored = np.append(a.values[: (n + 1) * n], []).reshape(n, n + 1)
        stored[:, :n] *= np.outer(size, size) if symmetric else size
        a.values[: stored.size] = stored.ravel()
    part = trans if symmetric else "A"
    values = {"fact": fact, "trans": trans, "uplo": trans, "n": n, "nrhs": nrhs, "a": a, "lda": n + 1, "equed": "N"}
    values |= {"af": matrix(rng, n, n, n + 2, dtype, part), "ldaf": n + 2, "ipiv": np.zeros(n), "info": 0}
    values |= {"b": matrix(rng, n, nrhs, n + 1, dtype), "ldb": n + 1, "x": matrix(rng, n, nrhs, n + 2, dtype)}
    values |= {"ldx": n + 2, "rcond": scalar(0, REALS[letter]), "iwork": np.zeros(n), **_work(letter, 4 * n)}
    values |= {name: _few(n, n, REALS[letter]) for name in "rcs"} | {"rwork": _few(2 * n, 1, REALS[letter])}
    values |= {name: _few(nrhs, nrhs, REALS[letter]) for name in ("ferr", "berr")}
    destroyed = {"rcond", "ferr", "berr", "work"} | ({"rwork"} if letter in "cz" else set())
    if fact == "F":
        square = values["af"].values[: (n + 2) * n].reshape(n, n + 2)
        square[:, :n] = a.values[: (n + 1) * n].reshape(n, n + 1)[:, :n]
        factors = (
            lapack.dpotrf(square[:, :n].T, lower=trans == "L", clean=0) if symmetric else lapack.dgetrf(square[:, :n].T)
        )
        square[:, :n] = factors[0].T
        values["ipiv"] = factors[1] + 1 if not symmetric else 0
    else:
        destroyed |= {"af"}
    if fact == "E":
        destroyed |= {"a", "b", "s"} if symmetric else {"a", "b", "r", "c"}
    return Case(f"{letter}{'posvx' if symmetric else 'gesvx'}_", values, frozenset(), frozenset(destroyed))


def heev(rng: Rng, letter: str, name: str = "heev", jobz: str = "V", uplo: str = "L", n: int = 4) -> Case:
    """heev, heevd."""
    size = 1 + 6 * n + 2 * n * n
    case = syev(rng, letter, name, jobz, uplo, n)
    triangle = hermitian(rng, n, n + 1, letter, uplo)
    triangle.values[np.arange(n) * (n + 2)] += 4 * np.arange(n)
    if jobz.upper() == "V":
        triangle = replace(triangle, mask=case.numbers("a").mask)
        triangle.values[np.isnan(triangle.values) & triangle.mask] = 0
    values = {**case.values, "a": triangle, "w": vector(rng, n, 1, REALS[letter]), "lrwork": size}
    return Case(case.symbol, {**values, "rwork": _few(size, 1, REALS[letter])}, destroyed=case.destroyed | {"rwork"})


def syevr(
    rng: Rng, letter: str, name: str = "evr", jobz: str = "V", range_: str = "A", uplo: str = "L", n: int = 5
) -> Case:
    """syevr, syevx, heevr, heevx: all pairs, those from the second to the fourth, or those between two bounds."""
    size, few = 40 * n + 40, {"A": n, "I": min(n, 3), "V": 2}[range_]
    a = hermitian(rng, n, n + 1, letter, uplo)
    a.values[np.arange(n) * (n + 2)] += 8 * np.arange(n)  # far apart: signs are the same nearby
    values = {"jobz": jobz, "range": range_, "uplo": uplo, "n": n, "a": a, "lda": n + 1, "info": 0, "m": 0}
    values |= {"vl": scalar(3.5, REALS[letter]), "vu": scalar(20.0, REALS[letter]), "il": 2, "iu": 4}
    values |= {"abstol": scalar(0.0, REALS[letter]), "w": _few(n, few, REALS[letter]), "ldz": n + 2}
    values |= {"z": matrix(rng, n, few if jobz == "V" else 0, n + 2, DTYPES[letter])}
    values |= {"isuppz": np.zeros(2 * n), "ifail": np.zeros(n), "iwork": np.zeros(size), "liwork": size}
    values |= {"lwork": size, **_work(letter, size), "rwork": _few(size, 1, REALS[letter]), "lrwork": size}
    inactive = frozenset({"vl", "vu", "abstol"})
    destroyed = frozenset({"a", "rwork"}) if letter in "cz" else frozenset({"a"})
    return Case(f"{letter}{'he' if letter in 'cz' else 'sy'}{name}_", values, inactive, destroyed)


def geev(rng: Rng, letter: str, jobs: str = "VV", n: int = 5) -> Case:
    """geev; of a real matrix, of which two values are no real numbers."""
    a, size = matrix(rng, n, n, n + 1, DTYPES[letter]), 12 * n + 12
    a.values[np.arange(n) * (n + 2)] += 6 * (np.arange(n) // 2)
    turned = a.values[: (n + 1) * n].reshape(n, n + 1)
    if n > 1:
        turned[0, 1], turned[1, 0] = 4, -4
    values = {"jobvl": jobs[0], "jobvr": jobs[1], "n": n, "a": a, "lda": n + 1, "lwork": size, "info": 0}
    values |= {name: _few(n, n, DTYPES[letter]) for name in ("w", "wi")} | {"ldvl": n + 2, "ldvr": n + 1}
    values |= {"vl": matrix(rng, n, n if jobs[0] == "V" else 0, n + 2, DTYPES[letter])}
    values |= {"vr": matrix(rng, n, n if jobs[1] == "V" else 0, n + 1, DTYPES[letter])}
    values |= {"rwork": _few(2 * n + 1, 1, REALS[letter]), **_work(letter, size)}
    destroyed = frozenset({"a", "rwork"}) if letter in "cz" else frozenset({"a"})
    return Case(f"{letter}geev_", values, destroyed=destroyed)


def gesvd(rng: Rng, letter: str, jobs: str = "SS", m: int = 4, n: int = 3) -> Case:
    """gesvd, or gesdd where there is one job for both sides."""
    size, few = 20 * (max(m, n) + 1) ** 2, min(m, n)
    # Where gesdd puts the larger factor in the place of the matrix, it gives the other one.
    sides = {"O": "OA" if m >= n else "AO"}.get(jobs, (jobs * 2)[:2])
    columns, rows = ({"A": all_, "S": few}.get(job, 0) for job, all_ in zip(sides, (m, n), strict=True))
    a = matrix(rng, m, n, m + 1, DTYPES[letter])
    a.values[np.arange(few) * (m + 2)] += 4 * np.arange(few)
    values = {"jobz": jobs, "m": m, "n": n, "a": a, "lda": m + 1, "info": 0}
    values |= {"jobu": jobs[0], "jobvt": jobs[-1], "iwork": np.zeros(8 * few + 1), "lwork": size}
    values |= {"u": matrix(rng, m, columns, m + 2, DTYPES[letter]), "ldu": m + 2}
    values |= {"vt": matrix(rng, rows, n, rows + 2, DTYPES[letter]), "ldvt": rows + 2}
    values |= {"s": vector(rng, few, 1, REALS[letter]), **_work(letter, size), "rwork": _few(size, 1, REALS[letter])}
    destroyed = frozenset({"a", "rwork"}) if letter in "cz" else frozenset({"a"})
    return Case(f"{letter}{'gesvd' if len(jobs) == 2 else 'gesdd'}_", values, destroyed=destroyed)


def _work(letter: str, size: int) -> dict[str, Numbers]:
    """Workspace: the first number becomes its size, and nothing else counts."""
    return {"work": _few(size, 1, DTYPES[letter])}


def _few(size: int, count: int, dtype: np.dtype) -> Numbers:
    """So many numbers, of which the first ones count."""
    return Numbers(np.zeros(size, dtype), np.arange(size) < count)
