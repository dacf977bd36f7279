"""What D's compiler calls of its run-time library, for memory that nobody frees."""

from __future__ import annotations

import subprocess
from pathlib import Path

import jax
import numpy as np

import jax_enzyme as je
from tests.support.tools import need

_PROGRAM = """
class Shape { abstract double area(double r); }
class Disc : Shape { override double area(double r) { return 3.0 * r * r; } }
class Box : Shape { double k; this(double k) { this.k = k; } override double area(double r) { return k * r; } }
double delegate(double) scaled(double x) { return (double y) => x * y * y; }
double twice(double delegate(double) g, double v) { return g(v) + g(v * v); }
extern (C) double energy(double x, int n) {
    Shape[2] shapes = [new Disc, new Box(x)];
    double total = twice(scaled(x), x);
    foreach (shape; shapes) total += shape.area(x);
    double[] powers = new double[n];
    foreach (i, ref p; powers) p = x * (i + 1);
    powers ~= x * x;
    foreach (p; powers) total += p * p;
    return total;
}
"""


def test_closures_objects_and_arrays(tmp_path: Path) -> None:
    need("ldc2")
    (tmp_path / "energy.d").write_text(_PROGRAM)
    command = ["ldc2", "-O1", "-release", "--output-bc", f"-of={tmp_path / 'energy.bc'}", str(tmp_path / "energy.d")]
    subprocess.run(command, check=True)
    energy = je.kernel(tmp_path / "energy.bc", "energy", "x: f64, n: i32 -> f64", n=3)
    x = 1.3
    np.testing.assert_allclose(energy(x), x**3 + x**5 + 4 * x**2 + 14 * x**2 + x**4, rtol=1e-14)
    slope = 3 * x**2 + 5 * x**4 + 36 * x + 4 * x**3
    np.testing.assert_allclose(jax.grad(energy)(x), slope, rtol=1e-14)
    np.testing.assert_allclose(jax.jvp(energy, (x,), (1.0,))[1], slope, rtol=1e-14)
