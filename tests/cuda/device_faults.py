"""What a real device would hang at, or find in memory that nobody wrote, on the CPU: such a run fails.

lanes     a warp operation names lanes in its mask that neither come to it nor have come to the end: a device waits
          for them for ever
shared    shared memory holds anything when a block begins: here NaN, in all of its numbers
"""

from __future__ import annotations

from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir import values as V
from jax_enzyme.ir.builder import Builder, const_int, zero
from jax_enzyme.ir.device import DeviceFunction
from jax_enzyme.ir.module import Function, GlobalVariable, Module, callee_name
from jax_enzyme.ir.values import BasicBlock, Value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.transform.cuda.shuffles import WARP_SIZE
from jax_enzyme.transform.device.flat import is_dynamic
from jax_enzyme.transform.device.registers import WARP_WORDS, lane_number, thread_in_block
from jax_enzyme.transform.rewriting import Change, rewrite

_MASKED = (
    "__je_shuffle_", "__je_ballot", "__je_any", "__je_all", "__je_warp_sync", "llvm.nvvm.bar.warp.sync",
    "llvm.nvvm.shfl.sync.", "llvm.nvvm.vote.",
)  # fmt: skip
_DONE = "je.lanes.done"
MISSING = "je.lanes.missing"
"""The variable that says which lanes a warp waited for in vain."""
_SHARED = T.PointerType(3)


def watch(module: Module, function: DeviceFunction, entry: Builder) -> None:
    """Adds, in place, what finds such faults; `entry` begins what each thread does."""
    missing = GlobalVariable(T.PTR, T.I32, zero(T.I32), False, ("internal",), name=MISSING)
    module.globals[MISSING] = missing
    asks = [f for f in module.functions.values() if any(_is_masked(i) for i in f.instructions())]
    if asks:
        kind = T.ArrayType(-(-function.shape.threads // WARP_SIZE), T.I32)
        prefix = ("internal", "addrspace(3)")
        done = GlobalVariable(_SHARED, kind, V.Undef(kind), False, prefix, ("align 4",), name=_DONE)
        module.globals[_DONE] = done
    _poison(module, function, entry)
    if asks:
        at_end = module.functions[function.symbols[0]]
        for block in at_end.blocks:
            if isinstance(block.terminator, I.Return):
                block.instructions[-1:-1] = _leave(module, function).instructions
        for asking in asks:
            first = _first_asked(asking)
            rewrite(asking, lambda i, first=first: _asked(module, function, missing, i) if i in first else None)


def _poison(module: Module, function: DeviceFunction, entry: Builder) -> None:
    layout = DataLayout(module)
    shared = [g for g in module.globals.values() if g.type == _SHARED]
    kind = T.FunctionType(T.VOID, (T.PTR, T.I8, T.I64, T.I1))
    for variable in shared:
        size = function.shape.shared if is_dynamic(variable) else layout.alloc_size(variable.value_type)
        byte = 0 if variable.name == _DONE else 0xFF
        fill = Declarations(module).function("llvm.memset.p0.i64", kind, ())
        entry.call(fill, [_generic(variable), const_int(T.I8, byte), const_int(T.I64, size), const_int(T.I1, 0)])
        if variable.name == _DONE and function.shape.threads % WARP_SIZE:  # the last warp has no more lanes
            last = entry.offset(_generic(variable), size - 4)
            entry.store(const_int(T.I32, -1 << function.shape.threads % WARP_SIZE & 0xFFFFFFFF), last)
    if shared:
        meet = Declarations(module).function("llvm.nvvm.barrier0", T.FunctionType(T.VOID, ()), WARP_WORDS)
        entry.call(meet, [], attributes=("convergent",))


def _generic(variable: GlobalVariable) -> Value:
    return V.ConstantExpr(T.PTR, "addrspacecast", [variable])


def _is_masked(instruction: I.Instruction) -> bool:
    return callee_name(instruction).startswith(_MASKED)


def _own_warp(module: Module, function: DeviceFunction, at: Builder) -> Value:
    """The place of the lanes of this thread's warp that are done."""
    thread = thread_in_block(module, at, function.shape)
    warp = at.cast("zext", at.binary("lshr", thread, const_int(T.I32, 5)), T.I64)
    return at.gep(T.I32, _generic(module.globals[_DONE]), [warp])


def _leave(module: Module, function: DeviceFunction) -> BasicBlock:
    at = Builder(BasicBlock())
    bit = at.binary("shl", const_int(T.I32, 1), lane_number(module, at))
    at.insert(I.AtomicRMW(T.I32, "atomicrmw", [_own_warp(module, function, at), bit], "or", "monotonic"))
    return at.block


def _first_asked(function: Function) -> set[I.Instruction]:
    """The warp operations, those left out in front of which the same lanes are asked for in the same block."""
    found: dict[tuple[BasicBlock, Value | int], I.Instruction] = {}
    for block in function.blocks:
        for call in (i for i in block.instructions if _is_masked(i)):
            mask = call.operands[0]
            known = V.int_value(mask)
            found.setdefault((block, mask if known is None else known), call)
    return set(found.values())


def _asked(module: Module, function: DeviceFunction, missing: GlobalVariable, call: I.Instruction) -> Change:
    assert isinstance(call, I.Call)

    def change(at: Builder) -> Value:
        mask = call.arguments[0]
        here = at.call(Declarations(module).function("__je_active_mask", T.FunctionType(T.I32, ()), WARP_WORDS), [])
        there = at.binary("or", here, at.load(T.I32, _own_warp(module, function, at)))
        waits = at.binary("and", mask, at.binary("xor", there, const_int(T.I32, -1)))
        at.insert(I.AtomicRMW(T.I32, "atomicrmw", [missing, waits], "or", "monotonic"))
        return at.call(call.callee, call.arguments, attributes=("convergent",))

    return change
