"""Recipes: text from which any process can build a function, and nothing else.

A custom call carries one, so that a program that JAX exported or cached runs where its kernels were never registered.
Equal functions have equal recipes, whatever the process: JAX keys its caches by them.
"""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from jax_enzyme.errors import LoweringError
from jax_enzyme.frontends.program import Program
from jax_enzyme.ir.arrays import Augmented, Jvp, Pullback, Step, Vjp
from jax_enzyme.options import Options
from jax_enzyme.signature import Binding, Launch, parse
from jax_enzyme.xla_ffi.backend import Backend
from jax_enzyme.xla_ffi.function import Function, Specialised, function

_VERSION = 2
_STEPS = {"jvp": Jvp, "vjp": Vjp, "augmented": Augmented, "pullback": Pullback}


def encode(wanted: Function) -> str:
    """The recipe of a function."""
    steps = json.dumps([_encode_step(step) for step in wanted.steps], separators=(",", ":"))
    return f"{_VERSION}|{steps}|{_encode_base(wanted.base)}"


def decode(recipe: str, backend: Backend) -> Function:
    """The function that a recipe describes."""
    version, steps, packed = recipe.split("|", 2)
    if version != str(_VERSION):
        raise LoweringError(
            f"a stored program has a kernel in format {version}, this version of jax_enzyme reads format {_VERSION}",
            remedy="export it again with this version",
        )
    fields = json.loads(zlib.decompress(base64.b64decode(packed)))
    base = Specialised(
        _program(fields["program"]),
        parse(fields["signature"], fields["order"]),
        Binding.of(dict(fields["dims"]), dict(fields["static"])),
        Options(**fields["options"]),
        backend,
    )
    return function(base, tuple(_decode_step(step) for step in json.loads(steps)))


@lru_cache(maxsize=256)
def _encode_base(base: Specialised) -> str:
    fields: dict[str, Any] = {
        "program": asdict(base.program),
        "signature": str(base.signature),
        "order": base.signature.order,
        "dims": base.binding.dims,
        "static": base.binding.static,
        "options": asdict(base.options),
    }
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def _program(fields: dict[str, Any]) -> Program:
    found: dict[str, Any] = dict(fields)
    if found["launch"] is not None:
        launch: dict[str, Any] = found["launch"]
        found["launch"] = Launch(tuple(launch["grid"]), tuple(launch["block"]), launch["shared"])
    return Program(**found)


def _encode_step(step: Step) -> list[str]:
    name = next(n for n, kind in _STEPS.items() if type(step) is kind)
    masks = (step.tangents,) if isinstance(step, Jvp) else (step.wanted, step.seeded)
    return [name, *("".join("01"[bit] for bit in mask) for mask in masks)]


def _decode_step(encoded: list[str]) -> Step:
    masks = [tuple(bit == "1" for bit in mask) for mask in encoded[1:]]
    return _STEPS[encoded[0]](*masks)
