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

from jax_enzyme.ad.emit.addresses import element_alignment
from jax_enzyme.ad.emit.cut_numbers import WholeNumbers
from jax_enzyme.ad.emit.library import LibraryCalls, shadow_arguments
from jax_enzyme.ad.emit.partials import Partials, nonzero_partials, variables_of
from jax_enzyme.ad.emit.runtime import load_integer
from jax_enzyme.ad.emit.shadows import ShadowedCopy, constant_shadow, holds_shadow
from jax_enzyme.ad.facts import tagged
from jax_enzyme.ad.facts.copying import array_function, internal_function
from jax_enzyme.ad.facts.cut_numbers import looked_at
from jax_enzyme.ad.facts.errors import active_rule
from jax_enzyme.ad.facts.functions import Facts
from jax_enzyme.ad.facts.half_numbers import HalfWord, takes_half
from jax_enzyme.ad.facts.refusals import memory_with_shadows, refuse_unprovable
from jax_enzyme.ad.facts.room import room
from jax_enzyme.analysis.activity import activity_of
from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.memory import map_of
from jax_enzyme.analysis.objects import MemoryObject, call_effect, called_routine, is_defined_call, is_of_its_kind
from jax_enzyme.analysis.tbaa import kept_access, number_access
from jax_enzyme.analysis.words import Words
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction, Buffer, Jvp, jvp_buffers
from jax_enzyme.ir.builder import Builder, const_int, zero
from jax_enzyme.ir.clone import with_room
from jax_enzyme.ir.marks import TOLD
from jax_enzyme.ir.module import Function, GlobalVariable, callee_name
from jax_enzyme.ir.values import BasicBlock, Constant, ConstantAggregate, ConstantInt, GlobalValue, Value
from jax_enzyme.rules.blas.table import Routine
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.rules.effects import Effect
from jax_enzyme.rules.table import Rules
from jax_enzyme.rules.user import names_inactive

_ALIGNED = 16
"""As much as any type of a local variable is, that does not say so."""
_LINEAR = frozenset(
    "select freeze extractvalue insertvalue extractelement insertelement shufflevector bitcast fpext fptrunc".split()
)


def forward(base: ArrayFunction, step: Jvp, rules: Rules, allocates: bool = True) -> ArrayFunction:
    """The forward derivative of an array function, as a new array function (see `ir.arrays` for its buffers). Where it
    `allocates` no memory itself, scratch buffers behind those are what more it needs.

    Raises DifferentiationError where a tangent would have to pass something that has no rule.
    """
    module = with_room(base.module)
    root = module.functions[base.symbol]
    points_to = map_of(base)
    activity = activity_of(points_to, rules, step, in_frames=base.is_derivative)
    words = Words(points_to, dict(zip(root.arguments, base.buffers, strict=True)))
    activity = refuse_unprovable(words, activity, rules)
    buffers = jvp_buffers(base.buffers, step)
    shadowed = memory_with_shadows(points_to, activity, frees_shadows=names_inactive(base.module))
    lone = [i for i, a in enumerate(root.arguments) if points_to.objects[a] in shadowed]
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
    may_fail = allocates and not base.is_derivative
    looks = looked_at(words, activity) if may_fail else frozenset[MemoryObject]()
    facts = Facts(module, rules, points_to, activity, shadowed, {}, frozenset(), looked_at=looks)
    emitter = _Emitter(_Shared(facts, words, may_fail=may_fail), root, primal, shadows)
    tangents = zip(target.arguments[count:], buffers[count:], strict=True)
    emitter.results = [(a, b.nbytes) for a, b in tangents if b.is_result]
    for index in lone if allocates else ():
        emitter.zero_shadow(root.arguments[index], base.buffers[index].nbytes)
    emitter.run(target)
    return ArrayFunction(module, symbol, buffers)


def _scratch(buffer: Buffer, index: int) -> Buffer:
    """Memory for tangents of what is in a buffer: zero unless nothing is read there that has not been written."""
    is_tape = buffer.role == "tape"
    return replace(
        buffer, name=f"{buffer.name}_dot", io="scratch", role="tape", of=index, zero=not is_tape, discard=False
    )


