"""Back to plain parameters: a function around the derivative of an array function.

    before    i64 @je.primal.jvp(ptr, ptr, ...)     after    { double, double } @f_jvp(double %x, double %x.companion)
                                                             (numbers in local variables; file-scope variables by name;
                                                             a status that is not 0 ends as the function does)

A function that ends the process has derivatives that do: `exit` exits with its number, everything else says on the
standard error what has happened, and aborts. (An exception does so, too: nothing unwinds through derived code.)
"""

from __future__ import annotations

from collections.abc import Sequence

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import Buffer
from jax_enzyme.ir.builder import Builder, const_int, zero
from jax_enzyme.ir.keywords import LINKAGE
from jax_enzyme.ir.module import Function, GlobalVariable, Module
from jax_enzyme.ir.values import Argument, BasicBlock, ConstantString, Value, int_value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.transform.failure_sites import FIRST_MESSAGE, OUT_OF_MEMORY, TERMINATED, messages

_STANDARD_ERROR = 2


class Wrapper:
    """Emits the function of plain parameters around an array function."""

    def __init__(
        self,
        function: Function,
        active: tuple[bool, ...],
        live: Sequence[GlobalVariable],
        merged: Sequence[int],
        module: Module,
        name: str,
        suffix: str,
    ) -> None:
        self._module = module
        self._name = name
        self._suffix = suffix
        self._result = function.function_type.result
        self._result_attributes = extension(function.return_attributes)
        self._at = Builder(BasicBlock(name="entry"))
        self._arguments: list[Argument] = []
        self._own: dict[int, Value] = {}
        self._companions: dict[int, Value] = {}
        for index, (parameter, is_active) in enumerate(zip(function.arguments, active, strict=True)):
            own = self._argument(parameter.type, parameter.name, extension(parameter.attributes))
            self._own[index] = self._memory(own)
            if is_active and suffix != "augmented":
                by_value = suffix == "jvp" and not T.is_pointer(parameter.type)
                companion = self._argument(parameter.type if by_value else T.PTR, f"{parameter.name}.companion")
                self._companions[index] = self._memory(companion)
        for index in merged[1:]:
            self._own[index] = self._memory(distance(self._at, self._own[merged[0]], self._own[index]))
        self._finish_parameters(len(function.arguments))
        first = len(function.arguments) + (not isinstance(self._result, T.VoidType))
        for index, variable in enumerate(live, first):
            self._own[index] = self._declared(variable)
        self._of_result = first - 1
        self._tape = self._argument(T.PTR, "tape") if suffix in ("augmented", "pullback") else None

    def _argument(self, type_: T.Type, name: str, attributes: tuple[str, ...] = ()) -> Argument:
        self._arguments.append(Argument(type_, attributes, len(self._arguments), name=name))
        return self._arguments[-1]

    def _memory(self, value: Value) -> Value:
        """A pointer to a value: itself, or a variable with the number in it."""
        if T.is_pointer(value.type):
            return value
        variable = self._at.alloca(value.type)
        self._at.store(value, variable)
        return variable

    def _finish_parameters(self, index: int) -> None:
        """The result's memory, and its companion's."""
        if isinstance(self._result, T.VoidType):
            return
        floating = T.is_float(self._result)
        start: Value = zero(self._result)
        if self._suffix == "pullback" and floating:
            start = self._argument(self._result, "result")
        self._own[index] = self._memory(start)
        if floating and self._suffix in ("vjp", "pullback"):
            self._companions[index] = self._memory(self._argument(self._result, "cotangent"))
        elif floating and self._suffix == "jvp":
            self._companions[index] = self._memory(zero(self._result))

    def _declared(self, variable: GlobalVariable) -> GlobalVariable:
        """A variable of the program, whatever its type is."""
        words = ("external", *(w for w in variable.prefix if w not in LINKAGE))
        declared = GlobalVariable(variable.type, T.I8, prefix=words, name=variable.name)
        return self._module.globals.setdefault(variable.name, declared)

    def emit(self, target: Function, buffers: Sequence[Buffer]) -> None:
        operands: list[Value] = []
        for buffer in buffers:
            if buffer.role == "tape":
                assert self._tape is not None
                operands.append(self._tape)
            elif buffer.role in ("tangent", "shadow"):
                operands.append(self._companions[buffer.of])
            else:
                operands.append(self._own[buffer.of])
        status = self._at.call(target, operands)
        blocks = [self._at.block]
        failures = _Failures(self._module, statuses(target), self._name)
        if failures:
            failed, done = BasicBlock(name="failed"), BasicBlock(name="done")
            self._at.cond_br(self._at.icmp("ne", status, const_int(T.I64, 0)), failed, done)
            blocks += [failed, *failures.emit(failed, status), done]
            self._at = Builder(done)
        result = self._returned()
        type_ = T.FunctionType(T.VOID if result is None else result.type, tuple(a.type for a in self._arguments))
        function = Function(T.PTR, type_, arguments=self._arguments, blocks=blocks, name=self._name)
        if result is not None and T.is_int(result.type):
            function.return_attributes = self._result_attributes
        self._at.ret(result)
        self._module.functions[self._name] = function

    def _returned(self) -> Value | None:
        if isinstance(self._result, T.VoidType) or self._suffix in ("vjp", "pullback"):
            return None
        index = self._of_result
        result = self._at.load(self._result, self._own[index])
        if self._suffix != "jvp" or index not in self._companions:
            return result
        companion = self._at.load(self._result, self._companions[index])
        return self._at.pack(T.StructType((self._result, self._result)), [result, companion])


