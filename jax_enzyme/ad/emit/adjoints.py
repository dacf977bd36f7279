"""The reverse of one instruction: from the cotangent of its result to those of its operands.

    forward   %y = fmul double %x, %w            reverse   %ybar = load, then zero, the adjoint of %y
                                                           adjoint of %x += %ybar * %w
                                                           adjoint of %w += %ybar * %x
    forward   %x = load double, ptr %p           reverse   *%p.shadow += adjoint of %x
    forward   store double %x, ptr %p            reverse   adjoint of %x += *%p.shadow; *%p.shadow = 0

The adjoint of an SSA value that is used in its own block alone is a sum of values of the reverse block. Any other is a
stack variable of the reverse function, zero at its start and whenever the value's definition has been reversed; a block
reads and writes it once, and the optimiser turns it into a register.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from jax_enzyme.ad.emit import kinds
from jax_enzyme.ad.emit.addresses import element_alignment, load_number, store_number
from jax_enzyme.ad.emit.copies import is_array, is_freed_next, numbers_in
from jax_enzyme.ad.emit.cut_numbers import WholeNumbers
from jax_enzyme.ad.emit.dropped import unless_spoilt
from jax_enzyme.ad.emit.late_sums import LateSums
from jax_enzyme.ad.emit.library import LibraryCalls
from jax_enzyme.ad.emit.lookup import Sources
from jax_enzyme.ad.emit.partials import Partials, added, nonzero_partials, variables_of
from jax_enzyme.ad.emit.runtime import Runtime
from jax_enzyme.ad.facts import tagged
from jax_enzyme.ad.facts.causes import MIXED_COPY, NARROW, RELOADED, SHARED_ORDER
from jax_enzyme.ad.facts.errors import active_rule
from jax_enzyme.ad.facts.functions import ALONE, Site
from jax_enzyme.ad.facts.half_numbers import HalfWord, lasting, takes_half
from jax_enzyme.ad.facts.one_plane import own_texts
from jax_enzyme.ad.plan.work import Work
from jax_enzyme.analysis.flow import rule_of
from jax_enzyme.analysis.objects import call_effect, called_routine, is_defined_call, is_of_its_kind
from jax_enzyme.analysis.tbaa import copied_type
from jax_enzyme.classes import replace
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int, zero
from jax_enzyme.ir.marks import is_told
from jax_enzyme.ir.module import Function, callee_name
from jax_enzyme.ir.values import BasicBlock, Constant, Value
from jax_enzyme.remembered import remembered
from jax_enzyme.rules.blas.table import Result
from jax_enzyme.rules.effects import Effect
from jax_enzyme.rules.expr import Call, Expr, Var, variables_beside
from jax_enzyme.rules.rule import Kind

Pulled = Callable[[I.CallBase, Value, Value | None], list[tuple[int, Value]]]


class Adjoints:
    """Adjoint variables, and the reverse of each instruction. `prologue` builds where the variables are made; `pulled`
    emits the reverse of a call of an inner routine, from its frame and the adjoint of its result, and returns adjoints
    with the numbers of the arguments that they belong to."""

    def __init__(self, work: Work, sources: Sources, prologue: Builder, runtime: Runtime, pulled: Pulled) -> None:
        self._pulled = pulled
        self._code = work.code
        self._facts = work.facts
        self._sources = sources
        self._builder = sources.builder
        self._prologue = prologue
        self._partials = Partials(self._builder, runtime.declarations)
        self._runtime = runtime
        is_off = self._facts.execution is not ALONE or self._facts.has_frames
        self._whole_numbers = WholeNumbers(runtime.module, self._facts, runtime.words, is_off)
        self._site = Site(runtime.module, self._facts, self._builder, sources.value)
        self._sums = self._facts.execution.sums(self._site, prologue)
        self._within_block = work.within_block
        self._spent = work.spent
        self._updates = work.updates
        self.late_sums = LateSums(work.late_sums, sources, prologue, runtime)
        self.cotangents: dict[Value, I.Store] = {}
        self._sums_here: dict[Value, Value] = {}
        self._called: dict[tuple[str | Value, ...], I.CallBase] = {}

    def is_active(self, value: Value) -> bool:
        return not isinstance(value, Constant) and self._facts.activity.value(value)

    def take(self, value: Value) -> Value:
        """The adjoint of a value, which is zero from now on."""
        known = self._sums_here.pop(value, None)
        type_ = self._type(value)
        if value in self._within_block:
            return zero(type_) if known is None else known
        variable = self._variable(value)
        adjoint = self._builder.load(type_, variable) if known is None else known
        self._builder.store(zero(type_), variable)
        return adjoint

    def finish(self) -> None:
        """Emits what is left to do when everything has been reversed."""
        self._sums.finish(self._sources.shadow)

    def add(self, value: Value, term: Value) -> None:
        """Adds to the adjoint of a value, if the value is active."""
        if not self.is_active(value):
            return
        old = self._sums_here.get(value)
        if old is None and value not in self._within_block:
            old = self._builder.load(term.type, self._variable(value))
        self._sums_here[value] = self._added(old, term)

    def _added(self, old: Value | None, term: Value) -> Value:
        if old is None or term.type != T.DOUBLE or not self._facts.activity.beside:
            return self._partials.add(old, term)
        return self._builder.call(self._runtime.join(), [old, term])

    def enter_block(self, block: BasicBlock) -> None:
        """Notes which functions of what a block calls itself: the partial of a sine is the cosine beside it."""
        facts = self._facts
        self._called = {}
        for call in block.instructions:
            if isinstance(call, I.CallBase) and T.is_float(call.type):
                rule = rule_of(facts.origin.get(call, call), facts.rules)
                if rule is not None and rule.kind is Kind.SMOOTH:
                    self._called.setdefault((rule.name, *call.arguments), call)

    def leave_block(self) -> None:
        """Writes the variables that have been added to, before control goes on to another block."""
        for value, total in self._sums_here.items():
            if value not in self._within_block:
                self._builder.store(total, self._variable(value))
        self._sums_here = {v: total for v, total in self._sums_here.items() if v in self._within_block}

    def reverse(self, instruction: I.Instruction) -> None:
        """Emits the reverse of an instruction that has one and is no phi."""
        match instruction:
            case I.Load() if instruction in self._facts.activity.halves:
                shadow = self._sources.shadow(instruction.operands[0])
                HalfWord(self._builder, shadow, instruction.type).read_backward()
            case I.Load() if self._facts.half_beside(instruction):
                shadow, adjoint = self._sources.shadow(instruction.operands[0]), self.take(instruction)
                varies = self._builder.fcmp("une", adjoint, zero(adjoint.type))
                HalfWord(self._builder, shadow, instruction.type).read_backward(varies)
            case I.Load():
                self._load(instruction)
            case I.Store():
                self._store(instruction)
            case I.CallBase():
                self._call(instruction)
            case I.AtomicRMW():
                self._atomic(instruction)
            case _:
                structural = self._structural(instruction)
                if structural is not None:
                    structural(instruction, self.take(instruction))
                else:
                    self._arithmetic(instruction)

    # -- adjoint variables ---------------------------------------------------------------------------------------------

    def _type(self, value: Value) -> T.Type:
        """An integer that carries the bits of a number has that number's adjoint; a narrow one in a tagged union, or
        that is computed of such a one, that of a `float`."""
        match value.type:
            case T.IntType(64):
                return T.DOUBLE
            case T.IntType(32):
                return T.FLOAT
            case T.IntType() if self._is_narrow(value):
                return T.FLOAT
            case T.IntType() | T.VectorType(_, T.IntType()):
                assert isinstance(value, I.Instruction)
                raise self._facts.refused(value, NARROW)
            case other:
                return other

    def _is_narrow(self, value: Value) -> bool:
        activity = self._facts.activity
        return value in activity.tagged or value in activity.beside or is_of_its_kind(value)

    def _check_bits(self, load: I.Instruction) -> None:
        """An integer load that carries a number is of memory that holds numbers of its size. (In memory of mixed
        records it may also be of an integer member, whose shadow is zero.)"""
        held = {k for o in self._facts.points_to.of(load.operands[0]) for k in self._runtime.words.of(o)}
        if self._type(load) not in held:
            raise self._facts.refused(load, RELOADED)

    @remembered
    def _variable(self, value: Value) -> Value:
        type_ = self._type(value)
        variable = self._prologue.alloca(type_)
        self._prologue.store(zero(type_), variable)
        return variable

    # -- memory --------------------------------------------------------------------------------------------------------

    def _load(self, instruction: I.Load) -> None:
        if T.is_int(instruction.type):
            self._check_bits(instruction)
        if instruction in self.late_sums.loads:
            self.late_sums.keep(instruction, self.take(instruction))
            return
        pointer = self._sources.shadow(instruction.operands[0])
        adjoint = self.take(instruction)
        if T.is_int(instruction.type) and self._facts.tells_kinds(instruction.operands[0]):
            kinds.note_word(self._runtime.declarations, self._builder, pointer, adjoint)
        align = element_alignment(adjoint.type, instruction.align)
        if instruction in self._updates:
            store_number(self._builder, adjoint, pointer, align)
            return
        if self._sums.add(instruction, pointer, adjoint):
            return
        old = load_number(self._builder, adjoint.type, pointer, align)
        store_number(self._builder, self._added(old, adjoint), pointer, align)

    def _store(self, instruction: I.Store) -> None:
        value, target = instruction.operands
        inert = T.is_int(value.type) and not self.is_active(value) and not isinstance(value, Constant)
        if inert and not self._facts.ends_number(instruction):
            return  # it lies beside the numbers of a record: its shadow is zero
        pointer = self._sources.shadow(target)
        if takes_half(self._facts.module, self._facts.activity, instruction, self._original(instruction)):
            HalfWord(self._builder, pointer, value.type).overwrite_backward()
            return
        type_ = self._type(value) if T.is_int(value.type) and self.is_active(value) else value.type
        align = element_alignment(type_, instruction.align)
        adjoint = load_number(self._builder, type_, pointer, align) if self.is_active(value) else None
        if adjoint is not None:
            self.cotangents[adjoint] = instruction
        kept = instruction in self._spent or instruction in self._updates
        if not kept and not self._facts.execution.takes_once(self._facts, instruction):
            store_number(self._builder, zero(type_), pointer, align)
        if adjoint is not None:
            self.add(value, adjoint)

    def _original(self, instruction: I.Instruction) -> I.Instruction:
        return self._facts.origin.get(instruction, instruction)

    def _atomic(self, instruction: I.AtomicRMW) -> None:
        """`old = *p; *p = old + v`, or `old - v`, or `v`. Where other threads do the same at the same time, and nobody
        looks at the old value, the order does not matter and the shadow stays."""
        pointer, value = instruction.operands
        shadow = self._sources.shadow(pointer)
        after = self._builder.load(value.type, shadow)
        if any(map(self._facts.execution.shares, self._facts.points_to.of(pointer))):
            if self.is_active(instruction) or instruction.operation == "xchg":
                raise self._facts.refused(instruction, SHARED_ORDER)
            self.add(value, self._builder.unary("fneg", after) if instruction.operation == "fsub" else after)
            return
        old = self.take(instruction) if self.is_active(instruction) else zero(value.type)
        before = old
        if instruction.operation != "xchg":
            before = added(self._builder, after, old)
        self._builder.store(before, shadow)
        self.add(value, self._builder.unary("fneg", after) if instruction.operation == "fsub" else after)

    def _call(self, call: I.CallBase) -> None:
        if is_defined_call(call):
            frame = self._sources.forward_pointer(call, "frame")
            adjoint = self.take(call) if self.is_active(call) else None
            for index, part in self._pulled(call, frame, adjoint):
                self.add(call.operands[index], part)
            return
        routine = called_routine(call)
        if routine is not None:
            frame = self._sources.forward_pointer(call, "frame")
            adjoint = None
            if routine.result is Result.NUMBER:
                adjoint = self.take(call) if self.is_active(call) else zero(call.type)
            LibraryCalls(self._runtime.declarations).reverse(self._builder, routine, frame, adjoint)
            return
        match call_effect(call):
            case Effect.MEMORY_SET if call in self._spent:
                pass
            case Effect.MEMORY_SET:
                self._clear(call, self._sources.shadow(call.operands[0]), self._length(call))
            case Effect.MEMORY_COPY:
                self._facts.execution.check_copy(call, self._facts)
                self._copy(call)
            case Effect.BARRIER | Effect.VOTE:
                self._facts.execution.meet(self._site, call)
            case _ if is_of_its_kind(call):
                self._of_its_kind(call)
            case Effect.SHUFFLE:
                back = self._facts.execution.shuffled_back(self._site, call, self.take(call))
                self.add(call.operands[1], back)
            case _:
                self._arithmetic(call)

    def _of_its_kind(self, call: I.CallBase) -> None:
        """Of an integer nothing goes on, but that it was none."""
        load, is_own = call.operands[0], self._sources.value(call.operands[1])
        assert isinstance(load, I.Load)
        adjoint = self._whole_numbers.of_its_kind(self._builder, call, is_own, self.take(call))
        if T.is_float(call.type):
            if self.is_active(load) and self._facts.tells_kinds(load.operands[0]):
                shadow = self._sources.shadow(load.operands[0])
                kinds.note(self._runtime.declarations, self._builder, shadow, adjoint.type, is_own)
            self.add(load, adjoint)
        elif self.is_active(load) and call.type in (T.I32, T.I64):
            own = self._builder.icmp("ne", is_own, zero(is_own.type))
            self.add(load, self._builder.select(own, zero(adjoint.type), adjoint))

    def _length(self, call: I.CallBase) -> Value:
        return self._builder.wide(self._sources.value(call.operands[2]))

    def _copy(self, call: I.CallBase) -> None:
        if copied_type(self._facts.module, call) == T.I1:
            return
        target, source = call.operands[:2]
        length = self._length(call)
        to = self._sources.shadow(target)
        if not self._facts.shadowed_memory(source):
            self._clear(call, to, length)
            return
        if is_told(call):
            there, here = (kinds.held(self._runtime.words, self._facts.points_to.of(p)) for p in (target, source))
            copy = kinds.copy_adjoint(self._runtime.module, there or here)
            self._builder.call(copy, [to, self._sources.shadow(source), length, const_int(T.I64, there)])
            return
        adjoint = self._copy_adjoint(call)
        if adjoint is not None:
            at = self._sources.shadow(source)
            texts = own_texts(self._facts.points_to, self._facts.shadowed, source)
            given = [(self._sources.shadow(text), size) for text, size in texts]
            length = self._runtime.apart_from_texts(self._builder, to, at, given, length)
            self._whole_numbers.check_adjoints(self._builder, call, [to, at], length)
            self._builder.call(adjoint, [to, at, length])

    def _clear(self, call: I.CallBase, shadow: Value, length: Value) -> None:
        self._whole_numbers.check_adjoints(self._builder, call, [shadow], length)
        self._runtime.clear(self._builder, shadow, length)

    def _copy_adjoint(self, call: I.CallBase) -> Function | None:
        """The function that is the adjoint of a copy: of numbers of one kind, of records, or of whatever is moved away;
        None where no number is copied."""
        alone = copied_type(self._facts.module, call)
        if isinstance(alone, T.FloatType):
            return self._numbers_adjoint(alone, call)
        target, source = call.operands[:2]
        objects = self._facts.points_to.of(target) | self._facts.points_to.of(source)
        found = {k for o in objects for k in self._runtime.words.of(o)}
        pointers = any(self._facts.points_to.contents[o] for o in objects)
        words = self._runtime.words
        kind = next(iter(found)) if len(found) == 1 else None
        if kind is not None and not pointers and is_array(words, call, kind):
            return self._numbers_adjoint(kind, call)
        pattern = numbers_in(words, target, source, call.operands[2]) if found else None
        if pattern is None and is_freed_next(call, self._facts.points_to):
            return self._runtime.move_adjoint()
        if pattern is None and kind is not None and words.are_aligned(kind):
            return self._runtime.aligned_copy_adjoint(kind, self._has_codes(kind))
        if pattern is None:
            held = ", ".join(sorted(str(k) for k in found)) or "numbers of unknown type"
            held += " and pointers" if pointers else ""
            raise self._facts.refused(call, MIXED_COPY, held=held)
        pattern = replace(pattern, joined=bool(self._facts.activity.beside))
        return self._runtime.helper(pattern.name, pattern.text()) if pattern.pieces else None

    def _numbers_adjoint(self, kind: T.FloatType, call: I.CallBase) -> Function:
        return self._runtime.copy_adjoint(kind, self._has_codes(kind), callee_name(call).startswith("llvm.memcpy."))

    def _has_codes(self, kind: T.FloatType) -> bool:
        return kind == T.DOUBLE and self._facts.activity.has_codes

    # -- arithmetic ----------------------------------------------------------------------------------------------------

    def _arithmetic(self, instruction: I.Instruction) -> None:
        if instruction in self._facts.activity.tagged:
            after = self.take(instruction)
            for operand in filter(self.is_active, instruction.operands):
                self.add(operand, tagged.adjoint(self._builder, self._type(operand), after))
            return
        rule = active_rule(self._facts.module, self._facts.origin.get(instruction, instruction), self._facts.rules)
        names = variables_of(instruction)
        adjoint = self.take(instruction)
        if self._facts.activity.beside and T.scalar(adjoint.type) == T.DOUBLE:
            adjoint = lasting(self._builder, adjoint)
        quotients: dict[tuple[Value, Value], Value] = {}
        for index, partial in nonzero_partials(rule):
            operand = instruction.operands[index]
            if not self.is_active(operand):
                continue
            called: dict[Expr, I.CallBase] = {
                c: self._called[key] for c in partial.calls if (key := _key(c, names)) in self._called
            }
            needed = sorted(variables_beside(partial, called))
            environment = {name: self._sources.value(names[name]) for name in needed}
            known: dict[Expr, Value] = {part: self._sources.value(call) for part, call in called.items()}
            term = self._partials.scaled(partial, environment, adjoint, known, quotients)
            if (environment or known) and self._facts.may_be_dropped(instruction):
                factor = partial.name if isinstance(partial, Var) else None
                fixed = environment[factor] if factor and self._is_fixed(names[factor], instruction) else None
                held = names[factor] if factor else instruction
                term = unless_spoilt(self._builder, term, adjoint, fixed, self._facts.may_go(instruction, held))
            self.add(operand, term)

    def _is_fixed(self, value: Value, instruction: I.Instruction) -> bool:
        """Whether a value comes from outside of the innermost loop around an instruction."""
        home = self._code.loops.home
        loop = self._code.loop_of(home[instruction][0])
        inside = loop is not None and isinstance(value, I.Instruction) and value in home and home[value][0] in loop
        return loop is not None and not inside

    def _structural(self, instruction: I.Instruction) -> Callable[[I.Instruction, Value], None] | None:
        return {
            "select": self._select,
            "freeze": lambda i, a: self.add(i.operands[0], a),
            "fpext": lambda i, a: self._converted(i, a, "fptrunc"),
            "fptrunc": lambda i, a: self._converted(i, a, "fpext"),
            "bitcast": self._bitcast,
            "extractvalue": self._taken_out,
            "insertvalue": self._put_in,
            "extractelement": self._taken_out,
            "insertelement": self._put_in,
            "shufflevector": self._shuffle,
        }.get(instruction.opcode)

    def _select(self, instruction: I.Instruction, adjoint: Value) -> None:
        condition = self._sources.value(instruction.operands[0])
        nothing = zero(adjoint.type)
        _, then, other = instruction.operands
        if self.is_active(then):
            self.add(then, self._builder.select(condition, adjoint, nothing))
        if self.is_active(other):
            self.add(other, self._builder.select(condition, nothing, adjoint))

    def _converted(self, instruction: I.Instruction, adjoint: Value, opcode: str) -> None:
        operand = instruction.operands[0]
        self.add(operand, self._builder.cast(opcode, adjoint, operand.type))

    def _bitcast(self, instruction: I.Instruction, adjoint: Value) -> None:
        operand = instruction.operands[0]
        type_ = self._type(operand)
        self.add(operand, adjoint if type_ == adjoint.type else self._builder.cast("bitcast", adjoint, type_))

    def _taken_out(self, instruction: I.Instruction, adjoint: Value) -> None:
        whole = instruction.operands[0]
        if self.is_active(whole):
            self.add(whole, self._with_part(instruction, zero(whole.type), adjoint))

    def _put_in(self, instruction: I.Instruction, adjoint: Value) -> None:
        whole, part = instruction.operands[:2]
        if self.is_active(part):
            self.add(part, self._part(instruction, adjoint, part.type))
        if self.is_active(whole):
            self.add(whole, self._with_part(instruction, adjoint, zero(part.type)))

    def _part(self, place: I.Instruction, whole: Value, type_: T.Type) -> Value:
        """What is in a record, or a vector, where an instruction takes something out or puts it in."""
        if isinstance(place, I.InsertValue):
            return self._builder.insert(I.ExtractValue(type_, "extractvalue", [whole], place.indices))
        return self._builder.extract_element(whole, self._sources.value(place.operands[-1]))

    def _with_part(self, place: I.Instruction, whole: Value, part: Value) -> Value:
        """The same with something else there."""
        if isinstance(place, I.ExtractValue | I.InsertValue):
            return self._builder.insert(I.InsertValue(whole.type, "insertvalue", [whole, part], place.indices))
        return self._builder.insert_element(whole, part, self._sources.value(place.operands[-1]))

    def _shuffle(self, instruction: I.Instruction, adjoint: Value) -> None:
        assert isinstance(instruction, I.ShuffleVector)
        first, second = instruction.operands
        assert isinstance(first.type, T.VectorType)
        count = first.type.count
        for source, start in ((first, 0), (second, count)):
            if not self.is_active(source):
                continue
            total: Value = zero(first.type)
            for lane, chosen in enumerate(instruction.mask):
                if start <= chosen < start + count:
                    part = self._builder.extract_element(adjoint, lane)
                    old = self._builder.extract_element(total, chosen - start)
                    total = self._builder.insert_element(total, added(self._builder, old, part), chosen - start)
            self.add(source, total)


def _key(call: Call, names: Mapping[str, Value]) -> tuple[str | Value, ...]:
    """A function of some operands as `Adjoints` knows what a block calls; nothing of anything else."""
    operands = [names[a.name] for a in call.arguments if isinstance(a, Var)]
    return (call.function, *operands) if len(operands) == len(call.arguments) else ()
