"""JAX's own gradient of a function of the benchmark that is written in `jax.numpy`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.jax_functions import FUNCTIONS, Named


def processor_seconds(run: Callable[[], Any]) -> float:
    """Of the whole process, until the results are there."""
    began = time.process_time()
    jax.block_until_ready(run())
    return time.process_time() - began


class JaxCall:
    """`jax.jit` of the pullback of a function in `jax.numpy`, and the gradient that it finds.

    Times are of the process: XLA's threads count as well.
    """

    def __init__(self, name: str, arguments: Named, wanted: tuple[str, ...], seeds: Named) -> None:
        rest = {n: v for n, v in arguments.items() if n not in wanted}
        self._point = {n: jnp.asarray(arguments[n]) for n in wanted}
        self._seeds = {n: jnp.asarray(seed) for n, seed in seeds.items()}
        function = FUNCTIONS[name]

        def gradient(point: Named, seeds: Named) -> Named:
            results, back = jax.vjp(lambda p: {n: function({**rest, **p})[n] for n in seeds}, point)
            del results
            return back(dict(seeds))[0]

        self._gradient = jax.jit(gradient)
        self.found = {n: np.asarray(v) for n, v in self._gradient(self._point, self._seeds).items()}

    def seconds(self) -> float:
        return processor_seconds(lambda: self._gradient(self._point, self._seeds))
