"""What makes gradients fast, held by their structure: never by time."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from jax_enzyme import frontends
from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.loops import Loops
from jax_enzyme.codegen import derived
from jax_enzyme.codegen.object import entry_module
from jax_enzyme.codegen.optimise import optimised_text
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import Augmented, Pullback, Vjp
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.values import ConstantFloat
from jax_enzyme.options import Options
from tests.kernels.corpus import case
from tests.support.engine import agree, native, pulled, three_way
from tests.support.through_engine import Specialised, specialise


def specialised(name: str, **arguments: Any) -> Specialised:
    """A kernel of the corpus at other sizes."""
    row = case(name)
    inputs: Mapping[str, Any] = row.arguments | arguments
    return Specialised.of(dataclasses.replace(row, inputs=lambda r: inputs))


def gradient(name: str, **arguments: Any) -> Module:
    """The module of its gradient in one function."""
    kernel = specialised(name, **arguments)
    return derived.derived(kernel.program, kernel.signature, kernel.binding, (kernel.vjp,)).module


def calls(module: Module, name: str) -> list[I.CallBase]:
    found = (i for f in module.functions.values() for i in f.instructions())
    return [i for i in found if isinstance(i, I.CallBase) and i.callee.name == name]


def test_the_tape_is_not_cleared() -> None:
    """Five sweeps over 20 x 20 keep more than the stack holds, and each buffer's shadow is given: nothing is zeroed."""
    module = gradient("gauss_seidel", sweeps=5, f=np.ones((20, 20)), u=np.ones((20, 20)))
    assert len(calls(module, "malloc")) == 1
    assert not calls(module, "calloc")


def test_a_test_in_two_places_ends_a_loop() -> None:
    """Of the factorisation's loop over rows LLVM copies the end into both arms of what is before it. Its length is
    known all the same, and with it that no later iteration overwrites the rows that are read: none is kept."""
    n = 40
    kernel = specialised("cholesky", a=np.eye(n))
    assert kernel.splits(kernel.vjp)
    tape = [b for b in kernel.build(Augmented(kernel.vjp.wanted, kernel.vjp.seeded)).buffers if b.role == "tape"]
    assert sum(b.nbytes for b in tape) < 3 * 8 * n * n


LEAPS = """void leaps(int n, int steps, const double *a, double *u, double *v) {
    double w[60];
    for (int k = 0; k < steps; k++) {
        for (int i = 1; i < n; i++) w[i] = a[i] * v[i] * (k + 1);
        for (int i = 1; i < n; i++) u[i] += w[i] - w[i - 1 + (i == 1)];
        for (int i = 1; i < n; i++) v[i] -= a[i] * u[i];
        %s
    }
}"""


@pytest.mark.parametrize(
    ("more", "wanted", "is_linear"),
    [
        ("", ("u", "v"), True),
        ("", ("a", "u"), False),
        ("v[0] = v[0] * v[0];", ("u", "v"), False),
        ("if (u[0] > 3) break;", ("u", "v"), False),
    ],
    ids=["nothing", "factors", "a square", "a test"],
)
def test_what_nobody_reads_is_not_computed(more: str, wanted: tuple[str, ...], is_linear: bool) -> None:
    """The gradient of what is linear has nothing of the kernel in it, though each of its stores is loaded again."""
    signature = "n: i32, steps: i32, a: f64[n], inout u: f64[n], inout v: f64[n]"
    kernel = native(LEAPS % more, "leaps", signature, {"n": 60, "steps": 9}, "c")
    step = Vjp(tuple(name in wanted for name in "auv"), (False, True, True))
    module = derived.derived(kernel.program, kernel.signature, kernel.binding, (step,)).module
    forward = module.functions["je.primal.forward"].instructions()
    assert any(isinstance(i, I.Store) for i in forward) is not is_linear
    agree(three_way(kernel, [np.linspace(0.1, 0.4, 60), np.linspace(-0.3, 0.5, 60), np.linspace(0.2, 0.9, 60)]))


PAIRS = """double pairs(int n, double *x) {
    double s = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) s += x[i] * x[i] * x[j];
    return s; }"""


