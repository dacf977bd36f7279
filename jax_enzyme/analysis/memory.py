"""Memory objects, and which of them each pointer may point to.

An *object* is a piece of storage known by the place that makes it: a parameter of the root function, an alloca, an
allocation call, a global. The analysis is Andersen's, insensitive to flow, fields (but for `analysis.fields`) and
calling context:

    lattice     P(objects), one element per SSA value, and one per object for the pointers stored inside it
    join        union
    transfer    address-of adds the object; copies, casts and address arithmetic keep the set; a load adds the contents
                of every object pointed to; a store adds to them; a call into a defined function joins its arguments
                into the parameters and its returned pointers into the result
    unknown     results of calls without a body and of `inttoptr` from an integer of unknown origin: aliases everything
                that has escaped to such calls
    caller      what pointers in the memory of `OPEN` parameters lead to: memory of the caller's, where there may be
                pointers again

Two pointers into different objects never alias (array functions promise it for their buffers). A worklist
(`analysis.dependence`) visits an instruction again when what it has read has changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from jax_enzyme.analysis.address_integers import IntegersByName
from jax_enzyme.analysis.dependence import Worklist
from jax_enzyme.analysis.fortran_io import Statement, statement
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.tbaa import copied_type
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function, GlobalAlias, GlobalVariable, Module
from jax_enzyme.ir.values import (
    Constant,
    ConstantAggregate,
    ConstantExpr,
    ConstantSplat,
    InlineAsm,
    Value,
    int_value,
)
from jax_enzyme.rules.blas.table import Routine
from jax_enzyme.rules.blas.table import routine as routine_named
from jax_enzyme.rules.effects import Effect, effect, writes_text
from jax_enzyme.rules.pairs import declared_routine


@dataclass(frozen=True, eq=False)
class MemoryObject:
    """`site` is what makes the object: an Argument, an Alloca, the allocating Call, a GlobalVariable, or None
    (unknown)."""

    kind: str
    site: Value | None = None

    @property
    def is_constant(self) -> bool:
        """A table that no program can write to."""
        return isinstance(self.site, GlobalVariable) and self.site.is_constant

    def __str__(self) -> str:
        return f"{self.kind} {self.site.name}" if self.site is not None else self.kind


OPEN = '"je.open"'
"""Marks a parameter of the root that leads to memory with pointers in it, or to a function: `caller`."""

UNSIZED = '"je.unsized"'
"""Marks a parameter of the root that leads to memory of which nobody says how large it is."""

Objects = frozenset[MemoryObject]
NOTHING: Objects = frozenset()

_KEEPS_POINTER = frozenset(
    "getelementptr addrspacecast bitcast inttoptr ptrtoint ptrtoaddr freeze phi select extractvalue insertvalue "
    "extractelement insertelement shufflevector add sub and or xor trunc zext".split()
)


def call_effect(call: I.CallBase) -> Effect | None:
    """What a call to a function without a body does to memory, by its name; None for the unknown and for defined
    ones."""
    callee = call.callee
    if not isinstance(callee, Function) or not callee.is_declaration:
        return None
    found = effect(callee.name)
    return None if found is Effect.OUTPUT and statement(call) is Statement.OTHER else found


def called_routine(call: I.CallBase) -> Routine | None:
    """The BLAS or LAPACK routine that a call is of: it reads and writes what its table says, and keeps no pointer."""
    callee = call.callee
    if isinstance(callee, Function) and callee.is_declaration:
        return routine_named(callee.name, callee.function_type) or declared_routine(callee.name, callee.attributes)
    return None


class PointsTo:
    """The solved relation for all functions of a module that `root` can reach."""

    def __init__(self, module: Module, root: Function) -> None:
        self.module = module
        self.root = root
        self.functions = reachable_functions(root)
        self._integers = IntegersByName(module, self.functions)
        self.unknown = self._unknown_object()
        self.caller = self._caller_object()
        self.contents: dict[MemoryObject, Objects] = {self.unknown: frozenset([self.unknown])}
        self.objects: dict[Value, MemoryObject] = {}
        self._values: dict[Value, Objects] = {}
        self._returned = {f: f.returned() for f in self.functions}
        visited = [i for f in self.functions for i in f.instructions()]
        self._work: Worklist[I.Instruction] = Worklist(visited, self._visit)
        for argument in root.arguments:
            if T.is_pointer(argument.type):
                self._values[argument] = frozenset([self._object("buffer", argument)])
        for argument in root.arguments:
            if OPEN in argument.attributes:
                self.contents.setdefault(self.caller, NOTHING)
                for item in (self.objects[argument], self.caller):
                    self._fill(item, frozenset([self.caller]))
        for variable in module.globals.values():
            if variable.initializer is not None and self.of(variable.initializer):
                self._start(self._object("global", variable), variable.initializer)
        # At first, a pointer that is called leads to what was found for it so far; only if nothing is found in the end
        # may it lead anywhere.
        self._called_are_known = True
        self._work.run()
        self._called_are_known = False
        self._work.run()

    def of(self, value: Value) -> Objects:
        """The objects that a pointer (or an integer or aggregate that holds one) may point into."""
        self._work.read(value)
        known = self._values.get(value)
        if known is not None:
            return known
        match value:
            case GlobalVariable():
                return frozenset([self._object("global", value)])
            case Function():
                return frozenset([self._object("function", value)])
            case GlobalAlias():
                return self.of(value.target) if value.target is not None else NOTHING
            case ConstantExpr() | ConstantAggregate():
                parts = value.operands if isinstance(value, ConstantExpr) else value.elements
                return frozenset().union(*(self.of(p) for p in parts)) if parts else NOTHING
            case ConstantSplat():
                return self.of(value.element)
            case _:
                return NOTHING

    def written(self, pointer: Value) -> Objects:
        """The objects that a store through a pointer may change."""
        return frozenset(o for o in self.of(pointer) if not o.is_constant)

    def describe(self) -> str:
        """One line per pointer value, for tests and reports."""
        lines: list[str] = []
        for function in self.functions:
            for value in [*function.arguments, *function.instructions()]:
                held = self._values.get(value)
                if held:
                    lines.append(f"{function.name}: {value.name} -> {', '.join(sorted(map(str, held)))}")
        return "\n".join(lines)

    def _object(self, kind: str, site: Value) -> MemoryObject:
        if site not in self.objects:
            self.objects[site] = MemoryObject(kind, site)
            self.contents.setdefault(self.objects[site], NOTHING)
        return self.objects[site]

    def _unknown_object(self) -> MemoryObject:
        return MemoryObject("unknown")

    def _caller_object(self) -> MemoryObject:
        return MemoryObject("caller")

    def _set(self, value: Value, objects: Objects) -> None:
        old = self._values.get(value, NOTHING)
        if not objects <= old:
            self._values[value] = old | objects
            self._work.changed(value)

    def _fill(self, target: MemoryObject, objects: Objects) -> None:
        if target is not self.unknown and not objects <= self.contents[target]:
            self.contents[target] |= objects
            self._work.changed(target)

    def _start(self, item: MemoryObject, value: Constant) -> None:
        """What a variable holds from the start."""
        self._fill(item, self.of(value))

    def _put(self, held: Objects, pointer: Value, value: Value) -> None:
        """Pointers into `held` are stored through `pointer`, as a value or as a part of it."""
        for target in self.written(pointer) if held else ():
            self._fill(target, held)

    def _loaded(self, pointer: Value, type_: T.Type | None) -> Objects:
        """What may be loaded there as a value of a type; None: as anything."""
        return frozenset().union(*map(self._held, self.of(pointer)))

    def _held(self, item: MemoryObject) -> Objects:
        self._work.read(item)
        return self.contents[item]

    def _read(self, load: I.Instruction) -> Objects:
        return NOTHING if self._integers.reads(load) else self._loaded(load.operands[0], load.type)

    def _copy(self, target: Value, source: Value, length: int | None) -> None:
        """So many bytes are copied."""
        held = self._loaded(source, None)
        for item in self.written(target):
            self._fill(item, held)

    def _visit(self, instruction: I.Instruction) -> None:
        match instruction:
            case I.Alloca():
                self._set(instruction, frozenset([self._object("stack", instruction)]))
            case I.Load():
                self._set(instruction, self._read(instruction))
            case I.Store():
                value, pointer = instruction.operands
                self._put(self.of(value), pointer, value)
            case I.AtomicRMW() | I.CmpXchg():
                pointer, *values = instruction.operands
                for value in values:
                    self._put(self.of(value), pointer, value)
                self._set(instruction, self._loaded(pointer, values[0].type))
            case I.CallBase():
                self._visit_call(instruction)
            case I.Cast() if instruction.opcode == "inttoptr" and not self.of(instruction.operands[0]):
                if int_value(instruction.operands[0]) is None:
                    self._set(instruction, frozenset([self.unknown]))
            case _ if instruction.opcode in _KEEPS_POINTER:
                operands = instruction.operands
                if instruction.opcode in ("getelementptr", "extractelement"):
                    operands = operands[:1]
                elif instruction.opcode == "select":
                    operands = operands[1:]
                self._set(instruction, frozenset().union(*(self.of(v) for v in operands)))
            case _:
                pass

    def _visit_call(self, call: I.CallBase) -> None:
        callees = self.callees(call)
        for callee in callees:
            for parameter, argument in zip(callee.arguments, call.arguments, strict=False):
                self._set(parameter, self.of(argument))
            for returned in self._returned[callee]:
                self._set(call, self.of(returned))
        if callees or self._leads_nowhere(call):
            return
        match call_effect(call):
            case Effect.ALLOCATE:
                self._set(call, frozenset([self._object("heap", call)]))
            case Effect.REALLOCATE:
                self._set(call, frozenset([self._object("heap", call)]))
                self._copy(call, call.operands[0], None)
            case Effect.MEMORY_COPY:
                if copied_type(self.module, call) is None:
                    self._copy(call.operands[0], call.operands[1], int_value(call.operands[2]))
            case Effect.SAME_POINTER:
                self._set(call, self.of(call.operands[0]))
            case None:
                self._visit_unknown(call)
            case _:
                pass

    def callees(self, call: I.CallBase) -> list[Function]:
        """The functions with a body that a call enters; none where there may be others that are not known. A pointer is
        taken to lead to functions of the call's own type alone."""
        callee = call.callee
        if isinstance(callee, Function):
            return [] if callee.is_declaration else [callee]
        objects = self.of(callee)
        found = [o.site for o in objects if isinstance(o.site, Function) and o.site.value_type == call.function_type]
        complete = not self.is_any_code(objects) and not any(f.is_declaration for f in found)
        return found if complete else []

    def is_any_code(self, objects: Objects) -> bool:
        """Whether a pointer that may lead to these objects may lead to a function that the module does not show: one
        that the caller gives, say."""
        return self.unknown in objects or any(o.kind in ("buffer", "caller") for o in objects)

    def _leads_nowhere(self, call: I.CallBase) -> bool:
        """Whether a call is through a pointer that leads to known memory, but to no function of the call's type: no run
        gets there, as where a table has no destructor in the slot for it."""
        if isinstance(call.callee, Function | InlineAsm):
            return False
        objects = self.of(call.callee)
        if not objects:
            return self._called_are_known
        return not self.is_any_code(objects) and not any(
            isinstance(o.site, Function) and o.site.value_type == call.function_type for o in objects
        )

    def _visit_unknown(self, call: I.CallBase) -> None:
        """A call without a body may store any pointer that it is given anywhere it can reach. (The bits of a number may
        be copied from where a pointer lies, as far as is known here, but as a number they lead nowhere.)"""
        if leaves_pointers(call):
            return
        given = frozenset().union(*(self.of(a) for a in call.arguments if not isinstance(a.type, T.FloatType)))
        for target in given:
            if not target.is_constant:
                self._fill(target, given | {self.unknown})
        if T.is_pointer(call.type):
            self._set(call, given | {self.unknown})


