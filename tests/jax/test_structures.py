"""Structures, arrays of pointers, callbacks and other parameters of old code, under JAX's transformations."""

from __future__ import annotations

import copy
import pickle
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
from jax import export
from jax import numpy as jnp

import jax_enzyme as je
from jax_enzyme.xla_ffi.registration import CPU_TARGET
from tests.support.tools import need

SPRINGS = """
struct spring { double k; double *mass; int id; struct { double x, y; } at; float w[3]; };
double energy(int n, const struct spring *p, double *force) {
  double e = 0;
  for (int i = 0; i < n; i++) {
    force[i] = p->k * p->mass[i] * p->id * p->at.x;
    e += 0.5 * force[i] * force[i] + p->w[i % 3] * p->at.y;
  }
  return e;
}
"""
SPRING = "{k: f64, mass: f64[n]*, id: i32, at: {x: f64, y: f64}, w: f32[3]}"


def springs() -> je.Kernel:
    return je.kernel(SPRINGS, "energy", f"n: i32, p: {SPRING}*, out force: f64[n] -> f64", lang="c")


def spring(n: int = 4) -> dict[str, Any]:
    noise = np.random.default_rng(n)
    return {
        "k": jnp.asarray(1.5),
        "mass": jnp.asarray(noise.uniform(1, 2, n)),
        "id": jnp.asarray(2, jnp.int32),
        "at": {"x": jnp.asarray(0.3), "y": jnp.asarray(0.7)},
        "w": jnp.asarray([1, 2, 3], jnp.float32),
    }


@jax.jit
def reference(p: dict[str, Any]) -> tuple[jax.Array, jax.Array]:
    force = p["k"] * p["mass"] * p["id"] * p["at"]["x"]
    weights = p["w"].astype(float)[jnp.arange(force.shape[0]) % 3]
    return jnp.sum(0.5 * force**2 + weights * p["at"]["y"]), force


RETURNED = """
struct pair { double x, y; };
struct state { int steps; struct pair at; float w[3]; double *work; };
struct pair polar(double r, double t) { struct pair p = {r * __builtin_cos(t), r * __builtin_sin(t)}; return p; }
struct state stepped(double m, struct pair p, double *rest) {
  struct state s = {7, {m * p.x, p.y * p.y}, {m, 2 * m, m * m}, rest};
  *rest = m * p.y;
  return s;
}
"""


@pytest.mark.parametrize(
    ("symbol", "signature", "reference", "arguments"),
    [
        (
            "polar",  # in registers
            "r: f64, t: f64 -> {x: f64, y: f64}",
            lambda r, t: {"x": r * jnp.cos(t), "y": r * jnp.sin(t)},
            (1.5, 0.7),
        ),
        (
            "stepped",  # in memory
            "m: f64, p: {x: f64, y: f64}, out rest: f64[] -> {steps: i32, at: {x: f64, y: f64}, w: f32[3], work: null}",
            lambda m, p: (
                {
                    "steps": jnp.asarray(7, jnp.int32),
                    "at": {"x": m * p["x"], "y": p["y"] ** 2},
                    "w": jnp.stack([m, 2 * m, m * m]).astype(jnp.float32),
                },
                m * p["y"],
            ),
            (1.5, {"x": 0.3, "y": 0.8}),
        ),
    ],
)
def test_a_structure_that_is_returned(symbol: str, signature: str, reference: Any, arguments: Any) -> None:
    kernel = je.kernel(RETURNED, symbol, signature, lang="c")
    suggested = je.suggest_signature(RETURNED, symbol, lang="c").partition("  #")[0]
    assert suggested.rpartition(" -> ")[2] == signature.rpartition(" -> ")[2]
    assert pickle.loads(pickle.dumps(kernel)) == kernel
    arguments = jax.tree.map(jnp.asarray, arguments)
    close(kernel(*arguments), reference(*arguments))
    close(jax.jacfwd(kernel)(*arguments), jax.jacfwd(reference)(*arguments))
    _, pullback = jax.vjp(kernel, *arguments)
    wanted, expected = jax.vjp(reference, *arguments)
    weights = jax.tree.map(
        lambda v: np.zeros(v.shape, jax.dtypes.float0) if v.dtype == jnp.int32 else jnp.ones_like(v) * 0.7, wanted
    )
    close(pullback(weights), expected(weights))
    batch = jax.tree.map(lambda v: jnp.stack([v, v + 0.1]), arguments)
    close(jax.vmap(kernel)(*batch), jax.vmap(reference)(*batch))


@pytest.mark.parametrize(
    ("signature", "cause"),
    [
        ("r: f64, t: f64 -> {x: f64}", "one more member, `double y`"),
        ("r: f64, t: f64 -> {x: f32, y: f64}", "member 1 is `x: f32`, in the source `double x`"),
        ("r: f64, t: f64 -> {x: f64, y: f64[]*}", "`y: f64[]*` is a pointer in a structure that is returned"),
        ("r: f64, t: f64 -> {in x: f64, y: f64}", "`x` is a member of what the function returns"),
    ],
)
def test_a_returned_structure_that_is_another_one(signature: str, cause: str) -> None:
    with pytest.raises(je.SignatureError, match=cause.replace("[", r"\[").replace("*", r"\*")):
        je.kernel(RETURNED, "polar", signature, lang="c")


def close(got: Any, wanted: Any) -> None:
    assert jax.tree.structure(got) == jax.tree.structure(wanted)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        if jnp.asarray(b).dtype != jax.dtypes.float0:
            np.testing.assert_allclose(a, b, rtol=1e-6 if jnp.asarray(b).dtype == jnp.float32 else 1e-12)