def extension(attributes: Sequence[str]) -> tuple[str, ...]:
    """How callers and functions agree to pass an integer that is narrower than a register."""
    return tuple(word for word in attributes if word in ("zeroext", "signext"))


class _Failures:
    """What happens where a function fails. `known` are the statuses that it may return, None for any. False where it
    never fails."""

    def __init__(self, module: Module, known: frozenset[int] | None, name: str) -> None:
        self._module = module
        self._name = name
        self._messages = [(FIRST_MESSAGE + i, m) for i, m in enumerate(messages(module))]
        self._exits = self._aborts = known is None
        for status in known or ():
            kind, number = status >> 32, status & 0xFFFFFFFF
            exits = kind == TERMINATED and number < FIRST_MESSAGE
            self._exits |= exits
            self._aborts |= status != 0 and not exits
        if known is not None:
            self._messages = [(n, m) for n, m in self._messages if any(n == s & 0xFFFFFFFF for s in known)]

    def __bool__(self) -> bool:
        return self._exits or self._aborts

    def emit(self, block: BasicBlock, status: Value) -> list[BasicBlock]:
        """From a block on; the blocks that it takes besides."""
        at = Builder(block)
        number = at.cast("trunc", status, T.I32)
        kind = at.binary("lshr", status, const_int(T.I64, 32))
        if not self._exits:
            self._abort(at, kind, number)
            return []
        stop, other = BasicBlock(name="exits"), BasicBlock(name="aborts")
        if self._aborts:
            ended = at.icmp("eq", kind, const_int(T.I64, TERMINATED))
            exits = at.binary("and", ended, at.icmp("ult", number, const_int(T.I32, FIRST_MESSAGE)))
            at.cond_br(exits, stop, other)
            self._abort(Builder(other), kind, number)
        else:
            at.br(stop)
        at = Builder(stop)
        leave = Declarations(self._module).function("exit", T.FunctionType(T.VOID, (T.I32,)))
        at.call(leave, [number])
        at.unreachable()
        return [stop, other] if self._aborts else [stop]

    def _abort(self, at: Builder, kind: Value, number: Value) -> None:
        text, length = _text(self._module, "je.failure", f"{self._name}: the function failed")
        for index, (code, message) in enumerate(self._messages, 1):
            here = at.icmp("eq", number, const_int(T.I32, code))
            pointer, size = _text(self._module, f"je.failure.{index}", f"{self._name}: {message}")
            text, length = at.select(here, pointer, text), at.select(here, size, length)
        no_room = at.icmp("eq", kind, const_int(T.I64, OUT_OF_MEMORY))
        pointer, size = _text(self._module, "je.failure.memory", f"{self._name}: out of memory")
        text, length = at.select(no_room, pointer, text), at.select(no_room, size, length)
        _abort(self._module, at, text, length)


def statuses(function: Function) -> frozenset[int] | None:
    """What an array function may return; None where that is computed, or comes from elsewhere."""
    found: set[int] = set()
    seen: set[Value] = set()
    stack: list[Value] = [function]
    while stack:
        value = stack.pop()
        if value in seen:
            continue
        seen.add(value)
        match value:
            case Function() if value.blocks:
                ends = [b.terminator for b in value.blocks]
                stack += [v for end in ends if isinstance(end, I.Return) for v in end.operands]
            case I.Call():
                stack.append(value.callee)
            case I.Phi():
                stack += value.operands
            case I.Select():
                stack += value.operands[1:]
            case _:
                number = int_value(value)
                if number is None:
                    return None
                found.add(number)
    return frozenset(found)


def say_and_abort(module: Module, at: Builder, name: str, line: str) -> None:
    """Ends the process with a line on the standard error, whose text is a variable of this name."""
    _abort(module, at, *_text(module, name, line))


def distance(at: Builder, start: Value, end: Value) -> Value:
    """Between two addresses, in bytes."""
    return at.binary("sub", at.cast("ptrtoint", end, T.I64), at.cast("ptrtoint", start, T.I64))


def _abort(module: Module, at: Builder, text: Value, length: Value) -> None:
    declarations = Declarations(module)
    abort = declarations.function("abort", T.FunctionType(T.VOID, ()))
    write = declarations.function("write", T.FunctionType(T.I64, (T.I32, T.PTR, T.I64)))
    at.call(write, [const_int(T.I32, _STANDARD_ERROR), text, length])
    at.call(abort, [])
    at.unreachable()


def _text(module: Module, name: str, line: str) -> tuple[Value, Value]:
    """A line of text in a module: address and length."""
    data = f"{line}\n".encode()
    type_ = T.ArrayType(len(data), T.I8)
    held = GlobalVariable(T.PTR, type_, ConstantString(type_, data), True, ("private", "unnamed_addr"), name=name)
    module.globals[name] = held
    return held, const_int(T.I64, len(data))
