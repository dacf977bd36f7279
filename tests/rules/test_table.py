from __future__ import annotations

import pytest

from jax_enzyme.ir import types as T
from jax_enzyme.rules.complex import ANALYTIC, REAL_PARTS
from jax_enzyme.rules.expr import Expr
from jax_enzyme.rules.names import canonical
from jax_enzyme.rules.rule import ZERO, Kind, Outcome, Rule, smooth
from jax_enzyme.rules.table import Rules, standard

# Every function of C99's math.h (7.12), and what glibc has beside it.
MATH_H = """
    acos asin atan atan2 cos sin tan acosh asinh atanh cosh sinh tanh exp exp2 expm1 frexp ilogb ldexp log log10 log1p
    log2 logb modf scalbn scalbln cbrt fabs hypot pow sqrt erf erfc lgamma tgamma ceil floor nearbyint rint lrint llrint
    round lround llround trunc fmod remainder remquo copysign nan nextafter nexttoward fdim fmax fmin fma
""".split()
BESIDES = "exp10 pow10 j0 j1 jn y0 y1 yn lgamma_r sincos drem roundeven llogb finite".split()
COMPLEX_H = """
    cacos casin catan ccos csin ctan cacosh casinh catanh ccosh csinh ctanh cexp clog cabs cpow csqrt carg cimag conj
    cproj creal
""".split()


@pytest.mark.parametrize("name", MATH_H + BESIDES)
@pytest.mark.parametrize("suffix", ["", "f", "l"])
def test_every_function_of_math_h_is_answered(name: str, suffix: str) -> None:
    spelling = name.replace("_r", f"{suffix}_r") if name.endswith("_r") else name + suffix
    if spelling == "dreml" or spelling == "pow10l":
        return
    rule = standard().for_call(spelling)
    assert rule is not None
    match rule.kind:
        case Kind.SMOOTH:
            assert any(isinstance(partial, Expr) for partial in rule.partials)
        case Kind.ZERO:
            assert rule.reason
        case Kind.REFUSED:
            assert rule.refusal is not None
            assert rule.refusal.cause
            assert rule.refusal.remedy


@pytest.mark.parametrize("name", COMPLEX_H)
def test_every_function_of_complex_h_is_answered(name: str) -> None:
    assert name in REAL_PARTS or name in {function.name for function in ANALYTIC}


@pytest.mark.parametrize(
    "name, row",
    [
        ("sinf", "sin"), ("sinl", "sin"), ("__sin_finite", "sin"), ("__powf_finite", "pow"), ("__builtin_sinf", "sin"),
        ("llvm.sin.f64", "sin"), ("llvm.pow.v4f32", "pow"), ("llvm.fabs.nxv2f64", "fabs"), ("llvm.exp.bf16", "exp"),
        ("llvm.powi.f64.i32", "powi"), ("llvm.fmuladd.f32", "fma"), ("llvm.maxnum.f64", "fmax"),
        ("llvm.minimumnum.f32", "fmin"), ("llvm.maximum.v2f64", "maximum"), ("llvm.ldexp.f64.i32", "ldexp"),
        ("llvm.lrint.i64.f64", "lrint"), ("llvm.is.fpclass.f32", "is_fpclass"), ("llvm.fptosi.sat.i32.f64", "fptosi"),
        ("llvm.experimental.constrained.fadd.f64", "constrained"), ("llvm.canonicalize.f64", "identity"),
        ("__nv_sin", "sin"), ("__nv_sinf", "sin"), ("__nv_fast_expf", "exp"), ("__nv_fma_rn", "fma"),
        ("__nv_fmaf_rz", "fma"), ("__nv_dmul_rn", "fmul"), ("__nv_fsqrt_rn", "sqrt"), ("__nv_powi", "powi"),
        ("__nv_rsqrt", "rsqrt"), ("__nv_fdividef", "fdiv"), ("llvm.nvvm.sqrt.rn.d", "sqrt"),
        ("llvm.nvvm.ex2.approx.ftz.f", "exp2"), ("llvm.nvvm.rcp.rn.d", "rcp"), ("scalblnf", "ldexp"),
        ("__isnanf", "__isnan"), ("modf", "modf"), ("modff", "modf"), ("lgammaf_r", "lgamma_r"),
        ("je.digamma.f64", "digamma"), ("_FortranASpacing8", "spacing"), ("_FortranAExponent8_4", "frexp_exponent"),
        ("llvm.x86.avx.max.pd.256", "x86_max"), ("llvm.x86.sse.rcp.ps", "rcp"), ("llvm.x86.sse2.cvttsd2si64", "lrint"),
        ("__nv_normcdff", "normcdf"),
         ("je.cexp_re.f64", "cexp_re"), ("_FortranAFPow8i", "powi"),
    ],
)  # fmt: skip
def test_names(name: str, row: str) -> None:
    rule = standard().for_call(name)
    assert rule is not None
    assert rule.name == row


