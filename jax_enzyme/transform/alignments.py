"""No access is aligned further than what it accesses: the numbers of an array, the members of a structure.

    before    %v = load <2 x double>, ptr %x, align 16
              call void @llvm.assume(i1 true) [ "align"(ptr %x, i64 64) ]
              %low = and i64 (ptrtoint %x), 31
              %fits = icmp eq i64 %low, 0
              call void @llvm.assume(i1 %fits)
    after     %v = load <2 x double>, ptr %x, align 8
              call void @llvm.assume(i1 true)
              %low = and i64 (ptrtoint %x), 31
              %fits = icmp eq i64 %low, 0

More is true of the memory that the source speaks of, and not of what takes its place: a row of a batch begins wherever
the row before it ends, and a local object that reverse reads has its place among the numbers of the tape. There an
access that is taken to be aligned ends the process. What is aligned all the same, LLVM finds again when it compiles.
"""

from __future__ import annotations

from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Module, callee_name
from jax_enzyme.ir.reach import reached

_WORD = 8
_ALIGN = "align"
_COMPUTES = I.BinaryOp | I.Cast | I.Compare | I.Select | I.Freeze
_TAKES_BITS = ("and", "or", "xor", "shl", "lshr", "ashr", "urem", "srem", "udiv", "sdiv", "mul", "trunc")


def forget_alignments(module: Module) -> None:
    """Takes back, in place, what accesses, parameters, results and assumptions say of alignment beyond that."""
    layout = DataLayout(module)
    for function in module.functions.values():
        for argument in function.arguments:
            argument.attributes = _plain(argument.attributes)
        function.return_attributes = _plain(function.return_attributes)
        for block in function.blocks:
            block.instructions = [i for i in block.instructions if not _assumes_bits(i)]
        for instruction in function.instructions():
            match instruction:
                case I.Load() | I.Store() if not instruction.ordering:
                    known = layout.alignment(instruction)
                    instruction.align = min(known, _natural(layout, I.accessed_value(instruction).type))
                    instruction.metadata = [(kind, node) for kind, node in instruction.metadata if kind != _ALIGN]
                case I.CallBase():
                    instruction.return_attributes = _plain(instruction.return_attributes)
                    instruction.parameter_attributes = [_plain(words) for words in instruction.parameter_attributes]
                    instruction.bundles = [(tag, values) for tag, values in instruction.bundles if tag != _ALIGN]
                case _:
                    pass


def _assumes_bits(instruction: I.Instruction) -> bool:
    """Whether it is an assumption about some of the bits of an address, and not about a distance or an order alone."""
    if callee_name(instruction) != "llvm.assume":
        return False
    asked = reached(instruction.operands[:1], lambda v: v.operands if isinstance(v, _COMPUTES) else ())
    bits = any(isinstance(v, I.BinaryOp | I.Cast) and v.opcode in _TAKES_BITS for v in asked)
    return bits and any(isinstance(v, I.Cast) and v.opcode in ("ptrtoint", "ptrtoaddr") for v in asked)


def _natural(layout: DataLayout, type_: T.Type) -> int:
    """That of the elements of a vector; an integer may be several numbers in one."""
    element = T.scalar(type_)
    return min(_WORD, layout.align(element)) if T.is_int(element) else layout.align(element)


def _plain(words: tuple[str, ...]) -> tuple[str, ...]:
    """Attributes without one of more than a word; those of a parameter in memory say where LLVM is to put it."""
    if any(word.startswith(("byval", "sret")) for word in words):
        return words
    return tuple(word for word in words if not word.startswith(f"{_ALIGN} ") or int(word.split()[1]) <= _WORD)