class _Shared:
    """Facts and state of one differentiation that all its functions share."""

    def __init__(self, facts: Facts, words: Words, *, may_fail: bool) -> None:
        self.facts = facts
        self.whole_numbers = WholeNumbers(facts.module, facts, words, is_off=not may_fail)
        self.module = facts.module
        self.layout = DataLayout(facts.module)
        self.declarations = Declarations(facts.module)
        self._derived: dict[Function, Function] = {}
        self._global_shadows: dict[GlobalVariable, GlobalVariable] = {}

    def carries(self, value: Value) -> bool:
        """Whether a value has a companion: a tangent, or a shadow (also of an address that travels as an integer, or in
        a record)."""
        varies = value in self.facts.activity.varied and not T.is_pointer(value.type)
        return varies or holds_shadow(self.facts, self.layout, value)

    def global_shadow(self, value: GlobalValue) -> Value:
        if not isinstance(value, GlobalVariable) or not self.facts.shadowed_memory(value):
            return value
        if value not in self._global_shadows:
            name = f"{value.name}.dot"
            while name in self.module.globals:  # in a second derivative, the first one's
                name += ".dot"
            type_ = value.value_type
            shadow = GlobalVariable(value.type, type_, None, value.is_constant, ("internal",), name=name)
            self.module.globals[name] = shadow
            self._global_shadows[value] = shadow
            shadow.initializer = zero(type_) if value.initializer is None else self.initial_shadow(value.initializer)
            if count := self.facts.behind(value):
                behind = zero(T.ArrayType(count, T.I8))
                shadow.value_type = T.StructType((type_, behind.type))
                shadow.initializer = ConstantAggregate(shadow.value_type, [shadow.initializer, behind])
        return self._global_shadows[value]

    def initial_shadow(self, value: Constant) -> Constant:
        """The companion of a constant, and what the shadow of a variable starts with: addresses of shadows where that
        has addresses, and zeros."""
        found = constant_shadow(value, self.global_shadow, Builder(BasicBlock()), lambda v: zero(v.type))
        assert isinstance(found, Constant)
        return found

    def derived(self, source: Function) -> Function:
        """The forward derivative of an inner function: parameters and their companions in (and where it says that all
        tangents are lost, in a program that may lose them), both results out."""
        if source not in self._derived:
            extra = [a for a in source.arguments if self.carries(a)]
            types = [a.type for a in (*source.arguments, *extra)]
            types += [T.PTR] if self.facts.activity.halves else []
            result = source.function_type.result
            returned = T.StructType((result, result)) if self.returns_both(source) else result
            type_ = T.FunctionType(returned, tuple(types), source.function_type.variadic)
            target = internal_function(self.module, f"{source.name}.jvp", type_)
            self._derived[source] = target
            count = len(source.arguments)
            companions: dict[Value, Value] = dict(zip(extra, target.arguments[count:], strict=False))
            lost = target.arguments[-1] if self.facts.activity.halves else None
            values: dict[Value, Value] = dict(zip(source.arguments, target.arguments, strict=False))
            _Emitter(self, source, values, companions, lost).run(target)
        return self._derived[source]

    def returns_both(self, source: Function) -> bool:
        return any(map(self.carries, source.returned()))


