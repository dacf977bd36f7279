"""Several tangents or cotangents of one point at once: what is linear is computed in vectors, a lane for each, and all
else once.

    before    %t = load double, ptr %x_dot.i          %x_dot.i = getelementptr double, ptr %x_dot, i64 %i
              %d = fmul double %c, %t                 %c = call double @llvm.cos.f64(double %x)
              store double %d, ptr %y_dot.i

    after     %t = load <4 x double>, ptr %x_dot.i    %x_dot.i = getelementptr [32 x i8], ptr %x_dot, i64 %i
              %d = fmul <4 x double> %cs, %t          %cs: %c in every lane
              store <4 x double> %d, ptr %y_dot.i

Every object that differs between directions (`analysis.directional`) is so many times as large, each byte offset so
many times as far, and at one of a number lie those of all directions. Its pointers stay pointers. What is to hold of
such memory: all accesses are of numbers of one size, and nothing happens to what differs but arithmetic and choices,
lane by lane. NotLinear says what else was found; then the function is called once for each direction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from jax_enzyme.analysis.directional import Directional
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.objects import MemoryObject, call_effect, copy_operands, is_copy, is_defined_call
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction, Step, is_linear, wide_buffers
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import clone_without_debug
from jax_enzyme.ir.module import Function, callee_name, is_fused
from jax_enzyme.ir.values import BasicBlock, Constant, ConstantSplat, Poison, Undef, Value, int_value
from jax_enzyme.rules.declare import Declarations, overload, splat
from jax_enzyme.rules.effects import Effect, allocated
from jax_enzyme.transform.rewriting import Change, rewrite

_BY_LANE = frozenset("fadd fsub fmul fdiv fneg fpext fptrunc phi select freeze fcmp and or xor".split())
_NUMBERS = (T.FLOAT, T.DOUBLE)
_SIZED = "dereferenceable("


class NotLinear(Exception):
    """What is not known to be the same for all directions, or not known to be computed with in vectors."""


def in_directions(function: ArrayFunction, step: Step) -> ArrayFunction:
    """A derivative by `step` in canonical form for `step.lanes` directions, in a module of its own. Raises
    NotLinear."""
    module = clone_without_debug(function.module)
    root = module.functions[function.symbol]
    points_to = PointsTo(module, root)
    layout = DataLayout(module)
    if any(b.dtype in ("c64", "c128") for b in function.buffers if is_linear(b, step)):
        raise NotLinear("complex numbers: their parts would lie apart")
    buffers = [a for a, b in zip(root.arguments, function.buffers, strict=True) if is_linear(b, step)]
    directional = Directional(points_to, buffers)
    _check_objects(directional, buffers)
    _check(points_to, directional, layout)
    for argument in buffers:
        argument.attributes = tuple(_larger(word, step.lanes) for word in argument.attributes)
    for each in points_to.functions:
        _Widening(directional, layout, Declarations(module), step.lanes).run(each)
    return replace(function, module=module, buffers=wide_buffers(function.buffers, step))


def _larger(word: str, count: int) -> str:
    return f"{_SIZED}{count * int(word[len(_SIZED) : -1])})" if word.startswith(_SIZED) else word


def _check_objects(directional: Directional, buffers: Sequence[Value]) -> None:
    for item in directional.objects:
        site = item.site
        is_own = isinstance(site, I.Alloca) or (isinstance(site, I.CallBase) and call_effect(site) is Effect.ALLOCATE)
        if not is_own and site not in buffers:
            raise NotLinear(f"{item} would have to be one for each direction")


def _check(points_to: PointsTo, directional: Directional, layout: DataLayout) -> None:
    sizes: dict[MemoryObject, int] = {}
    instructions = [i for f in points_to.functions for i in f.instructions()]
    for instruction in instructions:
        match instruction:
            case I.Load() | I.Store():
                _check_access(instruction, directional)
                for item in points_to.of(instruction.operands[-1]) & directional.objects:
                    size = layout.store_size(I.accessed_value(instruction).type)
                    if sizes.setdefault(item, size) != size:
                        raise NotLinear(f"numbers of two sizes in {item}")
            case I.CallBase():
                _check_call(instruction, directional)
            case _:
                _check_other(instruction, directional)
    for call in filter(is_copy, (i for i in instructions if isinstance(i, I.CallBase))):
        if len({sizes[o] for p in copy_operands(call)[:2] for o in points_to.of(p) if o in sizes}) > 1:
            raise NotLinear("a copy between numbers of two sizes")


def _check_access(access: I.Load | I.Store, directional: Directional) -> None:
    if not directional.leads_there(access.operands[-1]):
        return
    if not I.is_plain(access):
        raise NotLinear("an access that others see")
    type_ = I.accessed_value(access).type
    if type_ not in _NUMBERS:
        raise NotLinear(f"a value of type {type_} in memory of tangents")


def _check_call(call: I.CallBase, directional: Directional) -> None:
    name = callee_name(call)
    by_lane = is_fused(call) and call.type in _NUMBERS
    if not by_lane and any(v in directional.values for v in [call, *call.arguments]):
        raise NotLinear(f"a call of {name} with tangents")
    if not any(map(directional.leads_there, [call, *call.arguments])):
        return
    if is_defined_call(call):
        return
    effect = call_effect(call)
    known = effect in (Effect.MEMORY_COPY, Effect.MEMORY_SET, Effect.ALLOCATE, Effect.IGNORED)
    if not known and not (effect is Effect.FREE and len(call.arguments) == 1):
        raise NotLinear(f"a call of {name} with memory of tangents")


def _check_other(instruction: I.Instruction, directional: Directional) -> None:
    if instruction in directional.values:
        if instruction.opcode not in _BY_LANE or instruction.type not in (*_NUMBERS, T.I1):
            raise NotLinear(f"{instruction.opcode} to {instruction.type} of a tangent")
        if isinstance(instruction, I.Phi) and any(v is b.terminator for v, b in instruction.incoming):
            raise NotLinear("a number that a call which may throw returns")
    elif any(v in directional.values for v in instruction.operands):
        raise NotLinear(f"{instruction.opcode} of a tangent")
    if any(map(directional.leads_there, instruction.operands)):
        moves = isinstance(instruction, I.GetElementPtr | I.Phi | I.Select | I.Freeze | I.Compare)
        if not moves or isinstance(instruction.type, T.VectorType):
            raise NotLinear(f"{instruction.opcode} of an address of tangents")


class _Widening:
    """Rewrites the functions of a module of our own."""

    def __init__(self, directional: Directional, layout: DataLayout, declarations: Declarations, count: int) -> None:
        self._differs = directional
        self._layout = layout
        self._declarations = declarations
        self._count = count
        self._incoming: list[tuple[I.Phi, int, BasicBlock]] = []

    def run(self, function: Function) -> None:
        rewrite(function, self._change)
        for phi, index, block in self._incoming:
            rest = [block.instructions.pop()]
            phi.operands[index] = self._lanes(Builder(block), phi.operands[index])
            block.instructions += rest
        self._incoming.clear()

    def _vector(self, type_: T.Type) -> T.VectorType:
        return T.VectorType(self._count, type_)

    def _lanes(self, builder: Builder, value: Value) -> Value:
        """A number for all directions: of one that is the same in all of them, as often."""
        vector = self._vector(value.type)
        match value:
            case _ if value in self._differs.values:
                return value
            case Poison() | Undef():
                return type(value)(vector)
            case Constant():
                return ConstantSplat(vector, value)
            case _:
                return splat(builder, value, vector)

    def _change(self, instruction: I.Instruction) -> Change | None:
        there = self._differs.leads_there
        match instruction:
            case I.Load() if instruction in self._differs.values:
                return lambda b: b.load(
                    self._vector(instruction.type), instruction.operands[0], self._layout.alignment(instruction)
                )
            case I.Store() if there(instruction.operands[1]):
                return lambda b: self._store(b, instruction)
            case I.GetElementPtr() if there(instruction.operands[0]):
                return lambda b: self._address(b, instruction)
            case I.Alloca() if there(instruction):
                return lambda b: b.insert(
                    replace(instruction, allocated_type=T.ArrayType(self._count, instruction.allocated_type))
                )
            case I.Phi() if instruction in self._differs.values:
                return lambda b: self._phi(b, instruction)
            case I.CallBase():
                return self._call(instruction)
            case _ if instruction in self._differs.values:
                return lambda b: self._arithmetic(b, instruction)
            case _:
                return None

    def _store(self, builder: Builder, store: I.Store) -> None:
        value, pointer = store.operands
        builder.store(self._lanes(builder, value), pointer, self._layout.alignment(store))

    def _address(self, builder: Builder, gep: I.GetElementPtr) -> Value:
        """The same place: each byte is `count` times as far."""
        base, *indices = gep.operands
        constant, steps = self._layout.steps(gep.source_type, indices)
        address = base
        for index, size in steps:
            address = builder.gep(T.ArrayType(size * self._count, T.I8), address, [index], gep.flags)
        if constant or not steps:
            address = builder.gep(T.I8, address, [const_int(T.I64, constant * self._count)], gep.flags)
        return address

    def _phi(self, builder: Builder, phi: I.Phi) -> Value:
        wide = builder.phi(self._vector(phi.type), phi.incoming)
        for index, (value, block) in enumerate(phi.incoming):
            if isinstance(value, Constant):
                wide.operands[index] = self._lanes(builder, value)
            elif value not in self._differs.values:
                self._incoming.append((wide, index, block))
        return wide

    def _arithmetic(self, builder: Builder, instruction: I.Instruction) -> Value:
        operands = [self._lanes(builder, v) for v in instruction.operands]
        if isinstance(instruction, I.Select) and instruction.operands[0] not in self._differs.values:
            operands[0] = instruction.operands[0]
        return builder.insert(replace(instruction, type=self._vector(instruction.type), operands=operands))

    def _call(self, call: I.CallBase) -> Change | None:
        if call in self._differs.values:
            return lambda b: self._intrinsic(b, call)
        if not any(map(self._differs.leads_there, [call, *call.arguments])):
            return None
        scaled: Iterable[int] = (2,) if call_effect(call) in (Effect.MEMORY_COPY, Effect.MEMORY_SET) else ()
        if call_effect(call) is Effect.ALLOCATE:
            scaled = (allocated(callee_name(call)) or ())[:1]
        return lambda b: self._scaled(b, call, scaled)

    def _intrinsic(self, builder: Builder, call: I.CallBase) -> Value:
        kind = callee_name(call).split(".")[1]
        vector = self._vector(call.type)
        arguments = [self._lanes(builder, a) for a in call.arguments]
        made = self._declarations.invoke(builder, f"llvm.{kind}.{overload(vector)}", vector, arguments)
        made.flags = tuple(f for f in call.flags if f != "tail")
        return made

    def _scaled(self, builder: Builder, call: I.CallBase, places: Iterable[int]) -> Value | None:
        operands = list(call.operands)
        for place in places:
            number = int_value(operands[place])
            type_ = operands[place].type
            many = const_int(type_, self._count)
            operands[place] = (
                builder.binary("mul", operands[place], many)
                if number is None
                else const_int(type_, number * self._count)
            )
        made = builder.insert(replace(call, operands=operands))
        return None if call.type == T.VOID else made
