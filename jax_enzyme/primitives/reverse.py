"""The rule for transposition, and reverse mode through every kind of derived function.

Only the kernel itself is ever differentiated in reverse by the engine. The reverse of a derived function is put
together from forward derivatives of what there is (the formulas are in docs/decisions/0001-derivative-closure.md), so
the set of functions that the engine has to make stays closed: T^k f and T^k P, with P the pullback of the kernel f.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import jax
from jax import lax
from jax import numpy as jnp

from jax_enzyme.errors import DifferentiationError
from jax_enzyme.ir.arrays import Jvp
from jax_enzyme.primitives import compat
from jax_enzyme.primitives.bound import (
    Call,
    Operand,
    bind,
    forward_step,
    operands_of,
    residuals_of,
    reverse_step,
    seedable,
)
from jax_enzyme.xla_ffi.call import buffer_type
from jax_enzyme.xla_ffi.function import Function

Operands = Mapping[int, Operand]
Sizes = tuple[int, ...]


def transpose(cotangents: Sequence[Any], *values: Any, call: Call) -> list[Any]:
    """The cotangents of the operands that the function is linear in, as far as they are asked for."""
    function = call.function
    asked = {i for i, v in zip(function.operands, values, strict=False) if compat.is_undefined(v)}
    if not asked <= set(function.linear_operands):
        raise NotImplementedError(f"{function!r} is not linear in the operands it is to be transposed in")
    given = {i: ct for i, ct in zip(call.results, cotangents, strict=True) if not compat.is_zero(ct)}
    base = {i: o for i, o in operands_of(call, values).items() if i not in function.linear_operands}
    of = {i: function.buffers[i].of for i in (*asked, *given)}
    seeds = {of[i]: ct for i, ct in given.items() if i in function.linear_results}
    wanted = frozenset(of[i] for i in asked)
    if isinstance(function.last, Jvp):
        reverse = reverse_with_tape(function) if call.taped else None
        tape = None if reverse is None else Tape(reverse, residuals_of(call, values))
        found = vjp(function.parent, call.batch.sizes, base, seeds, wanted, tape)
    else:
        found = _forward(function.parent, call.batch.sizes, base, seeds)
    full = (*call.own_flags, *call.residual_flags)
    out: list[Any] = [None] * len(values)
    for n, i in enumerate(function.operands):
        if i in asked and of[i] in found:
            out[n] = _sum_shared(found[of[i]], full[n])
    return out


@dataclass(frozen=True)
class Tape:
    """What was kept for a reverse: `kept` is in the order of its `residual_results`."""

    reverse: Function
    kept: Sequence[Operand]


def reverse_with_tape(function: Function) -> Function | None:
    """The reverse of what a Jvp step was applied to, if it splits at a tape."""
    base, step = function.parent, function.last
    assert isinstance(step, Jvp)
    if base.steps:
        return None
    wanted = frozenset(i for i, active in enumerate(step.tangents) if active)
    reverse = reverse_step(base, wanted, seedable(base))
    return reverse if _splits(reverse) else None


def _splits(reverse: Function) -> bool:
    try:
        return reverse.can_split
    except DifferentiationError:
        return False  # forward mode may be all that is asked for; a transposition will say what is wrong


def residual_results(reverse: Function) -> list[int]:
    """The buffers of the augmented function that its pullback reads, in the pullback's order."""
    tapes = (i for i in reverse.augmented.results if reverse.augmented.buffers[i].role == "tape")
    kept = (reverse.pullback.buffers[i] for i in reverse.residuals)
    return [next(tapes) if buffer.role == "tape" else buffer.of for buffer in kept]


def _sum_shared(value: Any, flags: tuple[bool, ...]) -> Any:
    """The cotangent of an operand that batch elements shared is the sum of theirs."""
    axes = [n for n, flag in enumerate(flags) if not flag]
    return jnp.sum(value, axis=axes) if axes else value