def test_values() -> None:
    close(springs()(spring()), reference(spring()))
    close(jax.jit(springs())(spring()), reference(spring()))


def test_gradients_are_dicts() -> None:
    def total(function: Any) -> Any:
        return lambda p: function(p)[0] + jnp.sum(jnp.sin(function(p)[1]))

    got = jax.grad(total(springs()), allow_int=True)(spring())
    close(got, jax.grad(total(reference), allow_int=True)(spring()))
    assert got["id"].dtype == jax.dtypes.float0


def test_jvp_vjp_and_jacobians() -> None:
    moving = {key: value for key, value in spring().items() if key != "id"}

    def of(function: Any) -> Any:
        return lambda p: function({**p, "id": 2})

    tangent = jax.tree.map(jnp.ones_like, moving)
    close(jax.jvp(of(springs()), (moving,), (tangent,)), jax.jvp(of(reference), (moving,), (tangent,)))
    seed = (jnp.asarray(0.5), jnp.arange(4.0))
    close(jax.vjp(of(springs()), moving)[1](seed), jax.vjp(of(reference), moving)[1](seed))
    close(jax.jacrev(of(springs()))(moving), jax.jacrev(of(reference))(moving))
    close(jax.jacfwd(of(springs()))(moving), jax.jacfwd(of(reference))(moving))


def test_second_order() -> None:
    def of(function: Any) -> Any:
        return lambda p: function({**spring(), **p})[0]

    moving = {"k": jnp.asarray(1.5), "at": spring()["at"]}
    close(jax.hessian(of(springs()))(moving), jax.hessian(of(reference))(moving))


def test_vmap_over_some_members() -> None:
    p = {**spring(), "k": jnp.arange(3.0), "at": {"x": jnp.arange(3.0), "y": jnp.asarray(0.1)}}
    axes = {"k": 0, "mass": None, "id": None, "at": {"x": 0, "y": None}, "w": None}
    close(jax.vmap(springs(), (axes,))(p), jax.vmap(reference, (axes,))(p))


def test_finite_differences() -> None:
    f = springs()

    assert je.check_grads(f, ({**spring(), "w": np.ones(3, np.float32)},)).ok


class At(NamedTuple):
    x: Any
    y: Any


def test_other_mappings() -> None:
    p = {**spring(), "at": At(0.3, 0.7), "id": 2}
    close(springs()(p=p), reference(spring()))


def test_it_is_a_value() -> None:
    f = springs()
    assert pickle.loads(pickle.dumps(f)) == f == copy.copy(f)
    assert repr(f).startswith("Kernel energy(p) -> return, force")
    checks = [export.DisabledSafetyCheck.custom_call(CPU_TARGET)]
    stored = export.export(jax.jit(f), disabled_checks=checks)(spring()).serialize()
    close(export.deserialize(bytearray(stored)).call(spring()), f(spring()))


def test_by_value_in_registers_and_in_memory() -> None:
    source = """
    typedef struct { float x, y, z; } small;      typedef struct { double a; char c; } mixed;
    typedef struct { int i; float f; double d[3]; } large;      typedef struct { int i; float f; } pair;
    double f(small s, mixed m, large l, pair p) {
      return s.x * s.y + s.z * m.a * m.c + l.i * l.f * l.d[1] + l.d[2] * p.i * p.f;
    }"""
    signature = (
        "s: {x: f32, y: f32, z: f32}, m: {a: f64, c: i8}, l: {i: i32, f: f32, d: f64[3]}, p: {i: i32, f: f32} -> f64"
    )
    f = je.kernel(source, "f", signature, lang="c")

    def plain(s: Any, m: Any, b: Any, p: Any) -> Any:
        first = s["x"] * s["y"] + s["z"] * m["a"] * m["c"]
        return first + b["i"] * b["f"] * b["d"][1] + b["d"][2] * p["i"] * p["f"]

    args = (
        {"x": np.float32(1.5), "y": np.float32(2.0), "z": np.float32(0.5)},
        {"a": 3.0, "c": 2},
        {"i": 3, "f": np.float32(0.25), "d": jnp.arange(3.0)},
        {"i": 5, "f": np.float32(1.25)},
    )
    np.testing.assert_allclose(f(*args), plain(*args))
    assert je.check_grads(f, args).ok


def test_what_is_written_comes_back() -> None:
    source = """
    struct state { int steps; double t; double *u; double v[20]; double *work; };
    void step(struct state *s, int n, double dt) {
      s->steps++;
      for (int i = 0; i < n; i++) { s->work[i] = s->u[i] * s->v[i]; s->u[i] += dt * s->work[i]; s->v[i] *= s->t; }
      s->t += dt;
    }"""
    signature = "inout s: {steps: i32, t: f64, u: f64[n]*, v: f64[20], scratch work: f64[n]*}*, n: i32, dt: f64"
    step = je.kernel(source, "step", signature, lang="c")
    s = {"steps": 3, "t": 0.5, "u": jnp.arange(4.0), "v": jnp.arange(20.0)}

    def plain(s: Any, dt: Any) -> Any:
        u, v = s["u"], s["v"]
        return {
            "steps": s["steps"] + 1,
            "t": s["t"] + dt,
            "u": u + dt * u * v[:4],
            "v": v.at[:4].multiply(s["t"]),
        }

    close(step(s, 0.1), plain({**s, "steps": jnp.asarray(3, jnp.int32)}, 0.1))
    flat = lambda t, u, v, dt: step({"steps": 3, "t": t, "u": u, "v": v}, dt)  # noqa: E731
    assert je.check_grads(jax.jit(flat), (0.5, jnp.arange(4.0), jnp.arange(20.0), 0.1), order=2).ok


