"""Inline assembly that does not assemble: LLVM ends the process over it, so another process tries first."""

from __future__ import annotations

import subprocess
import sys

from jax_enzyme.errors import LoweringError
from jax_enzyme.ir.instructions import CallBase
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.values import InlineAsm
from jax_enzyme.ir.writer import to_text

_TRIAL = """
import sys
import llvmlite.binding as llvm
from jax_enzyme.codegen.host import target_machine
target_machine().emit_object(llvm.parse_assembly(sys.stdin.read()))
"""
_SECONDS = 120


def check_assembly(module: Module) -> None:
    """Raises LoweringError where a module holds assembly that is none for this machine."""
    if not any(_is_assembly(i) for f in module.functions.values() for i in f.instructions()):
        return
    command = [sys.executable, "-c", _TRIAL]
    done = subprocess.run(command, input=to_text(module), capture_output=True, text=True, timeout=_SECONDS)
    if done.returncode != 0:
        raise LoweringError(
            f"the kernel's inline assembly does not assemble:\n{done.stderr.strip()}",
            remedy="correct it, or write it in the kernel's language",
        )


def _is_assembly(instruction: object) -> bool:
    return isinstance(instruction, CallBase) and isinstance(instruction.callee, InlineAsm)
