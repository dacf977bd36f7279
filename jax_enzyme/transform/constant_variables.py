"""Variables in constant memory that the caller sets become parameters of the kernel, behind those that it has.

before    @taps = addrspace(4) externally_initialized constant [3 x float] zeroinitializer
          define float @tap(i32 %k) { ... ptr addrspacecast (ptr addrspace(4) @taps to ptr) ... }
          define ptx_kernel void @k(ptr %x) { ... call float @tap(i32 0) ... }
after     define float @tap(i32 %k, ptr %taps) { ... ptr %taps ... }
          define ptx_kernel void @k(ptr %x, ptr %taps) { ... call float @tap(i32 0, ptr %taps) ... }

Functions on the way from the kernel to a variable hand it on. Debug information gains the parameter too, so that its
type is held against the signature like all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import prod

from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.errors import SignatureError
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import values as V
from jax_enzyme.ir.arrays import ITEM_BYTES
from jax_enzyme.ir.debug import add_node, location, resolve
from jax_enzyme.ir.metadata import MDNode, MDNull, MDRef, MDValue
from jax_enzyme.ir.module import Function, GlobalVariable, Module, callers_of
from jax_enzyme.ir.reach import reached
from jax_enzyme.signature import Signature
from jax_enzyme.signature.expressions import names_in
from jax_enzyme.transform.cuda.spaces import uses
from jax_enzyme.transform.layouts import elements_of
from jax_enzyme.transform.private_globals import replace_in
from jax_enzyme.transform.rewriting import add_parameter, pass_argument

_CONSTANT = "addrspace(4)"
_SIZE = "dereferenceable"


def constant_variables(module: Module) -> dict[str, GlobalVariable]:
    """The variables in constant memory that have a name of the source."""
    return {n: g for n, g in module.globals.items() if _CONSTANT in g.prefix and _described(module, g) is not None}


def to_parameters(module: Module, symbol: str, variables: Sequence[str]) -> None:
    """Changes a module in place, where each variable is one of `constant_variables`. SignatureError where one cannot be
    a parameter: a function that uses it is called by a pointer, or it is not used as plain memory."""
    kernel = module.functions[symbol]
    for name in variables:
        variable = module.globals[name]
        reached = _reached(module, kernel, variable)
        size = DataLayout(module).alloc_size(variable.value_type)
        added = {f: add_parameter(f, f"const.{name}", (f"{_SIZE}({size})",)) for f in reached}
        for function, parameter in added.items():
            replace_in(function, dict.fromkeys(_casts(function, variable), parameter))
            _refuse_left(function, variable)
            for call in function.instructions():
                if isinstance(call, I.CallBase) and call.callee in added:
                    pass_argument(call, parameter)
        _describe(module, kernel, variable)


def check_sizes(kernel: Function, signature: Signature, dims: Mapping[str, int]) -> None:
    """SignatureError where an array that takes the place of a variable is not as large as that, as far as `dims` say
    how large it is."""
    variables = signature.variables
    for name, argument in zip(variables, kernel.arguments[len(kernel.arguments) - len(variables) :], strict=True):
        size = _size_of_variable(argument)
        if size is None or not all(names_in(dim) <= dims.keys() for dim in signature[name].dims or ()):
            continue
        given = ITEM_BYTES[signature[name].dtype] * prod(signature.shape(name, dims))
        if given != size:
            raise SignatureError(
                f"the variable `{name}` has {size} bytes in the source, and `const {signature[name]}` has {given}",
                remedy="pass all of it: what a kernel does not read may be anything",
            )


def _size_of_variable(parameter: V.Argument) -> int | None:
    """The bytes of the variable that a parameter was."""
    words = (w for w in parameter.attributes if w.startswith(f"{_SIZE}("))
    return next((int(w.removeprefix(f"{_SIZE}(").rstrip(")")) for w in words), None)


def _reached(module: Module, kernel: Function, variable: GlobalVariable) -> list[Function]:
    """The functions that use a variable or call one that does, and the kernel."""
    callers = callers_of(module.functions.values())
    own = (f for f in module.functions.values() if not f.is_declaration and uses(f, variable))
    found = {*reached(own, lambda f: callers.get(f, ())), kernel}
    for function in module.functions.values():
        for instruction in function.instructions():
            values = instruction.arguments if isinstance(instruction, I.CallBase) else instruction.operands
            taken = next((v for v in values if isinstance(v, Function) and v in found), None)
            if taken is not None:
                raise SignatureError(
                    f"the function `{taken.name}` uses the variable `{variable.name}`, and is called by a pointer: "
                    "`const` parameters are for variables that are used by functions called by name",
                    location(module, instruction),
                    "pass what it needs as an argument",
                )
    return sorted(found, key=lambda f: f.name)


def _casts(function: Function, variable: GlobalVariable) -> set[V.Value]:
    """The constants of a function that are the variable's address as a plain pointer."""

    def is_cast(value: V.Value) -> bool:
        return isinstance(value, V.ConstantExpr) and value.opcode == "addrspacecast" and value.operands[0] is variable

    def inside(value: V.Value) -> Iterable[V.Value]:
        return value.operands if isinstance(value, V.ConstantExpr) and not is_cast(value) else ()

    return {v for v in reached((o for i in function.instructions() for o in i.operands), inside) if is_cast(v)}


def _refuse_left(function: Function, variable: GlobalVariable) -> None:
    if uses(function, variable):
        raise SignatureError(
            f"the function `{function.name}` uses the variable `{variable.name}` as constant memory by name, "
            "and not through a plain pointer as clang and nvcc have it",
            None,
            "give the kernel as CUDA C++",
        )


# -- debug information


def _described(module: Module, variable: GlobalVariable) -> MDNode | None:
    """What the debug information says of a variable."""
    expression = next((resolve(module, v) for kind, v in variable.metadata if kind == "dbg"), None)
    return None if expression is None else resolve(module, expression.get("var"))


def _describe(module: Module, kernel: Function, variable: GlobalVariable) -> None:
    """A pointer to the elements of the variable is one more parameter in the prototype of the kernel."""
    known = _described(module, variable)
    program = next((v for kind, v in kernel.metadata if kind == "dbg"), None)
    node = resolve(module, program)
    kind = None if node is None else resolve(module, node.get("type"))
    listed = None if kind is None else resolve(module, kind.get("types"))
    if known is None or node is None or kind is None or listed is None:
        return
    element = elements_of(module, known.get("type"))
    if element is None:
        return
    fields: list[tuple[str, MDValue | str]] = [("tag", "DW_TAG_pointer_type"), ("baseType", element), ("size", "64")]
    pointer = add_node(module, MDNode("DIDerivedType", fields=fields))
    types = add_node(module, MDNode(operands=[*(listed.operands or [MDNull()]), pointer]))
    routine = add_node(module, MDNode("DISubroutineType", fields=[("types", types)]))
    changed = replace(node, fields=[(n, routine if n == "type" else v) for n, v in node.fields])
    assert isinstance(program, MDRef)
    module.metadata[program.number] = changed