def test_what_iteration_numbers_decide_is_not_kept() -> None:
    """Whether the inner loop ran follows from the outer one's number, though control went through a loop since."""
    x = np.random.default_rng(3).normal(size=40)
    text = "n: i32, x: f64[n] -> f64"
    kernel = specialise(frontends.load(PAIRS, "pairs", lang="c"), text, {"x": x})
    tape = [b for b in kernel.build(Augmented(kernel.vjp.wanted, kernel.vjp.seeded)).buffers if b.role == "tape"]
    assert not sum(b.nbytes for b in tape)
    (found,) = pulled(native(PAIRS, "pairs", text, {"n": x.size}), (kernel.vjp,), [x], [np.array(1.0)], {})
    before, after = np.cumsum(x) - x, np.cumsum((x * x)[::-1])[::-1] - x * x
    np.testing.assert_allclose(found, 2 * x * before + after, rtol=1e-12)


def test_quotients_by_one_number_share_its_reciprocal() -> None:
    """Of five divisions beside the two of the function, one is left."""
    source = "double f(double x, double y, double z) { return (x / z) * (y / z); }"
    text, point = "x: f64, y: f64, z: f64 -> f64", {"x": 0.7, "y": 1.3, "z": 0.9}
    agree(three_way(native(source, "f", text, {}), [*point.values()]))
    kernel = specialise(frontends.load(source, "f", lang="c"), text, point)
    step = Pullback(kernel.vjp.wanted, kernel.vjp.seeded)
    function = derived.derived(kernel.program, kernel.signature, kernel.binding, (step,), kernel.options)
    assert optimised_text(entry_module(function)).count("fdiv") <= 3


@pytest.mark.parametrize(("formula", "divides"), [("z * z * z", 0), ("(z - 2) * (z - 2)", 1), ("sin(z)", 1)])
def test_a_factor_is_divided_by_way_of_the_reciprocal(formula: str, divides: int) -> None:
    """What is computed again is multiplied, if it is nothing but a factor of cotangents: a sum or a sine is of
    the number that the function had."""
    source = f"#include <math.h>\nvoid f(int n, double d, const double *x, double *y) {{ \
        for (int i = 0; i < n; i++) {{ double z = x[i] / d; y[i] = {formula}; }} }}"
    text, x = "n: i32, d: f64, x: f64[n], out y: f64[n]", np.linspace(0.1, 0.9, 20)
    agree(three_way(native(source, "f", text, {"n": 20}), [0.7, x]))
    made = specialise(frontends.load(source, "f", lang="c"), text, {"d": 0.7, "x": x}, Options(tape_cost=64.0))
    step = Pullback(made.vjp.wanted, made.vjp.seeded)
    module = derived.derived(made.program, made.signature, made.binding, (step,), made.options).module
    found = [i for f in module.functions.values() for i in f.instructions() if i.opcode == "fdiv"]
    assert sum(not isinstance(i.operands[0], ConstantFloat) for i in found) == divides
    if not divides:
        tiny = native(source, "f", text, {"n": 20})
        _, by_x = pulled(tiny, (made.vjp,), [1e-310, 1e-310 * x], [np.full(20, 1e-300)], {})
        np.testing.assert_allclose(by_x, 3e10 * x**2, rtol=1e-10)


def test_a_limiter_keeps_no_arm_and_no_larger_number() -> None:
    """Short arms are choices, and the larger of two numbers is computed again: kept are two bits and the tests."""
    source = """#include <math.h>
void limited(int n, const double *u, double *y) {
    for (int i = 1; i < n - 1; i++) {
        double a = u[i] - u[i - 1], b = u[i + 1] - u[i], s = a * b <= 0 ? 0 : fabs(a) < fabs(b) ? a : b;
        double v = u[i] + s;
        y[i] = fmax(v * v, 0.3 * v) * fmax(v * v, 0.3 * v);
    }
}"""
    text, u = "n: i32, u: f64[n], inout y: f64[n]", np.sin(np.arange(40) * 0.7) * np.linspace(1, 2, 40)
    agree(three_way(native(source, "limited", text, {"n": 40}), [u, u]))
    made = specialise(frontends.load(source, "limited", lang="c"), text, {"u": u, "y": u})
    step = Augmented(made.vjp.wanted, made.vjp.seeded)
    module = derived.derived(made.program, made.signature, made.binding, (step,)).module
    branches = [i for i in module.functions["je.primal.forward"].instructions() if isinstance(i, I.CondBranch)]
    assert len(branches) == 1
    assert sum(b.nbytes for b in made.build(step).buffers if b.role == "tape") <= 40 * (8 + 2)