@pytest.mark.parametrize("n", [1, 40])
def test_arrays_of_structures(n: int) -> None:
    source = """
    struct body { double m; double x[3]; struct { float charge; int *tag; } more; double *f; };
    void forces(int n, struct body *b) {
      for (int i = 0; i < n; i++)
        for (int k = 0; k < 3; k++) {
          b[i].f[k] = 0;
          for (int j = 0; j < n; j++) b[i].f[k] += b[i].m * b[j].m * b[j].more.charge * (b[j].x[k] - b[i].x[k]);
          b[i].f[k] *= *b[i].more.tag;
        }
    }"""
    body = "{m: f64, x: f64[3], more: {charge: f32, tag: i32[]*}, out f: f64[3]*}"
    forces = je.kernel(source, "forces", f"n: i32, b: {body}[n]", lang="c")
    noise = np.random.default_rng(n)
    b = {
        "m": jnp.asarray(noise.normal(size=n)),
        "x": jnp.asarray(noise.normal(size=(n, 3))),
        "more": {"charge": jnp.ones(n, jnp.float32) * 2, "tag": jnp.arange(n, dtype=jnp.int32)},
    }
    away = b["x"][None, :, :] - b["x"][:, None, :]
    wanted = jnp.einsum("i,j,ijk->ik", b["m"], b["m"] * 2, away) * np.arange(n)[:, None]
    np.testing.assert_allclose(forces(b)["f"], wanted, rtol=1e-12, atol=1e-12)
    assert je.check_grads(jax.jit(lambda m, x: forces({**b, "m": m, "x": x})), (b["m"], b["x"])).ok


@pytest.mark.parametrize(("n", "m"), [(1, 3), (20, 2)])
def test_rows_behind_pointers(n: int, m: int) -> None:
    source = """void matvec(int n, int m, double **A, const double *x, double *y, double ***deep) {
      for (int i = 0; i < n; i++) { y[i] = deep[0][1][i]; for (int j = 0; j < m; j++) y[i] += A[i][j] * x[j] * x[j]; }
    }"""
    signature = "n: i32, m: i32, A: f64[n][m], x: f64[m], out y: f64[n], deep: f64[k][2][n]"
    matvec = je.kernel(source, "matvec", signature, lang="c")
    noise = np.random.default_rng(n)
    A, x, deep = (jnp.asarray(noise.normal(size=s)) for s in ((n, m), (m,), (2, 2, n)))
    np.testing.assert_allclose(matvec(A, x, deep), A @ x**2 + deep[0, 1], rtol=1e-12)
    assert je.check_grads(matvec, (A, x, deep), modes=("rev",)).ok
    batch = jnp.stack([A, 2 * A])
    np.testing.assert_allclose(jax.vmap(matvec, (0, None, None))(batch, x, deep)[1], 2 * A @ x**2 + deep[0, 1])


def test_callbacks_texts_null_and_status() -> None:
    source = """
    #include <string.h>
    static double square(double x) { return x * x; }
    double apply(double (*f)(double), double x, const char *mode, double *unused, int *info) {
      if (x > 100) *info = 7;
      if (unused) return 0;
      return strcmp(mode, "twice") ? f(x) : f(f(x));
    }"""
    signature = 'f: fn(square), x: f64, mode: "twice", unused: null, info: status[] -> f64'
    f = je.kernel(source, "apply", signature, lang="c")
    assert f(3.0) == 81
    assert je.check_grads(f, (3.0,), order=2).ok
    with pytest.raises(jax.errors.JaxRuntimeError, match="7"):
        f(101.0)
    with pytest.raises(je.SignatureError, match="no function `cube`"):
        je.kernel(source, "apply", signature.replace("square", "cube"), lang="c")


def test_constants() -> None:
    source = "void f(int n, const double *x, int k, double *y) { for (int i = 0; i < n; i++) y[i] = k * x[i]; }"
    f = je.kernel(source, "f", "n: i32, x: f64[n], k: i32, out y: f64[n]", lang="c", n=2, k=5)
    np.testing.assert_array_equal(f(jnp.arange(2.0)), [0, 5])
    assert f == je.kernel(source, "f", "n: i32 = 2, x: f64[2], k: i32 = 5, out y: f64[2]", lang="c")
    assert f == je.kernel(source, "f", "n: i32, x: f64[n], k: i32, out y: f64[n]", lang="c", n=np.int64(2), k=5)
    with pytest.raises(je.ArgumentError, match="`x`"):
        f(jnp.arange(3.0))
    with pytest.raises(je.SignatureError, match="no `m`"):
        je.kernel(source, "f", "n: i32, x: f64[n], k: i32, out y: f64[n]", lang="c", m=2)
    with pytest.raises(je.ArgumentError, match="flags="):
        je.kernel(source, "f", "n: i32, x: f64[n], k: i32, out y: f64[n]", lang="c", flag=("-O3",))


def test_members_of_arrays_of_structures_may_be_constants() -> None:
    source = """struct s { double v; int n; };
    double f(int c, const struct s *p) { double e = 0; for (int i = 0; i < c; i++) e += p[i].v * p[i].n; return e; }"""
    f = je.kernel(source, "f", "c: i32, p: {v: f64, n: i32 = 3}[c] -> f64", lang="c")
    assert f({"v": jnp.arange(4.0)}) == 18
    with pytest.raises(je.SignatureError, match="`c` cannot be solved"):
        je.kernel(source, "f", "c: i32, p: {v: null, n: i32 = 3}[c] -> f64", lang="c")


