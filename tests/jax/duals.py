"""Nested dual numbers over real and complex values: derivatives of any order of plain Python arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np


class Dual:
    """`value + tangent * e` with e**2 = 0. Every derivative has its own e, told apart by `level`."""

    __slots__ = ("level", "tangent", "value")

    def __init__(self, value: Any, tangent: Any, level: int) -> None:
        self.value, self.tangent, self.level = value, tangent, level

    def _parts(self, other: Any) -> tuple[Any, Any, Any, Any, int]:
        level = max(self.level, other.level if isinstance(other, Dual) else -1)
        return *split(self, level), *split(other, level), level

    def __add__(self, other: Any) -> Dual:
        if isinstance(other, np.ndarray):
            return NotImplemented  # the array's own operator goes over its elements
        a, da, b, db, level = self._parts(other)
        return Dual(a + b, da + db, level)

    def __mul__(self, other: Any) -> Dual:
        if isinstance(other, np.ndarray):
            return NotImplemented
        a, da, b, db, level = self._parts(other)
        return Dual(a * b, da * b + a * db, level)

    def __sub__(self, other: Any) -> Dual:
        return self + other * -1.0

    def __rsub__(self, other: Any) -> Dual:
        return self * -1.0 + other

    __radd__ = __add__
    __rmul__ = __mul__

    def conjugate(self) -> Dual:
        return Dual(np.conjugate(self.value), np.conjugate(self.tangent), self.level)

    @property
    def real(self) -> Dual:
        return Dual(real(self.value), real(self.tangent), self.level)


def real(value: Any) -> Any:
    return value.real


def split(value: Any, level: int) -> tuple[Any, Any]:
    """The value and the tangent at a level."""
    return (value.value, value.tangent) if isinstance(value, Dual) and value.level == level else (value, 0.0)


def perturb(array: np.ndarray, tangent: np.ndarray, level: int) -> np.ndarray:
    """An array of duals."""
    out = np.empty(array.shape, object)
    for index in np.ndindex(array.shape):
        out[index] = Dual(array[index], tangent[index], level)
    return out


def parts(array: np.ndarray, level: int) -> tuple[np.ndarray, np.ndarray]:
    """The values and the tangents of an array at a level."""
    value, tangent = np.empty(array.shape, object), np.empty(array.shape, object)
    for index in np.ndindex(array.shape):
        value[index], tangent[index] = split(array[index], level)
    return value, tangent
