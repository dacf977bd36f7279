"""Checks a module: its own structure first, with messages in our terms, then LLVM's verifier."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from threading import Lock

import llvmlite.binding as llvm

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir import values as V
from jax_enzyme.ir.debug import location
from jax_enzyme.ir.dominance import Dominance
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.native import native_from_text
from jax_enzyme.ir.verify_types import type_error
from jax_enzyme.ir.writer import has_debug_info, to_text
from jax_enzyme.ir.writer_instructions import InstructionWriter
from jax_enzyme.ir.writer_values import WriteError

_SHOWN = 10
_READING = Lock()
"""Held while LLVM takes debug information as it is, which holds for all of the process."""
_AS_IT_IS = "-disable-auto-upgrade-debug-info"


class VerifyError(ValueError):
    """A module that breaks a rule of LLVM IR. `problems` has one line each."""

    def __init__(self, problems: list[str]) -> None:
        more = [f"... and {len(problems) - _SHOWN} more"] if len(problems) > _SHOWN else []
        super().__init__("\n".join([*problems[:_SHOWN], *more]))
        self.problems = problems


def verify(module: Module) -> None:
    """Raises `VerifyError` if the module is not well-formed."""
    problems = list(_module_problems(module))
    if problems:
        raise VerifyError(problems)
    parse_checked(module)


def parse_checked(module: Module) -> llvm.ModuleRef:
    """LLVM's module of ours, verified by LLVM: passes may crash on what is not. Without its debug information, where it
    is that alone with which LLVM finds fault."""
    try:
        return parse_verified(to_text(module))
    except VerifyError:
        if not has_debug_info(module):
            raise
    return parse_verified(to_text(module, debug=False))


def parse_verified(text: str) -> llvm.ModuleRef:
    """LLVM's module of a text, in a context of its own, verified. Left to itself LLVM verifies what has debug
    information while it reads it, and ends the whole process if it finds fault."""
    try:
        parsed = _as_it_is(text)
        parsed.verify()
    except RuntimeError as error:
        raise VerifyError([f"LLVM rejects the module: {error}"]) from error
    return parsed


def _as_it_is(text: str) -> llvm.ModuleRef:
    with _READING:
        llvm.set_option("", f"{_AS_IT_IS}=true")
        try:
            return native_from_text(text)
        finally:
            llvm.set_option("", f"{_AS_IT_IS}=false")


def _module_problems(module: Module) -> Iterator[str]:
    for table in (module.globals, module.aliases, module.functions):
        for key, value in table.items():
            if key != value.name:
                yield f"@{value.name} is stored in the module under the name {key!r}"
    for name, variable in module.globals.items():
        if variable.initializer is not None and variable.initializer.type != variable.value_type:
            yield f"@{name} is of type {variable.value_type}, its initialiser of type {variable.initializer.type}"
    symbols: set[V.Value] = {*module.globals.values(), *module.aliases.values(), *module.functions.values()}
    for function in module.functions.values():
        yield from _FunctionChecker(module, function, symbols).problems()


class _FunctionChecker:
    def __init__(self, module: Module, function: Function, symbols: set[V.Value]) -> None:
        self.module = module
        self.function = function
        self.symbols = symbols
        self.blocks = set(function.blocks)
        self.writer: InstructionWriter | None = None

    def problems(self) -> Iterator[str]:
        function = self.function
        if [a.type for a in function.arguments] != list(function.function_type.parameters):
            yield f"@{function.name}: its arguments are not those of its type {function.function_type}"
        if function.is_declaration:
            return
        broken = list(self._shape())
        yield from broken
        if not broken:
            yield from self._phis()
            yield from self._operands()

    def _where(self, block: V.BasicBlock, instruction: I.Instruction | None = None) -> str:
        """Place of a problem: function, block, the instruction's text and the line it comes from."""
        if self.writer is None:
            self.writer = InstructionWriter(self.module)
            self.writer.add_locals(self.function)
        text = f"@{self.function.name}, block {self.writer.names[block]}"
        if instruction is None:
            return text
        try:
            shown = self.writer.instruction_text(instruction)
        except (WriteError, ValueError, IndexError, AttributeError):
            shown = f"{instruction.opcode} (not printable)"
        place = location(self.module, instruction)
        return f"{text}: {shown}" + (f" ({place})" if place else "")

    def _shape(self) -> Iterator[str]:
        """Each block ends in its only terminator, phis come first, targets are blocks of the function."""
        predecessors = {t for b in self.function.blocks for i in b.instructions[-1:] for t in i.successors}
        if self.function.entry in predecessors:
            yield f"{self._where(self.function.entry)}: the entry block has a predecessor"
        seen: set[I.Instruction] = set()
        for block in self.function.blocks:
            if not block.instructions or not block.terminator.is_terminator:
                yield f"{self._where(block)}: does not end in a terminator"
            early = True
            for index, instruction in enumerate(block.instructions):
                if instruction in seen:
                    yield f"{self._where(block, instruction)}: occurs twice"
                seen.add(instruction)
                if instruction.is_terminator and index + 1 < len(block.instructions):
                    yield f"{self._where(block, instruction)}: a terminator in the middle of a block"
                if isinstance(instruction, I.Phi) and not early:
                    yield f"{self._where(block, instruction)}: a phi after other instructions"
                early = early and isinstance(instruction, I.Phi)
                if not self.blocks.issuperset(instruction.targets):
                    yield f"{self._where(block, instruction)}: names a block of another function, or a removed one"

    def _phis(self) -> Iterator[str]:
        predecessors: dict[V.BasicBlock, Counter[V.BasicBlock]] = {b: Counter() for b in self.function.blocks}
        for block in self.function.blocks:
            for target in block.successors:
                predecessors[target][block] += 1
        for block in self.function.blocks:
            for instruction in block.instructions:
                if not isinstance(instruction, I.Phi):
                    break
                if len(instruction.operands) != len(instruction.targets):
                    yield (
                        f"{self._where(block, instruction)}: {len(instruction.operands)} values for "
                        f"{len(instruction.targets)} blocks"
                    )
                elif Counter(instruction.targets) != predecessors[block]:
                    names = ", ".join(sorted(b.name or "(unnamed)" for b in predecessors[block].elements()))
                    yield f"{self._where(block, instruction)}: its edges are not those of the block: [{names}]"

    def _operands(self) -> Iterator[str]:
        """Every operand is defined where it is used, and of the type that the instruction wants."""
        dominance = Dominance(self.function)
        arguments: set[V.Value] = set(self.function.arguments)
        for block in self.function.blocks:
            for instruction in block.instructions:
                problem = type_error(self.module, self.function, instruction)
                if problem is not None:
                    yield f"{self._where(block, instruction)}: {problem}"
                for index, operand in enumerate(instruction.operands):
                    problem = self._definition(operand, instruction, index, dominance, arguments)
                    if problem is not None:
                        yield f"{self._where(block, instruction)}: operand {index} {problem}"

    def _definition(
        self, operand: V.Value, user: I.Instruction, index: int, dominance: Dominance, arguments: set[V.Value]
    ) -> str | None:
        if isinstance(operand.type, T.VoidType):
            return "has no value"
        match operand:
            case I.Instruction():
                if operand not in dominance.position:
                    return "is an instruction of another function, or a removed one"
                if not dominance.available(operand, user, index):
                    return f"(%{operand.name or operand.opcode}) does not dominate its use"
            case V.Argument():
                if operand not in arguments:
                    return "is an argument of another function"
            case V.GlobalValue():
                if operand not in self.symbols:
                    return f"(@{operand.name}) is not in the module"
            case V.BasicBlock():
                return "is a block"
            case _:
                pass
        return None