def test_a_size_that_no_input_has() -> None:
    source = (
        "void linspace(double a, double b, int n, double *x) { for (int i = 0; i < n; i++) x[i] = a + (b-a)*i/(n-1); }"
    )
    f = je.kernel(source, "linspace", "a: f64, b: f64, n: i32, out x: f64[n]", lang="c", n=5)
    np.testing.assert_allclose(f(0.0, 2.0), np.linspace(0, 2, 5))


def test_dimensions_in_structures() -> None:
    source = """struct vec { int n; double *x; };
    double dot(struct vec a, const struct vec *b) {
      double s = 0;
      for (int i = 0; i < a.n && i < b->n; i++) s += a.x[i] * b->x[i];
      return s;
    }"""
    dot = je.kernel(source, "dot", "a: {n: i32, x: f64[n]*}, b: {n: i32, x: f64[n]*}* -> f64", lang="c")
    a, b = jnp.arange(4.0), jnp.arange(3.0)
    assert dot({"x": a}, {"x": b}) == 5
    np.testing.assert_array_equal(jax.grad(lambda a: dot(a, {"x": b}))({"x": a})["x"], [0, 1, 2, 0])
    with pytest.raises(je.ArgumentError, match="unexpected member `n`"):
        dot({"x": a, "n": 4}, {"x": b})


@pytest.mark.parametrize(
    ("declared", "cause"),
    [
        ("{k: f64, mass: f64[n]*, id: i32}*", "one more member"),
        ("{mass: f64[n]*, k: f64, id: i32, at: {x: f64, y: f64}, w: f32[3]}*", "member 1"),
        ("{k: f64, mass: f64[n]*, id: i32, at: {x: f64, y: f64}, w: f64[3]}*", "member 5"),
        ("{k: f64, mass: f32[n]*, id: i32, at: {x: f64, y: f64}, w: f32[3]}*", "member 2"),
        ("{k: f64, mass: f64[n]*, id: i32, at: {y: f64, x: f64}, w: f32[3]}*", "another order"),
        ("{k: f64, mass: f64[n]*, id: i32, at: {x: f64, y: f64}, w: f32[3], z: f64}*", "no member 6"),
        ("{k: f64, mass: f64[n]*, id: i32, at: {x: f64, y: f64}, w: f32[3]}", "`{...}*`"),
        ("{out k: f64, mass: f64[n]*, id: i32, at: {x: f64, y: f64}, w: f32[3]}*", "where it cannot write"),
    ],
)
def test_another_structure_is_refused_with_both_sides(declared: str, cause: str) -> None:
    with pytest.raises(je.SignatureError) as raised:
        je.kernel(SPRINGS, "energy", f"n: i32, p: {declared}, out force: f64[n] -> f64", lang="c")
    text = str(raised.value)
    assert cause in text
    assert "spring" in text


@pytest.mark.parametrize(("start", "access"), [("const double", "*x"), ("double *", "x[0][0]")])
def test_a_type_behind_many_names_is_looked_at(start: str, access: str) -> None:
    names = f"typedef {start} t0;\n" + "".join(f"typedef t{i} t{i + 1};\n" for i in range(40))
    with pytest.raises(je.SignatureError, match="in the source parameter 1"):
        je.kernel(
            f"{names}void f(t40 *x, double *y) {{ *y = {access}; }}", "f", "out x: f64[1], out y: f64[1]", lang="c"
        )


@pytest.mark.parametrize(
    ("value", "cause"),
    [
        (1.0, "is a structure"),
        ({"k": 1.0}, "lacks `mass`, `id`, `at`, `w`"),
        ({**spring(), "kk": 1.0}, "unexpected member `kk`"),
        ({**spring(), "k": jnp.ones(2)}, "`p.k` must be a scalar"),
        ({**spring(), "w": jnp.ones(4, jnp.float32)}, "`p.w`"),
    ],
)
def test_other_arguments(value: Any, cause: str) -> None:
    with pytest.raises(je.ArgumentError, match=cause):
        springs()(value)


def test_without_debug_information_the_text_lays_out() -> None:
    ir = """define double @f(ptr %p) {
      %x = getelementptr i8, ptr %p, i64 8
      %a = load double, ptr %x
      ret double %a
    }"""
    f = je.kernel(ir, "f", "p: {tag: i8, a: f64}* -> f64", lang="llvm")
    assert f({"tag": 1, "a": 2.5}) == 2.5


def test_unions_and_bit_fields() -> None:
    source = """struct rec { unsigned n : 3, scale : 5; union { double x; long i; } is; double w; };
    double f(const struct rec *p) { return (p->n ? p->is.x : (double)p->is.i) * p->w * p->scale; }"""
    number = je.kernel(source, "f", "p: {n_scale: u8, is_: f64, w: f64}* -> f64", lang="c")
    integer = je.kernel(source, "f", "p: {n_scale: u32, is_: i64, w: f64}* -> f64", lang="c")
    assert je.suggest_signature(source, "f", lang="c").startswith(str(number.signature))
    w, bits, whole = jnp.asarray(2.0), np.asarray(8 * 5 + 1, np.uint8), np.asarray(8 * 5, np.uint32)
    assert jax.value_and_grad(lambda w: number({"n_scale": bits, "is_": 3.0, "w": w}))(w) == (30, 15)
    assert jax.value_and_grad(lambda w: integer({"n_scale": whole, "is_": np.asarray(3), "w": w}))(w) == (30, 15)


