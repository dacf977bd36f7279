"""Real-world shapes of kernels in four languages, each with inputs at which it is smooth, or fails as it says."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Kernel:
    """`fails` is the status that the kernel ends with, kind and number; numbers from 256 on are messages."""

    name: str
    lang: str
    source: str
    x: tuple[float, ...] = (1.0, 0.2, 0.5, 0.3)
    signature: str = "n: i32, x: f64[n] -> f64"
    symbol: str = "f"
    fails: tuple[int, int] | None = None
    before: tuple[object, ...] = ()
    says: str = ""
    dims: dict[str, int] = field(default_factory=lambda: {"n": 4})

    @property
    def inputs(self) -> list[object]:
        return [*self.before, np.array(self.x, np.float32 if "f32[" in self.signature else np.float64)]


_ASSERTING = """
#include <assert.h>
#include <stdlib.h>
static double leaf(double x) { if (x > 100) exit(7); return x * x * x; }
static double integral(double a, double b, int depth) {
    assert(b > a);
    double m = 0.5 * (a + b);
    return depth == 0 ? (b - a) * leaf(m) : integral(a, m, depth - 1) + integral(m, b, depth - 1);
}
double f(int n, const double *x) {
    double s = 0;
    for (int i = 0; i + 1 < n; i++) s += integral(x[i], x[i + 1], 3);
    return s;
}
"""
_VECTOR = """
#include <vector>
#include <stdexcept>
extern "C" double f(int n, const double *x) {
    std::vector<double> v(n);
    for (int i = 0; i < n; i++) {
        if (x[i] < 0) throw std::runtime_error("negative mass");
        v.at(i) = x[i] * x[i];
    }
    double s = 0;
    for (double a : v) s += a * v[0];
    return s;
}
"""
_CAUGHT = """
#include <stdexcept>
#include <vector>
struct Bad : std::runtime_error { double v; Bad(double v) : std::runtime_error("bad"), v(v) {} };
struct Worse : Bad { Worse(double v) : Bad(2 * v) {} };
static double g(double x) {
    if (x > 3) throw Worse(x);
    if (x > 2) throw Bad(x);
    if (x < -1) throw std::out_of_range("below");
    if (x < -0.5) throw 3;
    return x * x;
}
static double h(double x) {
    std::vector<double> w(3, x);
    try { return g(w[1]) + w[2]; } catch (const std::logic_error &) { return -x; }
}
extern "C" double f(int n, const double *x) {
    double s = 0;
    for (int i = 0; i < n; i++) {
        try { s += h(x[i]); } catch (Bad &e) { s += 10 * e.v; } catch (int k) { s += k * x[i] * x[0]; }
    }
    return s;
}
"""
_RETHROWN = """
#include <stdexcept>
static double g(double x) { if (x > 3) throw std::runtime_error("big"); return x * x; }
static double h(double x) { try { return g(x); } catch (...) { if (x > 10) throw; return 2 * x; } }
extern "C" double f(int n, const double *x) { double s = 0; for (int i = 0; i < n; i++) s += h(x[i]); return s; }
"""
_HANDLERS = """
struct A { double v; };
static double deep(double x, int depth) {
    if (depth == 0) throw A{x * x};
    try { return deep(1.1 * x, depth - 1); } catch (A &a) {
        if (depth % 2) throw A{a.v * x + 1};
        return a.v + x;
    }
}
extern "C" double f(int n, const double *x) {
    double s = 0;
    for (int i = 0; i < n; i++)
        try { s += deep(x[i], i); } catch (const A &a) { s += 2 * a.v; }
    return s;
}
"""
_RETHROWN_OUTER = """
static double ended;
struct A {
    double v;
    ~A() { ended += 0.25 * v; }
};
struct B { double v; };
static double again(double x) { try { throw; } catch (A &a) { a.v += 1; return a.v * x; } }
extern "C" double f(int n, const double *x) {
    double s = 0;
    for (int i = 0; i < n; i++) {
        ended = 0;
        try {
            try { throw A{x[i] * x[i]}; } catch (A &a) {
                try { if (i % 2) throw B{3 * x[i]}; } catch (B &b) { a.v += b.v; }
                s += again(x[i]);
                if (i < 3) throw;
                s += ended;
            }
        } catch (B &b) { s += 100 * b.v; } catch (A &a) { s += a.v * x[i] + ended; }
        s += ended;
    }
    return s;
}
"""
_EXCEPTION_OBJECTS = """
#include <exception>
static double ends;
struct Copied {
    double v;
    Copied(double v) : v(v) {}
    Copied(const Copied &other) : v(1.5 * other.v) { ends += 1; }
    ~Copied() { ends += 0.25 * v; }
};
struct Plain { double v; };
struct Guard {
    double &r, by;
    ~Guard() { r = r * by + std::uncaught_exceptions(); }
};
extern "C" double f(int n, const double *x) {
    Plain pool[4];
    double s = 0;
    for (int i = 0; i < n; i++) {
        ends = 0;
        try {
            Guard guard{s, x[i]};
            if (i == 0) throw &(pool[i] = Plain{x[i] * x[i]});
            if (i == 1) { Copied c(x[i] * x[i]); throw c; }
            if (i == 2) throw "negative";
            s += x[i];
        } catch (Plain *p) { s += p->v * x[i]; } catch (Copied c) { s += c.v; } catch (const char *text) {
            s += text[3] == 'a' ? 7 * x[i] : 0;
        }
        s += ends;
    }
    return s;
}
"""
_CAUGHT_AS_BASES = """
struct Left { double l; virtual double half() const { return l / 2; } virtual ~Left() {} };
struct Right { double r; virtual double twice() const { return 2 * r; } };
struct Both : Left, Right { double twice() const override { return r * l; } };
struct Shared { double s; virtual ~Shared() {} };
struct Part : virtual Shared { double p; };
struct Hidden : private Part { double h; Hidden(double x) : h(x) { s = x; } };
struct Again : Left { };
struct Twofold : Both, Again { double t; };
extern "C" double f(int n, const double *x) {
    double s = 0;
    for (int i = 0; i < 6; i++) {
        double v = x[i % n] + i;
        try {
            if (i == 0) { Both b; b.l = v; b.r = v * v; throw b; }
            if (i == 1) { Part p; p.s = v * v; p.p = v; throw p; }
            if (i == 2) throw Hidden(v);
            if (i == 3) { Twofold t; t.r = v; t.t = v * v; throw t; }
            if (i == 4) { static Both kept; kept.l = v; kept.r = 3 * v; throw &kept; }
            Again a; a.l = v * v; throw a;
        } catch (const Left &l) { s += l.half(); }
        catch (const Shared &p) { s += 3 * p.s; }
        catch (const Hidden &h) { s += h.h; }
        catch (const Twofold &t) { s += t.t; }
        catch (const Right *r) { s += r->twice(); }
        catch (...) { s += 1000; }
    }
    if (x[0] > 50) {
        static Part part;
        try { throw &part; } catch (Shared *p) { s += p->s; } catch (...) { s += 3000; }
    }
    try { Both b; b.l = x[0]; b.r = x[1]; throw b; } catch (Right &r) { s += r.twice(); } catch (...) { s += 2000; }
    return s;
}
"""
_RUST = """
#[no_mangle] pub extern "C" fn f(n: i32, x: *const f64) -> f64 {
    let v = unsafe { std::slice::from_raw_parts(x, n as usize) };
    let mut w: Vec<f64> = Vec::new();
    for i in 0..n as usize { assert!(v[i] > -5.0, "too small"); w.push(v[i] * v[n as usize - 1 - i]); }
    let large = w.iter().position(|&a| a > 1e3);
    if v[0] > 1e3 { w[large.unwrap()] = 1.0; }
    w.iter().sum()
}
"""
_RUST_STRUCTS = """
#[derive(Clone)] struct P { a: f64, b: f64, k: i32, tag: u8 }
#[no_mangle] pub extern "C" fn f(n: i32, x: *const f64) -> f64 {
    let v = unsafe { std::slice::from_raw_parts(x, n as usize) };
    let mut w = v.to_vec();
    w.swap(0, 2);
    let t = std::mem::replace(&mut w[1], 2.0);
    w.sort_by(|a, b| a.partial_cmp(b).unwrap());
    let mut ps: Vec<P> = w.iter().enumerate().map(|(i, &a)| P { a, b: a * a + t, k: i as i32, tag: 7 }).collect();
    ps.reverse();
    let q = ps.clone();
    ps.swap(0, 3);
    ps.iter().zip(q.iter()).map(|(p, q)| p.a * q.b * (p.k as f64 + 1.0 + q.tag as f64)).sum()
}
"""
_FORTRAN = """
subroutine f(n, x, y)
  integer, intent(in) :: n
  real(8), intent(in) :: x(n)
  real(8), intent(out) :: y(n)
  real(8) :: w(n), v(n, n), big(100, 100)
  integer :: i
  do i = 1, n
    w(i) = x(i)**2
  end do
  v = spread(w, 1, n)
  big = 2.d0
  big(1:n, 1) = x
  y = matmul(v, w) + big(1:n, 1) * sum(big)
  if (any(x > 1d3)) stop 3
