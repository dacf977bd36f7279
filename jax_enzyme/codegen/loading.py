"""Object code in this process: a `Built` that can be called."""

from __future__ import annotations

from jax_enzyme.classes import dataclass, field
from jax_enzyme.codegen.entry import ENTRY, INITIALISER
from jax_enzyme.codegen.jit import Code, jit
from jax_enzyme.codegen.stored import Stored
from jax_enzyme.ir.arrays import Buffer


@dataclass(frozen=True)
class Built:
    """A function in this process: its code stays as long as this. `key` is the same in every process that would build
    the same. `read`: the buffers that are `inout` with contents that mean nothing afterwards, and that it leaves as
    they are all the same: whoever calls it need not copy them."""

    code: Code = field(repr=False)
    key: str
    buffers: tuple[Buffer, ...]
    read: frozenset[int]

    @property
    def address(self) -> int:
        """That of the entry of `csrc/abi.h`."""
        return self.code.address


def loaded(stored: Stored, key: str, libraries: tuple[str, ...] = ()) -> Built:
    """The function of an object, in this process; what it calls comes from these shared libraries first."""
    code = jit().code(stored.code, ENTRY, INITIALISER if stored.initialises else None, libraries)
    return Built(code, key, stored.buffers, stored.read)
