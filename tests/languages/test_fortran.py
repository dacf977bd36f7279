"""Fortran as flang compiles it, with the run-time library that it leaves calls of."""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
import pytest

import jax_enzyme as je
from jax_enzyme.errors import DifferentiationError, NoRuleError
from jax_enzyme.ir.arrays import Jvp, Vjp
from tests.languages.conftest import KERNELS, check, positive
from tests.support.engine import agree, native, pulled
from tests.support.engine import one_way as three_way
from tests.support.native import KernelStatus
from tests.support.tools import need

VECTOR = "n: i32[], x: f64[n], out y: f64[n]"
TWO = "n: i32[], x: f64[n], y: f64[n], out r: f64[]"
MATRIX = "n: i32[], x: f64[n,n], out y: f64[n]"

ARRAYS = {
    "elementwise": (VECTOR, {"n": 5}, [positive(5)]),
    "matrix_vector": (
        "n: i32[], m: i32[], a: f64[n,m], x: f64[m], out y: f64[n]",
        {"n": 4, "m": 3},
        [positive(4, 3), positive(3)],
    ),
    "matrix_products": (
        "n: i32[], m: i32[], a: f64[n,m], b: f64[m,n], out y: f64[n,n]",
        {"n": 4, "m": 3},
        [positive(4, 3), positive(3, 4)],
    ),
    "reductions": (TWO, {"n": 5}, [positive(5), positive(5, seed=1)]),
    "locations": (TWO, {"n": 5}, [positive(5), positive(5, seed=1)]),
    "outer_product": ("n: i32[], x: f64[n], out y: f64[n,n]", {"n": 5}, [positive(5)]),
    "reshaped": ("n: i32[], inout x: f64[n], inout y: f64[n*n]", {"n": 3}, [positive(3), positive(9)]),
    "masks_and_shifts": (VECTOR, {"n": 5}, [positive(5)]),
    "packed": (VECTOR, {"n": 5}, [positive(5) - 1]),
    "allocatable": (VECTOR, {"n": 5}, [positive(5)]),
    "sections": (VECTOR, {"n": 6}, [positive(6) - 1]),
    "derived_types": (VECTOR, {"n": 5}, [positive(5)]),
    "module_array": (VECTOR, {"n": 5}, [positive(5)]),
    "common_block": (VECTOR, {"n": 5}, [positive(5)]),
    "complex_numbers": ("n: i32[], x: c128[n], out r: f64[]", {"n": 4}, [positive(4) + 1j * positive(4, seed=1)]),
    "array_result": (VECTOR, {"n": 5}, [positive(5)]),
    "assumed_size": (VECTOR, {"n": 5}, [positive(5)]),
    "along_dimensions": (MATRIX, {"n": 4}, [positive(4, 4)]),
    "grown": (VECTOR, {"n": 5}, [positive(5)]),
    "pointers": (VECTOR, {"n": 5}, [positive(5)]),
    "special_functions": (VECTOR, {"n": 5}, [positive(5)]),
}
MODERN = {
    "assumed_shape": (VECTOR, {"n": 5}, [positive(5)]),
    "moved_and_sourced": (VECTOR, {"n": 5}, [positive(5)]),
    "gathered": (MATRIX, {"n": 4}, [positive(4, 4)]),
    "copied_in_and_out": (VECTOR, {"n": 5}, [positive(5)]),
    "powers": (VECTOR, {"n": 5}, [positive(5)]),
    "control_and_output": (VECTOR, {"n": 5}, [positive(5)]),
    "by_value": ("n: i32, x: f64[n] -> f64", {"n": 4}, [positive(4)]),
    "pointer_targets": (VECTOR, {"n": 5}, [positive(5)]),
    "allocatable_matrix": (VECTOR, {"n": 5}, [positive(5)]),
    "matrix_norms": ("n: i32[], x: f64[n,n], out y: f64[n,n]", {"n": 4}, [positive(4, 4)]),
    "procedure_argument": (VECTOR, {"n": 5}, [positive(5)]),
    "linked_list": (VECTOR, {"n": 5}, [positive(5)]),
    "crossed_twice": (VECTOR, {"n": 5}, [positive(5)]),
    "named_method": (VECTOR, {"n": 5}, [positive(5)]),
    "folded": (VECTOR, {"n": 5}, [positive(5)]),
}
OBJECTS = {
    "owned_memory": (VECTOR, {"n": 4}, [positive(4)]),
    "nested_tables": (VECTOR, {"n": 3}, [positive(3)]),
    "saved_array": (VECTOR, {"n": 6}, [positive(6)]),
    "boxes": (VECTOR, {"n": 3}, [positive(3)]),
    "chosen_type": (VECTOR, {"n": 4}, [positive(4)]),
    "assigned_type": (VECTOR, {"n": 4}, [positive(4)]),
    "nested_procedures": (VECTOR, {"n": 3}, [positive(3)]),
    "overlapping": (VECTOR, {"n": 5}, [positive(5)]),
    "shifted_grid": (VECTOR, {"n": 5}, [positive(5)]),
    "cells": (VECTOR, {"n": 5}, [positive(5)]),
    "ended": (VECTOR, {"n": 2}, [positive(2)]),
    "any_rank": (VECTOR, {"n": 4}, [positive(4)]),
    "driven": (VECTOR, {"n": 3}, [positive(3)]),
}
EXCHANGED = {
    "grown": "x: f64[n], out y: c128[2,n+2]",
    "led": "x: f64[n], out here: f64[n], out there: f64[n], out every: f64[n]",
    "sines": "out y: f64[n], x: f64[n]",
}
RECORDS = {
    name: (VECTOR, {"n": 6}, [positive(6)])
    for name in ("held_shapes", "sorted_with_indices", "shared_variables", "pivoted")
}
STATEMENTS = {name: (VECTOR, {"n": 3}, [positive(3)]) for name in ("text_decides", "text_is_read", "scratch_file")}
LEGACY = {name: (VECTOR, {"n": 6}, [positive(6)]) for name in ("relaxd", "jumps", "twonam")}


