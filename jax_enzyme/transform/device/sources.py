"""Where shared memory is a copy of an input, the reverse sweep reads the input again.

    before    s[y][x] = a[row * n + p + x]; barrier(); ... s[y][k] ...
    after     the same, and beside each read of s a note that it is what a[row * n + p + k] holds (`ir.sources`)

The kernel itself goes on to read the tile, and cotangents go through the tile: that is what it is for. But a tile is
overwritten in the next round, so that its numbers would have to be kept, of every thread and every read, and inputs can
be read again. What is known of the tile is found as on the CPU (`transform.cuda.tiles`).
"""

from __future__ import annotations

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.sources import note_source
from jax_enzyme.signature.launch import Shape
from jax_enzyme.transform.cuda import marks
from jax_enzyme.transform.cuda.tiles import read_at_source
from jax_enzyme.transform.device.flat import SHARED
from jax_enzyme.transform.device.registers import LANE, REGISTER

_NAMES = {
    **{f"{REGISTER}{kind}.{axis}": f"je.{kind}.{axis}" for kind in ("tid", "ctaid") for axis in marks.AXES},
    LANE: marks.LANE,
    "llvm.nvvm.barrier.cta.sync.aligned.all": marks.MEET_BLOCK,
    "llvm.nvvm.barrier.cta.sync.all": marks.MEET_BLOCK,
    "llvm.nvvm.barrier0": marks.MEET_BLOCK,
    **{f"__je_barrier_{vote}": f"{marks.MEET_BLOCK}.{vote}" for vote in ("count", "and", "or")},
}
"""What the same is called where the CPU's transformations look at it."""


def with_sources(module: Module, symbol: str, shape: Shape, inputs: tuple[bool, ...]) -> Module:
    """A module of canonical form in which reads of tiles say where else their values are. `inputs` are the parameters
    that nothing writes to."""
    if not any(name.startswith(SHARED) for name in module.globals):
        return module
    work = clone(module)
    kernel = work.functions[symbol]
    renamed = {f: f.name for f in work.functions.values() if f.name in _NAMES}
    words = {a: a.attributes for a in kernel.arguments}
    for function in renamed:
        function.name = _NAMES[function.name]
    for argument, is_input in zip(kernel.arguments, inputs, strict=True):
        if is_input:
            argument.attributes = (*argument.attributes, "readonly")

    def note(load: I.Load, value: I.Instruction) -> None:
        note_source(work, load, value)

    read_at_source(work, kernel, shape, [g for n, g in work.globals.items() if n.startswith(SHARED)], note)
    for function, name in renamed.items():
        function.name = name
    for argument, attributes in words.items():
        argument.attributes = attributes
    return work
