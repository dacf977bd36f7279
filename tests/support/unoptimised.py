"""Code that no optimiser has seen, for what the tests themselves run on this machine in place of a device: a device's
code has its own optimiser, and LLVM takes longest over blocks that are loops over threads."""

from __future__ import annotations

from dataclasses import replace

from jax_enzyme.cache import digest
from jax_enzyme.codegen.entry import INITIALISER
from jax_enzyme.codegen.host import target_machine
from jax_enzyme.codegen.loading import Built, loaded
from jax_enzyme.codegen.object import entry_module
from jax_enzyme.codegen.optimise import retarget
from jax_enzyme.codegen.stored import Stored
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.verify import parse_checked
from jax_enzyme.transform.lower_calls import lower_calls
from jax_enzyme.transform.prepare import prepare_calls


def unoptimised(function: ArrayFunction) -> Built:
    """The function as it is, once its calls are those that there is code for."""
    prepared = prepare_calls(function)
    module = entry_module(replace(prepared, module=lower_calls(prepared.module)))
    machine = target_machine()
    retarget(module, machine)
    stored = Stored(function.buffers, INITIALISER in module.functions, machine.emit_object(parse_checked(module)))
    return loaded(stored, digest(stored.to_bytes()))
