"""Reads values: constants, and names of locals and globals, either of which may be defined only later."""

from __future__ import annotations

from jax_enzyme.classes import dataclass
from jax_enzyme.ir import types as T
from jax_enzyme.ir import values as V
from jax_enzyme.ir.lexer import is_table, normal, plain_name, spell, unescape
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.reader_types import TypeReader

_EXPRESSIONS = frozenset(
    "getelementptr trunc zext sext fptrunc fpext fptoui fptosi uitofp sitofp ptrtoint ptrtoaddr inttoptr bitcast "
    "addrspacecast add sub mul shl lshr ashr and or xor extractelement insertelement shufflevector".split()
)
_CASTS = frozenset("trunc zext sext ptrtoint ptrtoaddr inttoptr bitcast addrspacecast".split())
_ASM_FLAGS = ("sideeffect", "alignstack", "inteldialect", "unwind")


@dataclass(eq=False, slots=True)
class ForwardLocal(V.Value):
    """Stands for a local value until its definition has been read; `name` is the name token."""


@dataclass(eq=False, slots=True)
class ForwardGlobal(V.Constant):
    """Stands for a global until the whole module has been read; `name` is its name."""


class ValueReader(TypeReader):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.module = Module()
        self.locals: dict[str, V.Value] = {}
        self.blocks: dict[str, V.BasicBlock] = {}
        self.function_name = ""
        self.addressed: dict[tuple[str, str], V.BasicBlock] = {}
        self.nested: list[V.Constant] = []
        self.forward_seen = False

    def typed_value(self) -> V.Value:
        return self.value(self.type())

    def value(self, type_: T.Type) -> V.Value:
        token = self.tokens[self.pos]
        first = token[0]
        if first == "%":
            self.pos += 1
            found = self.locals.get(token)
            if found is None:
                return self._local(token, type_)
            if found.type is not type_ and found.type != type_:
                self.pos -= 1
                raise self.error(f"{token} has type {found.type} but is used as {type_}")
            return found
        if first in "0123456789-":
            self.pos += 1
            if isinstance(type_, T.IntType):
                return V.ConstantInt(type_, self._wrapped(int(token), type_.bits))
            return V.ConstantFloat(type_, token)
        if first == "@":
            self.pos += 1
            return self.global_value(token, type_)
        return self._word(token, type_)

    def constant(self, type_: T.Type) -> V.Constant:
        found = self.value(type_)
        if not isinstance(found, V.Constant):
            raise self.error("expected a constant")
        return found

    def typed_constant(self) -> V.Constant:
        return self.constant(self.type())

    @staticmethod
    def _wrapped(value: int, bits: int) -> int:
        if bits == 1:
            return value & 1
        return value - (1 << bits) if value > 0 and value >> (bits - 1) else value

    def _local(self, token: str, type_: T.Type) -> V.Value:
        key = normal(token)
        found = self.locals.get(key)
        if found is not None:
            return found
        self.forward_seen = True
        return ForwardLocal(type_, name=key)

    def global_value(self, token: str, type_: T.Type) -> V.Constant:
        name = global_name(token)
        module = self.module
        found = module.functions.get(name) or module.globals.get(name) or module.aliases.get(name)
        if found is None:
            self.forward_seen = True
            return ForwardGlobal(type_, name=name)
        return found

    def _word(self, token: str, type_: T.Type) -> V.Value:
        self.pos += 1
        match token:
            case "true" | "false":
                return V.ConstantInt(type_, int(token == "true"))
            case "null":
                return V.ConstantNull(type_)
            case "undef":
                return V.Undef(type_)
            case "poison":
                return V.Poison(type_)
            case "zeroinitializer":
                return V.ZeroInitializer(type_)
            case "none":
                return V.ConstantToken(type_)
            case "asm":
                return self._asm(type_)
            case _:
                pass
        if is_table(token):
            return V.ConstantTable(type_, token)
        if token[:2] == 'c"':
            return V.ConstantString(type_, unescape(token[2:-1]).encode("latin-1"))
        if token[:3] in ("u0x", "s0x"):
            if not isinstance(type_, T.IntType):
                raise self.error(f"an integer as {type_}")
            return V.ConstantInt(type_, self._hex(token, type_.bits))
        found = self._nested(token, type_)
        self.nested.append(found)
        return found

    def _hex(self, token: str, bits: int) -> int:
        value = int(token[3:], 16)
        if token[0] == "s" and value >> (4 * len(token[3:]) - 1):
            value -= 1 << (4 * len(token[3:]))
        return self._wrapped(value, bits)

    def _asm(self, type_: T.Type) -> V.Value:
        flags: list[str] = []
        while self.tokens[self.pos] in _ASM_FLAGS:
            flags.append(self.take())
        template = self.string()
        self.expect(",")
        return V.InlineAsm(type_, template, self.string(), tuple(flags))

    def _nested(self, token: str, type_: T.Type) -> V.Constant:
        """A constant that holds other constants; the first token has been taken."""
        if token == "[":
            return self._aggregate(type_, "]")
        if token == "{":
            return self._aggregate(type_, "}")
        if token == "<":
            if self.accept("{"):
                found = self._aggregate(type_, "}")
                self.expect(">")
                return found
            return self._aggregate(type_, ">")
        if token in _EXPRESSIONS:
            return self._expression(token, type_)
        if token == "splat":
            self.expect("(")
            element = self.typed_constant()
            self.expect(")")
            return V.ConstantSplat(type_, element)
        if token in ("dso_local_equivalent", "no_cfi"):
            return V.DSOLocalEquivalent(type_, token, self.global_value(self.take(), type_))
        if token == "blockaddress":
            return self._block_address(type_)
        if token == "ptrauth":
            self.expect("(")
            operands = [self.typed_constant()]
            while self.accept(","):
                operands.append(self.typed_constant())
            self.expect(")")
            return V.PtrAuth(type_, operands)
        self.pos -= 1
        raise self.error("expected a value")

    def at_expression(self) -> bool:
        """Does a constant expression come next?"""
        return self.tokens[self.pos] in _EXPRESSIONS

    def _aggregate(self, type_: T.Type, closing: str) -> V.Constant:
        elements: list[V.Constant] = []
        while not self.accept(closing):
            elements.append(self.typed_constant())
            self.accept(",")
        return V.ConstantAggregate(type_, elements)

    def _expression(self, opcode: str, type_: T.Type) -> V.Constant:
        flags: list[str] = []
        while self.tokens[self.pos] != "(":
            word = self.take()
            flags.append(word + spell(self.balanced()) if word == "inrange" else word)
        self.expect("(")
        source: T.Type | None = None
        if opcode == "getelementptr":
            source = self.type()
            self.expect(",")
        operands = [self.typed_constant()]
        while self.accept(","):
            operands.append(self.typed_constant())
        if opcode in _CASTS:
            self.expect("to")
            type_ = self.type()
        self.expect(")")
        return V.ConstantExpr(type_, opcode, operands, tuple(flags), source)

    def _block_address(self, type_: T.Type) -> V.Constant:
        self.expect("(")
        function = self.global_value(self.take(), T.PTR)
        self.expect(",")
        block = self._addressed_block(function.name, normal(self.take()))
        self.expect(")")
        return V.BlockAddress(type_, function, block)

    def _addressed_block(self, function: str, key: str) -> V.BasicBlock:
        """The block object that the function's own text will fill or has filled."""
        found = self.addressed.get((function, key))
        if found is None and function == self.function_name:
            found = self.blocks.get(key)
        if found is None:
            found = self.addressed[function, key] = V.BasicBlock(name=plain_name(key))
        return found

    def resolved(self, value: V.Constant) -> V.Constant:
        """What a constant stands for, now that all globals are known."""
        if not isinstance(value, ForwardGlobal):
            return value
        found = self.module.symbol(value.name)
        if found is None:
            raise self.error(f"use of undefined global @{value.name}")
        return found

    def resolve_nested(self) -> None:
        """Puts globals in place of what stood for them, in all constants that hold others."""
        for constant in self.nested:
            match constant:
                case V.ConstantAggregate():
                    constant.elements[:] = map(self.resolved, constant.elements)
                case V.ConstantExpr() | V.PtrAuth():
                    constant.operands[:] = map(self.resolved, constant.operands)
                case V.ConstantSplat():
                    constant.element = self.resolved(constant.element)
                case V.DSOLocalEquivalent():
                    constant.target = self.resolved(constant.target)
                case V.BlockAddress():
                    constant.function = self.resolved(constant.function)
                case _:
                    pass


def global_name(token: str) -> str:
    """The name of a global from its token; a number stays a number (an unnamed global)."""
    return token[1:] if token[1] != '"' else normal(token)[1:]
