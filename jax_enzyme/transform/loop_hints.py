"""What LLVM is told of a loop, in the metadata of the branch that closes it."""

from __future__ import annotations

from jax_enzyme.ir import types as T
from jax_enzyme.ir.instructions import Instruction
from jax_enzyme.ir.metadata import MDConstant, MDNode, MDRef, MDString, MDValue
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.values import ConstantInt

_LOOP = "llvm.loop"


def properties(module: Module, branch: Instruction) -> list[MDValue]:
    """What is known of a loop, behind the node's reference to itself."""
    node = dict(branch.metadata).get(_LOOP)
    return module.metadata[node.number].operands[1:] if isinstance(node, MDRef) else []


def ask(module: Module, branch: Instruction, count: int | None = None) -> None:
    """Asks, in place, to unroll the loop that a branch closes: altogether, or so many iterations at a time."""
    number = 1 + max((int(n) for n in module.metadata), default=-1)
    own, wish = MDRef(str(number)), MDRef(str(number + 1))
    module.metadata[own.number] = MDNode(operands=[own, *properties(module, branch), wish], distinct=True)
    words: list[MDValue] = [MDString(f"llvm.loop.unroll.{'full' if count is None else 'count'}")]
    if count is not None:
        words.append(MDConstant(ConstantInt(T.I32, count)))
    module.metadata[wish.number] = MDNode(operands=words)
    branch.metadata = [*((kind, node) for kind, node in branch.metadata if kind != _LOOP), (_LOOP, own)]
