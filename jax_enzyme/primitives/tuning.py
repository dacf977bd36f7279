"""The fastest of several plans for given arguments. A plan is the same kernel with other options, none of which changes
what it means; options that are not the default ones stay as they are.

Each plan is built, and its results and cotangents are held against those of the kernel as it is: one that differs by
more than rounding is left out, as is one whose machine code is that of another. The rest are timed in turns, one option
changed at a time; then the best of these, and all that were faster together, once more against the kernel as it is,
since the fastest of many may be so by chance.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp
from jax.core import Tracer

from jax_enzyme.cache import DiskCache, digest
from jax_enzyme.errors import ArgumentError, DifferentiationError, JaxEnzymeError, LoweringError
from jax_enzyme.ir.arrays import Vjp
from jax_enzyme.options import Options
from jax_enzyme.primitives import compat
from jax_enzyme.primitives.bound import Call
from jax_enzyme.primitives.checks import random_like
from jax_enzyme.primitives.timing import Taken, taken
from jax_enzyme.working import LOG, working
from jax_enzyme.xla_ffi.function import Function

Changes = Mapping[str, Any]
Measure = Callable[[Mapping[str, Callable[[], object]]], dict[str, Taken]]

_TAPE_COSTS = (0.25, 4.0, 16.0)
_WIDTHS = {128: "sse2", 256: "avx", 512: "avx512f"}
_UNTUNED = "untuned"


@dataclass(frozen=True)
class Subject:
    """What is tuned. `run(options)` is the kernel with these options, as a function of `values`, which are arrays;
    `moving` are the numbers of those whose cotangents are computed. `identity` tells it, with the shapes and dtypes of
    its arguments, from all others; `must_differentiate`: a refusal is an error, rather than a reason to time the value
    alone."""

    name: str
    identity: str
    options: Options
    run: Callable[[Options], Callable[..., Any]]
    values: tuple[Any, ...]
    moving: tuple[int, ...]
    must_differentiate: bool

    @property
    def key(self) -> str:
        """Of what was found out: the kernel, shapes and dtypes of its arguments, this machine and this package."""
        from jax_enzyme.codegen.environment import environment  # LLVM takes a while to load

        kinds = [(v.shape, v.dtype.name) for v in self.values]
        return digest(
            self.identity,
            repr(self.options),
            repr(kinds),
            repr(self.moving),
            environment(),
            jax.__version__,
            str(_cores()),
        )


def check_timed(name: str, values: Mapping[str, Any]) -> None:
    """Raises ArgumentError where an argument has no numbers, LoweringError where it, or JAX, is on no CPU."""
    for argument, value in values.items():
        if isinstance(value, Tracer | jax.ShapeDtypeStruct):
            remedy = "call it outside of jax.jit, jax.grad and the like, with arrays: it gives a kernel for use inside"
            raise ArgumentError("`tune` runs the kernel, and needs numbers", f"argument `{argument}`: {value}", remedy)
    arrays = [v for v in values.values() if isinstance(v, jax.Array)]
    platforms = {compat.default_platform(), *(device.platform for array in arrays for device in array.devices())}
    elsewhere = sorted(platforms - {"cpu"})
    if elsewhere:
        raise LoweringError(
            f"`tune` chooses among plans for the CPU, and `{name}` would run on {elsewhere[0]} here",
            remedy='with jax.default_device(jax.devices("cpu")[0]): ..., and arguments that are there',
        )


def fastest(subject: Subject, measure: Measure = taken) -> Options:
    """The options with which value and gradient of a kernel (the value, where it has no gradient) are the fastest: its
    own, unless others are faster by more than noise. What was found out before, with arguments of the same shapes and
    dtypes on this machine, is in the disk cache. `measure` says how long each of some calls takes."""
    disk, key = DiskCache.named("plans"), subject.key
    known = disk.get(key)
    if known is not None:
        changes = json.loads(known)
        LOG.info("the plan for `%s` is in the disk cache: %s", subject.name, _described(changes))
        return replace(subject.options, **changes)
    with working(f"tuning `{subject.name}`"):
        chosen = _chosen(subject, measure)
    disk.put(key, json.dumps(dict(chosen)).encode())
    LOG.info("the plan for `%s`: %s", subject.name, _described(chosen))
    return replace(subject.options, **chosen)


@dataclass(frozen=True)
class _Plan:
    """Options that differ from the kernel's own by `changes`, built. `code` are the addresses of its machine code."""

    changes: Changes
    functions: tuple[Function, ...]
    code: tuple[int, ...]
    call: Callable[[], Any]

    @property
    def name(self) -> str:
        return _described(self.changes)


def _chosen(subject: Subject, measure: Measure) -> Changes:
    workshop, untuned = _workshop(subject)
    plans = [plan for each in _single(subject.options, untuned) if (plan := workshop.plan(each)) is not None]
    if not plans:
        return {}
    times = _timed(subject.name, [untuned, *plans], measure)
    faster = [p for p in plans if times[p.name].is_faster_than(times[_UNTUNED])]
    faster.sort(key=lambda p: times[p.name].median)
    if not faster:
        return {}
    together: dict[str, Any] = {}
    for plan in faster:  # of one option's values, the fastest
        together = {**plan.changes, **together}
    combined = workshop.plan(together) if len(together) > 1 else None
    finalists = [faster[0], *([combined] if combined is not None else [])]
    times = _timed(subject.name, [untuned, *finalists], measure)
    best = min(finalists, key=lambda p: times[p.name].median)
    return best.changes if times[best.name].is_faster_than(times[_UNTUNED]) else {}


