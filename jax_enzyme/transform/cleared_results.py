"""Memory that a function without a body returns its result in is cleared in front of the call.

    before    call void @format(ptr sret([24 x i8]) %text, ptr %x)

    after     call void @llvm.memset(ptr %text, i8 0, i64 24)
              call void @format(ptr sret([24 x i8]) %text, ptr %x)

The call itself is not followed. Where something else was in that memory before (a number, in an enumeration of Rust),
its tangent or adjoint would be taken for what goes with the result, or with an address in it.
"""

from __future__ import annotations

from jax_enzyme.analysis.flow import is_opaque_call
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import Module, declared_callee
from jax_enzyme.ir.reader_types import TypeReader
from jax_enzyme.ir.values import Value
from jax_enzyme.rules.declare import Declarations

_RETURNED = "sret("


def clear_results(module: Module) -> None:
    """Changes the module."""
    layout = DataLayout(module)
    for function in list(module.functions.values()):
        for block in function.blocks:
            for call in [i for i in block.instructions if isinstance(i, I.CallBase)]:
                returned = _returned(call)
                if returned is not None and declared_callee(call) is not None and is_opaque_call(call):
                    pointer, type_ = returned
                    size = const_int(T.I64, layout.alloc_size(type_))
                    at = Builder.before(block, call)
                    Declarations(module).memory(at, "memset", pointer, const_int(T.I8, 0), size)


def _returned(call: I.CallBase) -> tuple[Value, T.Type] | None:
    """Where a call returns its result in memory, one of the first two pointers, and of which type that is."""
    for pointer, words in zip(call.arguments[:2], call.parameter_attributes, strict=False):
        for word in words:
            if word.startswith(_RETURNED):
                return pointer, TypeReader(word[len(_RETURNED) : -1]).type()
    return None
