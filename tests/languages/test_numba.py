"""Functions of Numba and of Python as kernels."""

from __future__ import annotations

import builtins
import ctypes
import math
import pickle
from typing import Any

import numpy as np
import pytest

import jax_enzyme as je
from jax_enzyme.codegen import derived
from jax_enzyme.codegen.undefined import check_defined
from jax_enzyme.errors import CompileError, SignatureError
from jax_enzyme.frontends import load_function
from jax_enzyme.signature import Binding, parse
from tests.support.engine import Native, agree, by_turns, three_way
from tests.support.native import KernelStatus, call
from tests.support.team import Team

numba = pytest.importorskip("numba")
jitclass = pytest.importorskip("numba.experimental").jitclass

VECTOR = "x: f64[n], out y: f64[n]"
X = np.array([0.9, 0.41, 1.3, 0.7, 1.1])
A = np.random.default_rng(0).uniform(0.3, 1.7, (5, 5))


@numba.njit
def helper(t):
    return np.sin(t) * t


@numba.njit
def recursive(n, t):
    return 1.0 if n <= 0 else t * recursive(n - 1, t) + n


def loop(n, x, y):
    s = 0.0
    for i in range(n):
        y[i] = helper(x[i]) * x[i - 1]
        s += y[i]
    return s


def allocating(x, y):
    t = np.zeros(len(x))
    for i in range(x.shape[0]):
        t[i] = math.exp(x[i]) * x[i]
    y[:] = t * np.sum(t) + np.sqrt(x) + x**2


def dots(a, x, y):
    y[:] = np.dot(a, x) + np.dot(x, x)


def matrices(a, b, c):
    c[:, :] = a @ b + a.T


def slices(x, y):
    y[1:] = x[:-1] * x[1:]
    y[0] = x[-1]
    y[::2] *= 2.0
    y[x > 1.0] += np.mean(x) * x.max()


def complex_products(a, b, c):
    c[:, :] = np.dot(a, b) + a.conj().T * np.vdot(a[0], b[0])


def decomposed(a, x, y):
    w, v = np.linalg.eigh(a + a.T)
    q, r = np.linalg.qr(a)
    u, s, vt = np.linalg.svd(a)
    y[:] = w * v[0] ** 2 + q[1] * np.diag(r) + s * u[2] * vt[:, 1] + np.linalg.lstsq(a[:, :3], x)[0].sum()


def factored(a, x, y):
    m = a @ a.T + 3.0 * np.eye(x.size)
    y[:] = np.linalg.solve(m, x) + np.linalg.inv(m)[0]


def printing(x, y):
    print("n =", x.size, x[0] > 1.0, 1j * x[0])
    for i in range(x.size):
        y[i] = math.gamma(x[i])


def lists(x, y):
    kept = [0.0]
    for i in range(x.size):
        kept.append(x[i] * x[i])
    for i in range(x.size):
        y[i] = kept[i + 1] * kept[i]


def typed_containers(x, y):
    found = numba.typed.List.empty_list(numba.float64)
    for v in x:
        found.append(v * v)
    found.pop(1)
    found.insert(0, 2.0 * x[0])
    by_number = numba.typed.Dict.empty(numba.int64, numba.float64)
    for i in range(x.size):
        by_number[i % 3] = by_number.get(i % 3, 0.0) + found[i] * x[i]
    for i in range(20):
        by_number[7 * i + 9] = x[i % x.size] * i
    del by_number[16]
    total = 0.0
    for key, value in by_number.items():
        total += value * key
    for i in range(x.size):
        y[i] = by_number[i % 3] * found[-1] + total + len(found)


@jitclass([("weights", numba.float64[:]), ("squares", numba.float64)])
class Sums:
    def __init__(self, n):
        self.weights = np.zeros(n)
        self.squares = 0.0

    def add(self, i, v):
        self.weights[i % self.weights.size] += v
        self.squares += v * v


@jitclass([("sums", Sums.class_type.instance_type), ("scale", numba.float64)])
class Scaled:
    def __init__(self, scale):
        self.sums = Sums(3)
        self.scale = scale

    @property
    def twice(self):
        return 2.0 * self.scale

    def add(self, i, v):
        self.sums.add(i, v * self.twice)


def objects(x, y):
    scaled = Scaled(x[0])
    for i in range(x.size):
        scaled.add(i, x[i])
    for i in range(x.size):
        y[i] = scaled.sums.squares * x[i] + scaled.sums.weights[i % 3]


def raising(x, y):
    if x[0] > 1e9:
        raise ValueError("too big")
    for i in range(x.size):
        y[i] = x[i] / x[0]


def catching(x, y):
    for i in range(x.size):
        try:
            if x[i] > 1:
                raise ValueError("caught here")
            y[i] = x[i] * x[i]
        except Exception:
            y[i] = -3 * x[i]


def recurring(x, y):
    for i in range(x.size):
        y[i] = recursive(3, x[i])


@numba.njit
def compiled(x, y):
    for i in range(x.size):
        y[i] = helper(x[i])


