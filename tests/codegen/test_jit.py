"""Linking: symbols from where they are promised to come from, refusals by name, initialisation, sharing."""

from __future__ import annotations

import ctypes
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from jax_enzyme.codegen import mappings, mpi, symbols
from jax_enzyme.codegen.entry import ENTRY
from jax_enzyme.codegen.host import host
from jax_enzyme.codegen.jit import Jit, jit
from jax_enzyme.codegen.object import build_function, compiled
from jax_enzyme.codegen.symbols import address_of, addresses
from jax_enzyme.errors import LoweringError
from jax_enzyme.frontends.elf import undefined_symbols
from jax_enzyme.ir import _guarded
from jax_enzyme.ir.arrays import Buffer
from jax_enzyme.options import Options
from tests.codegen.support import array_function, vector
from tests.support.engine import native
from tests.support.native import call

_ONE = (Buffer("x", "f64", (), "in"), Buffer("y", "f64", (), "out", zero=True))
_UNKNOWN = """
declare double @nobody_has_this(double)
define i64 @je.primal(ptr noalias %x, ptr noalias %y) {
  %a = load double, ptr %x
  %b = call double @nobody_has_this(double %a)
  store double %b, ptr %y
  ret i64 0
}
"""
_DOT = """
@one = internal constant i32 1
@n = internal constant i32 5
declare double @ddot_(ptr, ptr, ptr, ptr, ptr)
define i64 @je.primal(ptr noalias %x, ptr noalias %y, ptr noalias %d) {
  %r = call double @ddot_(ptr @n, ptr %x, ptr @one, ptr %y, ptr @one)
  store double %r, ptr %d
  ret i64 0
}
"""
_COMPLEX = """
declare { double, double } @__muldc3(double, double, double, double)
define i64 @je.primal(ptr noalias %x, ptr noalias %y) {
  %a = load double, ptr %x
  %z = call { double, double } @__muldc3(double %a, double 1.0, double %a, double 1.0)
  %i = extractvalue { double, double } %z, 1
  store double %i, ptr %y
  ret i64 0
}
"""
_CONSTRUCTED = """
@state = internal global double 0.0
@llvm.global_ctors = appending global [2 x { i32, ptr, ptr }] [
  { i32, ptr, ptr } { i32 200, ptr @second, ptr null }, { i32, ptr, ptr } { i32 100, ptr @first, ptr null }]
define internal void @first() {
  store double 2.0, ptr @state
  ret void
}
define internal void @second() {
  %s = load double, ptr @state
  %t = fmul double %s, 10.0
  store double %t, ptr @state
  ret void
}
define i64 @je.primal(ptr noalias %x, ptr noalias %y) {
  %a = load double, ptr %x
  %s = load double, ptr @state
  %t = fadd double %s, %a
  store double %t, ptr @state
  store double %t, ptr %y
  ret i64 0
}
"""


def test_a_symbol_that_nobody_has_is_refused_by_name() -> None:
    with pytest.raises(LoweringError, match="`nobody_has_this`") as raised:
        build_function(array_function(_UNKNOWN, *_ONE))
    assert raised.value.remedy is not None and "libraries=" in raised.value.remedy


def test_the_linker_goes_on_after_a_refusal() -> None:
    with pytest.raises(LoweringError):
        build_function(array_function(_UNKNOWN, *_ONE))
    assert call(build_function(array_function(_COMPLEX, *_ONE)), [3.0])[0] == 6.0


def test_blas_comes_from_scipy() -> None:
    built = build_function(
        array_function(_DOT, vector("x", 5), vector("y", 5), Buffer("d", "f64", (), "out", zero=True))
    )
    x, y = np.arange(5.0), np.arange(5.0) + 1
    assert call(built, [x, y])[0] == x @ y


@pytest.mark.parametrize("name", ["dgemm_", "dpotrf_", "sgemv_", "tgamma", "malloc", "__muldc3", "__divdc3"])
def test_promised_symbols_are_found(name: str) -> None:
    assert address_of(name)


@pytest.mark.parametrize("name", ["__kmpc_fork_call", "omp_get_thread_num", "GOMP_parallel", "omp_set_lock"])
def test_threads_of_openmp_never_come_from_the_process(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symbols, "address_of", lambda name: 1)  # as where a library of them is loaded
    with pytest.raises(LoweringError, match=f"`{name}`: it was compiled for OpenMP's threads") as raised:
        addresses(["malloc", name])
    assert "-fopenmp" in (raised.value.remedy or "")


