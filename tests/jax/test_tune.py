"""`kernel.tune`: which plan is chosen, that it means the same, and that it is found again. Nothing here is timed: what
calls take is said by the tests."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import jax_enzyme as je
from jax_enzyme.cache import DiskCache
from jax_enzyme.codegen.host import host
from jax_enzyme.primitives import compat, kernels, tuning
from jax_enzyme.primitives.timing import Taken, taken
from jax_enzyme.primitives.tuning import Subject, fastest

Times = Callable[[Mapping[str, Callable[[], object]]], dict[str, Taken]]

SOURCE = """
#include <math.h>
double mix(int n, int k, const double *x, const double *m, double s) {
    double total = 0;
    for (int i = 0; i < n; i++) {
        double z = 0;
        for (int j = 0; j < k; j++) { double d = (x[i] - m[j]) / s; z += exp(-0.5 * d * d) / s; }
        total += log(z);
    }
    return total;
}
"""
ARGS = (np.linspace(-1, 1, 40), np.linspace(-2, 2, 5), 0.7)
needs_avx = pytest.mark.skipif(not host().has("avx"), reason="this processor has one width of registers")


@cache
def _mix(**options: Any) -> je.Kernel:
    signature = "n: i32, k: i32, x: f64[n], m: f64[k], s: f64 -> f64"
    return je.kernel(SOURCE, "mix", signature, lang="c", options=je.Options(**options))


def _times(**factors: float) -> Times:
    """Every plan takes a second, times the factors of the changes that its name shows."""

    def found(calls: Mapping[str, Callable[[], object]]) -> dict[str, Taken]:
        seconds = {name: 1.0 for name in calls}
        for name, call in calls.items():
            call()
            for change in name.split(", "):
                seconds[name] *= factors.get(change.partition("=")[0], 1.0) if change != "tape_cost=16.0" else 2.0
        return {name: Taken(s, s) for name, s in seconds.items()}

    return found


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Times], None]:
    """Says what calls take; plans are kept in a folder of the test's own."""

    class Here(DiskCache):
        @staticmethod
        def named(name: str) -> DiskCache:
            return DiskCache(tmp_path / name)

    def set_times(times: Times) -> None:
        monkeypatch.setattr(kernels, "fastest", partial(fastest, measure=times))

    monkeypatch.setattr(tuning, "DiskCache", Here)
    return set_times


def _not_again(calls: Mapping[str, Callable[[], object]]) -> dict[str, Taken]:
    raise AssertionError(f"timed again: {list(calls)}")


