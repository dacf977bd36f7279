"""A stand-in for code generation: derivatives of kernels that are written in Python, by dual numbers, called back from
C.

It knows the calling convention of array functions and nothing of LLVM, so these tests find what is wrong between JAX
and the convention and nothing else. Its tape is a copy of the inputs, which a pullback uses: a tape that was batched or
ordered wrongly gives wrong derivatives. Before it stand the masks that it was made for, and a pullback of others makes
its results NaN.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from jax_enzyme.frontends import Program
from jax_enzyme.ir.arrays import (
    Augmented,
    Buffer,
    Derivation,
    Jvp,
    Pullback,
    Vjp,
    jvp_buffers,
    shadow_buffers,
    vjp_buffers,
)
from jax_enzyme.options import Options
from jax_enzyme.signature import NUMPY_NAMES, RETURN, Binding, Signature
from tests.jax.duals import parts, perturb, real

Body = Callable[..., Mapping[str, Any]]
Values = dict[int, np.ndarray]

_ENTRY = ctypes.CFUNCTYPE(
    ctypes.c_int64,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.POINTER(ctypes.c_int64),
    ctypes.c_int64,
    ctypes.c_int64,
    ctypes.c_void_p,
)


@dataclass(frozen=True)
class Code:
    """What `build` gives: an address, and what keeps it alive."""

    address: int
    callback: Any = field(compare=False)
    read: frozenset[int] = frozenset()


@dataclass(frozen=True)
class StandIn:
    """Bodies by symbol: functions of the inputs by name that return the outputs by name."""

    bodies: Mapping[str, Body]
    splits: bool
    calls: list[tuple[str, Derivation, int]] = field(default_factory=list, compare=False)

    def layout(
        self, program: Program, signature: Signature, binding: Binding, steps: Derivation, options: Options
    ) -> tuple[Buffer, ...]:
        buffers = _primal_buffers(signature, binding)
        for step in steps:
            match step:
                case Jvp():
                    buffers = jvp_buffers(buffers, step)
                case Augmented():
                    buffers = (*buffers, _tape(buffers, step))
                case Pullback():
                    buffers = _pullback_buffers(buffers, step)
                case Vjp():
                    buffers = vjp_buffers(buffers, step)
        return buffers

    def split(self, program: Program, signature: Signature, binding: Binding, step: Vjp, options: Options) -> bool:
        return self.splits

    def require_repeatable(
        self, program: Program, signature: Signature, binding: Binding, steps: Derivation, options: Options
    ) -> None:
        pass

    def widens(
        self, program: Program, signature: Signature, binding: Binding, steps: Derivation, options: Options
    ) -> bool:
        return False

    def build(
        self, program: Program, signature: Signature, binding: Binding, steps: Derivation, options: Options
    ) -> Code:
        layouts = [self.layout(program, signature, binding, steps[:n], options) for n in range(len(steps) + 1)]
        body = self.bodies[program.symbol]
        fixed = binding.constants
        buffers = layouts[-1]
        order = signature.order

        def entry(pointers: Any, strides: Any, lo: int, hi: int, team: Any) -> int:
            if hi < 0:  # a question about the kernel, as csrc/abi.h has it
                return 0
            self.calls.append((program.symbol, steps, hi - lo))
            for b in range(lo, hi):
                arrays = [_array(p, pointers[i] or 0, strides[i] * b, order) for i, p in enumerate(buffers)]
                inputs = {i: arrays[i].astype(object) for i, p in enumerate(buffers) if p.is_input}
                outputs = _run(steps, layouts, body, fixed, inputs, 0)
                for i, value in outputs.items():
                    if buffers[i].is_result:
                        arrays[i][...] = value.astype(arrays[i].dtype)
            return 0

        callback = _ENTRY(entry)
        address = ctypes.cast(callback, ctypes.c_void_p).value or 0
        return Code(address, callback)


@cache
def _primal_buffers(signature: Signature, binding: Binding) -> tuple[Buffer, ...]:
    dims = dict(binding.dims)
    constants = binding.constants
    kept = [p for p in signature.params if p.name not in constants]
    buffers = [
        Buffer(p.name, p.dtype, signature.shape(p.name, dims), p.direction, zero=p.direction == "out") for p in kept
    ]
    if signature.result not in (None, "status"):
        assert signature.result is not None
        buffers.append(Buffer(RETURN, signature.result, (), "out", zero=True))
    return tuple(buffers)


def _tape(base: tuple[Buffer, ...], step: Vjp) -> Buffer:
    return Buffer("tape", "u8", (len(_masks(step)) + sum(b.nbytes for b in base if b.is_input),), "out", "tape")


def _masks(step: Vjp) -> bytes:
    return bytes([*step.wanted, *step.seeded])


def _pullback_buffers(base: tuple[Buffer, ...], step: Vjp) -> tuple[Buffer, ...]:
    tape = _tape(base, step)
    return (Buffer("tape", tape.dtype, tape.shape, "in", "tape"), *shadow_buffers(base, step))


def _array(buffer: Buffer, pointer: int, offset: int, order: str) -> np.ndarray:
    dtype = np.dtype(NUMPY_NAMES[buffer.dtype])
    if not buffer.nbytes:
        return np.zeros(buffer.shape, dtype)
    memory = (ctypes.c_char * buffer.nbytes).from_address(pointer + offset)
    return np.ndarray(buffer.shape, dtype, memory, order="F" if order == "F" else "C")


def _run(
    steps: Derivation,
    layouts: list[tuple[Buffer, ...]],
    body: Body,
    fixed: Mapping[str, int],
    inputs: Values,
    level: int,
) -> Values:
    if not steps:
        named = {layouts[0][i].name: value for i, value in inputs.items()}
        found = body(np, **fixed, **named)
        return {i: np.asarray(found[b.name], object) for i, b in enumerate(layouts[0]) if b.is_result}

    def base(values: Values) -> Values:
        return _run(steps[:-1], layouts, body, fixed, values, level + 1)

    buffers, inner = layouts[len(steps)], layouts[len(steps) - 1]
    match steps[-1]:
        case Jvp():
            return _forward(base, buffers, inputs, level)
        case Augmented() as step:
            return {**base(inputs), len(inner): _pack(inner, inputs, step)}
        case Pullback() as step:
            moved = {i + len(inner) - 1: v for i, v in inputs.items() if i > 0}
            shifted = (*inner, *buffers[1:])
            out = _reverse(base, shifted, {**_unpack(inner, inputs[0], step), **moved}, level)
            return {i - len(inner) + 1: v for i, v in out.items()}
        case Vjp():
            return _reverse(base, buffers, inputs, level)


def _forward(base: Callable[[Values], Values], buffers: tuple[Buffer, ...], inputs: Values, level: int) -> Values:
    values = {i: v for i, v in inputs.items() if buffers[i].role == "primal"}
    for i, tangent in inputs.items():
        if buffers[i].role == "tangent":
            values[buffers[i].of] = perturb(values[buffers[i].of], tangent, level)
    found = {i: parts(v, level) for i, v in base(values).items()}
    tangents = {b.of: i for i, b in enumerate(buffers) if b.role == "tangent" and b.is_result}
    out = {i: value for i, (value, _) in found.items()}
    out.update({tangents[i]: tangent for i, (_, tangent) in found.items() if i in tangents})
    return out


def _reverse(base: Callable[[Values], Values], buffers: tuple[Buffer, ...], inputs: Values, level: int) -> Values:
    values = {i: v for i, v in inputs.items() if buffers[i].role == "primal"}
    seeds = {b.of: inputs[i] for i, b in enumerate(buffers) if b.role == "shadow" and i in inputs}
    out: Values = {}
    for i, buffer in enumerate(buffers):
        if buffer.role != "shadow" or not buffer.is_result:
            continue
        bar = np.zeros(buffer.shape, object)
        for index in np.ndindex(buffer.shape):
            for unit in (1.0, 1j) if buffer.dtype in ("c64", "c128") else (1.0,):
                direction = np.zeros(buffer.shape, object)
                direction[index] = unit
                moved = base({**values, buffer.of: perturb(values[buffer.of], direction, level)})
                for k, seed in seeds.items():
                    products = np.asarray(np.conjugate(seed) * parts(moved[k], level)[1], object)
                    bar[index] = bar[index] + unit * sum(real(p) for p in products.ravel())
        out[i] = bar
    return out


def _pack(base: tuple[Buffer, ...], inputs: Values, step: Vjp) -> np.ndarray:
    kept = (v.astype(NUMPY_NAMES[base[i].dtype]).tobytes() for i, v in sorted(inputs.items()))
    return np.frombuffer(b"".join([_masks(step), *kept]), np.uint8).astype(object)


def _unpack(base: tuple[Buffer, ...], tape: np.ndarray, step: Vjp) -> Values:
    data, offset, values = tape.astype(np.uint8).tobytes(), len(_masks(step)), {}
    fits = 1.0 if data[:offset] == _masks(step) else np.nan
    for i, buffer in enumerate(base):
        if buffer.is_input:
            chunk = np.frombuffer(data[offset : offset + buffer.nbytes], NUMPY_NAMES[buffer.dtype])
            value = chunk.reshape(buffer.shape).astype(object)
            values[i] = np.asarray(value * fits, object) if buffer.is_floating else value
            offset += buffer.nbytes
    return values
