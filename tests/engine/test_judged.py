"""The two cases that the approach is judged by: the gradient of optimised code is good code."""

from __future__ import annotations

import re

import numpy as np

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.dominators import Dominators
from jax_enzyme.analysis.loops import Loops
from jax_enzyme.codegen import derived
from jax_enzyme.codegen.canonical import canonical
from jax_enzyme.codegen.object import entry_module
from jax_enzyme.codegen.optimise import optimised_text
from jax_enzyme.ir.arrays import Augmented, Pullback
from tests.support.engine import Native, agree, native, three_way

RELU3 = """
#include <math.h>
void relu3(int n, const double *x, double *y) { for (int i = 0; i < n; i++) y[i] = x[i] > 0 ? pow(x[i], 3) : 0; }
"""
NORM = """
#include <math.h>
static double mag(int n, const double *a) {
    double s = 0;
    for (int i = 0; i < n; i++) s += a[i] * a[i];
    return sqrt(s);
}
void norm(double *out, const double *in, int n) { for (int i = 0; i < n; i++) out[i] = in[i] / mag(n, in); }
"""
MASKS = ((True, False), (False, True))


def _text(kernel: Native, *steps: object) -> str:
    function = derived.derived(kernel.program, kernel.signature, kernel.binding, steps, kernel.options)
    return optimised_text(entry_module(function))


def test_relu3_has_no_pow_no_tape_and_vectorises() -> None:
    kernel = native(RELU3, "relu3", "n: i32, x: f64[n], out y: f64[n]", {"n": 1024})
    layout = derived.layout(kernel.program, kernel.signature, kernel.binding, (Augmented(*MASKS),), kernel.options)
    assert [b.nbytes for b in layout if b.role == "tape"] == [0]
    text = _text(kernel, Pullback(*MASKS))
    assert not re.search(r"call.*pow", text)
    assert re.search(r"fmul.* <\d+ x double>", text)
    agree(three_way(kernel, [np.random.default_rng(0).uniform(-2, 2, 1024)]))


def test_norm_has_no_nested_loops() -> None:
    kernel = native(NORM, "norm", "out y: f64[n], x: f64[n], n: i32", {"n": 512})
    masks = ((False, True), (True, False))
    for step in (Augmented(*masks), Pullback(*masks)):
        function = derived.derived(kernel.program, kernel.signature, kernel.binding, (step,), kernel.options)
        root = canonical(function).module.functions[function.symbol]
        cfg = Cfg(root)
        assert max((loop.depth for loop in Loops(cfg, Dominators(cfg))), default=0) == 1
    agree(three_way(kernel, [np.random.default_rng(7).standard_normal(512)]))
