"""Weak declarations that nobody defines are null, as a linker makes them.

before   declare extern_weak double @hook(double)          after   br i1 false, label %hooked, label %plain
         br i1 icmp ne (ptr @hook, ptr null), label %hooked, label %plain
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from jax_enzyme.codegen.undefined import undefined
from jax_enzyme.frontends.program import Program
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function, GlobalVariable
from jax_enzyme.ir.native import native_from_text
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.values import ConstantNull
from jax_enzyme.ir.writer import to_text
from jax_enzyme.transform.device.flat import replace_globals

_WEAK = "extern_weak"


def without_undefined(program: Program, ruled: Collection[str]) -> Program:
    """The program with null for its weak declarations of what neither a rule, a library nor this process has. `ruled`
    are functions that the user has rules for. Programs for devices are left as they are."""
    if program.lang == "cuda":
        return program
    module = parse(program.ir)
    declared: list[Function | GlobalVariable] = [*module.functions.values(), *module.globals.values()]
    weak = {value.name: value for value in declared if _WEAK in value.prefix}
    missing = undefined(program, weak, ruled)
    if not missing:
        return program
    replace_globals(module, {weak[name]: ConstantNull(T.PTR) for name in missing})
    for name in missing:
        (module.functions if name in module.functions else module.globals).pop(name)
    return replace(program, ir=str(native_from_text(to_text(module))))
