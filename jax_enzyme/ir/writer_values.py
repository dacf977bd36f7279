"""Writes values and metadata."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from jax_enzyme.ir import types as T
from jax_enzyme.ir import values as V
from jax_enzyme.ir.metadata import DebugRecord, MDConstant, MDNode, MDNull, MDRef, MDString, MDValue, MetadataOperand
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.naming import escape, global_names, local_names

# A loop's node names the lines on which the loop stands.
_DEBUG_KINDS = frozenset(("dbg", "DIAssignID", "llvm.loop", "heapallocsite"))


class WriteError(ValueError):
    """A module that cannot be written: an operand is neither a constant nor defined in its function."""


class ValueWriter:
    """`names` maps globals, and the locals of the functions written so far, to their printed names."""

    def __init__(self, module: Module, debug: bool = True) -> None:
        self.module = module
        self.debug = debug
        self.lines: list[str] = []
        self.names: dict[V.Value, str] = global_names(module)
        self._attached: dict[MDNode, str] = {}

    def add_locals(self, function: Function) -> None:
        """Names arguments, blocks and instructions of a function."""
        self.names.update(local_names(function))

    def ref(self, value: V.Value) -> str:
        """A value without its type."""
        name = self.names.get(value)
        if name is not None:
            return name
        writer = self.writers.get(type(value))
        if writer is None:
            raise WriteError(
                f"{type(value).__name__} {value.name!r} of type {value.type} is not defined where it is used"
            )
        return writer(self, value)

    def typed(self, value: V.Value) -> str:
        return f"{value.type} {self.ref(value)}"

    def _int(self, value: V.ConstantInt) -> str:
        if isinstance(value.type, T.IntType) and value.type.bits == 1:
            return "true" if value.value else "false"
        return str(value.value)

    def _aggregate(self, value: V.ConstantAggregate) -> str:
        body = ", ".join(map(self.typed, value.elements))
        match value.type:
            case T.VectorType():
                return f"<{body}>"
            case T.ArrayType():
                return f"[{body}]"
            case _:
                pass
        found = value.type
        if isinstance(found, T.NamedStructType):
            found = self.module.struct_bodies.get(found.name) or found
        inner = "{ " + body + " }" if body else "{}"
        return f"<{inner}>" if isinstance(found, T.StructType) and found.packed else inner

    def _expression(self, value: V.ConstantExpr) -> str:
        head = " ".join([value.opcode, *value.flags])
        operands = ", ".join(map(self.typed, value.operands))
        if value.source_type is not None:
            return f"{head} ({value.source_type}, {operands})"
        if len(value.operands) == 1:
            return f"{head} ({operands} to {value.type})"
        return f"{head} ({operands})"

    def _block_name(self, value: V.BlockAddress) -> str:
        name = self.names.get(value.block)
        if name is None and isinstance(value.function, Function):
            name = local_names(value.function).get(value.block)
        if name is None:
            raise WriteError(f"block address of a block that is not in {self.ref(value.function)}")
        return name

    # Metadata

    def metadata(self, value: MDValue) -> str:
        match value:
            case MDRef():
                return f"!{value.number}"
            case MDString():
                return f'!"{value.text}"'
            case MDNull():
                return "null"
            case MDConstant():
                return self._value_as_metadata(value.value)
            case MDNode():
                return self.node(value)

    def _value_as_metadata(self, value: V.Value) -> str:
        """What a pass has removed (a local; a function that a template's argument names) leaves `poison` behind, which
        debuggers show as "optimised out"."""
        try:
            return self.typed(value)
        except WriteError:
            return f"{value.type} poison"

    def node(self, node: MDNode) -> str:
        distinct = "distinct " if node.distinct else ""
        if not node.kind:
            return f"{distinct}!{{{', '.join(map(self.metadata, node.operands))}}}"
        if node.kind == "{":
            return f"{{{', '.join(map(self.metadata, node.operands))}}}"
        fields = ", ".join([self._field(key, value) for key, value in node.fields])
        return f"{distinct}!{node.kind}({fields})"

    def _field(self, key: str, value: MDValue | str) -> str:
        text = value if isinstance(value, str) else self.metadata(value)
        return f"{key}: {text}" if key else text

    def attachments(self, metadata: list[tuple[str, MDValue]]) -> str:
        return "".join(self.attachment_list(metadata))

    def attachment_list(self, metadata: list[tuple[str, MDValue]]) -> list[str]:
        return [f", !{kind} {self._attachment(n)}" for kind, n in metadata if self.debug or kind not in _DEBUG_KINDS]

    def _attachment(self, value: MDValue) -> str:
        """What is attached names nothing of one function, so that its text is the same wherever it is."""
        if not isinstance(value, MDNode):
            return self.metadata(value)
        if value not in self._attached:
            self._attached[value] = self.node(value)
        return self._attached[value]

    def record(self, record: DebugRecord) -> None:
        if self.debug:
            self.lines.append(f"    #dbg_{record.kind}({', '.join(map(self.metadata, record.operands))})")

    writers: ClassVar[dict[type, Callable[[Any, Any], str]]] = {
        V.ConstantInt: _int,
        V.ConstantFloat: lambda self, v: v.text,
        V.ConstantNull: lambda _, __: "null",
        V.ConstantToken: lambda _, __: "none",
        V.Undef: lambda _, __: "undef",
        V.Poison: lambda _, __: "poison",
        V.ZeroInitializer: lambda _, __: "zeroinitializer",
        V.ConstantAggregate: _aggregate,
        V.ConstantTable: lambda _, v: v.text,
        V.ConstantSplat: lambda self, v: f"splat ({self.typed(v.element)})",
        V.ConstantString: lambda self, v: f'c"{escape(v.data.decode("latin-1"))}"',
        V.ConstantExpr: _expression,
        V.BlockAddress: lambda self, v: f"blockaddress({self.ref(v.function)}, {self._block_name(v)})",
        V.DSOLocalEquivalent: lambda self, v: f"{v.keyword} {self.ref(v.target)}",
        V.PtrAuth: lambda self, v: f"ptrauth ({', '.join(map(self.typed, v.operands))})",
        V.InlineAsm: lambda self, v: " ".join(["asm", *v.flags, f'"{v.template}", "{v.constraints}"']),
        MetadataOperand: lambda self, v: self.metadata(v.metadata),
    }
