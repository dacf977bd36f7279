"""Rows of two and four floats that each thread adds by one instruction, on devices that have it (`sm_90` on).

    before    a row of 4 floats: 4 shuffles for the numbers, 4 for the places, 4 additions (`ad.device.rows`)

    after     %addresses of all lanes that are here are multiples of 16?
                yes: red.relaxed.gpu.global.add.v4.f32 [%rd1], {%f1, %f2, %f3, %f4};
                no: as before

The instruction adds each number atomically, not the whole: no more is asked of what adds them one by one. A row of 16
bytes lies in one sector of memory either way. Longer rows stay: by several instructions they would come to sectors
more often.
"""

from __future__ import annotations

from dataclasses import replace

from jax_enzyme.ad.device.rows import ROW
from jax_enzyme.codegen.gpu.architecture import Target
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.values import BasicBlock, InlineAsm
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.transform.device.registers import WARP_WORDS

_OLDEST = 90
_PTX = 81
"""The first version that has the instruction: drivers from 530 on read it."""
_LENGTHS = (2, 4)
_GLOBAL = T.PointerType(1)


def add_vectors(module: Module, device: Target) -> Target:
    """Rewrites the functions that add such rows, in place. What the module needs of the device then."""
    if device.vendor != "NVIDIA" or int(device.arch.removeprefix("sm_")) < _OLDEST:
        return device
    rows = [f for f in module.functions.values() if f.name.startswith(ROW) and len(f.arguments) - 2 in _LENGTHS]
    rows = [f for f in rows if f.arguments[-1].type == T.FLOAT]
    for function in rows:
        _rewrite(module, function)
    return replace(device, ptx=max(device.ptx, _PTX)) if rows else device


def _rewrite(module: Module, function: Function) -> None:
    base, offset, *numbers = function.arguments
    count, declarations = len(numbers), Declarations(module)
    active = declarations.function("__je_active_mask", T.FunctionType(T.I32, ()), WARP_WORDS)
    ballot = declarations.function("__je_ballot", T.FunctionType(T.I32, (T.I32, T.I32)), WARP_WORDS)
    entry, wide = BasicBlock(name="aligned"), BasicBlock(name="wide")
    at = Builder(entry)
    row = at.gep(T.I8, base, [offset])
    rest = at.binary("and", at.cast("ptrtoint", row, T.I64), const_int(T.I64, 4 * count - 1))
    fits = at.cast("zext", at.icmp("eq", rest, const_int(T.I64, 0)), T.I32)
    here = at.call(active, [], attributes=("convergent",))
    all_fit = at.icmp("eq", at.call(ballot, [here, fits], attributes=("convergent",)), here)
    at.cond_br(all_fit, wide, function.blocks[0])
    at = Builder(wide)
    registers = ", ".join(f"${n + 1}" for n in range(count))
    text = f"red.relaxed.gpu.global.add.v{count}.f32 [$0], {{{registers}}};"
    code = InlineAsm(T.PTR, text, f"l,{'f,' * count}~{{memory}}", ("sideeffect",))
    kind = T.FunctionType(T.VOID, (_GLOBAL, *(T.FLOAT,) * count))
    at.call(code, [at.cast("addrspacecast", row, _GLOBAL), *numbers], kind)
    at.ret()
    function.blocks[:0] = [entry, wide]
