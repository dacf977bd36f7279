"""What compilers take for certain: that calls lead to functions, and what `llvm.assume` says.

    before    call void @llvm.assume(i1 %allocated)      after    br i1 %allocated, label %fine, label %fails

Once calls through pointers are direct ones, and functions are inlined, all of this is believed: so it is checked
before. Assumptions are those of the source (`__builtin_assume`), and what a front end's own optimiser has made of a
mistake: where a Fortran array is read that may not be allocated, it is assumed to be.
"""

from __future__ import annotations

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import const_int
from jax_enzyme.ir.module import Function, callee_name
from jax_enzyme.ir.values import ConstantNull, InlineAsm, int_value
from jax_enzyme.transform.insertion import Check
from jax_enzyme.transform.sanitize.runtime import Runtime

_ASSUMPTION = (
    "goes on where what its compiler takes for certain is not so: an array that is not allocated is used, an index "
    "beyond a slice is not checked, or an assumption in the source does not hold"
)


def promise_checks(instruction: I.Instruction, runtime: Runtime) -> list[Check]:
    """What is to be checked before an instruction."""
    if not isinstance(instruction, I.CallBase):
        return []
    if callee_name(instruction) == "llvm.assume" and int_value(holds := instruction.arguments[0]) is None:
        status = runtime.failure(_ASSUMPTION, instruction)
        return [Check(lambda at: at.icmp("eq", holds, const_int(T.I1, 0)), lambda at: status)]
    if isinstance(callee := instruction.callee, Function | InlineAsm):
        return []
    status = runtime.failure("calls a null pointer", instruction)
    return [Check(lambda at: at.icmp("eq", callee, ConstantNull(T.PTR)), lambda at: status)]
