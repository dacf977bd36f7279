"""New functions, and copies of instructions and code, for passes that add to a module."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import Buffer
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.clone import twin_of
from jax_enzyme.ir.debug import NOTED
from jax_enzyme.ir.marks import COMMON, LOOP, REVERSED, ROW, SLOTS
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.values import Argument, BasicBlock, Constant, InlineAsm, Value

ALIGNMENT = 16
"""What memory that a derivative makes is aligned to: local variables that move to the tape, shadows, the tape."""

MapValue = Callable[[Value], Value]
_KEPT = (NOTED, LOOP, REVERSED, ROW, COMMON, SLOTS)


def whole(size: int, unit: int = ALIGNMENT) -> int:
    """A number of bytes, rounded up to units of alignment."""
    return -(-size // unit) * unit


def array_function(symbol: str, buffers: tuple[Buffer, ...]) -> Function:
    """An empty array function: one `noalias` pointer per buffer, i64 status."""
    arguments: list[Argument] = []
    for index, buffer in enumerate(buffers):
        words = ["noalias", "nonnull"]
        if buffer.nbytes:
            words.append(f"dereferenceable({buffer.nbytes})")
        arguments.append(Argument(T.PTR, tuple(words), index, name=f"b{index}.{buffer.name}"))
    type_ = T.FunctionType(T.I64, tuple(a.type for a in arguments))
    return Function(T.PTR, type_, arguments=arguments, attributes=("nounwind", "mustprogress"), name=symbol)


def internal_function(
    module: Module,
    name: str,
    type_: T.FunctionType,
    words: tuple[str, ...] = (),
    attributes: tuple[str, ...] = ("nounwind",),
) -> Function:
    """A new function of a module, without a body yet; `words` are said of each parameter."""
    arguments = [Argument(t, words, i, name=f"a{i}") for i, t in enumerate(type_.parameters)]
    function = Function(T.PTR, type_, arguments=arguments, prefix=("internal",), attributes=attributes, name=name)
    module.functions[name] = function
    return function


def copied(instruction: I.Instruction, value: MapValue, block: Callable[[BasicBlock], BasicBlock]) -> I.Instruction:
    """A copy over mapped operands and targets, without metadata (debug scopes belong to the source function) but
    a place that is noted and the marks of loops."""
    twin = twin_of(instruction)
    twin.operands = [value(v) for v in instruction.operands]
    twin.targets = [block(b) for b in instruction.targets]
    twin.metadata = [(kind, node) for kind, node in instruction.metadata if kind in _KEPT]
    twin.records = ()
    if isinstance(twin, I.CallBase):
        twin.bundles = [(tag, [value(v) for v in inputs]) for tag, inputs in twin.bundles]
        twin.parameter_attributes = [tuple(map(_less_aligned, words)) for words in twin.parameter_attributes]
    elif isinstance(twin, I.Load | I.Store) and twin.align is not None:
        twin.align = min(twin.align, ALIGNMENT)
    return twin


def again(instruction: I.Instruction) -> I.Instruction:
    """A copy over the same operands."""
    return copied(instruction, lambda v: v, lambda b: b)


def computed_again(at: Builder) -> MapValue:
    """Gives values that need no memory, computed where the builder is, each once."""
    made: dict[Value, Value] = {}

    def again(value: Value) -> Value:
        if isinstance(value, I.Instruction) and value not in made:
            made[value] = at.insert(copied(value, again, lambda block: block))
        return made.get(value, value)

    return again


class CodeCopy:
    """A function's code, written again with more in between: a block for each of `sources`, the entry first, behind
    a `prologue`. `values` leads from what is there to what is written for it. Phis get their operands at the end."""

    def __init__(self, sources: Iterable[BasicBlock], values: Mapping[Value, Value]) -> None:
        self.values: dict[Value, Value] = dict(values)
        self.blocks = {b: BasicBlock(name=b.name) for b in sources}
        self.prologue = BasicBlock(name="prologue")
        self.builder = Builder(self.prologue)
        self._phis: list[tuple[I.Phi, I.Phi, MapValue]] = []

    def value(self, value: Value) -> Value:
        """What is written for a value."""
        return value if isinstance(value, Constant | InlineAsm) else self.values[value]

    def twin(self, instruction: I.Instruction) -> I.Instruction:
        """Writes an instruction as it is."""
        twin = self.builder.insert(copied(instruction, self.value, self.blocks.__getitem__))
        self.values[instruction] = twin
        return twin

    def phi(self, phi: I.Phi, find: MapValue) -> I.Phi:
        """A phi of what `find` will give for the operands."""
        twin = self.builder.phi(phi.type)
        self._phis.append((phi, twin, find))
        return twin

    def finish(self, target: Function) -> None:
        """Makes it the body of a function."""
        for phi, twin, find in self._phis:
            incoming = [(v, self.blocks[b]) for v, b in phi.incoming if b in self.blocks]
            twin.operands, twin.targets = [find(v) for v, _ in incoming], [b for _, b in incoming]
        Builder(self.prologue).br(next(iter(self.blocks.values())))
        target.blocks = [self.prologue, *self.blocks.values()]


@lru_cache(maxsize=4096)
def _less_aligned(word: str) -> str:
    known = re.fullmatch(r"align[ (](\d+)\)?", word)
    return f"align {ALIGNMENT}" if known and int(known[1]) > ALIGNMENT else word
