"""Reads functions: headers and bodies."""

from __future__ import annotations

from collections.abc import Iterable

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir import values as V
from jax_enzyme.ir.keywords import CONVENTIONS, FUNCTION_ATTRIBUTES, LINKAGE, PARAMETER_ATTRIBUTES, UNNAMED
from jax_enzyme.ir.lexer import normal, plain_name
from jax_enzyme.ir.metadata import DebugRecord, MDConstant, MDNode, MDValue, MetadataOperand
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.reader_instructions import InstructionReader
from jax_enzyme.ir.reader_values import ForwardGlobal, ForwardLocal, global_name


class FunctionReader(InstructionReader):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.pending: list[I.Instruction] = []
        self.pending_records: list[DebugRecord] = []
        self.across: list[I.Instruction] = []
        self.functions_read: list[Function] = []
        self.number = 0

    def function(self) -> None:
        """From `define` or `declare` to the end of it."""
        defined = self.take() == "define"
        metadata = self.bare_attachments()
        prefix = self._prefix()
        return_attributes = self.attributes_before_type()
        result = self.type()
        name = global_name(self.take())
        self.locals, self.blocks, self.number, self.function_name = {}, {}, 0, name
        arguments, variadic = self._parameters()
        signature = T.FunctionType(result, tuple([a.type for a in arguments]), variadic)
        function = Function(T.PTR, signature, arguments, name=name, prefix=prefix)
        function.return_attributes = return_attributes
        self._suffix(function, defined)
        function.metadata = metadata + (self.bare_attachments() if defined else [])
        self.module.functions[name] = function
        self.functions_read.append(function)
        if defined:
            self.expect("{")
            self._body(function)

    def _prefix(self) -> tuple[str, ...]:
        found: list[str] = []
        while self.tokens[self.pos] in LINKAGE:
            found.append(self.take())
        if self.tokens[self.pos] in CONVENTIONS:
            found.append(self.convention())
        return tuple(found)

    def _parameters(self) -> tuple[list[V.Argument], bool]:
        self.expect("(")
        found: list[V.Argument] = []
        variadic = False
        while not self.accept(")"):
            if self.accept("..."):
                variadic = True
                continue
            type_ = self.type()
            attributes: list[str] = []
            while self.tokens[self.pos] in PARAMETER_ATTRIBUTES or self.tokens[self.pos][0] == '"':
                attributes.append(self.attribute())
            argument = V.Argument(type_, tuple(attributes), len(found))
            named = self.tokens[self.pos][0] == "%"
            self.define(normal(self.take()) if named else f"%{self.number}", argument)
            found.append(argument)
            self.accept(",")
        return found, variadic

    def _suffix(self, function: Function, defined: bool) -> None:
        found: list[str] = []
        while True:
            token = self.tokens[self.pos]
            if token in ("section", "partition", "gc"):
                self.pos += 1
                found.append(f'{token} "{self.string()}"')
            elif token == "comdat":
                self.pos += 1
                found.append(f"comdat({self.balanced()[1]})" if self.tokens[self.pos] == "(" else "comdat")
            elif token in ("prefix", "prologue", "personality"):
                self.pos += 1
                self._data(function, token)
            elif token == "addrspace":
                function.type = T.PointerType(self.address_space())
                found.append(f"addrspace({function.type.address_space})")
            elif self._at_function_attribute(token):
                found.append(self.attribute())
            else:
                function.attributes = tuple(found)
                return

    def _at_function_attribute(self, token: str) -> bool:
        if token in FUNCTION_ATTRIBUTES or token in UNNAMED or token in ("align", "alignstack"):
            return True
        return (token[0] == "#" and token[1:].isdigit()) or (token[0] == '"' and token[-1] == '"')

    def _data(self, function: Function, which: str) -> None:
        constant = self.typed_constant()
        if which == "personality":
            function.personality = constant
        elif which == "prefix":
            function.prefix_data = constant
        else:
            function.prologue_data = constant

    def define(self, key: str, value: V.Value) -> None:
        if key in self.locals:
            raise self.error(f"{key} is defined twice")
        self.locals[key] = value
        name = plain_name(key)
        value.name = name
        if not name and key[1:].isdigit():
            self.number = int(key[1:]) + 1

    # Bodies

    def _body(self, function: Function) -> None:
        self.pending = []
        self.pending_records = []
        tokens = self.tokens
        current: V.BasicBlock | None = None
        records: list[DebugRecord] = []
        while True:
            token = tokens[self.pos]
            if token[-1] == ":":
                self.pos += 1
                current = self._start_block(function, normal("%" + token[:-1]))
                continue
            if token[0] == "#":
                records.append(self._record())
                continue
            if token == "}":
                self.pos += 1
                break
            if token.startswith("uselistorder"):
                self._skip_use_list_order()
                continue
            if current is None:
                current = self._start_block(function, f"%{self.number}")
            instruction = self._named_instruction(token)
            if records:
                instruction.records = tuple(records)
                records.clear()
            current.instructions.append(instruction)
            if instruction.opcode in I.TERMINATORS:
                current = None
        function.trailing_records = records
        self._finish(function)

    def _start_block(self, function: Function, key: str) -> V.BasicBlock:
        block = self.block(key)
        if self.locals.get(key) is not None:
            raise self.error(f"{key} is defined twice")
        self.locals[key] = block
        if key[1:].isdigit():
            self.number = int(key[1:]) + 1
        function.blocks.append(block)
        return block

    def _named_instruction(self, token: str) -> I.Instruction:
        self.forward_seen = False
        if token[0] == "%":
            self.pos += 1
            self.expect("=")
            instruction = self.instruction()
            self.define(normal(token), instruction)
        else:
            instruction = self.instruction()
            if instruction.type is not T.VOID:
                self.define(f"%{self.number}", instruction)
        if self.forward_seen:
            self.pending.append(instruction)
        return instruction

    def _record(self) -> DebugRecord:
        self.forward_seen = False
        record = self.debug_record()
        if self.forward_seen:
            self.pending_records.append(record)
        return record

    def _skip_use_list_order(self) -> None:
        """The order of use lists has no meaning for a program, and LLVM prints it only where asked to: dropped."""
        self.pos += 1
        while self.tokens[self.pos] != "{":
            self.pos += 1
        self.balanced()

    def _finish(self, function: Function) -> None:
        """Fills in what was used before its definition."""
        for key, block in self.blocks.items():
            if self.locals.get(key) is not block:
                raise self.error(f"use of undefined block {key} in @{function.name}")
            self.addressed.setdefault((function.name, key), block)
        for instruction in self.pending:
            self._resolve_locals(instruction.operands)
            if isinstance(instruction, I.CallBase):
                for _, values in instruction.bundles:
                    self._resolve_locals(values)
            for operand in instruction.operands:
                if isinstance(operand, MetadataOperand):
                    self._resolve_metadata_locals([operand.metadata])
                elif isinstance(operand, ForwardGlobal):
                    self.across.append(instruction)
        for record in self.pending_records:
            self._resolve_metadata_locals(record.operands)

    def _resolve_locals(self, values: list[V.Value]) -> None:
        for index, value in enumerate(values):
            if isinstance(value, ForwardLocal):
                values[index] = self._local_value(value)

    def _local_value(self, value: ForwardLocal) -> V.Value:
        found = self.locals.get(value.name)
        if found is None:
            raise self.error(f"use of undefined value {value.name} in @{self.function_name}")
        if found.type != value.type:
            raise self.error(f"{value.name} has type {found.type} but is used as {value.type} in @{self.function_name}")
        return found

    def _resolve_metadata_locals(self, operands: Iterable[MDValue | str]) -> None:
        for operand in operands:
            if isinstance(operand, MDConstant) and isinstance(operand.value, ForwardLocal):
                operand.value = self._local_value(operand.value)
            elif isinstance(operand, MDNode):
                self._resolve_metadata_locals([value for _, value in operand.fields])

    def resolve_functions(self) -> None:
        """Puts globals in place of what stood for them, in instructions and function data."""
        for instruction in self.across:
            self._resolve_globals(instruction.operands)
            if isinstance(instruction, I.CallBase):
                for _, values in instruction.bundles:
                    self._resolve_globals(values)
        for function in self.functions_read:
            if function.personality is not None:
                function.personality = self.resolved(function.personality)
            if function.prefix_data is not None:
                function.prefix_data = self.resolved(function.prefix_data)
            if function.prologue_data is not None:
                function.prologue_data = self.resolved(function.prologue_data)

    def _resolve_globals(self, values: list[V.Value]) -> None:
        for index, value in enumerate(values):
            if isinstance(value, ForwardGlobal):
                values[index] = self.resolved(value)
