"""Which calls stay calls while LLVM looks for loop invariants.

    for (i = 0; i < n; i++)            A loop cannot leave a loop, but a call can: LLVM moves it out in front
        y[i] = x[i] / mag(x, n);       if `mag` only reads, and only what the loop does not write. Inlined, it stays.

So functions with loops that are called in loops are inlined in a second round, after an optimisation; calls outside
loops, functions without loops and functions that write to memory which is not their own at once, so that what is known
of the buffers reaches the calls that stay.
"""

from __future__ import annotations

from collections.abc import Iterator

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.ir.inlining import without_attributes
from jax_enzyme.ir.instructions import Alloca, Call, Cast, GetElementPtr, Store
from jax_enzyme.ir.module import Function, Module, callers_of
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import BasicBlock, Value

_INLINE = "alwaysinline"


def keep_invariant_calls(module: Module) -> bool:
    """Changes a module that is marked for inlining: calls in loops of functions with loops stay. False: none."""
    callers = callers_of(module.functions.values())
    cyclic = (f for f in module.functions.values() if not f.is_declaration and any(_cyclic_blocks(f)))
    heavy = reached(cyclic, lambda f: callers.get(f, ()))
    writing = reached((f for f in module.functions.values() if _writes(f)), lambda f: callers.get(f, ()))
    repeated = {
        callee
        for caller in module.functions.values()
        if caller in heavy
        for block in _cyclic_blocks(caller)
        for _, callee in _calls(block)
        if callee in heavy and callee not in writing and _INLINE in callee.attributes
    }
    for caller in module.functions.values():
        if repeated.isdisjoint(callee for block in caller.blocks for _, callee in _calls(block)):
            continue
        cyclic = set(_cyclic_blocks(caller))
        for block in caller.blocks:
            for call, callee in _calls(block):
                if callee in repeated and block not in cyclic:
                    call.attributes = (_INLINE, *call.attributes)
    for function in repeated:
        rest = without_attributes(module, function.attributes, frozenset({_INLINE}))
        function.attributes = (*rest, "noinline")
    return bool(repeated)


def _writes(function: Function) -> bool:
    """Whether a function itself stores to memory other than its local variables, as far as addresses tell."""
    return any(isinstance(i, Store) and not isinstance(_base(i.operands[1]), Alloca) for i in function.instructions())


def _base(pointer: Value) -> Value:
    while isinstance(pointer, GetElementPtr | Cast):
        pointer = pointer.operands[0]
    return pointer


def _calls(block: BasicBlock) -> Iterator[tuple[Call, Function]]:
    for instruction in block.instructions:
        if isinstance(instruction, Call) and isinstance(callee := instruction.callee, Function):
            yield instruction, callee


def _cyclic_blocks(function: Function) -> Iterator[BasicBlock]:
    if function.is_declaration:
        return
    cfg = Cfg(function)
    for block in cfg.rpo:
        if cfg.reaches(block, block):
            yield block