@pytest.mark.parametrize(
    "name",
    ["_ZNSt3__16threadD1Ev", "_ZNSt6thread15_M_start_threadE", "pthread_create", "_ZNSt3__117__assoc_sub_state4waitEv"],
)
def test_kernels_that_start_threads_are_refused(name: str) -> None:
    with pytest.raises(LoweringError, match="`: it starts threads") as raised:
        addresses(["malloc", name])
    assert "-fopenmp" in (raised.value.remedy or "")


def test_the_line_that_starts_a_thread_is_named() -> None:
    source = """#include <pthread.h>
    static void *work(void *p) { return p; }
    void k(double *x) {
      pthread_t t;
      pthread_create(&t, 0, work, x);
    }"""
    with pytest.raises(LoweringError, match=r"(?s)`pthread_create`: it starts threads.*place: \S*:5:7"):
        native(source, "k", "inout x: f64[1]", {}).run((), [np.ones(1)])


def test_kernels_that_copy_the_process_are_refused() -> None:
    with pytest.raises(LoweringError, match="`fork`: a copy of this process"):
        addresses(["malloc", "fork"])


def test_all_missing_symbols_are_listed() -> None:
    with pytest.raises(LoweringError, match="`no_such_one`, `no_such_two`"):
        addresses(["no_such_one", "malloc", "no_such_two"])


def test_global_constructors_run_once_and_in_order() -> None:
    built = build_function(array_function(_CONSTRUCTED, *_ONE))
    assert call(built, [1.0])[0] == 21.0
    assert call(built, [1.0])[0] == 22.0


def test_thread_local_variables_live_once_per_thread() -> None:
    text = _CONSTRUCTED.replace("@state = internal global", "@state = internal thread_local global")
    built = build_function(array_function(text, *_ONE))
    with ThreadPoolExecutor(1) as pool:
        assert [pool.submit(call, built, [1.0]).result()[0] for _ in range(2)] == [1.0, 2.0]
    assert call(built, [1.0])[0] == 21.0


def test_addresses_of_thread_local_variables_may_be_parts_of_constants() -> None:
    text = _CONSTRUCTED.replace("@state = internal global", "@state = internal thread_local global")
    hidden = "ptr inttoptr (i64 ptrtoint (ptr @state to i64) to ptr)"
    built = build_function(array_function(text.replace("%t, ptr @state", f"%t, {hidden}"), *_ONE))
    with ThreadPoolExecutor(1) as pool:
        assert [pool.submit(call, built, [1.0]).result()[0] for _ in range(2)] == [1.0, 2.0]


def test_equal_objects_are_linked_once() -> None:
    function = array_function(_COMPLEX, *_ONE)
    one, other = build_function(function), build_function(function)
    assert one.address == other.address


def test_broken_objects_are_an_error() -> None:
    code = compiled(array_function(_COMPLEX, *_ONE), Options()).code
    with pytest.raises((LoweringError, ValueError)):
        jit().code(b"\x7fELF nonsense", "je.entry")
    with pytest.raises(LoweringError):
        jit().code(code, "no.such.entry")


@pytest.mark.skipif(not host().is_elf, reason="ELF objects only")
def test_undefined_symbols_of_an_object() -> None:
    assert undefined_symbols(compiled(array_function(_UNKNOWN, *_ONE), Options()).code) == ("nobody_has_this",)


@pytest.mark.skipif(not host().is_elf, reason="other systems do not count pieces of memory")
def test_where_memory_is_in_too_many_pieces_an_error_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = compiled(array_function(_COMPLEX, *_ONE), Options()).code
    allowed = tmp_path / "max_map_count"
    monkeypatch.setattr(mappings, "_ALLOWED", allowed)
    Jit().code(code, ENTRY)  # where nobody says how many there may be
    allowed.write_text("100")
    with pytest.raises(LoweringError, match="of the 100 that Linux allows") as refused:
        Jit().code(code, ENTRY)
    assert "max_map_count" in (refused.value.remedy or "")


def test_a_library_of_mpi_is_found_once_it_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is mapped is read again after each library that is loaded, whoever loads it."""
    path = shutil.copy(str(_guarded.__file__), str(tmp_path / "like_mpi.so"))
    monkeypatch.setattr(mpi, "_NAME", re.compile(r"/like_mpi\.so$"))
    found: list[list[str]] = []
    try:
        mpi._mapped.cache_clear()
        found.append(mpi._loaded())
        ctypes.CDLL(path)
        found += [mpi._loaded(), mpi._loaded()]
        assert mpi._mapped.cache_info().misses == 2
    finally:
        mpi._mapped.cache_clear()
    assert found == [[], [path], [path]]
