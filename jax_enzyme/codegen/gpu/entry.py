"""The kernels that are launched: one per stage of a device function, around what one thread does.

    before    define i64 @je.primal(ptr %x, ptr %y)          grid (gx, gy, gz), two batch dimensions

    after     define ptx_kernel void @je_kernel_0(ptr noalias %x, ptr noalias %y,
                                                  i64 %size, i64 %x0, i64 %y0, i64 %x1, i64 %y1)
                %b = udiv ctaid.x, gx                        ; the batch element
                %i0 = udiv %b, %size,  %i1 = urem %b, %size
                ... je.primal(%x + %i0 * %x0 + %i1 * %x1, ...) ...

A batch is a factor of the grid's x extent, the one with room: 2^31 - 1 blocks in all. So it is one launch whatever its
dimensions, and a block belongs to one batch element. In what a thread runs, `ctaid.x` is taken modulo gx.

Parameters after the buffers: the sizes of all batch dimensions but the outermost, then per dimension, outermost first,
the strides of all buffers in bytes. The handler fills them in (`csrc/gpu_kernels.cc`).
"""

from __future__ import annotations

from collections.abc import Sequence

from jax_enzyme.codegen.gpu.architecture import Target
from jax_enzyme.ir import types as T
from jax_enzyme.ir import values as V
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.device import DeviceFunction
from jax_enzyme.ir.instructions import Call, CallBase, Fence, Instruction
from jax_enzyme.ir.module import Function, Module, callee_name
from jax_enzyme.ir.values import Argument, BasicBlock, Value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.rules.effects import Effect, effect
from jax_enzyme.transform.device.registers import WARP_ADD
from jax_enzyme.transform.rewriting import replace_values

_BLOCK_INDEX = "llvm.nvvm.read.ptx.sreg.ctaid.x"
_MEETINGS = frozenset((Effect.BARRIER, Effect.VOTE, Effect.SHUFFLE, Effect.FENCE))
_TRAP = T.FunctionType(T.VOID, ())


def entry_name(stage: int) -> str:
    """What the kernel of a stage is called in PTX."""
    return f"je_kernel_{stage}"


def add_entries(module: Module, function: DeviceFunction, dimensions: int, target: Target) -> None:
    """Adds the kernels of all stages to a private copy of the function's module, for so many batch dimensions."""
    block = Declarations(module).function(_BLOCK_INDEX, T.FunctionType(T.I32, ()))
    block.return_attributes = ()  # the range is that of the grid without a batch
    defined = [f for f in module.functions.values() if not f.name.startswith(WARP_ADD)]
    meets = any(_meets(i) for f in defined for i in f.instructions())
    if dimensions:
        _wrap_block_index(module, block, function.shape.grid[0])
    if meets:
        _share_written(module, function)
    for stage, symbol in enumerate(function.symbols):
        name = entry_name(stage)
        extent = function.shape_of(stage).grid[0]
        module.functions[name] = _entry(
            module, name, module.functions[symbol], function, block, extent, dimensions, target
        )


def _meets(instruction: Instruction) -> bool:
    """Whether other threads may see what this one did, and this one what they did."""
    return isinstance(instruction, Fence) or effect(callee_name(instruction)) in _MEETINGS


def _share_written(module: Module, function: DeviceFunction) -> None:
    """LLVM takes what is behind a `noalias` parameter for untouched by any call, a barrier included: where threads
    meet, what they write is not. A kernel's own `__restrict__` says less than what is known of its inputs."""
    written = {s: tuple(b.io != "in" for b in function.buffers) for s in function.symbols}
    for thread in module.functions.values():
        masks = written.get(thread.name, (True,) * len(thread.arguments))
        for argument, is_written in zip(thread.arguments, masks, strict=True):
            if is_written:
                argument.attributes = tuple(w for w in argument.attributes if w != "noalias")
        for call in thread.instructions():
            if isinstance(call, CallBase):
                call.parameter_attributes = [tuple(w for w in p if w != "noalias") for p in call.parameter_attributes]


def _wrap_block_index(module: Module, block: Function, extent: int) -> None:
    """What one element of the batch sees."""
    for function in module.functions.values():
        replaced: dict[Value, Value] = {}
        for place in function.blocks:
            kept: list[Instruction] = []
            for instruction in place.instructions:
                kept.append(instruction)
                if isinstance(instruction, Call) and instruction.callee is block:
                    at = Builder(BasicBlock())
                    whole = at.call(block, [])
                    replaced[instruction] = at.binary("urem", whole, const_int(T.I32, extent))
                    kept[-1:] = at.block.instructions
            place.instructions = kept
        replace_values(function, replaced)


def _entry(
    module: Module,
    name: str,
    thread: Function,
    function: DeviceFunction,
    block: Function,
    extent: int,
    dimensions: int,
    target: Target,
) -> Function:
    pointers = [
        Argument(T.PointerType(target.buffers), a.attributes, i, name=b.name)
        for i, (a, b) in enumerate(zip(thread.arguments, function.buffers, strict=True))
    ]
    count = len(pointers)
    numbers = max(0, dimensions - 1) + dimensions * count
    extra = [Argument(T.I64, (), count + i) for i in range(numbers)]
    start, trap, done = BasicBlock(name="start"), BasicBlock(name="trap"), BasicBlock(name="done")
    at = Builder(start)
    operands: list[Value] = [p if p.type == T.PTR else at.cast("addrspacecast", p, T.PTR) for p in pointers]
    if dimensions:
        element = at.binary("udiv", at.call(block, []), const_int(T.I32, extent))
        operands = _shifted(at, operands, at.cast("zext", element, T.I64), extra, dimensions)
    status = at.call(thread, operands)
    at.cond_br(at.icmp("ne", status, const_int(T.I64, 0)), trap, done)
    Builder(trap).call(Declarations(module).function("llvm.trap", _TRAP), [])
    Builder(trap).unreachable()
    Builder(done).ret()
    kind = T.FunctionType(T.VOID, tuple(a.type for a in (*pointers, *extra)))
    words = ("nounwind", *target.launch_words(function.shape.block))
    blocks = [start, trap, done]
    return Function(T.PTR, kind, [*pointers, *extra], blocks, (target.convention,), (), words, name=name)


def _shifted(
    at: Builder, pointers: Sequence[Value], element: Value, extra: Sequence[V.Argument], dimensions: int
) -> list[Value]:
    """The pointers of one batch element."""
    inner, strides = extra[: dimensions - 1], extra[dimensions - 1 :]
    indices: list[Value] = []
    for size in reversed(inner):
        indices.insert(0, at.binary("urem", element, size))
        element = at.binary("udiv", element, size)
    indices.insert(0, element)
    count = len(pointers)
    found: list[Value] = []
    for i, pointer in enumerate(pointers):
        for d, index in enumerate(indices):
            pointer = at.gep(T.I8, pointer, [at.binary("mul", index, strides[d * count + i])])
        found.append(pointer)
    return found
