"""`kernel.on`: implementations of one function for several platforms, chosen when a program is lowered."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import cache

import jax
import numpy as np
import pytest
from jax import export

import jax_enzyme as je
from jax_enzyme.primitives import compat
from jax_enzyme.signature import parse
from jax_enzyme.signature.launch import Launch
from jax_enzyme.xla_ffi.registration import CPU_TARGET, CUDA_TARGET
from tests.jax.conftest import compiled, make
from tests.jax.kernels import EULER, POLY, SPIN, Example

C = "void f(int n, const double *x, double *y) { for (int i = 0; i < n; i++) y[i] = x[i] * x[i]; }"
CUDA = """
extern "C" __global__ void f(const double *x, double *y, long n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 3 * x[i] * x[i];
}
"""
X = np.arange(4.0)


@cache
def in_c(signature: str = "n: i32, x: f64[n], out y: f64[n]") -> je.Kernel:
    return je.kernel(C, "f", signature, lang="c")


@cache
def in_cuda() -> je.Kernel:
    return je.kernel(CUDA, "f", "x: f64[n], out y: f64[n], n: i64", lang="cuda", grid="(n+63)//64", block=64)


def test_the_platform_chooses() -> None:
    both = in_cuda().on("cpu", in_c())
    np.testing.assert_array_equal(in_cuda()(X), 3 * X * X)
    np.testing.assert_array_equal(both(X), X * X)
    np.testing.assert_array_equal(in_c().on("gpu", in_cuda())(X), X * X)
    np.testing.assert_array_equal(jax.jit(jax.grad(lambda x: both(x).sum()))(X), 2 * X)
    np.testing.assert_array_equal(jax.vmap(jax.hessian(lambda x: both(x).sum()))(X[None])[0], 2 * np.eye(4))


def test_it_is_a_value() -> None:
    both = in_cuda().on("cpu", in_c())
    assert both == in_cuda().on("cpu", in_c())
    assert hash(both) == hash(in_cuda().on("cpu", in_c()))
    assert both not in (in_cuda(), in_c(), in_c().on("cuda", in_cuda()))
    again = pickle.loads(pickle.dumps(both))
    assert again == both
    np.testing.assert_array_equal(again(X), X * X)
    assert repr(both) == "Kernel f(x) -> y [cuda, cuda; c, cpu]"
    assert repr(in_c().on("gpu", in_cuda())) == "Kernel f(x) -> y [c, cpu; cuda, cuda]"


def test_what_is_exported_carries_the_implementation() -> None:
    gradient = jax.jit(jax.grad(lambda x: in_cuda().on("cpu", in_c())(x).sum()))
    checks = [export.DisabledSafetyCheck.custom_call(CPU_TARGET)]
    stored = export.export(gradient, disabled_checks=checks)(X).serialize()
    np.testing.assert_array_equal(export.deserialize(stored).call(X), 2 * X)


def test_one_program_for_two_platforms() -> None:
    """Both implementations are in it, and the one of the platform runs."""
    gradient = jax.jit(jax.grad(lambda x: in_cuda().on("cpu", in_c())(x).sum()))
    checks = [export.DisabledSafetyCheck.custom_call(name) for name in (CPU_TARGET, CUDA_TARGET)]
    program = export.export(gradient, platforms=("cpu", "cuda"), disabled_checks=checks)(X)
    assert program.mlir_module().count(f"@{CPU_TARGET}") == program.mlir_module().count(f"@{CUDA_TARGET}") == 2
    np.testing.assert_array_equal(export.deserialize(program.serialize()).call(X), 2 * X)


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_a_platform_without_code(platform: str) -> None:
    traced = jax.jit(jax.grad(lambda x: in_c()(x).sum())).trace(X)
    with pytest.raises(je.LoweringError, match=f"`f` has no code for {platform}: it is written in c"):
        traced.lower(lowering_platforms=(platform,))
    assert traced.lower(lowering_platforms=("cpu",)).as_text().count(f"@{CPU_TARGET}") == 2


def test_the_checking_mode_is_refused_on_gpus() -> None:
    checked = replace(in_cuda(), options=je.Options(sanitize=True))
    for f in (checked, jax.grad(lambda x: checked(x).sum())):
        traced = jax.jit(f).trace(X)
        with pytest.raises(je.LoweringError, match="checks there are on CPUs only"):
            traced.lower(lowering_platforms=("cuda",))
        traced.lower(lowering_platforms=("cpu",))
        jax.jit(lambda x: checked.on("cuda", in_cuda())(x)).trace(X).lower(lowering_platforms=("cuda",))
    np.testing.assert_array_equal(checked(X), in_cuda()(X))


@pytest.mark.parametrize(
    ("signature", "words"),
    [
        ("n: i32, x: f32[n], out y: f64[n]", "`x: f64.n.` against `x: f32.n.`"),
        ("n: i32, x: f64[n], a: f64, out y: f64[n]", "against `a: f64`"),
        ("n: i32, x: f64[n]", "against|nothing comes out"),
        ("n: i32, x: f64[n], out y: f64[n] -> f64", "only one of the implementations has `out the return value"),
        ("m: i32, x: f64[m], out y: f64[m]", "against"),
    ],
)
def test_implementations_of_different_functions(signature: str, words: str) -> None:
    with pytest.raises(je.SignatureError, match=words):
        in_cuda().on("cpu", replace(in_c(), signature=parse(signature)))


def test_what_makes_no_sense() -> None:
    with pytest.raises(je.SignatureError, match="no platform 'tpu'"):
        in_c().on("tpu", in_cuda())
    with pytest.raises(je.SignatureError, match="has no code for cuda: it is written in c"):
        in_c().on("cuda", in_c())
    with pytest.raises(je.SignatureError, match="would run nowhere"):
        in_c().on("cpu", in_c())
    with pytest.raises(je.SignatureError, match="joins kernels, and this is a function"):
        in_c().on("cuda", test_it_is_a_value)  # type: ignore[arg-type]


@pytest.mark.parametrize("example", [POLY, EULER, SPIN], ids=lambda e: e.symbol)
@pytest.mark.parametrize("home", ["cpu", "cuda"])
def test_a_tape_is_for_one_platform(example: Example, home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was traced for one platform, with its tape, is lowered for another: there the pullback works without."""
    monkeypatch.setattr(compat, "default_platform", lambda: home)
    subject = make(example, "taped")
    launched = replace(subject.kernel.program, launch=Launch(("1", "1", "1"), ("1", "1", "1")))
    both = replace(subject.kernel, program=launched).on("cpu", make(example, "tapeless").kernel)
    f, g = subject.scalar(both), subject.scalar(subject.expected)
    along = subject.directions(3)
    points = subject.points

    def of(h: object) -> object:
        slope = jax.grad(subject.vary(h), tuple(range(len(points))))  # type: ignore[arg-type]
        return jax.value_and_grad(subject.vary(h))(*points), jax.jvp(slope, points, along)  # type: ignore[arg-type]

    expected = compiled(of, g)
    subject.close(of(f), expected)
    subject.close(compiled(of, f), expected)
    batch = subject.batch_args(3)
    ours, theirs = (jax.jit(jax.vmap(jax.grad(h, subject.floats)))(*batch) for h in (f, g))
    subject.close(ours, theirs)
