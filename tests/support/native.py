"""Calls built functions through ctypes, with NumPy arrays and without JAX."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from jax_enzyme.codegen.loading import Built
from jax_enzyme.ir.arrays import Buffer

NUMPY = {
    "bool": np.bool_, "i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16, "i32": np.int32,
    "u32": np.uint32, "i64": np.int64, "u64": np.uint64, "bf16": ml_dtypes.bfloat16, "f16": np.float16,
    "f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128,
}  # fmt: skip
_ENTRY = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
)


class KernelStatus(Exception):
    """The entry returned this status: number, kind, and which batch element of those asked for."""

    def __init__(self, status: int) -> None:
        self.kind = status >> 32 & 0xFF
        super().__init__(f"status kind {self.kind}, number {status & 0xFFFFFFFF}")
        self.element = status >> 40 & 0xFFFFFF
        self.number = status & 0xFFFFFFFF


def call(built: Built, arrays: Sequence[Any], team: int | None = None) -> list[np.ndarray]:
    """Runs a function on the values of its input buffers (`in` and `inout`, in order); its results, in buffer order.
    `team` is the address of one (csrc/abi.h)."""
    return call_batched(built, arrays, batch=None, team=team)


def call_batched(
    built: Built,
    arrays: Sequence[Any],
    batch: int | None,
    batched: Sequence[bool] | None = None,
    bounds: tuple[int, int] | None = None,
    team: int | None = None,
) -> list[np.ndarray]:
    """The same over a batch. `batched[i]` says whether input i has the leading axis (all do by default; one that
    is also a result must); `bounds` is the part of the batch that is computed, the rest holds garbage."""
    inputs = [b for b in built.buffers if b.is_input]
    if len(arrays) != len(inputs):
        names = ", ".join(b.name for b in inputs)
        raise ValueError(f"{len(arrays)} arrays for {len(inputs)} inputs: {names}")
    mask = list(batched) if batched is not None else [True] * len(inputs)
    given = {id(b): (a, m) for b, a, m in zip(inputs, arrays, mask, strict=True)}
    storage: list[np.ndarray] = []
    strides: list[int] = []
    for buffer in built.buffers:
        value, per_item = given.get(id(buffer), (None, True))
        storage.append(_storage(buffer, value, batch if per_item else None))
        strides.append(buffer.nbytes if per_item else 0)
    pointers = (ctypes.c_void_p * len(storage))(*(s.ctypes.data for s in storage))
    steps = (ctypes.c_int64 * len(strides))(*strides)
    low, high = bounds if bounds is not None else (0, 1 if batch is None else batch)
    status = _ENTRY(built.address)(ctypes.addressof(pointers), ctypes.addressof(steps), low, high, team)
    if status != 0:
        raise KernelStatus(status)
    return [s for s, b in zip(storage, built.buffers, strict=True) if b.is_result]


def _storage(buffer: Buffer, value: Any, batch: int | None) -> np.ndarray:
    """An aligned array of its own: the value of an input, a pattern that no kernel should read for the rest."""
    shape = buffer.shape if batch is None else (batch, *buffer.shape)
    dtype = np.dtype(NUMPY[buffer.dtype])
    count = int(np.prod(shape, dtype=np.int64))
    raw = np.full(count * dtype.itemsize + 64, 0x7B, dtype=np.uint8)
    start = -raw.ctypes.data % 64
    out = raw[start : start + count * dtype.itemsize].view(dtype).reshape(shape)
    if value is not None:
        array = np.asarray(value, dtype=dtype)
        if array.shape != shape:
            raise ValueError(f"{buffer.name}: shape {array.shape}, expected {shape}")
        out[...] = array
    return out
