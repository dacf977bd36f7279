"""Stored programs: exported ones run in a process that never saw the kernel; nothing stored holds an address."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
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


def test_a_batched_gradient_over_devices_is_exported(tmp_path: Path) -> None:
    """What is exported may not ask the process that exported it how to split: it gathers, and is right."""
    mesh = jax.make_mesh((8,), ("b",), axis_types=(jax.sharding.AxisType.Auto,))
    x = jax.device_put(np.arange(32.0).reshape(8, 4), jax.NamedSharding(mesh, jax.P("b")))
    gradient = jax.jit(jax.vmap(jax.grad(lambda x: _kernel()(x, 3))))
    checks = [export.DisabledSafetyCheck.custom_call(CPU_TARGET)]
    loaded = export.deserialize(export.export(gradient, disabled_checks=checks)(x).serialize())
    np.testing.assert_allclose(jax.jit(loaded.call)(x), 6 * x)


CACHED = """
import sys
import jax, numpy as np, jax_enzyme as je
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_compilation_cache_dir", sys.argv[1])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
events = []
jax.monitoring.register_event_listener(lambda name, **_: events.append(name))
k = je.kernel(sys.argv[2], 'f', sys.argv[3], lang='c')
print(jax.jit(jax.grad(lambda x: k(x, 3)))(np.arange(4.0)).tolist())
print(events.count("/jax/compilation_cache/cache_hits"), events.count("/jax/compilation_cache/cache_misses"))
"""


def test_the_persistent_compilation_cache_is_hit(tmp_path: Path) -> None:
    found: list[list[str]] = []
    for source in (SOURCE, SOURCE, SOURCE.replace("* p", "* (p + 1)")):
        command = [sys.executable, "-c", CACHED, str(tmp_path), source, SIGNATURE]
        found.append(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines())
    assert found[0] == ["[0.0, 6.0, 12.0, 18.0]", "0 1"]
    assert found[1] == ["[0.0, 6.0, 12.0, 18.0]", "1 0"]
    assert found[2] == ["[0.0, 8.0, 16.0, 24.0]", "0 1"]


def _square(kernel: je.Kernel, x: np.ndarray) -> np.ndarray:
    jax.config.update("jax_enable_x64", True)
    return np.asarray(jax.grad(lambda x: kernel(x, 3))(x))


def test_a_kernel_goes_to_a_spawned_process() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        np.testing.assert_allclose(pool.submit(_square, _kernel(), np.arange(4.0)).result(), 6 * np.arange(4.0))


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
