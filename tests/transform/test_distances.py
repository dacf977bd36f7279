"""What asks whether two objects overlap is answered where they are known to lie apart, and nowhere else."""

from __future__ import annotations

import pytest

from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.values import Value, int_value
from jax_enzyme.transform.distances import tell_distances
from tests.support.verified import verify

_ASK = """
declare ptr @malloc(i64)
define i1 @f(ptr noalias dereferenceable(64) %x, ptr %y, i64 %n) {{
  %a = alloca [8 x double]
  %m = call ptr @malloc(i64 64)
  %l = call ptr @malloc(i64 %n)
  %p = getelementptr i8, ptr %m, i64 16
  %one = ptrtoint ptr %{one} to i64
  %two = ptrtoint ptr %{two} to i64
  %apart = sub i64 %one, %two
  %shifted = add i64 %apart, {shift}
  %asked = icmp {asked}
  ret i1 %asked
}}
"""


@pytest.mark.parametrize(
    ("one", "two", "shift", "asked", "answer"),
    [
        ("m", "a", 63, "ult i64 %shifted, 127", 0),
        ("m", "x", 63, "ugt i64 %shifted, 126", 1),
        ("p", "a", 79, "ult i64 %shifted, 127", None),  # 16 bytes further: 79 before is where one may end
        ("p", "a", 47, "ult i64 %shifted, 127", 0),
        ("m", "a", 64, "ult i64 %shifted, 127", None),  # one may end where the other begins
        ("m", "a", 63, "ult i64 %shifted, 128", None),
        ("m", "p", 63, "ult i64 %shifted, 127", None),  # one object
        ("m", "y", 63, "ult i64 %shifted, 127", None),  # nobody knows where that leads
        ("l", "a", 63, "ult i64 %shifted, 127", None),  # nor how large this is
        ("m", "a", 63, "slt i64 %shifted, 127", None),
    ],
)
def test_objects_of_known_size_lie_apart(one: str, two: str, shift: int, asked: str, answer: int | None) -> None:
    module = parse(_ASK.format(one=one, two=two, shift=shift, asked=asked))
    function = ArrayFunction(module, "f", ())
    told = tell_distances(function)
    verify(told.module)
    result: Value = told.module.functions["f"].entry.terminator.operands[0]
    found = int_value(result)
    assert (None if found is None else found & 1) == answer
    assert (told is function) is (answer is None)
