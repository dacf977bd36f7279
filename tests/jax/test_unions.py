"""Unions and structures that are passed by value, and members without a name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jax_enzyme as je

SOURCE = """
typedef union { float e[3]; struct { float x, y, z; } axis; } triple;
typedef union { struct { double re, im; }; double d[2]; } number;
typedef union { float near; float far[4]; } reach;
struct shape { int kind; union { double radius; double box[3]; } of; };
struct body { int kind; union { double mass; long id; }; struct { double v, w; }; double k; };
struct pose { float q[4]; };
struct span { const double *from; int n; };

void turn(struct pose *p, triple rate, double scale, triple drift) {
  for (int i = 0; i < 3; i++) p->q[i] += scale * rate.e[i] * drift.axis.y + drift.e[i] * p->q[3];
}
triple cross(triple a, triple b) {
  triple c;
  c.axis.x = a.e[1] * b.axis.z - a.axis.z * b.e[1];
  c.axis.y = a.e[2] * b.axis.x - a.axis.x * b.e[2];
  c.e[2] = a.axis.x * b.e[1] - a.e[1] * b.axis.x;
  return c;
}
number product(number a, number b) {
  number c = {{a.re * b.d[0] - a.im * b.d[1], a.d[0] * b.im + a.d[1] * b.re}};
  return c;
}
double within(reach r, double x) { return r.near * x * x; }
double volume(const struct shape *s) {
  return s->kind ? s->of.box[0] * s->of.box[1] * s->of.box[2] : s->of.radius * s->of.radius;
}
double energy(const struct body *b) { return b->mass * b->v * b->v + b->w * b->k; }
void squares(struct span s, double *y) { for (int i = 0; i < s.n; i++) y[i] = s.from[i] * s.from[i]; }
"""
F = np.float32
THREE = np.array([0.5, -1.5, 2.0], F)
AXIS = {"x": F(0.5), "y": F(-1.5), "z": F(2.0)}


@pytest.mark.parametrize(
    ("symbol", "suggested", "signature", "args"),
    [
        (
            "turn",
            "inout p: {q: f32[4]}*, rate: {e: f32[3]}, scale: f64, drift: {e: f32[3]}",
            "inout p: {q: f32[4]}*, rate: {e: f32[3]}, scale: f64, drift: {x: f32, y: f32, z: f32}",
            ({"q": np.arange(4, dtype=F)}, {"e": THREE}, 0.3, AXIS),
        ),
        (
            "cross",
            "a: {e: f32[3]}, b: {e: f32[3]} -> {e: f32[3]}",
            "a: {axis: {x: f32, y: f32, z: f32}}, b: {e: f32[3]} -> {x: f32, y: f32, z: f32}",
            ({"axis": AXIS}, {"e": THREE[::-1].copy()}),
        ),
        (
            "product",
            "a: {re: f64, im: f64}, b: {re: f64, im: f64} -> {re: f64, im: f64}",
            "a: {d: f64[2]}, b: {re: f64, im: f64} -> {d: f64[2]}",
            ({"d": np.array([1.0, 2.0])}, {"re": 0.5, "im": -3.0}),
        ),
        ("within", "r: {far: f32[4]}, x: f64 -> f64", "r: {near: f32}, x: f64 -> f64", ({"near": F(2)}, 1.5)),
        (
            "volume",
            "s: {kind: i32, of: f64[3]}* -> f64",
            "s: {kind: i32, of: {radius: f64}}* -> f64",
            ({"kind": np.int32(0), "of": {"radius": 2.0}},),
        ),
        (
            "energy",
            "b: {kind: i32, mass: f64, v: f64, w: f64, k: f64}* -> f64",
            "b: {kind: i32, mass: f64, v: f64, w: f64, k: f64}* -> f64",
            ({"kind": np.int32(0), "mass": 2.0, "v": 3.0, "w": 0.5, "k": -1.0},),
        ),
        (
            "squares",
            "s: {from_: f64[s.n]*, n: i32}, out y: f64[s.n]",
            "s: {from_: f64[n]*, n: i32}, out y: f64[n]",
            ({"from_": np.arange(3.0)},),
        ),
    ],
)
def test_unions_by_value(symbol: str, suggested: str, signature: str, args: tuple[Any, ...]) -> None:
    assert je.suggest_signature(SOURCE, symbol, lang="c").partition("  #")[0] == suggested
    je.kernel(SOURCE, symbol, suggested, lang="c")
    je.check_grads(je.kernel(SOURCE, symbol, signature, lang="c"), args)


def test_values_of_unions() -> None:
    cross = je.kernel(SOURCE, "cross", "a: {e: f32[3]}, b: {e: f32[3]} -> {e: f32[3]}", lang="c")
    a, b = THREE, np.array([1, 2, 4], F)
    np.testing.assert_allclose(cross({"e": a}, {"e": b})["e"], np.cross(a, b))


@pytest.mark.parametrize(
    ("signature", "cause"),
    [
        ("r: {near: f64}, x: f64 -> f64", "`r` is another one in the source: none of the members of the union is that"),
        ("r: {far: f32[5]}, x: f64 -> f64", "none of the members of the union is that"),
        ("r: f32, x: f64 -> f64", "`r`, is a structure that is passed by value: `reach`"),
        ("r: f32[4], x: f64 -> f64", "`r`, is a structure that is passed by value: `reach`"),
    ],
)
def test_other_unions(signature: str, cause: str) -> None:
    with pytest.raises(je.SignatureError) as caught:
        je.kernel(SOURCE, "within", signature, lang="c")
    assert cause in str(caught.value)
