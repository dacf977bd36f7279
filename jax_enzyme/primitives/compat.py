"""Everything that differs between JAX versions, and the parts of JAX that other modules of this layer build on.

The floor is JAX 0.10.2. What changed since, as far as it matters here: from 0.12 on a dead-code rule also gets the
inputs that are alive.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import jax
from jax import lax
from jax import numpy as jnp
from jax.ad_checkpoint import checkpoint_name
from jax.core import ShapedArray
from jax.experimental import io_callback
from jax.experimental.custom_partitioning import custom_partitioning
from jax.extend.core import JaxprEqn, Primitive, Var
from jax.interpreters import ad, batching, mlir, partial_eval

from jax_enzyme.errors import JaxEnzymeError
from jax_enzyme.xla_ffi.backend import PLATFORMS

__all__ = [
    "JaxprEqn",
    "Primitive",
    "Var",
    "Zero",
    "as_reported",
    "ask_for_name",
    "at_the_call",
    "custom_partitioning",
    "default_platform",
    "equation_of",
    "install",
    "instantiate",
    "is_undefined",
    "is_zero",
    "keeps",
    "make_varying",
    "no_tangent",
    "offloads",
    "partitioning_marker",
    "variable",
    "varying",
]

Zero = ad.Zero

DeadCodeRule = Callable[[Sequence[bool], JaxprEqn], tuple[list[bool], JaxprEqn | None]]


def is_zero(tangent: object) -> bool:
    """Whether a tangent or cotangent is a symbolic zero."""
    return isinstance(tangent, Zero)


def no_tangent(primal: Any) -> Any:
    """The symbolic zero that is the tangent of a value (of dtype float0 for integers)."""
    return Zero(jax.typeof(primal).to_tangent_aval())


def instantiate(tangent: Any) -> Any:
    """A symbolic zero as an array; any other tangent as it is."""
    return ad.instantiate_zeros(tangent)


def is_undefined(operand: object) -> bool:
    """Whether a transpose rule is asked for the cotangent of this operand."""
    return ad.is_undefined_primal(operand)


def keeps(decision: object) -> bool:
    """Whether what a checkpoint policy answered means that the value is saved where it is."""
    return decision is True or type(decision).__name__ == "SaveableType"


def offloads(decision: object) -> bool:
    """Whether what a checkpoint policy answered means that the value is saved in the memory of the host."""
    return type(decision).__name__ == "Offloadable" and "host" in getattr(decision, "dst", "")


def ask_for_name(policy: Callable[..., Any], name: str, aval: Any) -> object:
    """What a checkpoint policy says of a value that `jax.ad_checkpoint.checkpoint_name` would have given this name."""
    return policy(_naming(), aval, name=name)


@cache
def _naming() -> Primitive:
    return jax.make_jaxpr(lambda x: checkpoint_name(x, "name"))(jnp.zeros(())).jaxpr.eqns[0].primitive


def variable(kind: jax.ShapeDtypeStruct, *, on_host: bool) -> Var:
    """A new variable for jaxprs."""
    space = jax.memory.Space.Host if on_host else jax.memory.Space.Device
    return Var(ShapedArray(kind.shape, kind.dtype, memory_space=space))


def equation_of(
    function: Callable[..., Sequence[Any]], invars: Sequence[Any], outvars: Sequence[Any], like: JaxprEqn
) -> JaxprEqn:
    """An equation that does what a function does."""
    made = jax.make_jaxpr(jax.jit(function))(*(v.aval for v in invars)).jaxpr.eqns[0]
    return made.replace(invars=list(invars), outvars=list(outvars), source_info=like.source_info)


def varying(value: Any) -> frozenset[str]:
    """The axes of a mesh along which a value inside `jax.shard_map` varies."""
    return jax.typeof(value).manual_axis_type.varying


def make_varying(value: Any, axes: frozenset[str]) -> Any:
    """The value, as one that varies along these axes too. The transpose sums over them."""
    return lax.pcast(value, tuple(sorted(axes)), to="varying")


@cache
def _effect(*, ordered: bool) -> Any:
    """The effect of `io_callback`."""
    (effect,) = jax.make_jaxpr(lambda: io_callback(lambda: None, None, ordered=ordered))().effects
    return effect


def _order() -> Any:
    """The effect of what happens in the order of the program, once each."""
    return _effect(ordered=True)


def _effects() -> set[Any]:
    """Of such a primitive. The second is what makes JAX pass tokens from the second call of `.compile()` on, too: its
    way past Python, which passes none, is closed to programs with unordered effects alone."""
    return {_order(), _effect(ordered=False)}


@cache
def _token() -> Any:
    """The type of tokens."""
    return jax.make_jaxpr(lax.create_token)().out_avals[0]


def _lowering(lower: Callable[..., Any], ordered: Callable[..., bool], platform: str | None) -> Callable[..., Any]:
    """The lowering rule for a platform, or for all that have none. Where types say how everything is split, operands
    keep them; elsewhere they arrive without what their types say about meshes: from here on XLA knows it. What is
    ordered gets the token of what was before it behind the operands, and returns its own behind the results."""

    def rule(context: Any, *operands: Any, **params: Any) -> Any:
        mesh = _explicit_mesh(context.avals_in)
        kinds = [ShapedArray(a.shape, a.dtype) for a in context.avals_in] if mesh is None else context.avals_in
        split = "by type" if mesh is not None else "by rule" if _splits(context) else "no"
        here = platform or (context.platforms or context.module_context.platforms)[0]
        traced = mlir.lower_fun(partial(lower, split=split, platform=here, **params), multiple_results=True)
        with jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((), ()) if mesh is None else mesh):
            try:
                if not ordered(**params):
                    return traced(context.replace(avals_in=kinds), *operands)
                *results, token = traced(
                    context.replace(
                        avals_in=[*kinds, _token()],
                        avals_out=[*context.avals_out, _token()],
                        tokens_in=mlir.TokenSet(),
                    ),
                    *operands,
                    context.tokens_in.get(_order()),
                )
                context.set_tokens_out(mlir.TokenSet({_order(): token}))
                return results
            except JaxEnzymeError as error:
                raise at_the_call(error) from error.__cause__

    return rule


def _explicit_mesh(operands: Sequence[Any]) -> Any:
    """The mesh of the operands, if they are split over it and all its axes are explicit."""
    for operand in operands:
        mesh, spec = operand.sharding.mesh, operand.sharding.spec
        if any(axis is not None for axis in spec) and set(mesh.axis_types) == {jax.sharding.AxisType.Explicit}:
            return mesh
    return None


def _splits(context: Any) -> bool:
    """Whether what is being lowered is for several devices, and XLA may decide what each of them does. Not where it is
    to be exported: XLA asks this process how to split, and what is exported must not depend on a process."""
    module = context.module_context
    devices = getattr(module.axis_context, "device_assignment", None) or ()
    mesh = getattr(module.axis_context, "abstract_mesh", None)
    return len(devices) > 1 and mesh is not None and not module.lowering_parameters.for_export


def default_platform() -> str:
    """The platform that JAX lowers for unless somebody says something else."""
    chosen = jax.config.jax_default_device  # pyright: ignore[reportAttributeAccessIssue]
    name = jax.default_backend() if chosen is None else getattr(chosen, "platform", chosen)
    return "cuda" if name == "gpu" else str(name)


def as_reported(error: Exception) -> Exception:
    """What a handler reported, as JAX raises it when a program runs for the first time. From the second time on the
    compiled path of jax.jit makes a plain ValueError of it."""
    reported = type(error) is ValueError and "kernel `" in str(error)
    return jax.errors.JaxRuntimeError(str(error)) if reported else error


def at_the_call(error: JaxEnzymeError) -> JaxEnzymeError:
    """An error as users see it: without the frames of this package, as JAX leaves out its own, and shows them where
    JAX_TRACEBACK_FILTERING is off."""
    shown = jax.config.jax_traceback_filtering == "off"  # pyright: ignore[reportAttributeAccessIssue]
    return error if shown else error.with_traceback(None)


def partitioning_marker() -> Any:
    """Something to be an element of a tuple among a primitive's parameters. JAX tells a lowering on which mesh it works
    only if it finds, however deep, that something is partitioned by a rule; this is the smallest such thing. A new one
    every time: JAX's printer shows what occurs twice."""
    return _partitioned_nothing().replace()


