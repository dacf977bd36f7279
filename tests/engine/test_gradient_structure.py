"""What makes gradients fast, held by their structure: never by time."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from jax_enzyme.codegen import derived
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.module import Module
from tests.kernels.corpus import case
from tests.support.through_engine import Specialised


def gradient(name: str, **arguments: Any) -> Module:
    """The module of the gradient in one function of a kernel of the corpus, at other sizes."""
    row = case(name)
    inputs: Mapping[str, Any] = row.arguments | arguments
    kernel = Specialised.of(dataclasses.replace(row, inputs=lambda r: inputs))
    return derived.derived(kernel.program, kernel.signature, kernel.binding, (kernel.vjp,)).module


def calls(module: Module, name: str) -> list[I.CallBase]:
    found = (i for f in module.functions.values() for i in f.instructions())
    return [i for i in found if isinstance(i, I.CallBase) and i.callee.name == name]


def test_the_tape_is_not_cleared() -> None:
    """LU of 16 x 16 keeps more than the stack holds, and has a shadow for every buffer given: nothing is zeroed."""
    module = gradient("lu", a=np.eye(16) * 16)
    assert len(calls(module, "malloc")) == 1
    assert not calls(module, "calloc")
