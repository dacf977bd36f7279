"""Rules for functions that the source defines: the body is what runs, the rule is the derivative."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jax_enzyme as je

_SOURCE = """
#include <math.h>
#include <stdlib.h>

static double stepped(double x) { if (x > 100) abort(); return floor(x); }
double root(double a) { double y = a; while (fabs(y * y - a) > 1e-14 * a) y = 0.5 * (y + a / y); return y; }
static int seen, last;
static void note(int i, double *x) { seen += i; if (seen > 1000) exit(4); (void)x; }

double straight(int n, const double *x) {
    double s = 0;
    for (int i = 0; i < n; i++) { note(i, &s); s += stepped(x[i]) * x[i]; }
    return s;
}
double roots(int n, const double *x) { double s = 0; for (int i = 0; i < n; i++) s += root(x[i]) * x[i]; return s; }

static int tick(void) { return ++last; }
double counted(double x) { last = 3; return x * x * tick(); }

double erf(double x) { double s = x, t = x; for (int n = 1; n < 40; n++) { t *= -x * x / n; s += t / (2 * n + 1); }
                       return s * 1.1283791670955126; }
double ddot_(const int *n, const double *x, const int *dx, const double *y, const int *dy) {
    double s = 0; for (int i = 0; i < *n; i++) s += x[i * *dx] * y[i * *dy]; return s; }
double own(int n, const double *x) { int one = 1; return erf(x[0]) * ddot_(&n, x, &one, x, &one); }