def reachable_functions(root: Function) -> list[Function]:
    """`root` and every defined function that it may call, in order of discovery: through a pointer, it may be any whose
    address a reachable function names, itself or in a table."""
    found = {root: None}
    tables: set[GlobalVariable] = set()
    pending = [root]
    named: dict[Function, None] = {}
    through_pointers = False
    while pending:
        for instruction in pending.pop(0).instructions():
            operands = instruction.operands
            if isinstance(instruction, I.CallBase):
                operands, callee = instruction.arguments, instruction.callee
                if isinstance(callee, Function):
                    pending += _entered(found, [callee])
                else:
                    through_pointers = True
            for operand in operands:
                if isinstance(operand, Constant):
                    held = dict.fromkeys(named_functions(operand, tables))
                    named.update(held)
                    through_pointers |= bool(held) and _enters_unknown(instruction)
        if not pending and through_pointers:
            pending += _entered(found, named)
    return list(found)


def _entered(found: dict[Function, None], functions: Iterable[Function]) -> list[Function]:
    """Those with a body that are new, which are then known."""
    new = [f for f in functions if not f.is_declaration and f not in found]
    found.update(dict.fromkeys(new))
    return new


def _enters_unknown(instruction: I.Instruction) -> bool:
    """A call of which nothing is known: it may call the functions that it is given."""
    if not isinstance(instruction, I.CallBase):
        return False
    return not isinstance(instruction.callee, Function) or instruction.callee.is_declaration


