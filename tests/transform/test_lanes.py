"""Loads of vectors are split by what their lanes are used as."""

from __future__ import annotations

from jax_enzyme.ir.instructions import Load
from jax_enzyme.ir.reader import read
from jax_enzyme.transform.lanes import split_mixed_loads

# An integer, a number in single and one in double precision, cut out of the word that LLVM makes of a wide load.
_WORD = """
define double @f(ptr %a) {
  %v = load <4 x double>, ptr %a, align 8
  %x = extractelement <4 x double> %v, i64 0
  %w = bitcast <4 x double> %v to i256
  %one = lshr i256 %w, 64
  %n = trunc i256 %one to i32
  %two = lshr i256 %one, 64
  %s = trunc i256 %two to i32
  %q = bitcast i32 %s to float
  %r = fpext float %q to double
  %m = sitofp i32 %n to double
  %t = fadd double %x, %m
  %u = fadd double %t, %r
  ret double %u
}
"""
_WHOLE = """
define i128 @f(ptr %a) {
  %v = load <2 x double>, ptr %a
  %w = bitcast <2 x double> %v to i128
  ret i128 %w
}
"""


def test_what_is_cut_out_of_a_wide_word_is_loaded_piece_by_piece() -> None:
    (function,) = split_mixed_loads(read(_WORD)).functions.values()
    loads = [i for i in function.instructions() if isinstance(i, Load)]
    assert sorted(str(i.type) for i in loads) == ["double", "float", "i32"]
    assert not any(str(i.type) == "i256" for i in function.instructions())


def test_a_word_that_is_used_whole_stays_whole() -> None:
    module = read(_WHOLE)
    assert split_mixed_loads(module) is module