def test_the_faster_plans_together_are_found_once(timed: Callable[[Times], None]) -> None:
    timed(_times(tape_cost=0.8, tape_budget=0.9))
    kernel = _mix(vector_math=False, vector_width=128)  # fewer plans to build
    tuned = kernel.tune(*ARGS)
    assert tuned.options in [replace(kernel.options, tape_cost=cost, tape_budget=0) for cost in (0.25, 4.0)]
    assert tuned.signature == kernel.signature
    assert tuned != kernel
    assert "tape_cost=" in repr(tuned)
    assert "tape_budget=0" in repr(tuned)
    assert pickle.loads(pickle.dumps(tuned)) == tuned
    for a, b in zip(*(jax.tree.leaves(jax.jit(jax.value_and_grad(k))(*ARGS)) for k in (kernel, tuned)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11)
    timed(_not_again)
    again = kernel.tune(m=ARGS[1] + 1, x=ARGS[0], s=0.9)
    assert again == tuned
    assert hash(again) == hash(tuned)
    with pytest.raises(AssertionError, match="timed again"):
        kernel.tune(ARGS[0][:3], *ARGS[1:])


def test_what_the_options_say_stays(timed: Callable[[Times], None]) -> None:
    options = {"tape_cost": 2.0, "checkpoint": 7, "vector_math": False, "vector_width": 128, "threads": 1}
    timed(_not_again)
    assert _mix(**options).tune(*ARGS).options == je.Options(**options)


def test_a_plan_with_other_results_is_left_out(
    timed: Callable[[Times], None], caplog: pytest.LogCaptureFixture
) -> None:
    kernel = _mix(vector_math=False, vector_width=128)

    def run(options: je.Options) -> Callable[..., Any]:
        wrong = 1 + 1e-6 * (options.tape_cost == 16.0)
        return lambda *args: wrong * replace(kernel, options=options)(*args)

    tried: list[str] = []

    def times(calls: Mapping[str, Callable[[], object]]) -> dict[str, Taken]:
        tried.extend(calls)
        return _times(tape_cost=0.5)(calls)

    values = tuple(map(jnp.asarray, ARGS))
    subject = Subject("mix", "wrong", kernel.options, run, values, (0, 1, 2), must_differentiate=True)
    assert fastest(subject, times).tape_cost == 0.25
    assert "tape_cost=16.0" not in tried
    assert "tape_cost=16.0 is left out: its results differ" in caplog.text


WATCHED = """
void f(int n, const volatile double *x, double *y) {
    for (int i = 0; i < n; i++) y[i] *= 2;
    y[0] = x[0] * x[1];
}
"""
SQUARES = "int f(int n, const int *x) { int s = 0; for (int i = 0; i < n; i++) s += x[i] * x[i]; return s; }"


@needs_avx
def test_the_value_alone(timed: Callable[[Times], None]) -> None:
    timed(_times(vector_width=0.5))
    of_integers = je.kernel(SQUARES, "f", "n: i32, x: i32[n] -> i32", lang="c")
    assert of_integers.tune(np.arange(1000, dtype=np.int32)).options.vector_width == 128
    without_gradient = je.kernel(WATCHED, "f", "n: i32, x: f64[2], inout y: f64[n]", lang="c")
    assert without_gradient.tune(np.ones(2), np.ones(1000)).options.vector_width == 128
    with pytest.raises(je.DifferentiationError):
        without_gradient.tune(np.ones(2), np.ones(1000), wrt="x")


@needs_avx
def test_the_implementation_for_the_cpu_is_tuned(timed: Callable[[Times], None]) -> None:
    signature = "n: i32, x: f64[n], out y: f64[n]"
    body = "y[i] = 3 * x[i];"
    on_gpus = je.kernel(
        f"__global__ void f(int n, const double *x, double *y) {{ int i = threadIdx.x; {body} }}",
        "f", signature, lang="cuda", grid=1, block="n",
    )  # fmt: skip
    in_c = je.kernel(
        f"void f(int n, const double *x, double *y) {{ for (int i = 0; i < n; i++) {body} }}", "f", signature, lang="c"
    )
    timed(_times(vector_width=0.5))
    tuned = on_gpus.on("cpu", in_c).tune(np.arange(64.0))
    assert tuned.options == on_gpus.options
    assert tuned.implementations["cpu"].options == je.Options(vector_width=128)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda k: jax.jit(lambda x: k.tune(x, *ARGS[1:])(x, *ARGS[1:]))(ARGS[0]), je.ArgumentError, "needs numbers"),
        (lambda k: k.tune(jax.ShapeDtypeStruct((3,), "float64"), *ARGS[1:]), je.ArgumentError, "needs numbers"),
        (lambda k: k.tune(ARGS[0]), je.ArgumentError, "m"),
        (lambda k: k.tune(ARGS[0], 3.0, 1.0), je.ArgumentError, "m"),
        (lambda k: k.tune(*ARGS, wrt="t"), je.ArgumentError, "is no argument"),
    ],
    ids=["tracer", "shape", "missing", "rank", "wrt"],
)
def test_errors(call: Callable[[je.Kernel], object], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call(_mix())


def test_not_on_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compat, "default_platform", lambda: "cuda")
    with pytest.raises(je.LoweringError, match="plans for the CPU, and `mix` would run on cuda"):
        _mix().tune(*ARGS)


def test_calls_are_sampled_in_turns() -> None:
    now = 0.0
    calls = {"first": count(), "quick": count(), "hopeless": count()}
    seconds = {"first": 0.3, "quick": 0.1, "hopeless": 0.5}

    def call(name: str) -> None:
        nonlocal now
        disturbed = 5.0 if next(calls[name]) % 4 == 3 else 1.0
        now += disturbed * seconds[name]

    found = taken({name: partial(call, name) for name in calls}, lambda: now)
    assert {name: (t.median, t.least) for name, t in found.items()} == {
        n: pytest.approx((s, s)) for n, s in seconds.items()
    }
    assert next(calls["hopeless"]) < next(calls["first"]) == next(calls["quick"])
    assert found["quick"].is_faster_than(found["first"])
    assert not any(Taken(*less).is_faster_than(Taken(1.0, 1.0)) for less in ((0.5, 1.0), (1.0, 0.5), (0.98, 0.98)))
