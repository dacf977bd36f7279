"""A function of plain parameters as an array function, and the derivatives of that.

    before    double @f(ptr %x, double %a)              after    i64 @je.primal(ptr %x, ptr %a, ptr %result, ptr %scale)
              (uses @scale)                                      one buffer per parameter, then the result, then the
                                                                 file-scope variables

Nobody says how large the memory behind a pointer is, what it holds, and what else leads there: `codegen.assumptions`
checks what can be checked of that.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Literal

from jax_enzyme import ad
from jax_enzyme.ad.facts.causes import SPLIT
from jax_enzyme.ad.shortcuts import general
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.objects import OBSERVED, OPEN, UNSIZED
from jax_enzyme.analysis.words import Words
from jax_enzyme.classes import dataclass, field, replace
from jax_enzyme.codegen import library, shortcut_warnings
from jax_enzyme.codegen.assumptions import Assumptions
from jax_enzyme.codegen.canonical import canonical
from jax_enzyme.codegen.overlaps import SHARED, Choice, overlapping
from jax_enzyme.codegen.plain_wrapper import Wrapper
from jax_enzyme.errors import DifferentiationError
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction, Augmented, Buffer, Io, Jvp, Pullback, Step, Vjp
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import clone, clone_without_debug
from jax_enzyme.ir.inlining import mark_for_inlining
from jax_enzyme.ir.module import Function, GlobalVariable, Module
from jax_enzyme.ir.values import Argument, BasicBlock, Value, int_value
from jax_enzyme.ir.writer import to_text
from jax_enzyme.options import Options
from jax_enzyme.rules.helpers import link
from jax_enzyme.rules.user import rules_of
from jax_enzyme.transform.divisions import guard_checks
from jax_enzyme.transform.live_globals import globals_to_parameters

Mode = Literal["forward", "reverse", "split"]

_DTYPES: dict[str, str] = {"double": "f64", "float": "f32", "half": "f16", "bfloat": "bf16"}
_OPAQUE = "u8"
"""The dtype of a buffer without derivative: the engine asks nothing of it."""
_PRIMAL = "je.primal"
_TAPE = "_tape_size"


@dataclass(frozen=True)
class PlainFunction:
    """A function of a module of which all else is internal; `active` has a flag per parameter."""

    module: Module
    function: Function
    active: tuple[bool, ...]
    options: Options
    merged: tuple[int, ...] = ()
    """Pointers that are taken to lead to one piece of memory, that of the first (`overlaps`)."""
    live: list[GlobalVariable] = field(default_factory=list[GlobalVariable], init=False)
    """The file-scope variables that are parameters of the array function."""

    def derivatives(self, mode: Mode) -> Iterator[Module]:
        """Modules with the derivatives of one mode, all else in them internal."""
        base = _closed(canonical(self._array_function()))
        overlaps = overlapping(base, self.function, self.active, self.live, mode != "forward")
        group = self._group(base.buffers, overlaps.parameters)
        own = list(self._each(base, mode))
        try:
            shared = list(replace(self, merged=group).over_one_memory(mode)) if group else []
        except DifferentiationError:
            group, shared = (), []
        for (module, suffix), (twin, _) in zip_longest(own, shared, fillvalue=(None, "")):
            assert module is not None
            if overlaps:
                name = f"{self.function.name}_{suffix}"
                Choice(self.function, self.active, overlaps, group).emit(module, name, suffix)
            if twin is not None:
                _keep_larger_tape(module, twin)
                yield twin
            yield module

    def over_one_memory(self, mode: Mode) -> Iterator[tuple[Module, str]]:
        """Those of a function whose `merged` pointers lead to one piece of memory."""
        yield from self._each(_closed(canonical(self._array_function())), mode)

    def _group(self, buffers: Sequence[Buffer], pairs: Sequence[tuple[int, int]]) -> tuple[int, ...]:
        """Those that may share memory for derivatives as well."""
        both = [pair for pair in pairs if all(self.active[i] for i in pair)]
        found = sorted({i for pair in both for i in pair})
        return tuple(found) if len({buffers[i].dtype for i in found}) == 1 else ()

    def _each(self, base: ArrayFunction, mode: Mode) -> Iterator[tuple[Module, str]]:
        """The modules, and what is behind the names of their derivatives."""
        active = tuple(a and i not in self.merged[1:] for i, a in enumerate(self.active))
        rest = [False] * (len(base.buffers) - len(active))
        wanted = (*active, *rest)
        pointers = [T.is_pointer(p.type) for p in self.function.arguments]
        seeded = [*map(operator.and_, active, pointers), *rest]
        if T.is_float(self._result):
            seeded[len(active)] = True
        step = Jvp(wanted) if mode == "forward" else Vjp(wanted, tuple(seeded))
        Assumptions(base, self.function, active).check(step)
        found = general(base, step, rules_of(base.module))
        if not self.merged:
            shortcut_warnings.warn(
                to_text(base.module), self.function.name, base.module.source_filename or "the module", found.comparisons
            )
        base = found.function
        reverse = (wanted, tuple(seeded))
        match mode:
            case "forward":
                steps: list[tuple[Step, str]] = [(Jvp(wanted), "jvp")]
            case "reverse":
                steps = [(Vjp(*reverse), "vjp")]
            case _:
                if not ad.splittable(base, Vjp(*reverse), self.options):
                    raise SPLIT.error()
                steps = [(Augmented(*reverse), "augmented"), (Pullback(*reverse), "pullback")]
        for step, suffix in steps:
            yield self._wrapped(self._derived(base, step), suffix), suffix

    @property
    def _result(self) -> T.Type:
        return self.function.function_type.result

    def _array_function(self) -> ArrayFunction:
        """Numbers by value become buffers of one number, pointers buffers of unknown size; so does the result.
        The integer result is of no interest to a derivative."""
        copy = clone(self.module)
        callee = copy.functions[self.function.name]
        buffers = self._buffers(copy, callee)
        pointers = {p.index for p in callee.arguments if T.is_pointer(p.type) and p.index not in self.merged[1:]}
        words = [("noalias", OPEN, OBSERVED, UNSIZED) if b.of in pointers else ("noalias",) for b in buffers]
        arguments = [Argument(T.PTR, w, i, name=b.name) for i, (w, b) in enumerate(zip(words, buffers, strict=True))]
        at = Builder(BasicBlock(name="entry"))
        operands: list[Value] = []
        for parameter, memory in zip(callee.arguments, arguments, strict=False):
            if parameter.index in self.merged[1:]:
                operands.append(at.gep(T.I8, arguments[self.merged[0]], [at.load(T.I64, memory)], ()))
            else:
                operands.append(memory if T.is_pointer(parameter.type) else at.load(parameter.type, memory))
        result = at.call(callee, operands)
        result.parameter_attributes = [a.attributes for a in callee.arguments]
        if not isinstance(self._result, T.VoidType):
            at.store(result, arguments[-1])
        at.ret(const_int(T.I64, 0))
        type_ = T.FunctionType(T.I64, tuple(T.PTR for _ in buffers))
        root = copy.functions[_PRIMAL] = Function(T.PTR, type_, arguments, [at.block], name=_PRIMAL)
        live = globals_to_parameters(copy, root, ("noalias", OPEN, OBSERVED))
        self.live.extend(live)
        sizes = [DataLayout(copy).alloc_size(v.value_type) for v in live]
        found = [
            Buffer(v.name, _OPAQUE, (n,), "inout", of=len(buffers) + i)
            for i, (v, n) in enumerate(zip(live, sizes, strict=True))
        ]
        return ArrayFunction(copy, _PRIMAL, (*buffers, *found))

    def _buffers(self, module: Module, callee: Function) -> tuple[Buffer, ...]:
        points_to = PointsTo(module, callee)
        words = Words(points_to, {})
        found: list[Buffer] = []
        for index, (parameter, active) in enumerate(zip(callee.arguments, self.active, strict=True)):
            if index in self.merged[1:]:
                found.append(Buffer(f"{index}", _OPAQUE, (), "in", of=index))
            elif T.is_pointer(parameter.type):
                held = sorted(str(k) for k in words.of(points_to.objects[parameter]))
                dtype = _DTYPES.get(held[0] if held else "double", "f64")
                found.append(Buffer(f"{index}", dtype if active else _OPAQUE, (0,), "inout", of=index))
            else:
                found.append(replace(_number(parameter.type, "in"), name=f"{index}", of=index))
        if not isinstance(self._result, T.VoidType):
            found.append(replace(_number(self._result, "out"), name="result", of=len(found)))
        return tuple(found)

    def _derived(self, base: ArrayFunction, step: Step) -> ArrayFunction:
        result = ad.derive(base, (step,), self.options)
        return guard_checks(replace(result, module=library.with_rules(result.module)))

    def _wrapped(self, derived: ArrayFunction, suffix: str) -> Module:
        module = clone_without_debug(derived.module)
        library.link_under_way(module)
        link(module)
        mark_for_inlining(module, [])
        _may_share_derivatives(module)
        target = module.functions[derived.symbol]
        name = f"{self.function.name}_{suffix}{SHARED if self.merged else ''}"
        if suffix == "augmented":
            size = const_int(T.I64, derived.buffers[-1].nbytes)
            label = f"{self.function.name}{_TAPE}"
            module.globals[label] = GlobalVariable(T.PTR, T.I64, size, True, name=label)
        wrapper = Wrapper(self.function, self.active, self.live, self.merged, module, name, suffix)
        wrapper.emit(target, derived.buffers)
        return module


def _closed(function: ArrayFunction) -> ArrayFunction:
    """Changes the function: where no pointer is read from the caller's memory, there is none to think of."""
    root = function.module.functions[function.symbol]
    points_to = PointsTo(function.module, root)
    values = points_to.instructions()
    if not any(T.is_pointer(i.type) and points_to.caller in points_to.of(i) for i in values):
        for argument in root.arguments:
            argument.attributes = tuple(w for w in argument.attributes if w != OPEN)
    return function


