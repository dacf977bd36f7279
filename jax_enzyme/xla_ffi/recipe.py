"""Recipes: text from which any process can build a function, and nothing else.

A custom call carries one, so that a program that JAX exported or cached runs where its kernels were never registered.
Since it becomes machine code there, it is signed by whoever made it, and nothing of it is looked at before the
signature (see `signing`). Equal functions have equal recipes, whatever the process of a user: JAX keys its caches by
them.
"""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from jax_enzyme.cache import digest
from jax_enzyme.errors import LoweringError
from jax_enzyme.frontends.program import Program
from jax_enzyme.ir.arrays import Augmented, Jvp, Pullback, Step, Vjp
from jax_enzyme.options import Options
from jax_enzyme.signature import Binding, Launch, parse
from jax_enzyme.signing import signed, verified
from jax_enzyme.xla_ffi.function import Function, Specialised, function

_VERSION = 7
_PURPOSE = "recipe"
_STEPS = {"jvp": Jvp, "vjp": Vjp, "augmented": Augmented, "pullback": Pullback}


def encode(wanted: Function) -> str:
    """The recipe of a function that is for one platform."""
    return signed(_PURPOSE, _described(wanted))


def content_key(wanted: Function) -> str:
    """A digest of what a recipe says: the same on every machine, for every user, and for every version of this package
    that can read the recipe."""
    return digest(_described(wanted))


def key_of(recipe: str) -> str:
    """`content_key` of what a recipe says. LoweringError where it was made by somebody who is not trusted."""
    return digest(verified(_PURPOSE, recipe))


def _described(wanted: Function) -> str:
    assert not wanted.base.others
    return "|".join((str(_VERSION), _text([_encode_step(step) for step in wanted.steps]), *_encode_base(wanted.base)))


def decode(recipe: str) -> Function:
    """The function that a recipe describes. LoweringError where it was made by somebody who is not trusted."""
    version, rest = verified(_PURPOSE, recipe).split("|", 1)
    if version != str(_VERSION):
        raise LoweringError(
            f"a stored program has a kernel in format {version}, this version of jax_enzyme reads format {_VERSION}",
            remedy="export it again with this version",
        )
    steps, program, bound = rest.split("|", 2)
    fields: dict[str, Any] = json.loads(bound)
    base = Specialised(
        _decode_program(program),
        parse(fields["signature"], fields["order"]),
        Binding.of(dict(fields["dims"]), dict(fields["static"])),
        Options(**fields["options"]),
        fields["platform"],
    )
    return function(base, tuple(_decode_step(step) for step in json.loads(steps)))


@lru_cache(maxsize=1024)
def _encode_base(base: Specialised) -> tuple[str, str]:
    """The program and what it was bound to. They are apart because compressing a program takes a while, and one program
    is bound to many shapes."""
    bound = {
        "signature": str(base.signature),
        "order": base.signature.order,
        "dims": base.binding.dims,
        "static": base.binding.static,
        "options": asdict(base.options),
        "platform": base.platform,
    }
    return _encode_program(base.program), _text(bound)


@lru_cache(maxsize=256)
def _encode_program(program: Program) -> str:
    return base64.b64encode(zlib.compress(_text(asdict(program)).encode())).decode()


def _decode_program(packed: str) -> Program:
    fields: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(packed)))
    if fields["launch"] is not None:
        launch: dict[str, Any] = fields["launch"]
        fields["launch"] = Launch(tuple(launch["grid"]), tuple(launch["block"]), launch["shared"])
    fields["libraries"] = tuple(fields["libraries"])
    return Program(**fields)


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _encode_step(step: Step) -> list[str]:
    name = next(n for n, kind in _STEPS.items() if type(step) is kind)
    masks = (step.tangents,) if isinstance(step, Jvp) else (step.wanted, step.seeded)
    lanes = f".{step.lanes}" if step.lanes else ""
    return [name + lanes, *("".join("01"[bit] for bit in mask) for mask in masks)]


def _decode_step(encoded: list[str]) -> Step:
    name, _, lanes = encoded[0].partition(".")
    masks = [tuple(bit == "1" for bit in mask) for mask in encoded[1:]]
    return _STEPS[name](*masks, lanes=int(lanes or 0))
