"""Reads calls in all their forms, and the instructions of exception handling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir import values as V
from jax_enzyme.ir.keywords import CONVENTIONS, FAST_MATH, FUNCTION_ATTRIBUTES, PARAMETER_ATTRIBUTES
from jax_enzyme.ir.reader_operands import OperandReader

_NO_FUNCTION = T.FunctionType(T.VOID, ())


class CallReader(OperandReader):
    def _call(self, opcode: str) -> I.Instruction:
        flags: tuple[str, ...] = ()
        if opcode != "call":
            flags = (opcode,)
            self.expect("call")
        if self.tokens[self.pos] in FAST_MATH:
            flags += self.flags()
        found = I.Call(T.VOID, "call", [], _NO_FUNCTION, flags=flags)
        self._call_parts(found)
        return found

    def _invoke(self, opcode: str) -> I.Instruction:
        found = I.Invoke(T.VOID, opcode, [], _NO_FUNCTION)
        self._call_parts(found)
        self.expect("to")
        normal_ = self.label()
        self.expect("unwind")
        found.targets = [normal_, self.label()]
        return found

    def _callbr(self, opcode: str) -> I.Instruction:
        found = I.CallBr(T.VOID, opcode, [], _NO_FUNCTION)
        self._call_parts(found)
        self.expect("to")
        fallthrough = self.label()
        found.targets = [fallthrough, *self._label_list()]
        return found

    def convention(self) -> str:
        token = self.tokens[self.pos]
        if token not in CONVENTIONS:
            return ""
        self.pos += 1
        if token == "cc" or (token.startswith("riscv_vls_cc") and self.tokens[self.pos] == "("):
            number = self.take() if token == "cc" else self.balanced()[1]
            return f"cc {number}" if token == "cc" else f"{token}({number})"
        return token

    def _call_parts(self, call: I.CallBase) -> None:
        call.calling_convention = self.convention()
        call.return_attributes = self.attributes_before_type()
        type_ = self.type()
        callee = self.value(T.PTR)
        arguments, call.parameter_attributes = self._arguments()
        call.operands = [*arguments, callee]
        if isinstance(type_, T.FunctionType):
            call.function_type = type_
            call.type_printed_in_full = True
        else:
            call.function_type = T.FunctionType(type_, tuple([a.type for a in arguments]))
        call.type = call.function_type.result
        call.attributes = self._call_attributes()
        if self.accept("["):
            call.bundles = self._bundles()

    def _arguments(self) -> tuple[list[V.Value], list[tuple[str, ...]]]:
        values: list[V.Value] = []
        attributes: list[tuple[str, ...]] = []
        tokens = self.tokens
        self.expect("(")
        while tokens[self.pos] != ")":
            if self.accept("..."):  # a musttail call passes on what its variadic caller was given
                continue
            type_ = self.type()
            if type_ is T.METADATA:
                values.append(self.metadata_operand())
                attributes.append(())
            else:
                words: tuple[str, ...] = ()
                while tokens[self.pos] in PARAMETER_ATTRIBUTES or tokens[self.pos][0] == '"':
                    words += (self.attribute(),)
                attributes.append(words)
                values.append(self.value(type_))
            if tokens[self.pos] == ",":
                self.pos += 1
        self.pos += 1
        return values, attributes

    def _call_attributes(self) -> tuple[str, ...]:
        found: list[str] = []
        while True:
            token = self.tokens[self.pos]
            if token[0] == "#" and token[1:].isdigit():
                self.pos += 1
                found.append(token)
            elif (token[0] == '"' and token[-1] == '"') or token in FUNCTION_ATTRIBUTES:
                found.append(self.attribute())
            else:
                return tuple(found)

    def _bundles(self) -> list[tuple[str, list[V.Value]]]:
        found: list[tuple[str, list[V.Value]]] = []
        while not self.accept("]"):
            tag = self.string()
            self.expect("(")
            values: list[V.Value] = []
            while not self.accept(")"):
                type_ = self.type()
                values.append(self.metadata_operand() if type_ is T.METADATA else self.value(type_))
                self.accept(",")
            found.append((tag, values))
            self.accept(",")
        return found

    # Exceptions

    def _landing_pad(self, opcode: str) -> I.Instruction:
        type_ = self.type()
        flags = self.flags()
        clauses: list[str] = []
        values: list[V.Value] = []
        while self.tokens[self.pos] in ("catch", "filter"):
            clauses.append(self.take())
            values.append(self.typed_value())
        return I.LandingPad(type_, opcode, values, tuple(clauses), flags=flags)

    def _resume(self, opcode: str) -> I.Instruction:
        return I.Resume(T.VOID, opcode, [self.typed_value()])

    def _catch_switch(self, opcode: str) -> I.Instruction:
        self.expect("within")
        parent = self.value(T.TOKEN)
        targets = self._label_list()
        self.expect("unwind")
        unwinds = not self.accept("to")
        if unwinds:
            targets.append(self.label())
        else:
            self.expect("caller")
        return I.CatchSwitch(T.TOKEN, opcode, [parent], unwinds, targets=targets)

    def _pad(self, opcode: str) -> I.Instruction:
        self.expect("within")
        parent = self.value(T.TOKEN)
        self.expect("[")
        arguments: list[V.Value] = []
        while not self.accept("]"):
            type_ = self.type()
            arguments.append(self.metadata_operand() if type_ is T.METADATA else self.value(type_))
            self.accept(",")
        return I.FuncletPad(T.TOKEN, opcode, [parent, *arguments])

    def _catchret(self, opcode: str) -> I.Instruction:
        self.expect("from")
        pad = self.value(T.TOKEN)
        self.expect("to")
        return I.FuncletReturn(T.VOID, opcode, [pad], targets=[self.label()])

    def _cleanupret(self, opcode: str) -> I.Instruction:
        self.expect("from")
        pad = self.value(T.TOKEN)
        self.expect("unwind")
        if self.accept("to"):
            self.expect("caller")
            return I.FuncletReturn(T.VOID, opcode, [pad])
        return I.FuncletReturn(T.VOID, opcode, [pad], targets=[self.label()])

    readers: ClassVar[dict[str, Callable[[Any, str], I.Instruction]]] = {
        "invoke": _invoke,
        "callbr": _callbr,
        "landingpad": _landing_pad,
        "resume": _resume,
        "catchswitch": _catch_switch,
        "catchpad": _pad,
        "cleanuppad": _pad,
        "catchret": _catchret,
        "cleanupret": _cleanupret,
        "call": _call,
        "tail": _call,
        "musttail": _call,
        "notail": _call,
    }
