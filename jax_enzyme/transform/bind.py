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
from jax_enzyme.ir.metadata import MDValue
from jax_enzyme.ir.module import Function, GlobalAlias, GlobalVariable, Module
from jax_enzyme.ir.values import Argument, BasicBlock, ConstantAggregate, ConstantNull, Value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.signature import RETURN, Binding, Param, Signature
from jax_enzyme.signature.formals import Formal, FunctionOf, Null, Plain, Record, Status, Text
from jax_enzyme.transform.buffers import argument_of, buffers_of
from jax_enzyme.transform.constant_variables import check_sizes
from jax_enzyme.transform.declared import (
    Mismatch,
    by_value,
    declared_as,
    is_a_pointer,
    is_structure_by_value,
    mismatch,
    other_pointer,
    result_mismatch,
    shown,
    unlike_memory,
    written_structure,
)
from jax_enzyme.transform.described import Kind, described
from jax_enzyme.transform.descriptors import Exchanged, assumed_shape
from jax_enzyme.transform.failure_sites import FAILS, TERMINATED, add_message
from jax_enzyme.transform.layouts import (
    IN_REGISTERS,
    Differs,
    Layout,
    composite_type,
    elements_of,
    fits_behind,
    is_object,
    is_unknown,
    layout_of,
    natural,
    places,
    pointed_at,
)
from jax_enzyme.transform.prototype import Prototype, prototype
from jax_enzyme.transform.records import PARTS, SCALARS, Composer, dtype_of, is_pair
from jax_enzyme.transform.returned import Returned
from jax_enzyme.transform.source_types import UNION, SourceType, source_type
from jax_enzyme.transform.spelled import ASK, spelled

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
        self.sizes = sizes
        self.buffers = buffers
        self.prototype: Prototype = prototype(module, kernel)
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
        self._check_count()
        self._check_order()
        self._check_result()
        returned = self._returned()
        operands: list[Value] = [returned.place] if returned is not None and self._returns_in_memory else []
        for index, formal in enumerate(self.formals):
            rest = self.kernel.arguments[len(operands) :]
            if not rest:
                raise self._wrong_count()
            operands += self._formal(index, formal, rest)
        operands += self._lengths()
        if len(operands) != len(self.kernel.arguments):
            raise self._wrong_count()
        result = self.at.call(self.kernel, operands)
        assert isinstance(result, Call)
        result.parameter_attributes = [a.attributes for a in self.kernel.arguments]
        self.composer.finish()
        status = const_int(T.I64, 0) if returned is not None else self._finish(result)
        if returned is not None:
            returned.take(self.composer, DataLayout(self.module), result, in_memory=self._returns_in_memory)
        self.at.ret(self._with_statuses(status))
        self.composer.blocks[0].instructions[:0] = self.composer.slots
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
                self._check_declared(index, formal.param, rest[0])
            return self._pass(index, formal.param, rest)
        if isinstance(formal, Record) and not formal.is_pointer:
            return self._pass_by_value(index, formal, rest)
        if not isinstance(rest[0].type, T.PointerType):
            raise self._no_pointer(index, formal, rest[0].type)
        return [self._pointer(index, formal)]

    def _pointer(self, index: int, formal: Formal) -> Value:
        """What is passed for a formal that is behind a pointer."""
        known = self._source_type(index)
        if known is not None and not self.prototype.is_fortran and (found := other_pointer(formal, known)):
            raise self._mismatch(index, replace(found, remedy=self._as_in_source(index)))
        match formal:
            case Plain():
                self._check_rows(index, formal)
                return self.composer.pointer(formal)
            case Record():
                return self.composer.structures(formal, self._layout(index, formal))
            case Null():
                return ConstantNull(T.PTR)
            case FunctionOf():
                return self._function(formal.name, formal.symbol)
            case Text():
                return self._characters(formal.value)
            case Status():
                return self.composer.status()

    def _described(self, index: int, formal: Formal) -> Value | None:
        """An array with its descriptor, where Fortran takes one."""
        node = self._node(index)
        if not isinstance(formal, Plain | Record) or node is None:
            return None
        dims = formal.count if isinstance(formal, Record) else None if formal.levels else formal.own
        known = described(self.module, node)
        if dims is None or known is None:
            return None
        source, beyond = self._source_type(index), known.beyond(formal)
        if source is not None and beyond is not None:
            raise self._mismatch(index, unlike_memory(formal.text("in"), source, beyond))
        if known.rank != len(dims):
            raise self._other_kind(index, formal)
        fastest_first = self.composer.extents(dims if self.signature.order == "F" else dims[::-1])
        if isinstance(formal, Record):
            layout = self._layout(index, formal)
            address = self.composer.structures(formal, layout)
            return assumed_shape(self.composer, formal, layout.size, fastest_first, address)
        element = source_type(self.module, elements_of(self.module, node))
        if mismatch(replace(formal.param, dims=()), element):
            raise self._other_kind(index, formal)
        if known.kind is not Kind.ASSUMED_SHAPE:
            return self.exchanged.parameter(self.composer, formal, known)
        item, address = ITEM_BYTES[formal.param.dtype], self.composer.pointer(formal)
        return assumed_shape(self.composer, formal, item, fastest_first, address)

    def _fail(self, text: str) -> None:
        fails = Declarations(self.module).function(FAILS, T.FunctionType(T.VOID, (T.I64,)))
        status = (TERMINATED << 32) | add_message(self.module, text)
        self.at.call(fails, [const_int(T.I64, status)])

    def _layout(self, index: int, record: Record) -> Layout:
        """The layout of a structure; SignatureError where the source has another one there, or none."""
        node = self._node(index)
        if node is None:
            return natural(record)
        try:
            behind = pointed_at(self.module, node)
        except KeyError:
            # Fortran passes a variable of derived type by reference, and describes the variable.
            behind = node if self.prototype.is_fortran or not record.is_pointer else None
            behind = behind if record.count is None else elements_of(self.module, behind)
        if (not record.is_pointer and behind is not node) or behind is None:
            raise self._other_kind(index, record)
        if composite_type(self.module, behind) is None and not is_unknown(self.module, behind):
            raise self._other_kind(index, record)
        known = self._source_type(index)
        if self.prototype.is_fortran and known is not None and known.special is not None and known.is_record:
            raise self._mismatch(index, unlike_memory(record.text("in"), known, known.special))
        layout = self._of_source(record, behind)
        self._check_written(index, record)
        return layout

    def _of_source(self, record: Record, node: MDValue | str | None) -> Layout:
        try:
            return layout_of(self.module, record, node)
        except Differs as differs:
            returned = record is self.signature.structure
            raise SignatureError(
                f"the structure {'that is returned' if returned else f'`{record.name}`'} is another one in the source:"
                f" {differs}",
                f"{self._place()}\nsignature: {f'-> {record.braces}' if returned else record.text('in')}"
                f"\nsource: {differs.source}",
                "list all members, in the source's order; a pointer has a `*` behind its brackets, one that is not"
                " needed is `null`, and bit fields that lie together are one integer",
            ) from None

    def _other_kind(self, index: int, formal: Formal) -> SignatureError:
        known = self._source_type(index)
        is_record = isinstance(formal, Record) and known is not None and known.is_record
        remedy = "behind a pointer it is `{...}*`, by value `{...}`" if is_record else self._as_in_source(index)
        return SignatureError(
            f"`{formal.text('in')}` in the signature, but in the source parameter {index + 1}{self._named(index)} is"
            f" `{known.text if known else '?'}`",
            self._place(),
            remedy,
        )

    def _check_written(self, index: int, record: Record) -> None:
        known = self._source_type(index)
        found = None if known is None else written_structure(record, known)
        if found is not None:
            raise self._mismatch(index, found)

    def _check_rows(self, index: int, formal: Plain) -> None:
        node = self._node(index)
        if node is not None and not fits_behind(self.module, formal, node):
            raise self._other_kind(index, formal)

    def _no_pointer(self, index: int, formal: Formal, kind: T.Type) -> SignatureError:
        return SignatureError(
            f"`{formal.text('in')}` in the signature is a pointer, but in the source parameter"
            f" {index + 1}{self._named(index)} is {shown(self._source_type(index), kind)}",
            self._place(),
            self._as_in_source(index),
        )

    def _as_in_source(self, index: int) -> str:
        """How a parameter is declared that the signature has something else for."""
        node, formal = self._node(index), self.formals[index]
        name = formal.param.name if isinstance(formal, Plain) else formal.name
        known = self._source_type(index)
        kinds = [a.type for a in self.kernel.arguments[index : index + 1]]
        if node is None or known is None or known.is_record:
            return ASK
        by_reference = self.prototype.is_fortran and kinds == [T.PTR]
        return spelled(self.module, name, node, self.signature.order, by_reference=by_reference)

    def _pass_by_value(self, index: int, record: Record, rest: Sequence[Argument]) -> list[Value]:
        """Targets pass a small structure in registers, in words that need not be its members, others in memory, and so
        all objects of C++ that are copied by functions of their own."""
        layout = self._layout(index, record)
        address = self.composer.structures(record, layout)
        if is_object(self.module, self._node(index)) or any(word.startswith("byval") for word in rest[0].attributes):
            return [address]
        sizes = DataLayout(self.module)
        starts = range(0, layout.size, 8) if self._is_union(index) else sorted(places(record, layout))
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
        raise self._wrong_count()

    def _is_union(self, index: int) -> bool:
        node = composite_type(self.module, self._node(index))
        return node is not None and node.get("tag") == UNION

    def _function(self, name: str, symbol: str) -> Value:
        found: object = self.module.symbol(symbol)
        if isinstance(found, Function | GlobalAlias):
            return found
        near = difflib.get_close_matches(symbol, self.module.functions, 1)
        raise SignatureError(
            f"`{name}: fn({symbol})`: the source has no function `{symbol}`",
            self._place(),
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
                raise self._wrong_type(index, param, kind, "a pointer")
            return [self._reference(param)]
        if param.dtype in PARTS:
            return self._pass_complex(index, param, rest)
        if param.dtype == "bool":
            if kind not in (T.I1, T.I8):
                raise self._wrong_type(index, param, kind, "bool")
            byte = self.at.load(T.I8, self.arguments[param.name], 1)
            return [byte if kind == T.I8 else self.at.icmp("ne", byte, const_int(T.I8, 0))]
        expected = SCALARS[param.dtype]
        if kind != expected:
            raise self._wrong_type(index, param, kind, shown(None, expected))
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
        raise self._wrong_type(index, param, kind, f"complex {part}")

    def _texts(self) -> list[Param | Text]:
        """The parameters whose lengths Fortran passes behind all others, where neither the source nor its debug
        information names them: characters, of which the kernel has as many as it has parameters too many."""
        known = self.prototype.parameters
        given = [
            f if isinstance(f, Text) else f.param for f in self.formals if isinstance(f, Plain | Text) and f.is_text
        ]
        hidden = 0 if known is None or not self.prototype.is_fortran else len(self.kernel.arguments) - len(known)
        return given if len(given) == hidden and all(a.type == T.I64 for a in self.kernel.arguments[-hidden:]) else []

    def _lengths(self) -> list[Value]:
        """Of several dimensions, a length is the one that moves fastest."""
        shapes = {b.name: b.shape for b in self.buffers}
        fastest = 0 if self.signature.order == "F" else -1
        found = [(len(p.value.encode()),) if isinstance(p, Text) else shapes.get(p.name, ()) for p in self._texts()]
        return [const_int(T.I64, shape[fastest] if shape else 1) for shape in found]

    # -- the result

    @property
    def _returns_in_memory(self) -> bool:
        return any(word.startswith("sret") for a in self.kernel.arguments[:1] for word in a.attributes)

    def _returned(self) -> Returned | None:
        """Room for a structure that is returned by value."""
        record = self.signature.structure
        if record is None:
            return None
        node = self.prototype.result_node
        if node is not None and composite_type(self.module, node) is None:
            raise self._wrong_result(self.kernel.function_type.result)
        layout = self._of_source(record, node)
        kind = self.kernel.function_type.result
        if not self._returns_in_memory and kind == T.VOID:
            raise self._wrong_result(kind)
        size = layout.size if self._returns_in_memory else DataLayout(self.module).store_size(kind)
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
                raise self._wrong_result(kind)
            self.at.store(result, pointer, size // 2)
        elif wanted == "bool":
            if kind not in (T.I1, T.I8):
                raise self._wrong_result(kind)
            byte = result if kind == T.I8 else self.at.cast("zext", result, T.I8)
            self.at.store(byte, pointer, 1)
        else:
            if kind != SCALARS[wanted]:
                raise self._wrong_result(kind)
            self.at.store(result, pointer, size)
        return const_int(T.I64, 0)

    def _status(self, result: Value) -> Value:
        kind = result.type
        if not isinstance(kind, T.IntType) or kind.bits > 64:
            raise self._wrong_result(kind)
        failed = self.at.icmp("ne", result, const_int(kind, 0))
        number = result
        if kind.bits != 32:
            number = self.at.cast("trunc" if kind.bits > 32 else "sext" if kind.bits > 1 else "zext", result, T.I32)
        low = self.at.cast("zext", number, T.I64)
        whole = self.at.binary("or", low, const_int(T.I64, STATUS_RETURNED << 32))
        return self.at.select(failed, whole, const_int(T.I64, 0))

    # -- checks and errors

    def _check_count(self) -> None:
        if self._returns_in_memory and self.signature.structure is None:
            raise self._wrong_result(T.PTR)
        least = len(self.formals) + self._returns_in_memory
        most = least + sum(_words(formal) - 1 for formal in self.formals)
        if not least <= len(self.kernel.arguments) - len(self._texts()) <= most:
            raise self._wrong_count()

    def _check_order(self) -> None:
        """The same names in another order are a mistake, which types alone need not show."""
        given = [f.param.name if isinstance(f, Plain) else f.name for f in self.formals]
        there = [self.prototype.parameter_name(i) or "" for i in range(len(given))]
        if given != there and sorted(given) == sorted(there):
            raise SignatureError(
                f"the parameters of `{self.kernel.name}` come in another order than those of the signature",
                f"{self._place()}\nsignature: {self.signature}",
                f"the source's order is {', '.join(there)}",
            )

    def _node(self, index: int) -> MDValue | None:
        """The type of a parameter, if the debug information counts parameters as the signature does."""
        nodes = self.prototype.nodes
        return nodes[index] if len(nodes) == len(self.formals) else None

    def _source_type(self, index: int) -> SourceType | None:
        """The same as the source writes it."""
        known = self.prototype.parameters
        return known[index] if known is not None and len(known) == len(self.formals) else None

    def _check_declared(self, index: int, param: Param, argument: Argument) -> None:
        """What debug information tells of a parameter must be what the signature says."""
        known = self._source_type(index)
        # flang describes a character as an integer.
        if known is None or param in self._texts() or is_a_pointer(known, argument):
            return
        found = mismatch(
            param,
            known,
            is_dimension=self.signature.is_dimension(param.name),
            order=self.signature.order,
            sizes=self.sizes,
        )
        if found is not None:
            raise self._mismatch(index, found)

    def _mismatch(self, index: int, found: Mismatch) -> SignatureError:
        return SignatureError(
            f"{found.declared}, but in the source parameter {index + 1}{self._named(index)} is {found.found}",
            self._place(),
            found.remedy,
        )

    def _by_value(self) -> SignatureError | None:
        """Structures by value are as many parameters in LLVM as it takes, which shows as another error."""
        for index, formal in enumerate(self.formals):
            known = self._source_type(index)
            if isinstance(formal, Plain) and known is not None and is_structure_by_value(known):
                return self._mismatch(index, by_value(formal.param, known))
        return None

    def _check_result(self) -> None:
        known, wanted = self.prototype.result, self.signature.result
        if known is None or wanted is None or wanted == "status":
            return
        found = result_mismatch(wanted, known)
        if found is not None:
            raise SignatureError(
                f"the signature says `-> {wanted}`, but `{self.kernel.name}` returns `{known.text}`",
                self._place(),
                f"write `-> {found}`",
            )

    def _place(self) -> str:
        text = str(self.prototype)
        return f"{self.prototype.place}: {text}" if self.prototype.place else text

    def _named(self, index: int) -> str:
        name = self.prototype.parameter_name(index)
        return f", `{name}`," if name else ""

    def _wrong_count(self) -> SignatureError:
        structure = self._by_value()
        if structure is not None:
            return structure
        known = self.prototype.parameters
        there = len(known) if known else len(self.kernel.arguments)
        given = len(self.formals)
        return SignatureError(
            f"{given} parameter{'s' if given != 1 else ''} in the signature, but `{self.kernel.name}` has {there}",
            f"{self._place()}\nsignature: {self.signature}",
            "a Fortran function takes the derived type that it returns as its first parameter: `out p: {...}*`"
            if self.prototype.is_fortran and self.signature.structure is not None
            else "the signature lists the source's parameters, all of them, in the source's order",
        )

    def _wrong_type(self, index: int, param: Param, kind: T.Type, expected: str) -> SignatureError:
        known = self._source_type(index)
        if known is not None and is_structure_by_value(known):
            return self._mismatch(index, by_value(param, known))
        return SignatureError(
            f"`{param}` in the signature means {expected}, but in the source parameter {index + 1}{self._named(index)}"
            f" is {shown(known, kind)}",
            self._place(),
            declared_as(param, known, kind, dtype_of(kind)) or self._as_in_source(index),
        )

    def _wrong_result(self, kind: T.Type) -> SignatureError:
        known = self.prototype.result if self.prototype.parameters is not None else None
        found, same = shown(known, kind), dtype_of(kind)
        remedy = "leave the `->` out" if kind == T.VOID else f"write `-> {same}`" if same else None
        if self._returns_in_memory or (known is not None and known.is_record and not known.is_pointer):
            found = f"the structure {found}" if known else "a structure"
            remedy = "list its members: `-> {a: f64, b: f64[3]}`; je.suggest_signature writes them"
        structure = self.signature.structure
        said = self.signature.result if structure is None else structure.braces
        return SignatureError(
            f"the signature says {f'`-> {said}`' if said else 'nothing of a result'}, but `{self.kernel.name}`"
            f" returns {found}",
            self._place(),
            remedy,
        )


def _words(formal: Formal) -> int:
    """How many parameters a function may have for one formal."""
    if isinstance(formal, Plain):
        return 2 if formal.param.by_value and formal.param.dtype in PARTS else 1
    return IN_REGISTERS if isinstance(formal, Record) and not formal.is_pointer else 1
