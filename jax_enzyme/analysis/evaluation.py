"""Instructions of one function as terms, and what memory holds before a block's terminator, as far as that is clear.

`Values` gives a term for every value that a walk through blocks has come by (`of`), and for those that were there
before it started, which are terms of what they were computed from. A place in memory is the term of its address.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from functools import cached_property

from jax_enzyme.analysis.counters import Follower
from jax_enzyme.analysis.dominators import Dominators
from jax_enzyme.analysis.flow import rule_of
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.objects import call_effect, is_defined_call, is_memory_free
from jax_enzyme.analysis.symbols import Term, Terms
from jax_enzyme.analysis.writes import Written
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import BasicBlock, Value, int_value
from jax_enzyme.remembered import remembered
from jax_enzyme.rules.effects import Effect
from jax_enzyme.rules.table import Rules

_MOST_BLOCKS = 64
"""How many blocks back memory is looked at. What was written before is not known."""
_MOST_PARTS = 200
"""How many instructions a value that was there before is made of; it is a term of its own where they are more."""


@dataclass
class Effort:
    """How many instructions may still be looked at. What takes more is unclear."""

    left: int

    def spend(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise Unclear


class Unclear(Exception):
    """An instruction of which nothing can be said."""


@dataclass(frozen=True, eq=False)
class Program:
    """A function with what is asked about it again and again. `read_only` are parameters that nobody writes through,
    `trips` says how often the last block of a loop runs, where that is a constant, and `followers` are counters that
    move as others do."""

    module: Module
    function: Function
    rules: Rules
    dominators: Dominators
    predecessors: Callable[[BasicBlock], list[BasicBlock]]
    read_only: frozenset[Value]
    trips: Callable[[Loop], int | None]
    followers: dict[Value, Follower]
    effort: Effort

    @cached_property
    def layout(self) -> DataLayout:
        return DataLayout(self.module)

    @remembered
    def touching(self, block: BasicBlock) -> list[I.Instruction]:
        """What of a block may read or write memory."""
        return [i for i in block.instructions if isinstance(i, I.TOUCHES_MEMORY)]

    @cached_property
    def owners(self) -> dict[Hashable, Value]:
        """What memory has an address of its own, by identity: arguments that alias no other, variables."""
        arguments = [a for a in self.function.arguments if "noalias" in a.attributes]
        locals_ = [i for i in self.function.instructions() if isinstance(i, I.Alloca)]
        return {id(v): v for v in (*arguments, *locals_, *self.module.globals.values())}


class Values:
    """Terms of the values of one walk that starts after the instructions of the block `start`; `side` tells those that
    are new in every walk from the same ones of another walk."""

    def __init__(self, program: Program, terms: Terms, start: BasicBlock, side: str) -> None:
        self.program = program
        self.terms = terms
        self.side = side
        self.written: list[Written] = []
        self.reads: list[tuple[Term, int]] = []
        """Addresses that the walk read from, and how many bytes."""
        self._start = start
        self._here: dict[Value, Term] = {}
        self._before: dict[Value, Term] = {}
        self._content: dict[tuple[Term, T.Type], Term | None] = {}
        self._at_ends: dict[tuple[BasicBlock, Term, T.Type], Term | None] = {}
        self.loads: dict[Term, I.Load] = {}
        """Numbers that were read before, and from where."""

    # -- values

    def of(self, value: Value) -> Term:
        """The term of a value that the walk has come by, or that was there before."""
        found = self._here.get(value) or self._before.get(value)
        if found is None:
            found = self._before[value] = self._earlier(value)
        return self.terms.known.get(found, found)

    def put(self, value: Value, term: Term) -> None:
        self._here[value] = term

    def new(self, kind: str, value: Value) -> Term:
        """A term that is equal to no other: what a value is at a place that the walk knows nothing about."""
        return self.terms.term(kind, (), (self.side, id(value)), value.type)

    def _earlier(self, value: Value) -> Term:
        """From what does not lie before it upwards, so that long chains need no recursion."""
        stack, count = [value], 0
        while stack:
            top = stack[-1]
            missing = [v for v in self._parts(top) if v not in self._before and v not in self._here]
            count += 1
            if missing and count < _MOST_PARTS:
                stack += missing
                continue
            stack.pop()
            if top not in self._before:
                self._before[top] = self._leaf(top) if missing else self._made(top)
        return self._before[value]

    def _parts(self, value: Value) -> list[Value]:
        if isinstance(value, I.CallBase):
            return value.arguments if is_pure(value) else []
        if value in self.program.followers:
            follower = self.program.followers[value]
            return [follower.start, follower.leader]
        pure = (I.BinaryOp, I.UnaryOp, I.Cast, I.Compare, I.Select, I.GetElementPtr, I.Freeze)
        return value.operands if isinstance(value, pure) else []

    def following(self, follower: Follower) -> Term:
        """A counter in terms of the one that it follows."""
        parts = [(self.of(follower.start), 1), (self.of(follower.leader), follower.ratio)]
        return self.terms.total(follower.start.type, parts, -follower.ratio * follower.first)

    def _made(self, value: Value) -> Term:
        constant = self.terms.constant(value)
        if constant is not None:
            return constant
        if value in self.program.followers:
            return self.following(self.program.followers[value])
        if self._parts(value):
            assert isinstance(value, I.Instruction)
            return self.computed(value)
        if isinstance(value, I.Load) and self.root(self.of(value.operands[0])) in self.program.read_only:
            return self._initial(self.of(value.operands[0]), value.type)
        return self._leaf(value)

    def _leaf(self, value: Value) -> Term:
        term = self.terms.term("value", (), id(value), value.type)
        if isinstance(value, I.Load):
            self.loads[term] = value
        return term

    def computed(self, instruction: I.Instruction) -> Term:
        """The term of an instruction without memory."""
        terms = self.terms
        match instruction:
            case I.BinaryOp():
                x, y = map(self.of, instruction.operands)
                return self._binary(instruction, x, y)
            case I.UnaryOp():
                return terms.negated(self.of(instruction.operands[0]))
            case I.Cast():
                return self._cast(instruction)
            case I.Compare():
                x, y = map(self.of, instruction.operands)
                if isinstance(x.type, T.VectorType):
                    return terms.term(instruction.opcode, (x, y), instruction.predicate, instruction.type)
                return terms.compared(instruction.opcode, instruction.predicate, x, y)
            case I.Select():
                return terms.chosen(*map(self.of, instruction.operands))
            case I.Freeze():
                return self.of(instruction.operands[0])
            case I.GetElementPtr():
                return self._address(instruction)
            case I.CallBase():
                rule = rule_of(instruction, self.program.rules)
                name = rule.name if rule is not None else instruction.callee.name
                return terms.function(name, tuple(map(self.of, instruction.arguments)), instruction.type)
            case _:
                detail = (getattr(instruction, "indices", None), getattr(instruction, "mask", None))
                parts = tuple(map(self.of, instruction.operands))
                return terms.term(instruction.opcode, parts, detail, instruction.type)

    def _binary(self, instruction: I.Instruction, x: Term, y: Term) -> Term:
        terms, opcode = self.terms, instruction.opcode
        if T.is_float(instruction.type):
            return terms.arithmetic(opcode, x, y)
        if not isinstance(instruction.type, T.IntType):
            return terms.term(opcode, (x, y), None, instruction.type)
        if instruction.type.bits == 1:
            return self._logic(opcode, x, y)
        if opcode in ("add", "sub") or (opcode == "or" and "disjoint" in instruction.flags):
            return terms.total(instruction.type, [(x, 1), (y, -1 if opcode == "sub" else 1)])
        for factor, other in ((y, x), (x, y)):
            if isinstance(factor.number, int):
                if opcode == "mul":
                    return terms.total(instruction.type, [(other, factor.number)])
                if opcode == "shl" and factor is y and 0 <= factor.number < instruction.type.bits:
                    return terms.total(instruction.type, [(other, 1 << factor.number)])
        return terms.term(opcode, (x, y), None, instruction.type)

    def _logic(self, opcode: str, x: Term, y: Term) -> Term:
        terms = self.terms
        match opcode:
            case "and":
                return terms.chosen(x, y, terms.truth(False))
            case "or":
                return terms.chosen(x, terms.truth(True), y)
            case "xor" if y.number is not None:
                return terms.inverse(x) if y.number else x
            case _:
                return terms.term(opcode, (x, y), None, x.type)

    def _cast(self, cast: I.Cast) -> Term:
        x = self.of(cast.operands[0])
        if x.operation == "invalid":
            return self.terms.invalid(cast.type)
        if x.number is not None and (T.is_float(cast.type) or isinstance(cast.type, T.IntType)):
            integers = T.is_int(x.type) and T.is_int(cast.type)
            if x.number == 0 or (integers and cast.opcode in ("sext", "trunc")) or cast.opcode == "sitofp":
                return self.terms.number(cast.type, x.number)
        return self.terms.term(cast.opcode, (x,), None, cast.type)

    def _address(self, gep: I.GetElementPtr) -> Term:
        layout = self.program.layout
        moves = layout.moves(gep.source_type, gep.operands[1:])
        if isinstance(gep.type, T.VectorType) or moves is None:
            raise Unclear
        constant, steps = moves
        parts = [(self.of(gep.operands[0]), 1)]
        for index, step in steps:
            term = self.of(index)
            if isinstance(term.type, T.IntType) and term.type.bits < 64 and term.number is None:
                term = self.terms.term("sext", (term,), None, T.I64)
            parts.append((term, step))
        return self.terms.total(gep.type, parts, constant)

    # -- memory

    def root(self, address: Term) -> Value | None:
        """The value that an address is derived from, where that is one thing of its own: an argument that aliases no
        other, a local variable, a global variable."""
        _, parts = self.terms.linear(address)
        owned = (t for t, n in parts.items() if n == 1 and t.operation == "value" and T.is_pointer(t.type))
        return next((self.program.owners.get(t.detail) for t in owned), None)

    def apart(self, x: Term, x_size: int, y: Term, y_size: int) -> bool:
        """Whether two places surely have no byte in common."""
        distance = self.terms.distance(x, y)
        if distance is not None:
            return distance >= y_size or -distance >= x_size
        a, b = self.root(x), self.root(y)
        return a is not None and b is not None and a is not b

    def size(self, type_: T.Type) -> int:
        return self.program.layout.store_size(type_)

    def read(self, address: Term, type_: T.Type) -> Term:
        """What is at a place now."""
        size = self.size(type_)
        self.reads.append((address, size))
        for entry in reversed(self.written):
            value = entry.value
            if value is not None and entry.address is address and value.type == type_:
                return value
            distance = self.terms.distance(address, entry.address)
            inside = distance is not None and 0 <= distance <= entry.length - size
            if inside and value is None and not T.is_pointer(type_):
                return self.terms.number(type_, 0)
            if not self.apart(address, size, entry.address, entry.length):
                raise Unclear
        return self.found(address, type_)

    def found(self, address: Term, type_: T.Type) -> Term:
        """What was at a place when the walk started."""
        key = (address, type_)
        if key not in self._content:
            self._content[key] = None
            self._content[key] = self._at_end(self._start, address, type_, _Budget(_MOST_BLOCKS))
        known = self._content[key]
        return self._initial(address, type_) if known is None else self.terms.known.get(known, known)

    def _initial(self, address: Term, type_: T.Type) -> Term:
        return self.terms.term("memory", (address,), None, type_)

    def store(self, address: Term, value: Term) -> None:
        """Writes: nothing, where the value is there already."""
        if value is self.read(address, value.type) and value.operation != "invalid":
            return
        self.written.append(Written(address, value, self.size(value.type)))

    def fill(self, address: Term, length: int) -> None:
        """Writes zeros."""
        self.written.append(Written(address, None, length))

    def _at_end(self, block: BasicBlock, address: Term, type_: T.Type, budget: _Budget) -> Term | None:
        """What is at a place at the end of a block that lies before the walk, in the same iteration of every loop: a
        fact of the block, however many paths lead from it to where it is asked for."""
        key = (block, address, type_)
        if key not in self._at_ends:
            self._at_ends[key] = self._find_at_end(block, address, type_, budget)
        return self._at_ends[key]

    def _find_at_end(self, block: BasicBlock, address: Term, type_: T.Type, budget: _Budget) -> Term | None:
        touching = self.program.touching(block)
        self.program.effort.spend(len(touching) + 1)
        for instruction in reversed(touching):
            match instruction:
                case I.Store():
                    value, pointer = instruction.operands
                    place = self.of(pointer)
                    if place is address and value.type == type_:
                        return self.of(value)
                    if not self.apart(address, self.size(type_), place, self.size(value.type)):
                        return None
                case I.Load() if self.of(instruction.operands[0]) is address and instruction.type == type_:
                    return self.of(instruction)
                case I.CallBase() if call_effect(instruction) is Effect.MEMORY_SET:
                    length = int_value(instruction.operands[2])
                    place = self.of(instruction.operands[0])
                    distance = self.terms.distance(address, place)
                    if length is not None and distance is not None and 0 <= distance <= length - self.size(type_):
                        filled = int_value(instruction.operands[1]) == 0 and not T.is_pointer(type_)
                        return self.terms.number(type_, 0) if filled else None
                    if length is None or not self.apart(address, self.size(type_), place, length):
                        return None
                case I.CallBase() if not is_silent(instruction):
                    return None
                case I.AtomicRMW() | I.CmpXchg() | I.Fence():
                    return None
                case _:
                    pass
        return self._at_start(block, address, type_, budget)

    def _at_start(self, block: BasicBlock, address: Term, type_: T.Type, budget: _Budget) -> Term | None:
        sources = self.program.predecessors(block)
        if not budget.spend() or not sources or any(self.program.dominators.dominates(block, s) for s in sources):
            return None
        held = [self._at_end(source, address, type_, budget) for source in sources]
        first = held[0]
        if first is None or any(h is None for h in held):
            return None
        if all(h is first for h in held):
            return first
        for phi in block.instructions:
            if not isinstance(phi, I.Phi):
                return None
            given = {b: self.of(v) for v, b in phi.incoming}
            if all(given[s] is h for s, h in zip(sources, held, strict=True)):
                return self.of(phi)
        return None


@dataclass
class _Budget:
    left: int

    def spend(self) -> bool:
        self.left -= 1
        return self.left >= 0


def is_pure(call: I.CallBase) -> bool:
    """Whether a call computes its result from its arguments and does nothing else."""
    if not isinstance(call.callee, Function) or is_defined_call(call) or isinstance(call.type, T.VoidType):
        return False
    return is_memory_free(call) and call_effect(call) in (None, Effect.IGNORED)


def is_silent(call: I.CallBase) -> bool:
    """Whether nothing is missed where a call is left out, but for its result."""
    return is_pure(call) or call_effect(call) in (Effect.IGNORED, Effect.PURE_INT)


def read_from(values: Values, term: Term) -> Iterator[Value | None]:
    """The memory that a term was read from; None for memory that is not known."""
    for part in reached([term], lambda t: t.parts):
        if part.operation == "memory":
            yield values.root(part.parts[0])
        elif part in values.loads:
            yield values.root(values.of(values.loads[part].operands[0]))