@cache
def _partitioned_nothing() -> Any:
    smallest = custom_partitioning(lambda: jnp.zeros(()))
    smallest.def_partition(partition=lambda *_: None, sharding_rule="->")
    made = jax.make_jaxpr(smallest)().jaxpr
    equation = made.eqns[0]
    # What it calls would occur in every marker; its types are what JAX asks it for where jax_enable_checks is on.
    nothing = _Types(tuple(v.aval for v in equation.outvars))
    return made.replace(eqns=[equation.replace(params={**equation.params, "call": nothing})])


@dataclass(frozen=True)
class _Types:
    """In the place of a jaxpr of which nothing but the types of its results is asked."""

    out_avals: tuple[Any, ...]


def as_primitive(run: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a function that does nothing but bind a primitive: where JAX looks for what made a NaN, it ends there."""
    run._apply_primitive = True  # pyright: ignore[reportFunctionMemberAccess]
    return run


def _jit_is_off() -> bool:
    return bool(jax.config.jax_disable_jit)  # pyright: ignore[reportAttributeAccessIssue]


def install(
    primitive: Primitive,
    *,
    compiled: Callable[..., Callable[..., Any]],
    types: Callable[..., Any],
    ordered: Callable[..., bool],
    lower: Callable[..., Any],
    jvp: Callable[..., Any],
    transpose: Callable[..., Any],
    batch: Callable[..., Any],
    partial_eval_rule: Callable[..., Any],
    partial_eval_equation: Callable[..., Any],
    dead_code: DeadCodeRule,
) -> None:
    """Tells JAX all rules of a primitive. `compiled` gives what runs it for operands that are no tracers; `ordered`
    says whether it runs in the order of the program, once, whoever reads its results."""
    primitive.multiple_results = True

    def types_and_effects(*operands: Any, **params: Any) -> tuple[Any, set[Any]]:
        return types(*operands, **params), _effects() if ordered(**params) else set()

    primitive.def_effectful_abstract_eval(types_and_effects)

    def run(*operands: Any, **params: Any) -> Any:
        try:
            with jax.disable_jit(False) if _jit_is_off() else nullcontext():
                return compiled(primitive, **params)(*operands)
        except ValueError as error:
            raise as_reported(error) from None

    primitive.def_impl(run)
    for platform in (None, *PLATFORMS):
        mlir.register_lowering(primitive, _lowering(lower, ordered, platform), platform=platform)
    # One program for all GPUs: which code runs is decided on the device.
    mlir.register_lowering(primitive, _lowering(lower, ordered, "cuda"), platform="rocm")
    ad.primitive_jvps[primitive] = jvp
    ad.primitive_transposes[primitive] = transpose
    batching.primitive_batchers[primitive] = batch
    partial_eval.custom_partial_eval_rules[primitive] = partial_eval_rule
    partial_eval.partial_eval_jaxpr_custom_rules[primitive] = partial_eval_equation
    partial_eval.dce_rules[primitive] = lambda used, *live_and_equation: dead_code(used, live_and_equation[-1])
