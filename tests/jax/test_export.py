"""Stored programs: exported ones run in a process that never saw the kernel; nothing stored holds an address."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
from jax import export

import jax_enzyme as je
from jax_enzyme.ir.arrays import Jvp, Vjp
from jax_enzyme.signature import Binding
from jax_enzyme.xla_ffi.backend import default_backend
from jax_enzyme.xla_ffi.recipe import decode, encode
from jax_enzyme.xla_ffi.registration import CPU_TARGET

SOURCE = """
double f(int n, const double *x, int p) {
  double s = 0;
  for (int i = 0; i < n; i++) s += x[i] * x[i] * p;
  return s;
}
"""
SIGNATURE = "n: i32, x: f64[n], p: i32 -> f64"

LOADER = """
import sys
import jax
import numpy as np
from jax import export
jax.config.update("jax_enable_x64", True)
loaded = export.deserialize(open(sys.argv[1], "rb").read())
np.save(sys.argv[2], loaded.call(np.arange(4.0)))
"""


def _kernel() -> je.Kernel:
    return je.kernel(SOURCE, "f", SIGNATURE, lang="c")


def test_gradient_in_a_fresh_process(tmp_path: Path) -> None:
    gradient = jax.jit(jax.grad(lambda x: _kernel()(x, 3)))
    checks = [export.DisabledSafetyCheck.custom_call(CPU_TARGET)]
    exported = export.export(gradient, disabled_checks=checks)(np.arange(4.0))
    stored, out = tmp_path / "gradient", tmp_path / "out.npy"
    stored.write_bytes(exported.serialize())
    subprocess.run([sys.executable, "-c", LOADER, str(stored), str(out)], check=True, env=os.environ)
    np.testing.assert_allclose(np.load(out), 6 * np.arange(4.0))


def test_what_is_stored_is_the_same_in_every_process(tmp_path: Path) -> None:
    program = (
        "import jax, numpy as np, jax_enzyme as je\n"
        'jax.config.update("jax_enable_x64", True)\n'
        f"k = je.kernel({SOURCE!r}, 'f', {SIGNATURE!r}, lang='c')\n"
        "print(jax.jit(jax.grad(lambda x: k(x, 3))).lower(np.arange(4.0)).as_text())\n"
    )
    texts = {subprocess.run([sys.executable, "-c", program], check=True, capture_output=True).stdout for _ in range(2)}
    assert len(texts) == 1


def test_recipes_say_everything() -> None:
    kernel = _kernel()
    function = kernel.specialise(Binding.of({"n": 4}, {"p": 3}))
    derived = function.then(Vjp((True, False), (False, True))).then(Jvp((True, False, False, False)))
    again = decode(encode(derived), default_backend())
    assert again == derived
    assert encode(again) == encode(derived)
