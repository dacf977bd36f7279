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
from jax_enzyme.ir.keywords import LINKAGE
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.transform.openmp import make_serial

_LOCAL = frozenset(("internal", "private"))


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
        what, option = ("LLVM IR", "-S -emit-llvm") if is_text else ("LLVM bitcode", "-c -emit-llvm")
        if is_text and source.name.endswith(".bc"):
            what = "LLVM bitcode, which starts with the letters BC, and no LLVM IR as text"
        raise CompileError(
            f"this is no {what}: {error}", source.name, f"LLVM 22 or older, as `clang {option}`"
        ) from None
    _refuse_scalable(module, source.name)
    _swap_names_of_aliases(module)
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


def _swap_names_of_aliases(module: Module) -> None:
    """Changes the module: where a function is known to others by an alias alone, which is how Zig exports, the function
    gets that name, and the alias the private one."""
    for name, alias in list(module.aliases.items()):
        function = alias.target
        if (
            not isinstance(function, Function)
            or function.is_declaration
            or alias.keyword != "alias"
            or not _LOCAL.isdisjoint(alias.prefix)
            or _LOCAL.isdisjoint(function.prefix)
        ):
            continue
        function.name, alias.name = name, function.name
        function.prefix = tuple(word for word in function.prefix if word not in _LOCAL)
        alias.prefix = ("internal", *(word for word in alias.prefix if word not in LINKAGE))
        module.functions = {f.name: f for f in module.functions.values()}
        module.aliases = {a.name: a for a in module.aliases.values()}


def _types(instruction: I.Instruction) -> list[T.Type]:
    types = [instruction.type, *(operand.type for operand in instruction.operands)]
    if isinstance(instruction, I.Alloca):
        types.append(instruction.allocated_type)
    if isinstance(instruction, I.GetElementPtr):
        types.append(instruction.source_type)
    return types
