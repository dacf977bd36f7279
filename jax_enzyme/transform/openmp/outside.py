"""Memory that is made outside of parallel regions is common to all threads, and is marked so.

    void k(...) {                                     void k(...) {
      std::vector<double> all(n);                       std::vector<double> all(n);      by functions of its own
      #pragma omp parallel                              #pragma omp parallel
      {                                                 {
        std::vector<double> own(n);                       std::vector<double> own(n);
        ...                                               ...

What a function allocates that regions call as well may be a thread's own. So code outside of regions gets a copy of
such a function: there is one of each constructor for all vectors of one type.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from jax_enzyme.analysis.objects import call_effect, named_functions
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.clone import clone_function
from jax_enzyme.ir.debug import set_apart
from jax_enzyme.ir.keywords import LINKAGE
from jax_enzyme.ir.marks import mark_common
from jax_enzyme.ir.module import Function, Module, callee_name, callee_of
from jax_enzyme.ir.reach import reached
from jax_enzyme.rules.effects import Effect
from jax_enzyme.transform.heap_locals import move_known_outside
from jax_enzyme.transform.openmp.calls import PREFIX
from jax_enzyme.transform.openmp.regions import is_region
from jax_enzyme.transform.openmp.synchronisation import is_thread_local, known_by_address

_ONCE = ("__cxa_guard_acquire", "_ZNSt3__111__call_once")
_THREADPRIVATE = PREFIX + "threadprivate"


def mark_outside(module: Module, handed: Collection[str]) -> None:
    """Marks the memory that is made outside of parallel regions, in place. Local arrays move to the heap for that:
    where LLVM finds a copy of a local variable, as `firstprivate` makes it, it may make one of the two. Not file-scope
    ones where C++ may construct some when control first comes there, which iterations wait for."""
    defined = [f for f in module.functions.values() if f.blocks]
    regions = {f for f in defined if is_region(module, f)}
    own = set(reached([*regions, *known_by_address(module, handed)], _named))
    outside = [f for f in defined if f not in own]
    for function in [*outside, *_copies(module, outside, own - regions)]:
        move_known_outside(module, function)
        for instruction in function.instructions():
            if _allocates(instruction):
                mark_common(instruction)
    if any(name.startswith(_ONCE) for name in module.functions):
        return
    calls = (i for f in defined for i in f.instructions() if callee_name(i).startswith(_THREADPRIVATE))
    threads = {o for call in calls for o in call.operands}
    for variable in module.globals.values():
        if not is_thread_local(variable) and variable not in threads:
            mark_common(variable)


def _copies(module: Module, outside: Iterable[Function], own: Collection[Function]) -> list[Function]:
    """Copies, made in place, of those of regions' `own` functions that code outside calls by name and that allocate
    memory, themselves or by others: it calls these instead."""
    callers: dict[Function, list[Function]] = {}
    for function in own:
        for callee in filter(None, map(callee_of, function.instructions())):
            callers.setdefault(callee, []).append(function)
    allocate = set(reached((f for f in own if any(map(_allocates, f.instructions()))), lambda f: callers.get(f, ())))
    copies: dict[Function, Function] = {}
    pending = list(outside)
    while pending:
        for instruction in pending.pop().instructions():
            callee = callee_of(instruction)
            if callee is None or callee not in allocate or not callee.blocks:
                continue
            if callee not in copies:
                copy = copies[callee] = clone_function(callee, f"{callee.name}.outside.{len(module.functions)}")
                copy.prefix = ("internal", *(word for word in copy.prefix if word not in LINKAGE))
                module.functions[copy.name] = copy
                for made in filter(_allocates, copy.instructions()):
                    set_apart(module, made)
                pending.append(copy)
            instruction.operands[-1] = copies[callee]
    return list(copies.values())


def _allocates(instruction: I.Instruction) -> bool:
    return isinstance(instruction, I.CallBase) and call_effect(instruction) is Effect.ALLOCATE


def _named(function: Function) -> set[Function]:
    return {f for i in function.instructions() for o in i.operands for f in named_functions(o)}
