"""Calls that end the process and exceptions become the status of the array function.

    before    define i64 @je.primal(ptr %x) {            define double @f(double %x) {
                %1 = load double, ptr %x                   %bad = fcmp olt double %x, 0.0
                %2 = call double @f(double %1)             br i1 %bad, label %die, label %good
                ...                                      die:
                ret i64 0                                  call void @abort()
                                                           unreachable
                                                         good: ...

    after     define i64 @je.primal(ptr %x) {            define double @f(ptr %failure, double %x) {
                %failure = alloca { i64, ptr }             %bad = fcmp olt double %x, 0.0
                store i64 0, ptr %failure                  br i1 %bad, label %die, label %good
                %1 = load double, ptr %x                 die:
                %2 = call double @f(ptr %failure, ...)     store i64 <kind, number>, ptr %failure
                %3 = load i64, ptr %failure                br label %failed
                %ok = icmp eq i64 %3, 0                  failed:
                br i1 %ok, label %rest, label %failed      ret double poison
              ...                                        good: ...
              failed:
                %s = load i64, ptr %failure
                ret i64 %s

Functions that may fail take the place for the status as their first parameter, and their callers look at it after every
call; recursion is no exception, and once everything is inlined nothing of this is left but the branches. The function
itself stays as well where its address is taken (`stand_ins`).

`invoke` becomes a call with such a branch, so that destructors and handlers run: a landing pad finds the exception and
its type in that place. Landing pads of what is never thrown are unreachable, and go.
"""

from __future__ import annotations

from dataclasses import replace

from jax_enzyme.analysis.objects import reachable_functions
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.aliases import name_what_aliases_name
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.module import Module
from jax_enzyme.transform.failing import Failures, stays_true
from jax_enzyme.transform.failure_rewriting import Rewriter
from jax_enzyme.transform.failure_sites import site
from jax_enzyme.transform.rewriting import kept_attributes
from jax_enzyme.transform.stand_ins import may_be_entered, stand_in


def lower_failures(function: ArrayFunction) -> ArrayFunction:
    """The array function in a copy of the module where nothing that it calls directly ends the process or throws; the
    function itself where there is nothing to do. May be run again after indirect calls have become direct ones."""
    root = function.module.functions[function.symbol]
    if not any(_concerns(function.module, i) for f in reachable_functions(root) for i in f.instructions()):
        return function
    return lower_own_failures(replace(function, module=clone(function.module)))


def lower_own_failures(function: ArrayFunction) -> ArrayFunction:
    """The same in place, of a module that nobody else has."""
    module = function.module
    name_what_aliases_name(module)
    root = module.functions[function.symbol]
    root.attributes = kept_attributes(module, root.attributes, stays_true)
    failures = Failures(module, root)
    for source in failures.functions:
        if source is not root and source in failures.failing:
            failures.give_place(source)
    for target in [*failures.twins.values(), *(f for f in failures.functions if f not in failures.twins)]:
        Rewriter(failures, target, target is root).run()
    kept = {source: twin for source, twin in failures.twins.items() if twin is not source}
    entered = may_be_entered([*(f for f in failures.functions if f not in kept), *kept.values()])
    for source, twin in kept.items():
        stand_in(module, source, twin, entered=entered)
    return function


def _concerns(module: Module, instruction: I.Instruction) -> bool:
    return isinstance(instruction, I.Invoke) or site(module, instruction) is not None
