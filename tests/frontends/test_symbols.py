"""Names of symbols as their sources have them."""

from __future__ import annotations

import pytest

from jax_enzyme.frontends.spelling import find, spelling
from jax_enzyme.frontends.symbols import external_functions


@pytest.mark.parametrize(
    ("symbol", "spelled"),
    [
        ("f", "f"),
        ("_", "_"),
        ("_Z3fooPdi", "foo(double*, int)"),
        ("_ZN2ns3fooEPKdm", "ns::foo(double const*, unsigned long)"),
        ("_ZNK2ns1A3fooEv", "ns::A::foo()"),
        ("_Z3fooIdEvPT_i", "foo<double>(double*, int)"),
        ("_ZN12_GLOBAL__N_11fEd", "f(double)"),
        ("_ZN6kernel5other17h0123456789abcdefE", "kernel::other"),
        ("_ZNK2ns1AplERKS0_", "ns::A::operator+(ns::A const&)"),
        ("dgemv_", "dgemv"),
        ("_QMphysicsPforce", "physics::force"),
        ("_QMphysicsFhostPinner", "physics::host::inner"),
        ("_Z1kIDF16bLj3EEvPDF16b", "k<__bf16, 3>(__bf16*)"),
        ("_Z1kIDF16_EvPKDF16_", "k<_Float16>(_Float16 const*)"),
    ],
)
def test_spelling(symbol: str, spelled: str) -> None:
    assert str(spelling(symbol)) == spelled


SYMBOLS = (
    "_Z4stepd", "_ZN6solver4stepEPKdi", "_ZN6solver4stepIdEEvPT_", "_ZN6solver4stepIfEEvPT_", "_ZN1a6solver4stepEd",
    "_QMheatPadvance", "advance_", "_ZN6kernel1m3runE", "f", "_ZN4lib_4math3pow3pow17h8c5fcff61dadb1bdE",
    "_ZN4lib_5inner15Libm$LT$f64$GT$3pow17h40afc697bf144d2dE",
    "_ZN4lib_5inner15Libm$LT$f64$GT$3erf17h40afc697bf144d2dE",
)  # fmt: skip


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("f", [8]),
        ("step", [0]),
        ("::step", [0]),
        ("solver::step", [1, 2, 3, 4]),
        ("solver::step<double>", [2]),
        ("solver::step<float>(float *)", [3]),
        ("solver::step(const double *, int)", [1]),
        ("step(double)", [0]),
        ("a::solver::step", [4]),
        ("step(long)", []),
        ("heat::advance", [5]),
        ("Heat::Advance", [5]),
        ("ADVANCE", [6]),
        ("crate::m::run", [7]),
        ("walk", []),
        ("pow", [9]),
        ("lib_::pow", [9]),
        ("lib_::pow::math::pow", []),
        ("Libm$LT$f64$GT$::pow", [10]),
        ("erf", [11]),
    ],
)
def test_find(wanted: str, found: list[int]) -> None:
    assert find(wanted, SYMBOLS) == [SYMBOLS[i] for i in found]


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
