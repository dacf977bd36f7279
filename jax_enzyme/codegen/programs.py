"""The module of a program as the CPU runs it, and what a specialisation of it is known by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jax_enzyme.cache import digest
from jax_enzyme.codegen.device_math import with_device_math
from jax_enzyme.codegen.host import host, target_machine
from jax_enzyme.codegen.reading import taken
from jax_enzyme.frontends.program import Program
from jax_enzyme.ir import reader
from jax_enzyme.ir.module import Module
from jax_enzyme.signature import Binding, Signature
from jax_enzyme.signature.formals import Plain, functions_of
from jax_enzyme.transform.openmp import TEAM, check_exclusive, lower_teams
from jax_enzyme.transform.retyping import literal_structures

if TYPE_CHECKING:
    from jax_enzyme.transform.cuda.accesses import AccessLog
    from jax_enzyme.transform.cuda.overlaps import Overlap
    from jax_enzyme.transform.openmp.accesses import LoopLog


def specialisation_key(program: Program, signature: Signature, binding: Binding) -> str:
    """Says which specialisation of which kernel, on every platform."""
    return digest(program.key, str(signature), signature.order, repr(binding))


def has_teams(program: Program) -> bool:
    """Whether a program's meaning may depend on how many threads there are."""
    return f"@{TEAM}(" in program.ir


def program_module(
    program: Program,
    signature: Signature,
    binding: Binding,
    log: AccessLog | LoopLog | None = None,
    *,
    threads: int = 1,
    as_written: bool = False,
) -> Module:
    """The module of a program. Regions of OpenMP's that ask for their thread have `threads` of them, where they say
    nothing else. A CUDA kernel becomes the function of its whole grid, of the same parameters, and one
    more with a `log`, as any program has with one of its loops; a host function calls such functions where it launches.
    `as_written`: threads access shared memory wherever the source does, and LLVM does not rely on what C++ promises."""
    module = _read(program)
    if program.launch is None and not program.device:
        handed = tuple(functions_of(signature.formals))
        check_exclusive(module, handed)
        serial = lower_teams(module, threads, handed)
        if log is not None:
            from jax_enzyme.transform.openmp.accesses import LoopLog  # for those alone who ask for races

            assert isinstance(log, LoopLog)
            log.watch(serial, program.symbol)
        return serial
    from jax_enzyme.transform.cuda import launches, lower  # most programs have no kernels
    from jax_enzyme.transform.cuda.accesses import AccessLog

    assert log is None or isinstance(log, AccessLog)

    constants = _constants(program, signature, binding, module)
    triple, data_layout = _target()
    device = _read_device(program) if program.launch is None else module
    if as_written:
        from jax_enzyme.transform.sanitize.promises import forget_progress  # for the checking mode alone

        for own in (module, device):
            forget_progress(own)
    if program.launch is None:
        return launches.host_function(
            module, device, program.symbol, constants, triple, data_layout, as_written=as_written
        )
    shape = program.launch.shape(dict(binding.dims))
    return lower.lower(module, program.symbol, shape, constants, triple, data_layout, log, as_written=as_written)


def shared_overlaps(program: Program, signature: Signature, binding: Binding) -> list[Overlap]:
    """The accesses of shared memory in a CUDA kernel, or in those that a host function launches, that are not proved
    apart (`transform.cuda.overlaps`)."""
    if program.launch is None and not program.device:
        return []
    from jax_enzyme.transform.cuda import launches, lower  # most programs have no kernels

    module = _read(program)
    constants = _constants(program, signature, binding, module)
    if program.launch is None:
        return launches.launched_overlaps(module, _read_device(program), program.symbol, constants, *_target())
    shape = program.launch.shape(dict(binding.dims))
    return lower.shared_overlaps(module, program.symbol, shape, constants, *_target())


def _read(program: Program) -> Module:
    module = taken(program)
    if program.launch is not None:
        module = with_device_math(program.ir, module)
        literal_structures(module)
    return module


def _read_device(program: Program) -> Module:
    device = with_device_math(program.device, reader.parse(program.device))
    literal_structures(device)
    return device


def _constants(program: Program, signature: Signature, binding: Binding, module: Module) -> dict[int, int]:
    """The integer parameters that are known, by position; none where one that the signature has is several in the
    IR."""
    kernel, known = module.functions.get(program.symbol), binding.constants
    if kernel is None or len(kernel.arguments) != len(signature.arguments):
        return {}
    numbers = ((i, a.param.name) for i, a in enumerate(signature.arguments) if isinstance(a, Plain))
    return {i: known[name] for i, name in numbers if name in known}


def _target() -> tuple[str, str]:
    return host().triple, str(target_machine().target_data)
