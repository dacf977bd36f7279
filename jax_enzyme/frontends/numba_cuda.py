"""Functions of Numba's CUDA target, compiled without a GPU, a driver or a toolkit.

Numba makes a device function of each kernel; a kernel of the signature, written in CUDA C++, calls it:

    @cuda.jit                                      x: f64[n], out y: f64[n]
    def f(x, y): ...

    __global__ void f(double *x, double *y, long long n)      sizes that no parameter carries go in last

What comes out is NVVM IR like that of any CUDA source.
"""

from __future__ import annotations

import types as python
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from jax_enzyme.errors import CompileError, SignatureError
from jax_enzyme.frontends.cuda import compile_cuda
from jax_enzyme.frontends.numba import C_NAMES, check_count, imported, numba_type, passed_as
from jax_enzyme.frontends.program import Program
from jax_enzyme.frontends.source import Source
from jax_enzyme.ir import linking
from jax_enzyme.ir.reader import parse
from jax_enzyme.signature import Param, Signature

_CAPABILITY = (8, 0)
_LIBRARY = Path(__file__).parent / "runtime" / "numba_cuda.ll"

# Intrinsics of NVIDIA's compiler that LLVM does not have. `_LIBRARY` defines them under the other names.
_FOREIGN = {"llvm.nvvm.shfl.sync.i32": "je.numba.shuffle", "llvm.nvvm.vote.sync": "je.numba.vote"}


def is_for_cuda(function: object) -> bool:
    """Is this a kernel that Numba compiles for CUDA?"""
    return type(function).__module__.startswith("numba.cuda.")


def load_numba_cuda(source: Source, symbol: str | None, signature: Signature) -> tuple[Program, Signature]:
    """The program of a kernel for the types of a signature, and that signature with the sizes that the program needs
    besides its parameters. CompileError where Numba is missing or cannot compile the function."""
    function = getattr(source.function, "py_func", source.function)
    if not isinstance(function, python.FunctionType):
        raise CompileError("this is neither a Python function nor a kernel of numba.cuda", source.name)
    check_count(function, signature, source.name)
    if signature.result is not None:
        raise SignatureError(
            f"a CUDA kernel returns nothing, and the signature says `-> {signature.result}`",
            source.name,
            "make it an `out` parameter",
        )
    carried = {p.name for p in signature.params}
    sizes = tuple(Param(name, "i64") for name in sorted(signature.shape_names - carried))
    whole = replace(signature, params=(*signature.params, *sizes))
    name = symbol or function.__name__
    modules, entry = _compile(function, signature, source.name)
    wrapper = compile_cuda(Source("cuda", "wrapper.cu", _wrapper(name, entry, whole, len(sizes)).encode()), ())
    library = _LIBRARY.read_text()
    ir = linking.reachable(linking.link(wrapper, [_plain(text) for text in (*modules, library)]), {name})
    return Program(ir, name, "cuda", source.name), whole


def _compile(function: python.FunctionType, signature: Signature, place: str) -> tuple[list[str], str]:
    """LLVM's modules of a kernel and of what it calls, and the kernel's symbol in the first."""
    numba = imported("numba")
    compiler = imported("numba.cuda.compiler")
    arguments = tuple(numba_type(numba.types, p, signature.order) for p in signature.params)
    with imported("numba.core.compiler_lock").global_compiler_lock, _without_device():
        try:
            result = compiler.compile_cuda(function, numba.types.void, arguments, cc=_CAPABILITY)
        except numba.core.errors.NumbaError as error:
            raise CompileError(f"Numba cannot compile the function for CUDA:\n{error}", place) from None
        return [str(module) for module in result.library.modules], result.fndesc.llvm_func_name


@contextmanager
def _without_device() -> Generator[None, None, None]:
    """Lets Numba write modern IR, and compile device functions for a capability instead of asking for a GPU. Types that
    Numba shares between targets keep their text: it is not taken from there, and not kept, in the meantime."""
    dispatcher, types = imported("numba.cuda.dispatcher"), imported("llvmlite.ir.types")
    texts = imported("llvmlite.ir._utils")._StrCaching
    device = python.SimpleNamespace(compute_capability=_CAPABILITY)
    changes = (
        (dispatcher, "get_current_device", lambda: device),
        (types, "ir_layer_typed_pointers_enabled", False),
        (texts, "__str__", lambda self: self._to_string()),
    )
    before = [getattr(place, name) for place, name, _ in changes]
    for place, name, value in changes:
        setattr(place, name, value)
    try:
        yield
    finally:
        for (place, name, _), value in zip(changes, before, strict=True):
            setattr(place, name, value)


def _plain(text: str) -> str:
    """Numba's module in a form that links like any other."""
    module = parse(text)
    for foreign, own in _FOREIGN.items():
        if foreign in module.functions:
            module.functions[own] = module.functions.pop(foreign)
            module.functions[own].name = own
    return linking.linkable(module)


def _wrapper(name: str, entry: str, signature: Signature, added: int) -> str:
    """CUDA source of the kernel, which calls what Numba made. Its result says whether a Python exception was raised."""
    params = signature.params
    own = params[: len(params) - added]
    declared = ", ".join(f"{C_NAMES[p.dtype]} {'' if p.by_value else '*'}{p.name}" for p in params)
    passed = [one for param in own for one in passed_as(param, signature.order)]
    types = ", ".join(["void *", *(type_ for type_, _ in passed)])
    values = ", ".join(["&result_", *(value for _, value in passed)])
    return "\n".join(
        [
            f'extern "C" __device__ int entry_({types}) __asm__("{entry}");',
            f'extern "C" __global__ void kernel_({declared}) __asm__("{name}");',
            f'extern "C" __global__ void kernel_({declared}) {{',
            "  void *result_;",
            f"  const int status_ = entry_({values});",
            '  if (status_ != 0 && status_ != -2) __assert_fail("no Python exception", "kernel", 0, "kernel");',
            "}",
            "",
        ]
    )
