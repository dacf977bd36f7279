"""Programs with random parallel loops of OpenMP's, which mean the same with directives and without.

What iterations of one loop write is their own, private, or named in a reduction: an element at their own number, or
at one that a permutation of all numbers gives; a sum, a product, an extreme, an array of sums, or what a program
declares. They read what no iteration of the loop writes, anywhere. Loops follow each other in one region or in
several, and in serial loops.
"""

from __future__ import annotations

from hypothesis import strategies as st

SIZE = 1024
"""Elements of every array; a power of two, so that odd factors permute the numbers of elements."""

_HEAD = f"""#include <math.h>
#include <stdlib.h>
enum {{ N = {SIZE} }};
#pragma omp declare reduction(far : double : omp_out = omp_out + omp_in - 0.1 * omp_out * omp_in) \\
    initializer(omp_priv = 0)
static double mix(double a, double b) {{ return 0.5 * a + 0.3 * b * cos(a); }}
void k(int n, const double *x, double *y) {{
  double *u = malloc(8 * N), *v = malloc(8 * N), s = 0.5, p = 1, top = -9, z[4] = {{0, 0, 0, 0}}, last = 0.25;
  double far = 0.5;
  for (int i = 0; i < N; i++) {{ u[i] = x[i]; v[i] = 0.5 * x[N - 1 - i]; y[i] = 0; }}
"""
_TAIL = """  for (int i = 0; i < N; i++) y[i] += u[i] * s + v[i] * p + z[i % 4] * last + top * far;
  free(u);
  free(v);
}
"""
_schedules = st.sampled_from(
    ("", " schedule(static, 3)", " schedule(dynamic)", " schedule(dynamic, 5)", " schedule(guided)")
)
_READS = (
    "{r}[i]", "{r}[(i + 1) % N]", "{r}[(i + N - 1) % N]", "{r}[(i * 5 + 3) % N]", "{r}[N - 1 - i]", "{r}[0]", "x[i]",
    "x[i / 2]", "x[(7 * i) % N]", "s", "last", "far", "z[i % 4]",
)  # fmt: skip
_terms = st.sampled_from(("{a} * {b}", "sin({a}) + 0.2 * {b}", "mix({a}, {b})", "({a} > {b} ? {a} : 0.5 * {b})"))
_places = st.sampled_from(("i", "N - 1 - i", "(i * 5 + 3) % N", "i ^ 1"))
_arrays = st.sampled_from((("u", "v"), ("v", "u"), ("y", "u")))
_REDUCTIONS = {
    "sum": ("reduction(+ : s) reduction(* : p)", "s += 0.001 * t; p *= 1 + 0.0001 * t;", "s"),
    "extreme": ("reduction(max : top)", "top = t > top ? t : top;", ""),
    "sums": ("reduction(+ : z[:4])", "z[i * 3 % 4] += 0.01 * t;", "z[i % 4]"),
    "declared": ("reduction(far : far)", "far += 0.01 * t - 0.1 * far * 0.01 * t;", "far"),
    "last": ("lastprivate(last)", "last = 0.1 * t;", "last"),
}
"""By name: clauses, what an iteration does with `t`, and what it must not read."""
_kinds = st.sampled_from(("own", "own", "private", "inner", "atomic", *_REDUCTIONS))


@st.composite
def _loops(draw: st.DrawFn, within: bool) -> str:
    """One worksharing loop, `within` a region or with a region of its own."""
    write, read = draw(_arrays)
    kind, place = draw(_kinds), draw(_places)
    clauses, body, unread = _REDUCTIONS.get(kind, ("", "", ""))
    reads = st.sampled_from([r for r in _READS if r != unread])
    value = draw(_terms).format(a=draw(reads).format(r=read), b=draw(reads).format(r=read))
    if kind == "own":
        body = f"{write}[{place}] = 0.9 * t;"
    elif kind == "private":
        body = (
            f"double w[3]; for (int q = 0; q < 3; q++) w[q] = x[(i + q) % N] * t; {write}[{place}] = w[i % 3] + w[0];"
        )
    elif kind == "inner":
        body = f"for (int q = 1; q < 1 + i % 4; q++) t += 0.1 * x[(i + q) % N] * t; {write}[{place}] = 0.4 * t;"
    elif kind == "atomic":
        body = f"\n#pragma omp atomic\n      {write}[i * 3 % 8] += 0.01 * t;"
    directive = f"#pragma omp {'for' if within else 'parallel for'}{draw(_schedules)} {clauses}\n"
    return f"{directive}    for (int i = 0; i < N; i++) {{ double t = {value}; {body} }}\n"


@st.composite
def programs(draw: st.DrawFn) -> str:
    """The source of a function `k` of SIZE elements of x and of y."""
    text = _HEAD
    for _ in range(draw(st.integers(1, 3))):
        shape = draw(st.sampled_from(("alone", "region", "repeated")))
        if shape == "region":
            loops = "".join("    " + draw(_loops(within=True)) for _ in range(draw(st.integers(1, 3))))
            text += f"#pragma omp parallel\n  {{\n{loops}  }}\n"
        elif shape == "repeated":
            text += f"  for (int round = 0; round < 3; round++) {{\n{draw(_loops(within=False))}  }}\n"
        else:
            text += draw(_loops(within=False))
    return text + _TAIL
