"""Kernels that write to a buffer which their signature declares `in`: JAX's arrays must never change.

A kernel that writes to an input, or has a pointer that may lead to one, works on a copy of that input. On GPUs there is
no memory for copies, and a write to an input is refused.

    "n: i32, x: f64[n]"     store double %y, ptr %x

    after     %copy = call ptr @malloc(i64 <bytes>)
              call void @llvm.memcpy(ptr %copy, ptr %x, i64 <bytes>, i1 false)
              ... the kernel, with %copy for %x ...
              call void @free(ptr %copy)
"""

from __future__ import annotations

from collections.abc import Iterator

from jax_enzyme.analysis.accesses import accesses
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.memory import PointsTo, map_of
from jax_enzyme.analysis.objects import Objects
from jax_enzyme.classes import dataclass, replace
from jax_enzyme.errors import SignatureError
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.debug import location
from jax_enzyme.ir.inlining import expanded_attributes
from jax_enzyme.ir.module import Function, Module, callee_name, declared_callee, uses
from jax_enzyme.ir.reach import Reached
from jax_enzyme.ir.values import Argument, Value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.rules.effects import Effect, effect
from jax_enzyme.transform.rewriting import replace_values

_ON_STACK = 1024
"""Copies of so many bytes are local variables, which optimisation takes apart."""
_ALIGN = 16
_READ_ONLY = ("readonly", "readnone", "memory(none)", "memory(read)")


@dataclass(frozen=True, eq=False)
class InputWrite:
    """An instruction that writes, perhaps, to the input buffer `parameter`."""

    parameter: Argument
    instruction: I.Instruction


def input_writes(function: ArrayFunction) -> list[InputWrite]:
    """All writes to `in` buffers, in program order."""
    points_to = map_of(function)
    inputs = {
        points_to.objects[a]: a for a, b in zip(points_to.root.arguments, function.buffers, strict=True) if b.io == "in"
    }
    found: list[InputWrite] = []
    for instruction, objects in _writes(function.module, points_to):
        found += [InputWrite(inputs[o], instruction) for o in objects if o in inputs]
    return found


def accesses_behind(pointer: Argument, function: Function) -> Iterator[I.Instruction]:
    """What a function, and the defined ones that it calls, do with a pointer, but for passing it on to them."""
    pointers = Reached([(function, pointer)])
    for code, parameter in pointers:
        users, behind = uses(code), Reached[Value]([parameter])
        for value in behind:
            for user, _ in users.get(value, ()):
                match user:
                    case I.GetElementPtr() | I.Select() | I.Phi():
                        behind.add([user])
                    case I.CallBase(callee=Function(blocks=[_, *_]) as callee):
                        given = zip(callee.arguments, user.arguments, strict=True)
                        pointers.add((callee, p) for p, a in given if a is value)
                    case _:
                        yield user


def _writes(module: Module, points_to: PointsTo) -> Iterator[tuple[I.Instruction, Objects]]:
    layout = DataLayout(module)
    for function in points_to.functions:
        for access in accesses(points_to, function, layout):
            instruction = access.instruction
            if not access.writes:
                continue
            call = instruction if isinstance(instruction, I.CallBase) else None
            if call is None or _known(call) or not _only_reads(module, call, access.pointer):
                yield instruction, access.objects


def _known(call: I.CallBase) -> bool:
    return effect(callee_name(call)) in (Effect.MEMORY_COPY, Effect.MEMORY_SET)


def _only_reads(module: Module, call: I.CallBase, pointer: Value) -> bool:
    """Calls without a body: those that are known not to write, and parameters that are declared so. A call of which
    nothing is known is believed: it is the signature that says what the user knows."""
    callee = declared_callee(call)
    if callee is None:
        return True  # where it has a body, its own stores are looked at
    words = expanded_attributes(module, (*callee.attributes, *call.attributes))
    if any(w in _READ_ONLY for w in words) or effect(callee.name) is not None:
        return effect(callee.name) not in (Effect.FREE, Effect.REALLOCATE)
    index = next((i for i, a in enumerate(call.arguments) if a is pointer), None)
    given = call.parameter_attributes[index] if index is not None and index < len(call.parameter_attributes) else ()
    declared = callee.arguments[index].attributes if index is not None and index < len(callee.arguments) else ()
    return "writeonly" not in (*given, *declared)


def protect_inputs(function: ArrayFunction) -> tuple[ArrayFunction, tuple[str, ...]]:
    """The array function that changes none of its inputs, and the names of those of which it has a copy; itself where
    nothing writes to them. Before inlining many a pointer seems to lead to where it never does: this is for the
    canonical form."""
    written = sorted({w.parameter.index for w in input_writes(function)})
    if not written:
        return function, ()
    module = clone(function.module)
    root = module.functions[function.symbol]
    for index in written:
        _copy_in(module, root, root.arguments[index], function.buffers[index].nbytes)
    return replace(function, module=module), tuple(function.buffers[index].name for index in written)


def refused(function: ArrayFunction, write: InputWrite) -> SignatureError:
    """The error for a certain write."""
    buffer = function.buffers[write.parameter.index]
    return SignatureError(
        f"the kernel writes to `{buffer.name}`, which the signature declares as an input",
        location(function.module, write.instruction),
        f"declare it as `inout {buffer.name}: {buffer.dtype}[...]`: its new value is a result, JAX's array stays",
    )


def _copy_in(module: Module, root: Function, parameter: Argument, nbytes: int) -> None:
    declarations = Declarations(module)
    start = Builder.on_top(root)
    size = const_int(T.I64, max(nbytes, 1))
    if nbytes <= _ON_STACK:
        copy = start.alloca(T.ArrayType(max(nbytes, 1), T.I8), align=_ALIGN)
    else:
        copy = declarations.memory(start, "malloc", size)
        _free_at_returns(root, copy, declarations)
    replace_values(root, {parameter: copy})
    declarations.memory(start, "memcpy", copy, parameter, size)


def _free_at_returns(root: Function, copy: Value, declarations: Declarations) -> None:
    for block in root.blocks:
        if isinstance(block.terminator, I.Return):
            declarations.memory(Builder.at_end(block), "free", copy)
