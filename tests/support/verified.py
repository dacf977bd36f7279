"""Modules held against LLVM's verifier, and against what their text says of types."""

from __future__ import annotations

from jax_enzyme.ir.instructions import CallBase, Instruction
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.verify import parse_checked
from jax_enzyme.ir.writer import to_text


def verify(module: Module) -> None:
    """Fails where LLVM rejects a module, or where what is read back of its text has other types: those of results, and
    of constants, are not all written."""
    parse_checked(module)
    again = parse(to_text(module))
    for name, function in module.functions.items():
        twin = again.functions[name]
        assert [a.type for a in function.arguments] == list(function.function_type.parameters), name
        for block, other in zip(function.blocks, twin.blocks, strict=True):
            for one, read in zip(block.instructions, other.instructions, strict=True):
                types = [_types(i) for i in (one, read)]
                assert types[0] == types[1], (name, block.name, one.name)


def _types(instruction: Instruction) -> tuple[object, ...]:
    called = instruction.function_type if isinstance(instruction, CallBase) else None
    return instruction.opcode, instruction.type, called, [o.type for o in instruction.operands]
