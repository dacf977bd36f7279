"""LLVM IR itself: text or bitcode of LLVM 22 or older."""

from __future__ import annotations

from collections.abc import Sequence

from jax_enzyme.errors import CompileError
from jax_enzyme.frontends.source import Source
from jax_enzyme.frontends.toolchain import portable
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import reader, writer
from jax_enzyme.ir import types as T
from jax_enzyme.ir.debug import location
from jax_enzyme.ir.module import Module
from jax_enzyme.transform.openmp import make_serial


def read_ir(source: Source, flags: Sequence[str]) -> str:
    """The module in the form that LLVM 22 prints. Both forms are accepted for `.ll` and `.bc`: contents decide."""
    if flags:
        raise CompileError(f"LLVM IR is not compiled: the flags {' '.join(flags)} mean nothing", source.name)
    is_text = not source.contents.startswith((b"BC", b"\xde\xc0"))
    try:
        module = reader.read(source.contents.decode() if is_text else source.contents)
    except CompileError as error:
        raise CompileError(error.cause, error.place or source.name, error.remedy) from None
    except (RuntimeError, ValueError) as error:
        raise CompileError(
            f"this is no LLVM IR: {error}", source.name, "LLVM 22 or older, as `clang -S -emit-llvm`"
        ) from None
    _refuse_scalable(module, source.name)
    return portable(writer.to_text(make_serial(module, source.name)))


def _refuse_scalable(module: Module, name: str) -> None:
    """LLVM ends the process where it meets vectors of a length that only the run knows on a processor without them."""
    for function in module.functions.values():
        for instruction in function.instructions():
            found = next((t for t in _types(instruction) if isinstance(t, T.VectorType) and t.scalable), None)
            if found is not None:
                raise CompileError(
                    f"`{found}` in @{function.name} is a vector whose length only the run knows",
                    location(module, instruction) or name,
                    "compile the source for this machine, or without vectors (-fno-vectorize -fno-slp-vectorize)",
                )


def _types(instruction: I.Instruction) -> list[T.Type]:
    types = [instruction.type, *(operand.type for operand in instruction.operands)]
    if isinstance(instruction, I.Alloca):
        types.append(instruction.allocated_type)
    if isinstance(instruction, I.GetElementPtr):
        types.append(instruction.source_type)
    return types
