"""Words and small copies of memory in which numbers of several sizes may lie are moved as what lies there.

    before    %w = load i64, ptr %p              after     %held = call i64 @je.kinds.take(ptr %p, i32 8)
              store i64 %w, ptr %q                         %is = call i32 @je.kinds.is(ptr %p, i32 8)
                                                           br i1 (%is != 0), label %one, label %two
                                                         one:
                                                           %d = load double, ptr %p
                                                           br label %join
                                                         two:
                                                           %low = load float, ptr %p
                                                           %high = load float, ptr (%p + 4)
                                                           %pair = bitcast <2 x float> (%low, %high) to double
                                                           br label %join
                                                         join:
                                                           %w = phi double [ %d, %one ], [ %pair, %two ]
                                                           store double %w, ptr %q            (which holds %held then)

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
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import Function, uses
from jax_enzyme.ir.values import BasicBlock, Value, int_value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.rules.effects import Effect
from jax_enzyme.transform.rewriting import locate, split_before

TAKE, IS = (f"je.kinds.{name}" for name in ("take", "is"))
KEEPS = ("nounwind", "willreturn", "memory(inaccessiblemem: readwrite)")
TAKEN = T.FunctionType(T.I64, (T.PTR, T.I32))
ASKED = T.FunctionType(T.I32, (T.PTR, T.I32))
_WORD, _MOST = 8, 128
_PAIR = T.VectorType(2, T.FLOAT)


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
        for original in list(code.instructions()):
            moved = self.twins[original]
            match moved:
                case I.Load(operands=[pointer]) if moved.type == T.I64 and I.is_plain(moved):
                    stores = [i for i, _ in uses(function).get(moved, ()) if isinstance(i, I.Store)]
                    kept = [i for i, n in uses(function).get(moved, ()) if not isinstance(i, I.Store) or n > 0]
                    if stores and not kept and self._is_of_mixed(original, original.operands):
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
        block = _home(function, load)
        number, held, rest = self._read(function, block, load, pointer)
        rest.instructions.remove(load)
        for store in stores:
            store.operands[0] = number
            self.given[store] = held

    def _copy(self, function: Function, call: I.CallBase, count: int) -> None:
        to, source = call.operands[:2]
        block = _home(function, call)
        read: list[tuple[Value, Value]] = []
        for k in range(count):
            at = Builder.before(block, call)
            first = at.place
            place = at.offset(source, _WORD * k)
            locate(call, block.instructions[first : at.place])
            number, held, block = self._read(function, block, call, place)
            read.append((number, held))
        at = Builder.before(block, call)
        first = at.place
        for k, (number, held) in enumerate(read):
            self.given[at.store(number, at.offset(to, _WORD * k), 1)] = held
        locate(call, block.instructions[first : at.place])
        block.instructions.remove(call)

    def _read(
        self, function: Function, block: BasicBlock, before: I.Instruction, pointer: Value
    ) -> tuple[Value, Value, BasicBlock]:
        """A word as a double, what its memory holds, and the block in which `before` stands then."""
        rest = split_before(function, block, block.instructions.index(before))
        at, size = Builder(block), const_int(T.I32, _WORD)
        first = len(block.instructions)
        held = at.call(self.declarations.function(TAKE, TAKEN, KEEPS), [pointer, size], attributes=KEEPS)
        is_one = at.call(self.declarations.function(IS, ASKED, KEEPS), [pointer, size], attributes=KEEPS)
        one, two = BasicBlock(name="one"), BasicBlock(name="two")
        at.cond_br(at.icmp("ne", is_one, const_int(T.I32, 0)), one, two)
        alone, apart = Builder(one), Builder(two)
        number = alone.load(T.DOUBLE, pointer, 1)
        alone.br(rest)
        halves = [apart.load(T.FLOAT, apart.offset(pointer, 4 * k), 1) for k in range(2)]
        pair = apart.cast("bitcast", apart.pack(_PAIR, halves), T.DOUBLE)
        apart.br(rest)
        locate(before, [*block.instructions[first:], *one.instructions, *two.instructions])
        place = function.blocks.index(rest)
        function.blocks[place:place] = [one, two]
        word = Builder(rest, 0).phi(T.DOUBLE, [(number, one), (pair, two)])
        return word, held, rest


def _home(function: Function, instruction: I.Instruction) -> BasicBlock:
    return next(block for block in function.blocks if instruction in block.instructions)
