"""Writes a `Module` as textual LLVM IR."""

from __future__ import annotations

from collections.abc import Iterable

from jax_enzyme.ir.metadata import MDNode, MDRef, MDString, MDValue
from jax_enzyme.ir.module import Function, GlobalAlias, GlobalVariable, Module
from jax_enzyme.ir.naming import quoted
from jax_enzyme.ir.nodes import written
from jax_enzyme.ir.values import ConstantExpr
from jax_enzyme.ir.writer_instructions import InstructionWriter

_EXTERNAL = frozenset(("external", "extern_weak"))


def to_text(module: Module, *, debug: bool = True) -> str:
    """The module as text that LLVM reads. Values without a name are numbered, names used twice made unique. Without
    `debug`, nothing in it is debug information to LLVM: no attachments, records, compile units or version."""
    return _ModuleWriter(module, debug).write()


def function_text(module: Module, function: Function) -> str:
    """One function alone, for reports and messages."""
    writer = _ModuleWriter(module)
    writer.function(function)
    return "\n".join(writer.lines).strip() + "\n"


def is_debug_version(module: Module, value: MDValue) -> bool:
    """Is this the module flag by which LLVM recognises debug information?"""
    node = module.metadata.get(value.number) if isinstance(value, MDRef) else value
    if not isinstance(node, MDNode) or len(node.operands) < 2:
        return False
    name = node.operands[1]
    return isinstance(name, MDString) and name.text == "Debug Info Version"


def has_debug_info(module: Module) -> bool:
    """Does LLVM see debug information in this module?"""
    return any(is_debug_version(module, flag) for flag in module.named_metadata.get("llvm.module.flags", ()))


class _ModuleWriter(InstructionWriter):
    def write(self) -> str:
        module = self.module
        add = self.lines.append
        if module.identifier:
            add(f"; ModuleID = '{module.identifier}'")
        if module.source_filename is not None:
            add(f'source_filename = "{module.source_filename}"')
        if module.data_layout:
            add(f'target datalayout = "{module.data_layout}"')
        if module.triple:
            add(f'target triple = "{module.triple}"')
        self._section(f'module asm "{line}"' for line in module.module_asm)
        self._section(f"%{name} = type {body or 'opaque'}" for name, body in module.struct_bodies.items())
        self._section(f"${quoted(name)} = comdat {kind}" for name, kind in module.comdats.items())
        self._section(map(self._variable, module.globals.values()))
        self._section(self._alias(a) for a in module.aliases.values() if a.keyword == "alias")
        self._section(self._alias(a) for a in module.aliases.values() if a.keyword != "alias")
        for function in module.functions.values():
            self.function(function)
        groups = module.attribute_groups
        self._section(f"attributes #{number} = {{ {' '.join(words)} }}" for number, words in groups.items())
        self._section(map(self._named_metadata, filter(self._wanted_metadata, module.named_metadata)))
        self._section(f"!{number} = {node}" for number, node in written(module.metadata, self.node))
        return "\n".join(self.lines) + "\n"

    def _section(self, lines: Iterable[str]) -> None:
        found = list(lines)
        if found:
            self.lines.append("")
            self.lines += found

    def _wanted_metadata(self, name: str) -> bool:
        return self.debug or (name.startswith("llvm.") and not name.startswith("llvm.dbg."))

    def _named_metadata(self, name: str) -> str:
        nodes = self.module.named_metadata[name]
        if not self.debug:
            nodes = [node for node in nodes if not is_debug_version(self.module, node)]
        operands = ", ".join(map(self.metadata, nodes))
        return f"!{name} = !{{{operands}}}"

    def _variable(self, variable: GlobalVariable) -> str:
        declared = variable.initializer is None and not _EXTERNAL.intersection(variable.prefix)
        prefix = ("external", *variable.prefix) if declared else variable.prefix
        words = [f"{self.names[variable]} =", *prefix, "constant" if variable.is_constant else "global"]
        words.append(str(variable.value_type))
        if variable.initializer is not None:
            words.append(self.ref(variable.initializer))
        return " ".join(words) + self._properties(variable.suffix, variable.metadata)

    def _alias(self, alias: GlobalAlias) -> str:
        assert alias.target is not None
        words = [f"{self.names[alias]} =", *alias.prefix, alias.keyword, f"{alias.value_type},"]
        target = self.ref(alias.target) if isinstance(alias.target, ConstantExpr) else self.typed(alias.target)
        return " ".join([*words, target]) + self._properties(alias.suffix, [])

    def _properties(self, suffix: tuple[str, ...], metadata: list[tuple[str, MDValue]]) -> str:
        commas = "".join(f", {word}" for word in suffix if word[0] != "#")
        groups = "".join(f" {word}" for word in suffix if word[0] == "#")
        return commas + self.attachments(metadata) + groups

    def function(self, function: Function) -> None:
        self.lines.append("")
        self.add_locals(function)
        self.subprogram = self._subprogram(function)
        if function.is_declaration:
            self.lines.append(self._header("declare", function))
            return
        self.lines.append(self._header("define", function) + " {")
        for index, block in enumerate(function.blocks):
            if index or block.name:
                if index:
                    self.lines.append("")
                self.lines.append(self.names[block][1:] + ":")
            for instruction in block.instructions:
                self.instruction(instruction)
        for record in function.trailing_records:
            self.record(record)
        self.lines.append("}")

    def _subprogram(self, function: Function) -> str:
        """The function's `!dbg`, as text; empty where it has none or none is wanted."""
        nodes = [node for kind, node in function.metadata if kind == "dbg"]
        return self.metadata(nodes[0]) if nodes and self.debug else ""

    def _header(self, keyword: str, function: Function) -> str:
        words = [keyword]
        metadata = [text[2:] for text in self.attachment_list(function.metadata)]
        declared = keyword == "declare"
        if declared:
            words += metadata
        words += function.prefix
        words += function.return_attributes
        signature = function.function_type
        parameters = [
            " ".join([str(a.type), *a.attributes] + ([] if declared and not a.name else [self.names[a]]))
            for a in function.arguments
        ]
        if signature.variadic:
            parameters.append("...")
        words.append(f"{signature.result} {self.names[function]}({', '.join(parameters)})")
        words += function.attributes
        for name, data in (
            ("prefix", function.prefix_data),
            ("prologue", function.prologue_data),
            ("personality", function.personality),
        ):
            if data is not None:
                words.append(f"{name} {self.typed(data)}")
        return " ".join(words if declared else words + metadata)
