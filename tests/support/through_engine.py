"""Kernels under test without JAX: built, then called at their raw address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from jax_enzyme import frontends, signature
from jax_enzyme.codegen import derived
from jax_enzyme.codegen.loading import Built
from jax_enzyme.ir.arrays import Augmented, Buffer, Jvp, Pullback, Step, Vjp
from jax_enzyme.options import Options
from tests.kernels.case import Case
from tests.support.native import call
from tests.support.three_way import Arrays, Subject

RETURN = signature.RETURN


@dataclass(frozen=True)
class Specialised:
    """A kernel of the corpus with the dimensions and static integers of its arguments."""

    program: frontends.Program
    signature: signature.Signature
    binding: signature.Binding
    options: Options

    @staticmethod
    def of(case: Case, options: Options | None = None) -> Specialised:
        program = frontends.load(case.path, case.entry, flags=case.flags)
        return specialise(program, case.signature, case.arguments, options)

    def build(self, *steps: Step) -> Built:
        return derived.build(self.program, self.signature, self.binding, steps, self.options)

    def splits(self, step: Vjp) -> bool:
        return derived.split(self.program, self.signature, self.binding, step, self.options)

    @cached_property
    def buffers(self) -> tuple[Buffer, ...]:
        return derived.layout(self.program, self.signature, self.binding, (), self.options)

    @cached_property
    def jvp(self) -> Jvp:
        """All floating inputs have tangents."""
        return Jvp(tuple(b.is_floating and b.is_input for b in self.buffers))

    @cached_property
    def vjp(self) -> Vjp:
        """All floating outputs have cotangents, and all floating inputs want theirs."""
        return Vjp(self.jvp.tangents, tuple(b.is_floating and b.is_result for b in self.buffers))


def specialise(
    program: frontends.Program, text: str, arguments: Mapping[str, Any], options: Options | None = None
) -> Specialised:
    parsed = signature.parse(text)
    actuals = [_actual(arguments[p.name]) for p in parsed.caller_params]
    return Specialised(program, parsed, signature.bind(parsed, actuals, x64=True), options or Options())


def _actual(value: Any) -> signature.Actual:
    static = value if isinstance(value, int) else None
    return signature.Actual(np.shape(value), np.asarray(value).dtype.name, weak=isinstance(value, float), static=static)


def results(built: Built, values: Sequence[Any]) -> list[tuple[Buffer, np.ndarray]]:
    """What a call leaves, each with its buffer."""
    return list(zip((b for b in built.buffers if b.is_result), call(built, values), strict=True))


def subject(case: Case, split: bool = False, options: Options | None = None) -> Subject:
    """The case as the engine's own functions; with `split`, reverse mode in two sweeps where that is possible."""
    kernel = Specialised.of(case, options)
    base = kernel.buffers

    def primal(arguments: Mapping[str, Any]) -> dict[str, np.ndarray]:
        built = kernel.build()
        left = results(built, [arguments[b.name] for b in built.buffers if b.is_input])
        return _in_order({b.name: value for b, value in left})

    def jvp(arguments: Mapping[str, Any], tangents: Arrays) -> dict[str, np.ndarray]:
        built = kernel.build(kernel.jvp)
        left = results(built, [_value(b, base, arguments, tangents) for b in built.buffers if b.is_input])
        return {base[b.of].name: value for b, value in left if b.role == "tangent"}

    def vjp(arguments: Mapping[str, Any], cotangents: Arrays) -> dict[str, np.ndarray]:
        if split and kernel.splits(kernel.vjp):
            return two_sweeps(arguments, cotangents)
        built = kernel.build(kernel.vjp)
        left = results(built, [_value(b, base, arguments, cotangents) for b in built.buffers if b.is_input])
        return {base[b.of].name: value for b, value in left if b.role == "shadow"}

    def two_sweeps(arguments: Mapping[str, Any], cotangents: Arrays) -> dict[str, np.ndarray]:
        masks = (kernel.vjp.wanted, kernel.vjp.seeded)
        forward, back = kernel.build(Augmented(*masks)), kernel.build(Pullback(*masks))
        left = results(forward, [_value(b, base, arguments, {}) for b in forward.buffers if b.is_input])
        kept = {(b.role == "tape", b.of, b.name if b.role == "tape" else ""): value for b, value in left}
        passed: list[Any] = []
        for b in back.buffers:
            if b.is_input and b.role in ("final", "tape"):
                passed.append(kept[b.role == "tape", b.of, b.name if b.role == "tape" else ""])
            elif b.is_input:
                passed.append(_value(b, base, arguments, cotangents))
        return {base[b.of].name: value for b, value in results(back, passed) if b.role == "shadow"}

    return Subject(primal, jvp, vjp)


def _value(buffer: Buffer, base: tuple[Buffer, ...], arguments: Mapping[str, Any], vectors: Arrays) -> Any:
    """The value of an input buffer: an argument, or the tangent or cotangent of one."""
    name = base[buffer.of].name if buffer.of >= 0 else buffer.name
    return vectors[name] if buffer.role in ("tangent", "shadow") else arguments[name]


def _in_order(named: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The return value first, as the kernel object has it."""
    return {**({RETURN: named[RETURN]} if RETURN in named else {}), **named}
