"""Kernels of several sources: one library, values and derivatives, and what is said where something is not defined."""

from __future__ import annotations

import ctypes
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jax_enzyme as je

ORBIT = Path(__file__).resolve().parents[2] / "examples" / "orbit"
HALF = "double half(double x) { return x / 2; }"
USES_HALF = "double half(double); double mean(double x, double y) { return half(x * x + y); }"


def test_one_library_and_many_kernels() -> None:
    both = je.library([HALF, USES_HALF], lang="c")
    mean, half = both.kernel("mean", "x: f64, y: f64 -> f64"), both.kernel("half", "x: f64 -> f64")
    assert both.functions == ["half", "mean"]
    assert both == je.library([HALF, USES_HALF], lang="c")
    assert mean == je.kernel([HALF, USES_HALF], "mean", "x: f64, y: f64 -> f64", lang="c")
    with jax.enable_x64(True):
        np.testing.assert_allclose(mean(3.0, 1.0), 5.0)
        np.testing.assert_allclose(jax.grad(mean, argnums=(0, 1))(3.0, 1.0), (3.0, 0.5))
        np.testing.assert_allclose(half(3.0), 1.5)


def test_derivatives_of_a_folder() -> None:
    with jax.enable_x64(True):
        position = je.kernel(ORBIT, "position", "elements: f64[6], t: f64, out r: f64[3]")
        elements = jnp.array([1.5, 0.2, 0.3, 0.4, 0.5, 0.6])
        je.check_grads(position, (elements, 100.0))


def test_a_function_to_hand_over_is_named_as_in_its_source() -> None:
    integrand = "      double precision function fun(x)\n      double precision x\n      fun = sin(3*x)\n      end\n"
    rule = (
        "      subroutine simpson(f, a, b, r)\n      double precision f, a, b, r\n      external f\n"
        "      r = (b - a)/6*(f(a) + 4*f((a + b)/2) + f(b))\n      end\n"
    )
    signature = "f: fn({}), a: f64[], b: f64[], out r: f64[]"
    for sources in (integrand + rule, [rule, integrand]):
        with jax.enable_x64(True):
            plain, mangled = (
                je.kernel(sources, "simpson", signature.format(name), lang="fortran") for name in ("FUN", "fun_")
            )
            np.testing.assert_allclose(plain(0.0, 0.5), (4 * np.sin(0.75) + np.sin(1.5)) / 12)
            assert plain == mangled
            je.check_grads(plain, (0.1, 0.5))


def test_options_of_the_sources_are_those_of_the_library() -> None:
    library = je.library("double half(double x) { return x / 2; }", lang="c")
    with pytest.raises(je.ArgumentError, match=r"about the sources: je\.library\(\.\.\., blas='source'\)"):
        library.kernel("half", "x: f64 -> f64", blas="source")  # pyright: ignore[reportArgumentType]


def test_what_only_unwinding_reads_needs_no_source() -> None:
    source = """
declare i32 @rust_eh_personality(...)
define double @f(double %x) personality ptr @rust_eh_personality {
  %y = fmul double %x, %x
  ret double %y
}
"""
    with jax.enable_x64(True):
        np.testing.assert_allclose(jax.grad(je.kernel(source, "f", "x: f64 -> f64", lang="llvm"))(3.0), 6.0)


def test_everything_that_is_not_defined_is_listed_with_its_users() -> None:
    source = "double one(double), LAPACKE_dgesv();\nextern double two;\n"
    source += "double f(double x) {\n  return one(x) + two + LAPACKE_dgesv();\n}"
    with pytest.raises(je.CompileError) as caught:
        je.kernel([source, HALF], "f", "x: f64 -> f64", lang="c")
    assert "`f` needs 3 symbols that nobody defines" in caught.value.cause
    assert "`one`: called in `f` at kernel.c:4" in caught.value.cause
    assert "`two`: used in `f` at kernel.c:4" in caught.value.cause
    assert "`dgesv_` instead of `LAPACKE_dgesv`" in str(caught.value.remedy)