def vjp(
    function: Function,
    sizes: Sizes,
    operands: Operands,
    seeds: Mapping[int, Any],
    wanted: frozenset[int],
    tape: Tape | None = None,
) -> dict[int, Any]:
    """The cotangents of inputs (`wanted`) from those of results (`seeds`), all by buffer and with all batch
    dimensions."""
    if not seeds or not wanted:
        return {}
    if not function.steps:
        return _pull(function, sizes, operands, seeds, wanted, tape)
    if isinstance(function.last, Jvp):
        return _vjp_of_jvp(function, sizes, operands, seeds, wanted)
    return _vjp_of_vjp(function, sizes, operands, seeds, wanted)


def _full(value: Any, sizes: Sizes) -> Operand:
    return Operand(value, (True,) * len(sizes))


def _pull(
    function: Function,
    sizes: Sizes,
    operands: Operands,
    seeds: Mapping[int, Any],
    wanted: frozenset[int],
    tape: Tape | None,
) -> dict[int, Any]:
    """Of the kernel: its pullback, from the tape if there is one."""
    step = reverse_step(function, wanted, frozenset(seeds))
    kept = None if tape is None else _kept_for(step, sizes, tape)
    if tape is not None and kept is None and 2 * _tape_bytes(step) > _tape_bytes(tape.reverse):
        step, kept = tape.reverse, tape.kept
        seeds = {i: _zeros(function, i, sizes) if i not in seeds else seeds[i] for i in seedable(function)}
    cotangents = [_full(seeds[i], sizes) for i in sorted(seeds)]
    results = bind(step, sizes, [*operands.values(), *cotangents, *(kept or ())], taped=kept is not None)
    return {step.buffers[i].of: value for i, value in zip(step.results, results, strict=True)}


def _kept_for(step: Function, sizes: Sizes, tape: Tape) -> Sequence[Operand] | None:
    """What a reverse reads, taken from what was kept for one of more results and inputs: None where it would need
    something else. A tape of its own it cannot have: the kernel ran before anybody knew which cotangents there are."""
    if step == tape.reverse:
        return tape.kept
    if not _splits(step) or _tape_bytes(step):
        return None
    kept = zip(residual_results(tape.reverse), tape.kept, strict=True)
    left = {i: operand for i, operand in kept if not _is_tape(tape.reverse, i)}
    needed = residual_results(step)
    empty = {i: _zeros(step.augmented, i, sizes) for i in needed if _is_tape(step, i)}
    if not left.keys() >= set(needed) - empty.keys():
        return None
    return [_full(empty[i], sizes) if i in empty else left[i] for i in needed]


def _tape_bytes(reverse: Function) -> float:
    """The size of a reverse's tape; infinite where it has none of fixed size."""
    if not _splits(reverse):
        return inf
    return sum(buffer.nbytes for buffer in reverse.augmented.buffers if buffer.role == "tape")


def _is_tape(reverse: Function, index: int) -> bool:
    return reverse.augmented.buffers[index].role == "tape"


def _zeros(function: Function, index: int, sizes: Sizes) -> Any:
    kind = buffer_type(function.buffers[index], sizes)
    return jnp.zeros(kind.shape, kind.dtype)


def _forward(function: Function, sizes: Sizes, operands: Operands, tangents: Mapping[int, Any]) -> dict[int, Any]:
    """The tangents of a function's results, by buffer, for tangents of inputs that have all batch dimensions."""
    if not tangents:
        return {}
    step = forward_step(function, frozenset(tangents))
    moving = [_full(tangents[i], sizes) for i in sorted(tangents)]
    results = bind(step, sizes, [*operands.values(), *moving], linear=True)
    return {step.buffers[i].of: value for i, value in zip(step.linear_results, results, strict=True)}


