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
from jax_enzyme.ir.writer import to_text
from jax_enzyme.rules.blas.table import Kind, Result, bodies, routines
from tests.rules.blas import cases
from tests.rules.blas.arrays import Array, Numbers, vector
from tests.rules.blas.checks import Case, Memory, outputs
from tests.rules.blas.library import linked, pointer
from tests.support.verified import verify

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
    """The same matrix stored by rows, with gaps between them, and its leading dimension."""

    def turned(flat: Array, gap: object) -> Array:
        return np.pad(_rows(flat, numbers, ld), [(0, 0), (0, 2)], constant_values=gap).ravel()

    return Numbers(turned(numbers.values, np.nan), turned(numbers.mask, False)), numbers.values.size // ld + 2


def _rows(flat: Array, numbers: Numbers, ld: int) -> Array:
    return flat.reshape(-1, ld).T[: numbers.rows]


def _leading(case: Case, name: str) -> str | None:
    """The parameter that has the leading dimension of a matrix; None for what is none."""
    return MATRICES.get(name) if MATRICES.get(name) in case.values and name in case.floats else None


def _call(case: Case, order: int | None) -> tuple[dict[str, Array], float]:
    """The numbers that a call through the C interface writes, as Fortran has them, and its result."""
    values = dict(case.values)
    for name in case.floats:
        ld = _leading(case, name)
        if order == BY_ROWS and ld is not None:
            values[name], values[ld] = _by_rows(case.numbers(name), values[ld])
    stored = Case(case.symbol, values)
    memory = Memory(stored)
    number = ctypes.c_float if case.routine.scalar == T.FLOAT else ctypes.c_double
    arguments: list[object] = [] if order is None else [ctypes.c_int(order)]
    for parameter in case.routine.parameters:
        array = memory.arrays[parameter.name]
        if parameter.kind is Kind.FLAG:
            arguments.append(ctypes.c_int(FLAGS[parameter.name][str(values[parameter.name]).upper()]))
        elif parameter.kind is Kind.INTEGER:
            arguments.append(ctypes.c_int(values[parameter.name]))
        elif parameter.kind is Kind.REAL or (parameter.kind is Kind.NUMBER and not case.routine.is_complex):
            arguments.append(number(array[0]))
        else:
            arguments.append(pointer(array))
    result = number if case.routine.result is Result.NUMBER else None
    address = _addresses(case.routine.letter)[f"cblas_{case.routine.stem}"]
    returned = ctypes.CFUNCTYPE(result, *map(type, arguments))(address)(*arguments) or 0.0
    for name in case.floats:
        assert np.isnan(memory.arrays[name][~stored.numbers(name).mask]).all(), f"{name} was written in a gap"
    found: dict[str, Array] = {}
    for name in case.written:
        ld, array = _leading(case, name), memory.arrays[name]
        if order == BY_ROWS and ld is not None:
            mask = _rows(case.numbers(name).mask, case.numbers(name), case.values[ld])
            found[name] = array.reshape(case.numbers(name).rows, -1)[:, :-2].T[mask.T]
        else:
            found[name] = array[case.numbers(name).mask]
    return found, returned


def _check(case: Case, order: int | None) -> None:
    found, result = _call(case, order)
    expected = outputs(case)
    tolerance = 1e-4 if case.routine.scalar == T.FLOAT else 1e-12
    np.testing.assert_allclose(result, expected["return"][0], rtol=tolerance)
    for name, values in found.items():
        np.testing.assert_allclose(values, expected[name], rtol=tolerance, atol=tolerance, err_msg=case.symbol)


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
        _check(cases.symv(rng, letter, uplo), order)
        for side in "LR":
            for name in ["symm", "hemm"] if complex_ else ["symm"]:
                _check(cases.symm(rng, letter, name, side, uplo), order)
        for trans in "NT":
            for name in "syrk syr2k herk her2k".split() if complex_ else ["syrk", "syr2k"]:
                _check(cases.rank_k(rng, letter, name, uplo, trans), order)
    for trans in "NTC":
        _check(cases.gemv(rng, letter, trans), order)
        for other in "NTC":
            _check(cases.gemm(rng, letter, trans, other), order)
        for uplo in "UL":
            for name in "trmv trsv".split():
                _check(cases.triangle_and_vector(rng, letter, name, uplo, trans, "U"), order)
            for name in "trmm trsm".split():
                _check(cases.triangle_and_matrix(rng, letter, name, "LR"[uplo == "U"], uplo, trans), order)
    for name in ["geru", "gerc"] if complex_ else ["ger"]:
        _check(cases.ger(rng, letter, name), order)


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


def test_rules_call_what_has_a_rule() -> None:
    """Or else there would be no second derivative."""
    for letter in "sdcz":
        active = [r for r in routines().values() if r.letter == letter and r.is_active]
        names = {name for r in active for name in (r.jvp, r.forward, r.reverse)}
        names |= {name for name, of in bodies().items() if of == letter}
        functions = rules.definitions(letter, frozenset(names)).functions.values()
        called = {f.name for f in functions if not f.blocks and not f.name.startswith("llvm.")}
        assert called <= {*routines(), "malloc", "free", "je_arena_allocate"}


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
    module = rules.with_rules(module)
    verify(module)
    defined = {name for name, f in module.functions.items() if f.blocks}
    assert {"f", "cblas_dscal", "zdotc_", "je_dgemm_jvp", "je_ddot_reverse", "je_dscal_forward"} <= defined
    assert "cblas_ddot" not in defined, "another function of that name"
    assert all("internal" in module.functions[name].prefix for name in defined - {"f"})
    text = to_text(module)
    rules.link_bodies(module)
    module = rules.with_rules(module)
    verify(module)
    assert len(to_text(module)) < 2 * len(text)
