"""Calls of functions on GPUs: the custom call for platforms CUDA and ROCm, and code for its handler.

Nothing is compiled when JAX lowers a program: which GPU it will run on, and of which vendor, is only known there. The
custom call carries the function's recipe and launch, and the handler asks for code when XLA prepares the program for a
device. So programs are lowered and exported where there is no GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import jax
import numpy as np

from jax_enzyme.errors import LoweringError
from jax_enzyme.ir.arrays import ITEM_BYTES
from jax_enzyme.xla_ffi.call import Batch, Target, invoke
from jax_enzyme.xla_ffi.function import Function
from jax_enzyme.xla_ffi.recipe import content_key, decode
from jax_enzyme.xla_ffi.registration import COUNTED, CUDA_TARGET, register


def call(function: Function, batch: Batch, operands: Sequence[jax.Array], target: str = CUDA_TARGET) -> list[jax.Array]:
    """Runs a function on a batch; `operands` and what comes back are in the order of its `operands` and `results`.

    One whose tape has a size that only data tell is another target, which counts first: it cannot be recorded into a
    command buffer. LoweringError for Options(sanitize=True), whose checks are for CPUs, and for a tape that is larger
    than the memory of the devices here.
    """
    from jax_enzyme.codegen.gpu.derived import call_layout  # LLVM takes a while to load

    base = function.base
    if base.options.sanitize:
        raise LoweringError(
            f"`{base.program.symbol}` has Options(sanitize=True), whose checks there are on CPUs only",
            base.program.source_name,
            'run the kernel on the CPU, `with jax.default_device(jax.devices("cpu")[0]):`, or join one without the '
            'option for GPUs, `checked.on("cuda", unchecked)`',
        )
    register()
    layout = call_layout(base.program, base.signature, base.binding, function.steps, base.options)
    _check_room(function, layout.tape_bytes * prod(batch.sizes))
    shape = layout.shape
    counting = (-1, 0) if layout.room is None else (layout.room, layout.count_shared)
    attributes = {
        "zero": np.array([b.zero for b in layout.buffers], np.int32),
        "growth": np.array(
            [prod(b.shape[1:]) * ITEM_BYTES[b.dtype] if b.grows else 0 for b in layout.buffers], np.int64
        ),
        "launch": np.array(
            [*shape.grid, *shape.block, shape.shared, layout.stages, layout.last_in_one_block, *counting], np.int64
        ),
    }
    name = target if layout.room is None else target + COUNTED
    return invoke(
        function, Target(name, content_key(function), layout.buffers, layout.visible, attributes), batch, operands
    )


def _check_room(function: Function, needed: int) -> None:
    memory = device_memory() if needed else None
    if memory is None or needed <= memory:
        return
    base = function.base
    raise LoweringError(
        f"the gradient of `{base.program.symbol}` keeps {needed} bytes for its reverse sweep, the device has {memory}",
        base.program.source_name,
        "differentiate it in parts, `jax.lax.map` over slices of a batch or several smaller launches; "
        "`print(kernel.inspect(...))` says which lines are kept",
    )


def device_memory() -> int | None:
    """Bytes that JAX may use on the largest GPU here; None where there is none, or none that says so."""
    try:
        devices = jax.local_devices(backend="gpu")
    except RuntimeError:
        return None
    known = (device.memory_stats() for device in devices)
    return max((s["bytes_limit"] for s in known if s and "bytes_limit" in s), default=None)


def make_code(recipe: str, device: str, dimensions: int, counts: bool = False) -> str | bytes:
    """The code of what a recipe describes, or of what `counts` the memory that this needs, for a device (`sm_87`,
    `gfx90a:sramecc+:xnack-`). The extension calls this when a program is prepared for it."""
    from jax_enzyme.codegen.gpu.derived import build_code

    function = decode(recipe)
    base = function.base
    return build_code(
        base.program, base.signature, base.binding, function.steps, base.options, device, dimensions, counts
    )
