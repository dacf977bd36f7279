"""A kernel as a value: identity, text, pickling."""

from __future__ import annotations

import copy
import inspect
import pickle

import jax
import numpy as np
import pytest

import jax_enzyme as je

SOURCE = (
    "double f(int n, const double *x, double a) { double s = 0; for (int i = 0; i < n; i++) s += a * x[i]; return s; }"
)
SIGNATURE = "n: i32, x: f64[n], a: f64 -> f64"


def _make(source: str = SOURCE, **kwargs: object) -> je.Kernel:
    return je.kernel(source, "f", SIGNATURE, lang="c", **kwargs)  # type: ignore[arg-type]


def test_equality_is_by_content() -> None:
    assert _make() == _make()
    assert hash(_make()) == hash(_make())
    assert _make() != _make(SOURCE.replace("a *", "2 * a *"))
    assert _make() != _make(options=je.Options(fast_math=True))
    assert _make() != "f"


def test_copies_are_equal_and_work() -> None:
    kernel = _make()
    for other in (copy.copy(kernel), copy.deepcopy(kernel), pickle.loads(pickle.dumps(kernel))):
        assert other == kernel
        assert other(np.arange(3.0), 2.0) == 6.0


def test_it_is_immutable() -> None:
    with pytest.raises(AttributeError):
        _make().options = je.Options()  # type: ignore[misc]


def test_equal_kernels_share_one_trace() -> None:
    traces = 0

    def through(kernel: je.Kernel, x: object) -> object:
        nonlocal traces
        traces += 1
        return kernel(x, 2.0)

    run = jax.jit(through, static_argnums=0)
    for _ in range(3):
        run(_make(), np.arange(3.0))
    assert traces == 1


def test_text() -> None:
    kernel = _make()
    assert repr(kernel) == "Kernel f(x, a) -> return [c, cpu]"
    assert kernel.__name__ == "f"
    assert str(inspect.signature(kernel)) == "(x: 'f64[n]', a: 'f64') -> 'f64[]'"
    text = inspect.getdoc(kernel) or ""
    assert "x: f64[n]" in text
    assert "n: solved from the shapes" in text


def test_what_cannot_be_made() -> None:
    with pytest.raises(je.SignatureError, match="needs a signature"):
        je.kernel(abs, "f")
    with pytest.raises(je.SignatureError, match="the symbol comes before it"):
        je.kernel(SOURCE, SIGNATURE, lang="c")
    with pytest.raises(je.SignatureError, match="CUDA"):
        _make(grid=1)
    with pytest.raises(je.SignatureError):
        je.kernel(SOURCE, "f", "n: i32, x: f65[n] -> f64", lang="c")
    with pytest.raises(je.CompileError, match="g"):
        je.kernel(SOURCE, "g", SIGNATURE, lang="c")


def test_a_signature_that_does_not_fit_is_found_when_the_kernel_is_made() -> None:
    source = "double area(int n, const float *x) { return n * x[0]; }"
    for _ in range(2):
        with pytest.raises(je.errors.SignatureError, match=r"`x` is f64\[n\] in the signature"):
            je.kernel(source, "area", "n: i32, x: f64[n] -> f64", lang="c")
        assert je.kernel(source, "area", "n: i32, x: f32[n] -> f64", lang="c").__name__ == "area"
