"""From an array function in canonical form to a derivative of any order: one step after the other."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from jax_enzyme.ad.emit.forward import forward
from jax_enzyme.ad.kept_tapes import keeps_tape
from jax_enzyme.ad.vjp import derive_reverse, reversal_of
from jax_enzyme.analysis.objects import reachable_functions
from jax_enzyme.collector import collector_paused
from jax_enzyme.ir.arrays import ArrayFunction, Derivation, Jvp, Vjp
from jax_enzyme.options import Options
from jax_enzyme.rules.user import rules_of
from jax_enzyme.transform.output import drop_output


@collector_paused()
def derive(base: ArrayFunction, steps: Derivation, options: Options) -> ArrayFunction:
    """Applies the steps of a derivation, in order.

    Raises DifferentiationError where the engine cannot prove a derivative right.
    """
    for step in steps:
        if isinstance(step, Jvp):
            base = forward(base, step, rules_of(base.module))
        else:
            if type(step) is Vjp:
                base = _silent(base)
            base = derive_reverse(base, step, rules_of(base.module), options)
    return base


@lru_cache(maxsize=2)
def _silent(base: ArrayFunction) -> ArrayFunction:
    """The function without its output, which Vjp is made of: it runs the forward sweep again, for a primal that has run
    and has printed what it prints. The same for each who asks, so that one plan serves all."""
    silent = drop_output(base.module)
    return base if silent is base.module else replace(base, module=silent)


@collector_paused()
def splittable(base: ArrayFunction, step: Vjp, options: Options, *, in_process: bool = False) -> bool:
    """Whether Augmented and Pullback exist for the masks of `step`: the tape has a fixed size and holds no pointers.
    `in_process`: or it is one that the process can keep, whatever its size."""
    silent = _silent(base)
    several = len(reachable_functions(base.module.functions[base.symbol])) > 1
    # Most that prints, and is in several functions, has no tape of fixed size: then the plan that Vjp is made of is the
    # only one. The process keeps no tape of what prints.
    if silent is not base and several and not reversal_of(silent, step, rules_of(silent.module), options).splits:
        return False
    reversal = reversal_of(base, step, rules_of(base.module), options)
    return reversal.splits or (in_process and keeps_tape(reversal, options))