@pytest.mark.parametrize("debug", [(), ("-g0",)])
@pytest.mark.parametrize("size", ["", "1"])
def test_arrays_of_any_size_at_the_end(size: str, debug: tuple[str, ...]) -> None:
    source = f"""struct series {{ int n; float w; double x[{size}]; }};
    double energy(struct series *p) {{
      double e = 0;
      for (int i = 0; i < p->n; i++) {{ e += p->w * p->x[i] * p->x[i]; p->x[i] = 2 * e; }}
      return e;
    }}"""
    energy = je.kernel(source, "energy", "p: {n: i32, w: f32, inout x: f64[n]}* -> f64", lang="c", flags=debug)
    series = {"w": jnp.float32(1.5), "x": jnp.arange(1.0, 6.0)}
    result, p = energy(series)
    np.testing.assert_allclose(result, 82.5)
    np.testing.assert_allclose(p["x"], 3 * np.cumsum(np.arange(1.0, 6.0) ** 2))
    je.check_grads(energy, (series,))
    with pytest.raises(je.SignatureError, match="its size is a number"):
        je.kernel(source, "energy", "p: {x: f64[n], n: i32}* -> f64", lang="c")


def test_packed_structures_lie_as_the_source_says() -> None:
    source = """struct __attribute__((packed)) rec { char tag; double a; short s; float b; };
    double f(const struct rec *p, int n) {
      double t = 0;
      for (int i = 0; i < n; i++) t += p[i].a * p[i].b * p[i].s;
      return t;
    }"""
    f = je.kernel(source, "f", "p: {tag: i8, a: f64, s: i16, b: f32}[n], n: i32 -> f64", lang="c")
    n = 12
    p = {"tag": np.ones(n, np.int8), "a": np.arange(n) * 1.0, "s": np.full(n, 3, np.int16), "b": np.ones(n, np.float32)}
    assert f(p) == 3 * 66
    np.testing.assert_array_equal(jax.grad(lambda a: f({**p, "a": a}))(p["a"]), np.full(n, 3.0))


def test_structures_lie_where_their_vectors_may() -> None:
    """Vectors are loaded from places that are multiples of their size; so many structures lie on the heap."""
    source = """typedef double four __attribute__((vector_size(32)));
    struct rec { double a; struct { four x; } in[1]; };
    void f(int n, struct rec *p) { for (int i = 0; i < n; i++) p[i].in[0].x *= p[i].in[0].x * p[i].a; }"""
    f = je.kernel(source, "f", "n: i32, p: {a: f64, in_: {inout x: f64[4]}[1]}[n]", lang="c")
    a, x = jnp.arange(300.0), jnp.arange(1200.0).reshape(300, 1, 4)
    made = jax.jit(lambda a, x: f({"a": a, "in_": {"x": x}})["in_"]["x"])
    np.testing.assert_array_equal(made(a, x), a[:, None, None] * x**2)
    np.testing.assert_array_equal(jax.grad(lambda a: made(a, x).sum())(a), (x**2).sum((1, 2)))


@pytest.mark.parametrize("size", ["", "int more[4];"])
def test_objects_of_cpp_by_value(size: str) -> None:
    """What copies or destroys itself is passed by address, however small."""
    source = f"""struct held {{ double x; int n; {size} ~held() {{}} }};
    extern "C" double f(held a, double k) {{ return a.x * a.n * k; }}
    extern "C" held g(double x) {{ held h{{}}; h.x = x * x; return h; }}"""
    held = "{x: f64, n: i32" + (", more: i32[4]}" if size else "}")
    f, g = (
        je.kernel(source, "f", f"a: {held}, k: f64 -> f64", lang="c++"),
        je.kernel(source, "g", f"x: f64 -> {held}", lang="c++"),
    )
    more = {"more": np.zeros(4, np.int32)} if size else {}
    assert f({"x": 1.5, "n": 3, **more}, 2.0) == 9
    assert jax.grad(lambda x: f({"x": g(x)["x"], "n": 3, **more}, 2.0))(1.5) == 18


def test_derived_types_of_fortran() -> None:
    need("flang-22")
    source = """
    module bodies
      type body
        real(8) :: mass
        integer :: id
        real(8) :: x(3)
      end type
    contains
      real(8) function inertia(b, axis)
        class(body), intent(in) :: b
        character(len=*), intent(in) :: axis
        inertia = merge(b%x(1), b%x(2), axis == "x")
      end function
      subroutine kick(b, others, n, e)
        type(body), intent(inout) :: b
        integer, intent(in) :: n
        type(body), intent(in) :: others(n)
        real(8), intent(out) :: e
        integer :: i
        e = 0
        do i = 1, n
          b%x = b%x + others(i)%mass * (others(i)%x - b%x)
          e = e + b%mass * sum(b%x**2) * others(i)%id
        end do
      end subroutine
    end module"""
    body = "{mass: f64, id: i32, x: f64[3]}"
    signature = f"inout b: {body}*, others: {body}[n], n: i32[], out e: f64[]"
    kick = je.kernel(source, "bodies::kick", signature, lang="fortran", order="F")
    b = {"mass": 2.0, "id": 1, "x": jnp.arange(3.0)}
    others = {"mass": jnp.arange(2.0), "id": jnp.asarray([2, 3], jnp.int32), "x": jnp.ones((3, 2)) * jnp.arange(2)}
    moved, e = kick(b, others)
    np.testing.assert_allclose(moved["x"], np.ones(3))
    np.testing.assert_allclose(e, 2 * 5 * 2 + 2 * 3 * 3)
    flat = lambda m, x, y: kick({**b, "x": x}, {**others, "mass": m, "x": y})  # noqa: E731
    assert je.check_grads(jax.jit(flat), (jnp.asarray([0.3, 0.7]), jnp.arange(3.0), others["x"])).ok
    inertia = je.kernel(source, "bodies::inertia", f'b: {body}*, axis: "y" -> f64', lang="fortran")
    np.testing.assert_allclose(inertia(b), 1.0)


