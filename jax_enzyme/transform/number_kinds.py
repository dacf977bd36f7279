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

from collections.abc import Mapping, Sequence
from dataclasses import replace

from jax_enzyme.analysis.byte_ranges import ByteRanges
from jax_enzyme.analysis.memory import PointsTo, map_of
from jax_enzyme.analysis.mixed_kinds import mixed_objects
from jax_enzyme.analysis.objects import Objects, allocates_zeros, call_effect
from jax_enzyme.analysis.tbaa import number_access
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import clone_with_map
from jax_enzyme.ir.marks import TOLD
from jax_enzyme.ir.metadata import MDNode
from jax_enzyme.ir.module import Function, GlobalVariable, Module, callee_name
from jax_enzyme.ir.values import Argument, Value
from jax_enzyme.rules.declare import PURE, Declarations
from jax_enzyme.rules.effects import Effect
from jax_enzyme.transform.rewriting import locate, replace_values

_WRITES = (Effect.MEMORY_COPY, Effect.MEMORY_SET, Effect.REALLOCATE)
_KEEPS = ("nounwind", "willreturn", "memory(inaccessiblemem: readwrite)")
_TYPES = {
    "put": T.FunctionType(T.VOID, (T.PTR, T.I64, T.I32)),
    "copy": T.FunctionType(T.VOID, (T.PTR, T.PTR, T.I64)),
    "is": T.FunctionType(T.I32, (T.PTR, T.I32)),
}


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
    looking = _Looking(points_to, ranges, mixed, Declarations(module), twins)
    for code in points_to.functions:
        looking.look(code)
    looking.begin([buffer.nbytes for buffer in function.buffers])
    return replace(function, module=module)


def _has_several(module: Module) -> bool:
    """Whether numbers of several sizes are in memory at all."""
    every = (i for f in module.functions.values() for i in f.instructions() if isinstance(i, I.Load | I.Store))
    return len({t.size for t in (T.scalar(I.accessed_value(i).type) for i in every) if isinstance(t, T.FloatType)}) > 1


@dataclass(frozen=True, eq=False)
class _Looking:
    """Rewrites the `twins` of functions, in place."""

    points_to: PointsTo
    ranges: ByteRanges
    mixed: Objects
    declarations: Declarations
    twins: Mapping[Value, Value]

    def begin(self, lengths: Sequence[int]) -> None:
        """Nothing is known of what is there when a call starts: another call may have had the same memory."""
        root = self.twins[self.points_to.root]
        assert isinstance(root, Function)
        at = Builder.behind_variables(root)
        for item in (o for o in self.points_to.objects.values() if o in self.mixed):
            match item.site:
                case Argument(index=index):
                    self._forget(at, item.site, const_int(T.I64, lengths[index]))
                case GlobalVariable(value_type=type_):
                    self._forget(at, item.site, const_int(T.I64, self.ranges.layout.alloc_size(type_)))
                case _:
                    pass

    def look(self, code: Function) -> None:
        function = self.twins[code]
        assert isinstance(function, Function)
        known: dict[Value, Value] = {}
        for block, twin in zip(code.blocks, function.blocks, strict=True):
            for instruction in block.instructions:
                if not self._is_of_mixed(instruction):
                    continue
                copy = self.twins[instruction]
                assert isinstance(copy, I.Instruction)
                at = Builder(twin, twin.instructions.index(copy) + 1)
                first = at.place
                match copy:
                    case I.Load():
                        known |= self._loaded(at, copy)
                    case I.Store(operands=[value, pointer]):
                        self._stored(at, copy, value, pointer)
                    case I.CallBase():
                        self._called(at, copy)
                    case _:
                        pass
                locate(copy, twin.instructions[first : at.place])
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

    def _loaded(self, at: Builder, load: I.Load) -> dict[Value, Value]:
        if not isinstance(load.type, T.FloatType):
            return {}
        self._type(load, load.type)
        size = const_int(T.I32, load.type.size)
        kept = self._call(at, "is", load.operands[0], size)
        name = f"je.of_its_kind.f{8 * load.type.size}"
        callee = self.declarations.function(name, T.FunctionType(load.type, (load.type, T.I32)), PURE)
        return {load: at.call(callee, [load, kept], attributes=PURE)}

    def _stored(self, at: Builder, store: I.Store, value: Value, pointer: Value) -> None:
        size = self.ranges.layout.store_size(value.type)
        if isinstance(value.type, T.FloatType):
            self._type(store, value.type)
            self._call(at, "put", pointer, const_int(T.I64, size), const_int(T.I32, size))
        else:
            self._forget(at, pointer, const_int(T.I64, size))

    def _called(self, at: Builder, call: I.CallBase) -> None:
        match call_effect(call), call.operands:
            case Effect.MEMORY_COPY, [to, source, length, *_]:
                self._call(at, "copy", to, source, at.wide(length))
            case Effect.MEMORY_SET, [to, _, length, *_]:
                self._forget(at, to, at.wide(length))
            case Effect.ALLOCATE, _:
                self._forget(at, call, self._size(at, call))
            case _:
                self._call(at, "copy", call, call.operands[0], self._size(at, call))

    def _size(self, at: Builder, call: I.CallBase) -> Value:
        """What is allocated: for `calloc` and `reallocarray` a product, for Rust's `realloc` the last argument."""
        name, given = callee_name(call), call.arguments
        sizes = {"calloc": given[:2], "realloc": given[1:2], "reallocarray": given[1:3], "__rust_realloc": given[-1:]}
        first, *rest = (at.wide(value) for value in sizes.get(name, given[:1]))
        return at.binary("mul", first, rest[0]) if rest else first

    def _type(self, access: I.Load | I.Store, kind: T.FloatType) -> None:
        access.metadata = [(k, v) for k, v in access.metadata if k != "tbaa"]
        access.metadata += [*number_access(kind), (TOLD, MDNode())]

    def _forget(self, at: Builder, pointer: Value, size: Value) -> None:
        self._call(at, "put", pointer, size, const_int(T.I32, 0))

    def _call(self, at: Builder, name: str, *given: Value) -> Value:
        callee = self.declarations.function(f"je.kinds.{name}", _TYPES[name], _KEEPS)
        return at.call(callee, list(given), attributes=_KEEPS)
