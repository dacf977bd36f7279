"""What is launched: of a derivative, with each computation once before the branches that need it, and numbers that are
added to consecutive places row by row (`ad.device.rows`); and less the clears of buffers that are not needed."""

from __future__ import annotations

from dataclasses import replace

from jax_enzyme.ad.device.filled import without_needless_clears
from jax_enzyme.ad.device.rows import add_in_rows, adds, unrolled_for_rows
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.device import DeviceFunction
from jax_enzyme.ir.values import InlineAsm, Value
from jax_enzyme.transform.device import canonical, restore
from jax_enzyme.transform.device.before_branches import compute_before_branches
from jax_enzyme.transform.device.registers import WARP_ADD
from jax_enzyme.transform.input_writes import accesses_behind


def finished(function: DeviceFunction) -> DeviceFunction:
    """The same derivative so; itself where there is nothing of the kind, or where it has stages already."""
    symbol, *others = function.symbols
    code = [f for f in function.module.functions.values() if not f.name.startswith(WARP_ADD)]
    is_due = any(adds(i) or isinstance(i, I.Switch | I.CondBranch) for f in code for i in f.instructions())
    if others or not (is_due or any(b.zero for b in function.buffers)):
        return function
    form = canonical(function)
    if _ends_unseen(form):
        return function
    module = unrolled_for_rows(clone(form.module), symbol)
    target = module.functions[symbol]
    constant: set[Value] = set()
    constant.update(a for a in target.arguments if all(isinstance(i, I.Load) for i in accesses_behind(a, target)))
    changed = compute_before_branches(target, constant)
    if function.count is None:
        function = uncleared(function, form)
    if not add_in_rows(module, target, form.buffers) and not changed:
        return function
    restored, shape = restore(module, form.shape)
    return replace(form, module=restored, shape=shape, buffers=function.buffers)


def uncleared(function: DeviceFunction, form: DeviceFunction) -> DeviceFunction:
    """A device function, by its canonical form, less the clears that it does not need."""
    if _ends_unseen(form):
        return function
    module, (symbol,) = form.module, form.symbols
    buffers = without_needless_clears(module, module.functions[symbol], form.buffers, form.shape)
    return replace(function, buffers=buffers)


def _ends_unseen(form: DeviceFunction) -> bool:
    """Whether threads may end where control flow does not say so: by an instruction, or in PTX of the user's."""
    calls = (i for f in form.module.functions.values() for i in f.instructions() if isinstance(i, I.CallBase))
    return any(_may_end(call.callee) for call in calls)


def _may_end(callee: Value) -> bool:
    if isinstance(callee, InlineAsm):
        return any(word in callee.template for word in ("exit", "ret", "bra"))
    return callee.name == "llvm.nvvm.exit"