def named_functions(value: Value, tables: set[GlobalVariable] | None = None) -> Iterator[Function]:
    """The functions whose addresses a constant holds. With `tables` also those in the globals that it names, each of
    which is looked through once and noted there."""
    match value:
        case Function():
            yield value
        case GlobalAlias(target=Constant() as target):
            yield from named_functions(target, tables)
        case GlobalVariable(initializer=Constant() as initializer) if tables is not None and value not in tables:
            tables.add(value)
            yield from named_functions(initializer, tables)
        case ConstantExpr(operands=parts) | ConstantAggregate(elements=parts):
            for part in parts:
                yield from named_functions(part, tables)
        case ConstantSplat(element=element):
            yield from named_functions(element, tables)
        case _:
            pass


def reachable_objects(points_to: PointsTo, call: I.CallBase) -> Objects:
    """The objects that a call can reach through its arguments."""
    found = set[MemoryObject]().union(*(points_to.of(a) for a in call.arguments))
    work = list(found)
    while work:
        for item in points_to.contents[work.pop()]:
            if item not in found:
                found.add(item)
                work.append(item)
    return frozenset(found)


def is_memory_free(call: I.CallBase) -> bool:
    """True where the call is declared to touch no memory (`memory(none)`), on itself or on its callee, and for an
    intrinsic that is given no pointer."""
    words = list(call.attributes)
    if isinstance(call.callee, Function):
        if call.callee.name.startswith("llvm.") and not any(T.is_pointer(a.type) for a in call.arguments):
            return True
        words += call.callee.attributes
    return any("memory(none)" in word for word in words)


