"""What all ways on from a branch compute is computed once before it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import jax_enzyme as je
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.verify import parse_checked
from jax_enzyme.transform.device.before_branches import compute_before_branches
from tests.support.stand_in_driver import StandIn

ARMS = """
define double @f(ptr noalias %x, ptr noalias %y, i1 %c, i64 %i) {
entry:
  br label %head
head:
  br i1 %c, label %one, label %two
one:
  %i1 = add i64 %i, 3
  %p1 = getelementptr double, ptr %x, i64 %i1
  %v1 = load double, ptr %p1, !tbaa !0
  %s1 = fmul double %v1, %v1
  ONE
two:
  TWO
join:
  %k = phi i64 [ %i1, %one ], [ OTHER, %two ]
  %r = phi double [ %s1, %one ], [ 2.0, %two ]
  %p3 = getelementptr double, ptr %x, i64 %k
  %v3 = load double, ptr %p3, !tbaa !0
  %s3 = fmul double %v3, %v3
  %z = fadd double %r, %s3
  ret double %z
}
!0 = !{!1, !1, i64 0}
!1 = !{!"double", !2, i64 0}
!2 = !{!"root"}
"""
SAME = "%i2 = add i64 %i, 3\n  br label %join"


@pytest.mark.parametrize(
    ("one", "two", "other", "constant", "places"),
    [
        pytest.param("br label %join", SAME, "%i2", True, ["head"], id="all ways"),
        pytest.param("br label %join", SAME, "%i2", False, ["join", "one"], id="memory that may change"),
        pytest.param(
            "br label %join", "%i2 = add i64 %i, 4\n  br label %join", "%i2", True, ["join", "one"], id="apart"
        ),
        pytest.param("br label %join", "ret double 0.0", None, True, ["join", "one"], id="a way past it"),
        pytest.param(
            "br i1 %c, label %one, label %join", SAME, "%i2", True, ["join", "one"], id="a loop on one of the ways"
        ),
    ],
)
def test_places(one: str, two: str, other: str | None, constant: bool, places: list[str]) -> None:
    text = ARMS.replace("ONE", one).replace("TWO", two)
    if "label %one, label %join" in one:
        text = text.replace("one:\n", "one:\n  %n = phi i64 [ 0, %head ], [ 1, %one ]\n")
    if other is None:
        text = text.replace(", [ OTHER, %two ]", "").replace(", [ 2.0, %two ]", "")
    text = text.replace("OTHER", other or "")
    module = parse(text)
    function = module.functions["f"]
    compute_before_branches(function, function.arguments[:1] if constant else [])
    parse_checked(module)
    loads = Counter(b.name for b in function.blocks for i in b.instructions if i.opcode == "load")
    assert sorted(loads.elements()) == places


SWITCH = """
extern "C" __global__ void f(int n, const int *at, const int *kind, const double *x, double *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  double v = 1;
  for (int k = 0; k < 4; k++) v += x[at[4 * i + k]] * x[at[4 * i + (k + 1) % 4]];
  switch (kind[i]) {
  case 0: y[i] = sin(v); break;
  case 1: y[i] = v * v; break;
  case 2: y[i] = 1 / v; break;
  default: y[i] = 3; break;
  }
}
"""


def test_a_gather_before_a_switch(gpu_launches: StandIn) -> None:
    """Each arm needs the sum, whose numbers are read once."""
    signature = "n: i32, at: i32[n,4], kind: i32[n], x: f64[m], out y: f64[n]"
    kernel = je.kernel(SWITCH, "f", signature, lang="cuda", grid="(n+31)//32", block=32)
    rng, n = np.random.default_rng(4), 70
    at, kind = (jnp.asarray(rng.integers(0, m, s).astype(np.int32)) for m, s in ((20, (n, 4)), (4, n)))
    x, along = jnp.asarray(rng.uniform(0.5, 1.5, 20)), jnp.asarray(rng.normal(size=20))

    def plain(x: jax.Array) -> jax.Array:
        v = 1 + jnp.sum(x[at] * jnp.roll(x[at], -1, axis=1), axis=1)
        return jnp.select([kind == 0, kind == 1, kind == 2], [jnp.sin(v), v * v, 1 / v], 3.0)

    def loss(f: Callable[[jax.Array], jax.Array]) -> Callable[[jax.Array], jax.Array]:
        return jax.jit(jax.grad(lambda x: jnp.sum(jnp.cos(f(x)))))

    found = loss(lambda x: kernel(at, kind, x))(x)
    np.testing.assert_allclose(found, loss(plain)(x), rtol=1e-12)
    h = 1e-6
    moved = [float(jnp.sum(jnp.cos(plain(x + s * h * along)))) for s in (1, -1)]
    np.testing.assert_allclose(found @ along, (moved[0] - moved[1]) / (2 * h), rtol=1e-7)
    tangent = jax.jit(lambda x, v: jax.jvp(lambda x: jnp.sum(jnp.cos(kernel(at, kind, x))), (x,), (v,)))(x, along)[1]
    np.testing.assert_allclose(found @ along, tangent, rtol=1e-12)
    report = kernel.inspect(at, kind, x).gpu
    assert report is not None
    ptx = report.ptx("pullback" if "pullback" in report.functions else "vjp")
    assert ptx.count("ld.global.b64") + ptx.count("ld.global.nc.b64") <= 10, ptx
