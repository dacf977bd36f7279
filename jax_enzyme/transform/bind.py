"""Makes an array function of a kernel: dimensions and static integers become constants.

    before    "n: i32, a: f64, x: f64[n], out y: f64[n] -> f64", n = 4

              define double @f(i32 %n, double %a, ptr %x, ptr %y)

    after     define i64 @je.primal(ptr noalias %a, ptr noalias %x, ptr noalias %y, ptr noalias %return) {
                %1 = load double, ptr %a
                %2 = call double @f(i32 4, double %1, ptr %x, ptr %y)
                store double %2, ptr %return
                ret i64 0
              }

The buffers are the parameters that are no constants, in signature order, then the return value. Before that, the
kernel's parameters are held against the signature, by their IR types and, behind pointers, by debug information.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import replace

from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.errors import SignatureError
from jax_enzyme.ir import types as T
from jax_enzyme.ir.aliases import name_what_aliases_name
from jax_enzyme.ir.arrays import ITEM_BYTES, ArrayFunction, Buffer
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import with_room
from jax_enzyme.ir.instructions import Call
from jax_enzyme.ir.linking import COMES_WITH
from jax_enzyme.ir.module import Function, GlobalAlias, GlobalVariable, Module
from jax_enzyme.ir.values import Argument, BasicBlock, ConstantAggregate, ConstantNull, Value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.signature import RETURN, Binding, Param, Signature
from jax_enzyme.signature.formals import Formal, FunctionOf, Null, Plain, Record, Status, Text
from jax_enzyme.transform.buffers import argument_of, buffers_of
from jax_enzyme.transform.constant_variables import check_sizes
from jax_enzyme.transform.declared import (
    mismatch,
    other_pointer,
    shown,
    unlike_memory,
)
from jax_enzyme.transform.described import Kind, described
from jax_enzyme.transform.descriptors import Exchanged, assumed_shape, object_of_class
from jax_enzyme.transform.failure_sites import FAILS, TERMINATED, add_message
from jax_enzyme.transform.layouts import (
    IN_REGISTERS,
    composite_type,
    elements_of,
    is_object,
    places,
)
from jax_enzyme.transform.records import PARTS, SCALARS, Composer, is_pair
from jax_enzyme.transform.returned import Returned
from jax_enzyme.transform.source_signature import Source
from jax_enzyme.transform.source_types import source_type

PRIMAL = "je.primal"

STATUS_RETURNED = 1
"""The upper 32 bits of a status: the kernel returned the number in the lower 32 (see csrc/abi.h)."""


def bind(module: Module, symbol: str, signature: Signature, binding: Binding) -> ArrayFunction:
    """The array function `je.primal` in the module itself, which nobody else may have. SignatureError if the kernel is
    not what it should be."""
    name_what_aliases_name(module)
    kernel = _definition(module, symbol)
    sizes = dict(binding.dims)
    check_sizes(kernel, signature, sizes)
    return _Binder(
        module, kernel, signature, buffers_of(signature, binding), signature.constants(binding), sizes
    ).bind()


def check_signature(module: Module, symbol: str, signature: Signature) -> None:
    """SignatureError if a kernel is not what its signature says, whatever the sizes. The module stays as it is."""
    module = with_room(module)
    constants = {**dict.fromkeys(signature.shape_names, 1), **signature.constants(Binding())}
    given = [p for p in signature.params if p.name not in constants]
    buffers = [Buffer(p.name, p.dtype, (), p.direction, of=i) for i, p in enumerate(given)]
    buffers += [Buffer(p.name, p.dtype, (), "out", of=len(buffers) + i) for i, p in enumerate(signature.returned)]
    kernel = _definition(module, symbol)
    check_sizes(kernel, signature, {})
    _Binder(module, kernel, signature, tuple(buffers), constants, {}).bind()


def _definition(module: Module, symbol: str) -> Function:
    value: object = module.symbol(symbol)
    while isinstance(value, GlobalAlias):
        value = value.target
    if not isinstance(value, Function) or value.is_declaration:
        raise SignatureError(f"the module defines no function `{symbol}`")
    return value


class _Binder:
    def __init__(
        self,
        module: Module,
        kernel: Function,
        signature: Signature,
        buffers: tuple[Buffer, ...],
        constants: Mapping[str, int],
        sizes: Mapping[str, int],
    ) -> None:
        self.module = module
        self.kernel = kernel
        self.signature = signature
        self.constants = constants
        self.buffers = buffers
        self.source = Source(module, kernel, signature, sizes)
        self.arguments = {b.name: argument_of(i, b) for i, b in enumerate(self.buffers)}
        self.at = Builder(BasicBlock(name="entry"))
        self.exchanged = Exchanged(module, signature.order)
        self.composer = Composer(
            self.at,
            self.arguments,
            constants,
            self._function,
            self._characters,
            self._fail,
            self.exchanged,
            [self.at.block],
        )
        self.formals = signature.arguments

    def bind(self) -> ArrayFunction:
        self.source.check_count()
        self.source.check_order()
        self.source.check_result()
        returned = self._returned()
        operands: list[Value] = [returned.place] if returned is not None and self.source.returns_in_memory else []
        for index, formal in enumerate(self.formals):
            rest = self.kernel.arguments[len(operands) :]
            if not rest:
                raise self.source.wrong_count()
            operands += self._formal(index, formal, rest)
        operands += self._lengths()
        if len(operands) != len(self.kernel.arguments):
            raise self.source.wrong_count()
        result = self.at.call(self.kernel, operands)
        assert isinstance(result, Call)
        result.parameter_attributes = [a.attributes for a in self.kernel.arguments]
        self.composer.finish()
        status = const_int(T.I64, 0) if returned is not None else self._finish(result)
        if returned is not None:
            returned.take(self.composer, DataLayout(self.module), result, in_memory=self.source.returns_in_memory)
        self.at.ret(self._with_statuses(status))
        self.composer.blocks[0].instructions[:0] = self.composer.slots
        for name in [name for name in self.module.globals if name.startswith(COMES_WITH)]:
            del self.module.globals[name]  # the kernel has been called
        self.module.functions[PRIMAL] = Function(
            T.PTR,
            T.FunctionType(T.I64, tuple(T.PTR for _ in self.buffers)),
            list(self.arguments.values()),
            self.composer.blocks,
            name=PRIMAL,
        )
        return ArrayFunction(self.module, PRIMAL, self.buffers)

    # -- parameters

    def _formal(self, index: int, formal: Formal, rest: Sequence[Argument]) -> list[Value]:
        """The operands of the call that one formal of the signature becomes."""
        if (described := self._described(index, formal)) is not None:
            return [described]
        if isinstance(formal, Plain) and not formal.levels:
            if formal.param.by_value or isinstance(rest[0].type, T.PointerType):
                self.source.check_declared(index, formal.param, rest[0])
            type_ = self._described_type(index)
            return self._pass(index, formal.param, rest) if type_ is None else [self._object(index, formal, type_)]
        if isinstance(formal, Record) and not formal.is_pointer:
            return self._pass_by_value(index, formal, rest)
        if not isinstance(rest[0].type, T.PointerType):
            raise self.source.no_pointer(index, formal, rest[0].type)
        return [self._pointer(index, formal)]

    def _pointer(self, index: int, formal: Formal) -> Value:
        """What is passed for a formal that is behind a pointer."""
        known = self.source.source_type(index)
        if known is not None and not self.source.prototype.is_fortran and (found := other_pointer(formal, known)):
            raise self.source.mismatch(index, replace(found, remedy=self.source.as_in_source(index)))
        match formal:
            case Plain():
                self.source.check_rows(index, formal)
                return self.composer.pointer(formal)
            case Record():
                layout = self.source.layout(index, formal)
                address = self.composer.structures(formal, layout)
                type_ = self._described_type(index)
                return address if type_ is None else object_of_class(self.composer, layout.size, address, type_)
            case Null():
                return ConstantNull(T.PTR)
            case FunctionOf():
                passed = self._function(formal.name, formal.symbol)
                self.source.check_passed(index, formal, passed)
                return passed
            case Text():
                return self._characters(formal.value)
            case Status():
                return self.composer.status()

    def _object(self, index: int, formal: Plain, type_: GlobalVariable) -> Value:
        """Numbers that are an object of a class of Fortran."""
        known = self.source.source_type(index)
        if formal.param.by_value or known is None or known.element_bytes is None:
            raise self.source.other_kind(index, formal)
        return object_of_class(self.composer, known.element_bytes, self.composer.pointer(formal), type_)

    def _described_type(self, index: int) -> GlobalVariable | None:
        """What describes the type of an object that Fortran passes with it: that of its class, no extended one."""
        known = self.source.prototype
        name = known.classes.get(known.parameter_name(index) or "")
        return None if name is None else self.module.globals[name]

    def _described(self, index: int, formal: Formal) -> Value | None:
        """An array with its descriptor, where Fortran takes one."""
        node = self.source.node(index)
        if not isinstance(formal, Plain | Record) or node is None:
            return None
        dims = formal.count if isinstance(formal, Record) else None if formal.levels else formal.own
        known = described(self.module, node)
        if dims is None or known is None:
            return None
        source, beyond = self.source.source_type(index), known.beyond(formal)
        if source is not None and beyond is not None:
            raise self.source.mismatch(index, unlike_memory(formal.text("in"), source, beyond))
        if known.rank != len(dims):
            raise self.source.other_kind(index, formal)
        fastest_first = self.composer.extents(dims if self.signature.order == "F" else dims[::-1])
        if isinstance(formal, Record):
            layout = self.source.layout(index, formal)
            address = self.composer.structures(formal, layout)
            return assumed_shape(self.composer, formal, layout.size, fastest_first, address)
        element = source_type(self.module, elements_of(self.module, node))
        if mismatch(replace(formal.param, dims=()), element):
            raise self.source.other_kind(index, formal)
        if known.kind is not Kind.ASSUMED_SHAPE:
            return self.exchanged.parameter(self.composer, formal, known)
        item, address = ITEM_BYTES[formal.param.dtype], self.composer.pointer(formal)
        return assumed_shape(self.composer, formal, item, fastest_first, address)

    def _fail(self, text: str) -> None:
        status = (TERMINATED << 32) | add_message(self.module, text)
        Declarations(self.module).invoke(self.at, FAILS, T.VOID, [const_int(T.I64, status)])

    def _pass_by_value(self, index: int, record: Record, rest: Sequence[Argument]) -> list[Value]:
        """Targets pass a small structure in registers, in words that need not be its members, others in memory, and so
        all objects of C++ that are copied by functions of their own."""
        layout = self.source.layout(index, record)
        address = self.composer.structures(record, layout)
        if is_object(self.module, self.source.node(index)) or any(
            word.startswith("byval") for word in rest[0].attributes
        ):
            return [address]
        sizes = DataLayout(self.module)
        starts = range(0, layout.size, 8) if self.source.is_union(index) else sorted(places(record, layout))
        operands: list[Value] = []
        offset = 0
        for argument in rest:
            if layout.size > IN_REGISTERS and isinstance(argument.type, T.PointerType):
                return [address]
            operands.append(self.at.load(argument.type, self.at.offset(address, offset), 1))
            end = offset + sizes.store_size(argument.type)
            following = next((start for start in starts if start >= end), None)
            if following is None:
                return operands
            offset = following
        raise self.source.wrong_count()

    def _function(self, name: str, symbol: str) -> Value:
        found: object = self.module.symbol(symbol)
        if isinstance(found, Function | GlobalAlias):
            return found
        near = difflib.get_close_matches(symbol, self.module.functions, 1)
        raise SignatureError(
            f"`{name}: fn({symbol})`: the source has no function `{symbol}`",
            self.source.place(),
            f"did you mean `{near[0]}`?" if near else "name a function that the source defines, as it does",
        )

    def _characters(self, text: str) -> Value:
        data = [*text.encode(), 0]
        type_ = T.ArrayType(len(data), T.I8)
        name = f"je.text.{len(self.module.globals)}"
        content = ConstantAggregate(type_, [const_int(T.I8, byte) for byte in data])
        made = GlobalVariable(T.PTR, type_, content, True, ("private", "unnamed_addr"), name=name)
        self.module.globals[name] = made
        return made

    def _with_statuses(self, status: Value) -> Value:
        """The status of the array function, with what the function said through pointers."""
        for slot in self.composer.statuses:
            told = self._status(self.at.load(T.I32, slot, ITEM_BYTES["i32"]))
            status = self.at.select(self.at.icmp("ne", status, const_int(T.I64, 0)), status, told)
        return status

    def _pass(self, index: int, param: Param, rest: Sequence[Argument]) -> list[Value]:
        """The operands of the call that one parameter of the signature becomes."""
        kind = rest[0].type
        if not param.by_value:
            if not isinstance(kind, T.PointerType):
                raise self.source.wrong_type(index, param, kind, "a pointer")
            return [self._reference(param)]
        if param.dtype in PARTS:
            return self._pass_complex(index, param, rest)
        if param.dtype == "bool":
            if kind not in (T.I1, T.I8):
                raise self.source.wrong_type(index, param, kind, "bool")
            byte = self.at.load(T.I8, self.arguments[param.name], 1)
            return [byte if kind == T.I8 else self.at.icmp("ne", byte, const_int(T.I8, 0))]
        expected = SCALARS[param.dtype]
        if kind != expected:
            raise self.source.wrong_type(index, param, kind, shown(None, expected))
        if param.name in self.constants:
            return [const_int(expected, self.constants[param.name])]
        return [self.at.load(expected, self.arguments[param.name], ITEM_BYTES[param.dtype])]

    def _reference(self, param: Param) -> Value:
        if param.name not in self.constants:
            return self.arguments[param.name]
        kind = SCALARS[param.dtype]
        slot = self.at.alloca(kind, align=ITEM_BYTES[param.dtype])
        self.at.store(const_int(kind, self.constants[param.name]), slot, ITEM_BYTES[param.dtype])
        return slot

    def _pass_complex(self, index: int, param: Param, rest: Sequence[Argument]) -> list[Value]:
        """Targets pass a complex number as two numbers, a vector, a structure or array of two, or a copy in memory."""
        buffer, part = self.arguments[param.name], PARTS[param.dtype]
        size = ITEM_BYTES[param.dtype] // 2
        kind = rest[0].type
        if len(rest) > 1 and kind == part and rest[1].type == part:
            return [self.at.load(part, buffer, size), self.at.load(part, self.at.offset(buffer, size), size)]
        if is_pair(kind, part):
            return [self.at.load(kind, buffer, size)]
        if any(word.startswith("byval") for word in rest[0].attributes):
            return [buffer]
        raise self.source.wrong_type(index, param, kind, f"complex {part}")

    def _lengths(self) -> list[Value]:
        """Of several dimensions, a length is the one that moves fastest."""
        shapes = {b.name: b.shape for b in self.buffers}
        fastest = 0 if self.signature.order == "F" else -1
        found = [
            (len(p.value.encode()),) if isinstance(p, Text) else shapes.get(p.name, ()) for p in self.source.texts()
        ]
        return [const_int(T.I64, shape[fastest] if shape else 1) for shape in found]

    # -- the result

    def _returned(self) -> Returned | None:
        """Room for a structure that is returned by value."""
        record = self.signature.structure
        if record is None:
            return None
        node = self.source.prototype.result_node
        if node is not None and composite_type(self.module, node) is None:
            raise self.source.wrong_result(self.kernel.function_type.result)
        layout = self.source.of_source(record, node)
        kind = self.kernel.function_type.result
        if not self.source.returns_in_memory and kind == T.VOID:
            raise self.source.wrong_result(kind)
        size = layout.size if self.source.returns_in_memory else DataLayout(self.module).store_size(kind)
        return Returned(record, layout, self.composer.slot(max(size, layout.size), layout.align))

    def _finish(self, result: Value) -> Value:
        """Stores what the call returned where it belongs; the status of the array function."""
        wanted, kind = self.signature.result, result.type
        if wanted is None:
            return const_int(T.I64, 0)
        if wanted == "status":
            return self._status(result)
        pointer, size = self.arguments[RETURN], ITEM_BYTES[wanted]
        if wanted in PARTS:
            if not is_pair(kind, PARTS[wanted]):
                raise self.source.wrong_result(kind)
            self.at.store(result, pointer, size // 2)
        elif wanted == "bool":
            if kind not in (T.I1, T.I8):
                raise self.source.wrong_result(kind)
            byte = result if kind == T.I8 else self.at.cast("zext", result, T.I8)
            self.at.store(byte, pointer, 1)
        else:
            if kind != SCALARS[wanted]:
                raise self.source.wrong_result(kind)
            self.at.store(result, pointer, size)
        return const_int(T.I64, 0)

    def _status(self, result: Value) -> Value:
        kind = result.type
        if not isinstance(kind, T.IntType) or kind.bits > 64:
            raise self.source.wrong_result(kind)
        failed = self.at.icmp("ne", result, const_int(kind, 0))
        number = result
        if kind.bits != 32:
            number = self.at.cast("trunc" if kind.bits > 32 else "sext" if kind.bits > 1 else "zext", result, T.I32)
        low = self.at.cast("zext", number, T.I64)
        whole = self.at.binary("or", low, const_int(T.I64, STATUS_RETURNED << 32))
        return self.at.select(failed, whole, const_int(T.I64, 0))
