"""What one row of the corpus says about a kernel."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent

Value = Any  # a NumPy array, a float, or an int: what the kernel's caller passes for one parameter


@dataclass(frozen=True)
class Case:
    """One kernel of the corpus, with inputs at which it is smooth.

    `inputs` makes the caller's arguments, by name: arrays, floats for active scalars, ints for static ones. It must
    stay away from kinks (ties, zero crossings, exits about to change), since the tests take finite differences.
    `flags` go to the compiler; a case in single precision names them, and its reference is the same source in double.
    """

    name: str
    signature: str
    inputs: Callable[[np.random.Generator], Mapping[str, Value]]
    file: str = ""
    symbol: str = ""
    flags: tuple[str, ...] = ()
    tolerance: float = 1e-8
    step: float = 1e-2

    @property
    def path(self) -> Path:
        return HERE / (self.file or f"{self.name}.c")

    @property
    def entry(self) -> str:
        return self.symbol or self.name

    @property
    def single(self) -> bool:
        """Whether the kernel computes in single precision."""
        return "f32" in self.signature

    @cached_property
    def arguments(self) -> dict[str, Value]:
        """The inputs, the same in every process, in signature order."""
        made = dict(self.inputs(self.generator()))
        real = np.float32 if self.single else np.float64
        return {name: real(v) if isinstance(v, float) else _narrow(v, self.single) for name, v in made.items()}

    def generator(self, salt: int = 0) -> np.random.Generator:
        return np.random.default_rng([zlib.crc32(self.name.encode()), salt])

    def __str__(self) -> str:
        return self.name


def _narrow(value: Value, single: bool) -> Value:
    """Floating arrays in the case's precision; everything else as it is."""
    if isinstance(value, np.ndarray) and value.dtype == np.float64 and single:
        return value.astype(np.float32)
    return value
