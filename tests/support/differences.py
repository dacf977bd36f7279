"""Directional derivatives by finite differences, each with an estimate of its own error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Estimate:
    """A derivative, entry by entry, and about how far each entry may be off."""

    value: np.ndarray
    error: np.ndarray


def derivative(f: Callable[[float], np.ndarray], step: float = 1e-2, levels: int = 9, shrink: float = 1.6) -> Estimate:
    """df/dt at 0, by central differences extrapolated to step zero (Ridders' tableau, per entry).

    Column k of the tableau removes the error of order 2k. Of all the entries of the tableau the one is kept that
    differs least from its parents; that difference is the error estimate.
    """
    best: np.ndarray | None = None
    error = np.empty(0)
    previous: list[np.ndarray] = []
    for level in range(levels):
        h = step / shrink**level
        row = [(np.asarray(f(h), np.float64) - np.asarray(f(-h), np.float64)) / (2 * h)]
        if best is None:
            best, error = row[0], np.full(row[0].shape, np.inf)
        factor = 1.0
        for column, parent in enumerate(previous):
            factor *= shrink**2
            value = (factor * row[column] - parent) / (factor - 1)
            away = np.maximum(np.abs(value - row[column]), np.abs(value - parent))
            better = away < error
            best, error = np.where(better, value, best), np.where(better, away, error)
            row.append(value)
        previous = row
    assert best is not None
    return Estimate(best, error)
