"""The map of memory: which objects each pointer leads to and where in them, and which pointers lie at which places.

Andersen's analysis with offsets, insensitive to flow and calling context:

    lattice     per SSA value a *place*: for each object that it may lead to a few congruences of byte offsets
                (`analysis.offsets`), and under None what it is as a plain integer (0 for null); per object a map from
                offsets, of 8 bytes each, to the places that the pointers stored there lead to
    join        key by key; fewer congruences that include all where there are many, or around a loop
    transfer    an object's own address is offset 0; copies and casts keep a place, address arithmetic adds to it; what
                is not understood leads to any offset in the same objects
    load        what may overlap with the bytes that are loaded
    store       adds to the offsets that the address may be
    copy        moves what is at the source by the distance of the two addresses
    allocate    a new object, for each place in the code
    free        changes nothing: what was there may be asked for at other times
    told        an address of which it is said what table the object holds (`analysis.tables`) leads to those that may
    call        into a defined function: arguments into parameters, what is returned into the result; of a function that
                is not there: any pointer that it is given may be stored anywhere in what it is given, so that all of
                it is one class from then on (`analysis.escaped`)

So a counter beside a pointer does not move it, a member of a structure in an array has its offset modulo the size of
the structure, however the loop is written, and the elements of a small array in it have theirs. What a program's source
calls an integer (`long` by its TBAA), and what is only counted, compared and indexed with, is no pointer.

One worklist (`analysis.dependence`) visits an instruction again when what it has read has changed. The lattice is
climbed in steps, each from the solution of the one before: what a pointer leads to that nothing was found for is
anything in the end, and only then.

It is one file of over 600 lines as the transfers are one table over one solution, which nobody else changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache

from jax_enzyme.analysis.congruence import ANY, Congruence, copied_to, overlap
from jax_enzyme.analysis.dependence import Worklist
from jax_enzyme.analysis.escaped import Escaped
from jax_enzyme.analysis.increments import Fields, Increments
from jax_enzyme.analysis.layout import DataLayout, Moves, addresses
from jax_enzyme.analysis.named_integers import NamedIntegers
from jax_enzyme.analysis.objects import (
    NOTHING,
    OPEN,
    MemoryObject,
    Objects,
    call_effect,
    leaves_pointers,
    reachable_functions,
    writes_pointers,
)
from jax_enzyme.analysis.offsets import (
    ANYWHERE,
    MOST,
    START,
    Offsets,
    exactly,
    excluded_by,
    joined,
    merge,
    multiples,
    sums,
    values_of_counter,
    without,
)
from jax_enzyme.analysis.points_to_sets import (
    MANY_FIELDS,
    MANY_STORED,
    NOWHERE,
    Place,
    addresses_within,
    anywhere,
    arithmetic,
    as_number,
    compact,
    functions_for,
    handed_on,
    is_address,
    is_number,
    objects_in,
    taken_from,
    truncated,
)
from jax_enzyme.analysis.tables import Held, held_at
from jax_enzyme.analysis.tbaa import accessed_type, copied_type
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.module import Function, GlobalAlias, GlobalVariable, Module, callee_name, declared_name
from jax_enzyme.ir.values import (
    Constant,
    ConstantAggregate,
    ConstantExpr,
    ConstantNull,
    ConstantSplat,
    InlineAsm,
    Poison,
    Undef,
    Value,
    int_value,
)
from jax_enzyme.remembered import remembered
from jax_enzyme.rules.effects import Effect
from jax_enzyme.rules.files import LENDS
from jax_enzyme.rules.helpers import BORROW

_SETTLED = "all is found"
"""What steps rest on besides facts: those that do run again when it changes."""
_MANY_JOINED = 4
"""So many congruences are kept for each object in a phi."""
_MANY_OBJECTS = 32
"""A pointer that may lead to so many objects, those of a whole hierarchy of classes, has one congruence for each."""
_POINTER = 8
_SAME = frozenset("freeze addrspacecast bitcast ptrtoint ptrtoaddr inttoptr zext".split())
_PARTS = frozenset(
    "extractvalue insertvalue extractelement insertelement shufflevector getelementptr phi select xor".split()
)
"""What hands on pointers in ways that are not followed to the byte."""
_ANSWERS = exactly(0) | exactly(1)
"""A comparison as a number: half of the index of a child in a quadtree, say."""


class PointsTo:
    """The map for all functions of a module that `root` can reach."""

    def __init__(self, module: Module, root: Function) -> None:
        self.module = module
        self.root = root
        self.functions = reachable_functions(root)
        self.unknown = MemoryObject("unknown")
        self.caller = MemoryObject("caller")
        self.contents: dict[MemoryObject, Objects] = {self.unknown: frozenset([self.unknown])}
        """The objects that the pointers in an object lead to."""
        self.objects: dict[Value, MemoryObject] = {}
        self._layout = DataLayout(module)
        self._values: dict[Value, Place] = {}
        self._leads: dict[Value, Objects] = {}
        self._fields: dict[MemoryObject, dict[Congruence, Place]] = {}
        self._held_in: dict[MemoryObject, Place] = {}
        """What all fields of an object hold together: what is read that may be anywhere in it."""
        self._compacted: set[MemoryObject] = set()
        self._mixed_in = set[MemoryObject]()
        """The objects that pointers came to otherwise than as the source says of a store."""
        self._outside: dict[I.CallBase, MemoryObject] = {}
        """The class of what each call of a function that is not there can reach."""
        self.called_from_outside: set[Function] = set()
        self._increments = Increments()
        self._steps: dict[Value, Moves | None] = {}
        self._named = NamedIntegers(module, self.functions)
        self._returned = {f: f.returned() for f in self.functions}
        instructions = list(self.instructions())
        # What is written to memory waits, so that addresses that a loop moves are known up to their stride.
        self._work: Worklist[I.Instruction] = Worklist(instructions, self._visit, writes_pointers)
        self._escaped = Escaped(self.unknown, self.contents, self._work.changed, len(instructions))
        self._start()
        # At first, a pointer that is called leads to what was found for it so far, and integers lead nowhere. Only if
        # that does not hold in the end may they lead anywhere.
        self._is_settled = False
        self._work.run()
        self._is_settled = True
        self._work.changed(_SETTLED)
        self._work.go_on()
        self._work.close()
        for item, held in self.contents.items():
            name = self._escaped.of(item)
            self.contents[item] = self._escaped.expanded(
                held if name is None else frozenset(self._escaped.behind(name))
            )

    def instructions(self) -> Iterator[I.Instruction]:
        """Those of all functions."""
        return (i for f in self.functions for i in f.instructions())

    def _start(self) -> None:
        for argument in self.root.arguments:
            if T.is_pointer(argument.type):
                self._join(argument, {self._object("buffer", argument): START})
            else:
                self._join(argument, {None: ANYWHERE})
            if OPEN in argument.attributes:
                self.contents.setdefault(self.caller, NOTHING)
                for item in (self.objects[argument], self.caller):
                    self._add(item, ANY, {self.caller: ANYWHERE})
        for variable in self.module.globals.values():
            if variable.initializer is not None and self.of(variable.initializer):
                item = self._object("global", variable)
                for offset, held in addresses(self._layout, variable.initializer):
                    self._add(item, Congruence(offset, 0), self._place(held))

    # -- asking

    def of(self, value: Value) -> Objects:
        """The objects that a pointer (or an integer or aggregate that holds one) may point into."""
        if isinstance(value, Constant):
            return objects_in(self._place(value))
        self._work.read(value)
        if value not in self._leads:
            self._leads[value] = objects_in(self._values.get(value, NOWHERE))
        return self._expanded(self._leads[value])

    def within(self, pointer: Value) -> Mapping[MemoryObject, Offsets]:
        """The offsets in each object that a pointer may point to, with bounds where they are known."""
        return self._members(self.targets(pointer))

    def places(self, pointer: Value) -> Mapping[MemoryObject, Offsets]:
        """The same without bounds."""
        return {o: frozenset(c.unbounded for c in cs) for o, cs in self.within(pointer).items()}

    def place(self, pointer: Value) -> Mapping[MemoryObject, Congruence]:
        """The same, one congruence for each object."""
        return {o: joined(cs) for o, cs in self.places(pointer).items()}

    def number(self, value: Value) -> Congruence:
        """What is known of an integer."""
        return joined(as_number(self._place(value)))

    def targets(self, pointer: Value) -> Mapping[MemoryObject, Offsets]:
        """What `within` is made of: objects, and classes of them, for all of their members, and where in these."""
        return {o: cs or ANYWHERE for o, cs in self._place(pointer).items() if o is not None}

    def written(self, pointer: Value) -> Objects:
        """The objects that a store through a pointer may change."""
        return frozenset(o for o in self.of(pointer) if not o.is_constant)

    def may_meet(self, some: Collection[MemoryObject], others: Collection[MemoryObject]) -> bool:
        """Whether one of some objects may be one of others: what is unknown may be any."""
        return self.unknown in some or self.unknown in others or any(o in others for o in some)

    # -- the lattice

    def _expanded(self, objects: Objects) -> Objects:
        for item in self._escaped.names_in(objects):
            self._work.read(item)
        return self._escaped.expanded(objects)

    def _members(self, place: Mapping[MemoryObject, Offsets]) -> Mapping[MemoryObject, Offsets]:
        """A place with the members of classes in place of the classes."""
        objects = frozenset(place)
        members = self._expanded(objects)
        if members is objects:
            return place
        whole = self._escaped.expanded(self._escaped.names_in(objects))
        return {o: ANYWHERE if o in whole else place[o] for o in members}

    def _object(self, kind: str, site: Value) -> MemoryObject:
        if site not in self.objects:
            self.objects[site] = MemoryObject(kind, site)
            self.contents.setdefault(self.objects[site], NOTHING)
        return self.objects[site]

    def _place(self, value: Value) -> Place:
        """What is known of a value so far."""
        if isinstance(value, Constant):
            return self._constant(value)
        self._work.read(value)
        return self._values.get(value, NOWHERE)

    def _constant(self, value: Constant) -> Place:
        number = int_value(value)
        if number is not None:
            return {None: exactly(number)}
        match value:
            case GlobalVariable():
                return {self._object("global", value): START}
            case Function():
                return {self._object("function", value): START}
            case GlobalAlias():
                return self._constant(value.target) if value.target is not None else NOWHERE
            case ConstantExpr(opcode="getelementptr"):
                return self._address(value, value.source_type, list(value.operands))
            case ConstantExpr() if value.opcode in _SAME:
                return self._place(value.operands[0])
            case ConstantNull():
                return {None: START}
            case Poison() | Undef():
                return NOWHERE
            case ConstantExpr(operands=parts) | ConstantAggregate(elements=parts):
                return self._parts(value.type, *parts)
            case ConstantSplat():
                return self._parts(value.type, value.element)
            case _:
                return {None: ANYWHERE}

    def _parts(self, type_: T.Type, *values: Value) -> Place:
        """A value of a type that leads anywhere in what any of these lead to."""
        found: Place = {}
        for value in values:
            merge(found, anywhere(type_, self._place(value)), 1)
        found[None] = ANYWHERE
        return found

    def _join(self, value: Value, place: Place) -> None:
        known = self._values.setdefault(value, {})
        place = self._escaped.shortened(place, known)
        before = len(known)
        most = _MANY_JOINED if isinstance(value, I.Phi) else MOST
        changed = merge(known, place, most if before < _MANY_OBJECTS else 1)
        if changed:
            if len(known) > before:
                self._leads.pop(value, None)
                if (crowd := self._escaped.crowd(known, len(known) - before)) is not None:
                    self._escape(*crowd)
                    merge(known, self._escaped.shortened({crowd[0]: ANYWHERE}, known), 1)
                    changed += self._escaped.names_in(objects_in(known))
            self._increments.grew(value, changed)
            self._work.changed(value)

    def _add(self, item: MemoryObject, at: Congruence, place: Place, *, as_pointer: bool = False) -> None:
        """A pointer is stored somewhere, `as_pointer` where the source says that."""
        objects = objects_in(place)
        if item is self.unknown or not objects:
            return
        if (name := self._escaped.of(item)) is not None:
            self._escape(name, objects)
            return
        if not as_pointer and item not in self._mixed_in:
            self._mixed_in.add(item)
            self._work.changed(item)
        fields, everything = self._fields.setdefault(item, {}), self._held_in.setdefault(item, {})
        if changed := at not in fields and len(fields) >= MANY_FIELDS:
            compact(fields)
            self._compacted.add(item)
            for held in fields.values():
                merge(everything, held, MOST)
        if item in self._compacted:
            at = next((known for known in fields if known.includes(at)), at)
        held = fields.setdefault(at, {})
        if (grown := merge(held, place, MANY_STORED)) or changed:
            merge(everything, {o: held[o] for o in grown}, MOST)
            self._increments.stored(item, None if changed else at)
            self.contents[item] = self.contents.get(item, NOTHING) | objects
            self._work.changed(item)

    def _fresh(self, reader: Value, operand: Value) -> Place:
        """What is known of an operand, as far as a step has not seen it before."""
        return self._increments.fresh(reader, operand, self._place(operand))

    def _unread(self, load: I.Load, targets: Mapping[MemoryObject, Offsets]) -> Mapping[MemoryObject, Fields]:
        """The targets in which there may be what a load has not read, and in which fields of them. What is stored in
        classes is not counted."""
        found = self._increments.unread(load, targets, self._fresh(load, load.operands[0]))
        return found | dict.fromkeys(self._escaped.owned(targets))

    def _held(
        self, item: MemoryObject, offsets: Offsets, size: int | None, fields: Fields
    ) -> Iterator[tuple[Congruence, Congruence, Place]]:
        """The pointers in so many bytes, of some fields of an object, behind an address that leads there (None:
        anywhere in it): where they are, from which place of the address on, and where they lead."""
        if item is self.unknown:
            yield ANY, ANY, {item: ANYWHERE}
            return
        self._work.read(item)
        name = self._escaped.of(item)
        if name is not None:
            yield from ((ANY, here, self._escaped.place(name)) for here in offsets)
            return
        known = self._fields.get(item, {})
        for at in list(known if fields is None else fields):
            for here in offsets:
                if at in known and (size is None or overlap(at, _POINTER, here, size)):
                    yield at, here, known[at]

    # -- transfer

    def _visit(self, instruction: I.Instruction) -> None:
        match instruction:
            case I.Alloca():
                self._join(instruction, {self._object("stack", instruction): START})
            case I.Load():
                self._join(instruction, self._loaded(instruction, instruction.type))
            case I.Store():
                self._put(*instruction.operands, as_pointer=accessed_type(self.module, instruction) == T.PTR)
            case I.AtomicRMW() | I.CmpXchg():
                pointer, *values = instruction.operands
                for value in values:
                    self._put(value, pointer)
                self._join(instruction, anywhere(instruction.type, self._loaded(instruction, values[0].type)))
            case I.CallBase():
                self._visit_call(instruction)
            case I.Phi() if (values := self._counted(instruction)) is not None:
                self._join(instruction, {None: values})
            case _ if T.is_pointer(instruction.type) or T.is_int(instruction.type):
                self._join(instruction, self._result(instruction))
            case _ if instruction.opcode in _PARTS or instruction.opcode in _SAME:
                self._join(instruction, self._mixed(instruction))
            case _:
                pass

    def _put(self, value: Value, pointer: Value, *, as_pointer: bool = False) -> None:
        place = self._place(value)
        if not objects_in(place):
            return
        size = self._layout.store_size(value.type)
        if not is_address(value.type):
            place = anywhere(value.type, place)
            place.pop(None, None)
        for target, offsets in self.targets(pointer).items():
            for at in offsets if not target.is_constant else ():
                for part in range(0, size, _POINTER):
                    self._add(target, at + Congruence(part, 0), place, as_pointer=as_pointer)

    def _loaded(self, access: I.Instruction, type_: T.Type) -> Place:
        # Null as well: nobody notes where memory is cleared.
        found: Place = {None: START if T.is_pointer(type_) else ANYWHERE}
        if isinstance(access, I.Load) and self._named.is_named(access):
            return found
        pointer = access.operands[0]
        targets = self.targets(pointer)
        if isinstance(access, I.Load) and self._named.is_no_pointer(access) and not any(map(self._is_mixed, targets)):
            return found
        if isinstance(access, I.Load) and self._named.is_called_one(access):
            new = dict.fromkeys(item for item in targets if self._may_be_read_as_integer(item, targets[item]))
        else:
            new = self._unread(access, targets) if isinstance(access, I.Load) else dict.fromkeys(targets)
        size = self._layout.store_size(type_)
        for item, fields in new.items():
            for held in self._read(item, targets[item], size, fields):
                merge(found, held, MOST)
        nothing = not objects_in(found) and not objects_in(self._values.get(access, NOWHERE))
        if T.is_pointer(type_) and nothing and any(o.is_given for o in self.targets(pointer)):
            # An address that came as a number, or in a variable of the program's: nobody knows where it leads.
            self._work.read(_SETTLED)
            found = {self.unknown: ANYWHERE} if self._is_settled else found
        return found if is_address(type_) else anywhere(type_, found)

    def _read(self, item: MemoryObject, offsets: Offsets, size: int, fields: Fields) -> Collection[Place]:
        """What the pointers lead to in so many bytes, of some fields of an object, anywhere at these offsets."""
        is_plain = item in self._held_in and self._escaped.of(item) is None
        if fields is None and is_plain and any(_meets_all(here, size) for here in offsets):
            self._work.read(item)
            return (self._held_in[item],)
        return {at: held for at, _, held in self._held(item, offsets, size, fields)}.values()

    def _may_be_read_as_integer(self, item: MemoryObject, offsets: Offsets) -> bool:
        """Whether what the source calls an integer may be a pointer. Where a structure is declared to have an integer
        it only seems that links lie, which are stored in nodes of many kinds."""
        return self._is_mixed(item) or not all(self._is_declared_integer(item, at) for at in offsets)

    def _is_mixed(self, item: MemoryObject) -> bool:
        """Whether pointers may lie in an object that were stored as something else, or copied there: what the source
        calls an integer may be one of them, or a part."""
        self._work.read(item)
        is_known = item is not self.unknown and not item.is_given and self._escaped.of(item) is None
        return not is_known or item in self._mixed_in

    def _is_declared_integer(self, item: MemoryObject, at: Congruence) -> bool:
        match item.site:
            case I.Alloca(allocated_type=type_) | GlobalVariable(value_type=type_):
                return at.modulus == 0 and self._layout.is_integer_member(type_, at.offset)
            case _:
                return False

    @remembered
    def _counted(self, phi: I.Phi) -> Offsets | None:
        return values_of_counter(phi)

    def _result(self, instruction: I.Instruction) -> Place:
        operands = instruction.operands
        match instruction:
            case I.GetElementPtr() if instruction.metadata and (held := self._told(instruction)) is not None:
                return self._holding(self._place(operands[0]), held, self._values.get(instruction, NOWHERE))
            case I.GetElementPtr():
                return self._address(instruction, instruction.source_type, operands)
            case I.Select(operands=[condition, one, other]):
                found = dict(self._place(other))
                excluded = excluded_by(condition, other)
                if excluded is not None and None in found:
                    found[None] = without(found[None], excluded)
                merge(found, self._place(one), MOST)
                return found
            case I.Phi():
                found = {}
                for value in operands:
                    merge(found, self._fresh(instruction, value), MOST)
                return found
            case I.ExtractValue() if (members := taken_from(instruction)) is not None:
                found = {}
                for value in members:
                    merge(found, self._place(value), MOST)
                return found
            case I.BinaryOp():
                return self._arithmetic(instruction)
            case I.Cast(operands=[operand]) | I.Freeze(operands=[operand]):
                return self._cast(instruction, operand)
            case _ if instruction.opcode in _PARTS:
                return self._mixed(instruction)
            case _:
                return {None: ANYWHERE}

    def _cast(self, cast: I.Instruction, operand: Value) -> Place:
        match cast.opcode:
            case "inttoptr" if not self.of(operand) and int_value(operand) is None:
                self._work.read(_SETTLED)
                is_lost = self._is_settled and not addresses_within(operand)
                return {self.unknown: ANYWHERE} if is_lost else self._place(operand)
            case "ptrtoint" | "ptrtoaddr" if is_number(self._place(operand)):
                # Null, as far as is known; or another number that is no address, which nobody notes in memory.
                self._work.read(_SETTLED)
                return {None: ANYWHERE} if self._is_settled else self._place(operand)
            case "freeze" if isinstance(operand, Poison | Undef):
                return {None: ANYWHERE}
            case "bitcast" if not is_address(operand.type):
                return self._parts(cast.type, operand)
            case "sext":
                return {None: as_number(self._place(operand))} if self._place(operand) else NOWHERE
            case "trunc":
                return truncated(cast.type, self._place(operand))
            case "zext" if operand.type == T.I1 and None in (place := self._place(operand)):
                return {**place, None: _ANSWERS}
            case opcode if opcode in _SAME:
                return self._place(operand)
            case _:
                return {None: ANYWHERE}

    def _mixed(self, instruction: I.Instruction) -> Place:
        """Of a value that holds several, or that is one of those: whatever they lead to."""
        return self._parts(instruction.type, *handed_on(instruction))

    def _arithmetic(self, instruction: I.BinaryOp) -> Place:
        x, y = (self._place(v) for v in instruction.operands)
        if not x or not y:
            return NOWHERE
        found = arithmetic(instruction, x, y)
        return self._parts(instruction.type, *instruction.operands) if found is None else found

    def _address(self, value: Value, source: T.Type | None, operands: list[Value]) -> Place:
        if source is None or isinstance(value.type, T.VectorType):
            return self._parts(value.type, operands[0])
        if value not in self._steps:
            self._steps[value] = self._layout.moves(source, operands[1:])
        moves = self._steps[value]
        offset = self._offset(moves)
        if offset is None:
            return NOWHERE
        always_same = not isinstance(value, Constant) and (moves is None or not moves[1])
        base = self._fresh(value, operands[0]) if always_same else self._place(operands[0])
        return {k: sums(cs, offset) for k, cs in base.items()}

    @remembered
    def _told(self, address: I.GetElementPtr) -> Held | None:
        return held_at(self.module, address)

    def _holding(self, place: Place, held: Held, known: Place) -> Place:
        """The part of a place where one of some tables of functions may be held, as far as is known so far. What is
        `known` to be part of it stays so, and is not asked for again."""
        found: Place = {}
        for item, offsets in place.items():
            before = known.get(item, ())
            kept = frozenset(at for at in offsets if item is None or at in before or self._may_hold(item, at, held))
            if kept:
                found[item] = kept
        return found

    def _may_hold(self, item: MemoryObject, at: Congruence, held: Held) -> bool:
        self._work.read(item)
        if item is self.unknown or item is self.caller or item.is_given or self._escaped.owned({item: None}):
            return True
        for _, _, place in self._held(item, frozenset([at + Congruence(held.at, 0)]), _POINTER, None):
            found = objects_in(place)
            if self.unknown in found or self._escaped.owned(dict.fromkeys(found)):
                return True
            if any(self._is_one_of(target, place[target], held) for target in found):
                return True
        return False

    def _is_one_of(self, target: MemoryObject, offsets: Offsets, held: Held) -> bool:
        places = held.places.get(target.site.name) if isinstance(target.site, GlobalVariable) else None
        if places is None:
            return False
        known = not places.isdisjoint(offsets)
        return known or any(at.modulus and any(overlap(place, 1, at, 1) for place in places) for at in offsets)

    def _offset(self, moves: Moves | None) -> Offsets | None:
        """What the indices of a `getelementptr` add; None where nothing is known of one of them yet."""
        if moves is None:
            return ANYWHERE
        total = exactly(moves[0])
        for index, size in moves[1]:
            place = self._place(index)
            if not place and not isinstance(index, Constant):
                return None
            total = sums(total, multiples(as_number(place), size))
        return total

    # -- calls

    def _enter(self, call: I.CallBase) -> bool:
        callees = self.callees(call)
        for callee in callees:
            for parameter, argument in zip(callee.arguments, call.arguments, strict=False):
                self._join(parameter, self._place(argument))
            for returned in self._returned[callee]:
                self._join(call, self._place(returned))
        return bool(callees)

    def _visit_call(self, call: I.CallBase) -> None:
        if self._enter(call) or self._leads_nowhere(call):
            return
        match call_effect(call):
            case Effect.ALLOCATE | Effect.REALLOCATE as effect:
                self._join(call, {self._object("heap", call): START})
                if effect is Effect.REALLOCATE:
                    self._copy(call, call.operands[0], None)
            case Effect.MEMORY_COPY:
                if copied_type(self.module, call) is None:
                    self._copy(call.operands[0], call.operands[1], int_value(call.operands[2]))
            case Effect.SAME_POINTER:
                self._join(call, self._parts(call.type, call.operands[0]))
            case Effect.THROW if callee_name(call) == "__cxa_allocate_exception":
                self._join(call, {self._object("heap", call): START})
            case Effect.THROW:  # what is thrown comes to handlers by ways that are not there yet
                self._visit_unknown(call)
            case None if callee_name(call) == BORROW:
                self._join(call, {self._object("tape", call): ANYWHERE})
                self._add(self.objects[call], ANY, {self.objects[call]: ANYWHERE})
            case None:
                self._visit_unknown(call)
            case Effect.READ_CLOCK if declared_name(call) in LENDS:
                self._join(call, {None: START, self._object("stream", call): START})
            case effect:
                is_foreign = effect is Effect.READ_CLOCK and T.is_pointer(call.type)
                self._join(call, {self.unknown if is_foreign else None: ANYWHERE})

    def _copy(self, target: Value, source: Value, length: int | None) -> None:
        """So many bytes are copied."""
        targets = {to: offsets for to, offsets in self.targets(target).items() if not to.is_constant}
        for item, offsets in self.targets(source).items():
            self._work.read(item)
            # What is stored in classes is not counted.
            counted = item is not self.unknown and self._escaped.of(item) is None
            for to, places in targets.items():
                fields = self._increments.copied(target, source, item, offsets, to, places) if counted else None
                for at, here, held in list(self._held(item, offsets, length, fields)):
                    for there in places:
                        self._add(to, copied_to(at, _POINTER, here, there, length), held)

    def _visit_unknown(self, call: I.CallBase) -> None:
        """A call without a body may store any pointer that it is given anywhere it can reach, moved by any distance,
        and call any function that it is given. (The bits of a number may be copied from where a pointer lies, as far as
        is known here, but as a number they lead nowhere.)"""
        self._join(call, {None: ANYWHERE})
        if leaves_pointers(call):
            return
        given = [a for a in call.arguments if not isinstance(a.type, T.FloatType)]
        reached = objects_in(self._parts(T.PTR, *given))
        place: Place = {None: ANYWHERE, self.unknown: ANYWHERE}
        if reached:
            name = self._outside[call] if call in self._outside else self._escaped.new()
            self._outside[call] = name
            self._escape(name, reached)
            place = self._escaped.place(name)
        if T.is_pointer(call.type):
            self._join(call, place)

    def _escape(self, name: MemoryObject, objects: Objects) -> None:
        """Code that is not there can reach objects, and may call the functions among them with what else it reaches."""
        for function in self._escaped.add(name, objects):
            self.called_from_outside.add(function)
            for parameter in function.arguments:
                self._join(parameter, self._escaped.place(name) if T.is_pointer(parameter.type) else {None: ANYWHERE})

    def callees(self, call: I.CallBase) -> list[Function]:
        """The functions with a body that a call enters; none where there may be others that are not known. A pointer is
        taken to lead to functions of the call's own type alone."""
        callee = call.callee
        if isinstance(callee, Function):
            return [] if callee.is_declaration else [callee]
        objects = self.of(callee)
        found = functions_for(call, objects)
        complete = not self.is_any_code(objects) and not any(f.is_declaration for f in found)
        return found if complete else []

    def is_any_code(self, objects: Objects) -> bool:
        """Whether a pointer that leads to these may lead to a function that the module does not show: the caller's."""
        return self.unknown in objects or any(o.kind in ("buffer", "caller") for o in objects)

    def _leads_nowhere(self, call: I.CallBase) -> bool:
        """Whether a call is through a pointer that leads to known memory, but to no function of the call's type: no run
        gets there, as where a table has no destructor in the slot for it."""
        if isinstance(call.callee, Function | InlineAsm):
            return False
        objects = self.of(call.callee)
        if not objects:
            self._work.read(_SETTLED)
            return not self._is_settled
        return not self.is_any_code(objects) and not functions_for(call, objects)


def _meets_all(place: Congruence, size: int) -> bool:
    """Whether so many bytes at a place may have one in common with any pointer in the object."""
    return place.last is None and 0 < place.modulus <= size


@lru_cache(maxsize=4)
def map_of(function: ArrayFunction) -> PointsTo:
    """The map of an array function that nobody changes any more: solved once for all that is asked of it."""
    return PointsTo(function.module, function.module.functions[function.symbol])
