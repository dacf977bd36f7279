"""The C interface computes what the Fortran one does, for matrices by columns and by rows; complex dot products."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping

import numpy as np
import pytest

from jax_enzyme.codegen import library as rules
from jax_enzyme.ir import types as T
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.verify import verify
from jax_enzyme.ir.writer import to_text
from jax_enzyme.rules.blas.table import Kind, Result, bodies, routines
from tests.rules.blas import cases
from tests.rules.blas.arrays import Array, Numbers, vector
from tests.rules.blas.checks import Case, Memory, outputs
from tests.rules.blas.library import linked

BY_ROWS, BY_COLUMNS = 101, 102
FLAGS = {
    "trans": {"N": 111, "T": 112, "C": 113},
    "uplo": {"U": 121, "L": 122},
    "diag": {"N": 131, "U": 132},
    "side": {"L": 141, "R": 142},
}
FLAGS["transa"] = FLAGS["transb"] = FLAGS["trans"]
MATRICES = {"a": "lda", "b": "ldb", "c": "ldc"}

Rng = np.random.Generator


@functools.cache
def _addresses(letter: str) -> Mapping[str, int]:
    names = sorted(name for name, of in bodies().items() if of == letter)
    return linked(letter, names)


def _by_rows(numbers: Numbers, ld: int) -> tuple[Numbers, int]:
    """The same matrix stored by rows, and its leading dimension."""

    def turned(flat: Array, gap: object) -> Array:
        stored = flat.reshape(-1, ld).T[: ld - 1]
        return np.concatenate([stored, np.full((len(stored), 2), gap, stored.dtype)], axis=1).ravel()

    return Numbers(turned(numbers.values, np.nan), turned(numbers.mask, False)), numbers.values.size // ld + 2


def _call(case: Case, order: int | None) -> tuple[dict[str, Array], float]:
    """The arrays of a call through the C interface, and its result."""
    values = dict(case.values)
    if order == BY_ROWS:
        for name, ld in MATRICES.items():
            if name in case.floats and isinstance(values[name], Numbers) and ld in values:
                values[name], values[ld] = _by_rows(case.numbers(name), int(values[ld]))
    turned = Case(case.symbol, values)
    memory = Memory(turned)
    arguments: list[object] = [] if order is None else [order]
    number = ctypes.c_float if case.routine.scalar == T.FLOAT else ctypes.c_double
    for parameter in case.routine.parameters:
        value = values[parameter.name]
        by_value = parameter.kind is Kind.REAL or (parameter.kind is Kind.NUMBER and not case.routine.is_complex)
        if parameter.kind is Kind.FLAG:
            arguments.append(FLAGS[parameter.name][str(value).upper()])
        elif parameter.kind is Kind.INTEGER:
            arguments.append(value)
        elif by_value:
            arguments.append(number(memory.arrays[parameter.name][0]))
        else:
            arguments.append(ctypes.c_void_p(memory.arrays[parameter.name].ctypes.data))
    function = ctypes.CFUNCTYPE(number if case.routine.result is Result.NUMBER else None)
    types = [type(a) if not isinstance(a, int) else ctypes.c_int for a in arguments]
    address = _addresses(case.routine.letter)[f"cblas_{case.routine.stem}"]
    function = ctypes.CFUNCTYPE(function._restype_, *types)
    result = function(address)(*arguments) or 0.0
    for name in case.floats:
        array, mask = memory.arrays[name], turned.numbers(name).mask
        assert np.isnan(array[~mask]).all(), f"{name} was written in a gap"
    return {name: memory.arrays[name] for name in case.written}, result


def _check(case: Case, order: int | None) -> None:
    found, result = _call(case, order)
    expected = outputs(case)
    single = case.routine.scalar == T.FLOAT
    np.testing.assert_allclose(result, expected["return"][0], rtol=1e-5 if single else 1e-13)
    for name, array in found.items():
        values, mask = array, case.numbers(name).mask
        if order == BY_ROWS and name in MATRICES and MATRICES[name] in case.values:
            ld = int(case.values[MATRICES[name]])
            columns = case.numbers(name).values.size // ld
            values = np.pad(array.reshape(-1, columns + 2)[:, :columns], [(0, 1), (0, 0)]).T.ravel()
        np.testing.assert_allclose(values[mask], expected[name], rtol=1e-4 if single else 1e-12, atol=1e-5)


def _tight(case: Case) -> Case:
    """Matrices with one row between their columns, so that the shape can be read off."""
    values = dict(case.values)
    for name, ld in MATRICES.items():
        if name in case.floats and ld in values:
            numbers, old = case.numbers(name), int(values[ld])
            rows = {"a": _rows_of_a, "b": lambda c: c.values["m"], "c": lambda c: c.values["m"]}[name](case)
            if name in "bc" and "m" not in values:
                rows = values["n"] if name == "c" or values["trans"] == "N" else values["k"]
            if name == "b" and "transb" in values:
                rows = values["k"] if values["transb"] == "N" else values["n"]
            kept = numbers.values.reshape(-1, old)[:, : rows + 1], numbers.mask.reshape(-1, old)[:, : rows + 1]
            values[name], values[ld] = Numbers(kept[0].ravel().copy(), kept[1].ravel().copy()), rows + 1
    return Case(case.symbol, values)


def _rows_of_a(case: Case) -> int:
    v = case.values
    if "side" in v:
        return v["m"] if v["side"] == "L" else v["n"]
    if "transa" in v:
        return v["m"] if v["transa"] == "N" else v["k"]
    if "k" in v:
        return v["n"] if v["trans"] == "N" else v["k"]
    return v["m"] if "m" in v else v["n"]


@pytest.mark.parametrize("letter", ["s", "d", "c", "z"])
def test_vectors(letter: str, rng: Rng) -> None:
    names = "axpy copy swap rot".split() + (["dot"] if letter in "sd" else [])
    for name in names:
        _check(cases.two_vectors(rng, letter, name), None)
    for name in "scal nrm2 asum".split() + (["rscal"] if letter in "cz" else []):
        _check(cases.one_vector(rng, letter, name), None)


@pytest.mark.parametrize("order", [BY_ROWS, BY_COLUMNS])
@pytest.mark.parametrize("letter", ["s", "d", "c", "z"])
def test_matrices(letter: str, order: int, rng: Rng) -> None:
    complex_ = letter in "cz"
    for uplo in "UL":
        _check(_tight(cases.symv(rng, letter, uplo)), order)
        for side in "LR":
            for name in ["symm", "hemm"] if complex_ else ["symm"]:
                _check(_tight(cases.symm(rng, letter, name, side, uplo)), order)
        for trans in "NT":
            for name in "syrk syr2k herk her2k".split() if complex_ else ["syrk", "syr2k"]:
                _check(_tight(cases.rank_k(rng, letter, name, uplo, trans)), order)
    for trans in "NTC":
        _check(_tight(cases.gemv(rng, letter, trans)), order)
        for other in "NTC":
            _check(_tight(cases.gemm(rng, letter, trans, other)), order)
        for uplo in "UL":
            for name in "trmv trsv".split():
                _check(_tight(cases.triangle_and_vector(rng, letter, name, uplo, trans, "U")), order)
            for name in "trmm trsm".split():
                _check(_tight(cases.triangle_and_matrix(rng, letter, name, "R", uplo, trans)), order)
    for name in ["geru", "gerc"] if complex_ else ["ger"]:
        _check(_tight(cases.ger(rng, letter, name)), order)


@pytest.mark.parametrize("letter", ["c", "z"])
@pytest.mark.parametrize(("incx", "incy"), [(1, 1), (2, -3)])
def test_complex_dot_products(letter: str, incx: int, incy: int, rng: Rng) -> None:
    x, y = (vector(rng, 4, inc, cases.DTYPES[letter]) for inc in (incx, incy))
    u, v = x.referenced[:: np.sign(incx)], y.referenced[:: np.sign(incy)]
    result = np.zeros(1, cases.DTYPES[letter])
    for name, expected in {"dotu": np.sum(u * v), "dotc": np.sum(np.conj(u) * v)}.items():
        address = _addresses(letter)[f"cblas_{letter}{name}_sub"]
        types = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
        call = ctypes.CFUNCTYPE(None, *types)(address)
        call(4, x.values.ctypes.data, incx, y.values.ctypes.data, incy, result.ctypes.data)
        np.testing.assert_allclose(result[0], expected, rtol=1e-5 if letter == "c" else 1e-13)


@pytest.mark.parametrize("letter", ["s", "d", "c", "z"])
def test_position_of_the_largest(letter: str, rng: Rng) -> None:
    x = np.array([1, -3, 2, 3], cases.DTYPES[letter])
    address = _addresses(letter)[f"cblas_i{letter}amax"]
    call = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_int)(address)
    assert call(4, x.ctypes.data, 1) == 1
    assert call(0, x.ctypes.data, 1) == 0


def test_all_that_the_tables_name_is_there() -> None:
    for letter in "sdcz":
        active = [r for r in routines().values() if r.letter == letter and r.is_active]
        names = {name for r in active for name in (r.jvp, r.forward, r.reverse)}
        names |= {name for name, of in bodies().items() if of == letter}
        defined = {f.name for f in rules.definitions(letter, frozenset(names)).functions.values() if f.blocks}
        assert names <= defined, names - defined


_CALLER = """
declare void @cblas_dscal(i32, double, ptr, i32)
declare i32 @dgemm_(ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, i64, i64)
declare float @cblas_ddot(i32)
declare { double, double } @zdotc_(ptr, ptr, ptr, ptr, ptr)

define void @f(ptr %x) {
  call void @cblas_dscal(i32 3, double 2.0, ptr %x, i32 1)
  ret void
}
"""


def test_linking_into_a_kernel() -> None:
    module = parse(_CALLER)
    rules.link_bodies(module)
    rules.link_rules(module)
    verify(module)
    defined = {name for name, f in module.functions.items() if f.blocks}
    assert {"f", "cblas_dscal", "zdotc_", "je_dgemm_jvp", "je_ddot_reverse", "je_dscal_forward"} <= defined
    assert "cblas_ddot" not in defined, "another function of that name"
    assert all("internal" in module.functions[name].prefix for name in defined - {"f"})
    text = to_text(module)
    rules.link_bodies(module)
    rules.link_rules(module)
    verify(module)
    assert len(to_text(module)) < 2 * len(text)