@pytest.mark.parametrize("name", ["fadd", "fmul", "fneg", "digamma", "maximum", "powi", "cexp_re", "%fmul", "identity"])
def test_a_users_function_of_an_internal_name_has_no_rule(name: str) -> None:
    assert standard().for_call(name) is None


@pytest.mark.parametrize("name", ["si", "sinff", "llvm.nothing.f64", "llvm.memcpy.p0.p0.i64", "__nv_unknown", "", "f"])
def test_unknown_names_have_no_rule(name: str) -> None:
    assert standard().for_call(name) is None


def test_a_function_of_another_type_has_no_rule() -> None:
    table = standard()
    assert table.for_call("y0", T.FunctionType(T.DOUBLE, (T.DOUBLE,))) is not None
    assert table.for_call("y0", T.FunctionType(T.DOUBLE, (T.I32,))) is None
    assert table.for_call("sin", T.FunctionType(T.DOUBLE, (T.DOUBLE, T.DOUBLE))) is None
    assert table.for_call("jn", T.FunctionType(T.FLOAT, (T.I32, T.FLOAT))) is not None
    assert table.for_call("lround", T.FunctionType(T.I64, (T.DOUBLE,))) is not None
    vector = T.VectorType(4, T.FLOAT)
    assert table.for_call("llvm.sin.v4f32", T.FunctionType(vector, (vector,))) is not None


@pytest.mark.parametrize(
    "opcode, active, needed",
    [
        ("fmul", (True, True), {"x0", "x1"}),
        ("fmul", (True, False), {"x1"}),
        ("fadd", (True, True), set()),
        ("fdiv", (True, False), {"x1"}),
        ("fdiv", (False, True), {"x1", "y"}),
        ("fptosi", (True,), set()),
    ],
)
def test_reverse_keeps_only_what_the_used_partials_read(
    opcode: str, active: tuple[bool, ...], needed: set[str]
) -> None:
    rule = standard().for_opcode(opcode)
    assert rule is not None
    partials = [p for p, varies in zip(rule.partials, active, strict=True) if varies and isinstance(p, Expr)]
    assert set[str]().union(*(p.variables for p in partials)) == needed


def test_a_table_can_be_extended_and_stays_as_it_was() -> None:
    table = standard()
    mine = smooth("user_softplus", "1 - exp(-y)", source="user")
    extended = table.with_rules([mine])
    assert extended.for_call("user_softplus") is mine
    assert table.for_call("user_softplus") is None
    assert isinstance(extended, Rules)
    assert extended.for_call("sin") is table.for_call("sin")


def test_the_outcomes_are_kept_apart() -> None:
    table = standard()
    floor, constrained = table.for_call("floor"), table.for_call("llvm.experimental.constrained.sin.f64")
    assert floor is not None and floor.partials == (ZERO,) and floor.reason and floor.refusal is None
    assert constrained is not None and constrained.refusal is not None
    assert constrained.refusal.outcome is Outcome.NO_RULE


def test_rules_are_values() -> None:
    rule = standard().for_call("tanh")
    assert isinstance(rule, Rule)
    assert rule == standard().for_call("tanhf")
    assert hash(rule) == hash(standard().for_call("llvm.tanh.f64"))


def test_names_resolve_to_known_rows_only() -> None:
    assert canonical("sinf", {"sin"}) == "sin"
    assert canonical("sinf", {"cos"}) is None
