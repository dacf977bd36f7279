"""Stored programs: exported ones run in a process that never saw the kernel; nothing stored holds an address."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from jax import export
from jax.sharding import AxisType

import jax_enzyme as je
from jax_enzyme.ir.arrays import Jvp, Vjp
from jax_enzyme.signature import Binding
from jax_enzyme.xla_ffi.published import publish, rebuild
from jax_enzyme.xla_ffi.recipe import decode, encode
from jax_enzyme.xla_ffi.registration import CPU_TARGET
from tests.jax.conftest import make
from tests.jax.kernels import EXAMPLES, GATHER, POLY, SPIN

SOURCE = """
double f(int n, const double *x, int p) {
  double s = 0;
  for (int i = 0; i < n; i++) s += x[i] * x[i] * p;
  return s;
}
"""
SIGNATURE = "n: i32, x: f64[n], p: i32 -> f64"

LOADER = """
import pickle, sys
import jax
from jax import export
jax.config.update("jax_enable_x64", True)
stored = pickle.load(open(sys.argv[1], "rb"))
out = {name: jax.tree.leaves(export.deserialize(program).call(*args)) for name, (program, args) in stored.items()}
pickle.dump(jax.device_get(out), open(sys.argv[2], "wb"))
"""
CHECKS = [export.DisabledSafetyCheck.custom_call(CPU_TARGET)]


def _kernel() -> je.Kernel:
    return je.kernel(SOURCE, "f", SIGNATURE, lang="c")


def test_gradients_in_a_fresh_process(tmp_path: Path) -> None:
    """Of all kernels, of some also in batches, in a process that does not even import this package."""
    stored: dict[str, Any] = {}
    expected: dict[str, Any] = {}
    for example in EXAMPLES:
        subject = make(example, "engine")
        for batched in (False, True) if example in (POLY, GATHER, SPIN) else (False,):
            ours, theirs = (jax.grad(subject.scalar(f), subject.floats) for f in (subject.kernel, subject.expected))
            args = subject.batch_args(3) if batched else subject.args
            gradient = jax.jit(jax.vmap(ours) if batched else ours)
            name = f"{example.symbol} {batched}"
            stored[name] = export.export(gradient, disabled_checks=CHECKS)(*args).serialize(), args
            expected[name] = subject, jax.tree.leaves(jax.jit(jax.vmap(theirs) if batched else theirs)(*args))
    programs, out = tmp_path / "programs", tmp_path / "out"
    programs.write_bytes(pickle.dumps(stored))
    subprocess.run([sys.executable, "-c", LOADER, str(programs), str(out)], check=True, env=os.environ)
    found = pickle.loads(out.read_bytes())
    assert found.keys() == expected.keys()
    for name, (subject, leaves) in expected.items():
        subject.close(found[name], leaves)


def test_what_another_user_stored_runs_once_it_is_trusted(tmp_path: Path) -> None:
    """It names the kernel, what is wrong and what to do; where that was done, it runs."""
    program, made, out = tmp_path / "program", tmp_path / "made", tmp_path / "out"
    exported = export.export(jax.jit(jax.grad(lambda x: _kernel()(x, 3))), disabled_checks=CHECKS)(np.arange(4.0))
    made.write_bytes(exported.serialize())
    program.write_bytes(pickle.dumps({"gradient": (exported.serialize(), (np.arange(4.0),))}))
    other = os.environ | {"XDG_DATA_HOME": str(tmp_path / "other")}
    command = [sys.executable, "-c", LOADER, str(program), str(out)]
    refused = subprocess.run(command, env=other, check=False, capture_output=True, text=True)
    assert refused.returncode == 1 and not out.exists()
    for said in ("kernel `", "not made by this user", "jax_enzyme.trust(", "JAX_ENZYME_TRUST"):
        assert said in refused.stderr
    subprocess.run(command, env=other | {"JAX_ENZYME_TRUST": str(made)}, check=True)
    np.testing.assert_allclose(pickle.loads(out.read_bytes())["gradient"][0], 6 * np.arange(4.0))


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit], ids=["auto", "explicit"])
def test_a_batched_gradient_over_devices_is_exported(kind: AxisType) -> None:
    """What is exported may not ask the process that exported it how to split. Types say it, or else it gathers."""
    mesh = jax.make_mesh((8,), ("b",), axis_types=(kind,))
    with jax.set_mesh(mesh):
        x = jax.device_put(np.arange(32.0).reshape(8, 4), jax.NamedSharding(mesh, jax.P("b")))
        gradient = jax.jit(jax.vmap(jax.grad(lambda x: _kernel()(x, 3))))
        loaded = export.deserialize(export.export(gradient, disabled_checks=CHECKS)(x).serialize())
        compiled = jax.jit(loaded.call).lower(x).compile()
        np.testing.assert_allclose(compiled(x), 6 * x)
        assert ("all-gather" in compiled.as_text()) == (kind == AxisType.Auto)


CACHED = """
import sys
import jax, numpy as np, jax_enzyme as je
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_num_cpu_devices", 2)
jax.config.update("jax_compilation_cache_dir", sys.argv[1])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
events = []
jax.monitoring.register_event_listener(lambda name, **_: events.append(name))
k = je.kernel(sys.argv[2], 'f', sys.argv[3], lang='c')
print(jax.jit(jax.grad(lambda x: k(x, 3)))(np.arange(4.0)).tolist())
jax.config.update("jax_remove_custom_partitioning_ptr_from_cache_key", True)  # for the automatic mesh
for kind in (jax.sharding.AxisType.Explicit, jax.sharding.AxisType.Auto):
    mesh = jax.make_mesh((2,), ("b",), axis_types=(kind,))
    with jax.set_mesh(mesh):
        x = jax.device_put(np.ones((2, 4)), jax.NamedSharding(mesh, jax.P("b")))
        split = jax.jit(jax.vmap(jax.grad(lambda x: k(x, 3))))(x)
        assert split.sharding.spec[0] == "b"
        print(split.tolist())
