"""C built by clang and called without this project: the function itself, and its adjoint that is written by hand."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.gradients import Problem
from benchmarks.measure import aligned
from jax_enzyme.frontends import toolchain
from tests.support.reference import DTYPES, parse, solve

ADJOINTS = Path(__file__).resolve().parent / "adjoints"
PRIMAL_FLAGS = ("-O3", "-march=native", "-std=gnu11", "-g0", "-fno-sanitize=all", "-fno-math-errno")
# Sums may be reassociated and vector functions of libmvec used: what one gives an adjoint that is to be fast.
ADJOINT_FLAGS = (
    *PRIMAL_FLAGS, "-fno-trapping-math", "-fno-signed-zeros", "-fassociative-math", "-ffp-contract=fast",
    "-fveclib=libmvec",
)  # fmt: skip


class NativeCall:
    """A function of a source with memory of its own, called for `items` copies of it in turn.

    Arrays of `values` are passed by their addresses, `int` and `float` by value; those numbered in `written` are set
    back before each call.
    """

    def __init__(
        self, source: Path, symbol: str, flags: Sequence[str], values: Sequence[Any], written: Sequence[int], items: int
    ) -> None:
        kinds = tuple("pointer" if isinstance(v, np.ndarray) else type(v).__name__ for v in values)
        self._function = _repeated(source, symbol, tuple(flags), kinds)
        self._items = items
        self.memory = [_copies(v, items) for v in values]
        self._fresh = [(self.memory[i], self.memory[i].copy()) for i in written]
        self._pointers = (ctypes.c_void_p * len(values))(*(m.ctypes.data for m in self.memory))
        self._strides = (ctypes.c_int64 * len(values))(*(m.nbytes // items for m in self.memory))

    def seconds(self) -> float:
        for memory, fresh in self._fresh:
            memory[...] = fresh
        began = time.thread_time_ns()
        self._function(self._pointers, self._strides, self._items)
        return (time.thread_time_ns() - began) * 1e-9 / self._items


def primal(problem: Problem) -> NativeCall:
    """The function itself, by clang -O3."""
    parameters, _ = parse(problem.signature)
    dims = solve(parameters, problem.arguments)
    known: dict[str, Any] = {**problem.arguments, **dims}
    values: list[Any] = []
    for p in parameters:
        if p.dims is None:
            values.append(float(known[p.name]) if p.floating else int(known[p.name]))
        elif p.name in known:
            values.append(np.asarray(known[p.name], DTYPES[p.dtype]))
        else:
            numbers = {n: int(v) for n, v in known.items() if isinstance(v, int)}
            shape = [int(eval(dim, {"__builtins__": {}}, numbers)) for dim in p.dims]
            values.append(np.zeros(shape, DTYPES[p.dtype]))
    written = [i for i, p in enumerate(parameters) if p.io == "inout"]
    return NativeCall(problem.path, problem.symbol, PRIMAL_FLAGS, values, written, problem.items)


def adjoint(problem: Problem, seeds: Mapping[str, np.ndarray]) -> tuple[NativeCall, dict[str, np.ndarray]]:
    """The adjoint by hand, called once, and the gradient by argument that it left."""
    assert problem.hand is not None
    hand = problem.hand
    words = [word.split() for word in hand.order.split(", ")]

    def value(kind: str, name: str = "") -> Any:
        match kind:
            case "work":
                return np.zeros(hand.work)
            case "bar":
                return np.zeros(np.shape(problem.arguments[name]))
            case "seed":
                return seeds[name] if seeds[name].shape else float(seeds[name])
            case _:
                return hand.sizes.get(kind, problem.arguments.get(kind))

    source = ADJOINTS / f"{hand.stem}.c"
    values = [value(*word) for word in words]
    call = NativeCall(source, f"{hand.stem}_adjoint", ADJOINT_FLAGS, values, (), problem.items)
    call.seconds()
    return call, {word[1]: m[0] for word, m in zip(words, call.memory, strict=True) if word[0] == "bar"}


def _copies(value: Any, items: int) -> np.ndarray:
    array = np.asarray(value, np.int32 if isinstance(value, int) else None)
    memory = aligned((items, *array.shape), array.dtype)
    memory[...] = array
    return memory


@cache
def _repeated(source: Path, symbol: str, flags: tuple[str, ...], kinds: tuple[str, ...]) -> Any:
    """The function of a source, called for one copy of its memory after the other by a function of C."""
    at = "(p[{0}] + i * stride[{0}])"
    forms = {"pointer": at, "int": f"*(int *){at}", "float": f"*(double *){at}"}
    given = ", ".join(forms[kind].format(number) for number, kind in enumerate(kinds))
    caller = f"void {symbol}();\nvoid repeated(char **p, long *stride, long n)\n"
    caller += f"{{ for (long i = 0; i < n; i++) {symbol}({given}); }}\n"
    ctypes.CDLL("libm.so.6", ctypes.RTLD_GLOBAL)
    ctypes.CDLL("libmvec.so.1", ctypes.RTLD_GLOBAL)
    with tempfile.TemporaryDirectory() as folder:
        out, file = Path(folder) / f"{source.stem}.so", Path(folder) / "caller.c"
        file.write_text(caller)
        command = [*toolchain.zig().command, "cc", *flags, "-w", "-shared", "-fPIC", "-Wl,-z,undefs"]
        subprocess.run([*command, str(source), str(file), "-o", str(out), "-lm"], check=True, capture_output=True)
        return ctypes.CDLL(str(out)).repeated