KERNELS: dict[str, tuple[Any, str, dict[str, int], list[Any]]] = {
    "loop": (loop, "n: i32, x: f64[n], out y: f64[n] -> f64", {"n": 5}, [X]),
    "allocating": (allocating, VECTOR, {"n": 5}, [X]),
    "dots": (dots, "a: f64[m,n], x: f64[n], out y: f64[m]", {"n": 5, "m": 5}, [A, X]),
    "matrices": (matrices, "a: f64[n,n], b: f64[n,n], out c: f64[n,n]", {"n": 5}, [A, A + 1]),
    "slices": (slices, VECTOR, {"n": 5}, [X]),
    "complex_products": (
        complex_products,
        "a: c128[n,n], b: c128[n,n], out c: c128[n,n]",
        {"n": 3},
        [A[:3, :3] + 1j * A[1:4, :3], A[2:, :3] - 1j * A[:3, 2:]],
    ),
    "decomposed": (decomposed, "a: f64[n,n], x: f64[n], out y: f64[n]", {"n": 4}, [A[:4, :4], X[:4]]),
    "factored": (factored, "a: f64[n,n], x: f64[n], out y: f64[n]", {"n": 3}, [A[:3, :3], X[:3]]),
    "printing": (printing, VECTOR, {"n": 5}, [X]),
    "lists": (lists, VECTOR, {"n": 5}, [X]),
    "typed_containers": (typed_containers, VECTOR, {"n": 5}, [X]),
    "objects": (objects, VECTOR, {"n": 5}, [X]),
    "raising": (raising, VECTOR, {"n": 5}, [X]),
    "recurring": (recurring, VECTOR, {"n": 5}, [X]),
    "compiled": (compiled, VECTOR, {"n": 5}, [X]),
}


def kernel_of(function: Any, signature: str, dims: dict[str, int]) -> Native:
    program, whole = load_function(function, None, None, (), parse(signature))
    check_defined(program, ())
    return Native(program, whole, Binding.of(dims, {}))


@pytest.mark.parametrize("name", KERNELS)
def test_derivatives(name: str) -> None:
    """They agree, and where the kernel has objects of Numba's the values are those of the function."""
    function, signature, dims, inputs = KERNELS[name]
    kernel = kernel_of(function, signature, dims)
    agree(three_way(kernel, inputs, sweeps=by_turns(list(KERNELS).index(name))))
    if function in (lists, typed_containers, objects):
        wanted = np.empty(5)
        function(X, wanted)
        np.testing.assert_allclose(kernel.run((), [X])[0], wanted, rtol=1e-14)


def test_classes_that_numba_compiled_before_stay() -> None:
    before = {name: list(m.overloads) for name, m in Sums.class_type.jit_methods.items()}
    kernel_of(objects, VECTOR, {"n": 5})
    assert {name: list(m.overloads) for name, m in Sums.class_type.jit_methods.items()} == before


def test_print_is_output_of_the_primal(capfd: pytest.CaptureFixture[str]) -> None:
    kernel = kernel_of(printing, VECTOR, {"n": 5})
    kernel.run((), [X])
    ctypes.CDLL(None).fflush(None)
    assert capfd.readouterr().out == "n = 5 False (0+0.9j)\n"


cosine = ctypes.CDLL("libm.so.6").cos
cosine.argtypes, cosine.restype = (ctypes.c_double,), ctypes.c_double


def by_address(x, y):
    y[0] = cosine(x[0])


@numba.njit(parallel=True)
def in_any_order(x, y):
    total, top = 0.0, 0.0
    for i in numba.prange(x.shape[0]):
        total += x[i] * x[i] * numba.get_num_threads()
    for step in range(2):
        top = 0.0
        for i in numba.prange(x.shape[0]):
            top = max(top, x[i] * (step + 1) / 2)
    for i in numba.prange(1, x.shape[0]):
        y[i] = total * np.sin(x[i]) * top + numba.get_thread_id()
    y[0] = x[0]


@numba.njit
def squares(x):
    r = np.empty(x.size)
    for i in range(x.size):
        r[i] = x[i] * x[i]
    return r


@numba.njit(parallel=True)
def in_any_way(x, y):
    """Iterations end in several places, and make arrays of their own."""
    n = x.size // 20
    for i in numba.prange(1, x.size - 1):
        if x[i] > 1.0:
            y[i] = x[i] * x[i - 1]
        elif x[i] < 0.8:
            y[i] = np.exp(-x[i + 1])
            continue
        else:
            y[i] = x[i] + y[i]
    for i in numba.prange(n):
        r = squares(squares(x[20 * i : 20 * (i + 1)]))
        y[i] += r.sum() * r.mean() + np.max(r)


def test_iterations_over_prange_may_end_early_and_have_arrays() -> None:
    x = np.random.default_rng(0).uniform(0.3, 1.7, 4000)
    kernel = je.kernel(in_any_way, None, "x: f64[n], inout y: f64[n]")
    np.testing.assert_allclose(kernel(x, x), (in_any_way(x, y := x.copy()), y)[1], rtol=1e-13)
    said = [text for name, text in kernel.inspect(x, x).loops if name == "primal"]
    assert len(said) == 2 and all(text.endswith("on several threads") for text in said)
    small = kernel_of(in_any_way, "x: f64[n], inout y: f64[n]", {"n": 40})
    agree(three_way(small, [x[:40], x[:40]]))