@pytest.mark.parametrize("numerator", [1, -1])
def test_of_a_reciprocal_nothing_is_divided_again(numerator: int) -> None:
    source = f"void inverse(int n, double *x, double *y) {{ for (int i = 0; i < n; i++) y[i] = {numerator} / x[i]; }}"
    text = "n: i32, x: f64[n], out y: f64[n]"
    x = np.array([0.3, -2.0, 1e-200, np.inf, -0.0])
    made = specialise(frontends.load(source, "inverse", lang="c"), text, {"x": x})
    module = derived.derived(made.program, made.signature, made.binding, (made.vjp,)).module
    assert sum(i.opcode == "fdiv" for f in module.functions.values() for i in f.instructions()) <= 2
    kernel = native(source, "inverse", text, {"n": x.size})
    with np.errstate(divide="ignore", over="ignore"):
        exact = -numerator / x / x
    (adjoint,) = pulled(kernel, (made.vjp,), [x], [np.ones(5)], {})
    np.testing.assert_allclose(adjoint, exact, rtol=1e-15)
    tangent = kernel.run((made.jvp,), [x, np.ones(5)])[-1]
    np.testing.assert_allclose(tangent, exact, rtol=1e-15)


TURNED = """#include <math.h>
void turned(int n, const double *angle, double *x, double *y, double *z) {
    for (int i = 0; i < n; i++) {
        double t = x[i] > 0 ? angle[i] * x[i] : angle[i], c = COS(t), s = SIN(t), u = x[i];
        x[i] = c * u - s * y[i];
        y[i] = s * u + c * y[i];
        z[i] = pow(y[i] * y[i] + 1, x[i]) + log(y[i] * y[i] + 1);
    }
}"""


@pytest.mark.parametrize(("sine", "cosine"), [("sin", "cos"), ("sinh", "cosh")])
def test_what_a_kernel_calls_serves_derivatives(sine: str, cosine: str) -> None:
    """The partial of a sine is the cosine beside it, and that of a power has a logarithm that is there."""
    source = TURNED.replace("COS", cosine).replace("SIN", sine)
    text = "n: i32, angle: f64[n], inout x: f64[n], inout y: f64[n], out z: f64[n]"
    r = np.random.default_rng(4)
    inputs = {name: r.uniform(0.2, 1.2, 12) for name in ("angle", "x", "y")}
    made = specialise(frontends.load(source, "turned", lang="c"), text, inputs)
    module = derived.derived(made.program, made.signature, made.binding, (made.vjp,)).module
    reverse = module.functions["je.primal.reverse"].instructions()
    called = [i.callee.name for i in reverse if isinstance(i, I.CallBase)]
    assert not [name for name in called if any(word in name for word in (sine, cosine))]
    agree(three_way(native(source, "turned", text, {"n": 12}, "c"), list(inputs.values())))


def test_a_cosine_of_something_else_serves_no_sine() -> None:
    """Nor does one that is computed under another condition."""
    source = """#include <math.h>
    void apart(int n, const double *a, const double *b, double *y) {
        for (int i = 0; i < n; i++) {
            double s = sin(a[i]) * cos(b[i]);
            if (b[i] > 0.5) s *= cos(a[i]);
            y[i] = s * s;
        }
    }"""
    values = [np.linspace(0.1, 2, 20), np.linspace(1, 0, 20)]
    agree(three_way(native(source, "apart", "n: i32, a: f64[n], b: f64[n], out y: f64[n]", {"n": 20}, "c"), values))


@pytest.mark.parametrize(
    ("j", "gathers"), [("j", False), ("at[j]", True)], ids=["in the buffer in any case", "where data say"]
)
def test_what_an_arm_loads_is_loaded_before_the_branch(j: str, gathers: bool) -> None:
    """Of pairs within a radius, where it is in the buffer in any case: nothing is gathered, as it would be by masks."""
    source = f"""
    void pairs(const int *at, const double *x, double *f) {{
        for (int i = 0; i < 40; i++)
            for (int j = i + 1; j < 40; j++) {{
                double dx = x[3*i] - x[3*{j}], dy = x[3*i+1] - x[3*{j}+1], r2 = dx * dx + dy * dy;
                if (r2 < 0.5) {{
                    double w = 1 - 2 * r2;
                    f[3*i] += w * dx; f[3*i+1] += w * dy; f[3*{j}] -= w * dx; f[3*{j}+1] -= w * dy;
                }}
            }}
    }}"""
    kernel = native(source, "pairs", "at: i32[40], x: f64[120], inout f: f64[120]", {}, "c")
    x = np.cos(np.arange(120.0) ** 1.5)
    agree(three_way(kernel, [np.arange(40, dtype=np.int32), x, x]))
    step = Vjp((False, True, True), (False, False, True))
    gradient = derived.derived(kernel.program, kernel.signature, kernel.binding, (step,)).module
    reverse = next(f for f in gradient.functions.values() if f.name.endswith(".reverse"))
    (inner,) = (loop for loop in Loops.of(reverse) if not loop.children)
    (branch,) = (b.terminator for b in inner.blocks if isinstance(b.terminator, I.Switch))
    arms = [edge.terminator.targets[0] for edge in branch.targets]
    (arm,) = (arm for arm in arms if len(Cfg(reverse).preds[arm]) == 1)
    loads = [i for i in arm.instructions if isinstance(i, I.Load) and T.is_float(i.type)]
    assert any(not isinstance(I.base_of(load.operands[0]), I.Alloca) for load in loads) == gathers


