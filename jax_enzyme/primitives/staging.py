"""The rules for partial evaluation and dead code: where a fused call comes apart, and what nobody asked for goes away.

A forward derivative whose inputs are known and whose tangents are not (that is what linearize, vjp and checkpoint make
of a jvp) splits: the known part runs the kernel, keeping a tape where the derivative has one; the unknown part is the
linear map alone, which can be transposed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax import numpy as jnp

from jax_enzyme.ir.arrays import Augmented, Jvp, Vjp
from jax_enzyme.primitives import compat
from jax_enzyme.primitives.bound import (
    Call,
    Operand,
    bind,
    operands_of,
    primitive,
    residuals_of,
)
from jax_enzyme.primitives.reverse import residual_results, reverse_with_tape
from jax_enzyme.xla_ffi.call import Batch
from jax_enzyme.xla_ffi.function import Function


def partial_eval(trace: Any, *tracers: Any, call: Call) -> list[Any]:
    """The rule for tracing with some operands known."""
    function = call.function
    known = [t.is_known() for t in tracers]
    if not _comes_apart(call, known):
        return trace.default_process_primitive(primitive(function.base.name), tracers, {"call": call})
    values = [t.pval.get_known() if k else None for t, k in zip(tracers, known, strict=True)]
    results, tape = _run_known(call, values)
    linear = _linear_part(call, tape)
    operands = [*tracers[: len(function.operands)], *(o.value for o in tape)]
    unknown = trace.default_process_primitive(primitive(function.base.name), operands, {"call": linear})
    results.update(zip(function.linear_results, unknown, strict=True))
    return [results[i] for i in call.results]


def _comes_apart(call: Call, known: Sequence[bool]) -> bool:
    function = call.function
    if call.linear or not isinstance(function.last, Jvp) or all(known):
        return False
    count = len(function.operands)
    unknown = {i for i, k in zip(function.operands, known, strict=False) if not k}
    return unknown <= set(function.linear_operands) and all(known[count:])


def _run_known(call: Call, values: Sequence[Any]) -> tuple[dict[int, Any], list[Operand]]:
    """The results of the function before the Jvp step, by buffer, and a tape for the step's reverse (or nothing)."""
    function = call.function
    base = function.parent
    sizes = call.batch.sizes
    given = operands_of(call, values)
    operands = [given[i] for i in base.operands]
    reverse = reverse_with_tape(function)
    if reverse is None:
        taped = call.taped
        out = bind(base, sizes, [*operands, *(residuals_of(call, values) if taped else ())], taped=taped)
        return dict(zip(base.results, out, strict=True)), []
    augmented = reverse.augmented
    found = dict(zip(augmented.results, bind(augmented, sizes, operands), strict=True))
    full = (True,) * len(sizes)
    return {i: found[i] for i in base.results}, [Operand(found[i], full) for i in residual_results(reverse)]


def _linear_part(call: Call, tape: Sequence[Operand]) -> Call:
    batch = Batch(call.batch.sizes, (*call.own_flags, *(o.flags for o in tape)))
    return Call(call.function, batch, taped=bool(tape), linear=True)


def partial_eval_equation(
    policy: Callable[..., Any], unknown: Sequence[bool], instantiated: Sequence[bool], equation: compat.JaxprEqn
) -> tuple[Any, Any, list[bool], list[bool], list[Any]]:
    """The rule for splitting an equation of a checkpointed or scanned function into what runs at once and what runs
    later. Returns both equations, which results are not known at once, which exist later, and the operands to keep."""
    call: Call = equation.params["call"]
    count = len(equation.outvars)
    kept = [v for v, i in zip(equation.invars, instantiated, strict=True) if isinstance(v, compat.Var) and not i]
    saved = compat.keeps(policy(equation.primitive, *(v.aval for v in equation.invars), **equation.params))
    if not any(unknown):
        if saved:
            return equation, None, [False] * count, [False] * count, []
        return equation, equation, [False] * count, [True] * count, kept
    if not _comes_apart(call, [not u for u in unknown]):
        return None, equation, [True] * count, [True] * count, kept
    late = [i in call.function.linear_results for i in call.results]
    taped = _with_tape(policy, equation, call, late)
    if taped is not None:
        first, second, tape = taped
        return first, second, late, late, [*kept, *tape]
    first = _known_equation(equation, call, late)
    if not saved:
        return first, equation, late, [True] * count, kept
    params = {**equation.params, "call": _linear_part(call, [])}
    operands = equation.invars[: len(call.function.operands)]
    outvars = [v for v, is_late in zip(equation.outvars, late, strict=True) if is_late]
    return first, equation.replace(invars=operands, outvars=outvars, params=params), late, late, kept