# norm2 asks whether the largest number so far is zero.
@pytest.mark.filterwarnings(r"ignore:kernel .reductions_. compares .*\.f90.37.:jax_enzyme.ShortcutWarning")
@pytest.mark.parametrize("name", ARRAYS)
def test_arrays(name: str) -> None:
    check("arrays.f90", name, "fortran", *ARRAYS[name], order="F")


# An arithmetic if has a way of its own for zero; norm2 asks whether the largest number so far is zero.
@pytest.mark.filterwarnings(r"ignore:kernel .control_and_output_. compares .*\.f90.151.:jax_enzyme.ShortcutWarning")
@pytest.mark.filterwarnings(r"ignore:kernel .matrix_norms_. compares .*\.f90.22[23].:jax_enzyme.ShortcutWarning")
@pytest.mark.parametrize("name", MODERN)
def test_modern(name: str) -> None:
    check("modern.f90", name, "fortran", *MODERN[name], order="F")


@pytest.mark.parametrize("name", OBJECTS)
def test_objects(name: str) -> None:
    check("objects.f90", name, "fortran", *OBJECTS[name], order="F")


@pytest.mark.parametrize("name", RECORDS)
def test_records(name: str) -> None:
    check("records.f90", name, "fortran", *RECORDS[name], order="F")


@pytest.mark.parametrize("name", ["in_a_loop", "in_an_argument", "in_a_component", "in_a_module"])
def test_arrays_that_grow(name: str) -> None:
    """What is written to memory under the name of one array is read under that of another."""
    need("flang-22")
    kernel = je.kernel(KERNELS / "growing.f90", name, VECTOR)
    with jax.enable_x64(True):
        for n in (3, 5):
            x = positive(n)
            np.testing.assert_allclose(kernel(x), x**4)
            je.check_grads(kernel, (x,))


@pytest.mark.parametrize("name", EXCHANGED)
def test_memory_that_the_procedure_exchanges(name: str) -> None:
    check("exchanged.f90", name, "fortran", EXCHANGED[name], {"n": 3}, [positive(3)], order="F")


@pytest.mark.parametrize(
    ("name", "signature", "x", "cause"),
    [
        ("grown", "inout x: f64[n], out y: c128[2,n+2]", 1.0, r"`x` in another shape: dimension 1 of \(3\)"),
        ("grown", "x: f64[n], out y: c128[2,n]", 1.0, r"`y` in another shape: dimension 2 of \(2, 3\)"),
        ("led", EXCHANGED["led"], -0.5, "`every` as a pointer to every so many elements"),
        ("led", EXCHANGED["led"], -2.0, "`every` without memory"),
    ],
)
def test_memory_that_is_no_result(name: str, signature: str, x: float, cause: str) -> None:
    need("flang-22")
    kernel = je.kernel(KERNELS / "exchanged.f90", name, signature, order="F")
    with pytest.raises(Exception, match=cause):
        kernel(np.full(3, x))


def test_a_shape_in_the_other_order() -> None:
    need("flang-22")
    kernel = je.kernel(KERNELS / "exchanged.f90", "grown", "x: f64[n], out y: c128[2,n+2]")
    with pytest.raises(Exception, match=r'of \(5, 2\) .* as Fortran counts; with order="F" .* means \(2, 5\)'):
        kernel(np.full(3, 1.0))


