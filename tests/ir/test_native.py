"""What refers to one another in LLVM goes in an order that LLVM bears."""

from __future__ import annotations

import subprocess
import sys

_CIRCLE = """
import gc
import llvmlite.binding as llvm
from jax_enzyme.codegen.host import target_machine
from jax_enzyme.codegen.jit import Jit
from jax_enzyme.ir.native import native_from_bitcode, native_from_text

TEXT = "define i32 @f() { ret i32 1 }"


class Kept(Exception):
    pass


def text(context):
    return native_from_text(TEXT, context)


def bitcode(context):
    return native_from_bitcode(native_from_text(TEXT).as_bitcode(), context)


def linked(context):
    read, other = native_from_text(TEXT, context), native_from_text("declare i32 @f()", context)
    other.link_in(read)
    return other


def code(context):
    return Jit().code(target_machine().emit_object(native_from_text(TEXT)), "f")


def fails(make):
    context = llvm.create_context()
    made = make(context)
    raise Kept


def kept(make):
    try:
        fails(make)
    except Kept as error:
        error.itself = error


gc.disable()
for make in (text, bitcode, linked, code):
    kept(make)
gc.collect()
"""


def test_errors_that_are_kept_end_no_process() -> None:
    """An error refers to what the functions had that it left, and the collector finalises what is in a circle in any
    order: contexts went before their modules, which were freed twice."""
    ran = subprocess.run([sys.executable, "-c", _CIRCLE], check=False, timeout=60)
    assert ran.returncode == 0
