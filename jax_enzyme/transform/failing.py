"""What fails in a module, and which functions take a place for their status: see `failures`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

from jax_enzyme.analysis.objects import named_functions, reachable_functions
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import clone_function
from jax_enzyme.ir.module import Function, Module, callee_name
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import Argument, BasicBlock, Constant, ConstantNull, Value
from jax_enzyme.remembered import remembered
from jax_enzyme.transform.exception_objects import ExceptionObjects
from jax_enzyme.transform.exceptions import Answer, caught_at, clause_type
from jax_enzyme.transform.failure_sites import (
    EXCEPTION,
    FIRST_MESSAGE,
    Callers,
    Site,
    add_message,
    constant_text,
    describe,
    messages,
    readable_type,
    site,
)
from jax_enzyme.transform.rewriting import kept_attributes

PLACE = T.StructType((T.I64, T.PTR, T.PTR, T.I64))
"""The status, the exception that is on its way, the handler that began last, and how many exceptions are on their way
(a destructor may throw and catch one). Of an exception that was caught its number, its address and the handler around
it."""
_PLACE_BYTES = 32
UNCAUGHT = frozenset(("_ZSt18uncaught_exceptionv", "_ZSt19uncaught_exceptionsv"))
"""Functions that say whether exceptions are on their way, and how many."""
STANDARD_OBJECT = re.compile(r"_ZNSt\d+\w*(error|exception|argument|range|alloc|length|cast)(B\w+)?[CD][012]E")
"""Functions that make or end standard exceptions."""
_UNTRUE = ("memory(", "noreturn", "speculatable", "allocsize", "allockind", '"alloc-family"', "returned")


class Failures:
    """What fails in a module: the sites with their numbers, the functions that may, and what took their place."""

    def __init__(self, module: Module, root: Function) -> None:
        self.module = module
        self.functions = reachable_functions(root)
        self.sites: dict[I.Instruction, Site] = {}
        self.numbers: dict[I.Instruction, int] = {}
        self.twins: dict[Function, Function] = {}
        callers = Callers(module)
        for function in self.functions:
            for instruction in function.instructions():
                found = site(module, instruction)
                if found is not None:
                    self.sites[instruction] = found
                    if found.code is None:
                        text = describe(module, found, function, callers, _constructed_with(function, found))
                        self.numbers[instruction] = add_message(module, text)
        called = {callee_name(i) for f in self.functions for i in f.instructions()}
        self.rethrows = "__cxa_rethrow" in called
        self.are_counted = not UNCAUGHT.isdisjoint(called) and any(s.kind == EXCEPTION for s in self.sites.values())
        self.failing: set[Function] = set()
        self.throwing: set[Function] = set()
        self._find_failing()
        self.thrown_types = {
            self.numbers[call]: found.thrown
            for call, found in self.sites.items()
            if found.kind == EXCEPTION and call in self.numbers
        }
        self.with_object = {n for call, n in self.numbers.items() if self.sites[call].thrown_object is not None}
        self.handlers_look = any(map(_looks_at_exception, self.functions))
        pointers = [n for n, thrown in self.thrown_types.items() if thrown is not None and thrown.startswith("_ZTIP")]
        self.pointers = pointers if self.handlers_look else []
        self.destructors = {n: ends for call, n in self.numbers.items() if (ends := _destructor(call)) is not None}
        self.objects_live = self.handlers_look or bool(self.destructors)
        self.asked = any(_asks_what(i) for f in self.functions for i in f.instructions())
        self._taken = address_taken(module)

    @remembered
    def caught_at(self, message: int, clause: str) -> int | Answer:
        """Where in an exception what a clause takes is. What a library throws has no object that could be looked at."""
        if self.handlers_look and message not in self.with_object:
            found = caught_at(self.module, self.thrown_types[message], clause)
            return found if found is Answer.PASSES else Answer.UNKNOWN
        return caught_at(self.module, self.thrown_types[message], clause)

    def lost(self, message: int, clause: str) -> int:
        """The message of an exception of which nobody knows whether a clause takes it."""
        said = messages(self.module)[message - FIRST_MESSAGE]
        return add_message(self.module, f"{said}; whether `catch` of `{readable_type(clause)}` takes it is not known")

    @cached_property
    def moves(self) -> bool:
        """Whether any handler is given a base that does not lie at the start."""
        if not self.handlers_look:
            return False
        pads = (i for f in self.functions for i in f.instructions() if isinstance(i, I.LandingPad))
        clauses = {clause_type(operand) for pad in pads for operand in pad.operands} - {None, ""}
        return any(self.caught_at(n, clause or "") not in (0, *Answer) for n in self.thrown_types for clause in clauses)

    @cached_property
    def objects(self) -> ExceptionObjects:
        return ExceptionObjects(self.module, self.destructors, are_counted=self.rethrows)

    def free(self, builder: Builder, exception: Value) -> None:
        """Gives up the memory of an exception that is not thrown after all."""
        if self.objects_live:
            self.objects.free(builder, exception)

    def _find_failing(self) -> None:
        """The functions that may fail, or ask how many exceptions are on their way, and those that may throw: by
        themselves, or by what they call. Landing pads of what never throws do not count: they hold many a call of
        `std::terminate`."""
        changed = True
        while changed:
            changed = False
            for function in self.functions:
                for instruction in self._live(function):
                    found = self.sites.get(instruction)
                    callee = instruction.callee if isinstance(instruction, I.CallBase) else None
                    asks = self.are_counted and callee_name(instruction) in UNCAUGHT
                    if function not in self.failing and (found is not None or asks or callee in self.failing):
                        self.failing.add(function)
                        changed = True
                    throws = found.kind == EXCEPTION if found is not None else callee in self.throwing
                    if function not in self.throwing and throws:
                        self.throwing.add(function)
                        changed = True

    def matters(self, object_: Value) -> bool:
        """May anybody ask a standard exception for its text? Not one that is only thrown, where no handler looks. Of
        those that were caught by handlers of an earlier run nothing is left but the question."""
        only_thrown = callee_name(object_) == "__cxa_allocate_exception"
        return self.asked and (self.handlers_look or not only_thrown)

    def _live(self, function: Function) -> Iterator[I.Instruction]:
        """The instructions that control can reach, if nothing throws but what is known to."""

        def following(block: BasicBlock) -> list[BasicBlock]:
            return [s for s in block.successors if not self._never_taken(block.terminator, s)]

        for block in reached([function.entry], following):
            yield from block.instructions

    def _never_taken(self, last: I.Instruction, successor: BasicBlock) -> bool:
        if not isinstance(last, I.Invoke) or successor is last.targets[0]:
            return False
        found = self.sites.get(last)
        return found.kind != EXCEPTION if found is not None else last.callee not in self.throwing

    def give_place(self, source: Function) -> None:
        """Decides which function takes the place for the status: the function itself, or a twin of it."""
        if source not in self._taken:
            self.twins[source] = source
            take_place(self.module, source)
            return
        copies: dict[Value, Value] = {}
        name = self.module.unused(f"{source.name}.failing")
        twin = clone_function(source, name, copies)
        self.module.functions[name] = twin
        _forget_debug(source)
        for old, new in copies.items():
            if isinstance(old, I.Instruction) and old in self.sites:
                assert isinstance(new, I.Instruction)
                self.sites[new] = self.sites[old].in_copy(copies)
                if old in self.numbers:
                    self.numbers[new] = self.numbers[old]
        self.twins[source] = twin
        take_place(self.module, twin)


def new_place(builder: Builder) -> Value:
    """A place where nothing has failed yet."""
    made = builder.alloca(PLACE, align=8)
    made.name = "failure"
    builder.store(const_int(T.I64, 0), made, 8)
    for offset in (8, 16):
        builder.store(ConstantNull(T.PTR), builder.offset(made, offset), 8)
    builder.store(const_int(T.I64, 0), builder.offset(made, 24), 8)
    return made


def take_place(module: Module, function: Function) -> None:
    """Gives a function the place for its status as its first parameter."""
    kind = function.function_type
    parameter = Argument(T.PTR, ("noalias", "nonnull", f"dereferenceable({_PLACE_BYTES})"), name="failure")
    for argument in function.arguments:
        argument.attributes = behind_the_place(argument.attributes)
    function.arguments.insert(0, parameter)
    for index, argument in enumerate(function.arguments):
        argument.index = index
    function.value_type = T.FunctionType(kind.result, (T.PTR, *kind.parameters), kind.variadic)
    function.return_attributes = ()
    function.attributes = kept_attributes(module, function.attributes, stays_true)


def stays_true(word: str) -> bool:
    """Attributes that hold for the function with a status, too."""
    return not word.startswith(_UNTRUE)


def behind_the_place(words: tuple[str, ...]) -> tuple[str, ...]:
    """The attributes of a parameter that is no longer the first: `sret` may stand at the first two alone."""
    return tuple(w for w in words if w != "returned" and not w.startswith("sret"))


def _constructed_with(function: Function, found: Site) -> str | None:
    """The text that a thrown object is made from, where that is a constant."""
    if found.thrown_object is None:
        return None
    for instruction in function.instructions():
        if isinstance(instruction, I.CallBase) and instruction.arguments[:1] == [found.thrown_object]:
            for argument in instruction.arguments[1:]:
                text = constant_text(argument)
                if text:
                    return text
    return None


def _destructor(call: I.Instruction) -> Function | None:
    """What ends the object that a call throws, if it does more than to end a standard exception."""
    if callee_name(call) != "__cxa_throw" or not isinstance(call, I.CallBase):
        return None
    found = call.arguments[2]
    if not isinstance(found, Function):
        return None
    return found if any(_matters_in_end(i, found.arguments[0]) for i in found.instructions()) else None


def _matters_in_end(instruction: I.Instruction, object_: Value) -> bool:
    match instruction:
        case I.GetElementPtr() | I.Return() | I.Unreachable():
            return False
        case I.Store(operands=[Constant(), pointer]):  # its table of functions
            return pointer is not object_
        case I.CallBase():
            return not STANDARD_OBJECT.match(callee_name(instruction) or "")
        case _:
            return True


def _looks_at_exception(function: Function) -> bool:
    """Whether a handler in the function uses the object that it caught."""
    caught = {i for i in function.instructions() if callee_name(i) in ("__cxa_begin_catch", "__cxa_get_exception_ptr")}
    return bool(caught) and any(not caught.isdisjoint(i.operands) for i in function.instructions())


def _asks_what(instruction: I.Instruction) -> bool:
    """Whether a call may be one of an exception's `what()`, directly or through its table."""
    if not isinstance(instruction, I.CallBase):
        return False
    if name := callee_name(instruction):
        return name.endswith("4whatEv")
    return instruction.function_type == T.FunctionType(T.PTR, (T.PTR,))


def address_taken(module: Module) -> set[Function]:
    """Functions that are used as anything but the callee of a direct call."""
    found: set[Function] = set()
    for function in module.functions.values():
        for instruction in function.instructions():
            operands = instruction.operands
            for operand in operands[:-1] if isinstance(instruction, I.CallBase) else operands:
                found.update(named_functions(operand))
    for variable in module.globals.values():
        if variable.initializer is not None:
            found.update(named_functions(variable.initializer))
    for alias in module.aliases.values():
        if alias.target is not None:
            found.update(named_functions(alias.target))
    return found


def _forget_debug(function: Function) -> None:
    """A subprogram describes one function: that with the status has it from now on."""
    function.metadata = [(kind, node) for kind, node in function.metadata if kind != "dbg"]
    function.trailing_records = []
    for instruction in function.instructions():
        instruction.metadata = [(kind, node) for kind, node in instruction.metadata if kind != "dbg"]
        instruction.records = ()
