"""Adds the bodies of our helper functions (`helpers.ll`, `kinds.ll`, `arena.ll`) to a module that calls them.

While derivatives are taken, helpers such as `je.digamma.f64` are declarations with a rule. `link` is for the end,
before the final optimisation, which then inlines them like any other function.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources

from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.types import FunctionType
from jax_enzyme.ir.values import GlobalValue, Value
from jax_enzyme.rules.complex import ANALYTIC, Analytic
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.rules.effects import KINDS

PREFIX = "je."
ALLOCATE = "je.arena.allocate"
JOIN = "je.arena.join"
BORROW = "je_tape_borrow"
"""Gives memory of an earlier call (`csrc/kept_tapes.cc`), which holds no addresses but its own."""
RESET = "je.arena.reset"
TAPE = (ALLOCATE, RESET, "je.arena.used", "je.arena.release", JOIN, "je_arena_allocate")
"""The functions of arenas; the last is what rules in C call the first."""


def source() -> str:
    """The text of the helpers that any module may call: `helpers.ll`, and the parts of the complex functions."""
    analytic = [a for a in ANALYTIC if a.name != "cdivide"]
    return _text("helpers.ll") + "".join(_complex_part(a, i) for a in analytic for i in (0, 1))


def _complex_part(function: Analytic, index: int) -> str:
    """A helper that calls a C function and takes the real (0) or imaginary (1) part of its result. The two calls for
    the two parts become one when the optimiser has inlined the helpers."""
    types = ", ".join(["double"] * (2 * len(function.derivatives)))
    parameters = ", ".join(f"double %x{i}" for i in range(2 * len(function.derivatives)))
    head = f"@je.{function.name}_{('re', 'im')[index]}.f64({parameters}) nounwind willreturn memory(none)"
    return f"""
define internal double {head} {{
entry:
  %z = call {{ double, double }} @{function.name}({parameters}) nounwind willreturn memory(none)
  %part = extractvalue {{ double, double }} %z, {index}
  ret double %part
}}
""" + (f"\ndeclare {{ double, double }} @{function.name}({types})\n" if index else "")


def link(module: Module) -> None:
    """Gives each declared helper its body, and each helper that those call, in place. Other modules stay the same."""
    _link(module, [f for f in module.functions.values() if _is_helper(f.name)], source)
    _link(module, _named(module, KINDS), lambda: _text("kinds.ll"))
    link_tape(module)


def link_tape(module: Module) -> list[Function]:
    """The same for the functions of arenas alone; those that have got a body."""
    return _link(module, _named(module, TAPE), lambda: _text("arena.ll"))


def _is_helper(name: str) -> bool:
    return name.startswith(PREFIX) and name not in (*TAPE, *KINDS)


def _named(module: Module, names: tuple[str, ...]) -> list[Function]:
    return [module.functions[name] for name in names if name in module.functions]


def _text(file: str) -> str:
    return resources.files("jax_enzyme.rules").joinpath(file).read_text(encoding="utf-8")


def _link(module: Module, wanted: list[Function], source: Callable[[], str]) -> list[Function]:
    """Gives declared functions their bodies, and what those call: the functions that were."""
    wanted = [f for f in wanted if f.is_declaration]
    linked: list[Function] = []
    if not wanted:
        return linked
    library = parse(source())
    declarations = Declarations(module)
    while wanted:
        function = wanted.pop()
        definition = library.functions.get(function.name)
        if definition is None or not function.is_declaration:
            continue
        _adopt(function, definition)
        linked.append(function)
        for user in function.instructions():
            for index, operand in enumerate(user.operands):
                user.operands[index] = _imported(operand, library, declarations, wanted)
    return linked


def _adopt(function: Function, definition: Function) -> None:
    if function.value_type != definition.value_type:
        raise ValueError(f"{function.name} is declared as {function.value_type}, but is {definition.value_type}")
    function.arguments = definition.arguments
    function.blocks = definition.blocks
    function.prefix = definition.prefix
    function.attributes = definition.attributes


def _imported(operand: Value, library: Module, declarations: Declarations, wanted: list[Function]) -> Value:
    """What the target module has in place of a function or table of the library."""
    if not isinstance(operand, GlobalValue):
        return operand
    if operand.name in library.globals:
        return declarations.module.globals.setdefault(operand.name, library.globals[operand.name])
    assert isinstance(operand.value_type, FunctionType)
    function = declarations.function(operand.name, operand.value_type)
    if function.is_declaration and function.name.startswith(PREFIX):
        wanted.append(function)
    return function
