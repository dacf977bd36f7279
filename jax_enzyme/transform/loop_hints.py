"""What LLVM is told of a loop, in the metadata of the branch that closes it."""

from __future__ import annotations

from typing import Literal

from jax_enzyme.ir import types as T
from jax_enzyme.ir.debug import add_loop
from jax_enzyme.ir.instructions import Instruction
from jax_enzyme.ir.metadata import MDConstant, MDNode, MDRef, MDString, MDValue
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.values import ConstantInt

_LOOP = "llvm.loop"


def properties(module: Module, branch: Instruction) -> list[MDValue]:
    """What is known of a loop, behind the node's reference to itself."""
    node = dict(branch.metadata).get(_LOOP)
    return module.metadata[node.number].operands[1:] if isinstance(node, MDRef) else []


def ask(module: Module, branch: Instruction, how: int | Literal["full", "disable", "late"] = "full") -> None:
    """Asks, in place, to unroll the loop that a branch closes: altogether, so many iterations at a time, not at all, or
    not before its iterations are vectors: what is said of the loop does not go on to that of vectors then."""
    word = "count" if isinstance(how, int) else "disable" if how == "late" else how
    words: list[MDValue] = [MDString(f"llvm.loop.unroll.{word}")]
    if isinstance(how, int):
        words.append(MDConstant(ConstantInt(T.I32, how)))
    said = [MDNode(operands=words)]
    if how == "late":
        done = MDNode(operands=[MDString("llvm.loop.isvectorized"), MDConstant(ConstantInt(T.I32, 1))])
        said.append(MDNode(operands=[MDString("llvm.loop.vectorize.followup_all"), done]))
    own = add_loop(module, properties(module, branch), said)
    branch.metadata = [*((kind, node) for kind, node in branch.metadata if kind != _LOOP), (_LOOP, own)]


def forget(module: Module, branch: Instruction) -> None:
    """Takes back, in place, whatever was asked of unrolling the loop that a branch closes."""
    kept = [item for item in properties(module, branch) if not _is_of_unrolling(module, item)]
    branch.metadata = [(kind, node) for kind, node in branch.metadata if kind != _LOOP]
    if kept:
        branch.metadata.append((_LOOP, add_loop(module, kept)))


def is_spoken_of(module: Module, branch: Instruction) -> bool:
    """Whether the source says whether to unroll a loop, or it was to be unrolled before."""
    return any(_is_of_unrolling(module, item) for item in properties(module, branch))


def _is_of_unrolling(module: Module, item: MDValue) -> bool:
    node = module.metadata[item.number] if isinstance(item, MDRef) else item
    first = node.operands[0] if isinstance(node, MDNode) and node.operands else None
    return isinstance(first, MDString) and ".loop.unroll." in first.text