def _may_share_derivatives(module: Module) -> None:
    """What is read alone may be passed twice, and its derivatives lie in one place then: sums go there one after the
    other, as long as nobody says that the places are apart."""
    for name, function in module.functions.items():
        if name.startswith(_PRIMAL):
            for argument in function.arguments:
                argument.attributes = tuple(w for w in argument.attributes if w != "noalias")


def _keep_larger_tape(module: Module, other: Module) -> None:
    """One of two modules says how large the tape must be, for both."""
    for name, variable in other.globals.items():
        if name.endswith(_TAPE) and name in module.globals:
            sizes = [int_value(v.initializer) or 0 for v in (variable, module.globals[name]) if v.initializer]
            module.globals[name].initializer = const_int(T.I64, max(sizes))
    other.globals = {name: v for name, v in other.globals.items() if not name.endswith(_TAPE)}


def _number(type_: T.Type, io: Io) -> Buffer:
    """The buffer of one number. No signature has a word for those of more than 64 bits: they lie in memory of which the
    accesses show what is in it, as behind a pointer."""
    if not T.is_float(type_):
        return Buffer("", _OPAQUE, (), io)
    dtype = _DTYPES.get(str(type_))
    return Buffer("", "f64", (0,), "inout") if dtype is None else Buffer("", dtype, (), io)