@pytest.mark.parametrize("name", STATEMENTS)
def test_input_and_output(name: str) -> None:
    check("input_output.f90", name, "fortran", *STATEMENTS[name], order="F")


def test_a_derivative_leaves_the_files_of_the_primal(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    name = np.frombuffer(str(path).encode(), np.int8)
    signature = "n: i32[], x: f64[n], out y: f64[n], k: i32[], name: i8[k]"
    source = (KERNELS / "input_output.f90").read_text()
    kernel = native(source, "written_file", signature, {"n": 3, "k": len(name)}, "fortran", order="F")
    kernel.run((), [positive(3), name])
    path.write_text("as the primal left it")
    wanted = tuple(b.is_input and b.is_floating for b in kernel.buffers)
    (found,) = pulled(
        kernel, (Vjp(wanted, tuple(b.name == "y" for b in kernel.buffers)),), [positive(3), name], [np.ones(3)], {}
    )
    np.testing.assert_allclose(found, 2 * positive(3))
    assert path.read_text() == "as the primal left it"


@pytest.mark.parametrize("name", ["number_through_text", "number_through_file"])
def test_numbers_that_are_written_and_read_again_are_refused(name: str) -> None:
    source = (KERNELS / "input_output.f90").read_text()
    kernel = native(source, name, VECTOR, {"n": 3}, "fortran", order="F")
    kernel.run((), [positive(3)])
    for step in (Jvp((True, False)), Vjp((True, False), (False, True))):
        with pytest.raises(NoRuleError, match="OutputReal64") as caught:
            kernel.run((step,), [])
        assert caught.value.place is not None and caught.value.place.startswith("kernel.f90:")


# An arithmetic if has a way of its own for equality.
@pytest.mark.filterwarnings(r"ignore:kernel .relaxd_. compares .*\.f90.22.:jax_enzyme.ShortcutWarning")
@pytest.mark.parametrize("name", LEGACY)
def test_legacy(name: str) -> None:
    check("legacy.f", name, "fortran", *LEGACY[name], order="F", flags=("-ffixed-form",))


def test_lengths_of_texts_follow_from_shapes() -> None:
    """Fortran passes them behind all other arguments, where the source does not name them."""
    signature = "mode: i8[k], n: i32[], x: f64[n], first: i8[], out y: f64[n]"
    mode, first = np.frombuffer(b"cube ", np.int8), np.int8(ord("c"))
    x = positive(3)
    check("objects.f90", "texts", "fortran", signature, {"k": 5, "n": 3}, [mode, x, first], order="F")
    kernel = native((KERNELS / "objects.f90").read_text(), "texts", signature, {"k": 5, "n": 3}, "fortran", order="F")
    np.testing.assert_allclose(kernel.run((), [mode, x, first])[0], x**2 + 5 * x**3)


def test_an_array_is_assigned_to_an_overlapping_part_of_itself() -> None:
    kernel = native((KERNELS / "objects.f90").read_text(), "overlapping", VECTOR, {"n": 5}, "fortran", order="F")
    (y,) = kernel.run((), [np.array([2.0, 3.0, 5.0, 7.0, 11.0])])
    np.testing.assert_array_equal(y, [6.0, 2.0, 3.0, 5.0, 7.0])


def test_an_array_is_shifted_to_the_right() -> None:
    """What flang 22 says of this to LLVM is not true, and -O2 of it is wrong."""
    kernel = native(
        (KERNELS / "objects.f90").read_text(), "shifted_onto_itself", VECTOR, {"n": 5}, "fortran", order="F"
    )
    (y,) = kernel.run((), [np.array([2.0, 3.0, 5.0, 7.0, 11.0])])
    np.testing.assert_array_equal(y, [11.0, 2.0, 3.0, 5.0, 7.0])


def test_lists_of_objects_that_own_memory_are_copies() -> None:
    kernel = native((KERNELS / "objects.f90").read_text(), "listed", VECTOR, {"n": 3}, "fortran", order="F")
    x = np.array([2.0, 3.0, 5.0])
    (y,) = kernel.run((), [x])
    np.testing.assert_allclose(y, x + x**2 * 2 * x, rtol=1e-15)


@pytest.mark.filterwarnings("ignore:kernel .boxed_. compares:jax_enzyme.ShortcutWarning")  # codes of types
def test_objects_of_any_type() -> None:
    kernel = je.kernel(KERNELS / "boxed.f90", "boxed", VECTOR)
    x, i = np.linspace(0.3, 1.4, 7), np.arange(1, 8)
    value = np.where(i % 3 == 0, 3 * x * x[0], np.where(i % 3 == 1, x * x[0], i * x))
    slope = np.where(i % 3 == 0, 3 * (x + x[0]), np.where(i % 3 == 1, x + x[0], i))
    value[0], slope[0] = 3 * x[1] ** 2, 6 * x[1]
    found = jax.jvp(kernel, (x,), (np.ones(7),))
    np.testing.assert_allclose(found, [value, slope], rtol=1e-12)


@pytest.mark.filterwarnings(r"ignore:kernel .single_precision_. compares .*\.f90.212.:jax_enzyme.ShortcutWarning")
def test_single_precision() -> None:
    signature = "n: i32[], x: f32[n], out y: f32[n]"
    inputs = [positive(4).astype(np.float32)]
    check("modern.f90", "single_precision", "fortran", signature, {"n": 4}, inputs, order="F", tolerances=(1e-5, 1e-2))


def test_stop_is_an_error_of_the_call() -> None:
    source = (KERNELS / "arrays.f90").read_text()
    kernel = native(source, "assumed_size", VECTOR, {"n": 3}, lang="fortran", order="F")
    with pytest.raises(KernelStatus) as caught:
        kernel.run((), [np.array([1.0, 400.0, 1.0])])
    assert caught.value.kind == 3


POLYMORPHIC = """
module shapes
  type, abstract :: base
  end type
  type, extends(base) :: dense
    real(8), allocatable :: w(:)
  end type
  type :: layer
    class(base), allocatable :: p
  end type
contains
  subroutine k(x, y)
    real(8), intent(in) :: x(2)
    real(8), intent(out) :: y(2)
    type(layer) :: a
    type(layer), allocatable :: l(:)
    a%p = dense(x)
    l = [a]
    y = size(l) * x
  end subroutine
end module
"""


def test_a_copy_of_polymorphic_components_is_an_error_of_the_call() -> None:
    need("flang-22")
    kernel = je.kernel(POLYMORPHIC, "k", "x: f64[2], out y: f64[2]", lang="fortran")
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"a copy of what holds polymorphic objects.*\.f90:18:"):
        kernel(positive(2))


