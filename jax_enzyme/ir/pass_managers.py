"""LLVM's pass managers, run once and freed.

llvmlite means to free one with the Python object that stands for it, but as of 0.50 the method of the base class that
comes first does nothing: every pipeline would leave some fifty kilobytes.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from threading import Lock

import llvmlite.binding as llvm
from llvmlite.binding.newpassmanagers import NewPassManager

from jax_enzyme.working import waiting_for

_THRESHOLD = "jump-threading-threshold"
JUMPS_STAY = f"-{_THRESHOLD}=0"
"""The option of LLVM's by which it copies nothing to thread a jump."""
_JUMPS_AS_USUAL = f"-{_THRESHOLD}=6"
_RUNNING = Lock()
"""Held while passes run: LLVM's options hold for all of the process."""


def run_on_module(
    manager: llvm.ModulePassManager, module: llvm.ModuleRef, builder: llvm.PassBuilder, *, jumps_stay: bool = False
) -> None:
    """Runs the passes on a module; `jumps_stay`: no instruction is copied to thread a jump. The manager is gone
    afterwards."""

    def run() -> None:
        try:
            with _running(jumps_stay=jumps_stay):
                manager.run(module, builder)
        finally:
            _free(manager)

    waiting_for(run)


@contextmanager
def _running(*, jumps_stay: bool) -> Generator[None, None, None]:
    with _RUNNING:
        if jumps_stay:
            llvm.set_option("", JUMPS_STAY)
        try:
            yield
        finally:
            if jumps_stay:
                llvm.set_option("", _JUMPS_AS_USUAL)


def inline_marked(native: llvm.ModuleRef, builder: llvm.PassBuilder) -> None:
    """Inlines what is marked, at once: what a long function is called with is known before any of it is optimised."""
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()  # before every copy of a function has to go through it
    passes.add_always_inliner_pass()
    passes.add_global_dead_code_eliminate_pass()
    run_on_module(passes, native, builder)


def run_on_functions(
    manager: llvm.FunctionPassManager, functions: Iterable[llvm.ValueRef], builder: llvm.PassBuilder
) -> None:
    """Runs the passes on every function that is defined. The manager is gone afterwards."""
    try:
        with _running(jumps_stay=False):
            for function in functions:
                if not function.is_declaration:
                    manager.run(function, builder)
    finally:
        _free(manager)


def _free(manager: llvm.ModulePassManager | llvm.FunctionPassManager) -> None:
    dispose = NewPassManager._dispose  # pyright: ignore[reportPrivateUsage]
    if type(manager)._dispose is dispose:  # pyright: ignore[reportPrivateUsage]
        manager.close()
    else:
        dispose(manager)
        manager.detach()
