"""Parameters that lead to the same memory: two derivatives, and a choice between them at run time.

    before    void @f_vjp(ptr %x, ptr %x.bar, ptr %y, ptr %y.bar)    right where x and y lead to memory of their own

    after     void @f_vjp(...) {
                %near = icmp eq (%y - %x), (%y.bar - %x.bar)
                br i1 %near, label %shared, label %apart        shared: one piece of memory, in which y starts at an
                                                                offset from x; so does y's in that for derivatives

Parameters may lead to the same memory unless the function says that they do not (`restrict`, Fortran's arguments), or
writes through neither. Where the distances of all of them are those of their derivatives, the derivative over one piece
of memory is right, whether they overlap or not. Where two addresses are the same and that is not so (the derivatives of
one number would lie in two places, or a third parameter leads elsewhere), the call aborts, and says so. Overlaps of
which no address is the same, and whose derivatives lie otherwise, cannot be seen. It aborts, too, where a parameter
leads to a file-scope variable that the function uses itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations

from jax_enzyme.analysis.accesses import accesses
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.memory import map_of
from jax_enzyme.classes import dataclass
from jax_enzyme.codegen.plain_wrapper import distance, extension, say_and_abort
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import Function, GlobalVariable, Module
from jax_enzyme.ir.values import Argument, BasicBlock, ConstantInt, ConstantNull, Value

SHARED = ".shared"
APART = ".apart"


@dataclass(frozen=True)
class Overlaps:
    """The pairs of parameters that may lead to the same memory, and those of a parameter and a file-scope variable."""

    parameters: tuple[tuple[int, int], ...]
    variables: tuple[tuple[int, str, int], ...]
    """The parameter, the name of the variable, and its size."""

    def __bool__(self) -> bool:
        return bool(self.parameters or self.variables)


def overlapping(
    base: ArrayFunction, function: Function, active: Sequence[bool], live: Sequence[GlobalVariable], reverse: bool
) -> Overlaps:
    """Where an overlap matters: one of two is written. Of two without derivatives it does in reverse mode alone, which
    reads again what has been read. The variables in `live` are the last parameters of the array function."""
    points_to = map_of(base)
    found = [a for f in points_to.functions for a in accesses(points_to, f, DataLayout(points_to.module))]
    items = [points_to.objects[a] for a in points_to.root.arguments]
    touched = {i for i, item in enumerate(items) if any(item in a.objects for a in found)}
    written = {i for i, item in enumerate(items) if any(item in a.objects and a.writes for a in found)}
    free = [p.index for p in function.arguments if T.is_pointer(p.type) and p.index in touched and not _is_own(p)]
    variables = {i: v for i, v in enumerate(live, len(items) - len(live)) if i in touched}

    def matters(i: int, j: int) -> bool:
        with_derivatives = reverse or any(k < len(active) and active[k] for k in (i, j))
        return with_derivatives and not written.isdisjoint((i, j))

    pairs = tuple((i, j) for i, j in combinations(free, 2) if matters(i, j))
    beside = [(i, v.name, base.buffers[j].nbytes) for i in free for j, v in variables.items() if matters(i, j)]
    return Overlaps(pairs, tuple(beside))


def _is_own(parameter: Argument) -> bool:
    return any(word == "noalias" or word.startswith("byval") for word in parameter.attributes)


@dataclass(frozen=True)
class Choice:
    """`overlaps` may be; `group` are the parameters for which there is a derivative over one piece of memory."""

    function: Function
    active: tuple[bool, ...]
    overlaps: Overlaps
    group: tuple[int, ...]

    def emit(self, module: Module, name: str, suffix: str) -> None:
        """Puts the choice in the place of a derivative in a module, which is the one for memory of their own then."""
        apart = module.functions.pop(name)
        apart.name = name + APART
        apart.prefix = ("internal",)
        module.functions[apart.name] = apart
        arguments = [Argument(a.type, extension(a.attributes), i, name=a.name) for i, a in enumerate(apart.arguments)]
        own, companions = self._places(arguments, suffix)
        entry, separate = BasicBlock(name="entry"), BasicBlock(name="apart")
        blocks = [entry]
        at = Builder(entry)
        if self.group:
            shared = BasicBlock(name="shared")
            declared = Function(T.PTR, apart.value_type, name=name + SHARED)
            declared.arguments = [Argument(a.type, a.attributes, a.index) for a in arguments]
            declared.return_attributes = apart.return_attributes
            module.functions[declared.name] = declared
            near = _all(at, [self._is_near(at, own, companions, k) for k in self.group[1:]])
            checked = BasicBlock(name="checked")
            at.cond_br(near, shared, checked)
            _forward(Builder(shared), declared, arguments)
            blocks += [shared, checked]
            at = Builder(checked)
        for number, (condition, text) in enumerate(self._clashes(module, own)):
            bad, following = BasicBlock(name=f"clash.{number}"), BasicBlock(name=f"next.{number}")
            at.cond_br(condition(at), bad, following)
            say_and_abort(module, Builder(bad), f"je.clash.{number}", f"{name}: {text}: no derivative is made for that")
            blocks += [bad, following]
            at = Builder(following)
        at.br(separate)
        _forward(Builder(separate), apart, arguments)
        chosen = Function(T.PTR, apart.value_type, arguments, [*blocks, separate], name=name)
        chosen.return_attributes = apart.return_attributes
        module.functions[name] = chosen

    def _clashes(self, module: Module, own: dict[int, Value]) -> Iterator[tuple[Callable[[Builder], Value], str]]:
        """What must not be, and how to say it."""
        for i, j in self.overlaps.parameters:
            yield partial(_same, own[i], own[j]), f"parameters {i + 1} and {j + 1} lead to the same memory"
        for i, variable, size in self.overlaps.variables:
            text = f"parameter {i + 1} leads to the file-scope variable `{variable}`"
            yield partial(_within, own[i], module.globals[variable], size), text

    def _places(self, arguments: Sequence[Argument], suffix: str) -> tuple[dict[int, Value], dict[int, Value]]:
        """The arguments that are parameters of the function, and those beside them."""
        rest: Iterator[Argument] = iter(arguments)
        own: dict[int, Value] = {}
        companions: dict[int, Value] = {}
        for index, is_active in enumerate(self.active):
            own[index] = next(rest)
            if is_active and suffix != "augmented":
                companions[index] = next(rest)
        return own, companions

    def _is_near(self, at: Builder, own: dict[int, Value], companions: dict[int, Value], k: int) -> Value:
        first = self.group[0]
        if first not in companions:
            return at.icmp("eq", own[first], own[k])
        return at.icmp("eq", distance(at, own[first], own[k]), distance(at, companions[first], companions[k]))


def _same(one: Value, other: Value, at: Builder) -> Value:
    there = at.icmp("ne", one, ConstantNull(T.PTR))
    return at.binary("and", at.icmp("eq", one, other), there)


def _within(pointer: Value, start: Value, size: int, at: Builder) -> Value:
    return at.icmp("ult", distance(at, start, pointer), const_int(T.I64, size))


def _all(at: Builder, conditions: Sequence[Value]) -> Value:
    result: Value = ConstantInt(T.I1, 1)
    for condition in conditions:
        result = at.binary("and", result, condition)
    return result


def _forward(at: Builder, target: Function, arguments: Sequence[Value]) -> None:
    result = at.call(target, arguments)
    result.parameter_attributes = [extension(a.attributes) for a in target.arguments]
    result.return_attributes = target.return_attributes
    at.ret(None if isinstance(target.function_type.result, T.VoidType) else result)
