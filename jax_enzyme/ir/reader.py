"""Reads textual LLVM IR (LLVM 22, as llvmlite prints it) into a `Module`.

`parse` is a hand-written recursive-descent parser; it knows all of the language but summary entries. `read` lets LLVM
read first, which checks the input, upgrades older spellings and takes bitcode too.
"""

from __future__ import annotations

from jax_enzyme.collector import collector_paused
from jax_enzyme.ir import types as T
from jax_enzyme.ir.foreign import texts_of_bitcode
from jax_enzyme.ir.keywords import LINKAGE, UNNAMED
from jax_enzyme.ir.lexer import ReadError, normal
from jax_enzyme.ir.metadata import MDNode, MDValue
from jax_enzyme.ir.module import GlobalAlias, GlobalVariable, Module
from jax_enzyme.ir.nodes import Nodes, split
from jax_enzyme.ir.reader_functions import FunctionReader
from jax_enzyme.ir.reader_metadata import MetadataReader
from jax_enzyme.ir.reader_values import global_name
from jax_enzyme.ir.verify import VerifyError, parse_verified
from jax_enzyme.ir.writer import to_text

__all__ = ["ReadError", "parse", "parse_printed", "printed_nodes", "read", "upgraded"]

_GLOBAL_PREFIX = LINKAGE | UNNAMED | {"externally_initialized", "thread_local", "addrspace"}
_GLOBAL_WORDS = frozenset(
    ("no_sanitize_address", "no_sanitize_hwaddress", "sanitize_memtag", "sanitize_address_dyninit")
)


def parse(text: str) -> Module:
    """Text to module, without LLVM. Raises `ReadError`."""
    with collector_paused():
        return _ModuleReader(text).read()


def parse_printed(text: str) -> Module:
    """The same for what LLVM has written, which is no error. Numbered nodes are read when somebody asks for them."""
    rest, nodes = split(text)
    with collector_paused():
        reader = _ModuleReader(rest)
        reader.module.metadata = Nodes(nodes, _node)
        return reader.read()


def printed_nodes(text: str) -> Nodes:
    """The numbered nodes of what LLVM has written, and nothing else of it."""
    return Nodes(split(text)[1], _node)


def _node(text: str) -> MDNode:
    return MetadataReader(text).node()


def read(source: str | bytes) -> Module:
    """Text or bitcode of any version that LLVM upgrades, verified. Raises `ReadError`, LLVM's message included."""
    return parse(upgraded(source))


def upgraded(source: str | bytes) -> str:
    """The same as text of this version."""
    try:
        if isinstance(source, str):
            return str(parse_verified(source))
        (read,) = texts_of_bitcode([source])
        if isinstance(read, RuntimeError):
            raise read
        return read
    except (RuntimeError, VerifyError) as error:
        if isinstance(source, str) and '"Debug Info Version"' in source and (rest := _without_debug_info(source)):
            return rest
        raise ReadError(f"LLVM cannot read this: {error}") from error


def _without_debug_info(source: str) -> str | None:
    """A text without its debug information, in case LLVM finds fault with that alone."""
    try:
        return str(parse_verified(to_text(parse(source), debug=False)))
    except (ReadError, VerifyError):
        return None


