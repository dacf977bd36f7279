"""What a kernel computes, found without this project: built by the host's own compiler and called through ctypes.

Nothing here imports `jax_enzyme`: the signature is read by a parser of its own (a few lines, since the signatures of
the tests are well formed), so that a mistake in the project cannot hide in its own reference.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

Value = Any
DTYPES = {
    "bool": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "u8": np.uint8,
    "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "f32": np.float32, "f64": np.float64,
}  # fmt: skip
_PARAMETER = re.compile(r"(?:(in|out|inout|scratch)\s+)?(\w+)\s*:\s*(\w+)\s*(?:\[(.*)\])?$")


@dataclass(frozen=True)
class Parameter:
    """One parameter as the signature says it; `dims` is None for a scalar passed by value."""

    io: str
    name: str
    dtype: str
    dims: tuple[str, ...] | None

    @property
    def floating(self) -> bool:
        return self.dtype.startswith("f")


@dataclass(frozen=True)
class Reference:
    """A kernel as a NumPy function of the caller's arguments, by name, in double precision."""

    address: int
    parameters: tuple[Parameter, ...]
    returns: str

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the results in the order in which the kernel object returns them."""
        first = ("return",) if self.returns not in ("", "status") else ()
        return first + tuple(p.name for p in self.parameters if p.io in ("inout", "out"))

    @property
    def active(self) -> tuple[str, ...]:
        """The caller's arguments that have a tangent."""
        return tuple(p.name for p in self.parameters if p.floating and p.io in ("in", "inout"))

    @property
    def active_outputs(self) -> tuple[str, ...]:
        kinds = {p.name: p.floating for p in self.parameters} | {"return": self.returns.startswith("f")}
        return tuple(name for name in self.outputs if kinds[name])

    def __call__(self, arguments: Mapping[str, Value]) -> dict[str, np.ndarray]:
        """The results by name. The arguments are not changed."""
        dims = solve(self.parameters, arguments)
        memory: dict[str, np.ndarray] = {}
        passed: list[Any] = []
        for p in self.parameters:
            dtype = np.dtype(DTYPES[p.dtype])
            if p.dims is None:
                value = dims[p.name] if p.name in dims else arguments[p.name]
                passed.append(np.ctypeslib.as_ctypes_type(dtype)(dtype.type(value).item()))
                continue
            shape = tuple(_evaluate(d, dims) for d in p.dims)
            if p.io in ("in", "inout"):
                array = np.array(arguments[p.name], dtype, order="C", copy=True).reshape(shape)
            else:
                array = np.zeros(shape, dtype)
            memory[p.name] = array
            passed.append(ctypes.c_void_p(array.ctypes.data))
        result = self._function(passed)(*passed)
        if self.returns == "status":
            if result != 0:
                raise ArithmeticError(f"status {result}")
        elif self.returns:
            memory["return"] = np.asarray(result, DTYPES[self.returns])
        return {name: memory[name] for name in self.outputs}

    def _function(self, passed: Sequence[Any]) -> Any:
        if self.returns == "status":
            result: Any = ctypes.c_int
        elif self.returns:
            result = np.ctypeslib.as_ctypes_type(np.dtype(DTYPES[self.returns]))
        else:
            result = None
        return ctypes.CFUNCTYPE(result, *(type(p) for p in passed))(self.address)


def parse(signature: str) -> tuple[tuple[Parameter, ...], str]:
    """The parameters of a well-formed signature and its return dtype (or "", or "status")."""
    body, _, returns = signature.partition("->")
    parameters: list[Parameter] = []
    for text in re.split(r",(?![^\[]*\])", body):
        match = _PARAMETER.match(text.strip())
        if match is None:
            raise ValueError(f"not a parameter: {text!r}")
        io, name, dtype, dims = match.groups()
        split = None if dims is None else tuple(d.strip() for d in dims.split(",") if d.strip())
        parameters.append(Parameter(io or "in", name, dtype, split))
    return tuple(parameters), returns.strip()


def solve(parameters: Sequence[Parameter], arguments: Mapping[str, Value]) -> dict[str, int]:
    """The dimensions, each the least number that gives some array its extent, found by trying."""
    names = {p.name for p in parameters if not p.floating and p.name not in arguments}
    dims: dict[str, int] = {}
    pairs = [
        (expression, extent)
        for p in parameters
        if p.dims and p.name in arguments
        for expression, extent in zip(p.dims, np.shape(arguments[p.name]), strict=True)
    ]
    while True:
        left = [(e, x, unknown) for e, x in pairs if len(unknown := _names(e) & (names - dims.keys())) == 1]
        if not left:
            return dims
        expression, extent, (name,) = left[0]
        known: dict[str, int] = dims | {n: int(v) for n, v in arguments.items() if isinstance(v, int)}
        candidates = range(1 << 16) if expression != name else (int(extent),)
        dims[name] = next(n for n in candidates if _evaluate(expression, known | {name: n}) == extent)


def _names(expression: str) -> set[str]:
    return set(re.findall(r"[A-Za-z_]\w*", expression))


def _evaluate(expression: str, values: Mapping[str, int]) -> int:
    return int(eval(compile(expression, "<dimension>", "eval"), {"__builtins__": {}}, dict(values)))


@cache
def reference(path: Path, symbol: str, signature: str, flags: tuple[str, ...] = ()) -> Reference:
    """The kernel of that source, computed in double precision whatever the signature says."""
    double = signature.replace("f32", "f64")
    flags = tuple(f.replace("=float", "=double") for f in flags)
    parameters, returns = parse(double)
    library = ctypes.CDLL(str(_build(path.resolve(), flags)))
    address = ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value
    assert address is not None
    return Reference(address, parameters, returns)


def _build(path: Path, flags: tuple[str, ...]) -> Path:
    """The shared library of one source, kept for the next run under its content's hash."""
    compiler = [sys.executable, "-m", "ziglang", "cc"] if path.suffix == ".ll" else ["g++"]
    language = {".c": ["-x", "c", "-std=gnu11"], ".cpp": ["-x", "c++", "-std=c++17"], ".ll": ["-Wno-override-module"]}
    command = [*compiler, "-O1", "-g0", "-ffp-contract=off", "-shared", "-fPIC", *flags, *language[path.suffix]]
    key = hashlib.sha256("\0".join([*command, path.read_text()]).encode()).hexdigest()[:24]
    folder = Path(tempfile.gettempdir()) / "jax_enzyme_reference"
    folder.mkdir(exist_ok=True)
    out = folder / f"{key}.so"
    if not out.exists():
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            built = Path(scratch) / out.name
            subprocess.run([*command, str(path), "-o", str(built), "-lm"], check=True, capture_output=True, text=True)
            built.replace(out)
    return out
