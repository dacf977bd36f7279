"""File-scope variables become local: a kernel starts every call from their initial values.

    before   @sum = internal global double 0.0           after   @sum = internal global double 0.0
             define i64 @je.primal(...) {                        define i64 @je.primal(...) {
               %a = load double, ptr @sum                          %sum = alloca double
                                                                   store double 0.0, ptr %sum
                                                                   %a = load double, ptr %sum

A JAX function is pure: it gives the same for the same arguments, on any thread, in any order, so what one call leaves
behind must not reach the next. Within a call nothing changes. Where recursive functions use a variable, it is a local
one of the root function all the same, and they get its address as one more parameter:

    before   define double @f(double %x) {               after   define double @f(double %x, ptr %sum) {
               %a = load double, ptr @sum                          %a = load double, ptr %sum
               %b = call double @f(double %a)                      %b = call double @f(double %a, ptr %sum)

Where one starts with the address of another, that is stored at the start as well, and a constant table that holds such
addresses becomes local like them.

A variable that functions use whose addresses are taken stays as it is, and the engine refuses it where a derivative
would pass through. A thread-local variable is private anyway, and becomes local like any other.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from jax_enzyme.analysis.layout import DataLayout, addresses
from jax_enzyme.analysis.objects import named_functions
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.builder import Builder, instruction_of, zero
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.debug import source_name
from jax_enzyme.ir.marks import is_common, mark_common
from jax_enzyme.ir.module import Function, GlobalVariable, Module, callee_name
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import (
    BasicBlock,
    Constant,
    ConstantAggregate,
    ConstantExpr,
    ConstantInt,
    ConstantSplat,
    Value,
    ZeroInitializer,
    parts_of,
)
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.transform.rewriting import (
    add_parameter,
    forget_tails,
    kept_attributes,
    pass_argument,
    substitute,
)


def privatise(function: ArrayFunction) -> ArrayFunction:
    """The array function with its mutable globals made local; the very same where it has none."""
    if not users_of_variables(function.module, function.module.functions[function.symbol]):
        return function
    module = clone(function.module)
    root = module.functions[function.symbol]
    found = users_of_variables(module, root)
    for variable in found:
        _store_addresses(module, root, variable, found.keys())
    pass_on(root, found)
    top = Builder(BasicBlock())
    replace_in(root, {variable: _local(module, variable, top) for variable in reversed(found)}, top)
    changed = {root}.union(*found.values())
    for target in changed:
        forget_tails(target)
        _forget_memory(module, target, changed)
    return replace(function, module=module)


def users_of_variables(module: Module, root: Function, declared: bool = False) -> dict[GlobalVariable, list[Function]]:
    """The variables to make local, each with the other functions that use it, or call one that does; also those that
    are `declared` only."""
    users: dict[Value, set[Function]] = {}
    callers: dict[Function, set[Function]] = {}
    fixed: set[Value] = set()
    for function in module.functions.values():
        for instruction in function.instructions():
            operands = instruction.operands
            if isinstance(instruction, I.CallBase) and isinstance(callee := instruction.callee, Function):
                callers.setdefault(callee, set()).add(function)
                operands = instruction.arguments
                if not isinstance(instruction, I.Call) or "musttail" in instruction.flags:
                    fixed.add(callee)
            for operand in operands:
                fixed.update(named_functions(operand))
                for variable in globals_in(operand):
                    users.setdefault(variable, set()).add(function)
    known = [v for v in module.globals.values() if v.initializer is not None or (declared and not v.is_constant)]
    leads = {v: globals_in(v.initializer) if v.initializer is not None else set[Value]() for v in known}
    for variable in leads:
        if variable.initializer is not None:
            fixed.update(named_functions(variable.initializer))
    held = {v: reached(users.get(v, ()), lambda function: callers.get(function, ())) for v in _possible(leads)}
    private = {v for v, functions in held.items() if fixed.isdisjoint(functions)}
    # What stays as it is says where other variables are.
    while outside := set[Value]().union(*(leads[v] for v in leads.keys() - private)) & private:
        private -= outside
    used = {v for v in private if root in held[v]}
    while further := {v for v in private - used if any(v in leads[user] for user in used)}:
        used |= further
    functions = [f for f in module.functions.values() if f is not root]
    return {v: [f for f in functions if f in held[v]] for v in leads if v in used}


def _possible(leads: Mapping[GlobalVariable, set[Value]]) -> set[GlobalVariable]:
    """The variables of the module's own that change, and the tables that lead to them."""
    found = {v for v in leads if _is_own(v) and not v.is_constant}
    while further := {v for v in leads if _is_own(v) and not leads[v].isdisjoint(found)} - found:
        found |= further
    return found


def pass_on(root: Function, found: Mapping[GlobalVariable, Collection[Function]]) -> None:
    """Gives functions the addresses of the variables that they use as their last parameters. (In the root the variables
    stand for them still.)"""
    taken: dict[Value, list[GlobalVariable]] = {}
    for variable, users in found.items():
        for function in users:
            taken.setdefault(function, []).append(variable)
            add_parameter(function, f"{variable.name}.global")
    functions = [f for f in taken if isinstance(f, Function)]
    for caller in (root, *functions):
        for call in caller.instructions():
            if isinstance(call, I.CallBase):
                for variable in taken.get(call.callee, ()):
                    pass_argument(call, variable)
    for function in functions:
        variables = taken[function]
        replace_in(function, dict(zip(variables, function.arguments[-len(variables) :], strict=True)))


