"""Second derivatives in every order of modes, and third ones, by the engine alone: it differentiates what it emits.

With x the inputs of f, w a cotangent of its outputs, and u and v two directions, all four are w^T D^2 f(x)[u, v]:

    fwd-over-rev   the derivative of J(x)^T w in the direction v, times u
    fwd-over-fwd   the derivative of J(x) u in the direction v, times w
    rev-over-fwd   the gradient of <w, J(x) u>, times v
    rev-over-rev   the gradient of <u, J(x)^T w>, times v
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jax_enzyme.codegen import derived
from jax_enzyme.ir.arrays import Buffer, Derivation, Jvp, Step, Vjp
from tests.kernels.case import Case
from tests.support.native import call
from tests.support.through_engine import Specialised

ORDERS = ("fwd-over-rev", "fwd-over-fwd", "rev-over-fwd", "rev-over-rev")


class Second:
    """One kernel at one point, with fixed w, u and v."""

    def __init__(self, kernel: Specialised, case: Case) -> None:
        self._kernel = kernel
        self._arguments = case.arguments
        r = case.generator(9)
        self._w, self._u, self._v = ([r.normal(size=b.shape) for b in kernel.buffers] for _ in range(3))

    def product(self, order: str) -> float:
        """w^T D^2 f(x)[u, v]."""
        first: Step = self._kernel.vjp if order.endswith("rev") else self._kernel.jvp
        layout = self._layout((first,))
        moving = tuple(map(self._moves, layout))
        found = tuple(b.is_result and b.is_floating and b.role in ("tangent", "shadow") for b in layout)
        weights = self._u if order.endswith("rev") else self._w
        if order.startswith("fwd"):
            results = self._run((first, Jvp(moving)), layout, lambda i: self._v[layout[i].of])
            return self._sum(results, layout, "tangent", weights, found)
        results = self._run((first, Vjp(moving, found)), layout, lambda i: weights[layout[i].of])
        return self._sum(results, layout, "shadow", self._v, moving)

    def pulled(self, t: float) -> np.ndarray:
        """J(x + t v)^T w, the cotangents of all inputs one after the other."""
        first = (self._kernel.vjp,)
        built = self._kernel.build(*first)
        given = [self._first(b) + (t * self._v[b.of] if self._moves(b) else 0) for b in built.buffers if b.is_input]
        results = zip((b for b in built.buffers if b.is_result), call(built, given), strict=True)
        return np.concatenate([np.ravel(value) for b, value in results if b.role == "shadow"])

    def pulled_tangent(self) -> np.ndarray:
        """The derivative of `pulled` at zero, by forward mode over reverse mode."""
        layout = self._layout((self._kernel.vjp,))
        moving = tuple(map(self._moves, layout))
        results = self._run((self._kernel.vjp, Jvp(moving)), layout, lambda i: self._v[layout[i].of])
        found = [value for b, value in results if b.role == "tangent" and layout[b.of].role == "shadow"]
        return np.concatenate([np.ravel(value) for value in found])

    def third(self, mode: str) -> float:
        """w^T D^3 f(x)[u, v, v]: forward mode twice over the first derivative, in a `mode`."""
        first: Step = self._kernel.vjp if mode == "rev" else self._kernel.jvp
        inner = self._layout((first,))
        moving = Jvp(tuple(map(self._moves, inner)))
        outer = self._layout((first, moving))
        again = Jvp(tuple(b.role == "primal" and moving.tangents[b.of] for b in outer))
        built = self._kernel.build(first, moving, again)

        def given(buffer: Buffer) -> np.ndarray:
            below = outer[buffer.of]
            if buffer.role == "tangent" or below.role == "tangent":
                return self._v[inner[below.of].of]
            return self._first(inner[below.of])

        results = call(built, [given(b) for b in built.buffers if b.is_input])
        weights = self._u if mode == "rev" else self._w
        role = "shadow" if mode == "rev" else "tangent"
        total = 0.0
        for buffer, value in zip((b for b in built.buffers if b.is_result), results, strict=True):
            below = outer[buffer.of]
            base = inner[below.of]
            if buffer.role == below.role == "tangent" and base.role == role and base.is_result and base.is_floating:
                total += float(np.sum(value * weights[base.of]))
        return total

    def _moves(self, buffer: Buffer) -> bool:
        return buffer.role == "primal" and self._is_point(buffer)

    def _is_point(self, buffer: Buffer) -> bool:
        base = self._kernel.buffers[buffer.of]
        return base.is_input and base.is_floating and buffer.is_input

    def _layout(self, steps: Derivation) -> tuple[Buffer, ...]:
        k = self._kernel
        return derived.layout(k.program, k.signature, k.binding, steps, k.options)

    def _run(
        self, steps: Derivation, first: tuple[Buffer, ...], vector: Callable[[int], np.ndarray]
    ) -> list[tuple[Buffer, np.ndarray]]:
        """Results of a second derivative; `vector` gives tangents or cotangents by buffers of the first."""
        built = self._kernel.build(*steps)
        given = [self._first(first[b.of]) if b.role == "primal" else vector(b.of) for b in built.buffers if b.is_input]
        return list(zip((b for b in built.buffers if b.is_result), call(built, given), strict=True))

    def _first(self, buffer: Buffer) -> np.ndarray:
        """What the first derivative is called with."""
        match buffer.role:
            case "primal":
                return np.asarray(self._arguments[self._kernel.buffers[buffer.of].name])
            case "tangent":
                return self._u[buffer.of]
            case _:
                return self._w[buffer.of]

    def _sum(
        self,
        results: list[tuple[Buffer, np.ndarray]],
        first: tuple[Buffer, ...],
        role: str,
        weights: list[np.ndarray],
        found: tuple[bool, ...],
    ) -> float:
        pairs = [(v, weights[first[b.of].of]) for b, v in results if b.role == role and found[b.of]]
        return float(sum(np.sum(value * weight) for value, weight in pairs))