class _Emitter(ShadowedCopy):
    """Emits the derivative of one function. In reverse post-order a definition comes before its uses; blocks that are
    never reached are left out."""

    def __init__(
        self,
        shared: _Shared,
        source: Function,
        values: dict[Value, Value],
        companions: dict[Value, Value],
        lost: Value | None = None,
    ) -> None:
        super().__init__(shared.facts, shared.layout, Cfg(source).rpo, values, companions)
        self.shared = shared
        self.source = source
        self.owned: list[Value] = []
        self.results: list[tuple[Value, int]] = []
        self._lost = lost

    def zero_shadow(self, argument: Value, nbytes: int) -> None:
        """A shadow of zeros for a buffer without tangent that shares pointers with one that has."""
        shadow = self._zeroed(ConstantInt(T.I64, max(nbytes, 1) + self.facts.behind(argument)))
        self.owned.append(shadow)
        self.companions[argument] = shadow

    def _zeroed(self, size: Value) -> Value:
        return self.shared.declarations.memory(self.builder, "calloc", size, ConstantInt(T.I64, 1))

    def run(self, target: Function) -> None:
        """Fills in the derivative."""
        if self.facts.activity.halves and self._lost is None:
            self._lost = self.builder.alloca(T.I64)
            self.builder.store(const_int(T.I64, 0), self._lost)
        for block, twin in self.blocks.items():
            self.builder.block = twin
            for instruction in block.instructions:
                self._visit(instruction)
        self.finish(target)

    def carries(self, value: Value) -> bool:
        return self.shared.carries(value)

    def global_shadow(self, value: GlobalValue) -> Value:
        return self.shared.global_shadow(value)

    def is_own_shadow(self, pointer: Value) -> bool:
        """A pointer into known memory that has no shadow: where a shadow of it is stored, it does as well itself. So
        does one that is null in any case, and one from known memory in which no pointer was ever stored: null, or a
        mark."""
        points_to = self.facts.points_to
        objects = points_to.of(pointer)
        if objects:
            return points_to.unknown not in objects and not self.facts.shadowed_memory(pointer)
        if isinstance(pointer, I.Load):
            kept_in = points_to.of(pointer.operands[0])
            if kept_in and points_to.unknown not in kept_in:
                return True
        return self.facts.zeros.is_null(pointer)

    def companion(self, value: Value) -> Value:
        if T.is_pointer(value.type):
            return self.shadow(value)
        found = self.companions.get(value)
        if found is None and isinstance(value, Constant):
            return self.shared.initial_shadow(value)
        return zero(value.type) if found is None else found

    def _visit(self, instruction: I.Instruction) -> None:
        match instruction:
            case I.Phi():
                self.merge(instruction)
            case I.Return():
                self._return(instruction)
            case _ if is_defined_call(instruction):
                assert isinstance(instruction, I.CallBase)
                self._defined_call(instruction)
            case I.CallBase() if (routine := self._with_shadows(instruction)) is not None:
                self._routine(instruction, routine)
            case _:
                twin = self.twin(instruction)
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
        return routine if any(self.facts.shadowed_memory(call.operands[i]) for i in routine.floats) else None

    def _return(self, instruction: I.Return) -> None:
        self._lose()
        for pointer in self.owned:
            self.shared.declarations.memory(self.builder, "free", pointer)
        if not instruction.operands:
            self.builder.ret()
            return
        result = self.value(instruction.operands[0])
        if self.shared.returns_both(self.source) and self.source is not self.facts.points_to.root:
            both = (result, self.companion(instruction.operands[0]))
            result = self.builder.pack(T.StructType((result.type, result.type)), both)
        self.builder.ret(result)

    def _companion(self, instruction: I.Instruction, twin: I.Instruction) -> None:
        match instruction:
            case I.Store():
                self._store(instruction, twin)
            case I.Load():
                if self.carries(instruction) and self.facts.half_beside(instruction):
                    half = HalfWord(self.builder, self.shadow(instruction.operands[0]), instruction.type)
                    self.companions[instruction] = half.tangent(instruction.type)
                elif self.carries(instruction):
                    self._access(instruction, twin)
                elif instruction in self.facts.activity.halves:
                    self._check_half(instruction)
            case I.AtomicRMW() | I.CmpXchg():
                # Those of integers: `refusals` has seen to it that they are no numbers' bits.
                is_number = isinstance(instruction, I.AtomicRMW) and T.is_float(instruction.type)
                if is_number and self.facts.shadowed_memory(instruction.operands[0]):
                    self.beside(instruction, twin, range(2))
            case I.CallBase():
                self._call(instruction, twin)
            case I.Alloca() if self.facts.shadowed_memory(instruction):
                self._local(instruction, twin)
            case I.Alloca():
                pass
            case _:
                self._plain_companion(instruction, twin)

    def _plain_companion(self, instruction: I.Instruction, twin: I.Instruction) -> None:
        """Of an instruction that neither touches memory nor calls."""
        if instruction in self.facts.compared:
            self.compare_distances(self.shared.module, instruction)
        holds = T.is_pointer(instruction.type) or instruction.type == T.I64
        if holds and self.facts.shadowed_memory(instruction):
            self.address(instruction, twin)
        elif self.carries(instruction):
            if instruction in self.facts.activity.tagged and instruction.opcode not in _LINEAR:
                given = [t for v in instruction.operands if (t := self.companions.get(v)) is not None]
                self.companions[instruction] = tagged.tangent(self.builder, instruction.type, given)
            elif instruction.opcode in _LINEAR:
                self._linear(instruction, twin)
            else:
                self._arithmetic(instruction)

    def _access(self, instruction: I.Load | I.Store, twin: I.Instruction) -> None:
        access = self.beside(instruction, twin, range(len(instruction.operands)))
        assert isinstance(access, I.Load | I.Store)
        type_ = I.accessed_value(instruction).type
        access.align = element_alignment(type_, instruction.align)
        access.metadata = kept_access(self.shared.module, instruction) or number_access(type_)

    def _check_half(self, load: I.Load) -> None:
        """All tangents are lost where an integer is read that is a half of a number with one."""
        assert self._lost is not None
        found = HalfWord(self.builder, self.shadow(load.operands[0]), load.type).is_of_number()
        before = load_integer(self.builder, self._lost)
        self.builder.store(self.builder.select(found, const_int(T.I64, -1), before), self._lost)

    def _lose(self) -> None:
        """Fills the tangents of all results with NaN where they are lost: at the end of the kernel, which has them."""
        if self._lost is None or not self.results:
            return
        lost = load_integer(self.builder, self._lost)
        for pointer, size in self.results:
            length = self.builder.binary("and", lost, const_int(T.I64, size))
            self.shared.declarations.memory(self.builder, "memset", pointer, ConstantInt(T.I8, -1), length)

    def _store(self, instruction: I.Store, twin: I.Instruction) -> None:
        value, pointer = instruction.operands
        if not self.facts.shadowed_memory(pointer):
            return
        if takes_half(self.shared.module, self.facts.activity, instruction, instruction):
            HalfWord(self.builder, self.shadow(pointer), value.type).overwrite_forward()
            return
        self._access(instruction, twin)

    def _linear(self, instruction: I.Instruction, twin: I.Instruction) -> None:
        carried = {"select": (1, 2), "insertvalue": (0, 1), "insertelement": (0, 1), "shufflevector": (0, 1)}
        self.beside(instruction, twin, carried.get(instruction.opcode, (0,))).flags = ()

    def _arithmetic(self, instruction: I.Instruction) -> None:
        rule = active_rule(self.shared.module, instruction, self.facts.rules)
        partials = Partials(self.builder, self.shared.declarations)
        environment = {name: self.value(v) for name, v in variables_of(instruction).items()}
        total: Value | None = None
        for index, partial in nonzero_partials(rule):
            tangent = self.companions.get(instruction.operands[index])
            if tangent is not None:
                term = partials.scaled(partial, environment, tangent)
                total = partials.add(total, term)
        assert total is not None
        self.companions[instruction] = total

    def _defined_call(self, call: I.CallBase) -> None:
        callee = call.callee
        assert isinstance(callee, Function)
        relevant = [a for a in callee.arguments if self.carries(a)]
        both = self.shared.returns_both(callee)
        if not relevant and not both:
            self.twin(call)
            return
        lost = [] if self._lost is None else [self._lost]
        result = self.builder.call(self.shared.derived(callee), self.arguments(call, relevant, *lost))
        self.values[call] = self.builder.extract_value(result, 0, call.type) if both else result
        if both and self.carries(call):
            self.companions[call] = self.builder.extract_value(result, 1, call.type)

    def _routine(self, call: I.CallBase, routine: Routine) -> None:
        calls = LibraryCalls(self.shared.declarations)
        shadows = shadow_arguments(call, routine, self.facts.shadowed_memory, self.shadow)
        result, tangent = calls.jvp(self.builder, call, routine, self.value, shadows)
        if result is not None:
            self.values[call] = result
            if call in self.facts.activity.varied:
                self.companions[call] = tangent
        elif T.is_int(call.type):
            self.values[call] = zero(call.type)  # the rule has looked at it

    def _call(self, call: I.CallBase, twin: I.Instruction) -> None:
        effect = call_effect(call)
        match effect:
            case Effect.ALLOCATE | Effect.REALLOCATE if self.facts.shadowed_memory(call):
                self._allocated(call, twin, effect)
            case Effect.FREE if self.facts.shadowed_memory(call.operands[0]):
                self.beside(call, twin, range(1))
            case Effect.MEMORY_SET if self.facts.shadowed_memory(call.operands[0]):
                self._set_shadow(call)
            case Effect.MEMORY_COPY if self.facts.shadowed_memory(call.operands[0]):
                if not self.facts.shadowed_memory(call.operands[1]):
                    self._set_shadow(call)
                    return
                self._copy_tangents(call, twin)
            case Effect.SHUFFLE if call in self.facts.activity.varied:
                self.beside(call, twin, (1,))
            case Effect.PURE_INT if is_of_its_kind(call) and call in self.facts.activity.varied:
                self.companions[call] = tagged.of_its_kind(self.builder, call.type, self.value(call.operands[1]))
            case _ if call in self.facts.activity.varied:
                self._arithmetic(call)
            case None:
                self._check_unknown(call)
            case _:
                pass

    def _local(self, alloca: I.Alloca, twin: I.Instruction) -> None:
        """The shadow of a local variable."""
        if behind := self.facts.behind(alloca):
            size = self.builder.binary("add", self.local_size(alloca), ConstantInt(T.I64, behind))
            self.companions[alloca] = self.builder.alloca(T.I8, size, alloca.align or _ALIGNED)
            self._clear(self.companions[alloca], size)
            return
        shadow = self.beside(alloca, twin)
        if self.facts.activity.keeps_halves(alloca):  # words are read whole around integers
            self._clear(shadow, self.local_size(alloca))

    def _allocated(self, call: I.CallBase, twin: I.Instruction, effect: Effect) -> None:
        """The shadow of new memory."""
        declarations = self.shared.declarations
        if (behind := self.facts.behind(call)) and effect is Effect.ALLOCATE:
            asked = room(declarations, self.builder, twin)
            size = self.builder.binary("add", asked, ConstantInt(T.I64, behind))
            aligned = [self.value(call.arguments[0])] if callee_name(call) == "aligned_alloc" else []
            name = "aligned_alloc" if aligned else "malloc"
            self.companions[call] = declarations.memory(self.builder, name, *aligned, size)
            self._clear(self.companions[call], size)
        elif self._in_whole_words(call) and effect is Effect.ALLOCATE:
            self.companions[call] = self._zeroed(room(declarations, self.builder, twin))
        else:
            self.beside(call, twin, range(effect is Effect.REALLOCATE))

    def _in_whole_words(self, call: I.CallBase) -> bool:
        """Whether of new memory also that is used which nobody asked for: by the kernel, or around its last integer."""
        return self.facts.points_to.objects.get(call) in self.facts.measured or self.facts.activity.keeps_halves(call)

    def _set_shadow(self, call: I.CallBase) -> None:
        """What is cleared, or copied from where no tangents are, has none."""
        shadow, length = self.shadow(call.operands[0]), self.builder.wide(self.value(call.operands[2]))
        self._clear(shadow, length)
        whole_numbers = self.shared.whole_numbers
        if (layout := whole_numbers.layout(call)) is not None:
            whole_numbers.check_tangents(self.builder, call, layout, [shadow], length, const_int(T.I1, 1))

    def _copy_tangents(self, call: I.CallBase, twin: I.Instruction) -> None:
        layout, whole_numbers = self.shared.whole_numbers.layout(call), self.shared.whole_numbers
        length = self.builder.wide(self.value(call.operands[2]))
        shadows = [self.shadow(pointer) for pointer in call.operands[:2]]
        no_parts = None if layout is None else whole_numbers.has_no_parts(self.builder, layout, shadows, length)
        if no_parts is not None and any(o.kind == "stream" for o in self.facts.points_to.of(call.operands[1])):
            lent = self.builder.icmp("eq", shadows[1], self.value(call.operands[1]))  # by the system: its own shadow
            no_parts = self.builder.binary("or", no_parts, lent)
        copy = self.beside(call, twin, range(2))
        # Of tangents the table of kinds knows nothing.
        copy.metadata = [(kind, node) for kind, node in kept_access(self.shared.module, call) if kind != TOLD]
        if layout is not None and no_parts is not None:
            whole_numbers.check_tangents(self.builder, call, layout, shadows, length, no_parts)

    def _clear(self, shadow: Value, size: Value) -> None:
        self.shared.declarations.memory(self.builder, "memset", shadow, ConstantInt(T.I8, 0), size)

    def _check_unknown(self, call: I.CallBase) -> None:
        """A call without a body may do anything with active data: without a rule it is refused."""
        if called_routine(call) is not None:
            return
        reached: Sequence[Value] = call.arguments
        if any(v in self.facts.activity.varied or self.facts.shadowed_memory(v) for v in reached):
            active_rule(self.shared.module, call, self.facts.rules)