def test_derived_types_of_fortran_own_memory() -> None:
    """Members that are allocatable, in types inside of others too, and pointers."""
    need("flang-22")
    source = """
    module meshes
      type part
        real(8), allocatable :: load(:)
        real(8) :: scale
      end type
      type mesh
        real(8), allocatable :: v(:,:)
        type(part) :: parts(2)
        real(8), pointer :: seen(:)
        real(8), allocatable :: spare(:)
        integer :: steps
      end type
    contains
      subroutine advance(m, x)
        type(mesh), intent(inout) :: m
        real(8), intent(in) :: x(:)
        if (.not. allocated(m%spare)) allocate(m%spare(3))
        m%v = m%v**2*m%steps
        deallocate(m%parts(1)%load)
        allocate(m%parts(1)%load(2))
        m%parts(1)%load = m%parts(2)%load*m%parts(2)%scale
        m%seen = m%seen*x(2) + m%v(1, 2)
        if (x(1) < 0) deallocate(m%v)
      end subroutine
      subroutine total(ms, e)
        type(mesh), intent(in) :: ms(:)
        real(8), intent(out) :: e
        integer :: i
        e = 0
        do i = 1, size(ms)
          e = e + sum(ms(i)%v**2)*dot_product(ms(i)%parts(1)%load, ms(i)%parts(2)%load)*ms(i)%steps + ms(i)%seen(i)
        end do
      end subroutine
    end module"""
    part = "{load: f64[2]*, scale: f64}"
    members = f"v: f64[q,q]*, parts: {part}[2], seen: f64[s]*, spare: null, steps: i32"
    suggested = je.suggest_signature(source, "meshes::advance", lang="fortran")
    assert "v: f64[?,?]*, parts: {load: f64[?]*, scale: f64}[2], inout seen: f64[?]*" in suggested
    advance = je.kernel(source, "meshes::advance", f"inout m: {{{members}}}*, x: f64[2]", lang="fortran", order="F")
    v, load, seen, x = (
        jnp.array([[1.0, 2], [3, 4]]),
        jnp.array([[2.0, 5], [3, 7]]),
        jnp.arange(3.0),
        jnp.array([0.5, 2]),
    )
    m = {"v": v, "parts": {"load": load, "scale": jnp.array([0.3, 4])}, "seen": seen, "steps": np.int32(3)}
    moved = advance(m, x)
    np.testing.assert_allclose(moved["v"], 3 * v**2)
    np.testing.assert_allclose(moved["parts"]["load"].T, [[20.0, 28], [5, 7]])
    np.testing.assert_allclose(moved["seen"], seen * 2 + 12)

    def flat(v: jax.Array, load: jax.Array, x: jax.Array) -> jax.Array:
        moved = advance({**m, "v": v, "parts": {**m["parts"], "load": load}}, x)
        return (moved["v"] ** 2).sum() * (moved["parts"]["load"] ** 2).sum() * moved["seen"].sum()

    assert je.check_grads(jax.jit(flat), (v, load, x)).ok
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"left `m\.v` without memory"):
        advance(m, -x)
    total = je.kernel(source, "meshes::total", f"ms: {{{members}}}[n], out e: f64[]", lang="fortran", order="F")
    many = {
        "v": jnp.stack([v, v + 1], -1),
        "parts": {"load": jnp.stack([load, load], -1), "scale": jnp.ones((2, 2))},
        "seen": jnp.stack([seen, seen], -1),
        "steps": jnp.array([1, 2], jnp.int32),
    }
    dot = 2 * 5 + 3 * 7
    np.testing.assert_allclose(total(many), (v**2).sum() * dot + 2 * dot * ((v + 1) ** 2).sum() + 1)
    np.testing.assert_allclose(jax.grad(total, allow_int=True)(many)["v"][..., 1], 4 * dot * (v + 1))
    with pytest.raises(je.SignatureError, match=r"member 1 is `v: f64\[q\]\*`"):
        je.kernel(
            source, "meshes::total", f"ms: {{{members.replace('[q,q]', '[q]')}}}[n], out e: f64[]", lang="fortran"
        )


