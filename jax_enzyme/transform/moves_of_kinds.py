"""Words and small copies of memory in which numbers of several sizes may lie are moved as what lies there.

    before    %w = load i64, ptr %p              after     %is = call i32 @je.kinds.is(ptr %p, i32 8)
              store i64 %w, ptr %q                         %size = select i1 (%is != 0), i32 8, i32 4
                                                           %held = call i64 @je.kinds.take(ptr %p, i32 8, i32 %size)
                                                           br i1 (%is != 0), label %one, label %two
                                                         one:
                                                           %d = load double, ptr %p
                                                           br label %join
                                                         two:
                                                           %low = load float, ptr %p
                                                           %high = load float, ptr (%p + 4)
                                                           br label %join
                                                         join:    (with phis of %d, %low and %high)
                                                           br i1 (%is != 0), label %one.more, label %two.more
                                                         one.more:
                                                           store double %d, ptr %q            (which holds %held then)
                                                           br label %rest
                                                         two.more:
                                                           store float %low, ptr %q
                                                           store float %high, ptr (%q + 4)
                                                           br label %rest

So an adjoint goes back as that of a double, or as those of two floats. Copies of up to 128 bytes, of a constant number
of words, are moves of words.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.objects import Objects, call_effect
from jax_enzyme.classes import dataclass, field
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int, zero
from jax_enzyme.ir.module import Function, uses
from jax_enzyme.ir.values import BasicBlock, Value, int_value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.rules.effects import Effect
from jax_enzyme.transform.rewriting import locate, split_before

_KEEPS = ("nounwind", "willreturn", "memory(inaccessiblemem: readwrite)")
_TYPES = {
    "put": T.FunctionType(T.VOID, (T.PTR, T.I64, T.I32)),
    "copy": T.FunctionType(T.VOID, (T.PTR, T.PTR, T.I64)),
    "take": T.FunctionType(T.I64, (T.PTR, T.I32, T.I32)),
    "give": T.FunctionType(T.VOID, (T.PTR, T.I32, T.I64)),
    "is": T.FunctionType(T.I32, (T.PTR, T.I32)),
    "integer": T.FunctionType(T.I32, (T.PTR, T.I32)),
}
_WORD, _MOST = 8, 128


def of_table(declarations: Declarations, at: Builder, name: str, *given: Value) -> Value:
    """What a function of the table of kinds (`rules/kinds.ll`) answers."""
    callee = declarations.function(f"je.kinds.{name}", _TYPES[name], _KEEPS)
    return at.call(callee, list(given), attributes=_KEEPS)


@dataclass(frozen=True, eq=False)
class Moves:
    """In functions of a module, in place. `given` says of the stores that it makes what their memory holds then."""

    points_to: PointsTo
    mixed: Objects
    declarations: Declarations
    twins: Mapping[Value, Value]
    given: dict[I.Store, Value] = field(default_factory=dict)

    def rewrite(self, code: Function) -> None:
        function = self.twins[code]
        assert isinstance(function, Function)
        used = uses(function)  # of words: what is rewritten changes none of other words
        for original in list(code.instructions()):
            moved = self.twins[original]
            match moved:
                case I.Load(operands=[pointer]) if moved.type == T.I64 and I.is_plain(moved):
                    users = used.get(moved, ())
                    stores = [i for i, n in users if isinstance(i, I.Store) and n == 0]
                    if stores and len(stores) == len(users) and self._is_of_mixed(original, original.operands):
                        self._move(function, moved, pointer, stores)
                case I.CallBase() if call_effect(moved) is Effect.MEMORY_COPY:
                    length = int_value(moved.operands[2]) or 0
                    words = 0 < length <= _MOST and length % _WORD == 0
                    if words and self._is_of_mixed(original, original.operands[:2]):
                        self._copy(function, moved, length // _WORD)
                case _:
                    pass

    def _is_of_mixed(self, original: Value, pointers: Collection[Value]) -> bool:
        """Whether it is of such memory, in which no pointers lie, and in which all that lies was stored."""
        items = frozenset[object]().union(*map(self.points_to.of, pointers))
        if self.mixed.isdisjoint(items) or self.points_to.of(original):
            return False
        found = [o for pointer in pointers for o in self.points_to.of(pointer)]
        return not any(o.is_given or self.points_to.contents.get(o) for o in found)

    def _move(self, function: Function, load: I.Load, pointer: Value, stores: Collection[I.Store]) -> None:
        word, rest = self._read(function, _home(function, load), load, pointer)
        rest.instructions.remove(load)
        for store in stores:
            rest = self._write(function, _home(function, store), store, word, store.operands[1])
            rest.instructions.remove(store)

    def _copy(self, function: Function, call: I.CallBase, count: int) -> None:
        to, source = call.operands[:2]
        block = _home(function, call)
        read: list[_Word] = []
        for k in range(count):
            word, block = self._read(function, block, call, _place(block, call, source, _WORD * k))
            read.append(word)
        for k, word in enumerate(read):
            block = self._write(function, block, call, word, _place(block, call, to, _WORD * k))
        block.instructions.remove(call)

    def _read(
        self, function: Function, block: BasicBlock, before: I.Instruction, pointer: Value
    ) -> tuple[_Word, BasicBlock]:
        """A word, and the block in which `before` stands then."""
        rest = split_before(function, block, block.instructions.index(before))
        at, size = Builder(block), const_int(T.I32, _WORD)
        first = len(block.instructions)
        asked = of_table(self.declarations, at, "is", pointer, size)
        is_one = at.icmp("ne", asked, const_int(T.I32, 0))
        held = of_table(self.declarations, at, "take", pointer, size, at.select(is_one, size, const_int(T.I32, 4)))
        alone, apart = _branch(function, at, is_one, rest)
        number = alone.load(T.DOUBLE, pointer, 1)
        alone.br(rest)
        halves = [apart.load(T.FLOAT, apart.offset(pointer, 4 * k), 1) for k in range(2)]
        apart.br(rest)
        locate(before, [*block.instructions[first:], *alone.block.instructions, *apart.block.instructions])
        joined, one, two = Builder(rest, 0), alone.block, apart.block
        whole = joined.phi(T.DOUBLE, [(number, one), (zero(T.DOUBLE), two)])
        low, high = (joined.phi(T.FLOAT, [(zero(T.FLOAT), one), (half, two)]) for half in halves)
        return _Word(is_one, whole, (low, high), held), rest

    def _write(
        self, function: Function, block: BasicBlock, before: I.Instruction, word: _Word, pointer: Value
    ) -> BasicBlock:
        """As one number or as two, so that adjoints are added as such. The block in which `before` stands then."""
        rest = split_before(function, block, block.instructions.index(before))
        at = Builder(block)
        first = len(block.instructions)
        alone, apart = _branch(function, at, word.is_one, rest)
        self.given[alone.store(word.number, pointer, 1)] = word.held
        alone.br(rest)
        for k, half in enumerate(word.halves):
            held = apart.binary("lshr", word.held, const_int(T.I64, 32 * k))
            self.given[apart.store(half, apart.offset(pointer, 4 * k), 1)] = held
        apart.br(rest)
        locate(before, [*block.instructions[first:], *alone.block.instructions, *apart.block.instructions])
        return rest


@dataclass(frozen=True, eq=False)
class _Word:
    """As one number and as two, of which one way is how it is, and what its memory holds."""

    is_one: Value
    number: Value
    halves: tuple[Value, Value]
    held: Value


def _branch(function: Function, at: Builder, condition: Value, rest: BasicBlock) -> tuple[Builder, Builder]:
    one, two = BasicBlock(name="one"), BasicBlock(name="two")
    at.cond_br(condition, one, two)
    place = function.blocks.index(rest)
    function.blocks[place:place] = [one, two]
    return Builder(one), Builder(two)


def _place(block: BasicBlock, before: I.Instruction, pointer: Value, offset: int) -> Value:
    at = Builder.before(block, before)
    first = at.place
    place = at.offset(pointer, offset)
    locate(before, block.instructions[first : at.place])
    return place


def _home(function: Function, instruction: I.Instruction) -> BasicBlock:
    return next(block for block in function.blocks if instruction in block.instructions)
