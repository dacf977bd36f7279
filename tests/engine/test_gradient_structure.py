"""What makes gradients fast, held by their structure: never by time."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from jax_enzyme.codegen import derived
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.arrays import Augmented
from jax_enzyme.ir.module import Module
from tests.kernels.corpus import case
from tests.support.through_engine import Specialised


def specialised(name: str, **arguments: Any) -> Specialised:
    """A kernel of the corpus at other sizes."""
    row = case(name)
    inputs: Mapping[str, Any] = row.arguments | arguments
    return Specialised.of(dataclasses.replace(row, inputs=lambda r: inputs))


def gradient(name: str, **arguments: Any) -> Module:
    """The module of its gradient in one function."""
    kernel = specialised(name, **arguments)
    return derived.derived(kernel.program, kernel.signature, kernel.binding, (kernel.vjp,)).module


def calls(module: Module, name: str) -> list[I.CallBase]:
    found = (i for f in module.functions.values() for i in f.instructions())
    return [i for i in found if isinstance(i, I.CallBase) and i.callee.name == name]


def test_the_tape_is_not_cleared() -> None:
    """Five sweeps over 20 x 20 keep more than the stack holds, and each buffer's shadow is given: nothing is zeroed."""
    module = gradient("gauss_seidel", sweeps=5, f=np.ones((20, 20)), u=np.ones((20, 20)))
    assert len(calls(module, "malloc")) == 1
    assert not calls(module, "calloc")


def test_a_test_in_two_places_ends_a_loop() -> None:
    """Of the factorisation's loop over rows LLVM copies the end into both arms of what is before it. Its length is
    known all the same, and with it that no later iteration overwrites the rows that are read: none is kept."""
    n = 40
    kernel = specialised("cholesky", a=np.eye(n))
    assert kernel.splits(kernel.vjp)
    tape = [b for b in kernel.build(Augmented(kernel.vjp.wanted, kernel.vjp.seeded)).buffers if b.role == "tape"]
    assert sum(b.nbytes for b in tape) < 3 * 8 * n * n
