"""Scalar functions in C or C++ as functions of arrays of any shape, which broadcast as NumPy's own do."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp

from jax_enzyme.errors import ArgumentError, CompileError, SignatureError
from jax_enzyme.frontends.source import identify
from jax_enzyme.options import Options
from jax_enzyme.primitives.arguments import check_formals, check_names, checked_flags
from jax_enzyme.primitives.kernels import Kernel
from jax_enzyme.primitives.making import kernel
from jax_enzyme.signature import NUMPY_NAMES, Signature, parse

_C_TYPES = {
    "i8": "signed char", "i16": "short", "i32": "int", "i64": "long long", "u8": "unsigned char",
    "u16": "unsigned short", "u32": "unsigned", "u64": "unsigned long long", "f32": "float", "f64": "double",
}  # fmt: skip
_COUNT = "je_count"
_RESULT = "je_result"
_THREADS = 256
"""Of a block on a GPU."""


def elementwise(
    source: object,
    symbol: str,
    signature: str,
    *,
    lang: Literal["c", "c++"] | None = None,
    flags: Sequence[str] = (),
    options: Options | None = None,
) -> Elementwise:
    """Lifts a scalar function over arrays:

        >>> source = "float blend(float x, float y) { return x > y ? x : (x + y) / 2; }"
        >>> blend = je.elementwise(source, "blend", "x: f32, y: f32 -> f32", lang="c")
        >>> blend(jnp.ones((3, 1)), jnp.arange(4.0)).shape
        (3, 4)

    The parameters are scalars passed by value, and the function returns one. `source`, `lang`, `flags` and `options`
    are those of `kernel`; the language is C or C++. On GPUs it runs too, if the source is also CUDA C++.
    """
    check_names(symbol, lang)
    given = checked_flags(flags)
    if isinstance(given, dict):
        raise ArgumentError("flags= of elementwise is a sequence of strings: there is one source", None, "flags=()")
    scalar = _checked(signature)
    found = identify(source, lang)
    if found.lang not in ("c", "c++"):
        raise SignatureError(f"elementwise lifts functions in C and C++, and this is {found.lang}", found.name)
    text = found.contents.decode() if found.path is None else f'#include "{os.path.abspath(found.path)}"'
    folder = () if found.path is None else (f"-I{Path(found.path).resolve().parent}",)
    loop = f"je_elementwise_{symbol}"
    arrays = [f"{p.name}: {p.dtype}[{_COUNT}]" for p in scalar.params]
    lifted = ", ".join([f"{_COUNT}: i64", *arrays, f"out {_RESULT}: {scalar.result}[{_COUNT}]"])
    made = kernel(
        f"{text}\n{_wrapper(symbol, loop, scalar, found.lang)}",
        loop,
        lifted,
        lang=found.lang,
        flags=(*folder, *given),
        options=options,
    )
    device = _on_gpus(text, symbol, scalar, lifted, (*folder, *given), options)
    return Elementwise(symbol, scalar, made if device is None else made.on("cuda", device))


def _on_gpus(
    text: str, symbol: str, scalar: Signature, lifted: str, flags: Sequence[str], options: Options | None
) -> Kernel | None:
    """The same function in a CUDA kernel; None where the source is no CUDA C++."""
    name = f"je_elementwise_{symbol}"
    source = (
        f"#define restrict __restrict\n#pragma clang force_cuda_host_device begin\n{text}\n"
        f"#pragma clang force_cuda_host_device end\n{_kernel(symbol, name, scalar)}"
    )
    grid = f"({_COUNT}+{_THREADS - 1})//{_THREADS}"
    try:
        return kernel(source, name, lifted, lang="cuda", flags=flags, options=options, grid=grid, block=_THREADS)
    except CompileError:
        return None


def _checked(signature: str) -> Signature:
    scalar = parse(signature)
    check_formals(scalar, "an elementwise function")
    wrong = [p for p in scalar.params if not p.by_value or p.dtype not in _C_TYPES]
    if wrong:
        raise SignatureError(
            f"`{wrong[0]}` is no number that is passed by value",
            signature,
            f"parameters of an elementwise function are scalars: {', '.join(_C_TYPES)}",
        )
    if scalar.result not in _C_TYPES:
        raise SignatureError("an elementwise function returns a number", signature, "end the signature with `-> f64`")
    return scalar


def _wrapper(symbol: str, loop: str, scalar: Signature, lang: str) -> str:
    assert scalar.result is not None
    parameters = ", ".join(f"const {_C_TYPES[p.dtype]} *{p.name}" for p in scalar.params)
    values = ", ".join(f"{p.name}[je_i]" for p in scalar.params)
    linkage = 'extern "C" ' if lang == "c++" else ""
    return (
        f"{linkage}void {loop}(long long {_COUNT}, {parameters}, {_C_TYPES[scalar.result]} *{_RESULT}) {{\n"
        f"  for (long long je_i = 0; je_i < {_COUNT}; je_i++) {_RESULT}[je_i] = {symbol}({values});\n}}\n"
    )


def _kernel(symbol: str, name: str, scalar: Signature) -> str:
    parameters = ", ".join(f"const {_C_TYPES[p.dtype]} *{p.name}" for p in scalar.params)
    values = ", ".join(f"{p.name}[je_i]" for p in scalar.params)
    result = f"{_C_TYPES[str(scalar.result)]} *{_RESULT}"
    return (
        f'extern "C" __global__ void {name}(long long {_COUNT}, {parameters}, {result}) {{\n'
        f"  long long je_i = (long long)blockIdx.x * blockDim.x + threadIdx.x;\n"
        f"  if (je_i < {_COUNT}) {_RESULT}[je_i] = {symbol}({values});\n}}\n"
    )


@dataclass(frozen=True, repr=False)
class Elementwise:
    """A lifted function: an immutable value. `kernel` is what runs over flat arrays."""

    name: str
    signature: Signature
    kernel: Kernel

    def __call__(self, *args: Any) -> jax.Array:
        if len(args) != len(self.signature.params):
            names = ", ".join(p.name for p in self.signature.params)
            raise ArgumentError(f"{len(args)} arguments given, {len(self.signature.params)} expected", f"({names})")
        arrays = [self._converted(v, i) for i, v in enumerate(args)]
        shape = jnp.broadcast_shapes(*(a.shape for a in arrays))
        if 0 in shape:
            return jnp.zeros(shape, NUMPY_NAMES[str(self.signature.result)])
        flat = [jnp.broadcast_to(a, shape).reshape(-1) for a in arrays]
        return self.kernel(*flat).reshape(shape)

    def _converted(self, value: Any, index: int) -> jax.Array:
        """Python numbers take the parameter's type; arrays must have it."""
        param = self.signature.params[index]
        wanted = jnp.dtype(NUMPY_NAMES[param.dtype])
        if isinstance(value, bool | int | float):
            return jnp.asarray(value, wanted)
        array = jnp.asarray(value)
        if array.dtype != wanted:
            raise ArgumentError(f"argument `{param.name}` must be {wanted}, got {array.dtype}", str(param))
        return array

    def __repr__(self) -> str:
        return f"Elementwise {self.name}({self.signature})"
