"""Derivatives of functions in LLVM IR, without signatures, shapes or JAX: `je.ad.differentiate`.

The engine knows array functions: pointers to buffers in, a status out. A function of any other type is wrapped into one
of buffers whose sizes nobody says, differentiated, and the derivative wrapped back into a function of plain parameters.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import llvmlite.binding as llvm

from jax_enzyme import ad
from jax_enzyme.ad.causes import INACTIVE_PARAMETER, POINTER_PARAMETER
from jax_enzyme.ad.runtime import FloatKinds
from jax_enzyme.analysis.activity import Activity
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.shadows import shadowed_objects
from jax_enzyme.codegen import library
from jax_enzyme.codegen.canonical import canonical
from jax_enzyme.codegen.copying import private_copy
from jax_enzyme.errors import CompileError
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction, Augmented, Buffer, Jvp, Pullback, Step, Vjp
from jax_enzyme.ir.builder import Builder, const_int, zero
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.inlining import mark_for_inlining
from jax_enzyme.ir.module import Function, GlobalVariable, Module
from jax_enzyme.ir.reader import ReadError, parse, read
from jax_enzyme.ir.values import Argument, BasicBlock, Value
from jax_enzyme.ir.writer import to_text
from jax_enzyme.options import Options
from jax_enzyme.rules.helpers import link
from jax_enzyme.rules.user import rules_of

Mode = Literal["forward", "reverse", "split"]
Word = Literal["const", "active"]

_DTYPES: dict[str, str] = {"double": "f64", "float": "f32", "half": "f16", "bfloat": "bf16"}
_OPAQUE = "u8"
"""The dtype of a buffer without derivative: the engine asks nothing of it."""
_PRIMAL = "je.primal"


def differentiate(
    module: Module | str | bytes,
    symbol: str,
    mode: Mode = "reverse",
    activity: Sequence[Word] | None = None,
    *,
    options: Options | None = None,
) -> Module:
    """The module with derivatives of the function `symbol` added. `module` is an `ir.Module`, text or bitcode; it stays
    as it is. Parameters are pointers, floating-point numbers and integers; the result is a number, an integer or void.

    `activity` has a word per parameter: `"const"`, no derivative with respect to it (Enzyme's `const`), or `"active"`
    (Enzyme's `dup`, and `out` for numbers in reverse mode). Pointers and floating-point numbers are active by default.
    A floating-point result is always active. What a derivative is called, and its parameters:

    forward   SYMBOL_jvp: the parameters, each active one followed by its tangent: a number after a number, a pointer
              to the tangents after a pointer. Returns {result, tangent} where the result is floating, else the result.
    reverse   SYMBOL_vjp: the parameters, each active one followed by a pointer: for a pointer to the cotangents of
              the memory, for a number to one number. Last, where the result is floating, its cotangent. Returns
              nothing. Cotangents of what is only read are *added to* what is there; for memory that the function
              writes, the cotangent of what it leaves goes in and that of what it found comes out. What the function
              itself leaves in its memory is not to be relied on: ask for `split` to have both.
    split     SYMBOL_augmented: the parameters, then a pointer to SYMBOL_tape_size (an i64 in the module) bytes aligned
              to 16; returns the result. SYMBOL_pullback: the parameters of `reverse` and, in front of the cotangent, a
              floating result; last that tape; returns nothing. In between, the memory that was passed must stay as it
              is. Refused where the size of the tape is only known at run time.

    Memory that is reached through one parameter must not be reached through another, and holds no pointers.

        >>> square = "define double @square(double %x) { %y = fmul double %x, %x ret double %y }"
        >>> sorted(je.ad.differentiate(square, "square", "forward").functions)
        ['je.primal.jvp', 'square', 'square_jvp']
    """
    source = _read(module)
    function = source.functions.get(symbol)
    if function is None or function.is_declaration:
        raise CompileError(f"the module defines no function `{symbol}`", remedy=_names(source))
    if mode not in ("forward", "reverse", "split"):
        raise CompileError(f"there is no mode {mode!r}", remedy="forward, reverse or split")
    plain = _Plain(function, _words(function, activity), options or Options())
    pieces = list(plain.derivatives(source, mode))
    context = llvm.create_context()
    whole = llvm.parse_assembly(to_text(source), context)
    for piece in pieces:
        whole.link_in(llvm.parse_assembly(to_text(piece), context))
    return parse(str(whole))


def _read(module: Module | str | bytes) -> Module:
    if isinstance(module, Module):
        return module
    try:
        return read(module)
    except ReadError as error:
        raise CompileError(str(error), "the given module") from error


def _names(module: Module) -> str:
    return "it defines " + (", ".join(f"`{n}`" for n, f in module.functions.items() if not f.is_declaration) or "none")


def _words(function: Function, activity: Sequence[Word] | None) -> tuple[bool, ...]:
    """Which parameters are active."""
    types = [a.type for a in function.arguments]
    for index, type_ in enumerate((*types, function.function_type.result)):
        if not isinstance(type_, T.PointerType | T.FloatType | T.IntType | T.VoidType):
            what = "the result" if index == len(types) else f"parameter {index + 1}"
            remedy = "pass vectors and structures through pointers"
            raise CompileError(f"{what} of `{function.name}` is of type {type_}", remedy=remedy)
    if activity is None:
        return tuple(not T.is_int(t) for t in types)
    if len(activity) != len(types):
        raise CompileError(f"{len(activity)} words of activity for the {len(types)} parameters of `{function.name}`")
    for index, (word, type_) in enumerate(zip(activity, types, strict=True)):
        if word not in ("const", "active") or (word == "active" and T.is_int(type_)):
            expected = "an integer is const" if T.is_int(type_) else "const or active"
            raise CompileError(f"activity[{index}] is {word!r}", remedy=expected)
    return tuple(word == "active" for word in activity)


@dataclass(frozen=True)
class _Plain:
    """A function of plain parameters; `active` has a flag per parameter."""

    function: Function
    active: tuple[bool, ...]
    options: Options

    def derivatives(self, module: Module, mode: Mode) -> Iterator[Module]:
        """Modules with the derivatives of one mode, all else in them internal."""
        base = canonical(self._array_function(module))
        has_result = not isinstance(self._result, T.VoidType)
        wanted = (*self.active, *[False] * has_result)
        pointers = [T.is_pointer(p.type) for p in self.function.arguments]
        seeded = tuple(map(operator.and_, self.active, pointers)) + (T.is_float(self._result),) * has_result
        self._check(base, wanted, None if mode == "forward" else seeded)
        match mode:
            case "forward":
                yield self._wrapped(self._derived(base, Jvp(wanted)), "jvp")
            case "reverse":
                yield self._wrapped(self._derived(base, Vjp(wanted, seeded)), "vjp")
            case _:
                first = self._derived(base, Augmented(wanted, seeded))
                yield self._wrapped(first, "augmented")
                yield self._wrapped(self._derived(base, Pullback(wanted, seeded)), "pullback")

    @property
    def _result(self) -> T.Type:
        return self.function.function_type.result

    # -- the array function

    def _array_function(self, module: Module) -> ArrayFunction:
        """Numbers by value become buffers of one number, pointers buffers of unknown size; so does a floating result.
        The integer result is of no interest to a derivative."""
        copy = clone(module)
        callee = copy.functions[self.function.name]
        buffers = self._buffers(copy, callee)
        arguments = [Argument(T.PTR, ("noalias",), i, name=b.name) for i, b in enumerate(buffers)]
        at = Builder(BasicBlock(name="entry"))
        operands: list[Value] = [
            a if T.is_pointer(p.type) else at.load(p.type, a) for p, a in zip(callee.arguments, arguments, strict=False)
        ]
        result = at.call(callee, operands)
        if not isinstance(self._result, T.VoidType):
            at.store(result, arguments[-1])
        at.ret(const_int(T.I64, 0))
        type_ = T.FunctionType(T.I64, tuple(T.PTR for _ in buffers))
        copy.functions[_PRIMAL] = Function(T.PTR, type_, arguments, [at.block], name=_PRIMAL)
        return ArrayFunction(copy, _PRIMAL, buffers)

    def _buffers(self, module: Module, callee: Function) -> tuple[Buffer, ...]:
        points_to = PointsTo(module, callee)
        kinds = FloatKinds(points_to, {})
        found: list[Buffer] = []
        for index, (parameter, active) in enumerate(zip(callee.arguments, self.active, strict=True)):
            name = f"{index}"
            if T.is_pointer(parameter.type):
                held = sorted(str(k) for k in kinds.of(points_to.objects[parameter]))
                dtype = _DTYPES.get(held[0] if held else "double", "f64")
                found.append(Buffer(name, dtype if active else _OPAQUE, (0,), "inout", of=index))
            else:
                dtype = _DTYPES.get(str(parameter.type), _OPAQUE) if T.is_float(parameter.type) else _OPAQUE
                found.append(Buffer(name, dtype, (), "in", of=index))
        if not isinstance(self._result, T.VoidType):
            dtype = _DTYPES.get(str(self._result), _OPAQUE)
            found.append(Buffer("result", dtype, (), "out", of=len(found)))
        return tuple(found)

    def _check(self, base: ArrayFunction, wanted: Sequence[bool], seeded: Sequence[bool] | None) -> None:
        """A shadow that nobody passes would have to be made here, and its size is unknown."""
        points_to = PointsTo(base.module, base.module.functions[base.symbol])
        objects = [points_to.objects[a] for a in points_to.root.arguments]
        inputs = [o for o, w in zip(objects, wanted, strict=False) if w]
        outputs = None if seeded is None else [o for o, s in zip(objects, seeded, strict=False) if s]
        shadowed = shadowed_objects(points_to, Activity(points_to, rules_of(base.module), inputs, outputs))
        for item, active, parameter in zip(objects, self.active, self.function.arguments, strict=False):
            if item in shadowed and not active and T.is_pointer(parameter.type):
                raise INACTIVE_PARAMETER.error(number=parameter.index + 1, name=self.function.name)
            if points_to.contents.get(item):
                raise POINTER_PARAMETER.error(number=parameter.index + 1, name=self.function.name)

    def _derived(self, base: ArrayFunction, step: Step) -> ArrayFunction:
        result = ad.derive(base, (step,), self.options)
        library.link_rules(result.module)
        return result

    # -- back to plain parameters

    def _wrapped(self, derived: ArrayFunction, suffix: str) -> Module:
        module = private_copy(derived.module)
        link(module)
        mark_for_inlining(module, [])
        target = module.functions[derived.symbol]
        name = f"{self.function.name}_{suffix}"
        if suffix == "augmented":
            size = const_int(T.I64, derived.buffers[-1].nbytes)
            label = f"{self.function.name}_tape_size"
            module.globals[label] = GlobalVariable(T.PTR, T.I64, size, True, name=label)
        _Wrapper(self.function, self.active, module, name, suffix).emit(target, derived.buffers)
        return module


class _Wrapper:
    """Emits the function of plain parameters around an array function."""

    def __init__(self, function: Function, active: tuple[bool, ...], module: Module, name: str, suffix: str) -> None:
        self._module = module
        self._name = name
        self._suffix = suffix
        self._result = function.function_type.result
        self._at = Builder(BasicBlock(name="entry"))
        self._arguments: list[Argument] = []
        self._own: dict[int, Value] = {}
        self._companions: dict[int, Value] = {}
        for index, (parameter, is_active) in enumerate(zip(function.arguments, active, strict=True)):
            self._own[index] = self._memory(self._argument(parameter.type, parameter.name))
            if is_active and suffix != "augmented":
                by_value = suffix == "jvp" and not T.is_pointer(parameter.type)
                companion = self._argument(parameter.type if by_value else T.PTR, f"{parameter.name}.companion")
                self._companions[index] = self._memory(companion)
        self._finish_parameters(len(function.arguments))
        self._tape = self._argument(T.PTR, "tape") if suffix in ("augmented", "pullback") else None

    def _argument(self, type_: T.Type, name: str) -> Argument:
        self._arguments.append(Argument(type_, (), len(self._arguments), name=name))
        return self._arguments[-1]

    def _memory(self, value: Value) -> Value:
        """A pointer to a value: itself, or a variable with the number in it."""
        if T.is_pointer(value.type):
            return value
        variable = self._at.alloca(value.type)
        self._at.store(value, variable)
        return variable

    def _finish_parameters(self, index: int) -> None:
        """The result's memory, and its companion's."""
        if isinstance(self._result, T.VoidType):
            return
        floating = T.is_float(self._result)
        start: Value = zero(self._result)
        if self._suffix == "pullback" and floating:
            start = self._argument(self._result, "result")
        self._own[index] = self._memory(start)
        if floating and self._suffix in ("vjp", "pullback"):
            self._companions[index] = self._memory(self._argument(self._result, "cotangent"))
        elif floating and self._suffix == "jvp":
            self._companions[index] = self._memory(zero(self._result))

    def emit(self, target: Function, buffers: Sequence[Buffer]) -> None:
        operands: list[Value] = []
        for buffer in buffers:
            if buffer.role == "tape":
                assert self._tape is not None
                operands.append(self._tape)
            elif buffer.role in ("tangent", "shadow"):
                operands.append(self._companions[buffer.of])
            else:
                operands.append(self._own[buffer.of])
        self._at.call(target, operands)
        result = self._returned()
        type_ = T.FunctionType(T.VOID if result is None else result.type, tuple(a.type for a in self._arguments))
        function = Function(T.PTR, type_, arguments=self._arguments, blocks=[self._at.block], name=self._name)
        self._at.ret(result)
        self._module.functions[self._name] = function

    def _returned(self) -> Value | None:
        if isinstance(self._result, T.VoidType) or self._suffix in ("vjp", "pullback"):
            return None
        index = max(self._own)
        result = self._at.load(self._result, self._own[index])
        if self._suffix != "jvp" or index not in self._companions:
            return result
        pair: Value = zero(T.StructType((self._result, self._result)))
        pair = self._at.insert_value(pair, result, 0)
        return self._at.insert_value(pair, self._at.load(self._result, self._companions[index]), 1)
