"""Writes instructions: one method per shape, chosen by the class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import values as V
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.writer_values import ValueWriter

_CALL_KINDS = ("tail", "musttail", "notail")


class InstructionWriter(ValueWriter):
    def __init__(self, module: Module, debug: bool = True) -> None:
        super().__init__(module, debug)
        self.subprogram = ""

    def instruction(self, instruction: I.Instruction) -> None:
        for record in instruction.records:
            self.record(record)
        self.lines.append("  " + self.instruction_text(instruction))

    def instruction_text(self, instruction: I.Instruction) -> str:
        """One instruction, attachments included, on one line (a switch on several)."""
        text = self.shapes[type(instruction)](self, instruction)
        if instruction.metadata:
            text += self.attachments(instruction.metadata)
        if self.subprogram and isinstance(instruction, I.CallBase):
            text += self._call_location(instruction)
        name = self.names.get(instruction)
        return text if name is None else f"{name} = {text}"

    def _call_location(self, call: I.CallBase) -> str:
        """Line 0 for a call that has none. LLVM drops all debug information of a module where a function that has some
        calls, at no known place, what can be inlined into it."""
        callee = call.callee
        if not isinstance(callee, Function) or callee.is_declaration or any(kind == "dbg" for kind, _ in call.metadata):
            return ""
        return f", !dbg !DILocation(line: 0, scope: {self.subprogram})"

    # Pieces

    def _head(self, instruction: I.Instruction) -> str:
        flags = instruction.flags
        return f"{instruction.opcode} {' '.join(flags)}" if flags else instruction.opcode

    def _operands(self, instruction: I.Instruction) -> str:
        return ", ".join([f"{v.type} {self.ref(v)}" for v in instruction.operands])

    def _tail(self, values: list[V.Value]) -> str:
        return ", ".join(map(self.typed, values))

    def _label(self, block: V.BasicBlock) -> str:
        return f"label {self.ref(block)}"

    def _labels(self, blocks: list[V.BasicBlock]) -> str:
        return ", ".join(map(self._label, blocks))

    # Shapes

    def _plain(self, i: I.Instruction) -> str:
        return f"{self._head(i)} {self._operands(i)}"

    def _binary(self, i: I.BinaryOp) -> str:
        x, y = i.operands
        return f"{self._head(i)} {x.type} {self.ref(x)}, {self.ref(y)}"

    def _compare(self, i: I.Compare) -> str:
        x, y = i.operands
        return f"{self._head(i)} {i.predicate} {x.type} {self.ref(x)}, {self.ref(y)}"

    def _phi(self, i: I.Phi) -> str:
        edges = ", ".join([f"[ {self.ref(v)}, {self.ref(b)} ]" for v, b in zip(i.operands, i.targets, strict=True)])
        return f"{self._head(i)} {i.type} {edges}"

    def _alloca(self, i: I.Alloca) -> str:
        text = f"{self._head(i)} {i.allocated_type}"
        if i.count_printed or V.int_value(i.operands[0]) != 1:
            text += f", {self.typed(i.operands[0])}"
        text += _align(i.align)
        return text if i.address_space == 0 else f"{text}, addrspace({i.address_space})"

    def _load(self, i: I.Load) -> str:
        ordering = f" {i.ordering}" if i.ordering else ""
        return f"{self._head(i)} {i.type}, {self.typed(i.operands[0])}{ordering}{_align(i.align)}"

    def _store(self, i: I.Store) -> str:
        ordering = f" {i.ordering}" if i.ordering else ""
        return f"{self._head(i)} {self._operands(i)}{ordering}{_align(i.align)}"

    def _rmw(self, i: I.AtomicRMW) -> str:
        return f"{self._head(i)} {i.operation} {self._operands(i)} {i.ordering}{_align(i.align)}"

    def _indexed(self, i: I.ExtractValue | I.InsertValue) -> str:
        return f"{i.opcode} {self._operands(i)}{''.join([f', {index}' for index in i.indices])}"

    def _shuffle(self, i: I.ShuffleVector) -> str:
        if all(lane == 0 for lane in i.mask):
            mask = "zeroinitializer"
        elif all(lane < 0 for lane in i.mask):
            mask = "poison"
        else:
            mask = "<" + ", ".join([f"i32 {lane}" if lane >= 0 else "i32 poison" for lane in i.mask]) + ">"
        return f"shufflevector {self._operands(i)}, {i.mask_type} {mask}"

    # Calls

    def _call(self, i: I.Call) -> str:
        before = [flag for flag in i.flags if flag in _CALL_KINDS]
        after = [flag for flag in i.flags if flag not in _CALL_KINDS]
        return " ".join([*before, "call", *after, self._call_parts(i)])

    def _invoke(self, i: I.Invoke) -> str:
        normal, unwind = i.targets
        return f"invoke {self._call_parts(i)} to {self._label(normal)} unwind {self._label(unwind)}"

    def _callbr(self, i: I.CallBr) -> str:
        return f"callbr {self._call_parts(i)} to {self._label(i.targets[0])} [{self._labels(i.targets[1:])}]"

    def _call_parts(self, i: I.CallBase) -> str:
        signature = i.function_type
        words = [i.calling_convention] if i.calling_convention else []
        words += i.return_attributes
        words.append(str(signature if i.type_printed_in_full or signature.variadic else signature.result))
        words.append(f"{self.ref(i.operands[-1])}({self._arguments(i)})")
        words += i.attributes
        if i.bundles:
            bundles = [f'"{tag}"({self._tail(values)})' for tag, values in i.bundles]
            words.append(f"[ {', '.join(bundles)} ]")
        return " ".join(words)

    def _arguments(self, i: I.CallBase) -> str:
        found: list[str] = []
        attributes = i.parameter_attributes
        for index, value in enumerate(i.operands[:-1]):
            words = attributes[index] if index < len(attributes) else ()
            found.append(" ".join([str(value.type), *words, self.ref(value)]) if words else self.typed(value))
        if i.function_type.variadic and "musttail" in i.flags:
            found.append("...")
        return ", ".join(found)

    # Control flow

    def _cond_branch(self, i: I.CondBranch) -> str:
        return f"br {self.typed(i.operands[0])}, {self._labels(i.targets)}"

    def _switch(self, i: I.Switch) -> str:
        cases = "".join([f"    {self.typed(value)}, {self._label(block)}\n" for value, block in i.cases])
        return f"switch {self.typed(i.operands[0])}, {self._label(i.targets[0])} [\n{cases}  ]"

    def _landing_pad(self, i: I.LandingPad) -> str:
        clauses = [f"{word} {self.typed(value)}" for word, value in zip(i.clauses, i.operands, strict=True)]
        return " ".join(["landingpad", str(i.type), *i.flags, *clauses])

    def _catch_switch(self, i: I.CatchSwitch) -> str:
        handlers = i.targets[:-1] if i.unwinds else i.targets
        unwind = self._label(i.targets[-1]) if i.unwinds else "to caller"
        return f"catchswitch within {self.ref(i.operands[0])} [{self._labels(handlers)}] unwind {unwind}"

    def _funclet_return(self, i: I.FuncletReturn) -> str:
        pad = self.ref(i.operands[0])
        if i.opcode == "catchret":
            return f"catchret from {pad} to {self._label(i.targets[0])}"
        return f"cleanupret from {pad} unwind {self._label(i.targets[0]) if i.targets else 'to caller'}"

    shapes: ClassVar[dict[type, Callable[[Any, Any], str]]] = {
        I.UnaryOp: _plain,
        I.BinaryOp: _binary,
        I.Cast: lambda self, i: f"{self._head(i)} {self.typed(i.operands[0])} to {i.type}",
        I.Compare: _compare,
        I.Select: _plain,
        I.Phi: _phi,
        I.Freeze: _plain,
        I.Alloca: _alloca,
        I.Load: _load,
        I.Store: _store,
        I.GetElementPtr: lambda self, i: f"{self._head(i)} {i.source_type}, {self._operands(i)}",
        I.Call: _call,
        I.Invoke: _invoke,
        I.CallBr: _callbr,
        I.Branch: lambda self, i: f"br {self._label(i.targets[0])}",
        I.CondBranch: _cond_branch,
        I.Switch: _switch,
        I.IndirectBranch: lambda self, i: f"indirectbr {self.typed(i.operands[0])}, [{self._labels(i.targets)}]",
        I.Return: lambda self, i: f"ret {self.typed(i.operands[0])}" if i.operands else "ret void",
        I.Unreachable: lambda _, __: "unreachable",
        I.ExtractValue: _indexed,
        I.InsertValue: _indexed,
        I.ExtractElement: _plain,
        I.InsertElement: _plain,
        I.ShuffleVector: _shuffle,
        I.AtomicRMW: _rmw,
        I.CmpXchg: lambda self, i: f"{self._plain(i)} {i.ordering}{_align(i.align)}",
        I.Fence: lambda self, i: f"fence {i.ordering}",
        I.VAArg: lambda self, i: f"va_arg {self.typed(i.operands[0])}, {i.type}",
        I.LandingPad: _landing_pad,
        I.Resume: _plain,
        I.CatchSwitch: _catch_switch,
        I.FuncletPad: lambda self, i: f"{i.opcode} within {self.ref(i.operands[0])} [{self._tail(i.operands[1:])}]",
        I.FuncletReturn: _funclet_return,
    }


def _align(align: int | None) -> str:
    return "" if align is None else f", align {align}"