def test_weak_declarations_of_what_nobody_defines_are_null() -> None:
    weak = "__attribute__((weak))"
    source = f"#include <math.h>\nextern {weak} double hook(double), scale;\nextern {weak} double sin(double);\n"
    source += "static double (*table[])(double) = {hook, sin};\n"
    source += "double f(double x) { return (hook ? hook(x) : x * x) + (&scale ? scale : 3) + "
    source += "(table[0] ? 1 : 0) + (table[1] ? table[1](x) : 5); }"
    with jax.enable_x64(True):
        kernel = je.kernel(source, "f", "x: f64 -> f64", lang="c")
        np.testing.assert_allclose(kernel(0.7), 0.49 + 3 + np.sin(0.7))
        np.testing.assert_allclose(jax.grad(kernel)(0.7), 1.4 + np.cos(0.7))
        other = je.kernel([source, "double hook(double x) { return 5 * x; }"], "f", "x: f64 -> f64", lang="c")
        np.testing.assert_allclose(other(0.7), 3.5 + 3 + 1 + np.sin(0.7))


@pytest.mark.parametrize(
    ("declared", "defined", "why"),
    [
        ("double g(int);", "double g(double x) { return x; }", "argument 1 is i32 where .* parameter 1 is double"),
        ("double g(double);", "double g(double x, double y) { return x * y; }", "called with 1 arguments, and takes 2"),
        ("double g(double);", "float g(double x) { return x; }", "its result is double where .* it returns float"),
        ("int g(double);", "void g(double x) {}", "its result is i32 where .* it returns void"),
        ("double g(double, int);", "double g(double x) { return 3 * x; }", ""),
        ("long g(double);", "int g(double x) { return 3 * x; }", ""),
    ],
)
def test_files_that_do_not_agree_on_a_function(declared: str, defined: str, why: str) -> None:
    """Where integers, addresses and numbers go by other registers than the function takes them from."""
    call = "g(x, 1)" if "int)" in declared and "," in declared else "g(x)"
    unused = "double other(double x); double other(double x) { return h(1) + h(x); }"  # of which nothing is needed
    sources = [f"{declared} double h(); double f(double x) {{ return {call} * x; }} {unused}", defined]
    sources.append("double h(double x) { return x; }")
    if why:
        with pytest.raises(je.CompileError, match=f"`g` is not what it is called as: .*{why}"):
            je.kernel(sources, "f", "x: f64 -> f64", lang="c")
        return
    with jax.enable_x64(True):
        kernel = je.kernel(sources, "f", "x: f64 -> f64", lang="c")
        np.testing.assert_allclose(kernel(2.0), 12.0)
        np.testing.assert_allclose(jax.grad(kernel)(2.0), 6.0 if "long" in declared else 12.0)


@pytest.mark.parametrize(
    ("user", "definer", "why"),
    [
        ("struct p { double k, m; };", "struct p { float k; double m; };", "`k` is .* 64 bits in one and .* 32 bits"),
        ("struct p { double k, m; };", "struct p { double m, k; };", "`k` is at byte 0 in one and at byte 8"),
        ("struct p { double k, m; };", "struct p { double k, m; int id; };", "16 bytes in one and 24 .* `id` in one"),
        ("struct p { double k; int m; };", "struct p { double k, w; };", "`m`, .* 32 bits, is where `w` is .* 64 bits"),
        ("struct p { double k, m[2]; };", "struct p { double k, m[3]; };", r"64 bits \[2\] in one and .* \[3\]"),
        ("struct p { double k; struct q *m; }; struct q { int i; };", "struct p { double k; struct q *m; };"
         "struct q { long i; };", "of `q`, `i` is .* 32 bits in one and .* 64 bits"),
        ("struct p { double k; struct q *m; }; struct q { int i; };", "struct p { double k; struct q *m; };"
         "struct q { double a; };", ""),
        ("struct p { double k, m; };", "struct p { double r[2]; };", ""),
        ("struct p { double k; char room[8]; };", "struct p { double k, m; };", ""),
        ("struct p { double _Complex k; double m[6]; };", "struct p { double k[2], m[2][3]; };", ""),
        ("struct p { double k; };", "#define p o\nstruct o { double k; };\nstruct p_ { float k; };", ""),
    ],
)  # fmt: skip
def test_files_that_lay_out_a_structure_differently(user: str, definer: str, why: str) -> None:
    """What has the same name is held against one another where one file uses what another one defines."""
    declared = "double g(const struct p *, double);"
    sources = [f"{user} {declared} double f(double x) {{ struct p q = {{x}}; return g(&q, x); }}"]
    sources.append(f"{definer}\ndouble g(const struct p *q, double x) {{ return *(const double *)q * x; }}")
    if why:
        with pytest.raises(je.CompileError, match=f"`g`, which `f` uses, .* lay out differently: .*{why}"):
            je.kernel(sources, "f", "x: f64 -> f64", lang="c")
        return
    with jax.enable_x64(True):
        assert jax.grad(je.kernel(sources, "f", "x: f64 -> f64", lang="c"))(3.0) == 6.0