def _single(options: Options, untuned: _Plan) -> list[Changes]:
    """One option changed each."""
    from jax_enzyme.codegen.host import host

    default = Options()
    choices: dict[str, Sequence[Any]] = {
        "tape_cost": _TAPE_COSTS,
        "tape_budget": (0,) if options.checkpoint is None else (),
        "vector_math": (False,),
        "vector_width": [bits for bits, feature in _WIDTHS.items() if host().has(feature)],
        "threads": (1,) if _cores() > 1 and any(map(_may_share, untuned.functions)) else (),
    }
    untouched = [name for name in choices if getattr(options, name) == getattr(default, name)]
    return [{name: value} for name in untouched for value in choices[name]]


def _may_share(function: Function) -> bool:
    """Whether there are loops in a function that several threads might run, and their number changes nothing else."""
    from jax_enzyme.codegen.derived import sharing
    from jax_enzyme.codegen.programs import has_teams

    base = function.base
    if has_teams(base.program):
        return False
    return bool(sharing(base.program, base.signature, base.binding, function.steps, base.options))


class _Workshop:
    """Builds plans, and leaves out those that differ from the kernel as it is, or do not differ in their code."""

    def __init__(self, subject: Subject, cotangents: list[Any] | None) -> None:
        self._subject = subject
        self._cotangents = cotangents
        self._seen: set[tuple[int, ...]] = set()
        self.untuned = self._built({})
        self._seen.add(self.untuned.code)
        self._expected = jax.tree.leaves(self.untuned.call())
        floating = [v.dtype for v in (*subject.values, *self._expected) if _is_inexact(v)]
        self._tolerance = sqrt(max((float(jnp.finfo(d).eps) for d in floating), default=0.0))

    def plan(self, changes: Changes) -> _Plan | None:
        """The kernel with some options changed; None where that is no use."""
        try:
            plan = self._built(changes)
            if plan.code in self._seen:
                return None
            results = jax.tree.leaves(plan.call())
        except (JaxEnzymeError, jax.errors.JaxRuntimeError) as error:
            LOG.info("tuning `%s`: %s is left out: %s", self._subject.name, _described(changes), error)
            return None
        self._seen.add(plan.code)
        if not all(_agree(a, b, self._tolerance) for a, b in zip(results, self._expected, strict=True)):
            LOG.warning("tuning `%s`: %s is left out: its results differ", self._subject.name, plan.name)
            return None
        return plan

    def _built(self, changes: Changes) -> _Plan:
        subject = self._subject
        run = subject.run(replace(subject.options, **changes))
        operands = (subject.values, self._cotangents)
        compiled = jax.jit(run_with(run, subject.moving))
        calls = (e.params.get("call") for e in compiled.trace(*operands).jaxpr.jaxpr.eqns)
        functions = tuple(_running(call) for call in calls if isinstance(call, Call))
        code = tuple(function.build().address for function in functions)
        return _Plan(changes, functions, code, lambda: jax.block_until_ready(compiled(*operands)))


def _workshop(subject: Subject) -> tuple[_Workshop, _Plan]:
    results = jax.tree.leaves(jax.eval_shape(subject.run(subject.options), *subject.values))
    floating = [r for r in results if _is_inexact(r)]
    if subject.moving and floating:
        noise = np.random.default_rng(0)
        cotangents = [random_like(r, noise) for r in floating]
        try:
            workshop = _Workshop(subject, cotangents)
            return workshop, workshop.untuned
        except DifferentiationError as error:
            if subject.must_differentiate:
                raise
            LOG.info("tuning `%s`: its value alone, since there is no gradient: %s", subject.name, error.cause)
    workshop = _Workshop(subject, None)
    return workshop, workshop.untuned


def run_with(run: Callable[..., Any], moving: Sequence[int]) -> Callable[..., Any]:
    """Of values and cotangents of the floating-point results: all results, and the cotangents of the values that move.
    Without cotangents, the results alone."""

    def results(values: Sequence[Any], cotangents: Sequence[Any] | None) -> Any:
        def of(*moved: Any) -> tuple[list[Any], list[Any]]:
            given = dict(zip(moving, moved, strict=True))
            leaves = jax.tree.leaves(run(*(given.get(i, v) for i, v in enumerate(values))))
            return [v for v in leaves if _is_inexact(v)], [v for v in leaves if not _is_inexact(v)]

        if cotangents is None:
            return of(*(values[i] for i in moving))
        found, pull, others = jax.vjp(of, *(values[i] for i in moving), has_aux=True)
        return found, others, pull(list(cotangents))

    return results


def _running(call: Call) -> Function:
    """What a call runs on the CPU: behind a tape, the pullback."""
    function = call.function.on("cpu")
    return function.pullback if call.taped and type(function.last) is Vjp else function


def _timed(name: str, plans: Sequence[_Plan], measure: Measure) -> dict[str, Taken]:
    times = measure({plan.name: plan.call for plan in plans})
    LOG.info(
        "tuning `%s`: %s", name, "; ".join(f"{plan}: {1e3 * found.median:.4g} ms" for plan, found in times.items())
    )
    return times


def _described(changes: Changes) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in changes.items()) or _UNTUNED


def _agree(found: Any, expected: Any, tolerance: float) -> bool:
    """Whether two arrays are the same but for rounding, against the largest number among them."""
    if not _is_inexact(expected):
        return np.array_equal(found, expected)
    kind = np.complex128 if jnp.issubdtype(expected.dtype, jnp.complexfloating) else np.float64
    a, b = (np.asarray(v).astype(kind) for v in (found, expected))
    size = np.abs(b[np.isfinite(b)]).max(initial=0.0)
    return np.allclose(a, b, rtol=tolerance, atol=tolerance * size, equal_nan=True)


def _is_inexact(value: Any) -> bool:
    return bool(jnp.issubdtype(value.dtype, jnp.inexact))


def _cores() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
