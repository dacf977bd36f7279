"""LLVM's pass managers, run once and freed.

llvmlite means to free one with the Python object that stands for it, but as of 0.50 the method of the base class that
comes first does nothing: every pipeline would leave some fifty kilobytes.

Its LLVM has its assertions on. One that fails ends the run with a LoweringError; what the run was given is not freed
then, since freeing it could fail as well.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from ctypes import c_void_p, cast

import llvmlite.binding as llvm
from llvmlite.binding import ffi
from llvmlite.binding.newpassmanagers import NewPassManager

from jax_enzyme.classes import dataclass
from jax_enzyme.errors import LoweringError
from jax_enzyme.ir import _guarded
from jax_enzyme.working import waiting_for


@dataclass(frozen=True)
class Setting:
    """An option of LLVM's that its pass managers have no field for, and what it is where nothing is said."""

    name: str
    value: str
    usual: str


NO_CHECKSUMS = (Setting("disable-loop-idiom-hashrecognize", "true", "false"),)
"""For all passes. To see whether a loop computes a checksum, LLVM goes every way from what it carries around back to
what that is made of: 2**n of them, where each of n numbers reads the one before twice."""
PLACES_STAY = (Setting("enable-pre", "false", "true"),)
"""Nothing is computed on one way to a place because it is known there on another one."""


@contextmanager
def set_to(settings: Sequence[Setting]) -> Generator[None]:
    """LLVM's options have these values inside, where no other thread uses LLVM."""
    with ffi.lib._lock:  # pyright: ignore[reportPrivateUsage]  # as llvmlite does
        for setting in settings:
            llvm.set_option("", f"-{setting.name}={setting.value}")
        try:
            yield
        finally:
            for setting in settings:
                llvm.set_option("", f"-{setting.name}={setting.usual}")


def run_on_module(
    manager: llvm.ModulePassManager,
    module: llvm.ModuleRef,
    builder: llvm.PassBuilder,
    settings: Sequence[Setting] = (),
) -> None:
    """Runs the passes on a module. The manager is gone afterwards. LoweringError where LLVM fails at it: then the
    module and the builder are gone as well."""

    def run() -> None:
        _run("LLVMPY_RunNewModulePassManager", manager, module, builder, module, settings)
        _free(manager)

    waiting_for(run)


def _run(
    name: str,
    manager: llvm.ModulePassManager | llvm.FunctionPassManager,
    code: llvm.ModuleRef | llvm.ValueRef,
    builder: llvm.PassBuilder,
    module: llvm.ModuleRef,
    settings: Sequence[Setting] = (),
) -> None:
    """What `manager.run` does with code of a module, by llvmlite's function of this name."""
    given = (vars(ref)["_ptr"] for ref in (manager, code, builder))  # llvmlite has no public name for it
    function = getattr(ffi.lib, name)._cfn
    with set_to((*NO_CHECKSUMS, *settings)):
        done = _guarded.call(*(cast(pointer, c_void_p).value or 0 for pointer in (function, *given)))
    if done:
        return
    for lost in (manager, builder, module, vars(module)["_context"]):
        lost.detach()
    raise LoweringError(
        "LLVM could not optimise the code of a kernel: an assertion of its own failed",
        remedy="this is a defect of jax_enzyme, or of LLVM: please report it with the source of the kernel",
    )


def inline_marked(native: llvm.ModuleRef, builder: llvm.PassBuilder) -> None:
    """Inlines what is marked, at once: what a long function is called with is known before any of it is optimised."""
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()  # before every copy of a function has to go through it
    passes.add_always_inliner_pass()
    passes.add_global_dead_code_eliminate_pass()
    run_on_module(passes, native, builder)


def drop_dead_stores(native: llvm.ModuleRef, builder: llvm.PassBuilder) -> None:
    """Takes away stores that nothing reads."""
    passes = llvm.create_new_module_pass_manager()
    passes.add_dead_store_elimination_pass()
    run_on_module(passes, native, builder)


def run_on_functions(
    manager: llvm.FunctionPassManager,
    functions: Iterable[llvm.ValueRef],
    builder: llvm.PassBuilder,
    settings: Sequence[Setting] = (),
) -> None:
    """Runs the passes on every function that is defined. The manager is gone afterwards."""
    for function in functions:
        if not function.is_declaration:
            _run("LLVMPY_RunNewFunctionPassManager", manager, function, builder, function.module, settings)
    _free(manager)


def _free(manager: llvm.ModulePassManager | llvm.FunctionPassManager) -> None:
    dispose = NewPassManager._dispose  # pyright: ignore[reportPrivateUsage]
    if type(manager)._dispose is dispose:  # pyright: ignore[reportPrivateUsage]
        manager.close()
    else:
        dispose(manager)
        manager.detach()
