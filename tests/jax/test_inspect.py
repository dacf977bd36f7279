"""`kernel.inspect` takes what the kernel takes, or only the types of it."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import jax_enzyme as je

_SCALE = je.kernel(
    "void scale(int n, double a, const double *x, double *y) { for (int i = 0; i < n; i++) y[i] = a * x[i] * x[i]; }",
    "scale",
    "n: i32, a: f64, x: f64[n], out y: f64[n]",
    lang="c",
)


def test_arrays_and_types_give_the_same_report() -> None:
    of_types = _SCALE.inspect(jax.ShapeDtypeStruct((), "float64"), jax.ShapeDtypeStruct((7,), "float64"))
    assert str(_SCALE.inspect(2.0, np.ones(7))) == str(of_types)
    assert "n = 7" in str(of_types)


@pytest.mark.parametrize("wrt", [1, -1, "x", (1,), ["x"]])
def test_wrt_names_inputs(wrt: int | str | tuple[int, ...]) -> None:
    assert _SCALE.inspect(2.0, np.ones(3), wrt=wrt).wanted == (False, True, False)


@pytest.mark.parametrize("wrt", [2, "z", ("x", "n")])
def test_wrt_that_is_no_input(wrt: int | str | tuple[str, ...]) -> None:
    with pytest.raises(je.ArgumentError, match="is no argument"):
        _SCALE.inspect(2.0, np.ones(3), wrt=wrt)


def test_wrong_arguments() -> None:
    with pytest.raises(je.ArgumentError):
        _SCALE.inspect(2.0)
    with pytest.raises(je.SignatureError):
        _SCALE.inspect(2.0, np.ones((3, 3)))
