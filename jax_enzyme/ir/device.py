"""Device functions: what one thread of a CUDA kernel does, between the front end and PTX.

A device function is an array function (`ir.arrays`) of one thread: one generic pointer into global memory per buffer,
in the order of `buffers`, and a status, which is 0 (a thread that returns anything else traps). It stays in NVVM's
dialect: address spaces, barriers, special registers. The launch is static, so that the extents of block and grid are
constants in it; `tid` and `ctaid` always lie within `shape`, as a batch is put underneath when PTX is made.

Derivatives are device functions of the same launch shape. One that needs all blocks to be done with one part before
any starts another has several `symbols`: stages, which take the same buffers and are launched in order, the last one
in one block where it says so.

How much memory some derivatives need depends on data. They have a *count*: another device function of the same
buffers, which is launched first and leaves in one of them the largest number that any thread needs. Buffers that `grow`
have as many rows as that number says.
"""

from __future__ import annotations

from jax_enzyme.classes import dataclass, replace
from jax_enzyme.ir.arrays import Buffer
from jax_enzyme.ir.module import Module
from jax_enzyme.signature.launch import Shape


@dataclass(frozen=True, eq=False)
class Count:
    """`function` adds nothing to any buffer but number `room`, an i64, which it makes as large as any thread needs."""

    function: DeviceFunction
    room: int


@dataclass(frozen=True, eq=False)
class DeviceFunction:
    """Not to be changed: others share it. `shape.shared` are the bytes of dynamic shared memory per block."""

    module: Module
    symbols: tuple[str, ...]
    buffers: tuple[Buffer, ...]
    shape: Shape
    count: Count | None = None
    last_in_one_block: bool = False

    def shape_of(self, stage: int) -> Shape:
        """The launch of a stage."""
        alone = self.last_in_one_block and stage == len(self.symbols) - 1
        return replace(self.shape, grid=(1, 1, 1)) if alone else self.shape

    @property
    def threads(self) -> int:
        """Threads of the whole grid."""
        x, y, z = self.shape.grid
        return x * y * z * self.shape.threads
