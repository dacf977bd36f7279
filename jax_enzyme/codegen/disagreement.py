"""Functions and variables that one file declares otherwise than another defines them: to C that is undefined, and what
is computed goes by registers that nobody set, or by halves of numbers. Where numbers are concerned derivatives would
not even be those of what is computed.
"""

from __future__ import annotations

from collections.abc import Iterator

from jax_enzyme.errors import CompileError
from jax_enzyme.frontends.spelling import spelling
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.debug import function_location, location, node_line, source_name, unit, variable
from jax_enzyme.ir.module import Function, GlobalVariable, Module, uses
from jax_enzyme.ir.values import ConstantExpr


def disagreement(module: Module) -> CompileError | None:
    """The error for a function that is called with numbers where it takes something else, or the other way round, or
    for a result that it does not have; or for a variable whose numbers have another size where another file uses it."""
    for function in module.functions.values():
        if function.is_declaration:
            continue
        for call in function.instructions():
            if error := _other_variable(module, function, call):
                return error
            callee = call.callee if isinstance(call, I.CallBase) else None
            if not isinstance(call, I.CallBase) or not isinstance(callee, Function) or callee.is_declaration:
                continue
            if call.function_type == callee.function_type:
                continue
            differ = next(_differences(call, callee, function), None)
            if differ is not None:
                name = spelling(callee.name)
                return CompileError(
                    f"`{name}` is not what it is called as: {differ}; it is defined at "
                    f"{function_location(module, callee) or callee.name}",
                    location(module, call) or str(spelling(function.name)),
                    f"declare `{name}` before it is called as it is defined",
                )
    return None


def _other_variable(module: Module, function: Function, instruction: I.Instruction) -> CompileError | None:
    """The error for an access to numbers of a variable of another file, which have another size there."""
    address, used = I.accessed(instruction) or (None, None)
    symbol = None if address is None else I.base_of(address)
    while isinstance(symbol, ConstantExpr) and symbol.opcode == "getelementptr":
        symbol = symbol.operands[0]
    if not isinstance(used, T.FloatType) or not isinstance(symbol, GlobalVariable) or symbol.initializer is None:
        return None
    defined = symbol.value_type
    while isinstance(defined, T.ArrayType):
        defined = defined.element
    files = unit(module, function), unit(module, symbol)
    if not isinstance(defined, T.FloatType) or used == defined or None in files or files[0] is files[1]:
        return None
    described = variable(module, symbol)
    place = (described and node_line(module, described)) or symbol.name
    name = source_name(module, symbol)
    return CompileError(
        f"`{name}` is not what it is used as: its numbers are {used} where they are used, and {defined} where the "
        f"variable is defined, at {place}",
        location(module, instruction) or str(spelling(function.name)),
        f"declare `{name}` as it is defined",
    )


def _differences(call: I.CallBase, callee: Function, caller: Function) -> Iterator[str]:
    passed = [argument.type for argument in call.arguments]
    taken = callee.function_type.parameters
    for place, (given, type_) in enumerate(zip(passed, taken, strict=False), 1):
        if not _go_together(given, type_):
            yield f"argument {place} is {given} where it is called, and parameter {place} is {type_}"
    if any(argument in uses(callee) for argument in callee.arguments[len(passed) :] if not _is_word(argument.type)):
        yield f"it is called with {len(passed)} arguments, and takes {len(taken)}"
    returned, result = call.type, callee.function_type.result
    if call in uses(caller) and not _go_together(returned, result):
        yield f"its result is {returned} where it is called, and it returns {result}"


def _go_together(one: T.Type, other: T.Type) -> bool:
    return one == other or (_is_word(one) and _is_word(other))


def _is_word(type_: T.Type) -> bool:
    """Integers and addresses go by the same registers, and old code takes the ones for the others."""
    return isinstance(type_, T.IntType | T.PointerType)
