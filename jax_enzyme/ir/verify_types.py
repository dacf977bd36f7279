"""What types each instruction wants of its operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir import values as V
from jax_enzyme.ir.module import Function, Module

_FLOAT_OPERATIONS = frozenset("fadd fsub fmul fdiv frem".split())
_CASTS: dict[str, tuple[Callable[[T.Type], bool], Callable[[T.Type], bool]]] = {
    "trunc": (T.is_int, T.is_int),
    "zext": (T.is_int, T.is_int),
    "sext": (T.is_int, T.is_int),
    "fptrunc": (T.is_float, T.is_float),
    "fpext": (T.is_float, T.is_float),
    "fptoui": (T.is_float, T.is_int),
    "fptosi": (T.is_float, T.is_int),
    "uitofp": (T.is_int, T.is_float),
    "sitofp": (T.is_int, T.is_float),
    "ptrtoint": (T.is_pointer, T.is_int),
    "ptrtoaddr": (T.is_pointer, T.is_int),
    "inttoptr": (T.is_int, T.is_pointer),
    "addrspacecast": (T.is_pointer, T.is_pointer),
}


def type_error(module: Module, function: Function, instruction: I.Instruction) -> str | None:
    """What is wrong with the types of an instruction, or None."""
    if isinstance(instruction, I.Return):
        return _return(function, instruction)
    if isinstance(instruction, I.ExtractValue | I.InsertValue):
        return _member(module, instruction)
    check = _CHECKS.get(type(instruction))
    return None if check is None else check(instruction)


def _lanes(type_: T.Type) -> tuple[int, bool] | None:
    return (type_.count, type_.scalable) if isinstance(type_, T.VectorType) else None


def _unary(i: I.UnaryOp) -> str | None:
    if not T.is_float(i.type):
        return f"{i.opcode} of {i.type}"
    return _same(i.type, i.operands[0])


def _same(type_: T.Type, *values: V.Value) -> str | None:
    for value in values:
        if value.type != type_:
            return f"expected an operand of type {type_}, got {value.type}"
    return None


def _binary(i: I.BinaryOp) -> str | None:
    wanted = T.is_float if i.opcode in _FLOAT_OPERATIONS else T.is_int
    if not wanted(i.type):
        return f"{i.opcode} of {i.type}"
    return _same(i.type, *i.operands)


def _cast(i: I.Cast) -> str | None:
    source = i.operands[0].type
    if i.opcode == "bitcast":
        return None
    wanted = _CASTS.get(i.opcode)
    if wanted is None:
        return f"no cast is called {i.opcode}"
    if not (wanted[0](source) and wanted[1](i.type)) or _lanes(source) != _lanes(i.type):
        return f"{i.opcode} from {source} to {i.type}"
    return None


def _compare(i: I.Compare) -> str | None:
    type_ = i.operands[0].type
    fits = T.is_float(type_) if i.opcode == "fcmp" else T.is_int(type_) or T.is_pointer(type_)
    if not fits:
        return f"{i.opcode} of {type_}"
    if T.scalar(i.type) != T.I1 or _lanes(i.type) != _lanes(type_):
        return f"a comparison of {type_} gives no {i.type}"
    return _same(type_, *i.operands)


def _select(i: I.Select) -> str | None:
    condition = i.operands[0].type
    if T.scalar(condition) != T.I1 or _lanes(condition) not in (None, _lanes(i.type)):
        return f"condition of type {condition} for a value of type {i.type}"
    return _same(i.type, *i.operands[1:])


def _all_as_result(i: I.Instruction) -> str | None:
    return _same(i.type, *i.operands)


def _pointer_at(position: int) -> Callable[[I.Instruction], str | None]:
    def check(i: I.Instruction) -> str | None:
        found = i.operands[position].type
        return None if isinstance(found, T.PointerType) else f"expected a pointer, got {found}"

    return check


def _gep(i: I.GetElementPtr) -> str | None:
    if not T.is_pointer(i.operands[0].type):
        return f"expected a pointer, got {i.operands[0].type}"
    for index in i.operands[1:]:
        if not T.is_int(index.type):
            return f"expected integers as indices, got {index.type}"
    return None


def _alloca(i: I.Alloca) -> str | None:
    return None if isinstance(i.operands[0].type, T.IntType) else f"element count of type {i.operands[0].type}"


def _call(i: I.CallBase) -> str | None:
    signature = i.function_type
    given = [a.type for a in i.arguments]
    wanted = list(signature.parameters)
    if signature.variadic:
        given = given[: len(wanted)]
    if given != wanted:
        return f"arguments are ({', '.join(map(str, given))}), the function's type is {signature}"
    if i.type != signature.result:
        return f"a call of {signature} gives no {i.type}"
    if not T.is_pointer(i.callee.type):
        return f"callee is no pointer but {i.callee.type}"
    return None


def _cond_branch(i: I.CondBranch) -> str | None:
    if len(i.targets) != 2:
        return f"{len(i.targets)} targets"
    return _same(T.I1, i.operands[0])


def _switch(i: I.Switch) -> str | None:
    if not isinstance(i.operands[0].type, T.IntType):
        return f"switch over {i.operands[0].type}"
    if len(i.operands) != len(i.targets):
        return f"{len(i.operands) - 1} cases for {len(i.targets) - 1} targets"
    numbers = [V.int_value(case) for case in i.operands[1:]]
    if None in numbers:
        return "a case is no integer constant"
    if len(set(numbers)) != len(numbers):
        return "a case occurs twice"
    return _same(i.operands[0].type, *i.operands[1:])


def _return(function: Function, i: I.Return) -> str | None:
    wanted = function.function_type.result
    given = i.operands[0].type if i.operands else T.VOID
    return None if wanted == given else f"returns {given} from a function of type {function.function_type}"


def _member(module: Module, i: I.ExtractValue | I.InsertValue) -> str | None:
    found = i.operands[0].type
    for index in i.indices:
        body = module.struct_bodies.get(found.name) if isinstance(found, T.NamedStructType) else found
        if isinstance(body, T.StructType) and index < len(body.elements):
            found = body.elements[index]
        elif isinstance(body, T.ArrayType) and index < body.count:
            found = body.element
        else:
            return f"no element {index} in {found}"
    inserted = i.type if isinstance(i, I.ExtractValue) else i.operands[1].type
    return None if inserted == found else f"the element is of type {found}, not {inserted}"


def _vector(i: I.ExtractElement | I.InsertElement) -> str | None:
    type_ = i.operands[0].type
    if not isinstance(type_, T.VectorType):
        return f"expected a vector, got {type_}"
    if isinstance(i, I.ExtractElement):
        return None if i.type == type_.element else f"the element is of type {type_.element}, not {i.type}"
    return _same(type_.element, i.operands[1]) or _same(i.type, i.operands[0])


def _shuffle(i: I.ShuffleVector) -> str | None:
    if not isinstance(i.type, T.VectorType) or not isinstance(i.mask_type, T.VectorType):
        return f"shuffle to {i.type} by {i.mask_type}"
    if len(i.mask) != i.type.count or i.mask_type.count != i.type.count:
        return f"{len(i.mask)} lanes in the mask for a result of type {i.type}"
    return _same(i.operands[0].type, i.operands[1])


_CHECKS: dict[type, Callable[[Any], str | None]] = {
    I.UnaryOp: _unary,
    I.BinaryOp: _binary,
    I.Cast: _cast,
    I.Compare: _compare,
    I.Select: _select,
    I.Phi: _all_as_result,
    I.Freeze: _all_as_result,
    I.Alloca: _alloca,
    I.Load: _pointer_at(0),
    I.Store: _pointer_at(1),
    I.GetElementPtr: _gep,
    I.Call: _call,
    I.Invoke: _call,
    I.CallBr: _call,
    I.CondBranch: _cond_branch,
    I.Switch: _switch,
    I.ExtractElement: _vector,
    I.InsertElement: _vector,
    I.ShuffleVector: _shuffle,
    I.AtomicRMW: _pointer_at(0),
    I.CmpXchg: _pointer_at(0),
}