@pytest.mark.parametrize(
    "makes",
    ["0;", "malloc(8);", "calloc(1, sizeof(struct p)); struct p mine = *q;", "q + own.n;", "&q[own.n]; other = q + 1;"],
)
def test_files_that_know_only_how_a_structure_begins(makes: str) -> None:
    """The other file makes them, and has the rest for itself. `p` and `struct p` are two structures in C."""
    user = f"""#include <stdlib.h>
        struct p {{ double k; }};
        typedef struct {{ float k; int n, m; }} p;
        struct p *made(double);
        double f(double x) {{ p own = {{1, 1}}; struct p *q = made(x), *other = {makes} return q->k * x * own.n; }}"""
    definer = """struct p { double k; int times; };
        struct p *made(double k) { static struct p one; one.k = k, one.times++; return &one; }"""
    if "0" in makes:
        with jax.enable_x64(True):
            assert jax.grad(je.kernel([user, definer], "f", "x: f64 -> f64", lang="c"))(3.0) == 6.0
    else:
        with pytest.raises(je.CompileError, match="8 bytes in one and 16 in the other, with `times` in one"):
            je.kernel([user, definer], "f", "x: f64 -> f64", lang="c")


def test_files_that_each_have_what_a_header_leaves_open() -> None:
    header = """#include <stdlib.h>
        struct impl; struct solver { struct impl *own; double (*run)(struct solver *, double); };
        struct solver other(double k);
        """
    user = """struct impl { int n; double k; };
        static double run(struct solver *s, double x) { return s->own->k * x * s->own->n; }
        double f(double x) {
            struct impl mine = {2, x};
            struct solver a = {&mine, run}, b = other(x);
            double sum = a.run(&a, x) + b.run(&b, x);
            free(b.own);
            return sum;
        }"""
    definer = """struct impl { double k; int n; };
        static double run(struct solver *s, double x) { return s->own->k * x; }
        struct solver other(double k) {
            struct solver made = {malloc(sizeof(struct impl)), run};
            made.own->k = k;
            return made;
        }"""
    with jax.enable_x64(True):
        kernel = je.kernel([header + user, header + "\n" + definer], "f", "x: f64 -> f64", lang="c")
        assert jax.value_and_grad(kernel)(3.0) == (27.0, 18.0)


def test_files_that_do_not_agree_on_the_numbers_of_a_variable() -> None:
    sources = ["extern double table[4];\ndouble f(double x) { return x * table[1]; }", "float table[4] = {1, 2, 3, 4};"]
    with pytest.raises(
        je.CompileError, match=r"`table` is not what it is used as: its numbers are double .* and float"
    ):
        je.kernel(sources, "f", "x: f64 -> f64", lang="c")


def test_errors_of_old_libraries_need_no_source() -> None:
    source = """
        extern void xerbla_(const char *, int *, long);
        extern double d1mach_(int *);
        double f(double x) { int i = 4; if (x < 0) xerbla_("f", &i, 1); return x * d1mach_(&i); }"""
    f = je.kernel(source, "f", "x: f64 -> f64", lang="c")
    with jax.enable_x64(True):
        assert jax.grad(f)(1.0) == np.finfo(float).eps
        with pytest.raises(jax.errors.JaxRuntimeError, match="xerbla"):
            f(-1.0)


def test_what_the_process_has_loaded_is_defined() -> None:
    source = "int getpid(void); double f(double x) { return getpid() > 0 ? x : 0; }"
    assert hasattr(ctypes.CDLL(None), "getpid")
    je.kernel(source, "f", "x: f64 -> f64", lang="c")
