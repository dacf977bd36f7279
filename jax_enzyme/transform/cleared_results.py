"""Memory that a function without a body returns its result in is cleared in front of the call.

    before    call void @format(ptr sret([24 x i8]) %text, ptr %x)

    after     call void @llvm.memset(ptr %text, i8 0, i64 24)
              call void @format(ptr sret([24 x i8]) %text, ptr %x)

The call itself is not followed. Where something else was in that memory before (a number, in an enumeration of Rust),
its tangent or adjoint would be taken for what goes with the result, or with an address in it.
"""

from __future__ import annotations

import re

from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.objects import call_effect, called_routine
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import Module, declared_callee
from jax_enzyme.ir.reader_types import TypeReader
from jax_enzyme.rules.declare import Declarations

_RETURNED = re.compile(r"sret\((.*)\)$")


def clear_results(module: Module) -> None:
    """Changes the module."""
    layout = DataLayout(module)
    for function in list(module.functions.values()):
        for block in function.blocks:
            calls = [i for i in block.instructions if isinstance(i, I.CallBase) and _is_unknown(i)]
            for call in calls:
                for index, words in enumerate(call.parameter_attributes[:2]):
                    if (found := next(filter(None, map(_RETURNED.match, words)), None)) is not None:
                        size = const_int(T.I64, layout.alloc_size(TypeReader(found[1]).type()))
                        at = Builder.before(block, call)
                        Declarations(module).memory(at, "memset", call.operands[index], const_int(T.I8, 0), size)


def _is_unknown(call: I.CallBase) -> bool:
    return declared_callee(call) is not None and call_effect(call) is None and called_routine(call) is None
