"""Kernels under test through JAX: `je.kernel`, `jax.jvp`, `jax.vjp`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jax_enzyme as je
from tests.kernels.case import Case
from tests.support.reference import parse
from tests.support.three_way import Arrays, Subject


def kernel(case: Case) -> Callable[..., Any]:
    return je.kernel(str(case.path), case.entry, case.signature, flags=case.flags)


def active_function(case: Case, made: Callable[..., Any]) -> Callable[[Mapping[str, Any]], dict[str, jax.Array]]:
    """The active outputs, by name, of the active arguments, by name; the rest of the arguments held."""
    fixed = case.arguments
    names = output_names(case)
    floating = active_outputs(case)

    def call(active: Mapping[str, Any]) -> dict[str, jax.Array]:
        results = made(*(active.get(name, value) for name, value in fixed.items()))
        by_name = dict(zip(names, results if isinstance(results, tuple) else (results,), strict=True))
        return {name: by_name[name] for name in floating}

    return call


def output_names(case: Case) -> tuple[str, ...]:
    parameters, returns = parse(case.signature)
    first = ("return",) if returns not in ("", "status") else ()
    return first + tuple(p.name for p in parameters if p.io in ("inout", "out"))


def active_outputs(case: Case) -> tuple[str, ...]:
    parameters, returns = parse(case.signature)
    kinds = {p.name: p.floating for p in parameters} | {"return": returns.startswith("f")}
    return tuple(name for name in output_names(case) if kinds[name])


def active_arguments(case: Case) -> dict[str, jax.Array]:
    """The floating arguments, as JAX arrays of the signature's dtype."""
    parameters, _ = parse(case.signature)
    names = [p.name for p in parameters if p.floating and p.io in ("in", "inout")]
    return {name: jnp.asarray(case.arguments[name]) for name in names}


def like(values: Arrays, models: Mapping[str, Any]) -> dict[str, jax.Array]:
    return {name: jnp.asarray(values[name], model.dtype) for name, model in models.items()}


def subject(case: Case, jit: bool = False) -> Subject:
    """The case as a kernel; with `jit`, each of the three under jax.jit."""
    made = kernel(case)
    f = active_function(case, made)
    wrap: Callable[[Any], Any] = jax.jit if jit else (lambda function: function)

    def primal(arguments: Mapping[str, Any]) -> dict[str, np.ndarray]:
        static = tuple(i for i, v in enumerate(arguments.values()) if isinstance(v, int))
        call = jax.jit(made, static_argnums=static) if jit else made
        results = call(*arguments.values())
        results = results if isinstance(results, tuple) else (results,)
        return {n: np.asarray(v) for n, v in zip(output_names(case), results, strict=True)}

    def jvp(arguments: Mapping[str, Any], tangents: Arrays) -> dict[str, np.ndarray]:
        point = active_arguments(case)
        _, out = wrap(lambda x, v: jax.jvp(f, (x,), (v,)))(point, like(tangents, point))
        return {name: np.asarray(value) for name, value in out.items()}

    def vjp(arguments: Mapping[str, Any], cotangents: Arrays) -> dict[str, np.ndarray]:
        point = active_arguments(case)

        def pull(x: Any, w: Arrays) -> Any:
            out, back = jax.vjp(f, x)
            return back(like(w, out))[0]

        return {name: np.asarray(value) for name, value in wrap(pull)(point, cotangents).items()}

    return Subject(primal, jvp, vjp)


def case_from_source(folder: Path, name: str, source: str, signature: str, arguments: dict[str, Any]) -> Case:
    """A case whose C source was made by a test."""
    path = folder / f"{name}.c"
    path.write_text(source)
    return Case(name, signature, lambda _: arguments, file=str(path))