print(events.count("/jax/compilation_cache/cache_hits"), events.count("/jax/compilation_cache/cache_misses"))
"""


def test_the_persistent_compilation_cache_is_hit(tmp_path: Path) -> None:
    """By another process, for one device and for batches over two. With automatic axes JAX finds a program only without
    the address of the rule that splits it; what the program has instead tells kernels apart."""
    found: list[list[str]] = []
    for source in (SOURCE, SOURCE, SOURCE.replace("* p", "* (p + 1)")):
        command = [sys.executable, "-c", CACHED, str(tmp_path), source, SIGNATURE]
        found.append(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines())
    once, other = (
        ["[0.0, 6.0, 12.0, 18.0]", *[str([[6.0] * 4] * 2)] * 2],
        ["[0.0, 8.0, 16.0, 24.0]", *[str([[8.0] * 4] * 2)] * 2],
    )
    assert found == [[*once, "0 3"], [*once, "3 0"], [*other, "0 3"]]


def _gradient(kernel: je.Kernel, floats: tuple[int, ...], args: tuple[Any, ...]) -> list[np.ndarray]:
    jax.config.update("jax_enable_x64", True)

    def total(*args: Any) -> Any:
        return sum(abs(leaf).sum() for leaf in jax.tree.leaves(kernel(*args)) if leaf.dtype.kind in "fc")

    return [np.asarray(g) for g in jax.grad(total, floats)(*args)]


def test_kernels_go_to_a_spawned_process() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        for subject in [make(example, "engine") for example in EXAMPLES]:
            there = pool.submit(_gradient, subject.kernel, subject.floats, subject.args).result()
            subject.close(there, _gradient(subject.kernel, subject.floats, subject.args))


def test_sizes_that_are_not_known() -> None:
    (size,) = export.symbolic_shape("b")
    for function, shape in ((lambda x: _kernel()(x, 3), (size,)), (jax.vmap(lambda x: _kernel()(x, 3)), (size, 4))):
        with pytest.raises(je.ArgumentError, match="not known"):
            export.export(jax.jit(function), disabled_checks=CHECKS)(jax.ShapeDtypeStruct(shape, np.float64))


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
    again = decode(encode(derived))
    assert again == derived
    assert encode(again) == encode(derived)
    with pytest.raises(je.LoweringError, match="the program was changed"):
        decode(encode(derived).replace('"n",4', '"n",5'))


def test_a_program_without_copies_of_what_is_written_is_refused() -> None:
    """Its key says which cotangents it passes for reading; where the code writes to others, as another machine's might,
    the program has to be made again."""
    function = _kernel().specialise(Binding.of({"n": 4}, {"p": 3})).then(Vjp((True, False), (False, True)))
    key, read = publish(function)
    assert rebuild(key, encode(function)) is not None
    with pytest.raises(je.LoweringError, match=r"no copies of the cotangents(.|\n)*export it again"):
        rebuild(f"{key}-{len(function.buffers)}", encode(function))
    assert key.split("-")[1:] == [str(i) for i in sorted(read)]
