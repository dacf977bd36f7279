"""Calls that no run gets to, since nothing that the pointer may lead to fits them, become failures with a message.

    before    call void %jac(ptr %n, ptr %t)               after    call void @je.unfitting()
              ...                                                   unreachable

A solver that is told not to use the Jacobian is given anything in its place. Should a run get there after all, that is
an error of the call (`failures`), not code run with arguments that it does not have.
"""

from __future__ import annotations

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.values import BasicBlock, Value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.transform.failure_sites import UNFITTING
from jax_enzyme.transform.rewriting import drop_edge, forget_records, locate


def fail_unfitting(at: Builder, call: I.Instruction, declarations: Declarations) -> None:
    """The failure, at the place of the call in the source."""
    locate(call, [declarations.invoke(at, UNFITTING, T.VOID, words=("noreturn",))])
    at.unreachable()


def end_at_call(function: Function, block: BasicBlock, call: I.Instruction, declarations: Declarations) -> None:
    """Puts the failure in the place of a call and of all that follows in its block."""
    for successor in block.successors:
        drop_edge(successor, block)
    index = block.instructions.index(call)
    gone: set[Value] = set(block.instructions[index:])
    del block.instructions[index:]
    fail_unfitting(Builder(block), call, declarations)
    forget_records(function, gone)
