"""Prepares a module so that LLVM's always-inliner inlines all that can be."""

from __future__ import annotations

from collections.abc import Collection

from jax_enzyme.ir.aliases import name_what_aliases_name
from jax_enzyme.ir.instructions import CallBase
from jax_enzyme.ir.keywords import LINKAGE
from jax_enzyme.ir.module import Function, GlobalAlias, GlobalVariable, Module

_RETURNS_TWICE = frozenset("setjmp _setjmp sigsetjmp __sigsetjmp getcontext vfork".split())
_AGAINST = frozenset(("noinline", "optnone", "alwaysinline", "inlinehint", "optsize", "minsize"))
_DROPPED = frozenset(("internal", "private", "linkonce", "linkonce_odr"))
"""Linkage of what LLVM drops where nobody calls it."""


def mark_for_inlining(module: Module, keep: Collection[str]) -> None:
    """Changes the module: definitions become `alwaysinline` unless recursive, all but `keep` internal; functions in
    `keep` stay where nobody calls them. What aliases name is named itself, and calls no longer forbid inlining."""
    name_what_aliases_name(module)
    for function in module.functions.values():
        for instruction in function.instructions():
            if isinstance(instruction, CallBase):
                instruction.attributes = without_attributes(module, instruction.attributes, frozenset(("noinline",)))
    recursive = recursive_functions(module)
    for name, function in module.functions.items():
        if function.is_declaration:
            continue
        attributes = without_attributes(module, function.attributes, _AGAINST)
        if function not in recursive:
            attributes = _with_attribute(attributes, "alwaysinline")
        function.attributes = attributes
        if name not in keep:
            _internalise(function)
        elif not _DROPPED.isdisjoint(function.prefix):
            function.prefix = tuple(word for word in function.prefix if word not in LINKAGE)
    for name, value in [*module.globals.items(), *module.aliases.items()]:
        defined = isinstance(value, GlobalAlias) or value.initializer is not None
        if defined and name not in keep and not name.startswith("llvm."):
            _internalise(value)


def _internalise(value: Function | GlobalVariable | GlobalAlias) -> None:
    """Internal linkage; visibility, storage class and comdat go with the old one."""
    value.prefix = ("internal", *[word for word in value.prefix if word not in LINKAGE])
    if isinstance(value, Function):
        value.attributes = tuple(word for word in value.attributes if not word.startswith("comdat"))
    else:
        value.suffix = tuple(word for word in value.suffix if not word.startswith("comdat"))


def expanded_attributes(module: Module, attributes: tuple[str, ...]) -> tuple[str, ...]:
    """Attributes with groups (`#3`) replaced by what they hold."""
    found: list[str] = []
    for word in attributes:
        found += module.attribute_groups.get(word[1:], ()) if word[0] == "#" else (word,)
    return tuple(found)


def returns_twice(module: Module, call: CallBase) -> bool:
    """Whether control may come back to behind a call for a second time, as with `setjmp`."""
    callee, words = call.callee, call.attributes
    if isinstance(callee, Function):
        if callee.name in _RETURNS_TWICE:
            return True
        words = (*words, *callee.attributes)
    return "returns_twice" in expanded_attributes(module, words)


def without_attributes(module: Module, attributes: tuple[str, ...], unwanted: frozenset[str]) -> tuple[str, ...]:
    """Attributes less the unwanted; groups stay as they are where they hold none of those."""
    found: list[str] = []
    for word in attributes:
        held = module.attribute_groups.get(word[1:], ()) if word[0] == "#" else (word,)
        if unwanted.isdisjoint(held):
            found.append(word)
        else:
            found += [w for w in held if w not in unwanted]
    return tuple(found)


def _with_attribute(attributes: tuple[str, ...], word: str) -> tuple[str, ...]:
    """In front of the first attribute group or plain attribute, behind `unnamed_addr` and `addrspace`."""
    at = 0
    while at < len(attributes) and ("unnamed_addr" in attributes[at] or attributes[at].startswith("addrspace")):
        at += 1
    return (*attributes[:at], word, *attributes[at:])


def recursive_functions(module: Module) -> set[Function]:
    """Definitions that can reach themselves by direct calls (Tarjan's components, without recursion of our own)."""
    graph = {f: _callees(f) for f in module.functions.values() if not f.is_declaration}
    found: set[Function] = set()
    index: dict[Function, int] = {}
    low: dict[Function, int] = {}
    stack: list[Function] = []
    on_stack: set[Function] = set()
    for root in graph:
        if root in index:
            continue
        work = [(root, iter(graph[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            function, callees = work[-1]
            descended = False
            for callee in callees:
                if callee not in graph:
                    continue
                if callee not in index:
                    index[callee] = low[callee] = len(index)
                    stack.append(callee)
                    on_stack.add(callee)
                    work.append((callee, iter(graph[callee])))
                    descended = True
                    break
                if callee in on_stack:
                    low[function] = min(low[function], index[callee])
            if descended:
                continue
            work.pop()
            if work:
                parent = work[-1][0]
                low[parent] = min(low[parent], low[function])
            if low[function] == index[function]:
                component = _pop_component(stack, on_stack, function)
                if len(component) > 1 or function in graph[function]:
                    found.update(component)
    return found


def _pop_component(stack: list[Function], on_stack: set[Function], root: Function) -> list[Function]:
    component: list[Function] = []
    while True:
        member = stack.pop()
        on_stack.discard(member)
        component.append(member)
        if member is root:
            return component


def _callees(function: Function) -> dict[Function, None]:
    return {
        i.operands[-1]: None
        for i in function.instructions()
        if isinstance(i, CallBase) and isinstance(i.operands[-1], Function)
    }
