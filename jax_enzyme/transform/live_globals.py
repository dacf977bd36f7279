"""File-scope variables become parameters: a derivative finds in them what the program has put there.

    before   @scale = internal global double 1.0         after   define i64 @je.primal(ptr %x, ptr %scale) {
             define i64 @je.primal(ptr %x) {                       %a = load double, ptr %scale
               %a = load double, ptr @scale

`private_globals` is the opposite, for kernels, which start from the initial values. Here the function is one of a
program that goes on between two calls.

A variable that is a pointer is copied at the start, and back at the end where the function may lead it elsewhere:
memory that the function allocates anew each time is known to be its own. Those that stay variables are only declared,
so that they are the program's: variables whose addresses are in the initial values of others, or that functions use
whose own addresses are taken.
"""

from __future__ import annotations

from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.keywords import LINKAGE
from jax_enzyme.ir.module import Function, GlobalVariable, Module
from jax_enzyme.ir.values import BasicBlock, Value
from jax_enzyme.transform.private_globals import globals_in, pass_on, replace_in, users_of_variables
from jax_enzyme.transform.rewriting import add_parameter

LIVE = ".live"
"""Ends the names of such parameters."""


def globals_to_parameters(module: Module, root: Function, marks: tuple[str, ...]) -> list[GlobalVariable]:
    """Changes the module, all of whose variables are its own: those that `root` uses and that may change become the
    last parameters of `root`, with these attributes; they are the result, in order. The others are declared only."""
    found = users_of_variables(module, root, declared=True)
    lead = set[Value]().union(*(globals_in(v.initializer) for v in found if v.initializer is not None))
    chosen = {v: u for v, u in found.items() if v not in lead and not v.is_constant and _has_size(module, v)}
    led_elsewhere = {v for v, functions in chosen.items() if any(_may_change(v, f) for f in functions)}
    pass_on(root, chosen)
    places: dict[Value, Value] = {}
    top = Builder(BasicBlock())
    for variable in chosen:
        places[variable] = parameter = add_parameter(root, f"{variable.name}{LIVE}", marks)
        if isinstance(variable.value_type, T.PointerType):
            places[variable] = top.alloca(variable.value_type)
            top.store(top.load(variable.value_type, parameter), places[variable])
            if variable in led_elsewhere:
                _write_back(root, variable.value_type, places[variable], parameter)
    replace_in(root, places, top)
    for variable in module.globals.values():
        if not variable.is_constant and not variable.name.startswith("llvm."):
            declare(variable)
    return list(chosen)


def _may_change(variable: GlobalVariable, function: Function) -> bool:
    """Whether a function does anything with a variable but read it."""
    return any(variable in i.operands and not isinstance(i, I.Load) for i in function.instructions())


def _write_back(root: Function, kind: T.Type, place: Value, parameter: Value) -> None:
    """Where the function may lead a pointer elsewhere, the program's leads there behind it."""
    for block in root.blocks:
        if isinstance(block.terminator, I.Return):
            at = Builder.before(block, block.terminator)
            at.store(at.load(kind, place), parameter)


def _has_size(module: Module, variable: GlobalVariable) -> bool:
    """Others may declare what they do not define."""
    try:
        return DataLayout(module).alloc_size(variable.value_type) > 0
    except ValueError:
        return False


def declare(variable: GlobalVariable) -> None:
    """Makes a definition a declaration."""
    variable.initializer = None
    variable.prefix = ("external", *(w for w in variable.prefix if w not in LINKAGE))
    variable.suffix = tuple(w for w in variable.suffix if not w.startswith("comdat"))
    variable.metadata = []