end subroutine
"""
_POINTERS = """
#include <math.h>
#include <stdlib.h>
typedef double (*fn)(double);
static double square(double x) { return x * x; }
static double cube(double x) { return x * x * x; }
static double wave(double x) { if (x > 50) abort(); return sin(x); }
static const fn table[3] = {square, cube, wave};
typedef struct { fn g; double *w; int n; } context;
static double apply(context *c, int i) { return c->g(c->w[i]); }
double f(int n, int k, const double *x) {
    fn fs[2] = {square, wave};
    context c = {k % 2 ? cube : wave, malloc(n * sizeof(double)), n};
    double s = 0;
    for (int i = 0; i < n; i++) c.w[i] = 1.5 * x[i];
    for (int i = 0; i < n; i++) s += table[(i + k) % 3](x[i]) + fs[(i * k) % 2](x[i]) + apply(&c, i);
    free(c.w);
    return s;
}
"""
_VIRTUAL = """
#include <cmath>
#include <memory>
#include <stdexcept>
#include <vector>
struct Potential {
    double a;
    Potential(double a) : a(a) {}
    virtual ~Potential() {}
    virtual double energy(double r) const = 0;
    virtual double force(double r) const { return a * energy(r); }
};
struct Spring : Potential {
    double b;
    Spring(double a, double b) : Potential(a), b(b) {}
    double energy(double r) const override { if (r > 100) throw std::runtime_error("too far"); return a * b * r * r; }
};
struct Decay : Potential {
    Decay(double a) : Potential(a) {}
    double energy(double r) const override { return std::exp(-a * r); }
    double force(double r) const override { return a + energy(r); }
};
extern "C" double f(int n, int k, const double *x) {
    std::vector<std::unique_ptr<Potential>> v;
    for (int i = 0; i < n; i++) {
        if ((i + k) % 2) v.push_back(std::make_unique<Spring>(x[i], 2.));
        else v.push_back(std::make_unique<Decay>(x[i]));
    }
    double s = 0;
    for (int i = 0; i < n; i++) s += v[i]->energy(x[(i + 1) % n]) * v[i]->force(.5);
    return s;
}
"""
_TREE = """
#include <memory>
struct Node { virtual ~Node() {} virtual double eval(double x) const = 0; };
struct Const : Node { double v; Const(double v) : v(v) {} double eval(double) const override { return v; } };
struct Var : Node { double eval(double x) const override { return x; } };
struct Add : Node {
    std::unique_ptr<Node> a, b;
    Add(Node *a, Node *b) : a(a), b(b) {}
    double eval(double x) const override { return a->eval(x) + b->eval(x); }
};
struct Mul : Node {
    std::unique_ptr<Node> a, b;
    Mul(Node *a, Node *b) : a(a), b(b) {}
    double eval(double x) const override { return a->eval(x) * b->eval(x); }
};
extern "C" double f(int n, const double *x) {
    std::unique_ptr<Node> t(new Var);
    for (int i = 0; i < n; i++) {
        if (i % 2) t.reset(new Add(t.release(), new Const(x[i])));
        else t.reset(new Mul(t.release(), new Add(new Const(x[i]), new Var)));
    }
    return t->eval(x[0]) + t->eval(.5);
}
"""
_GROWING = """
#include <stdlib.h>
typedef struct { double *d; int n, cap; } vec;
static void push(vec *v, double x) {
    if (v->n == v->cap) { v->cap = v->cap ? 2 * v->cap : 2; v->d = realloc(v->d, v->cap * sizeof(double)); }
    v->d[v->n++] = x;
}
double f(int n, const double *x) {
    vec v = {0};
    for (int i = 0; i < 2 * n; i++) push(&v, x[i % n] * x[i / 2]);
    double s = 0;
    for (int i = 0; i < v.n; i++) s += v.d[i] * v.d[v.n - 1 - i];
    free(v.d);
    return s;
}
"""
_IRREDUCIBLE = """
#include <math.h>
double f(int n, const double *x) {
    int i = 0;
    double s = 0, t = 1;
    if (x[0] > 0.7) goto middle;
top:
    s += x[i] * t;
    t = t * 0.5 + x[i];
middle:
    t = sin(t + x[i]);
    i++;
    if (i < n) { if (x[i] > 0.4) goto middle; goto top; }
    return s + t;
}
"""
_BITS = """
#include <stdint.h>
#include <string.h>
typedef union { double d; uint64_t u; } bits;
double f(int n, const double *x) {
    double s = 0;
    for (int i = 0; i < n; i++) {
        bits a, b;
        a.d = x[i]; b.d = x[(i + 1) % n];
        a.u = (a.u & 0x7fffffffffffffffull) | (b.u & 0x8000000000000000ull);
        s += a.d * x[0];
        a.u ^= 0x8000000000000000ull;
        s += a.d * a.d * a.d;
        uint64_t raw = ((const uint64_t *)x)[i] & 0x7fffffffffffffffull;
        double y; memcpy(&y, &raw, 8);
        s += (int64_t)raw < 0 ? 0 : y * y * y;
    }
    return s;
}
"""
_SWAPPED_INTEGERS = """
#include <stdint.h>
#include <stdlib.h>
double f(int n, const double *x) {
    uint64_t *w = malloc(8 * n);
    for (int i = 0; i < n; i++) w[i] = ((const uint64_t *)x)[n - 1 - i];
    uint64_t t = w[0]; w[0] = w[2]; w[2] = t;
    double *d = (double *)w, s = 0;
    for (int i = 0; i < n; i++) s += d[i] * d[i] * (i + 1);
    free(w);
    return s;
}
"""
_PAIRS = """
#include <stdlib.h>
typedef struct { float x, y; } pair;
float f(int n, const float *x) {
    pair *p = malloc(n * sizeof(pair));
    for (int i = 0; i < n; i++) { p[i].x = x[i]; p[i].y = x[(i + 1) % n] * x[i]; }
    for (int i = 0; i < n / 2; i++) { pair t = p[i]; p[i] = p[n - 1 - i]; p[n - 1 - i] = t; }
    float s = 0;
    for (int i = 0; i < n; i++) s += (i + 1) * p[i].x * p[i].y;
    free(p);
    return s;
}
"""
_MIXED = """
#include <stdlib.h>
typedef struct { double v; int id; double *p; float w; long k; } item;
static void swap(item *a, item *b) { item t = *a; *a = *b; *b = t; }
double f(int n, const double *x) {
    item *p = malloc(n * sizeof(item));
    double *b = malloc(8 * n), s = 0;
    for (int i = 0; i < n; i++) {
        b[i] = x[i] * x[i];
        p[i].v = x[i]; p[i].id = n - 1 - i; p[i].p = b + i; p[i].w = 2.f * i; p[i].k = i;
    }
    for (int i = 0; i < n / 2; i++) swap(p + i, p + n - 1 - i);
    for (int i = 0; i < n; i++) s += (i + 1) * p[i].v * p[p[i].id].v * *p[i].p * p[i].w * p[i].k;
    free(p);
    free(b);
    return s;
}
"""
_VARIABLE_LENGTH = """
double f(int n, const double *x) {
    double s = 0;
    for (int k = 1; k <= n; k++) {
        double w[k];
        for (int i = 0; i < k; i++) { w[i] = x[i] * x[k - 1]; if (x[i] < -1) return s; }
        if (x[k - 1] > .9) continue;
        double v[k + 1];
        v[0] = 1;
        for (int i = 0; i < k; i++) v[i + 1] = v[i] * w[i];
        s += v[k];
    }
    return s;
}
"""
_HUGE = """
double f(int n, const double *x) {
    double w[2000000], s = 0;
    for (int i = 0; i < 2000000; i++) w[i] = x[i % n] * i * 1e-6;
    for (int i = 0; i < 2000000; i++) s += w[i] * w[1999999 - i] * 1e-6;
    return s;
}
"""
_MASKED = """
define double @f(i32 %n, ptr %x) {
  %tmp = alloca <4 x double>, align 32
  %t = load double, ptr %x
  %c = fcmp ogt double %t, 0.0
  %m = insertelement <4 x i1> <i1 1, i1 0, i1 1, i1 0>, i1 %c, i64 1
  %v = call <4 x double> @llvm.masked.load.v4f64.p0(ptr align 8 %x, <4 x i1> %m, <4 x double> splat (double 2.0))
  %q = fmul <4 x double> %v, %v
  store <4 x double> splat (double 1.0), ptr %tmp
  call void @llvm.masked.store.v4f64.p0(<4 x double> %q, ptr align 8 %tmp, <4 x i1> %m)
  %ps = getelementptr double, ptr %x, <4 x i64> <i64 3, i64 1, i64 2, i64 0>
  %g = call <4 x double> @llvm.masked.gather.v4f64.v4p0(<4 x ptr> align 8 %ps, <4 x i1> <i1 1, i1 1, i1 0, i1 1>,
                                                        <4 x double> %q)
  %w = load <4 x double>, ptr %tmp
  %e = fmul <4 x double> %w, %g
  %pt = getelementptr double, ptr %tmp, <4 x i64> <i64 3, i64 1, i64 2, i64 0>
  call void @llvm.masked.scatter.v4f64.v4p0(<4 x double> %e, <4 x ptr> align 8 %pt, <4 x i1> %m)
  %r = load <4 x double>, ptr %tmp
  %s = call double @llvm.vector.reduce.fadd.v4f64(double 0.0, <4 x double> %r)
  ret double %s
}
declare <4 x double> @llvm.masked.load.v4f64.p0(ptr, <4 x i1>, <4 x double>)
declare void @llvm.masked.store.v4f64.p0(<4 x double>, ptr, <4 x i1>)
declare <4 x double> @llvm.masked.gather.v4f64.v4p0(<4 x ptr>, <4 x i1>, <4 x double>)
declare void @llvm.masked.scatter.v4f64.v4p0(<4 x double>, <4 x ptr>, <4 x i1>)
declare double @llvm.vector.reduce.fadd.v4f64(double, <4 x double>)
"""
_K = "n: i32, k: i32, x: f64[n] -> f64"
_SUBROUTINE = "n: i32[], x: f64[n], out y: f64[n]"
_TWO = (np.int32(2),)
_MIXED_SIGNS = (1.0, -0.2, 0.5, 0.3)

KERNELS = (
    Kernel("assert", "c", _ASSERTING, (1.0, 2.0, 3.0, 4.5)),
    Kernel("assert_fails", "c", _ASSERTING, (1.0, 2.0, 1.5, 3.0), fails=(3, 256), says="assertion `b > a` failed"),
    Kernel("exits", "c", _ASSERTING, (1.0, 2.0, 300.0, 301.0), fails=(3, 7)),
    Kernel("vector", "c++", _VECTOR),
    Kernel("vector_throws", "c++", _VECTOR, (1.0, 2.0, -7.0, 3.0), fails=(4, 256), says="negative mass (kernel.cpp:7"),
    Kernel("caught_none", "c++", _CAUGHT),
    Kernel("caught", "c++", _CAUGHT, (1.0, 2.5, 3.5, -0.7)),
    Kernel("caught_in_callee", "c++", _CAUGHT, (1.0, 2.5, 3.5, -3.0)),
    Kernel("rethrown_not", "c++", _RETHROWN, (1.0, 5.0, 0.5, 0.3)),
    Kernel("rethrown", "c++", _RETHROWN, (1.0, 50.0, 0.5, 0.3), fails=(4, 256)),
    Kernel("thrown_in_handlers", "c++", _HANDLERS),
    Kernel("caught_as_bases", "c++", _CAUGHT_AS_BASES),
    Kernel(
        "caught_by_nobody_knows_whom",
        "c++",
        _CAUGHT_AS_BASES,
        (51.0, 0.2, 0.5, 0.3),
        fails=(3, 256),
        says="takes it is not known",
    ),
    Kernel("objects_that_are_thrown", "c++", _EXCEPTION_OBJECTS),
    Kernel("rethrown_behind_another", "c++", _RETHROWN_OUTER),
    Kernel("rust", "rust", _RUST),
    Kernel("rust_panics", "rust", _RUST, (1.0, 2.0, -7.0, 3.0), fails=(4, 256), says="Rust panic: too small"),
    Kernel("rust_unwraps", "rust", _RUST, (2e3, 2.0, 7.0, 0.1), fails=(4, 256), says="Rust panic: unwrap failed"),
    Kernel("rust_structs", "rust", _RUST_STRUCTS, _MIXED_SIGNS),
    Kernel("fortran", "fortran", _FORTRAN, signature=_SUBROUTINE, symbol="f_"),
    Kernel(
        "fortran_stops", "fortran", _FORTRAN, (1e5, 1.0, 1.0, 1.0), signature=_SUBROUTINE, symbol="f_", fails=(3, 3)
    ),
    Kernel("pointers", "c", _POINTERS, signature=_K, before=_TWO),
    Kernel("pointers_abort", "c", _POINTERS, (90.0, 18.0, 45.0, 27.0), signature=_K, before=_TWO, fails=(3, 256)),
    Kernel("virtual", "c++", _VIRTUAL, signature=_K, before=_TWO),
    Kernel("virtual_throws", "c++", _VIRTUAL, (1e3, 2e2, 5e2, 3e2), signature=_K, before=_TWO, fails=(4, 256)),
    Kernel("tree", "c++", _TREE),
    Kernel("growing", "c", _GROWING),
    Kernel("irreducible", "c", _IRREDUCIBLE),
    Kernel("irreducible_other", "c", _IRREDUCIBLE, (0.6, -0.2, 0.1, 0.45)),
    Kernel("bits", "c", _BITS, _MIXED_SIGNS),
    Kernel("swapped_integers", "c", _SWAPPED_INTEGERS, _MIXED_SIGNS),
    Kernel("pairs", "c", _PAIRS, _MIXED_SIGNS, signature="n: i32, x: f32[n] -> f32"),
    Kernel("mixed", "c", _MIXED),
    Kernel("variable_length", "c", _VARIABLE_LENGTH, _MIXED_SIGNS),
    Kernel("variable_length_early", "c", _VARIABLE_LENGTH, (0.3, 0.2, -5.0, 3.0)),
    Kernel("huge", "c", _HUGE, _MIXED_SIGNS),
    Kernel("masked", "llvm", _MASKED),
    Kernel("masked_other", "llvm", _MASKED, (-1.0, 0.2, 0.5, 0.3)),
)
