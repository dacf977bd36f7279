"""One derivative of a device function."""

from __future__ import annotations

from dataclasses import replace

from jax_enzyme.ad.device.counting import count_of, widened
from jax_enzyme.ad.device.reverse import derive_reverse, reversal_of, splits
from jax_enzyme.ad.emit.forward import forward
from jax_enzyme.ad.facts.causes import COUNTED_TWICE, STATE, THREAD_CHECKPOINT
from jax_enzyme.ir.arrays import ArrayFunction, Jvp, Step, Vjp
from jax_enzyme.ir.device import Count, DeviceFunction
from jax_enzyme.options import Options
from jax_enzyme.rules.user import rules_of
from jax_enzyme.transform.device import restore
from jax_enzyme.transform.device.canonical import keep_aliases_true
from jax_enzyme.transform.device.flat import STATE as STATE_PREFIX


def derive(base: DeviceFunction, step: Step, options: Options) -> DeviceFunction:
    """The derivative of a device function in canonical form, in NVVM's dialect.

    Raises DifferentiationError where the engine cannot prove a derivative right.
    """
    if isinstance(step, Jvp):
        function = ArrayFunction(base.module, base.symbols[0], base.buffers)
        result = forward(function, step, rules_of(base.module), allocates=False)
        _refuse_state(function, result)
        return _finished(base, result, None if base.count is None else widened(base.count, result.buffers))
    if base.count is not None:
        raise COUNTED_TWICE.error()
    if options.checkpoint:
        raise THREAD_CHECKPOINT.error(wanted=options.checkpoint)
    result = derive_reverse(base, step)
    return _finished(base, result, count_of(base, reversal_of(base, step), result.buffers))


def splittable(base: DeviceFunction, step: Vjp, options: Options) -> bool:
    """Whether a gradient is Augmented and Pullback for the masks of `step`: they exist, and cost less than both sweeps
    in one kernel."""
    return base.count is None and splits(base, step)


def _refuse_state(base: ArrayFunction, result: ArrayFunction) -> None:
    for name in result.module.globals:
        if name.startswith(STATE_PREFIX) and name not in base.module.globals:
            raise STATE.error(name=name.removeprefix(STATE_PREFIX).rpartition(".")[0])


def _finished(base: DeviceFunction, result: ArrayFunction, count: Count | None) -> DeviceFunction:
    """In NVVM's dialect again, other functions gone."""
    target = result.module.functions[result.symbol]
    keep_aliases_true(target, result.module, tuple(b.io == "in" for b in result.buffers))
    module, shape = restore(result.module, base.shape)
    return replace(base, module=module, symbols=(result.symbol,), buffers=result.buffers, shape=shape, count=count)