def leaves_pointers(call: I.CallBase) -> bool:
    """Whether a call of a function whose code is not there neither keeps a pointer nor writes one."""
    if is_memory_free(call) or called_routine(call) is not None:
        return True
    return isinstance(call.callee, Function) and call.callee.is_declaration and writes_text(call.callee.name)


@dataclass(frozen=True, eq=False)
class Access:
    """An instruction that reads or writes memory through `pointer`; `size` in bytes, None where it varies."""

    instruction: I.Instruction
    pointer: Value
    objects: Objects
    size: int | None
    reads: bool
    writes: bool
    kills: bool = False


def accesses(points_to: PointsTo, function: Function, layout: DataLayout) -> Iterator[Access]:
    """Every memory access of a function; `kills` marks the end of an object's life (free)."""
    for instruction in function.instructions():
        match instruction:
            case I.Load():
                pointer = instruction.operands[0]
                yield Access(
                    instruction, pointer, points_to.of(pointer), layout.store_size(instruction.type), True, False
                )
            case I.Store():
                value, pointer = instruction.operands
                objects = points_to.written(pointer)
                yield Access(instruction, pointer, objects, layout.store_size(value.type), False, True)
            case I.AtomicRMW() | I.CmpXchg():
                pointer = instruction.operands[0]
                size = layout.store_size(instruction.operands[1].type)
                yield Access(instruction, pointer, points_to.of(pointer), size, True, True)
            case I.CallBase():
                yield from _call_accesses(points_to, instruction)
            case _:
                pass


def _call_accesses(points_to: PointsTo, call: I.CallBase) -> Iterator[Access]:
    match call_effect(call):
        case Effect.MEMORY_COPY:
            size = int_value(call.operands[2])
            target, source = call.operands[0], call.operands[1]
            yield Access(call, source, points_to.of(source), size, True, False)
            yield Access(call, target, points_to.written(target), size, False, True)
        case Effect.MEMORY_SET:
            target = call.operands[0]
            yield Access(call, target, points_to.written(target), int_value(call.operands[2]), False, True)
        case Effect.FREE:
            target = call.operands[0]
            yield Access(call, target, points_to.of(target), None, False, True, kills=True)
        case Effect.REALLOCATE:
            target = call.operands[0]
            yield Access(call, target, points_to.of(target), None, True, True, kills=True)
        case None if (routine := called_routine(call)) is not None:
            for index, parameter in enumerate(routine.parameters):
                pointer = call.operands[index]
                yield Access(call, pointer, points_to.of(pointer), None, parameter.reads, parameter.writes)
        case None if not is_memory_free(call):
            for argument in call.arguments:
                held = points_to.of(argument)
                if held and not isinstance(argument.type, T.FloatType):
                    yield Access(call, argument, held, None, True, True)
        case _:
            pass
