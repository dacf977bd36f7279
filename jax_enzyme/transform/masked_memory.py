"""Masked loads and stores, gathers and scatters of vectors become accesses of single lanes.

    before    %v = call <2 x double> @llvm.masked.load.v2f64.p0(ptr %p, <2 x i1> %m, <2 x double> %rest)

    after     %m.0 = extractelement <2 x i1> %m, i64 0
              %old = extractelement <2 x double> %rest, i64 0
              br i1 %m.0, label %lane, label %next
            lane:
              %new = load double, ptr %p
              br label %next
            next:
              %e = phi double [ %old, %before ], [ %new, %lane ]
              %v.0 = insertelement <2 x double> poison, double %e, i64 0
              ... lane 1 ...

Lanes whose mask is a constant need no branch. LLVM 22 has the alignment as an attribute of the pointer;
the older form has it as an argument.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from jax_enzyme.analysis.lanes import size
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import Function, Module, callee_name
from jax_enzyme.ir.values import (
    BasicBlock,
    ConstantAggregate,
    ConstantSplat,
    Poison,
    Undef,
    Value,
    ZeroInitializer,
    int_value,
)
from jax_enzyme.transform.rewriting import locate, on_functions, replace_values, split_before

_NAMES = re.compile(r"llvm\.masked\.(load|store|gather|scatter|expandload|compressstore)\.")


def lower_masked_memory(module: Module, chosen: Callable[[T.Type], bool] = lambda _: True) -> Module:
    """A copy of the module without such calls on vectors of `chosen` types; the module itself where there are none."""

    def is_chosen(instruction: I.Instruction) -> bool:
        return bool(_kind(instruction)) and any(chosen(v.type) for v in (instruction, *instruction.operands))

    def lower(function: Function) -> None:
        replaced: dict[Value, Value] = {}
        for call in [i for i in function.instructions() if is_chosen(i)]:
            assert isinstance(call, I.Call)
            value = _Lowering(function, call).run()
            if value is not None:
                replaced[call] = value
        replace_values(function, replaced)

    return on_functions(module, lambda f: any(map(is_chosen, f.instructions())), lower)


def _kind(instruction: I.Instruction) -> str:
    found = _NAMES.match(callee_name(instruction))
    if found is None or not isinstance(instruction, I.Call):
        return ""
    if any(isinstance(a.type, T.VectorType) and a.type.scalable for a in instruction.arguments):
        return ""
    return found[1]


class _Lowering:
    """One call. `at` builds where the current lane is dealt with."""

    def __init__(self, function: Function, call: I.Call) -> None:
        self._function = function
        self._call = call
        self._kind = _kind(call)
        given = [a for a in call.arguments if a.type != T.I32]
        self._stores = self._kind in ("store", "scatter", "compressstore")
        if self._stores:
            self._values, self._pointer, self._mask = given
        else:
            self._pointer, self._mask, self._values = given
        self._align = self._alignment()

    @property
    def _element(self) -> T.Type:
        return T.scalar(self._values.type)

    def _alignment(self) -> int | None:
        for argument in self._call.arguments:
            if argument.type == T.I32:
                return int_value(argument)
        index = self._call.arguments.index(self._pointer)
        for word in self._call.parameter_attributes[index]:
            if word.startswith("align "):
                return int(word.split()[1])
        return 1

    def run(self) -> Value | None:
        block = next(b for b in self._function.blocks if self._call in b.instructions)
        index = block.instructions.index(self._call)
        rest = split_before(self._function, block, index)
        del rest.instructions[0]
        at = Builder(block)
        assert isinstance(self._values.type, T.VectorType)
        result: Value = Poison(self._values.type)
        taken: Value = const_int(T.I64, 0)
        for lane in range(self._values.type.count):
            address = self._address(at, lane, taken)
            old = self._lane(at, self._values, lane)
            known = _constant_lane(self._mask, lane)
            if known is None:
                at, new = self._guarded(at, rest, address, old, lane)
            elif not known:
                new = old
            else:
                new = self._access(at, address, old)
            if self._kind in ("expandload", "compressstore"):
                here = self._lane(at, self._mask, lane)
                taken = at.binary("add", taken, at.cast("zext", here, T.I64))
            if not self._stores:
                result = at.insert_element(result, new, lane)
        at.br(rest)
        made = self._function.blocks[self._function.blocks.index(block) : self._function.blocks.index(rest)]
        locate(self._call, [*block.instructions[index:], *(i for b in made[1:] for i in b.instructions)])
        if self._stores:
            return None
        result.name = self._call.name
        return result

    def _address(self, at: Builder, lane: int, taken: Value) -> Value:
        if T.is_pointer(self._pointer.type) and isinstance(self._pointer.type, T.VectorType):
            return self._lane(at, self._pointer, lane)
        packed = self._kind in ("expandload", "compressstore")
        return at.gep(self._element, self._pointer, [taken if packed else const_int(T.I64, lane)])

    def _lane(self, at: Builder, vector: Value, lane: int) -> Value:
        element = T.scalar(vector.type)
        if isinstance(vector, Poison | Undef):
            return Poison(element)
        return at.extract_element(vector, lane)

    def _access(self, at: Builder, address: Value, old: Value) -> Value:
        align = min(self._align or 1, size(self._element) or 1)
        if self._stores:
            at.store(old, address, align)
            return old
        return at.load(self._element, address, align)

    def _guarded(self, at: Builder, rest: BasicBlock, address: Value, old: Value, lane: int) -> tuple[Builder, Value]:
        inside, behind = BasicBlock(name="lane"), BasicBlock(name="next")
        where = self._function.blocks.index(rest)
        self._function.blocks[where:where] = [inside, behind]
        at.cond_br(self._lane(at, self._mask, lane), inside, behind)
        within = Builder(inside)
        new = self._access(within, address, old)
        within.br(behind)
        after = Builder(behind)
        if not self._stores:
            new = after.phi(self._element, [(old, at.block), (new, inside)])
        # The rest is reached from the last block: see `run`, and `split_before`, which named the first one.
        return after, new


def _constant_lane(mask: Value, lane: int) -> bool | None:
    match mask:
        case ConstantSplat(element=element):
            number = int_value(element)
        case ConstantAggregate(elements=elements):
            number = int_value(elements[lane])
        case ZeroInitializer():
            return False
        case _:
            return None
    return None if number is None else bool(number)