def test_what_was_there_in_front_of_a_loop_is_loaded_there() -> None:
    """A speed of the loop around is not loaded in each arm of the loop inside, nor a number that is kept of it."""
    source = """
    void flow(int *near, double *speed, double *w, double *y) {
        for (int i = 0; i < 40; i++) {
            double v = speed[i], s = 0;
            for (int k = 0; k < 12; k++) {
                int j = near[12 * i + k];
                if (j >= 0) s += w[j] / v;
            }
            y[i] = s;
            speed[i] = s * s;
        }
    }"""
    kernel = native(source, "flow", "near: i32[40,12], inout speed: f64[40], w: f64[40], out y: f64[40]", {}, "c")
    near = np.random.default_rng(2).integers(-20, 40, (40, 12), np.int32)
    agree(three_way(kernel, [near, np.linspace(1, 2, 40), np.linspace(0.3, 0.9, 40)]))
    step = Vjp((False, True, True, False), (False, True, False, True))
    gradient = derived.derived(kernel.program, kernel.signature, kernel.binding, (step,)).module
    reverse = next(f for f in gradient.functions.values() if f.name.endswith(".reverse"))
    (inner,) = (loop for loop in Loops.of(reverse) if loop.parent is not None)
    body = [i for block in inner.blocks for i in block.instructions]
    divisors = [i.operands[1] for i in body if i.opcode == "fdiv"]
    assert divisors and not any(isinstance(divisor, I.Load) and divisor in body for divisor in divisors)


@pytest.mark.parametrize("does", ["s += v * v * x[j]", "y[j] += cos(v) * x[j]"], ids=["short", "long"])
def test_what_is_in_the_buffer_in_one_arm_alone_is_loaded_there(does: str) -> None:
    source = f"""
    #include <math.h>
    double k(const double *x, double *y) {{
        double s = 0;
        for (long j = 0; j < 512; j++)
            if (x[j] > 0.5 && j < 9) {{ double v = x[1L << j]; {does}; }}
        return s;
    }}"""
    kernel = native(source, "k", "x: f64[512], inout y: f64[512] -> f64", {}, "c")
    x = np.cos(np.arange(512.0))
    agree(three_way(kernel, [x, x]))
    step = Vjp((True, True, False), (False, True, True))
    gradient = derived.derived(kernel.program, kernel.signature, kernel.binding, (step,)).module
    for loops in (Loops.of(function) for function in gradient.functions.values() if function.blocks):
        for loop in loops:
            always = [b for b in loop.blocks if all(loops.dominators.dominates(b, a) for a in loop.latches)]
            assert not any(i.opcode == "shl" for b in always for i in b.instructions)


@pytest.mark.parametrize(("chosen", "guards"), [("s += d", False), ("s += d > 0.3 ? d / (d - 0.2) : 0", True)])
def test_what_only_decides_is_not_guarded(chosen: str, guards: bool) -> None:
    """A range check is a choice between answers, and `d / (d - 0.2)` one that may be infinite where it is dropped."""
    source = f"""
    double k(const double *p, const double *y) {{
        double s = 0;
        for (int i = 0; i < 40; i++) {{
            double x = p[0] + p[1] * i;
            int a = (int)x;
            if (x < 0 || a >= 19) continue;
            double d = (x - a) * y[a] * y[a + 1];
            {chosen};
        }}
        return s;
    }}"""
    kernel = native(source, "k", "p: f64[2], y: f64[20] -> f64", {}, "c")
    agree(three_way(kernel, [np.array([-0.35, 0.613]), np.cos(np.arange(20.0))]))
    step = Vjp((True, True, False), (False, False, True))
    module = derived.derived(kernel.program, kernel.signature, kernel.binding, (step,)).module
    compares = [i for f in module.functions.values() for i in f.instructions() if isinstance(i, I.Compare)]
    assert any(i.predicate == "uno" for i in compares) == guards