UNALLOCATED = """
subroutine k(n, x, y)
  integer, intent(in) :: n
  real(8), intent(in) :: x(n)
  real(8), intent(out) :: y(n)
  real(8), allocatable :: t(:)
  if (n > 100) allocate(t(n), source=x)
  y = x * t(1)
end subroutine
"""


def test_the_checking_mode_tells_of_an_array_that_is_not_allocated() -> None:
    need("flang-22")
    checked = je.Options(sanitize=True)
    kernel = je.kernel(UNALLOCATED, "k", "n: i32[], x: f64[n], out y: f64[n]", lang="fortran", options=checked)
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"reads at a null pointer.*\.f90:8:"):
        kernel(positive(3))


OPENMP = """
subroutine k(n, x, y)
  use omp_lib
  implicit none
  integer, intent(in) :: n
  real(8), intent(in) :: x(n)
  real(8), intent(out) :: y(n)
  real(8) :: s, m
  integer :: i
  integer(omp_lock_kind) :: lock
  s = 0
  m = 0
  call omp_init_lock(lock)
  call omp_set_num_threads(4)
!$omp parallel do reduction(+:s)
  do i = 1, n
    s = s + x(i)**2
  end do
!$omp parallel do
  do i = 1, n
!$omp atomic
    m = m + x(i)
!$omp critical
    y(i) = s * x(i) + omp_get_thread_num() + omp_get_num_threads()
!$omp end critical
    call omp_set_lock(lock)
    call omp_unset_lock(lock)
  end do
  call omp_destroy_lock(lock)
  call without_the_module(i)
  y = y + m * i
end subroutine

subroutine without_the_module(i)
  integer :: i, omp_get_num_threads, omp_get_team_size
  external omp_get_num_threads, omp_get_team_size
  i = omp_get_num_threads() + omp_get_team_size(0)
end subroutine
"""


@pytest.mark.parametrize("flags", [("-fopenmp",), ("-Xflang", "-fopenmp", "-O1"), ()])
def test_openmp_has_the_threads_that_it_names_and_never_a_library(flags: tuple[str, ...]) -> None:
    """Without the flag directives are comments, and there is one thread."""
    kernel = native(OPENMP, "k", VECTOR, {"n": 5}, lang="fortran", flags=flags)
    x = positive(5)
    threads = np.array([0, 0, 1, 2, 3]) + 4 if flags else 1
    np.testing.assert_allclose(kernel.run((), [x])[0], np.sum(x**2) * x + threads + 2 * np.sum(x))
    if flags == ("-fopenmp",):
        agree(three_way(kernel, [x]))


