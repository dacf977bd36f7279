"""Array function to object code."""

from __future__ import annotations

from jax_enzyme.cache import digest
from jax_enzyme.codegen.again import CAREFUL
from jax_enzyme.codegen.assembly import check_assembly
from jax_enzyme.codegen.entry import INITIALISER, add_entry, add_initialiser, make_internal
from jax_enzyme.codegen.library import link_failure, link_under_way
from jax_enzyme.codegen.loading import Built, loaded
from jax_enzyme.codegen.optimise import object_code
from jax_enzyme.codegen.stored import Stored
from jax_enzyme.codegen.symbols import check_allowed, is_refused
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.clone import clone_without_debug
from jax_enzyme.ir.debug import location
from jax_enzyme.ir.module import Module, callee_name, take_apart
from jax_enzyme.options import Options
from jax_enzyme.rules.helpers import link
from jax_enzyme.rules.mpi.table import binary_interface
from jax_enzyme.transform.thread_locals import emulate_thread_locals


def entry_module(function: ArrayFunction, threads: int | None = None, careful: ArrayFunction | None = None) -> Module:
    """A module of its own, to be changed at will, that exports the entry (and the initialiser, where there is something
    to initialise) of an array function, and nothing else. `threads`: how many may run it, if not all. What calls MPI
    runs the elements of a batch in order, and its loops on one thread unless a number is given: other processes share
    the machine. `careful`: of another module, the function with its masks."""
    module = clone_without_debug(function.module)
    link_under_way(module)
    link(module)
    module = emulate_thread_locals(module)
    interface = binary_interface(module)
    if interface is None:
        add_entry(module, function.symbol, function.buffers, threads, careful=careful and careful.buffers)
    else:
        add_entry(module, function.symbol, function.buffers, -(threads or 1), link_failure(module, interface))
    add_initialiser(module)
    return module


def compiled(function: ArrayFunction, options: Options, careful: ArrayFunction | None = None) -> Stored:
    """The object code of an array function; of a reverse sweep without masks with a `careful` one beside it."""
    _check_calls(function.module)
    module = entry_module(function, options.threads, careful)
    check_assembly(module)
    beside = None if careful is None else _beside(careful)
    derivative = function.is_derivative
    code, read = object_code(module, function.symbol, options, is_derivative=derivative, careful=beside)
    names = [a.name for a in function.module.functions[function.symbol].arguments]
    known = (i for i, b in enumerate(function.buffers) if b.io == "inout" and b.discard and names[i] in read)
    take_apart(module)
    return Stored(function.buffers, INITIALISER in module.functions, code, frozenset(known))


def _beside(careful: ArrayFunction) -> Module:
    """A module of its own with a reverse sweep by the name that entries call."""
    module = clone_without_debug(careful.module)
    link_under_way(module)
    link(module)
    kernel = module.functions.pop(careful.symbol)
    make_internal(module)
    kernel.name, kernel.prefix = CAREFUL, ("hidden",)
    module.functions[CAREFUL] = kernel
    return module


def _check_calls(module: Module) -> None:
    """LoweringError, at its line, for a call of what no kernel may call."""
    refused = {name for name, function in module.functions.items() if function.is_declaration and is_refused(name)}
    if refused:
        calls = {callee_name(i): i for f in module.functions.values() for i in f.instructions()}
        check_allowed(refused & calls.keys(), lambda name: location(module, calls[name]))


def build_function(function: ArrayFunction, options: Options | None = None) -> Built:
    """Compiles and loads an array function, without any cache."""
    stored = compiled(function, options or Options())
    return loaded(stored, digest(stored.to_bytes()))
