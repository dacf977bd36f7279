"""Arguments of BLAS routines: memory with gaps, where what no routine may touch is no number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.generic]


@dataclass
class Numbers:
    """Memory behind a pointer to numbers: `mask` says which of its elements the routine may read or write, `real` which
    of these have no imaginary part by definition, `rows` how many rows a matrix has."""

    values: Array
    mask: NDArray[np.bool_]
    real: NDArray[np.bool_] | None = None
    rows: int = 0

    @property
    def referenced(self) -> Array:
        return self.values[self.mask]

    def like(self, referenced: Array | float, gap: float = np.nan) -> Array:
        """An array of the same memory with these numbers, and `gap` wherever the routine may not go."""
        result = np.full_like(self.values, gap)
        result[self.mask] = referenced
        return result

    def with_gap(self, array: Array, gap: float) -> Array:
        """A copy of such an array with another number in the gaps."""
        return self.like(array[self.mask], gap)


def random(rng: np.random.Generator, shape: int, dtype: np.dtype) -> Array:
    values = rng.standard_normal(shape)
    if dtype.kind == "c":
        values = values + 1j * rng.standard_normal(shape)
    return values.astype(dtype)


def _numbers(rng: np.random.Generator, mask: NDArray[np.bool_], dtype: np.dtype) -> Numbers:
    found = Numbers(np.zeros(mask.size, dtype), mask)
    found.values = found.like(random(rng, int(mask.sum()), dtype))
    return found


def vector(rng: np.random.Generator, n: int, inc: int, dtype: np.dtype) -> Numbers:
    mask = np.zeros(max(1, 1 + (max(n, 1) - 1) * abs(inc)) + 2, bool)
    mask[np.arange(n) * abs(inc)] = True
    return _numbers(rng, mask, dtype)


def matrix(rng: np.random.Generator, rows: int, columns: int, ld: int, dtype: np.dtype, part: str = "A") -> Numbers:
    """`part` is A for all, L or U for a triangle, l or u for one without its diagonal."""
    i, j = np.indices((ld, columns))
    inside = {"A": i >= 0, "L": i >= j, "U": i <= j, "l": i > j, "u": i < j}[part] & (i < rows)
    found = _numbers(rng, inside.T.ravel() if columns else np.zeros(1, bool), dtype)
    found.rows = rows
    return found


def scalar(value: complex, dtype: np.dtype) -> Numbers:
    return Numbers(np.array([value], dtype), np.array([True]))
