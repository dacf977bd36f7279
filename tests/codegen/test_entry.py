"""The entry wrapper: batches, zero filling, status, linkage."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from jax_enzyme.cache import digest
from jax_enzyme.codegen.loading import loaded
from jax_enzyme.codegen.object import build_function, compiled, entry_module
from jax_enzyme.ir.arrays import Buffer
from jax_enzyme.ir.verify import parse_checked
from jax_enzyme.ir.writer import to_text
from jax_enzyme.options import Options
from jax_enzyme.transform.failure_sites import OUT_OF_MEMORY
from tests.codegen.support import array_function, elementwise, vector
from tests.support.native import KernelStatus, call, call_batched

# y += 2 x, so that y shows whether it was zero; fails with a status of the caller's choice.
_ACCUMULATE = """
define i64 @je.primal(ptr noalias %x, ptr noalias %y) {
  %a = load double, ptr %x
  %b = load double, ptr %y
  %twice = fmul double %a, 2.0
  %sum = fadd double %b, %twice
  store double %sum, ptr %y
  %bad = fcmp olt double %a, 0.0
  %status = select i1 %bad, i64 4294967303, i64 0
  ret i64 %status
}
"""
_ONE = (Buffer("x", "f64", (), "in"), Buffer("y", "f64", (), "out", zero=True))


def test_one_call() -> None:
    (y,) = call(build_function(array_function(_ACCUMULATE, *_ONE)), [3.0])
    assert y == 6.0


def test_batch_is_walked_by_strides_and_zeroed() -> None:
    built = build_function(array_function(_ACCUMULATE, *_ONE))
    x = np.arange(5.0)
    assert np.array_equal(call_batched(built, [x], 5)[0], 2 * x)
    assert np.array_equal(call_batched(built, [7.0], 5, batched=[False])[0], np.full(5, 14.0))


def test_part_of_a_batch_leaves_the_rest_alone() -> None:
    built = build_function(array_function(_ACCUMULATE, *_ONE))
    untouched = np.frombuffer(b"\x7b" * 8)[0]
    (y,) = call_batched(built, [np.ones(5)], 5, bounds=(1, 3))
    assert y.tolist() == [untouched, 2.0, 2.0, untouched, untouched]
    (y,) = call_batched(built, [np.ones(5)], 5, bounds=(3, 3))
    assert y.tolist() == [untouched] * 5


def test_first_failure_stops_the_batch() -> None:
    built = build_function(array_function(_ACCUMULATE, *_ONE))
    for bounds in ((0, 4), (1, 4)):
        with pytest.raises(KernelStatus) as raised:
            call_batched(built, [np.array([1.0, 1.0, -1.0, -1.0])], 4, bounds=bounds)
        assert (raised.value.kind, raised.value.number) == (1, 7)
        assert bounds[0] + raised.value.element == 2


def test_inout_buffers_keep_what_the_caller_gave() -> None:
    y = Buffer("y", "f64", (), "inout")
    (result,) = call(build_function(array_function(_ACCUMULATE, _ONE[0], y)), [3.0, 100.0])
    assert result == 106.0


def test_without_memory_for_what_a_second_run_starts_from_nothing_runs() -> None:
    text = "define i64 @je.primal(ptr noalias %x) {\n  store double 1.0, ptr %x\n  ret i64 0\n}\n"
    function = array_function(text, Buffer("x", "f64", (1 << 47,), "inout", role="shadow"))
    stored = compiled(function, Options(), function)
    built = loaded(stored, digest(stored.to_bytes()))
    word = ctypes.c_int64(0)
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 2, ctypes.c_void_p)
    status = kind(built.address)(ctypes.addressof(word), ctypes.addressof(word), 3, 5, None)
    assert status == OUT_OF_MEMORY << 32


def test_empty_buffers() -> None:
    text = "define i64 @je.primal(ptr noalias %x, ptr noalias %y) {\n  ret i64 0\n}\n"
    built = build_function(array_function(text, vector("x", 0), vector("y", 0, "out")))
    assert call(built, [np.zeros(0)])[0].shape == (0,)


def test_only_the_entry_is_exported_and_the_argument_is_not_changed() -> None:
    function = array_function(elementwise("%y = fneg double %x", 4), vector("x", 4), vector("y", 4, "out"))
    before = to_text(function.module)
    native = parse_checked(entry_module(function))
    exported = [f.name for f in native.functions if not f.is_declaration and f.linkage.name == "external"]
    assert exported == ["je.entry"]
    assert to_text(function.module) == before
