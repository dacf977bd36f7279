"""Addresses of one variable that take turns in a loop become one address and offsets.

    before    %p = phi ptr [ @s, %entry ], [ %q, %latch ]               halves of shared memory: what one iteration
              %q = phi ptr [ @s + 88, %entry ], [ %p, %latch ]          writes the next one reads
              load double, ptr %p

    after     %o = phi i64 [ 0, %entry ], [ %u, %latch ]
              %u = phi i64 [ 88, %entry ], [ %o, %latch ]
              %p = getelementptr i8, ptr @s, i64 %o
              load double, ptr %p

The same where the loop computes an address of the variable that is used behind it (`s[i ^ 1]`). A tape on a device has
numbers in it and no addresses: of these reverse keeps the offsets.
"""

from __future__ import annotations

from collections.abc import Iterator

from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import Function, GlobalVariable, Module
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import Argument, BasicBlock, ConstantExpr, Value, int_value
from jax_enzyme.transform.rewriting import phis, replace_values


def name_offsets(module: Module) -> None:
    """Changes a private module in place."""
    for function in module.functions.values():
        for base, turns in _turns(function).items():
            _Offsets(module, base, turns).rewrite(function)


def _turns(function: Function) -> dict[Value, list[I.Phi]]:
    """The phis of addresses of one variable alone, for each variable two addresses of which take turns, or one of which
    leaves a loop."""
    found: dict[Value, list[I.Phi]] = {}
    taken: set[Value] = set()
    for block in function.blocks:
        own = [phi for phi in phis(block) if phi.type == T.PTR]
        for phi in own:
            bases = {v for v in reached([phi], _made_of) if not _made_of(v)}
            base = bases.pop() if len(bases) == 1 else None
            if isinstance(base, Argument | GlobalVariable):
                found.setdefault(base, []).append(phi)
                if len(phi.operands) == 1 or any(v in own and v is not phi for v in phi.operands):
                    taken.add(base)
    return {base: found[base] for base in found if base in taken}


def _made_of(value: Value) -> list[Value]:
    """The addresses that one is made of; nothing where it is a variable's, or of unknown origin."""
    match value:
        case I.Phi():
            return value.operands
        case I.GetElementPtr():
            return value.operands[:1]
        case ConstantExpr(opcode="getelementptr"):
            return [*value.operands[:1]]
        case _:
            return []


class _Offsets:
    """Of the addresses of one variable."""

    def __init__(self, module: Module, base: Value, turns: list[I.Phi]) -> None:
        self._layout = DataLayout(module)
        self._base = base
        self._numbers: dict[Value, I.Phi] = {phi: I.Phi(T.I64, "phi", [], targets=[], name=phi.name) for phi in turns}
        self._found: dict[Value, Value] = {base: const_int(T.I64, 0), **self._numbers}
        self._behind: dict[Value, list[I.Instruction]] = {}

    def rewrite(self, function: Function) -> None:
        for phi, number in self._numbers.items():
            assert isinstance(phi, I.Phi)
            number.incoming = [(self._offset(value), source) for value, source in phi.incoming]
        replaced: dict[Value, Value] = {}
        for block in function.blocks:
            block.instructions = list(self._renewed(block, replaced))
        replace_values(function, replaced)

    def _renewed(self, block: BasicBlock, replaced: dict[Value, Value]) -> Iterator[I.Instruction]:
        turns = [phi for phi in phis(block) if phi in self._numbers]
        first = next((i for i in block.instructions if not isinstance(i, I.Phi)), None)
        for instruction in block.instructions:
            if instruction is first:
                for phi in turns:
                    at = Builder(BasicBlock())
                    replaced[phi] = at.gep(T.I8, self._base, [self._numbers[phi]], ())
                    yield from at.block.instructions
            if isinstance(instruction, I.Phi):
                yield self._numbers.get(instruction, instruction)
            else:
                yield instruction
            yield from self._behind.get(instruction, ())

    def _offset(self, address: Value) -> Value:
        """How many bytes behind the variable's own an address is; made where the address is."""
        if address in self._found:
            return self._found[address]
        assert isinstance(address, I.GetElementPtr | ConstantExpr) and address.source_type is not None
        constant, steps = self._layout.steps(address.source_type, address.operands[1:])
        at = Builder(BasicBlock())
        total = self._offset(address.operands[0])
        number = int_value(total)
        if number is not None:
            total = const_int(T.I64, number + constant)
        elif constant:
            total = at.binary("add", total, const_int(T.I64, constant))
        for index, size in steps:
            wide = index if index.type == T.I64 else at.cast("sext", index, T.I64)
            total = at.binary("add", total, at.binary("mul", wide, const_int(T.I64, size)))
        self._behind[address] = list(at.block.instructions)
        self._found[address] = total
        return total
