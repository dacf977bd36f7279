"""Host functions of CUDA sources: functions that allocate, copy and launch, as kernels of the CPU.

A source is compiled twice, as nvcc does it: for the device, and for the host. A host function names what it launches by
a stub of clang's making, so its program is two modules.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace

from jax_enzyme.errors import CompileError
from jax_enzyme.frontends.cuda import compile_cuda_host
from jax_enzyme.frontends.gathering import Unit
from jax_enzyme.frontends.program import Program
from jax_enzyme.frontends.runtime_library import complete
from jax_enzyme.frontends.source import Source
from jax_enzyme.frontends.spelling import spelling
from jax_enzyme.frontends.symbols import choose
from jax_enzyme.frontends.two_ways import compiled_in_two_ways
from jax_enzyme.ir import linking
from jax_enzyme.signature.launch import kernel_of_stub

_STUB = re.compile(r'@"?([\w.$]*__device_stub__[\w.$]*)')
_KERNEL = "ptx_kernel "


def load_host_function(source: Source, symbol: str, device: str, flags: Sequence[str]) -> Program | None:
    """The program of a host function; None where the symbol is that of a kernel, or only the device's code has it.
    CompileError where neither side has it."""
    definitions = _definitions(device)
    on_device = _found(definitions, symbol, source)
    if any(_KERNEL in line and f"@{on_device}(" in line for line in definitions):
        return None
    host = compile_cuda_host(source, flags)
    if host is None:
        return None
    on_host = [line for line in _definitions(host) if "__device_stub__" not in line]
    if on_device is not None and _found(on_host, symbol, source) is None:
        return None
    kernels = [line.replace(_KERNEL, "") for line in definitions if _KERNEL in line]
    chosen = choose("\n".join((*kernels, *on_host)), symbol, source)
    ir = complete(host, chosen)
    _check_launched(linking.names(linking.reachable(ir, [chosen])).needed, source.name)
    return Program(ir, chosen, source.lang, source.name, device=linking.reachable(device, _launched(ir)))


def host_side(unit: Unit) -> tuple[Unit, CompileError | None]:
    """The host's side of a source among others, as LLVM IR; where it does not compile and the user did not name it, its
    text and what is wrong. CompileError where it is not the same in all ways in which it is compiled."""
    try:
        code = _host_code(unit.source, unit.flags)
    except CompileError as error:
        if unit.named:
            raise
        return as_text(unit), error
    for flags in unit.ways:
        if _host_code(unit.source, flags) != code:
            raise compiled_in_two_ways(unit, flags, "")
    return replace(unit, source=code, flags=(), ways=()), None


def as_text(unit: Unit) -> Unit:
    """A source whose text is looked at for what it may define, and which is not compiled."""
    return replace(unit, source=replace(unit.source, lang="c++"))


def _host_code(source: Source, flags: Sequence[str]) -> Source:
    host = compile_cuda_host(source, flags)
    return Source("llvm", source.name, (source.contents.decode() if host is None else host).encode())


def is_on_device(device: str, symbol: str, source: Source, *, kernels: bool) -> bool:
    """Whether the device's code has a function of this name, or a kernel."""
    definitions = [line for line in _definitions(device) if _KERNEL in line or not kernels]
    return _found(definitions, symbol, source) is not None


def with_launched(program: Program, devices: Sequence[str]) -> Program:
    """The program of a host function with what it launches of the device's code; itself where it has nothing to do with
    a device."""
    launched, needed = _launched(program.ir), linking.names(program.ir).needed
    if not launched and not any(name.startswith("cuda") for name in needed):
        return program
    _check_launched(needed, program.source_name)
    device = linking.linked(devices, launched) if len(devices) > 1 else linking.reachable(devices[0], launched)
    return replace(program, lang="cuda", device=device)


def _launched(ir: str) -> set[str]:
    return {name for stub in _STUB.findall(ir) if (name := kernel_of_stub(stub))}


def _check_launched(needed: Collection[str], place: str) -> None:
    """CompileError where a host function needs the stub of a kernel that is declared alone."""
    missing = sorted(f"`{spelling(name)}`" for stub in needed if (name := kernel_of_stub(stub)))
    if missing:
        are = "are" if len(missing) > 1 else "is"
        remedy = "add the source that has it: je.kernel([...], ...)"
        raise CompileError(
            f"{', '.join(missing)} {are} launched, and no source defines a kernel of that name", place, remedy
        )


def _definitions(ir: str) -> list[str]:
    return [line for line in ir.splitlines() if line.startswith("define ")]


def _found(definitions: Sequence[str], symbol: str, source: Source) -> str | None:
    try:
        return choose("\n".join(definitions), symbol, source)
    except CompileError:
        return None