def test_objects_of_classes_of_fortran() -> None:
    """Procedures that are bound to a type are kernels; what they call is chosen by the type of the object."""
    need("flang-22")
    source = """
module springs
  implicit none
  type :: spring
    real(8) :: k = 1
    real(8) :: rest(2) = 0
    integer, private :: calls = 0
  contains
    procedure :: energy
    procedure :: law
    procedure :: stretch
  end type
  type, abstract :: part
    real(8) :: k = 1
  contains
    procedure :: twice
    procedure(read), deferred :: once
  end type
  abstract interface
    real(8) function read(me)
      import part
      class(part), intent(in) :: me
    end function
  end interface
  type, extends(spring) :: hard
    real(8) :: cubic = 0
  contains
    procedure :: law => hard_law
  end type
contains
  function law(me, d) result(e)
    class(spring), intent(in) :: me
    real(8), intent(in) :: d
    real(8) :: e
    e = 0.5d0*me%k*d**2
  end function
  function hard_law(me, d) result(e)
    class(hard), intent(in) :: me
    real(8), intent(in) :: d
    real(8) :: e
    e = me%spring%law(d) + me%cubic*d**4
  end function
  function energy(me, x) result(e)
    class(spring), intent(in) :: me
    real(8), intent(in) :: x(:)
    real(8) :: e
    integer :: i
    e = 0
    do i = 1, size(x)
      e = e + me%law(x(i) - me%rest(1))
    end do
  end function
  subroutine stretch(self, by)
    class(spring), intent(inout) :: self
    real(8), intent(in) :: by
    self%rest = self%rest + by*self%k
    self%calls = self%calls + 1
  end subroutine
  real(8) function twice(me)
    class(part), intent(in) :: me
    twice = 2*me%once()
  end function
  subroutine swap(a, b)
    class(spring), pointer :: a
    class(spring), allocatable :: b
    a%k = b%k
  end subroutine
end module
"""
    members = "{k: f64, rest: f64[2], calls: i32}"
    text = je.suggest_signature(source, "springs::stretch", lang="fortran")
    assert text.partition("  #")[0] == f"inout self: {members}*, by: f64[]"
    energy = je.kernel(source, "springs::energy", f"me: {members}*, x: f64[n] -> f64", lang="fortran")
    stretch = je.kernel(source, "springs::stretch", text, lang="fortran")
    law = je.kernel(
        source, "springs::hard_law", f"me: {{spring: {members}, cubic: f64}}*, d: f64[] -> f64", lang="fortran"
    )
    me = {"k": np.float64(2.0), "rest": np.array([0.5, 0.25]), "calls": np.int32(0)}
    x = np.array([1.0, 2.0])
    with jax.enable_x64(True):
        np.testing.assert_allclose(energy(me, x), 2.5)
        np.testing.assert_allclose(jax.grad(energy, argnums=1)(me, x), [1.0, 3.0])
        je.check_grads(energy, (me, x))
        stretched = stretch(me, 0.5)
        np.testing.assert_allclose(stretched["rest"], [1.5, 1.25])
        assert stretched["calls"] == 1
        np.testing.assert_allclose(jax.jvp(lambda by: stretch(me, by)["rest"], (0.5,), (1.0,))[1], [2.0, 2.0])
        np.testing.assert_allclose(law({"spring": me, "cubic": 0.5}, 2.0), 12.0)
        np.testing.assert_allclose(jax.grad(law, argnums=1)({"spring": me, "cubic": 0.5}, 2.0), 20.0)
    with pytest.raises(je.SignatureError, match="`class`"):
        je.kernel(source, "springs::swap", f"inout a: {members}*, b: {members}*", lang="fortran")
    with pytest.raises(je.SignatureError, match="`class`"):
        je.kernel(source, "springs::twice", "me: {k: f64}* -> f64", lang="fortran")


def test_numbers_that_are_an_object_of_a_class_of_fortran() -> None:
    """They are passed as such an object is."""
    need("flang-22")
    source = """
module m
  type :: spring
    real(8) :: k, rest
  contains
    procedure :: law
    procedure :: twice
  end type
contains
  real(8) function law(me)
    class(spring), intent(in) :: me
    law = me%k*me%rest
  end function
  real(8) function twice(me)
    class(spring), intent(in) :: me
    twice = 2*me%law()
  end function
end module
"""
    twice = je.kernel(source, "m::twice", "me: f64[2] -> f64", lang="fortran")
    with jax.enable_x64(True):
        np.testing.assert_allclose(jax.grad(twice)(np.array([2.0, 3.0])), [6.0, 4.0])
    with pytest.raises(je.SignatureError, match="`me: f64`"):
        je.kernel(source, "m::twice", "me: f64 -> f64", lang="fortran")(1.0)


def test_derived_types_of_fortran_end_where_the_next_may_begin() -> None:
    """Flang says where their last members end."""
    need("flang-22")
    source = """
    real(8) function f(p, n)
      type inner
        sequence
        real(8) :: a
        integer :: b
      end type
      type outer
        sequence
        integer :: c
        type(inner) :: q(2), one
        integer(2) :: k(3)
      end type
      integer, intent(in) :: n
      type(outer), intent(in) :: p(n)
      integer :: i
      f = 0
      do i = 1, n
        f = f + p(i)%c * p(i)%q(1)%a * p(i)%q(2)%a * p(i)%q(2)%b + p(i)%one%a * p(i)%k(3)
      end do
    end function"""
    inner = "{a: f64, b: i32}"
    signature = f"p: {{c: i32, q: {inner}[2], one: {inner}, k: i16[3]}}[n], n: i32[] -> f64"
    assert f"q: {inner}[2], one: {inner}, k: i16[3]" in je.suggest_signature(source, lang="fortran")
    f = je.kernel(source, "f", signature, lang="fortran")
    c, b, k, two = np.arange(1, 4, dtype=np.int32), np.array([[1, 2]] * 3, np.int32), np.full((3, 3), 5, np.int16), 2.0

    def of(a: jax.Array, one: jax.Array) -> jax.Array:
        return f({"c": c, "q": {"a": a, "b": b}, "one": {"a": one, "b": c}, "k": k})

    a, one = jnp.arange(6.0).reshape(3, 2), jnp.arange(3.0)
    assert of(a, one) == (c * a[:, 0] * a[:, 1] * two + 5 * one).sum()
    of_a, of_one = jax.grad(of, (0, 1))(a, one)
    np.testing.assert_array_equal(of_a, two * c[:, None] * a[:, ::-1])
    np.testing.assert_array_equal(of_one, np.full(3, 5.0))


