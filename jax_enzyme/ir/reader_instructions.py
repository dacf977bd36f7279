"""Reads instructions: one method per shape, chosen by the opcode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir import values as V
from jax_enzyme.ir.keywords import CASTS
from jax_enzyme.ir.reader_calls import CallReader


class InstructionReader(CallReader):
    def instruction(self) -> I.Instruction:
        """One instruction with its attachments, without its name."""
        opcode = self.tokens[self.pos]
        reader = self.readers.get(opcode)
        if reader is None:
            raise self.error("expected an instruction")
        self.pos += 1
        found = reader(self, opcode)
        if self.tokens[self.pos] == ",":
            found.metadata = self.attachments()
        return found

    # Arithmetic

    def _unary(self, opcode: str) -> I.Instruction:
        flags = self.flags()
        x = self.typed_value()
        return I.UnaryOp(x.type, opcode, [x], flags=flags)

    def _binary(self, opcode: str) -> I.Instruction:
        flags = self.flags()
        type_ = self.type()
        x = self.value(type_)
        self.expect(",")
        return I.BinaryOp(type_, opcode, [x, self.value(type_)], flags=flags)

    def _cast(self, opcode: str) -> I.Instruction:
        flags = self.flags()
        x = self.typed_value()
        self.expect("to")
        return I.Cast(self.type(), opcode, [x], flags=flags)

    def _compare(self, opcode: str) -> I.Instruction:
        flags = self.flags()
        predicate = self.take()
        type_ = self.type()
        x = self.value(type_)
        self.expect(",")
        y = self.value(type_)
        result = T.VectorType(type_.count, T.I1, type_.scalable) if isinstance(type_, T.VectorType) else T.I1
        return I.Compare(result, opcode, [x, y], predicate, flags=flags)

    def _select(self, opcode: str) -> I.Instruction:
        flags = self.flags()
        condition = self.typed_value()
        self.expect(",")
        then = self.typed_value()
        self.expect(",")
        return I.Select(then.type, opcode, [condition, then, self.typed_value()], flags=flags)

    def _freeze(self, opcode: str) -> I.Instruction:
        x = self.typed_value()
        return I.Freeze(x.type, opcode, [x])

    def _phi(self, opcode: str) -> I.Instruction:
        flags = self.flags()
        type_ = self.type()
        values: list[V.Value] = []
        blocks: list[V.BasicBlock] = []
        tokens = self.tokens
        while tokens[self.pos] == "[":
            self.pos += 1
            values.append(self.value(type_))
            self.expect(",")
            blocks.append(self.block(self.take()))
            self.expect("]")
            if tokens[self.pos] == "," and tokens[self.pos + 1] == "[":
                self.pos += 1
        return I.Phi(type_, opcode, values, flags=flags, targets=blocks)

    # Memory

    def _alloca(self, opcode: str) -> I.Instruction:
        flags = self.flags()
        allocated = self.type()
        count: V.Value = V.ConstantInt(T.I32, 1)
        printed = False
        align: int | None = None
        space = 0
        tokens = self.tokens
        while tokens[self.pos] == "," and tokens[self.pos + 1][0] != "!":
            self.pos += 1
            if self.accept("align"):
                align = self.integer()
            elif tokens[self.pos] == "addrspace":
                space = self.address_space()
            else:
                count = self.typed_value()
                printed = True
        pointer = T.PTR if space == 0 else T.PointerType(space)
        return I.Alloca(pointer, opcode, [count], allocated, align, printed, flags=flags)

    def _load(self, opcode: str) -> I.Instruction:
        flags = self.flags()
        type_ = self.type()
        self.expect(",")
        pointer = self.typed_value()
        ordering = self.ordering() if "atomic" in flags else ""
        return I.Load(type_, opcode, [pointer], self.align_suffix(), ordering, flags=flags)

    def _store(self, opcode: str) -> I.Instruction:
        flags = self.flags()
        value = self.typed_value()
        self.expect(",")
        pointer = self.typed_value()
        ordering = self.ordering() if "atomic" in flags else ""
        return I.Store(T.VOID, opcode, [value, pointer], self.align_suffix(), ordering, flags=flags)

    def _gep(self, opcode: str) -> I.Instruction:
        flags = self.flags()
        source = self.type()
        self.expect(",")
        operands = [self.typed_value()]
        result = operands[0].type
        tokens = self.tokens
        while tokens[self.pos] == "," and tokens[self.pos + 1][0] != "!":
            self.pos += 1
            index = self.typed_value()
            if isinstance(index.type, T.VectorType) and not isinstance(result, T.VectorType):
                result = T.VectorType(index.type.count, result, index.type.scalable)
            operands.append(index)
        return I.GetElementPtr(result, opcode, operands, source, flags=flags)

    def _rmw(self, opcode: str) -> I.Instruction:
        flags = self.flags()
        operation = self.take()
        pointer = self.typed_value()
        self.expect(",")
        value = self.typed_value()
        ordering = self.ordering()
        return I.AtomicRMW(value.type, opcode, [pointer, value], operation, ordering, self.align_suffix(), flags=flags)

    def _cmpxchg(self, opcode: str) -> I.Instruction:
        flags = self.flags()
        operands = [self.typed_value()]
        for _ in range(2):
            self.expect(",")
            operands.append(self.typed_value())
        ordering = f"{self.ordering()} {self.take()}"
        result = T.StructType((operands[1].type, T.I1))
        return I.CmpXchg(result, opcode, operands, ordering, self.align_suffix(), flags=flags)

    def _fence(self, opcode: str) -> I.Instruction:
        return I.Fence(T.VOID, opcode, [], self.ordering())

    def _va_arg(self, opcode: str) -> I.Instruction:
        list_ = self.typed_value()
        self.expect(",")
        return I.VAArg(self.type(), opcode, [list_])

    # Aggregates and vectors

    def _extract_value(self, opcode: str) -> I.Instruction:
        aggregate = self.typed_value()
        indices = self.indices()
        return I.ExtractValue(self.member(aggregate.type, indices), opcode, [aggregate], indices)

    def _insert_value(self, opcode: str) -> I.Instruction:
        aggregate = self.typed_value()
        self.expect(",")
        element = self.typed_value()
        return I.InsertValue(aggregate.type, opcode, [aggregate, element], self.indices())

    def _extract_element(self, opcode: str) -> I.Instruction:
        vector = self.typed_value()
        self.expect(",")
        return I.ExtractElement(T.scalar(vector.type), opcode, [vector, self.typed_value()])

    def _insert_element(self, opcode: str) -> I.Instruction:
        vector = self.typed_value()
        self.expect(",")
        element = self.typed_value()
        self.expect(",")
        return I.InsertElement(vector.type, opcode, [vector, element, self.typed_value()])

    def _shuffle(self, opcode: str) -> I.Instruction:
        x = self.typed_value()
        self.expect(",")
        y = self.typed_value()
        self.expect(",")
        mask_type = self.type()
        if not (isinstance(mask_type, T.VectorType) and isinstance(x.type, T.VectorType)):
            raise self.error("expected vectors")
        mask = self._mask(mask_type)
        result = T.VectorType(mask_type.count, x.type.element, mask_type.scalable)
        return I.ShuffleVector(result, opcode, [x, y], mask, mask_type)

    def _mask(self, type_: T.VectorType) -> tuple[int, ...]:
        constant = self.constant(type_)
        match constant:
            case V.ZeroInitializer():
                return (0,) * type_.count
            case V.Poison() | V.Undef():
                return (-1,) * type_.count
            case V.ConstantAggregate():
                return tuple(-1 if (lane := V.int_value(e)) is None else lane for e in constant.elements)
            case V.ConstantSplat():
                return (V.int_value(constant.element) or 0,) * type_.count
            case _:
                raise self.error("expected a constant mask")

    # Control flow

    def _br(self, opcode: str) -> I.Instruction:
        if self.tokens[self.pos] == "label":
            return I.Branch(T.VOID, opcode, [], targets=[self.label()])
        condition = self.typed_value()
        self.expect(",")
        then = self.label()
        self.expect(",")
        return I.CondBranch(T.VOID, opcode, [condition], targets=[then, self.label()])

    def _switch(self, opcode: str) -> I.Instruction:
        operands = [self.typed_value()]
        self.expect(",")
        targets = [self.label()]
        self.expect("[")
        while not self.accept("]"):
            operands.append(self.typed_value())
            self.expect(",")
            targets.append(self.label())
        return I.Switch(T.VOID, opcode, operands, targets=targets)

    def _ret(self, opcode: str) -> I.Instruction:
        type_ = self.type()
        return I.Return(T.VOID, opcode, [] if type_ == T.VOID else [self.value(type_)])

    def _unreachable(self, opcode: str) -> I.Instruction:
        return I.Unreachable(T.VOID, opcode, [])

    def _indirectbr(self, opcode: str) -> I.Instruction:
        address = self.typed_value()
        self.expect(",")
        return I.IndirectBranch(T.VOID, opcode, [address], targets=self._label_list())

    readers: ClassVar[dict[str, Callable[[Any, str], I.Instruction]]] = {
        **CallReader.readers,
        "fneg": _unary,
        "icmp": _compare,
        "fcmp": _compare,
        "select": _select,
        "phi": _phi,
        "freeze": _freeze,
        "alloca": _alloca,
        "load": _load,
        "store": _store,
        "getelementptr": _gep,
        "br": _br,
        "switch": _switch,
        "ret": _ret,
        "unreachable": _unreachable,
        "extractvalue": _extract_value,
        "insertvalue": _insert_value,
        "extractelement": _extract_element,
        "insertelement": _insert_element,
        "shufflevector": _shuffle,
        "atomicrmw": _rmw,
        "cmpxchg": _cmpxchg,
        "fence": _fence,
        "va_arg": _va_arg,
        "indirectbr": _indirectbr,
        **dict.fromkeys(
            "add sub mul udiv sdiv urem srem shl lshr ashr and or xor fadd fsub fmul fdiv frem".split(), _binary
        ),
        **dict.fromkeys(CASTS, _cast),
    }
