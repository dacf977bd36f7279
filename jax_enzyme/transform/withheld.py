"""Functions with a rule of the user's stay outside of what is differentiated: there, they lose their bodies.

    before    define double @limit(double %x) { ... }        after    declare double @limit(double) memory(none) ...
              !je.withheld = !{!7}     !7 = !{!"limit"}

`codegen.native_bodies` gives the bodies back to the finished code. The kernel itself is compiled with them.
"""

from __future__ import annotations

from jax_enzyme.analysis.objects import reachable_functions
from jax_enzyme.errors import DifferentiationError
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.module import Function, GlobalVariable, Module
from jax_enzyme.ir.values import Value
from jax_enzyme.rules.rule import Kind
from jax_enzyme.rules.user import make_pure, rules_of, withheld
from jax_enzyme.transform.private_globals import globals_in


def withhold(module: Module, symbol: str) -> Module:
    """A copy of the module without the bodies of functions that have rules; the module itself where there are none.
    DifferentiationError where a body shares a variable with the rest: what it leaves there has no derivative."""
    names = withheld(module)
    if not names:
        return module
    bodies = _variables([module.functions[n] for n in names])
    copy = clone(module)
    rows = rules_of(copy).exact
    for name in names:
        drop_body(copy.functions[name])
        if name in rows and rows[name].kind is not Kind.ZERO:
            make_pure(copy.functions[name])
    shared = sorted(bodies & _variables([copy.functions[symbol]])) if symbol in copy.functions else []
    if shared:
        raise DifferentiationError(
            f"the file-scope variable `{shared[0]}` is shared with a function that has a rule",
            remedy="pass what it holds as an argument: a rule says nothing of variables",
        )
    return copy


def _variables(roots: list[Function]) -> set[str]:
    """The names of those that change which functions use, and what they call."""
    found: set[Value] = set()
    for root in roots:
        for function in reachable_functions(root):
            for instruction in function.instructions():
                found.update(*map(globals_in, instruction.operands))
    return {v.name for v in found if isinstance(v, GlobalVariable) and not v.is_constant and v.initializer is not None}


def drop_body(function: Function) -> None:
    """Makes a definition a declaration."""
    function.blocks, function.personality = [], None
    function.prefix = tuple(w for w in function.prefix if w not in ("linkonce_odr", "weak_odr", "dso_local"))
    function.attributes = tuple(w for w in function.attributes if not w.startswith("comdat"))
    function.metadata, function.trailing_records = [], []