@numba.njit(parallel=True)
def around_others(x, y):
    """Nothing is behind the loops inside."""
    for i in numba.prange(100):
        for j in range(100):
            y[100 * i + j] = x[100 * i + j] ** 2 + np.sin(x[j])
    for i in numba.prange(100):
        for j in range(100):
            if x[100 * i + j] < 0.6:
                continue
            y[100 * i + j] *= x[100 * i + j]


def test_a_loop_over_prange_may_end_with_another() -> None:
    x = np.random.default_rng(0).uniform(0.3, 1.7, 10_000)
    said = je.kernel(around_others, None, "x: f64[n], inout y: f64[n]").inspect(x, x).loops
    assert [text.endswith("on several threads") for name, text in said if name in ("primal", "pullback")] == [True] * 4


def test_prange_is_a_loop_that_several_threads_may_share() -> None:
    kernel = kernel_of(in_any_order, VECTOR, {"n": 5})
    expected = np.sum(X**2) * np.sin(X) * np.max(X)
    expected[0] = X[0]
    np.testing.assert_allclose(kernel.run((), [X])[0], expected, rtol=1e-13)
    agree(three_way(kernel, [X]))
    large = kernel_of(in_any_order, VECTOR, {"n": 40_000})
    built = derived.build(large.program, large.signature, large.binding, (), large.options)
    said = derived.sharing(large.program, large.signature, large.binding, (), large.options)
    assert [text.rpartition(": ")[2] for text in said] == ["on several threads"] * 3
    x, team = np.resize(X, 40_000), Team(threads=3)
    assert call(built, [x])[0].tobytes() == call(built, [x], team=team.address)[0].tobytes()
    assert team.ran


@numba.njit(parallel=True)
def racing(x, y):
    for i in numba.prange(1, x.shape[0]):
        y[i] = x[i] * y[i - 1]


def test_races_of_loops_over_prange_are_found() -> None:
    with pytest.raises(je.RaceError, match=r"y\[1\]: write by iteration 0 .*\n.*read by iteration 1"):
        je.check_races(je.kernel(racing, None, "x: f64[n], inout y: f64[n]"), (X, X))
    assert not je.check_races(je.kernel(in_any_order, None, VECTOR), (X,)).races


def test_an_exception_is_an_error_of_the_call() -> None:
    with pytest.raises(KernelStatus) as caught:
        kernel_of(raising, VECTOR, {"n": 5}).run((), [X * 1e10])
    assert caught.value.kind == 3
    program, _ = load_function(raising, None, None, (), parse(VECTOR))
    line = raising.__code__.co_firstlineno + 2
    assert f"ValueError: too big ({__file__}:{line})" in program.ir
    assert "ZeroDivisionError: division by zero" in program.ir


def test_an_exception_that_is_caught() -> None:
    (y,) = kernel_of(catching, VECTOR, {"n": 5}).run((), [X])
    np.testing.assert_allclose(y, np.where(X > 1, -3 * X, X * X), rtol=1e-15)


def test_what_numba_compiled_before_stays() -> None:
    before = helper(0.3)
    compiled_before = list(helper.overloads.values())
    kernel_of(loop, "n: i32, x: f64[n], out y: f64[n] -> f64", {"n": 5})
    assert list(helper.overloads.values()) == compiled_before
    assert helper(0.3) == before
    assert helper(np.float32(0.3)) == pytest.approx(before, rel=1e-6)


def test_programs_are_values() -> None:
    program, whole = load_function(lists, None, None, (), parse(VECTOR))
    assert pickle.loads(pickle.dumps(program)) == program
    assert str(whole) == "x: f64[n], out y: f64[n], n: i64"
    assert whole.caller_params == parse(VECTOR).caller_params


@pytest.mark.filterwarnings("ignore::numba.NumbaWarning")
@pytest.mark.parametrize(
    ("function", "signature", "error", "message"),
    [
        (by_address, VECTOR, CompileError, "by its address in this process"),
        (loop, "n: i32, x: f64[n], out y: f64[n]", SignatureError, "write|declare"),
        (loop, "n: i32, x: f64[n], out y: f64[n] -> f32", SignatureError, "returns float64"),
        (dots, VECTOR, SignatureError, "2 parameters in the signature, but `dots` has 3"),
        (matrices, "a: f64[n], b: f64[n], out c: f64[n]", CompileError, "Numba cannot compile"),
        (len, VECTOR, CompileError, "neither a Python function"),
    ],
)
def test_refusals(function: Any, signature: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        load_function(function, None, None, (), parse(signature))


def test_numba_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib

    def missing(name: str, *args: Any) -> Any:
        if name.startswith("numba"):
            raise ImportError(name)
        return builtins.__import__(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(CompileError, match="not installed") as caught:
        load_function(raising, None, None, (), parse(VECTOR))
    assert caught.value.remedy == "pip install numba"
