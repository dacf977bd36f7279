"""The body of a function whose failures become a status: see `failures`, which decides what is to be done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import Function, callee_of, declared_callee
from jax_enzyme.ir.values import BasicBlock, ConstantNull, Poison, Value, int_value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.transform.exceptions import Answer, clause_type, handler_depths
from jax_enzyme.transform.failing import (
    PLACE,
    STANDARD_OBJECT,
    UNCAUGHT,
    Failures,
    behind_the_place,
    new_place,
    stays_true,
)
from jax_enzyme.transform.failure_sites import CHECKED, EXCEPTION, TERMINATED, Site
from jax_enzyme.transform.rewriting import (
    call_like,
    drop_edge,
    forget_records,
    kept_attributes,
    place,
    redirect_phis,
    remove_unreachable,
    replace_values,
    split_before,
)

_NONE = const_int(T.I64, 0)
_TAILS = frozenset(("tail", "musttail"))


class _Landed(NamedTuple):
    """What is known at a landing pad: the clause that takes the exception, where in that lies what it takes, and where
    nobody knows whether a clause does, the message that says so (0: somebody does)."""

    selector: Value
    offset: Value
    lost: Value


class Rewriter:
    """Rewrites one function of a private module. `place` is where its status goes: none in what cannot fail."""

    def __init__(self, failures: Failures, function: Function, is_root: bool) -> None:
        self._failures = failures
        self._function = function
        self._is_root = is_root
        self._declarations = Declarations(failures.module)
        self._replaced: dict[Value, Value] = {}
        self._gone: set[Value] = set()
        self._exit: BasicBlock | None = None
        self._prologue = Builder(BasicBlock())
        self._place: Value | None = None
        self._landed: Value | None = None
        self._moved: Value | None = None
        self._depths: Mapping[I.Instruction, int] = {}
        self._handlers: dict[int | I.Instruction, Value] = {}
        self._types: list[str] = []

    def run(self) -> None:
        function = self._function
        if self._is_root and function in self._failures.failing:
            self._place = new_place(self._prologue)
        elif not self._is_root and function in self._failures.twins.values():
            self._place = function.arguments[0]
        if self._are_noted:
            self._depths = handler_depths(function)
        for block in list(function.blocks):
            self._rewrite(block)
        for block in list(function.blocks):
            self._land(block)
        if self._exit is not None:
            function.blocks.append(self._exit)
        function.entry.instructions[:0] = self._prologue.block.instructions
        replace_values(function, self._replaced)
        forget_records(function, self._gone)
        remove_unreachable(function)
        if not any(isinstance(i, I.LandingPad) for i in function.instructions()):
            function.personality = None

    # -- blocks

    def _rewrite(self, block: BasicBlock) -> None:
        at: BasicBlock | None = block
        while at is not None:
            at = self._rewrite_until_split(at)

    def _rewrite_until_split(self, block: BasicBlock) -> BasicBlock | None:
        """Rewrites up to the next call that may fail; the block where it goes on after that."""
        old, block.instructions = block.instructions, []
        builder = Builder(block)
        for index, instruction in enumerate(old):
            found = self._failures.sites.get(instruction)
            start = len(block.instructions)
            if found is not None and self._place is not None:
                self._fail(builder, found, instruction, old[-1])
            elif isinstance(instruction, I.Resume) and self._place is not None:
                self._resume(builder, instruction.operands[0])
            elif isinstance(instruction, I.Call | I.Invoke):
                rest = self._call(builder, instruction, old[index + 1 :])
                if rest is not None:
                    return rest if isinstance(rest, BasicBlock) and rest.instructions else None
                continue
            else:
                block.instructions.append(instruction)
                continue
            place(instruction, block.instructions[start:])
            self._gone.update(old[index:])
            return None
        return None

    def _fail(self, builder: Builder, found: Site, instruction: I.Instruction, terminator: I.Instruction) -> None:
        """A call that never returns: the status, and the way out. Everything behind it goes."""
        assert self._place is not None
        builder.store(self._status(builder, found, instruction), self._place, 8)
        unwind: BasicBlock | None = None
        if found.kind == EXCEPTION:
            self._count(builder, 1)
            thrown = found.thrown_object if self._failures.objects_live else None
            if found.call.callee.name == "__cxa_rethrow":
                thrown = builder.load(T.PTR, builder.offset(self._caught(builder), 8), 8)
                if self._failures.objects_live:
                    builder.call(self._failures.objects.thrown_again, [thrown])
            builder.store(thrown or ConstantNull(T.PTR), builder.offset(self._place, 8), 8)
            unwind = instruction.targets[1] if isinstance(instruction, I.Invoke) else None
        for successor in terminator.successors:
            if successor is not unwind:
                drop_edge(successor, builder.block)
        builder.br(unwind or self._exit_block())

    def _status(self, builder: Builder, found: Site, instruction: I.Instruction) -> Value:
        if found.kind == CHECKED and found.code is not None:
            return found.code
        kind = found.kind << 32
        assert isinstance(instruction, I.CallBase)
        if instruction.callee.name == "__cxa_rethrow":
            number = builder.load(T.I64, self._caught(builder), 8)
            return builder.binary("or", number, const_int(T.I64, kind))
        if instruction in self._failures.numbers:
            return const_int(T.I64, kind | self._failures.numbers[instruction])
        code = found.code
        if code is None or not isinstance(code.type, T.IntType):
            return const_int(T.I64, kind)
        constant = int_value(code)
        if constant is not None:
            return const_int(T.I64, kind | (constant & 255))
        # An exit code is what the system keeps of it: its low byte.
        number = code if code.type.bits == 8 else builder.cast("trunc", code, T.I8) if code.type.bits > 8 else code
        return builder.binary("or", builder.cast("zext", number, T.I64), const_int(T.I64, kind))

    def _resume(self, builder: Builder, exception: Value) -> None:
        assert self._place is not None
        number = builder.extract_value(exception, 1, T.I32)
        wide = builder.cast("zext", number, T.I64)
        status = builder.binary("or", wide, const_int(T.I64, EXCEPTION << 32))
        builder.store(status, self._place, 8)
        builder.store(builder.extract_value(exception, 0, T.PTR), builder.offset(self._place, 8), 8)
        builder.br(self._exit_block())

    def _exit_block(self) -> BasicBlock:
        if self._exit is None:
            assert self._place is not None
            self._exit = BasicBlock(name="failed")
            builder = Builder(self._exit)
            result = self._function.function_type.result
            if self._is_root:
                builder.ret(builder.load(T.I64, self._place, 8))
            else:
                builder.ret(None if result == T.VOID else Poison(result))
        return self._exit

    # -- calls

    def _call(self, builder: Builder, call: I.Call | I.Invoke, behind: list[I.Instruction]) -> BasicBlock | bool | None:
        """None where the block goes on; the block behind a call that may fail; True where the block has ended."""
        callee = callee_of(call)
        twin = None if callee is None else self._failures.twins.get(callee)
        if twin is None or self._place is None:
            if self._runtime_call(builder, call):
                return None
            if isinstance(call, I.Invoke):
                plain = call_like(call, call.callee, call.arguments)
                self._replaced[call], plain.name = plain, call.name
                builder.insert(plain)
                drop_edge(call.targets[1], builder.block)
                builder.br(call.targets[0])
                place(call, builder.block.instructions[-1:])
                return True
            builder.insert(call)
            return None
        start = len(builder.block.instructions)
        plain = call_like(call, twin, [self._place, *call.arguments])
        plain.name, plain.records = call.name, call.records
        plain.function_type = twin.function_type
        plain.parameter_attributes = [
            (),
            *map(behind_the_place, call.parameter_attributes),
        ]
        plain.return_attributes = ()
        plain.flags = tuple(f for f in call.flags if f not in _TAILS)
        plain.attributes = kept_attributes(self._failures.module, call.attributes, stays_true)
        self._replaced[call] = plain
        builder.insert(plain)
        status = builder.load(T.I64, self._place, 8)
        fine = builder.icmp("eq", status, const_int(T.I64, 0))
        if isinstance(call, I.Invoke):
            normal, unwind = call.targets
            builder.cond_br(fine, normal, self._unwinding(call.callee, builder.block, unwind, status))
            place(call, builder.block.instructions[start + 1 :])
            return True
        builder.block.instructions += behind
        rest = split_before(self._function, builder.block, len(builder.block.instructions) - len(behind))
        builder.cond_br(fine, rest, self._exit_block())
        place(call, builder.block.instructions[start + 1 :])
        return rest

    def _unwinding(self, callee: Value, source: BasicBlock, unwind: BasicBlock, status: Value) -> BasicBlock:
        """Where a failed invoke goes on: at the landing pad with an exception, out of the function otherwise."""
        if callee not in self._failures.throwing:
            drop_edge(unwind, source)
            return self._exit_block()
        block = BasicBlock(name="failing")
        self._function.blocks.insert(self._function.blocks.index(source) + 1, block)
        builder = Builder(block)
        kind = builder.binary("lshr", status, const_int(T.I64, 32))
        builder.cond_br(builder.icmp("eq", kind, const_int(T.I64, EXCEPTION)), unwind, self._exit_block())
        redirect_phis(unwind, source, block)
        return block

    def _runtime_call(self, builder: Builder, call: I.Call | I.Invoke) -> bool:
        """The C++ run time's part in throwing and catching; True for a call that has been dealt with."""
        callee = declared_callee(call)
        if callee is None:
            return False
        result = None
        match callee.name:
            case "__cxa_allocate_exception":
                result = self._exception_memory(builder, call)
            case "__cxa_free_exception":
                self._failures.free(builder, call.arguments[0])
            case "__cxa_get_exception_ptr":
                result = call.arguments[0]
            case "__cxa_begin_catch":
                result = self._caught_object(builder, call.arguments[0])
                self._count(builder, -1)
                self._begin_catch(builder, call)
            case "__cxa_end_catch":
                self._end_catch(builder, call)
            case name if name in UNCAUGHT and self._place is not None:
                number = builder.load(T.I64, builder.offset(self._place, 24), 8)
                some = builder.icmp("ne", number, const_int(T.I64, 0))
                result = some if call.type == T.I1 else builder.cast("trunc", number, call.type)
            case name if name.startswith("llvm.eh.typeid.for"):
                result = const_int(T.I32, self._type_number(clause_type(call.arguments[0])))
            case name if self._is_of_no_matter(name, call):
                pass
            case _:
                return False
        if result is not None:
            self._replaced[call] = result
        else:
            self._gone.add(call)
        if isinstance(call, I.Invoke):
            drop_edge(call.targets[1], builder.block)
            builder.br(call.targets[0])
        return True

    def _is_of_no_matter(self, name: str, call: I.CallBase) -> bool:
        """Does a call make or end a standard exception that nobody asks for anything?"""
        return (
            bool(STANDARD_OBJECT.match(name)) and call.type == T.VOID and not self._failures.matters(call.arguments[0])
        )

    def _exception_memory(self, builder: Builder, call: I.CallBase) -> Value:
        """An exception that no handler looks at is a local variable; others live as long as they are on their way."""
        size = int_value(call.arguments[0])
        if self._failures.objects_live or size is None:
            return self._failures.objects.allocate(builder, call.arguments[0])
        return self._prologue.alloca(T.ArrayType(max(size, 1), T.I8), align=16)

    # -- landing pads

    def _type_number(self, type_: str | None) -> int:
        """Handlers have negative numbers, exceptions that none of them takes the number of their message."""
        name = type_ or ""
        if name not in self._types:
            self._types.append(name)
        return -1 - self._types.index(name)

    @property
    def _are_noted(self) -> bool:
        """Whether anything depends on which exceptions are caught: which memory is freed, or what is thrown again."""
        return self._place is not None and (self._failures.objects_live or self._failures.rethrows)

    def _landed_place(self) -> Value:
        """The number of the exception that came last to a landing pad."""
        if self._landed is None:
            self._landed = self._prologue.alloca(T.I64, align=8)
            self._prologue.store(const_int(T.I64, 0), self._landed, 8)
        return self._landed

    def _caught_place(self, builder: Builder) -> Value:
        """Where the handler is noted that began last and has not ended. Handlers are in one another, also those of
        callers: an exception that leaves a handler lands before the handler's own is given up."""
        assert self._place is not None
        return builder.offset(self._place, 16)

    def _begin_catch(self, builder: Builder, call: I.CallBase) -> None:
        """A handler has number and address of its exception, and the handler that it is in."""
        if not self._are_noted:
            return
        handler = self._handler(self._depths.get(call, call))
        builder.store(call.arguments[0], builder.offset(handler, 8), 8)
        builder.store(builder.load(T.I64, self._landed_place(), 8), handler, 8)
        if self._failures.rethrows:
            builder.store(builder.load(T.PTR, self._caught_place(builder), 8), builder.offset(handler, 16), 8)
            builder.store(handler, self._caught_place(builder), 8)
            if self._failures.objects_live:
                builder.call(self._failures.objects.caught, [call.arguments[0]])

    def _end_catch(self, builder: Builder, call: I.CallBase) -> None:
        """An exception of which it is not known which it is, as nothing is thrown again, stays."""
        if not self._are_noted:
            return
        if self._failures.rethrows:
            handler = builder.load(T.PTR, self._caught_place(builder), 8)
            builder.store(builder.load(T.PTR, builder.offset(handler, 16), 8), self._caught_place(builder), 8)
        elif (depth := self._depths.get(call)) is not None:
            handler = self._handler(depth - 1)
        else:
            return
        if self._failures.objects_live:
            exception = builder.load(T.PTR, builder.offset(handler, 8), 8)
            self._failures.objects.leave(builder, builder.load(T.I64, handler, 8), exception)

    def _count(self, builder: Builder, change: int) -> None:
        """Notes that so many exceptions more are on their way."""
        if self._failures.are_counted and self._place is not None:
            place = builder.offset(self._place, 24)
            number = builder.load(T.I64, place, 8)
            builder.store(builder.binary("add", number, const_int(T.I64, change)), place, 8)

    def _caught_object(self, builder: Builder, exception: Value) -> Value:
        """What a handler is given: the exception's address; of a pointer that was thrown, the pointer; or where in it a
        base lies."""
        if self._place is None:
            return exception
        return self._at_base(builder, self._thrown_value(builder, exception))

    def _at_base(self, builder: Builder, object_: Value) -> Value:
        if not self._failures.moves:
            return object_
        if self._moved is None:
            self._moved = self._prologue.alloca(T.I64, align=8)
        moved = builder.gep(T.I8, object_, [builder.load(T.I64, self._moved, 8)])
        is_null = builder.icmp("eq", object_, ConstantNull(T.PTR))
        return builder.select(is_null, object_, moved)

    def _thrown_value(self, builder: Builder, exception: Value) -> Value:
        if not self._failures.pointers:
            return exception
        number, is_pointer = builder.load(T.I64, self._landed_place(), 8), const_int(T.I1, 0)
        for known in self._failures.pointers:
            is_pointer = builder.binary("or", is_pointer, builder.icmp("eq", number, const_int(T.I64, known)))
        nowhere = self._prologue.alloca(T.PTR, align=8)
        self._prologue.store(ConstantNull(T.PTR), nowhere, 8)
        pointer = builder.load(T.PTR, builder.select(is_pointer, exception, nowhere), 8)
        return builder.select(is_pointer, pointer, exception)

    def _handler(self, key: int | I.Instruction) -> Value:
        """Where a handler is noted: one place for all that are in as many others, which become registers."""
        if key not in self._handlers:
            self._handlers[key] = self._prologue.alloca(PLACE, align=8)
            self._handlers[key].name = "failure.caught"
        return self._handlers[key]

    def _caught(self, builder: Builder) -> Value:
        """The handler that code is in, perhaps a caller's; where it is in none, a place whose status is none."""
        assert self._place is not None
        handler = builder.load(T.PTR, self._caught_place(builder), 8)
        return builder.select(builder.icmp("eq", handler, ConstantNull(T.PTR)), self._place, handler)

    def _land(self, block: BasicBlock) -> None:
        index = next((i for i, x in enumerate(block.instructions) if isinstance(x, I.LandingPad)), None)
        if index is None or self._place is None:
            return
        pad = block.instructions[index]
        assert isinstance(pad, I.LandingPad)
        made = Builder(BasicBlock())
        exception = made.load(T.PTR, made.offset(self._place, 8), 8)
        number = made.cast("trunc", made.load(T.I64, self._place, 8), T.I32)
        made.store(const_int(T.I64, 0), self._place, 8)
        if self._landed is not None:
            made.store(made.cast("zext", number, T.I64), self._landed, 8)
        at = _Landed(number, _NONE, _NONE)
        for kind, clause in reversed(list(zip(pad.clauses, pad.operands, strict=True))):
            if kind == "catch":
                at = self._matched(made, clause_type(clause), number, at)
        if self._moved is not None:
            made.store(at.offset, self._moved, 8)
        pair = made.pack(pad.type, [exception, at.selector])
        block.instructions[index : index + 1] = made.block.instructions
        place(pad, made.block.instructions)
        self._replaced[pad] = pair
        if at.lost is not _NONE:
            self._lose(block, index + len(made.block.instructions), at.lost)

    def _lose(self, block: BasicBlock, index: int, message: Value) -> None:
        """The kernel fails where nobody knows which handler takes an exception."""
        assert self._place is not None
        rest, lost = split_before(self._function, block, index), BasicBlock(name="lost")
        self._function.blocks.append(lost)
        before, at = Builder(block), Builder(lost)
        before.cond_br(before.icmp("ne", message, _NONE), lost, rest)
        at.store(at.binary("or", message, const_int(T.I64, TERMINATED << 32)), self._place, 8)
        at.br(self._exit_block())

    def _matched(self, builder: Builder, clause: str | None, number: Value, otherwise: _Landed) -> _Landed:
        """What is so with one more clause in front."""
        if clause is None:
            return otherwise
        taken: Value = const_int(T.I32, self._type_number(clause))
        if clause == "":
            return _Landed(taken, _NONE, _NONE)
        selector, offset, lost = otherwise
        for message in self._failures.thrown_types:
            found = self._failures.caught_at(message, clause)
            if found is Answer.PASSES:
                continue
            is_it = builder.icmp("eq", number, const_int(T.I32, message))
            if found is Answer.UNKNOWN:
                lost = builder.select(is_it, const_int(T.I64, self._failures.lost(message, clause)), lost)
                continue
            selector = builder.select(is_it, taken, selector)
            if self._moved is not None:
                offset = builder.select(is_it, const_int(T.I64, found), offset)
            if lost is not _NONE:
                lost = builder.select(is_it, _NONE, lost)
        return _Landed(selector, offset, lost)
