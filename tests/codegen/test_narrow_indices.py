"""An index that wraps around goes back to the start in vectors too, also beside one of another width."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.support.engine import native

SOURCE = """
static TYPE element(const TYPE *t, unsigned char i) { return t[i]; }
void k(unsigned off, const TYPE *t, const TYPE *a, TYPE *y) {
  for (int i = 0; i < 600; i++) y[i] = INDEX + a[off + (unsigned)(STEP * i)];
}
"""
N = 600
INDICES: list[tuple[str, int, Callable[[np.ndarray], np.ndarray]]] = [
    ("t[i & 1]", 1, lambda i: i & 1),
    ("t[i & 3]", 1, lambda i: i & 3),
    ("t[i & 7]", 1, lambda i: i & 7),
    ("t[i % 4u]", 1, lambda i: i & 3),
    ("t[(3 * i) & 255]", 3, lambda i: 3 * i & 255),
    ("t[(unsigned char)(3 * i)]", 3, lambda i: 3 * i & 255),
    ("t[(signed char)(3 * i) + 128]", 3, lambda i: 3 * i + 128 & 255),
    ("element(t, 3 * i)", 3, lambda i: 3 * i & 255),
]


@pytest.mark.parametrize(("kind", "dtype"), [("float", "f32"), ("double", "f64")])
@pytest.mark.parametrize(("index", "step", "place"), INDICES, ids=[i[0] for i in INDICES])
def test_narrow_indices_wrap(kind: str, dtype: str, index: str, step: int, place: Callable) -> None:
    text = SOURCE.replace("TYPE", kind).replace("INDEX", index).replace("STEP", str(step))
    kernel = native(text, "k", f"off: u32, t: {dtype}[256], a: {dtype}[2000], out y: {dtype}[{N}]", {}, "c")
    rng = np.random.default_rng(0)
    t, a = (rng.normal(size=n).astype(kernel.buffers[-1].dtype.replace("f", "float")) for n in (256, 2000))
    i = np.arange(N)
    (got,) = kernel.run((), [np.uint32(7), t, a])
    np.testing.assert_allclose(got, t[place(i)] + a[step * i + 7], rtol=1e-6)