def _vjp_of_vjp(
    function: Function, sizes: Sizes, operands: Operands, seeds: Mapping[int, Any], wanted: frozenset[int]
) -> dict[int, Any]:
    """Of a pullback P(x, c) with cotangents w: that of c is the forward derivative of the base in direction w, and
    that of x the derivative of P(x, c) itself in that direction, because second derivatives are symmetric."""
    base = function.parent
    buffers = function.buffers
    inputs = {i: o for i, o in operands.items() if buffers[i].role == "primal"}
    direction = {buffers[i].of: ct for i, ct in seeds.items()}
    found: dict[int, Any] = {}
    shadows = {buffers[i].of: i for i in wanted if buffers[i].role == "shadow"}
    if shadows:
        moved = _forward(base, sizes, inputs, direction)
        found.update({i: moved[of] for of, i in shadows.items() if of in moved})
    primals = wanted - set(shadows.values())
    if primals:
        cotangents = {buffers[i].of: o for i, o in operands.items() if buffers[i].role == "shadow"}
        step = reverse_step(base, primals, frozenset(cotangents))
        seconds = _forward(step, sizes, _reverse_operands(step, inputs, cotangents), direction)
        found.update({step.buffers[i].of: value for i, value in seconds.items()})
    return found


def _reverse_operands(step: Function, inputs: Operands, cotangents: Mapping[int, Operand]) -> dict[int, Operand]:
    of = {i: step.buffers[i].of for i in step.linear_operands}
    return {i: cotangents[of[i]] if i in of else inputs[i] for i in step.operands}


def _vjp_of_jvp(
    function: Function, sizes: Sizes, operands: Operands, seeds: Mapping[int, Any], wanted: frozenset[int]
) -> dict[int, Any]:
    """Of a forward derivative T g(x, v) with cotangents c0 of the value and c1 of the tangent: the pullback of g at
    (x, c1) gives the cotangent of v, and its own derivative in direction (v, c0) gives that of x."""
    base = function.parent
    buffers = function.buffers
    inputs = {i: o for i, o in operands.items() if buffers[i].role == "primal"}
    moving = {buffers[i].of: o for i, o in operands.items() if buffers[i].role == "tangent"}
    of_value = {i: ct for i, ct in seeds.items() if buffers[i].role == "primal"}
    of_tangent = {buffers[i].of: ct for i, ct in seeds.items() if buffers[i].role == "tangent"}
    tangents = {buffers[i].of: i for i in wanted if buffers[i].role == "tangent"}
    primals = wanted - set(tangents.values())
    if not of_tangent:
        return vjp(base, sizes, inputs, of_value, frozenset(primals))
    if not primals:
        pulled = vjp(base, sizes, inputs, of_tangent, frozenset(tangents))
        return {i: pulled[of] for of, i in tangents.items() if of in pulled}

    everything = frozenset(primals) | frozenset(tangents)
    inputs = {i: _join(o, moving[i], base, i, sizes) if i in moving else o for i, o in inputs.items()}
    moving = {i: _join(o, inputs[i], base, i, sizes) for i, o in moving.items()}
    fixed = {i: ct for i, ct in of_tangent.items() if i not in of_value}
    start = {i: of_tangent[i] if i in of_tangent else jnp.zeros_like(ct) for i, ct in of_value.items()}

    def pull(x: dict[int, Any], c: dict[int, Any]) -> dict[int, Any]:
        moved = {i: Operand(x[i], o.flags) if i in x else o for i, o in inputs.items()}
        return vjp(base, sizes, moved, {**fixed, **c}, everything)

    at = ({i: inputs[i].value for i in moving}, start)
    along = ({i: o.value for i, o in moving.items()}, of_value)
    first, second = jax.jvp(pull, at, along)
    return {
        **{i: first[of] for of, i in tangents.items() if of in first},
        **{i: second[i] for i in primals if i in second},
    }


def _join(operand: Operand, other: Operand, base: Function, index: int, sizes: Sizes) -> Operand:
    """An operand with the batch dimensions of another as well as its own."""
    flags = tuple(a or b for a, b in zip(operand.flags, other.flags, strict=True))
    if flags == operand.flags:
        return operand
    wide = [n for n, flag in enumerate(flags) if flag]
    kept = [wide.index(n) for n, flag in enumerate(operand.flags) if flag]
    shape = (*(sizes[n] for n in wide), *base.buffers[index].shape)
    core = range(len(wide), len(shape))
    return Operand(lax.broadcast_in_dim(operand.value, shape, (*kept, *core)), flags)
