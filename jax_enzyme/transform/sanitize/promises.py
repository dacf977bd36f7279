"""What compilers take for certain: that calls lead to functions, what `llvm.assume` says, and that what is marked as
unreachable is never reached.

    before    call void @llvm.assume(i1 %allocated)      after    br i1 %allocated, label %fine, label %fails

Once calls through pointers are direct ones, and functions are inlined, all of this is believed: so it is checked
before. Assumptions are those of the source (`__builtin_assume`), and what a front end's own optimiser has made of a
mistake: where a Fortran array is read that may not be allocated, it is assumed to be.

Where LLVM has to optimise before checks can go in (threads of CUDA are joined in what it makes of them), what C++
promises of addresses and of loops is forgotten before: LLVM would take a loop to end before an array does.
"""

from __future__ import annotations

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import const_int
from jax_enzyme.ir.debug import location
from jax_enzyme.ir.inlining import without_attributes
from jax_enzyme.ir.metadata import MDNode, MDString
from jax_enzyme.ir.module import Function, Module, callee_name
from jax_enzyme.ir.nodes import of_kind
from jax_enzyme.ir.values import ConstantNull, InlineAsm, Value, int_value
from jax_enzyme.transform.failure_sites import site
from jax_enzyme.transform.insertion import Check
from jax_enzyme.transform.sanitize.runtime import Runtime

_ASSUMPTION = (
    "goes on where what its compiler takes for certain is not so: an array that is not allocated is used, an index "
    "beyond a slice is not checked, or an assumption in the source does not hold"
)


_UNREACHABLE = (
    "gets to what its compiler takes never to be reached: the end of a function that returns a value, or what the "
    "source says is unreachable"
)


def promise_checks(function: Function, runtime: Runtime) -> dict[I.Instruction, list[Check]]:
    """What is to be checked before the instructions of a function."""
    found = {i: checks for i in function.instructions() if (checks := _checks_of(i, runtime))}
    thrown = {i.targets[0] for i in function.instructions() if isinstance(i, I.Invoke)}
    for block in function.blocks:
        end, *before = reversed(block.instructions)
        ends_there = site(runtime.module, before[0]) is not None if before else block in thrown
        if isinstance(end, I.Unreachable) and not ends_there:
            status = runtime.failure(_UNREACHABLE, end, None if location(runtime.module, end) else function)
            found[end] = [_always(status)]
    return found


def _always(status: Value) -> Check:
    return Check(lambda at: const_int(T.I1, 1), lambda at: status)


def _checks_of(instruction: I.Instruction, runtime: Runtime) -> list[Check]:
    if not isinstance(instruction, I.CallBase):
        return []
    if callee_name(instruction) == "llvm.assume" and int_value(holds := instruction.arguments[0]) is None:
        status = runtime.failure(_ASSUMPTION, instruction)
        return [Check(lambda at: at.icmp("eq", holds, const_int(T.I1, 0)), lambda at: status)]
    if isinstance(callee := instruction.callee, Function | InlineAsm):
        return []
    status = runtime.failure("calls a null pointer", instruction)
    return [Check(lambda at: at.icmp("eq", callee, ConstantNull(T.PTR)), lambda at: status)]


def forget_progress(module: Module) -> None:
    """Takes back that loops end which do nothing else, and that addresses stay in their objects, in place."""
    for function in [f for f in module.functions.values() if not f.is_declaration]:
        function.attributes = without_attributes(module, function.attributes, frozenset(("mustprogress", "willreturn")))
        for instruction in function.instructions():
            if isinstance(instruction, I.GetElementPtr):
                instruction.flags = ()
    for number, node in of_kind(module.metadata, ""):
        if any(isinstance(o, MDString) and o.text == "llvm.loop.mustprogress" for o in node.operands):
            module.metadata[number] = MDNode(operands=[MDString("hide.loop.mustprogress")])
