"""Names of symbols as their sources have them."""

from __future__ import annotations

import pytest

from jax_enzyme.frontends.symbols import external_functions, source_names


@pytest.mark.parametrize(
    ("symbol", "names"),
    [
        ("f", ()),
        ("_", ()),
        ("_Z3fooPdi", ("foo", "foo")),
        ("_ZN2ns3fooEPKdm", ("foo", "ns::foo")),
        ("_ZNK2ns1A3fooEv", ("foo", "ns::A::foo")),
        ("_Z3fooIdEvPT_i", ("foo", "foo")),
        ("_ZN6kernel5other17h0123456789abcdefE", ("other", "kernel::other")),
        ("_ZplRK1AS1_", ()),
        ("dgemv_", ("dgemv",)),
        ("_QMphysicsPforce", ("force", "physics::force")),
    ],
)
def test_source_names(symbol: str, names: tuple[str, ...]) -> None:
    assert source_names(symbol) == names


def test_external_functions() -> None:
    ir = """
declare double @exp(double)
define double @a(double %x) {
}
define internal double @b(double %x) {
}
define linkonce_odr dso_local noundef double @c(ptr noundef %x) #3 comdat {
}
define dso_local noundef double @"d e"(ptr noundef %x) #3 {
}
"""
    assert external_functions(ir) == ["a", "d e"]
