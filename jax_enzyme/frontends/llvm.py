"""LLVM IR itself: text or bitcode of LLVM 22 or older."""

from __future__ import annotations

from collections.abc import Sequence

from jax_enzyme.errors import CompileError
from jax_enzyme.frontends.source import Source
from jax_enzyme.frontends.toolchain import portable
from jax_enzyme.frontends.zig_panics import end_panics
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import reader, writer
from jax_enzyme.ir import types as T
from jax_enzyme.ir.debug import location
from jax_enzyme.ir.foreign import texts_of_bitcode
from jax_enzyme.ir.keywords import LINKAGE, LOCAL
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.transform.openmp import make_serial


def read_ir(source: Source, flags: Sequence[str]) -> str:
    """The module in the form that LLVM 22 prints. Both forms are accepted for `.ll` and `.bc`: contents decide."""
    (found,) = read_together([(source, flags)])
    if isinstance(found, CompileError):
        raise found
    return found


def read_together(sources: Sequence[tuple[Source, Sequence[str]]]) -> list[str | CompileError]:
    """The same of several, each with its flags, or what is wrong with it. Bitcode is read in one process."""
    texts = iter(texts_of_bitcode([source.contents for source, _ in sources if not _is_text(source)]))
    found: list[str | CompileError] = []
    for source, flags in sources:
        try:
            module = _module(source, flags, None if _is_text(source) else next(texts))
            _refuse_scalable(module, source.name)
            _swap_names_of_aliases(module)
            end_panics(module)
            found.append(portable(writer.to_text(make_serial(module, source.name))))
        except CompileError as error:
            found.append(error)
    return found


def _is_text(source: Source) -> bool:
    return not source.contents.startswith((b"BC", b"\xde\xc0"))


def _module(source: Source, flags: Sequence[str], of_bitcode: str | RuntimeError | None) -> Module:
    if flags:
        raise CompileError(f"LLVM IR is not compiled: the flags {' '.join(flags)} mean nothing", source.name)
    try:
        if isinstance(of_bitcode, RuntimeError):
            raise reader.ReadError(f"LLVM cannot read this: {of_bitcode}")
        if of_bitcode is None and b"\0" in source.contents:
            raise reader.ReadError("there are zero bytes in it")
        return reader.read(source.contents.decode()) if of_bitcode is None else reader.parse(of_bitcode)
    except CompileError as error:
        raise CompileError(error.cause, error.place or source.name, error.remedy) from None
    except (RuntimeError, ValueError) as error:
        what, option = ("LLVM IR", "-S -emit-llvm") if of_bitcode is None else ("LLVM bitcode", "-c -emit-llvm")
        if of_bitcode is None and source.name.endswith(".bc"):
            what = "LLVM bitcode, which starts with the letters BC, and no LLVM IR as text"
        raise CompileError(
            f"this is no {what}: {error}", source.name, f"LLVM 22 or older, as `clang {option}`"
        ) from None


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
            or not LOCAL.isdisjoint(alias.prefix)
            or LOCAL.isdisjoint(function.prefix)
        ):
            continue
        function.name, alias.name = name, function.name
        function.prefix = tuple(word for word in function.prefix if word not in LOCAL)
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
