"""What neither mode can prove right is refused before anything is emitted, each with its cause, place and remedy.

Activity follows derivatives through floating-point values and memory. Here is what it cannot follow, although numbers
may pass: a call of which nothing is known, arguments that are not named, the bits of a number in integer arithmetic,
memory that others may change, control that jumps where no block says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from jax_enzyme.ad.common import active_rule, refuse
from jax_enzyme.analysis.activity import Activity
from jax_enzyme.analysis.flow import holds_float, is_defined_call, is_opaque_call, rule_of
from jax_enzyme.analysis.memory import MemoryObject, PointsTo, call_effect, is_memory_free
from jax_enzyme.analysis.tbaa import is_of_any_type
from jax_enzyme.errors import DifferentiationError
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import Buffer
from jax_enzyme.ir.inlining import expanded_attributes
from jax_enzyme.ir.module import Function, Module, uses
from jax_enzyme.ir.values import Constant, Value
from jax_enzyme.rules.effects import Effect
from jax_enzyme.rules.table import Rules

_RETURNS_TWICE = frozenset("setjmp _setjmp sigsetjmp __sigsetjmp getcontext vfork".split())
_EXCHANGES = ("xchg", "fadd", "fsub")
_DECIDES = (I.Compare, I.Switch, I.CondBranch, I.GetElementPtr)


def refuse_unprovable(
    module: Module,
    points_to: PointsTo,
    activity: Activity,
    rules: Rules,
    buffers: Sequence[Buffer],
    origin: Mapping[Value, I.Instruction] | None = None,
) -> None:
    """Raises DifferentiationError at the first instruction through which a derivative could be lost in silence.
    `origin` leads to the instructions of the source functions, where these are copies."""
    numbers = frozenset(
        points_to.objects[a] for a, b in zip(points_to.root.arguments, buffers, strict=True) if b.is_floating
    )
    launders = any(map(partial(_launders, points_to), (i for f in points_to.functions for i in f.instructions())))
    check = _Check(module, points_to, activity, rules, numbers, launders, origin or {})
    for function in points_to.functions:
        for instruction in function.instructions():
            check.instruction(instruction)
        check.bits(function)


def _launders(points_to: PointsTo, instruction: I.Instruction) -> bool:
    """Whether an instruction makes a pointer of an integer that nobody knows to be one."""
    if instruction.opcode != "inttoptr":
        return False
    value = instruction.operands[0]
    return not isinstance(value, Constant) and not points_to.of(value) - {points_to.unknown}


@dataclass(frozen=True)
class _Check:
    """`numbers` are the buffers of floating-point numbers; `launders` says that some pointers come from integers."""

    module: Module
    points_to: PointsTo
    activity: Activity
    rules: Rules
    numbers: frozenset[MemoryObject]
    launders: bool
    origin: Mapping[Value, I.Instruction]

    def instruction(self, instruction: I.Instruction) -> None:
        match instruction:
            case I.IndirectBranch() | I.CallBr():
                raise self._refused(instruction, "control may go to any label whose address was taken", _GOTO)
            case I.Load() | I.Store():
                self._access(instruction)
            case I.AtomicRMW() | I.CmpXchg():
                self._atomic(instruction)
            case I.CallBase():
                self._call(instruction)
            case _:
                pass

    # -- calls

    def _call(self, call: I.CallBase) -> None:
        if self._returns_twice(call):
            raise self._refused(call, "control may come back to it a second time", _SETJMP)
        if is_defined_call(call):
            named = len(call.function_type.parameters)
            extra = call.arguments[named:] if call.function_type.variadic else []
            if any(map(self._reaches_varied, extra)) and not self._only_prints(call.callee):
                cause = "numbers that a derivative depends on are passed without a name (`...`)"
                raise self._refused(call, cause, _VARIADIC)
        elif is_opaque_call(call) and rule_of(call, self.rules) is None and self._could_pass_on(call):
            active_rule(self.module, self._original(call), self.rules)

    def _only_prints(self, callee: Value) -> bool:
        """Whether a variadic function does nothing with what it is given beyond its parameters but print it."""
        assert isinstance(callee, Function)
        lists: frozenset[MemoryObject] = frozenset()
        for instruction in callee.instructions():
            if isinstance(instruction, I.VAArg):
                return False
            if _is_of(instruction, "llvm.va_start"):
                lists |= self.points_to.of(instruction.operands[0])
        return not any(
            self._reads_list(i, lists) for function in self.points_to.functions for i in function.instructions()
        )

    def _reads_list(self, instruction: I.Instruction, lists: frozenset[MemoryObject]) -> bool:
        if isinstance(instruction, I.Load):
            return not lists.isdisjoint(self.points_to.of(instruction.operands[0]))
        if not isinstance(instruction, I.CallBase) or lists.isdisjoint(
            frozenset[MemoryObject]().union(*map(self.points_to.of, instruction.arguments))
        ):
            return False
        harmless = call_effect(instruction) in (Effect.OUTPUT, Effect.IGNORED) or is_defined_call(instruction)
        return not harmless and not _is_of(instruction, "llvm.va_start", "llvm.va_end")

    def _returns_twice(self, call: I.CallBase) -> bool:
        callee = call.callee
        words = call.attributes
        if isinstance(callee, Function):
            if callee.name in _RETURNS_TWICE:
                return True
            words = (*words, *callee.attributes)
        return "returns_twice" in expanded_attributes(self.module, words)

    def _could_pass_on(self, call: I.CallBase) -> bool:
        """Whether a call of which nothing is known is given, or can reach, a number that varies: it may hand it on in
        ways that nobody sees, also to a later call."""
        if is_memory_free(call):
            return any(a in self.activity.varied for a in call.arguments)
        return any(map(self._reaches_varied, call.arguments))

    def _reaches_varied(self, value: Value) -> bool:
        if value in self.activity.varied:
            return True
        pending = list(self.points_to.of(value))
        seen: set[MemoryObject] = set()
        while pending:
            item = pending.pop()
            if item in self.activity.varied_objects:
                return True
            if item not in seen:
                seen.add(item)
                pending += self.points_to.contents.get(item, ())
        return False

    # -- memory

    def _access(self, instruction: I.Load | I.Store) -> None:
        pointer = instruction.operands[-1]
        if "volatile" in instruction.flags and self._varied_memory(pointer):
            raise self._refused(instruction, "volatile memory that a derivative depends on", _VOLATILE)
        objects = self.points_to.of(pointer)
        if isinstance(pointer, Constant) or (objects and self.points_to.unknown not in objects):
            return
        if isinstance(instruction, I.Store):
            lost = instruction.operands[0] in self.activity.varied
        else:
            lost = holds_float(instruction.type) and (self.launders or not objects) and bool(self.numbers)
        if lost:
            cause = "memory that is reached through a pointer of unknown origin, on which a derivative may depend"
            raise self._refused(instruction, cause, _UNKNOWN)

    def _varied_memory(self, pointer: Value) -> bool:
        return not self.activity.varied_objects.isdisjoint(self.points_to.of(pointer))

    def _atomic(self, instruction: I.AtomicRMW | I.CmpXchg) -> None:
        """Additions and exchanges of numbers have derivatives; arithmetic on integers is no concern of them."""
        if not self._varied_memory(instruction.operands[0]):
            return
        is_float = T.is_float(instruction.operands[1].type)
        if isinstance(instruction, I.AtomicRMW) and (
            (instruction.operation in _EXCHANGES) if is_float else instruction.operation != "xchg"
        ):
            return
        raise self._refused(instruction, "an atomic operation that a derivative depends on", _ATOMIC)

    # -- bits

    def bits(self, function: Function) -> None:
        """Integers that hold the bits of a number that varies may be compared, and that is all: any other use, in the
        end, makes a number of them again."""
        sources = [i for i in function.instructions() if self._is_bits(i)]
        if not sources:
            return
        users = uses(function)
        for source in sources:
            for user in _lossy(source, users):
                cause = "integer arithmetic on the bits of a number that a derivative depends on"
                raise self._refused(user, cause, _BITS)

    def _is_bits(self, value: I.Instruction) -> bool:
        if not T.is_int(T.scalar(value.type)) or value not in self.activity.varied:
            return False
        if isinstance(value, I.Cast) and value.opcode == "bitcast":
            return T.is_float(value.operands[0].type)
        if not isinstance(value, I.Load):
            return False
        # What the source calls an integer is one; what it does not (a union, say) is held to be a number's bits.
        objects = self.points_to.of(value.operands[0])
        return not objects.isdisjoint(self.numbers) or is_of_any_type(self.module, self._original(value))

    # -- messages

    def _original(self, instruction: I.Instruction) -> I.Instruction:
        return self.origin.get(instruction, instruction)

    def _refused(self, instruction: I.Instruction, cause: str, remedy: str) -> DifferentiationError:
        return refuse(self.module, self._original(instruction), cause, remedy)


def _is_of(instruction: I.Instruction, *names: str) -> bool:
    """A call of one of these intrinsics, whatever they are overloaded by."""
    callee = instruction.callee if isinstance(instruction, I.CallBase) else None
    return isinstance(callee, Function) and callee.name.startswith(names)


def _lossy(source: I.Instruction, users: Mapping[Value, list[tuple[I.Instruction, int]]]) -> Iterator[I.Instruction]:
    """The first instruction on each way from a number's bits to another number, memory or function: none where they are
    merely copied, or only decide."""
    pending: list[tuple[I.Instruction, I.Instruction | None]] = [(source, None)]
    seen: set[Value] = set()
    while pending:
        value, computed = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        for user, index in users.get(value, ()):
            if isinstance(user, _DECIDES):
                continue
            if isinstance(user, I.Phi | I.Freeze) or (isinstance(user, I.Select) and index > 0):
                pending.append((user, computed))
            elif _keeps(user):
                if computed is not None:
                    yield computed
            elif _computes(user):
                pending.append((user, computed or user))
            else:
                yield computed or user


def _computes(user: I.Instruction) -> bool:
    """Another integer, and nothing else."""
    if isinstance(user, I.AtomicRMW | I.CmpXchg) or (isinstance(user, I.CallBase) and not is_memory_free(user)):
        return False
    return T.is_int(T.scalar(user.type))


def _keeps(user: I.Instruction) -> bool:
    """Uses that are right as long as the bits are a number's own: a copy into memory, and the way back."""
    return isinstance(user, I.Store) or (user.opcode == "bitcast" and T.is_float(user.type))


_GOTO = "use a switch instead of computed gotos"
_VOLATILE = "remove `volatile`: memory that others change has no derivative"
_UNKNOWN = "keep pointers as pointers, in memory that the kernel itself allocates or is given"
_SETJMP = "return an error code instead of jumping out of a function"
_VARIADIC = "pass the numbers as named parameters, or in an array"
_ATOMIC = "atomic addition, subtraction and exchange of floating-point numbers have derivatives"
_BITS = "use fabs, copysign, frexp or ldexp from math.h instead of the number's bits"
