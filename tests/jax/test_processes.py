"""Two processes on one machine train one model, to the result of one process."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np

TRAIN = """
import sys
import jax
import numpy as np
from jax import numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
import jax_enzyme as je

rank, count, port, out = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_num_cpu_devices", 4 // count)
if count > 1:
    jax.distributed.initialize(f"localhost:{port}", count, rank)
assert jax.device_count() == 4 and jax.process_count() == count

model = je.kernel(
    '''
    #include <math.h>
    double model(int n, const double *w, const double *x) {
        double s = 0;
        for (int i = 0; i < n; i++) s += tanh(w[i] * x[i]);
        return s;
    }''',
    "model", "n: i32, w: f64[n], x: f64[n] -> f64", lang="c",
)
noise = np.random.default_rng(0)
x, y = noise.normal(size=(16, 5)), noise.normal(size=16)
mesh = jax.make_mesh((4,), ("b",), axis_types=(AxisType.Auto,))
split, whole = NamedSharding(mesh, P("b")), NamedSharding(mesh, P())

def spread(a, sharding):
    return jax.make_array_from_callback(a.shape, sharding, lambda index: a[index])

def loss(w, x, y):
    return jnp.mean((jax.vmap(model, (None, 0))(w, x) - y) ** 2)

@jax.jit
def step(w, x, y):
    return w - 0.1 * jax.grad(loss)(w, x, y)

w, x, y = spread(np.ones(5), whole), spread(x, split), spread(y, split)
assert "all-gather" not in step.lower(w, x, y).compile().as_text()
for _ in range(20):
    w = step(w, x, y)
if rank == 0:
    np.save(out, np.asarray(w.addressable_data(0)))
"""


def _free_port() -> int:
    with socket.socket() as server:
        server.bind(("localhost", 0))
        return int(server.getsockname()[1])


def _train(count: int, out: Path) -> np.ndarray:
    port = str(_free_port())
    environment = {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"}
    running = [
        subprocess.Popen([sys.executable, "-c", TRAIN, str(rank), str(count), port, str(out)], env=environment)
        for rank in range(count)
    ]
    assert [process.wait(120) for process in running] == [0] * count
    return np.load(out)


def test_two_processes_train_as_one(tmp_path: Path) -> None:
    alone, together = _train(1, tmp_path / "1.npy"), _train(2, tmp_path / "2.npy")
    np.testing.assert_allclose(together, alone, rtol=1e-12)
    assert np.abs(alone - 1).max() > 0.1