def _with_tape(
    policy: Callable[..., Any], equation: compat.JaxprEqn, call: Call, late: Sequence[bool]
) -> tuple[compat.JaxprEqn, compat.JaxprEqn, list[Any]] | None:
    """Both parts of an equation where the tape is kept between them, and the tape. A policy knows it by the name
    `<kernel>_tape`, and may keep it where it is or in the memory of the host."""
    function = call.function
    reverse = reverse_with_tape(function)
    if reverse is None:
        return None
    augmented = reverse.augmented
    given = operands_of(call, equation.invars)
    known = [given[i] for i in function.parent.operands]
    at_once = Call(augmented, Batch(call.batch.sizes, tuple(o.flags for o in known)))
    kinds = dict(zip(augmented.results, at_once.types, strict=True))
    left = residual_results(reverse)
    tape_kind = next((kinds[i] for i in left if augmented.buffers[i].role == "tape"), None)
    if tape_kind is None or any(jnp.issubdtype(k.dtype, jnp.complexfloating) for k in kinds.values()):
        return None  # jax.checkpoint rounds what it keeps with an operation that complex numbers do not have
    decision = compat.ask_for_name(policy, f"{function.base.name}_tape", tape_kind)
    on_host = compat.offloads(decision)
    if not (on_host or compat.keeps(decision)):
        return None
    everything = zip(call.results, equation.outvars, late, strict=True)
    values = {i: v for i, v, is_late in everything if not is_late}
    extra = {i: compat.variable(kinds[i], on_host=on_host) for i in left}
    full = (True,) * len(call.batch.sizes)
    later = _linear_part(call, [Operand(None, full) for _ in left])

    def run(*operands: Any) -> list[Any]:
        results = primitive(function.base.name).bind(*operands, call=at_once)
        found = dict(zip(augmented.results, results, strict=True))
        kept = [jax.device_put(found[i], jax.memory.Space.Host) if on_host else found[i] for i in left]
        return [*(found[i] for i in values), *kept]

    def run_later(*operands: Any) -> list[Any]:
        own, kept = operands[: len(function.operands)], operands[len(function.operands) :]
        back = [jax.device_put(v, jax.memory.Space.Device) if on_host else v for v in kept]
        return primitive(function.base.name).bind(*own, *back, call=later)

    outvars = [v for v, is_late in zip(equation.outvars, late, strict=True) if is_late]
    tape = [extra[i] for i in left]
    invars = [*equation.invars[: len(function.operands)], *tape]
    first = compat.equation_of(run, [o.value for o in known], [*values.values(), *tape], equation)
    return first, compat.equation_of(run_later, invars, outvars, equation), tape


def _known_equation(equation: compat.JaxprEqn, call: Call, late: Sequence[bool]) -> compat.JaxprEqn:
    base = call.function.parent
    given = operands_of(call, equation.invars)
    operands = [given[i] for i in base.operands]
    operands += residuals_of(call, equation.invars) if call.taped else []
    known = Call(base, Batch(call.batch.sizes, tuple(o.flags for o in operands)), taped=call.taped)
    outvars = [v for v, is_late in zip(equation.outvars, late, strict=True) if not is_late]
    return equation.replace(
        invars=[o.value for o in operands], outvars=outvars, params={**equation.params, "call": known}
    )


def dead_code(used: Sequence[bool], equation: compat.JaxprEqn) -> tuple[list[bool], compat.JaxprEqn | None]:
    """The rule for results that nobody uses: an augmented call without its tape is the kernel again, a forward
    derivative without its tangents too, and a cotangent that is not wanted is not computed."""
    call: Call = equation.params["call"]
    if not any(used):
        if call.function.base.communicates:  # other processes wait for it
            return [True] * len(equation.invars), equation
        return [False] * len(equation.invars), None
    wanted = {i for i, u in zip(call.results, used, strict=True) if u}
    smaller = _smaller(call, wanted)
    if smaller is call:
        return [True] * len(equation.invars), equation
    # The operands of the smaller function come first in the larger one's; residuals come last in both.
    own, total = len(smaller.function.operands), len(call.function.operands)
    reads = [n < own or (smaller.taped and n >= total) for n in range(len(equation.invars))]
    new = equation.replace(
        invars=[v for v, r in zip(equation.invars, reads, strict=True) if r],
        outvars=_results_of(smaller, call, equation.outvars),
        params={**equation.params, "call": smaller},
    )
    return reads, new


def _results_of(smaller: Call, call: Call, outvars: Sequence[Any]) -> list[Any]:
    if len(smaller.function.steps) < len(call.function.steps):
        by_index = dict(zip(call.results, outvars, strict=True))
        return [by_index[i] for i in smaller.results]
    before, after = call.function.buffers, smaller.function.buffers
    by_role = {(before[i].role, before[i].of): v for i, v in zip(call.results, outvars, strict=True)}
    return [by_role[after[i].role, after[i].of] for i in smaller.results]


def _smaller(call: Call, wanted: set[int]) -> Call:
    function = call.function
    step = function.last
    if isinstance(step, Augmented) and wanted <= set(function.parent.results):
        return _on(call, function.parent)
    if isinstance(step, Jvp) and not call.linear and not wanted & set(function.linear_results):
        return _on(call, function.parent, taped=call.taped)
    if isinstance(step, Vjp) and not isinstance(step, Augmented) and not call.taped:
        of = {function.buffers[i].of for i in wanted}
        mask = tuple(w and i in of for i, w in enumerate(step.wanted))
        if mask != step.wanted:
            return _on(call, function.parent.then(Vjp(mask, step.seeded)))
    if call.taped and isinstance(step, Jvp) and not call.linear:
        return _on(call, function)
    return call


def _on(call: Call, function: Function, taped: bool = False) -> Call:
    flags = call.own_flags[: len(function.operands)]
    kept = call.residual_flags if taped else ()
    return call.on(function, Batch(call.batch.sizes, (*flags, *kept)), taped)