class _ModuleReader(FunctionReader):
    def read(self) -> Module:
        try:
            return self._module()
        except ReadError:
            raise
        except (IndexError, ValueError) as error:  # an early end, a number that is none
            raise self.error("the text makes no sense here") from error

    def _module(self) -> Module:
        module = self.module
        self._identifier()
        while True:
            token = self.tokens[self.pos]
            if token == "\0":
                break
            if token in ("define", "declare"):
                self.function()
            else:
                self._entity(token)
        module.struct_bodies = self.bodies
        self.resolve_nested()
        self.resolve_metadata()
        self.resolve_functions()
        self._resolve_globals_of_module()
        return module

    def _identifier(self) -> None:
        mark = "; ModuleID = '"
        if self.text.startswith(mark):
            self.module.identifier = self.text[len(mark) : self.text.index("\n")].removesuffix("'")

    def _entity(self, token: str) -> None:
        first = token[0]
        match token:
            case "source_filename":
                self.pos += 1
                self.expect("=")
                self.module.source_filename = self.string()
            case "target":
                self._target()
            case "module":
                self.pos += 1
                self.expect("asm")
                self.module.module_asm.append(self.string())
            case "attributes":
                self._attribute_group()
            case "uselistorder" | "uselistorder_bb":
                self._skip_use_list_order()
            case _ if first == "@":
                self._global()
            case _ if first == "%":
                self._named_type()
            case _ if first == "!":
                self._metadata_definition()
            case _ if first == "$":
                self._comdat()
            case "^":
                raise self.error("summary entries (of ThinLTO) are not supported")
            case _:
                raise self.error("expected a top-level entity")

    def _target(self) -> None:
        self.pos += 1
        what = self.take()
        self.expect("=")
        if what == "datalayout":
            self.module.data_layout = self.string()
        elif what == "triple":
            self.module.triple = self.string()
        else:
            raise self.error(f"unknown target property {what}")

    def _named_type(self) -> None:
        token = self.take()
        self.expect("=")
        self.expect("type")
        self.bodies[token[1:]] = None if self.accept("opaque") else self.type()

    def _comdat(self) -> None:
        name = normal(self.take())[1:]
        self.expect("=")
        self.expect("comdat")
        self.module.comdats[name] = self.take()

    def _attribute_group(self) -> None:
        self.pos += 1
        number = self.take()[1:]
        self.expect("=")
        self.expect("{")
        found: list[str] = []
        while not self.accept("}"):
            found.append(self.attribute())
        self.module.attribute_groups[number] = tuple(found)

    def _metadata_definition(self) -> None:
        name = self.take()[1:]
        self.expect("=")
        if name.isdigit():
            self.module.metadata[name] = self.node()
            return
        self.expect("!")
        self.expect("{")
        self.module.named_metadata[name] = self._operands("}")

    # Globals

    def _global(self) -> None:
        name = global_name(self.take())
        self.expect("=")
        prefix: list[str] = []
        pointer = T.PTR
        while self.tokens[self.pos] in _GLOBAL_PREFIX:
            if self.tokens[self.pos] == "addrspace":
                pointer = T.PointerType(self.address_space())
                prefix.append(f"addrspace({pointer.address_space})")
            else:
                prefix.append(self.attribute())
        keyword = self.take()
        if keyword in ("alias", "ifunc"):
            self._alias(name, keyword, tuple(prefix))
        elif keyword in ("global", "constant"):
            self._variable(name, keyword == "constant", pointer, tuple(prefix))
        else:
            self.pos -= 1
            raise self.error("expected global, constant, alias or ifunc")

    def _variable(self, name: str, constant: bool, pointer: T.PointerType, prefix: tuple[str, ...]) -> None:
        value_type = self.type()
        variable = GlobalVariable(pointer, value_type, None, constant, prefix, name=name)
        external = "external" in prefix or "extern_weak" in prefix
        if not external and self.tokens[self.pos] != ",":
            variable.initializer = self.constant(value_type)
        variable.suffix, variable.metadata = self._global_suffix()
        self.module.globals[name] = variable

    def _alias(self, name: str, keyword: str, prefix: tuple[str, ...]) -> None:
        value_type = self.type()
        self.expect(",")
        target = self.constant(T.PTR) if self.at_expression() else self.typed_constant()
        alias = GlobalAlias(target.type, value_type, keyword, target, prefix, name=name)
        alias.suffix, _ = self._global_suffix()
        self.module.aliases[name] = alias

    def _global_suffix(self) -> tuple[tuple[str, ...], list[tuple[str, MDValue]]]:
        words: list[str] = []
        metadata: list[tuple[str, MDValue]] = []
        while True:
            if self.tokens[self.pos] == ",":
                if self.tokens[self.pos + 1][0] == "!":
                    metadata += self.attachments()
                    continue
                self.pos += 1
                words.append(self._suffix_word())
            elif self.tokens[self.pos][0] == "#":
                words.append(self.take())
            else:
                return tuple(words), metadata

    def _suffix_word(self) -> str:
        token = self.tokens[self.pos]
        if token in ("section", "partition", "code_model"):
            self.pos += 1
            return f'{token} "{self.string()}"'
        if token == "comdat":
            self.pos += 1
            return f"comdat({self.balanced()[1]})" if self.tokens[self.pos] == "(" else "comdat"
        if token == "align" or token in _GLOBAL_WORDS:
            return self.attribute()
        raise self.error("expected a property of a global")

    def _resolve_globals_of_module(self) -> None:
        for variable in self.module.globals.values():
            if variable.initializer is not None:
                variable.initializer = self.resolved(variable.initializer)
        for alias in self.module.aliases.values():
            if alias.target is not None:
                alias.target = self.resolved(alias.target)