void cubes(int n, const double *x, double *y) { for (int i = 0; i < n; i++) y[i] = x[i] * x[i] * x[i]; }
void cubes_jvp(int n, const double *x, double *y, const double *dx, double *dy) {
    cubes(n, x, y);
    for (int i = 0; dy && i < n; i++) dy[i] = dx ? 30 * x[i] * x[i] * dx[i] : 0;
}
struct frame { int n; const double *x; double *xbar, *ybar; };
void *cubes_forward(int n, const double *x, double *y, double *xbar, double *ybar, long stable, void *arena) {
    struct frame *f = malloc(sizeof *f);
    *f = (struct frame){n, x, xbar, ybar};
    cubes(n, x, y);
    return f;
}
void cubes_reverse(void *kept) {
    struct frame *f = kept;
    for (int i = 0; f->ybar && i < f->n; i++) {
        if (f->xbar) f->xbar[i] += 30 * f->x[i] * f->x[i] * f->ybar[i];
        f->ybar[i] = 0;
    }
    free(f);
}
void summed(int n, const double *x, double *y) { cubes(n, x, y); }
"""
ARRAY = "n: i32, x: f64[n] -> f64"
STRAIGHT = (je.rule("stepped", 1), je.inactive("note"))


def kernel(symbol: str, signature: str, *rules: object) -> je.Kernel:
    return je.kernel(_SOURCE, symbol, signature, lang="c", rules=rules)


def test_the_rule_wins_in_every_mode() -> None:
    f = kernel("straight", ARRAY, *STRAIGHT)
    x = jnp.array([1.5, -2.25])
    np.testing.assert_allclose(f(x), 1.5 + 6.75)
    expected = np.floor(x) + x
    np.testing.assert_allclose(jax.grad(f)(x), expected)
    np.testing.assert_allclose(jax.jvp(f, (x,), (jnp.ones(2),))[1], expected.sum())
    np.testing.assert_allclose(jax.hessian(f)(x), 2 * np.eye(2))
    np.testing.assert_allclose(jax.vmap(jax.grad(f))(x[None] + jnp.arange(2.0)[:, None])[0], expected)
    report = str(f.inspect(x))
    assert "stepped: a rule, which wins over its source" in report and "note: a rule, which wins" in report
    # Without them, floor has derivative 0.
    np.testing.assert_allclose(jax.grad(kernel("straight", ARRAY))(x), np.floor(x))


@pytest.mark.parametrize("x", [np.array([1.0, 200.0]), np.ones(60)])
def test_bodies_fail_as_kernels_do(x: jax.Array) -> None:
    f = kernel("straight", ARRAY, *STRAIGHT)
    for run in (f, jax.grad(f), lambda v: jax.jvp(f, (v,), (v,))):
        with pytest.raises(jax.errors.JaxRuntimeError, match=r"straight.* (failed: `abort`|tried to end)"):
            jax.block_until_ready(run(x))


def test_a_true_rule_agrees_with_differences() -> None:
    f = kernel("roots", ARRAY, je.rule("root", "0.5 / y"))
    je.check_grads(f, (jnp.array([0.5, 2.0, 7.0]),), order=2)


def test_the_packages_own_rules() -> None:
    f = kernel("own", ARRAY, je.rule("erf", standard=True), je.rule("ddot_", standard=True))
    x = jnp.array([0.5, 2.0])
    je.check_grads(f, (x,))
    calls = {c.name: c.verdict for c in f.inspect(x).calls}
    assert calls["erf"] == calls["ddot_"] == "a rule, which wins over its source"


@pytest.mark.parametrize("files", [1, 2])
def test_functions_of_arrays(files: int, tmp_path: Path) -> None:
    """Nothing calls the derivatives: they are kept all the same."""
    rule = je.rule("cubes", signature="n: i32, x: f64[n], out y: f64[n]", jvp="cubes_jvp",
                   vjp=("cubes_forward", "cubes_reverse"))  # fmt: skip
    (tmp_path / "one.c").write_text(_SOURCE)
    (tmp_path / "other.c").write_text("int other(void) { return 0; }")
    source = [tmp_path / "one.c", tmp_path / "other.c"][:files]
    f = je.kernel(source, "summed", "n: i32, x: f64[n], out y: f64[n]", rules=(rule,))
    x = jnp.array([1.0, 2.0])
    np.testing.assert_allclose(f(x), [1.0, 8.0])
    np.testing.assert_allclose(jax.grad(lambda v: f(v).sum())(x), [30.0, 120.0])
    np.testing.assert_allclose(jax.jvp(f, (x,), (x,))[1], [30.0, 240.0])


def test_variables_that_are_shared_are_refused() -> None:
    f = kernel("counted", "x: f64 -> f64", je.inactive("tick"))
    assert f(2.0) == 16.0
    with pytest.raises(je.DifferentiationError, match="variable `last` is shared with a function that has a rule"):
        jax.grad(f)(2.0)


def test_the_kernel_itself_has_none() -> None:
    with pytest.raises(je.SignatureError, match="`roots`, which is the kernel itself"):
        kernel("roots", ARRAY, je.inactive("roots"))


@pytest.mark.parametrize("files", [1, 2])
def test_functions_of_fortran(files: int, tmp_path: Path) -> None:
    """They are not inlined before the rule is known."""
    twice = "function twice(x) result(y)\n double precision :: x, y\n y = 2 * x\nend function\n"
    run = "subroutine run(x, y)\n double precision :: x, y, twice\n y = twice(x) * x\nend subroutine\n"
    paths = [tmp_path / "one.f90", tmp_path / "other.f90"][:files]
    for path, text in zip(paths, [twice + run] if files == 1 else [run, twice], strict=True):
        path.write_text(text)
    f, plain = (
        je.kernel(paths, "run", "x: f64[], out y: f64[]", rules=tuple(map(je.inactive, ruled)))
        for ruled in (("twice_",), ())
    )
    assert f(3.0) == plain(3.0) == 18.0
    assert (jax.grad(f)(3.0), jax.grad(plain)(3.0)) == (6.0, 12.0)


@pytest.mark.parametrize("name", ["sin", "sqrtf"])
def test_functions_with_names_of_the_library(name: str) -> None:
    kind = "float" if name.endswith("f") else "double"
    source = f"{kind} {name}({kind} x) {{ return 5 * x; }} double f(double x) {{ return {name}(x) * 2; }}"
    for rule, slope in ((je.rule(name, "9 * x0"), 12.6), (je.inactive(name), 0.0)):
        if name == "sqrtf":  # of which compilers make an instruction
            with pytest.raises(je.SignatureError, match="calls of `sqrtf` are an instruction"):
                je.kernel(source, "f", "x: f64 -> f64", lang="c", rules=(rule,))
            continue
        f = je.kernel(source, "f", "x: f64 -> f64", lang="c", rules=(rule,))
        np.testing.assert_allclose((f(0.7), jax.grad(f)(0.7)), (7.0, slope))


def test_what_was_inlined_is_refused() -> None:
    source = """
    define double @twice(double %x) !dbg !5 { %y = fmul double %x, 2.0 ret double %y }
    define double @run(double %x) !dbg !6 {
      %y = fmul double %x, 2.0, !dbg !8
      ret double %y
    }
    !llvm.dbg.cu = !{!0}
    !llvm.module.flags = !{!2}
    !0 = distinct !DICompileUnit(language: DW_LANG_C99, file: !1, emissionKind: FullDebug)
    !1 = !DIFile(filename: "a.c", directory: "/")
    !2 = !{i32 2, !"Debug Info Version", i32 3}
    !3 = !{null}
    !4 = !DISubroutineType(types: !3)
    !5 = distinct !DISubprogram(name: "twice", scope: !1, file: !1, type: !4, spFlags: DISPFlagDefinition, unit: !0)
    !6 = distinct !DISubprogram(name: "run", scope: !1, file: !1, type: !4, spFlags: DISPFlagDefinition, unit: !0)
    !7 = distinct !DILocation(line: 3, scope: !6)
    !8 = !DILocation(line: 1, scope: !5, inlinedAt: !7)
    """
    with pytest.raises(je.SignatureError, match="`twice` comes too late"):
        je.kernel(source, "run", "x: f64 -> f64", lang="llvm", rules=(je.rule("twice", "2"),))


def test_arguments_that_were_removed_are_refused() -> None:
    source = """
    define internal double @one(double %x, double %unused) noinline { ret double %x }
    define double @run(double %x) {
      %y = call double @one(double %x, double poison)
      ret double %y
    }
    """
    with pytest.raises(je.SignatureError, match=r"`one` comes too late: .* removed an argument"):
        je.kernel(source, "run", "x: f64 -> f64", lang="llvm", rules=(je.rule("one", "x1", "x0"),))
