"""What is the same for all directions stays one value, what differs has lanes, and what cannot be told is refused."""

from __future__ import annotations

import pytest

from jax_enzyme.analysis.directional import Directional
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.ir.arrays import ArrayFunction, Buffer, Jvp
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.verify import parse_checked
from jax_enzyme.ir.writer import to_text
from jax_enzyme.transform.directions import NotLinear, in_directions

_HEAD = """
declare ptr @malloc(i64)
declare void @free(ptr)
declare void @sees(ptr)
declare double @other(double)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define internal void @double(ptr %p) {
  %q = getelementptr i8, ptr %p, i64 8
  %v = load double, ptr %q
  %d = fadd double %v, %v
  store double %d, ptr %q
  ret void
}
define internal double @half(ptr %p) {
  %v = load double, ptr %p
  %h = fmul double %v, 5.0e-1
  ret double %h
}
define i64 @f(ptr noalias dereferenceable(80) %x, ptr noalias dereferenceable(80) %t, ptr noalias %y, i64 %n) {
"""
_BUFFERS = (
    Buffer("x", "f64", (10,), "in"),
    Buffer("t", "f64", (10,), "in", "tangent", 0),
    Buffer("y", "f64", (10,), "out", "tangent", 2),
    Buffer("n", "i64", (), "in"),
)


def _wide(body: str) -> str:
    function = ArrayFunction(parse(_HEAD + body + "\n  ret i64 0\n}"), "f", _BUFFERS)
    module = in_directions(function, Jvp((True, False, False, False), lanes=4)).module
    parse_checked(module)
    return to_text(module)


def test_memory_and_arithmetic() -> None:
    text = _wide("""
      %size = mul i64 %n, 8
      %own = call ptr @malloc(i64 %size)
      call void @llvm.memcpy.p0.p0.i64(ptr %own, ptr %t, i64 80, i1 false)
      %at = getelementptr inbounds double, ptr %own, i64 %n
      %a = load double, ptr %at, align 8
      %x1 = getelementptr i8, ptr %x, i64 8
      %c = load double, ptr %x1, align 8
      %b = fmul double %a, %c
      %y1 = getelementptr i8, ptr %y, i64 8
      store double %b, ptr %y1, align 8
      store double %c, ptr %y, align 8
      call void @double(ptr %y)
      call void @free(ptr %own)""")
    assert "ptr noalias dereferenceable(80) %x, ptr noalias dereferenceable(320) %t" in text
    for line in (
        "mul i64 %size, 4",
        "ptr %own, ptr %t, i64 320, i1 false",
        "getelementptr inbounds [32 x i8], ptr %own, i64 %n",
        "load <4 x double>, ptr %at, align 8",
        "getelementptr i8, ptr %x, i64 8",
        "load double, ptr %x1, align 8",
        "getelementptr i8, ptr %y, i64 32",
        "store <4 x double> %b, ptr %y1, align 8",
        "getelementptr i8, ptr %p, i64 32",
        "fadd <4 x double> %v, %v",
    ):
        assert line in text


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("call void @sees(ptr %t)", "a call of sees with memory of tangents"),
        ("%v = load double, ptr %t\n %w = call double @other(double %v)\n store double %w, ptr %y", "call of other"),
        (
            "%h = call double @half(ptr %t)\n store double %h, ptr %y",
            "a call of half with tangents|ret to void of a tangent",
        ),
        ("%v = load i64, ptr %t\n %d = trunc i64 %v to i32", "type i64 in memory of tangents"),
        ("%v = load float, ptr %t\n %d = load double, ptr %t", "numbers of two sizes"),
        ("store double 1.0, ptr %x\n %v = load double, ptr %t\n store double %v, ptr %x", "buffer x would have to be"),
        ("%p = icmp eq i64 %n, 0\n %q = select i1 %p, ptr %x, ptr %t\n %v = load double, ptr %q", "buffer x would"),
        ("store ptr %t, ptr %y\n %p = load ptr, ptr %y\n %v = load double, ptr %p", "type ptr in memory"),
        ("%i = ptrtoint ptr %t to i64\n %d = and i64 %i, 7", "ptrtoint of an address"),
        ("%v = load volatile double, ptr %t", "others see"),
        ("%v = load double, ptr %t\n %i = fptosi double %v to i64", "fptosi to i64 of a tangent"),
        ("%v = load double, ptr %t\n %c = fcmp une double %v, 0.0\n br i1 %c, label %a, label %a\na:", "br to void"),
    ],
)
def test_what_is_called_one_by_one(body: str, reason: str) -> None:
    with pytest.raises(NotLinear, match=reason):
        _wide(body)


def test_what_differs() -> None:
    module = parse(
        _HEAD + "  %v = load double, ptr %t\n  %w = load double, ptr %x\n  store double %v, ptr %y\n  ret i64 0\n}"
    )
    root = module.functions["f"]
    found = Directional(PointsTo(module, root), root.arguments[1:2])
    assert [v.name for v in found.values] == ["v"]
    assert sorted(map(str, found.objects)) == ["buffer t", "buffer y"]