@pytest.mark.parametrize(
    ("declared", "p", "cause"),
    [
        ("character(len=3), intent(in)", "i8[n]", "an array of texts of 3 characters"),
        ("type(t), allocatable, intent(in)", "{a: f64, k: i32}[n]", "an array of derived type that is allocatable"),
        ("type(t), pointer, intent(in)", "{a: f64, k: i32}[n]", "an array of derived type that is allocatable"),
    ],
)
def test_arrays_that_only_fortran_makes_are_refused(declared: str, p: str, cause: str) -> None:
    """They would be read behind their end, or at no address."""
    need("flang-22")
    source = f"""
    module m
      type t
        real(8) :: a
        integer :: k
      end type
    contains
      subroutine f(p, n)
        {declared} :: p(:)
        integer, intent(out) :: n
        n = size(p)
      end subroutine
    end module"""
    with pytest.raises(je.SignatureError, match=cause):
        je.kernel(source, "m::f", f"p: {p}, out k: i32[]", lang="fortran")


def test_texts_of_fortran_have_their_lengths() -> None:
    need("flang-22")
    source = """
    real(8) function power(first, x, second)
      character(len=*), intent(in) :: first, second
      real(8), intent(in) :: x
      power = merge(x**2, x, first == "square") * len(second)
    end function"""
    power = je.kernel(source, "power", 'first: "square", x: f64[], second: "abc" -> f64', lang="fortran")
    assert jax.value_and_grad(power)(2.0) == (12, 12)


def test_a_pointer_that_the_kernel_exchanges_is_an_error() -> None:
    source = """struct grid { double *old, *new; };
    void step(struct grid *g, int n, int swap) {
      for (int i = 0; i < n; i++) g->new[i] = 2 * g->old[i];
      if (swap) { double *t = g->old; g->old = g->new; g->new = t; }
    }"""
    step = je.kernel(source, "step", "g: {old: f64[n]*, out new: f64[n]*}*, n: i32, swap: i32", lang="c")
    x = jnp.arange(3.0)
    np.testing.assert_array_equal(step({"old": x}, 0)["new"], 2 * x)
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"`g\.new` another pointer"):
        step({"old": x}, 1)


def test_rows_that_the_kernel_exchanges_are_an_error() -> None:
    source = """void pivot(int n, double **A, int swap) {
      for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) A[i][j] *= 2;
      if (swap) { double *t = A[0]; A[0] = A[1]; A[1] = t; }
    }"""
    pivot = je.kernel(source, "pivot", "n: i32, inout A: f64[n][n], swap: i32", lang="c")
    A = jnp.arange(4.0).reshape(2, 2)
    np.testing.assert_array_equal(pivot(A, 0), 2 * A)
    assert je.check_grads(lambda A: pivot(A, 0), (A,)).ok
    with pytest.raises(jax.errors.JaxRuntimeError, match="`A` another pointer"):
        pivot(A, 1)


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_assumed_shape(order: Any) -> None:
    need("flang-22")
    source = """
    module grids
      type cell
        real(8) :: u
        integer :: id
      end type
    contains
      subroutine smooth(x, y, cells, w)
        real(8), intent(in) :: x(:, :), w(:)
        real(8), intent(out) :: y(:)
        type(cell), intent(inout) :: cells(:)
        integer :: j
        do j = 1, size(x, 2)
          y(j) = sum(x(:, j)**2 * w) * cells(j)%u
        end do
        cells%u = cells%u * cells%id + sum(x)
      end subroutine
    end module"""
    shape = "n,m" if order == "F" else "m,n"
    signature = f"x: f64[{shape}], out y: f64[m], inout cells: {{u: f64, in id: i32}}[m], w: f64[n]"
    # Descriptors are passed whatever the flags say of debug information.
    smooth = je.kernel(source, "grids::smooth", signature, lang="fortran", order=order, flags=("-g0",))
    noise = np.random.default_rng(0)
    x, w = noise.normal(size=(3, 4)), noise.normal(size=3)
    cells = {"u": noise.normal(size=4), "id": np.arange(4, dtype=np.int32)}
    given = x if order == "F" else x.T
    y, after = smooth(given, cells, w)
    np.testing.assert_allclose(y, (x**2 * w[:, None]).sum(0) * cells["u"])
    np.testing.assert_allclose(after["u"], cells["u"] * cells["id"] + x.sum())
    assert je.check_grads(smooth, (given, cells, w)).ok


def test_inputs_that_are_overwritten() -> None:
    source = """#include <stdlib.h>
    void sort(int n, double *x, double *k, double *y) {
      for (int i = 1; i < n; i++) for (int j = i; j > 0 && x[j-1] > x[j]; j--) {
        double t = x[j]; x[j] = x[j-1]; x[j-1] = t; }
      *k *= 2;
      for (int i = 0; i < n; i++) y[i] = *k * x[i] * i;
    }"""
    f = je.kernel(source, "sort", "n: i32, x: f64[n], k: f64[], out y: f64[n]", lang="c")
    x = jnp.asarray([3.0, 1.0, 2.0])
    np.testing.assert_array_equal(f(x, 0.5), [0, 2, 6])
    np.testing.assert_array_equal(x, [3, 1, 2])
    assert je.check_grads(f, (x, 0.5)).ok
    report = f.inspect(x, 0.5)
    assert report.copied == ("x", "k")
    assert "overwritten: the kernel gets a copy" in str(report)
