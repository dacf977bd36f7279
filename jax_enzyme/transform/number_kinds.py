"""What kind of number lies at each place, told as a derivative runs, where it cannot be told before.

    before    store float %y, ptr %p            after    store float %y, ptr %p
                                                         call void @je.kinds.put(ptr %p, i64 4, i32 4)
              %x = load double, ptr %q                   %x = load double, ptr %q
                                                         %is = call i32 @je.kinds.is(ptr %q, i32 8)
                                                         %known = call double @je.of_its_kind.f64(double %x, i32 %is)
              ... %x ...                                 ... %known ...

A table by addresses (`rules/kinds.ll`) has for each byte of such memory the size of the number that was stored there
last, and which byte of it this is; nothing for integers and what was cleared. Copies of memory copy that. So a number
is known to have been stored as a whole, or its derivative is none (`of_its_kind` in `rules.intrinsics`): a float in a
half of a double, a double of two floats, or of parts of two doubles. Values stay as they are.

From here on the accesses of the objects are typed, and told apart by these types (`is_told`).
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace

from jax_enzyme.analysis.byte_ranges import ByteRanges
from jax_enzyme.analysis.memory import PointsTo, map_of
from jax_enzyme.analysis.mixed_kinds import mixed_objects
from jax_enzyme.analysis.objects import Objects, allocates_zeros, call_effect
from jax_enzyme.analysis.tbaa import number_access
from jax_enzyme.analysis.words import DTYPES
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction, Buffer
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import clone, clone_with_map
from jax_enzyme.ir.marks import TOLD
from jax_enzyme.ir.metadata import MDNode
from jax_enzyme.ir.module import Function, GlobalVariable, Module, callee_name, uses
from jax_enzyme.ir.values import Argument, BasicBlock, Value
from jax_enzyme.rules.declare import PURE, Declarations
from jax_enzyme.rules.effects import OF_ITS_KIND, Effect, allocated
from jax_enzyme.rules.kinds import of_table
from jax_enzyme.transform.moves_of_kinds import Moves
from jax_enzyme.transform.rewriting import locate, replace_values

_WRITES = (Effect.MEMORY_COPY, Effect.MEMORY_SET, Effect.REALLOCATE)
_NOTHING, _INTEGER = 0, 1
_WORDS = (T.I32, T.I64)
_NUMBERS = (T.FLOAT, T.DOUBLE)
_COUNTS = frozenset("add sub mul sdiv udiv srem urem sitofp uitofp zext sext".split())
"""What is done with integers. The rest may take a number out of a word."""


def look_at_kinds(function: ArrayFunction) -> ArrayFunction:
    """An array function of a program that looks at the kinds of numbers where it has to; itself where it has not to."""
    if not _has_several(function.module):
        return function
    points_to = map_of(function)
    ranges = ByteRanges(points_to)
    mixed = mixed_objects(points_to, ranges)
    if not mixed:
        return function
    module, twins = clone_with_map(function.module)
    moves = Moves(points_to, mixed, Declarations(module), twins)
    for code in points_to.functions:
        moves.rewrite(code)
    function = replace(function, module=module)
    points_to = map_of(function)
    sites = moves.places | {twins[item.site] for item in mixed if item.site is not None}
    mixed = frozenset(item for item in points_to.objects.values() if item.site in sites)
    looking = _Looking(points_to, ByteRanges(points_to), mixed, Declarations(module), moves.stored)
    for code in points_to.functions:
        looking.look(code)
    looking.begin(points_to.root, function.buffers)
    return replace(function, module=clone(module))  # of which no map has been made


def _has_several(module: Module) -> bool:
    """Whether numbers of several sizes are in memory at all."""
    every = (i for f in module.functions.values() for i in f.instructions() if isinstance(i, I.Load | I.Store))
    return len({t.size for t in (T.scalar(I.accessed_value(i).type) for i in every) if isinstance(t, T.FloatType)}) > 1


@dataclass(frozen=True, eq=False)
class _Looking:
    """Rewrites functions, in place. `stored` are stores of which it is told already what their memory holds then."""

    points_to: PointsTo
    ranges: ByteRanges
    mixed: Objects
    declarations: Declarations
    stored: Set[Value]

    def begin(self, root: Function, buffers: Sequence[Buffer]) -> None:
        """Nothing is known of what is there when a call starts, but of arrays of numbers: another call may have had the
        same memory."""
        at = Builder.behind_variables(root)
        for item in (o for o in self.points_to.objects.values() if o in self.mixed):
            match item.site:
                case Argument(index=index):
                    kind = DTYPES.get(buffers[index].dtype)
                    size = const_int(T.I32, kind.size if kind in _NUMBERS else _NOTHING)
                    self.call(at, "put", item.site, const_int(T.I64, buffers[index].nbytes), size)
                case GlobalVariable(value_type=type_):
                    self._forget(at, item.site, const_int(T.I64, self.ranges.layout.alloc_size(type_)))
                case _:
                    pass

    def look(self, function: Function) -> None:
        homes: dict[Value, BasicBlock] = {i: block for block in function.blocks for i in block.instructions}
        touching = [i for i in function.instructions() if self._is_of_mixed(i)]
        users = uses(function)
        known: dict[Value, Value] = {}
        for instruction in touching:
            at = Builder.behind(homes[instruction], instruction)
            match instruction:
                case I.Load(type=T.FloatType() as kind):
                    known[instruction] = self._loaded(at, instruction, kind)
                case I.Load(type=T.IntType()):
                    used = users.get(instruction, ())
                    self._counted(at, instruction, [i for i, _ in used if _counts(instruction, i)])
                case I.Store(operands=[value, pointer]):
                    if instruction not in self.stored:
                        self._stored(at, instruction, value, pointer)
                case I.CallBase():
                    self._called(at, instruction)
                case _:
                    pass
        replace_values(function, known)
        for load, value in known.items():
            assert isinstance(value, I.Instruction)
            value.operands[0] = load

    def _is_of_mixed(self, instruction: I.Instruction) -> bool:
        match instruction:
            case I.Load() | I.Store():
                given = instruction.operands[-1:]
            case I.CallBase() if call_effect(instruction) is Effect.ALLOCATE:
                given = [instruction] if allocates_zeros(instruction) else []
            case I.CallBase() if call_effect(instruction) in _WRITES:
                given = instruction.operands[:2]
            case _:
                return False
        return any(not self.mixed.isdisjoint(self.points_to.of(value)) for value in given)

    def _loaded(self, at: Builder, load: I.Load, kind: T.FloatType) -> Value:
        self._type(load, kind)
        return self._known(at, load, load, "is")

    def _counted(self, at: Builder, load: I.Load, users: Sequence[I.Instruction]) -> None:
        """An integer that is computed with is one."""
        if not users or self.ranges.layout.store_size(load.type) not in (1, 2, 4, 8):
            return
        known = self._known(at, load, load, "integer")
        for user in users:
            user.operands = [known if value is load else value for value in user.operands]

    def _known(self, at: Builder, load: I.Load, value: Value, question: str) -> Value:
        first = at.place
        size = self.ranges.layout.store_size(load.type)
        is_own = self.call(at, question, load.operands[0], const_int(T.I32, size))
        type_ = T.FunctionType(value.type, (value.type, T.I32))
        name = f"{OF_ITS_KIND}{'f' if T.is_float(value.type) else 'i'}{8 * size}"
        known = at.call(self.declarations.function(name, type_, PURE), [value, is_own], attributes=PURE)
        locate(load, at.block.instructions[first : at.place])
        return known

    def _stored(self, at: Builder, store: I.Store, value: Value, pointer: Value) -> None:
        size = self.ranges.layout.store_size(value.type)
        if isinstance(value.type, T.FloatType):
            self._type(store, value.type)
        elif isinstance(value.type, T.IntType):
            store.metadata = [*store.metadata, (TOLD, MDNode())]
        kind = size if isinstance(value.type, T.FloatType) else _INTEGER if T.is_int(value.type) else _NOTHING
        self.call(at, "put", pointer, const_int(T.I64, size), const_int(T.I32, kind))

    def _called(self, at: Builder, call: I.CallBase) -> None:
        match call_effect(call), call.operands:
            case Effect.MEMORY_COPY, [to, source, length, *_]:
                call.metadata = [*call.metadata, (TOLD, MDNode())]
                self.call(at, "copy", to, source, at.wide(length))
            case Effect.MEMORY_SET, [to, _, length, *_]:
                self._forget(at, to, at.wide(length))
            case Effect.ALLOCATE, _:
                self._forget(at, call, _allocated_bytes(at, call))
            case _:
                self.call(at, "copy", call, call.operands[0], _allocated_bytes(at, call))

    def _type(self, access: I.Load | I.Store, kind: T.FloatType) -> None:
        access.metadata = [(k, v) for k, v in access.metadata if k != "tbaa"]
        access.metadata += [*number_access(kind), (TOLD, MDNode())]

    def _forget(self, at: Builder, pointer: Value, size: Value) -> None:
        self.call(at, "put", pointer, size, const_int(T.I32, 0))

    def call(self, at: Builder, name: str, *given: Value) -> Value:
        return of_table(self.declarations, at, name, *given)


def _allocated_bytes(at: Builder, call: I.CallBase) -> Value:
    return at.product(call.operands[i] for i in allocated(callee_name(call)) or ())


def _counts(load: I.Load, user: I.Instruction) -> bool:
    """Whether an integer is computed with, and no part taken of it that may be a number."""
    return user.opcode in _COUNTS or (isinstance(user, I.BinaryOp) and load.type not in _WORDS)
