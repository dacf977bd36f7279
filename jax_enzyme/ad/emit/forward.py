"""Forward mode: a function that computes the primal and one directional derivative side by side.

    before      %y = fmul double %x, %x               after       %y = fmul double %x, %x
                store double %y, ptr %p                           %t = fmul double %x.dot, %x
                                                                  %y.dot = fadd double %t, %t
                                                                  store double %y, ptr %p
                                                                  store double %y.dot, ptr %p.dot

Every pointer into shadowed memory travels with a pointer into its shadow; loads, stores, copies and allocations of
shadowed memory are done twice. A value without a tangent has tangent zero, proved by activity analysis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jax_enzyme.ad.emit.addresses import address_operands, byte_count, element_alignment, holds_address
from jax_enzyme.ad.emit.library import LibraryCalls, shadow_arguments
from jax_enzyme.ad.emit.partials import Partials, companion_in_sum, nonzero_partials, variables_of
from jax_enzyme.ad.facts.causes import ORIGIN
from jax_enzyme.ad.facts.copying import array_function, copied, extended
from jax_enzyme.ad.facts.errors import active_rule, refuse
from jax_enzyme.ad.facts.half_numbers import HalfWord, takes_half
from jax_enzyme.ad.facts.refusals import refuse_unprovable
from jax_enzyme.ad.facts.room import measured_memory, room
from jax_enzyme.analysis.activity import Activity
from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.memory import PointsTo, map_of
from jax_enzyme.analysis.objects import MemoryObject, call_effect, called_routine, is_defined_call
from jax_enzyme.analysis.shadows import shadowed_objects
from jax_enzyme.analysis.tbaa import READS_INTEGER, kept_access, number_access
from jax_enzyme.analysis.words import Words
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction, Buffer, Jvp, jvp_buffers
from jax_enzyme.ir.builder import Builder, const_int, zero
from jax_enzyme.ir.module import Function, GlobalVariable, Module, numbered
from jax_enzyme.ir.values import (
    BasicBlock,
    Constant,
    ConstantAggregate,
    ConstantExpr,
    ConstantInt,
    ConstantNull,
    ConstantSplat,
    GlobalValue,
    InlineAsm,
    Value,
    int_value,
)
from jax_enzyme.rules.blas.table import Routine
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.rules.effects import Effect
from jax_enzyme.rules.table import Rules

_PAGE = 4096
_LINEAR = frozenset(
    "select freeze extractvalue insertvalue extractelement insertelement shufflevector bitcast fpext fptrunc".split()
)


def forward(base: ArrayFunction, step: Jvp, rules: Rules, allocates: bool = True) -> ArrayFunction:
    """The forward derivative of an array function, as a new array function (see `ir.arrays` for its buffers). Where it
    `allocates` no memory itself, scratch buffers behind those are what more it needs.

    Raises DifferentiationError where a tangent would have to pass something that has no rule.
    """
    module = extended(base.module)
    root = module.functions[base.symbol]
    points_to = map_of(base)
    inputs = [points_to.objects[a] for a, given in zip(root.arguments, step.tangents, strict=True) if given]
    activity = Activity(points_to, rules, inputs, None)
    words = Words(points_to, dict(zip(root.arguments, base.buffers, strict=True)))
    refuse_unprovable(words, activity, rules)
    buffers = jvp_buffers(base.buffers, step)
    shared = _Shared(module, rules, points_to, activity)
    lone = [i for i, a in enumerate(root.arguments) if points_to.objects[a] in shared.shadowed]
    lone = [i for i in lone if not any(b.role == "tangent" and b.of == i for b in buffers)]
    count = len(base.buffers)
    if not allocates:
        buffers += tuple(_scratch(base.buffers[i], i) for i in lone)
    symbol = f"{base.symbol}.jvp"
    target = array_function(symbol, buffers)
    module.functions[symbol] = target
    shadows: dict[Value, Value] = {}
    for argument, buffer in zip(target.arguments[count:], buffers[count:], strict=True):
        shadows[root.arguments[buffer.of]] = argument
    primal: dict[Value, Value] = dict(zip(root.arguments, target.arguments, strict=False))
    emitter = _Emitter(shared, root, target, primal, shadows)
    tangents = zip(target.arguments[count:], buffers[count:], strict=True)
    emitter.results = [(a, b.nbytes) for a, b in tangents if b.is_result]
    for index in lone if allocates else ():
        emitter.zero_shadow(root.arguments[index], base.buffers[index].nbytes)
    emitter.run()
    return ArrayFunction(module, symbol, buffers)


def _scratch(buffer: Buffer, index: int) -> Buffer:
    """Memory for tangents of what is in a buffer: zero unless nothing is read there that has not been written."""
    is_tape = buffer.role == "tape"
    return replace(
        buffer, name=f"{buffer.name}_dot", io="scratch", role="tape", of=index, zero=not is_tape, discard=False
    )


class _Shared:
    """Facts and state of one differentiation that all its functions share."""

    def __init__(self, module: Module, rules: Rules, points_to: PointsTo, activity: Activity) -> None:
        self.module = module
        self.rules = rules
        self.points_to = points_to
        self.activity = activity
        self.shadowed: frozenset[MemoryObject] = shadowed_objects(points_to, activity)
        self.measured = measured_memory(points_to)
        self.layout = DataLayout(module)
        self.declarations = Declarations(module)
        self._derived: dict[Function, Function] = {}
        self._global_shadows: dict[GlobalVariable, GlobalVariable] = {}

    def needs_shadow(self, value: Value) -> bool:
        """A pointer that may point into shadowed memory."""
        return not self.shadowed.isdisjoint(self.points_to.of(value))

    def is_own_shadow(self, pointer: Value) -> bool:
        """A pointer into known memory that has no shadow: where a shadow of it is stored, it does as well itself. So
        does one from known memory in which no pointer was ever stored: it is null; and one that no run loads, from a
        member of a record at null."""
        objects = self.points_to.of(pointer)
        if not objects and isinstance(pointer, I.Load):
            if _is_near_null(pointer.operands[0]):
                return True
            objects = self.points_to.of(pointer.operands[0])
            return bool(objects) and self.points_to.unknown not in objects
        return bool(objects) and self.points_to.unknown not in objects and not self.needs_shadow(pointer)

    def carries(self, value: Value) -> bool:
        """Whether a value has a companion: a tangent, or a shadow pointer (also one that travels as an integer, or in a
        record)."""
        if T.is_pointer(value.type) or (value.type == T.I64 and self.needs_shadow(value)):
            return self.needs_shadow(value)
        return value in self.activity.varied or self.packs_shadow(value)

    def packs_shadow(self, value: Value) -> bool:
        """Whether a value is a record that has a pointer in it which has a shadow."""
        if not isinstance(value.type, T.StructType | T.ArrayType):
            return False
        return self.needs_shadow(value) and holds_address(self.layout, value.type)

    def global_shadow(self, variable: GlobalVariable) -> GlobalVariable:
        if variable not in self._global_shadows:
            name = f"{variable.name}.dot"
            while name in self.module.globals:  # in a second derivative, the first one's
                name += ".dot"
            type_ = variable.value_type
            shadow = GlobalVariable(variable.type, type_, None, variable.is_constant, ("internal",), name=name)
            self.module.globals[name] = shadow
            self._global_shadows[variable] = shadow
            shadow.initializer = zero(type_)
            if variable.initializer is not None:
                shadow.initializer = self.initial_shadow(variable.initializer)
        return self._global_shadows[variable]

    def initial_shadow(self, value: Constant) -> Constant:
        """The companion of a constant, and what the shadow of a variable starts with: addresses of shadows where that
        has addresses, and zeros."""
        match value:
            case ConstantAggregate():
                return replace(value, elements=[self.initial_shadow(v) for v in value.elements])
            case ConstantSplat():
                return replace(value, element=self.initial_shadow(value.element))
            case GlobalValue() | ConstantExpr():
                return self.constant_shadow(value)
            case _:
                return zero(value.type)

    def constant_shadow(self, value: Constant) -> Constant:
        """The shadow of a constant address, or of a record of addresses."""
        match value:
            case GlobalVariable() if self.needs_shadow(value):
                return self.global_shadow(value)
            case ConstantExpr():
                return replace(value, operands=[self.constant_shadow(v) for v in value.operands])
            case ConstantAggregate():
                return replace(value, elements=[self.constant_shadow(v) for v in value.elements])
            case ConstantSplat():
                return replace(value, element=self.constant_shadow(value.element))
            case _:
                return value

    def derived(self, source: Function) -> Function:
        """The forward derivative of an inner function: parameters and their companions in (and where it says that all
        tangents are lost, in a program that may lose them), both results out."""
        if source not in self._derived:
            extra = [a for a in source.arguments if self.carries(a)]
            types = [a.type for a in source.arguments] + [a.type for a in extra]
            types += [T.PTR] if self.activity.halves else []
            result = source.function_type.result
            both = self.returns_both(source)
            returned = T.StructType((result, result)) if both else result
            type_ = T.FunctionType(returned, tuple(types), source.function_type.variadic)
            arguments = numbered(types)
            name = f"{source.name}.jvp"
            target = Function(T.PTR, type_, arguments=arguments, prefix=("internal",), name=name)
            target.attributes = ("nounwind",)
            self._derived[source] = target
            self.module.functions[name] = target
            count = len(source.arguments)
            primal: dict[Value, Value] = dict(zip(source.arguments, arguments[:count], strict=True))
            companions: dict[Value, Value] = dict(zip(extra, arguments[count:], strict=False))
            lost = arguments[-1] if self.activity.halves else None
            _Emitter(self, source, target, primal, companions, lost).run()
        return self._derived[source]

    def returns_both(self, source: Function) -> bool:
        return any(map(self.carries, source.returned()))


class _Emitter:
    """Emits the derivative of one function, block by block; phis get their operands when all blocks are there."""

    def __init__(
        self,
        shared: _Shared,
        source: Function,
        target: Function,
        primal: dict[Value, Value],
        companions: dict[Value, Value],
        lost: Value | None = None,
    ) -> None:
        self.shared = shared
        self.source = source
        self.target = target
        self.primal: dict[Value, Value] = dict(primal)
        self.companions: dict[Value, Value] = dict(companions)
        # In reverse post-order a definition comes before its uses; blocks that are never reached are left out.
        self.blocks = {b: BasicBlock(name=b.name) for b in Cfg(source).rpo}
        self.prologue = BasicBlock(name="prologue")
        target.blocks = [self.prologue, *self.blocks.values()]
        self.builder = Builder(self.prologue)
        self.owned: list[Value] = []
        self.results: list[tuple[Value, int]] = []
        self._lost = lost
        self._phis: list[tuple[I.Phi, I.Phi, I.Phi | None]] = []

    def zero_shadow(self, argument: Value, nbytes: int) -> None:
        """A shadow of zeros for a buffer without tangent that shares pointers with one that has."""
        shadow = self._zeroed(ConstantInt(T.I64, max(nbytes, 1)))
        self.owned.append(shadow)
        self.companions[argument] = shadow

    def _zeroed(self, size: Value) -> Value:
        return self.shared.declarations.memory(self.builder, "calloc", size, ConstantInt(T.I64, 1))

    def run(self) -> None:
        if self.shared.activity.halves and self._lost is None:
            self._lost = self.builder.alloca(T.I64)
            self.builder.store(const_int(T.I64, 0), self._lost)
        for block in self.blocks:
            self.builder.block = self.blocks[block]
            for instruction in block.instructions:
                self._visit(instruction)
        Builder(self.prologue).br(self.blocks[self.source.entry])
        for phi, twin, companion in self._phis:
            incoming = [(v, self.blocks[b]) for v, b in phi.incoming if b in self.blocks]
            twin.operands, twin.targets = [self.value(v) for v, _ in incoming], [b for _, b in incoming]
            if companion is not None:
                companion.operands = [self._constant_companion(v) for v, _ in incoming]
                companion.targets = [b for _, b in incoming]

    def value(self, value: Value) -> Value:
        if isinstance(value, Constant | InlineAsm):
            return value
        return self.primal[value]

    def tangent(self, value: Value) -> Value | None:
        """The tangent of a value that is no pointer; None for zero."""
        return self.companions.get(value)

    def tangent_or_zero(self, value: Value) -> Value:
        found = self.companions.get(value)
        if found is None and isinstance(value, Constant):
            return self.shared.initial_shadow(value)
        return zero(value.type) if found is None else found

    def _constant_companion(self, value: Value) -> Value:
        """A companion that needs no emission at this place: of a constant, or one that exists."""
        return self.shadow(value) if T.is_pointer(value.type) else self.tangent_or_zero(value)

    def shadow(self, pointer: Value) -> Value:
        """The shadow of a pointer."""
        found = self.companions.get(pointer)
        if found is not None:
            return found
        match pointer:
            case Constant():
                return self.shared.constant_shadow(pointer)
            case _ if self.shared.is_own_shadow(pointer):
                return self.value(pointer)
            case I.Instruction():
                raise refuse(self.shared.module, pointer, ORIGIN)
            case _:
                raise AssertionError(f"no shadow for {pointer}")

    def _visit(self, instruction: I.Instruction) -> None:
        match instruction:
            case I.Phi():
                self._phi(instruction)
            case I.Return():
                self._return(instruction)
            case _ if is_defined_call(instruction):
                assert isinstance(instruction, I.CallBase)
                self._defined_call(instruction)
            case I.CallBase() if (routine := self._with_shadows(instruction)) is not None:
                self._routine(instruction, routine)
            case _:
                twin = copied(instruction, self.value, self.blocks.__getitem__)
                self.builder.insert(twin)
                self.primal[instruction] = twin
                self._companion(instruction, twin)
                twin.metadata += kept_access(self.shared.module, instruction)

    def _with_shadows(self, call: I.CallBase) -> Routine | None:
        """The routine that a call is of, if it has a derivative and is given what has a shadow, or other processes
        wait for its part of theirs."""
        routine = called_routine(call)
        if routine is None or not routine.is_active:
            return None
        if routine.communicates:
            return routine
        return routine if any(self.shared.needs_shadow(call.operands[i]) for i in routine.floats) else None

    def _phi(self, phi: I.Phi) -> None:
        twin = self.builder.phi(phi.type)
        twin.flags = phi.flags
        self.primal[phi] = twin
        companion = None
        if self.shared.carries(phi):
            companion = self.builder.phi(phi.type)
            self.companions[phi] = companion
        self._phis.append((phi, twin, companion))

    def _return(self, instruction: I.Return) -> None:
        self._lose()
        for pointer in self.owned:
            self.shared.declarations.memory(self.builder, "free", pointer)
        if not instruction.operands:
            self.builder.ret()
            return
        result = self.value(instruction.operands[0])
        if self.shared.returns_both(self.source) and self.source is not self.shared.points_to.root:
            companion = self._constant_companion(instruction.operands[0])
            type_ = T.StructType((result.type, result.type))
            pair = self.builder.insert_value(zero(type_), result, 0)
            result = self.builder.insert_value(pair, companion, 1)
        self.builder.ret(result)

    def _companion(self, instruction: I.Instruction, twin: I.Instruction) -> None:
        match instruction:
            case I.Store():
                self._store(instruction, twin)
            case I.Load():
                if self.shared.carries(instruction):
                    self._load(instruction, twin)
                elif instruction in self.shared.activity.halves:
                    self._check_half(instruction)
            case I.AtomicRMW() | I.CmpXchg():
                if self.shared.needs_shadow(instruction.operands[0]):
                    self._atomic(instruction)
            case I.CallBase():
                self._call(instruction, twin)
            case I.Alloca():
                if self.shared.needs_shadow(instruction):
                    self.companions[instruction] = self.builder.insert(copied(twin, lambda v: v, lambda b: b))
            case _:
                self._plain_companion(instruction, twin)

    def _plain_companion(self, instruction: I.Instruction, twin: I.Instruction) -> None:
        """Of an instruction that neither touches memory nor calls."""
        if T.is_pointer(instruction.type):
            if self.shared.needs_shadow(instruction):
                self._pointer(instruction, twin)
        elif instruction.type == T.I64 and self.shared.needs_shadow(instruction):
            self._address(instruction, twin)
        elif self.shared.carries(instruction):
            if instruction.opcode in _LINEAR:
                self._linear(instruction, twin)
            else:
                self._arithmetic(instruction)

    def _load(self, instruction: I.Load, twin: I.Instruction) -> None:
        load = copied(twin, lambda v: v, lambda b: b)
        assert isinstance(load, I.Load)
        load.operands = [self.shadow(instruction.operands[0])]
        load.align = element_alignment(load.type, instruction.align)
        load.metadata = kept_access(self.shared.module, instruction) or number_access(load.type)
        self.companions[instruction] = self.builder.insert(load)

    def _check_half(self, load: I.Load) -> None:
        """All tangents are lost where an integer is read that is a half of a number with one."""
        assert self._lost is not None
        found = HalfWord(self.builder, self.shadow(load.operands[0]), load.type).is_of_number()
        before = self.builder.load(T.I64, self._lost)
        assert isinstance(before, I.Load)
        before.metadata = [READS_INTEGER]
        self.builder.store(self.builder.select(found, const_int(T.I64, -1), before), self._lost)

    def _lose(self) -> None:
        """Fills the tangents of all results with NaN where they are lost: at the end of the kernel, which has them."""
        if self._lost is None or not self.results:
            return
        lost = self.builder.load(T.I64, self._lost)
        assert isinstance(lost, I.Load)
        lost.metadata = [READS_INTEGER]
        for pointer, size in self.results:
            length = self.builder.binary("and", lost, const_int(T.I64, size))
            self.shared.declarations.memory(self.builder, "memset", pointer, ConstantInt(T.I8, -1), length)

    def _store(self, instruction: I.Store, twin: I.Instruction) -> None:
        value, pointer = instruction.operands
        if not self.shared.needs_shadow(pointer):
            return
        if takes_half(self.shared.module, self.shared.activity, instruction, instruction):
            HalfWord(self.builder, self.shadow(pointer), value.type).overwrite_forward()
            return
        store = copied(twin, lambda v: v, lambda b: b)
        assert isinstance(store, I.Store)
        store.operands = [self._constant_companion(value), self.shadow(pointer)]
        store.align = element_alignment(value.type, instruction.align)
        store.metadata = kept_access(self.shared.module, instruction) or number_access(value.type)
        self.builder.insert(store)

    def _atomic(self, instruction: I.Instruction) -> None:
        if not isinstance(instruction, I.AtomicRMW) or not T.is_float(instruction.operands[1].type):
            return  # of integers: `refusals` has seen to it that they are no numbers' bits
        pointer, value = instruction.operands
        twin = copied(instruction, self.value, self.blocks.__getitem__)
        twin.operands = [self.shadow(pointer), self._constant_companion(value)]
        self.companions[instruction] = self.builder.insert(twin)

    def _pointer(self, instruction: I.Instruction, twin: I.Instruction) -> None:
        shadow = copied(twin, lambda v: v, lambda b: b)
        for index in address_operands(instruction):
            shadow.operands[index] = self.shadow(instruction.operands[index])
        self.companions[instruction] = self.builder.insert(shadow)

    def _address(self, instruction: I.Instruction, twin: I.Instruction) -> None:
        """Of a pointer that travels as an integer: the same over the shadows of the operands that carry one."""
        shadow = copied(twin, lambda v: v, lambda b: b)
        for index, operand in enumerate(instruction.operands):
            if self.shared.carries(operand) and not isinstance(operand, Constant):
                companion = self._constant_companion(operand)
                if isinstance(instruction, I.BinaryOp):
                    companion = companion_in_sum(self.builder, operand, self.value(operand), companion)
                shadow.operands[index] = companion
        self.companions[instruction] = self.builder.insert(shadow)

    def _linear(self, instruction: I.Instruction, twin: I.Instruction) -> None:
        tangent = copied(twin, lambda v: v, lambda b: b)
        tangent.flags = ()
        carried = {"select": (1, 2), "insertvalue": (0, 1), "insertelement": (0, 1), "shufflevector": (0, 1)}
        for index in carried.get(instruction.opcode, (0,)):
            tangent.operands[index] = self._constant_companion(instruction.operands[index])
        self.companions[instruction] = self.builder.insert(tangent)

    def _arithmetic(self, instruction: I.Instruction) -> None:
        rule = active_rule(self.shared.module, instruction, self.shared.rules)
        partials = Partials(self.builder, self.shared.declarations)
        environment = {name: self.value(v) for name, v in variables_of(instruction).items()}
        total: Value | None = None
        for index, partial in nonzero_partials(rule):
            tangent = self.tangent(instruction.operands[index])
            if tangent is not None:
                term = partials.scaled(partial, environment, tangent)
                total = partials.add(total, term)
        assert total is not None
        self.companions[instruction] = total

    def _defined_call(self, call: I.CallBase) -> None:
        callee = call.callee
        assert isinstance(callee, Function)
        relevant = [a for a in callee.arguments if self.shared.carries(a)]
        if not relevant and not self.shared.returns_both(callee):
            twin = copied(call, self.value, self.blocks.__getitem__)
            self.primal[call] = self.builder.insert(twin)
            return
        derived = self.shared.derived(callee)
        named = len(callee.arguments)
        given = [self.value(a) for a in call.arguments]
        companions = [
            self._constant_companion(argument)
            for parameter, argument in zip(callee.arguments, call.arguments[:named], strict=True)
            if parameter in relevant
        ]
        lost = [] if self._lost is None else [self._lost]
        result = self.builder.call(derived, [*given[:named], *companions, *lost, *given[named:]])
        if not self.shared.returns_both(callee):
            self.primal[call] = result
            return
        self.primal[call] = self.builder.extract_value(result, 0, call.type)
        if self.shared.carries(call):
            self.companions[call] = self.builder.extract_value(result, 1, call.type)

    def _routine(self, call: I.CallBase, routine: Routine) -> None:
        calls = LibraryCalls(self.shared.declarations)
        shadows = shadow_arguments(call, routine, self.shared.needs_shadow, self.shadow)
        result, tangent = calls.jvp(self.builder, call, routine, self.value, shadows)
        if result is not None and tangent is not None:
            self.primal[call] = result
            if call in self.shared.activity.varied:
                self.companions[call] = tangent
        elif T.is_int(call.type):
            self.primal[call] = zero(call.type)  # the rule has looked at it

    def _call(self, call: I.CallBase, twin: I.Instruction) -> None:
        effect = call_effect(call)
        match effect:
            case Effect.ALLOCATE if self.shared.points_to.objects.get(call) in self.shared.measured:
                if self.shared.needs_shadow(call):
                    self.companions[call] = self._zeroed(room(self.shared.declarations, self.builder, twin))
            case Effect.ALLOCATE | Effect.REALLOCATE if self.shared.needs_shadow(call):
                shadow = copied(twin, lambda v: v, lambda b: b)
                if effect is Effect.REALLOCATE:
                    shadow.operands[0] = self.shadow(call.operands[0])
                self.companions[call] = self.builder.insert(shadow)
            case Effect.FREE if self.shared.needs_shadow(call.operands[0]):
                shadow = copied(twin, lambda v: v, lambda b: b)
                shadow.operands[0] = self.shadow(call.operands[0])
                self.builder.insert(shadow)
            case Effect.MEMORY_SET if self.shared.needs_shadow(call.operands[0]):
                self._set_shadow(call.operands[0], call.operands[2])
            case Effect.MEMORY_COPY if self.shared.needs_shadow(call.operands[0]):
                if not self.shared.needs_shadow(call.operands[1]):
                    self._set_shadow(call.operands[0], call.operands[2])
                    return
                copy = copied(twin, lambda v: v, lambda b: b)
                copy.operands[:2] = [self.shadow(v) for v in call.operands[:2]]
                copy.metadata = kept_access(self.shared.module, call)
                self.builder.insert(copy)
            case Effect.SHUFFLE if call in self.shared.activity.varied:
                shuffled = copied(twin, lambda v: v, lambda b: b)
                shuffled.operands[1] = self.tangent_or_zero(call.operands[1])
                self.companions[call] = self.builder.insert(shuffled)
            case _ if call in self.shared.activity.varied:
                self._arithmetic(call)
            case None:
                self._check_unknown(call)
            case _:
                pass

    def _set_shadow(self, pointer: Value, size: Value) -> None:
        length = byte_count(self.builder, self.value(size))
        self.shared.declarations.memory(self.builder, "memset", self.shadow(pointer), ConstantInt(T.I8, 0), length)

    def _check_unknown(self, call: I.CallBase) -> None:
        """A call without a body may do anything with active data: without a rule it is refused."""
        if called_routine(call) is not None:
            return
        reached: Sequence[Value] = call.arguments
        if any(v in self.shared.activity.varied or self.shared.needs_shadow(v) for v in reached):
            active_rule(self.shared.module, call, self.shared.rules)


def _is_near_null(pointer: Value) -> bool:
    """Whether an address is a constant in the first page, which belongs to nobody."""
    if isinstance(pointer, ConstantExpr) and pointer.opcode == "inttoptr":
        at = int_value(pointer.operands[0])
        return at is not None and 0 <= at < _PAGE
    return isinstance(pointer, ConstantNull)
