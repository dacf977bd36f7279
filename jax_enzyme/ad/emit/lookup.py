"""Values of the forward sweep, asked for in the reverse sweep.

`Sources` and `Lookup` are asked the same questions. The emitter of the reverse sweep runs first over plain `Sources`,
into code that is thrown away, which note every value that it asks for; the plan decides how each can be had; then the
emitter runs again over a `Lookup`, which emits what the plan says. So the plan covers exactly what emission needs.

A value may need another one, and so on for thousands of statements. What finds one is therefore a generator: it yields
what it needs first, and `_finished` runs all of them on a stack of its own.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from typing import Any, TypeAlias

from jax_enzyme.ad.emit.addresses import address_operands, element_alignment
from jax_enzyme.ad.emit.nodes import Nodes
from jax_enzyme.ad.emit.partials import Partials
from jax_enzyme.ad.facts.copying import again
from jax_enzyme.ad.plan.gates import Choice, Fork
from jax_enzyme.ad.plan.recipe import Closed, Forward, Gate, ReadBack, Recall, Reload, Repeat, Resident
from jax_enzyme.ad.plan.recipes import Recipes
from jax_enzyme.ad.plan.snapshots import Snapshot
from jax_enzyme.ad.plan.tape import address, marked
from jax_enzyme.ad.plan.taping import ForwardPointer, Plan, Pointers, What
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.objects import MemoryObject
from jax_enzyme.analysis.polynomials import Atom, Iteration, Polynomial, emit
from jax_enzyme.analysis.tbaa import kept_access, tape_access
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.values import Argument, Constant, ConstantExpr, ConstantInt, Poison, Value

Steps: TypeAlias = "Generator[Steps, Any, Value]"
"""Finds a value: yields the steps to others, and is sent these."""


_ADDRESSES = ("getelementptr", "addrspacecast", "freeze", "phi", "select")
"""How an address is made of others, so that its shadow is made of theirs in the same way."""


class Sources:
    """Where the reverse sweep gets forward values from: here, nowhere yet. What is asked for is noted, as `required`,
    with the numbers of the places that ask as bits, and as `pointers` that only the forward sweep has. `builder` is
    where code is being emitted; `forget` is called when emission moves to a block that the last one does not dominate,
    which is another place."""

    def __init__(self, recipes: Recipes, builder: Builder, shadows: dict[Value, Value]) -> None:
        self.recipes = recipes
        self.builder = builder
        self.shadows = shadows
        self.required: dict[Value, int] = {}
        self._place = 0
        self.pointers: Pointers = {}
        self._cache: dict[Value, Value] = {}
        self._shadow_cache: dict[Value, Value] = {}

    def value(self, value: Value) -> Value:
        """A forward value, as it was in the current iterations."""
        return _finished(self._value_steps(value))

    def _value_steps(self, value: Value) -> Steps:
        if isinstance(value, Constant):
            return value
        if not self.recipes.is_free(value):
            self.required[value] = self.required.get(value, 0) | 1 << self._place
        return Poison(value.type)
        yield  # nothing: it needs no other value

    def iteration(self, loop: Loop) -> Value:
        """The number of the current iteration (i64)."""
        return Poison(T.I64)

    def forward_pointer(self, of: Value, what: What) -> Value:
        """The shadow of a pointer, or the frame of a call, that only the forward sweep has."""
        if (of, what) not in self.pointers:
            self.pointers[of, what] = ForwardPointer(of, what)
        return Poison(T.PTR)

    def enter(self, loop: Loop) -> None:
        """Reverse enters a loop from its exit: its iteration number has been set."""

    def step_back(self, loop: Loop) -> None:
        """Reverse goes on to the iteration before."""

    def forget(self) -> None:
        self._place += 1
        self._cache = {}
        self._shadow_cache = {}

    def shadow(self, pointer: Value) -> Value:
        """The shadow of a pointer, found along the address arithmetic of the primal."""
        return _finished(self._shadow_steps(pointer))

    def shadow_at(self, pointer: Value, numbers: Mapping[Loop, int]) -> Value:
        """The same in other iterations of some loops."""
        return self.shadow(pointer)

    def _shadow_steps(self, pointer: Value) -> Steps:
        if pointer in self.shadows:
            return self.shadows[pointer]
        if pointer not in self._shadow_cache:
            self._shadow_cache[pointer] = yield self._find_shadow(pointer)
        return self._shadow_cache[pointer]

    def _find_shadow(self, pointer: Value) -> Steps:
        if isinstance(pointer, Argument):
            return self.forward_pointer(pointer, "shadow")
        if isinstance(pointer, ConstantExpr) and self._leads_to_shadow(pointer):
            return self._constant_shadow(pointer)
        if isinstance(pointer, Constant):
            # An address that is a mere number, as of an empty slice in Rust, leads nowhere, and what leads to memory
            # without a shadow is its own.
            leads = any(item.site in self.shadows for item in self.recipes.points_to.of(pointer))
            return self.forward_pointer(pointer, "shadow") if leads else pointer
        recipe = self.recipes.of(pointer)
        match recipe:
            case Repeat() if isinstance(pointer, I.Instruction) and pointer.opcode in _ADDRESSES:
                made_of, operands = address_operands(pointer), list[Value]()
                for index, operand in enumerate(recipe.operands):
                    shadowed = index in made_of
                    operands.append((yield self._shadow_steps(operand) if shadowed else self._value_steps(operand)))
                return operands[0] if isinstance(pointer, I.Phi) else self._again(pointer, operands)
            case Closed(polynomial, origin) if origin is not None:
                start: Value = yield self._shadow_steps(origin)
                return self.builder.gep(T.I8, start, [(yield from self._polynomial(polynomial, T.I64))])
            case Gate(tree):
                return (yield from self._choose(tree, shadows=True))
            case _:
                return self.forward_pointer(pointer, "shadow")

    def _all(self, values: Iterable[Value]) -> Generator[Steps, Any, list[Value]]:
        found: list[Value] = []
        for value in values:
            found.append((yield self._value_steps(value)))
        return found

    def _leads_to_shadow(self, pointer: Constant) -> bool:
        """Whether a constant is an address in a variable whose shadow is at hand."""
        if not isinstance(pointer, ConstantExpr):
            return pointer in self.shadows
        return pointer.opcode in ("getelementptr", "addrspacecast") and self._leads_to_shadow(pointer.operands[0])

    def _constant_shadow(self, pointer: ConstantExpr) -> Value:
        base = self.shadow(pointer.operands[0])
        if pointer.source_type is None:
            return base
        return self.builder.gep(pointer.source_type, base, pointer.operands[1:])

    def _again(self, instruction: Value, operands: list[Value]) -> Value:
        assert isinstance(instruction, I.Instruction)
        twin = again(instruction)
        twin.operands = operands + ([instruction.callee] if isinstance(instruction, I.CallBase) else [])
        twin.name = ""
        if isinstance(instruction, I.Load):
            twin.metadata = kept_access(self.recipes.points_to.module, instruction)
        return self.builder.insert(twin)

    def _polynomial(self, polynomial: Polynomial, type_: T.Type) -> Steps:
        """The value of a polynomial in the current iterations."""
        atoms: dict[Atom, Value] = {}
        for atom in polynomial.atoms:
            if isinstance(atom, Iteration):
                atoms[atom] = self.iteration(atom.loop)
            else:
                atoms[atom] = yield self._value_steps(atom.value)
        assert isinstance(type_, T.IntType)
        return emit(self.builder, polynomial, type_, atoms.__getitem__)

    def _choose(self, tree: Choice, shadows: bool = False) -> Steps:
        """Selects over a tree of choices, which is no deeper than a region that a gate may cover."""
        if not isinstance(tree, Fork):
            return (yield self._shadow_steps(tree) if shadows else self._value_steps(tree))
        condition: Value = yield self._value_steps(tree.condition)
        then = yield from self._choose(tree.then, shadows)
        other = yield from self._choose(tree.other, shadows)
        return self.builder.select(condition, then, other)


def _finished(steps: Steps) -> Value:
    """Runs steps and those that they yield, however deep they go."""
    stack = [steps]
    result: Value | None = None
    while stack:
        try:
            needed = stack[-1].send(result)
        except StopIteration as done:
            stack.pop()
            result = done.value
        else:
            stack.append(needed)
            result = None
    assert result is not None
    return result


class Lookup(Sources):
    """Emits what the plan says. `arguments` maps the parameters of the primal to those of the reverse function,
    `iterations` each loop to the variable that holds the number of its current iteration, `frames` each frame's loop
    (None for the root) to the variable that holds its node or row, or for the root the value that points to it.
    `reloads` notes which load of the primal each load from its memory repeats, or which store left it, `recalls` which
    one each load from a copy of that repeats, `kept` which value each other load from the tape is."""

    def __init__(
        self,
        plan: Plan,
        builder: Builder,
        shadows: dict[Value, Value],
        arguments: dict[Value, Value],
        iterations: dict[Loop, Value],
        frames: dict[Loop | None, Value],
        nodes: Nodes,
        partials: Partials,
    ) -> None:
        super().__init__(plan.recipes, builder, shadows)
        self._partials = partials
        self.plan = plan
        self.arguments = arguments
        self.used_arguments: set[Value] = set()
        self.reloads: dict[Value, I.Load | I.Store] = {}
        self.recalls: dict[Value, tuple[I.Load, Snapshot]] = {}
        self.kept: dict[Value, Value] = {}
        self._iterations = iterations
        self._frames = frames
        self._nodes = nodes
        self._elsewhere: dict[Loop, Value] = {}

    def iteration(self, loop: Loop) -> Value:
        if loop in self._elsewhere:
            return self._elsewhere[loop]
        return self.builder.load(T.I64, self._iterations[loop])

    def enter(self, loop: Loop) -> None:
        if loop in self.plan.tape.frames:
            slot = self.plan.tape.slots["last", loop]
            at = address(self.builder, slot, self.frame(slot.frame.loop), self.iteration)
            self.builder.store(self._nodes.read(self.builder, at), self._frames[loop])

    def step_back(self, loop: Loop) -> None:
        if loop in self.plan.tape.frames and self.plan.tape.frames[loop].length is None:
            node = self.builder.load(self._nodes.type, self._frames[loop])
            self.builder.store(self._nodes.before(self.builder, loop, node), self._frames[loop])

    def frame(self, loop: Loop | None) -> Value:
        base = self._frames[loop]
        if loop is None:
            return base
        if self.plan.tape.frames[loop].length is not None:
            row = self.builder.load(self._nodes.type, base)
            return self.builder.gep(self.plan.tape.row_step(loop), row, [self.iteration(loop)])
        return self._nodes.frame(self.builder, self.builder.load(self._nodes.type, base))

    def object(self, item: MemoryObject) -> Value:
        """The address of a buffer, or of a local object that lives in the tape."""
        if isinstance(item.site, Argument):
            return self.value(item.site)
        return address(self.builder, self.plan.tape.slots[item], self.frame(None), self.iteration)

    def forward_pointer(self, of: Value, what: What) -> Value:
        return self._taped(self.plan.pointers[of, what])

    def shadow_at(self, pointer: Value, numbers: Mapping[Loop, int]) -> Value:
        at = {loop: ConstantInt(T.I64, number) for loop, number in numbers.items()}
        outer, caches = self._elsewhere, (self._cache, self._shadow_cache)
        self._elsewhere, self._cache, self._shadow_cache = {**outer, **at}, {}, {}
        result = self.shadow(pointer)
        self._elsewhere, (self._cache, self._shadow_cache) = outer, caches
        return result

    def _value_steps(self, value: Value) -> Steps:
        if isinstance(value, Constant):
            return value
        if isinstance(value, Argument) and self.recipes.is_free(value):
            self.used_arguments.add(value)
            return self.arguments[value]
        loop = self.recipes.loop_counted_by(value)
        if loop is not None:
            return self.iteration(loop)
        if value not in self._cache:
            if value in self.plan.read_back:
                self._cache[value] = yield self._read_back(self.plan.read_back[value])
            elif value in self.plan.taped:
                self._cache[value] = self._taped(value)
            else:
                self._cache[value] = yield self._computed(value)
        return self._cache[value]

    def _taped(self, value: Value) -> Value:
        slot = self.plan.tape.slots[value]
        pointer = address(self.builder, slot, self.frame(slot.frame.loop), self.iteration)
        loaded = marked(slot, self.builder.load(slot.type, pointer, element_alignment(slot.type, None)))
        self.kept[loaded] = value
        return self.builder.cast("trunc", loaded, T.I1) if value.type == T.I1 else loaded

    def _read_back(self, back: ReadBack) -> Steps:
        distance: Value = yield from self._polynomial(back.place, T.I64)
        pointer = self.builder.gep(T.I8, (yield self._value_steps(back.buffer)), [distance])
        twin = self.builder.load(back.store.operands[0].type, pointer, back.store.align)
        twin.metadata = kept_access(self.recipes.points_to.module, back.store)
        self.reloads[twin] = back.store
        return twin

    def _computed(self, value: Value) -> Steps:
        recipe = self.recipes.of(value)
        match recipe:
            case Repeat() if isinstance(value, I.Phi):
                return (yield self._value_steps(recipe.operands[0]))
            case Repeat() if value in self.plan.near:
                dividend, divisor = yield from self._all(recipe.operands)
                return self._partials.quotient(dividend, divisor)
            case Repeat() | Reload():
                twin = self._again(value, (yield from self._all(recipe.operands)))
                if isinstance(value, I.Load):
                    self.reloads[twin] = value
                return twin
            case Recall(snapshot, place):
                assert isinstance(value, I.Load)
                return (yield from self._recalled(value, snapshot, place))
            case Closed(polynomial, None):
                return (yield from self._polynomial(polynomial, value.type))
            case Closed(polynomial, base):
                assert base is not None
                start: Value = yield self._value_steps(base)
                return self.builder.gep(T.I8, start, [(yield from self._polynomial(polynomial, T.I64))])
            case Gate(tree):
                return (yield from self._choose(tree))
            case Forward(stored, None):
                return (yield self._value_steps(stored))
            case Forward(stored, loop, index):
                assert loop is not None
                return (yield from self._forwarded(stored, loop, index))
            case Resident((item,)):
                return self.object(item)
            case _:
                raise AssertionError(f"the plan does not cover %{value.name}")

    def _recalled(self, load: I.Load, snapshot: Snapshot, place: Polynomial) -> Steps:
        distance: Value = yield from self._polynomial(place, T.I64)
        slot = self.plan.tape.slots[snapshot]
        copy = address(self.builder, slot, self.frame(slot.frame.loop), self.iteration)
        natural = element_alignment(load.type, None)
        align = natural if place.divide(natural) is not None else 1
        twin = self.builder.load(load.type, self.builder.gep(T.I8, copy, [distance]), align)
        twin.metadata = tape_access(load.type)
        self.recalls[twin] = load, snapshot
        return twin

    def _forwarded(self, stored: Value, loop: Loop, index: Polynomial) -> Steps:
        """A value as it was in another iteration of a loop that is over. (Until it is found, nothing else is.)"""
        number = yield from self._polynomial(index, T.I64)
        outer, cache = self._elsewhere, self._cache
        self._elsewhere, self._cache = {**outer, loop: number}, {}
        result: Value = yield self._value_steps(stored)
        self._elsewhere, self._cache = outer, cache
        return result