def replace_in(function: Function, places: Mapping[Value, Value], top: Builder | None = None) -> None:
    """Puts pointers, which are there from the start on, in the place of globals and of constants that name them, in a
    whole function; what is built at the `top` is put in front of it."""
    replaced, top = dict(places), top or Builder(BasicBlock())
    for instruction in function.instructions():
        instruction.operands = [_localised(v, replaced, top) for v in instruction.operands]
    substitute(function, {i: i.operands[0] for i in function.instructions() if _is_thread_address(i)})
    function.entry.instructions[:0] = top.block.instructions


def _is_thread_address(instruction: I.Instruction) -> bool:
    """The address of this thread's copy of what is one no longer."""
    is_address = callee_name(instruction).startswith("llvm.threadlocal.address")
    return is_address and not isinstance(instruction.operands[0], GlobalVariable)


def _forget_memory(module: Module, function: Function, changed: set[Function]) -> None:
    """What was said about the memory that functions use: it is behind parameters now."""

    def keep(word: str) -> bool:
        return not word.startswith("memory(")

    function.attributes = kept_attributes(module, function.attributes, keep)
    for call in function.instructions():
        if isinstance(call, I.CallBase) and call.callee in changed:
            call.attributes = kept_attributes(module, call.attributes, keep)


def _is_own(variable: GlobalVariable) -> bool:
    words = " ".join(variable.prefix)
    return "internal" in words or "private" in words or variable.initializer is None


def globals_in(value: Value) -> set[Value]:
    """The variables that a constant names."""
    return {value} if isinstance(value, GlobalVariable) else set[Value]().union(*map(globals_in, parts_of(value)))


def _store_addresses(module: Module, root: Function, variable: GlobalVariable, found: Collection[Value]) -> None:
    """Addresses of such variables in the initial value of one are stored at the start: locals have them only then."""
    top = Builder(BasicBlock())
    assert variable.initializer is not None
    for offset, address in addresses(DataLayout(module), variable.initializer):
        if not globals_in(address).isdisjoint(found):
            top.store(address, top.offset(variable, offset))
    if top.block.instructions:
        variable.initializer = _without(variable.initializer, found)
        root.entry.instructions[:0] = top.block.instructions


def _without(value: Constant, found: Collection[Value]) -> Constant:
    if isinstance(value, ConstantAggregate):
        return replace(value, elements=[_without(element, found) for element in value.elements])
    return value if globals_in(value).isdisjoint(found) else zero(value.type)


def _local(module: Module, variable: GlobalVariable, top: Builder) -> Value:
    """What takes the place of a global: an alloca that is filled at the start. One that all threads have in common is a
    byte larger: of variables of one size, one a thread's own copy of the other, LLVM may make one."""
    kind = T.StructType((variable.value_type, T.I8)) if is_common(variable) else variable.value_type
    local = top.alloca(kind, align=16)
    local.name = f"{source_name(module, variable)}.local"
    if is_common(variable):
        mark_common(local)
    size = ConstantInt(T.I64, DataLayout(module).alloc_size(variable.value_type))
    declarations = Declarations(module)
    if isinstance(variable.initializer, ZeroInitializer):
        declarations.memory(top, "memset", local, ConstantInt(T.I8, 0), size)
    elif isinstance(variable.value_type, T.IntType | T.FloatType | T.PointerType):
        assert variable.initializer is not None
        top.store(variable.initializer, local)
    else:
        initial = GlobalVariable(
            T.PTR,
            variable.value_type,
            variable.initializer,
            True,
            ("private", "unnamed_addr"),
            name=f"{variable.name}.initial",
        )
        module.globals[initial.name] = initial
        declarations.memory(top, "memcpy", local, initial, size)
    variable.prefix = tuple(w for w in variable.prefix if not w.startswith("thread_local"))
    return local


def _localised(value: Value, replaced: dict[Value, Value], top: Builder) -> Value:
    """A value with the global replaced; addresses in it are computed once, at the start."""
    if value in replaced or not isinstance(value, Constant) or replaced.keys().isdisjoint(reached([value], parts_of)):
        return replaced.get(value, value)
    if isinstance(value, ConstantExpr):
        operands = [_localised(v, replaced, top) for v in value.operands]
        replaced[value] = top.insert(instruction_of(value, operands))
    else:
        replaced[value] = top.pack(value.type, [_localised(v, replaced, top) for v in _elements(value)])
    return replaced[value]


def _elements(value: Constant) -> list[Constant]:
    if isinstance(value, ConstantSplat):
        assert isinstance(value.type, T.VectorType)
        return [value.element] * value.type.count
    assert isinstance(value, ConstantAggregate), f"a global inside a {type(value).__name__} operand"
    return value.elements
