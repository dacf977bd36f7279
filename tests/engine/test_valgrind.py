"""Gradients under valgrind, as programs of their own: no byte out of bounds, none read before it is set, none lost."""

from __future__ import annotations

import subprocess
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest

from jax_enzyme.codegen import derived
from tests.kernels.corpus import case
from tests.support import standalone, through_engine
from tests.support.levels import at_level
from tests.support.three_way import directions, reference
from tests.support.tools import need

pytestmark = pytest.mark.slow

NAMES = (
    "bisection", "csr_matvec", "fft", "jacobi_swap", "lu_pivot", "malloc_scratch", "memory_moves", "newton",
    "quicksort", "struct_stack",
)  # fmt: skip


@pytest.mark.parametrize(("name", "level"), [*zip(NAMES, cycle(("", "-O3 -mcpu=x86_64_v3")), strict=False)])
def test_clean(name: str, level: str, tmp_path: Path) -> None:
    need("valgrind")
    row = case(name)
    if level:
        row = at_level(row, level, tmp_path)
    kernel = through_engine.Specialised.of(row)
    function = derived.derived(kernel.program, kernel.signature, kernel.binding, (kernel.vjp,), kernel.options)
    model = reference(row.path, row.entry, row.signature, row.flags)
    _, weights = directions(row, model, model(row.arguments), salt=1)
    expected = through_engine.subject(row).vjp(row.arguments, weights)
    program = standalone.build(function, tmp_path)
    try:
        inputs = standalone.named(row.arguments, weights, function)
        results = standalone.run(program, function, inputs, standalone.VALGRIND)
    except subprocess.CalledProcessError as error:
        pytest.fail(error.stderr[:4000])
    roles = [(b.role, b.of) for b in function.buffers if b.is_result]
    for (role, index), value in zip(roles, results, strict=True):
        if role == "shadow":
            named = expected[kernel.buffers[index].name]
            size = float(np.max(np.abs(named), initial=0))
            np.testing.assert_allclose(value, named, rtol=1e-9, atol=1e-12 * size)