TRANSFER = """
function k(n, at, x) result(t) bind(c)
  integer, value :: n
  integer :: at(1), i
  real(8) :: x(n), t
  integer(8) :: b(n)
  b = int(6497320848556798.0d0 * x + 4606921278410026770.0d0, 8)
  b = cshift(b, at(1))
  t = 0
  do i = 1, n
    t = t + transfer(b(i), 1d0)
  end do
end function
"""


def test_numbers_that_are_made_of_integers_by_the_run_time_are_refused() -> None:
    kernel = native(TRANSFER, "k", "n: i32, at: i32[1], x: f64[n] -> f64", {"n": 4}, lang="fortran")
    with pytest.raises(DifferentiationError, match="a number is made of an integer"):
        kernel.run((Vjp((False, True, False), (False, False, True)),), [])


TRANSFERS = """
subroutine k(n, at, x, y) bind(c)
  integer, value :: n
  integer :: at(1)
  real(8) :: x(n), y(n), a(2, n / 2)
  complex(8) :: z(n / 2)
  integer(8) :: b(n)
  a = reshape(x, [2, n / 2])
  z = transfer(x * x, z)
  b = transfer(cshift(x, at(1)), b)
  y = transfer(z * z(n / 2:1:-1), y) + transfer(b, y) * x
  y(2:3) = y(2:3) * transfer(a(:, at(1)), y, 2)
  y(4) = y(4) + sum(transfer(a(2, :), [0d0]))
end subroutine
"""


def test_numbers_stay_numbers_when_the_run_time_takes_them_for_other_types() -> None:
    kernel = native(TRANSFERS, "k", "n: i32, at: i32[1], x: f64[n], out y: f64[n]", {"n": 4}, lang="fortran")
    x = positive(4)
    a, z, at = x.reshape(2, 2, order="F"), (x * x).view(complex), 1
    y = (z * z[::-1]).view(float) + np.roll(x, -at) * x
    y[1:3] *= a[:, at - 1]
    y[3] += a[1].sum()
    np.testing.assert_allclose(kernel.run((), [np.array([at], np.int32), x])[0], y)
    agree(three_way(kernel, [np.array([at], np.int32), x]))


INTENTS = """
module m
contains
  subroutine reads(n, x, y)
    integer, intent(in) :: n
    real(8), intent(in) :: x(n), & ! intent(out)
      y(n)
    if (n > 9) print *, x, y
  end subroutine
  subroutine writes(n, x, y)
    integer, intent(in) :: n
    interface
      real(8) function other(y)
        real(8), intent(in) :: y
      end function
    end interface
    real(8), intent(in) :: x(n)
    real(8), intent(out) :: y(n)
    y = 2 * x
  end subroutine
end module
"""


def test_an_argument_of_intent_in_is_no_output() -> None:
    need("flang-22")
    text = "n: i32[], x: f64[n], out y: f64[n]"
    with pytest.raises(
        je.SignatureError, match=r"(?s)`y` is `out`.*`real\(kind=8\)\[\]` of intent\(in\), where it can"
    ):
        je.kernel(INTENTS, "reads", text, lang="fortran")
    assert je.kernel(INTENTS, "writes", text, lang="fortran")(positive(3)).shape == (3,)


def test_random_numbers_are_those_of_the_seed() -> None:
    """And begin as a program's do in each call, so that a derivative draws the same."""
    need("flang-22")
    source = """
    subroutine k(n, x, y)
        integer, intent(in) :: n
        real(8), intent(in) :: x(n)
        real(8), intent(out) :: y(n)
        real(8) :: r(n), again(n)
        real(4) :: short
        integer :: many, state(4)
        call random_number(r(n:1:-1))
        call random_seed(size=many)
        call random_seed(get=state(:many))
        call random_number(r)
        call random_number(short)
        call random_seed(put=state(:many))
        call random_number(again)
        if (any(r /= again) .or. any(r < 0) .or. any(r >= 1) .or. short < 0 .or. short >= 1) error stop 'drawn'
        y = 0
        do i = 1, 1 + int(3 * short)
            y = y + exp(-r * x)
        end do
    end"""
    kernel = je.kernel(source, "k", VECTOR, lang="fortran")
    x = positive(5)
    with jax.enable_x64(True):
        np.testing.assert_array_equal(kernel(x), kernel(x))
        je.check_grads(kernel, (x,))
