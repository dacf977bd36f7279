"""What the analyses say about random programs, against what these do when they run."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.dominators import Dominators
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.analysis.polynomials import Atom, Iteration, Polynomial
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import passes
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.values import BasicBlock
from tests.analysis.interpreter import POISON, Number, Run, Undefined, width
from tests.analysis.programs import programs


class Watch:
    """Compares every fact with every step of a run, and keeps what disagrees."""

    def __init__(self, function: Function, facts: Recurrences) -> None:
        self.function = function
        self.facts = facts
        self.iterations: dict[Loop, int] = {}
        self.complaints: list[str] = []
        self.run: Run | None = None

    def go(self, arguments: list[int]) -> bool:
        """Runs; False if the run says nothing."""
        self.run = Run(self.function, arguments, self.defined, self.moved)
        self.complaints.clear()
        self.iterations.clear()
        try:
            self.run.go()
        except Undefined:
            return False
        assert not self.complaints, "\n".join(self.complaints[:5])
        return True

    def evaluate(self, polynomial: Polynomial) -> Number:
        """None if it has poison in it."""
        assert self.run is not None
        values: dict[Atom, Number] = {
            atom: self.iterations[atom.loop] if isinstance(atom, Iteration) else self.run.get(atom.value)
            for atom in polynomial.atoms
        }
        known = {atom: x for atom, x in values.items() if x is not POISON}
        return polynomial.evaluate(known.__getitem__) if len(known) == len(values) else POISON

    def defined(self, value: I.Instruction, number: Number) -> None:
        if number is POISON:
            return
        bits = width(value)
        known = self.facts.range_of(value)
        self.check(known.low <= number <= known.high, f"%{value.name} = {number} is not in {known}")
        if bits == 1:
            return
        form = self.facts.form(value)
        found = self.evaluate(form.polynomial)
        what = f"%{value.name} = {number}, but {form.polynomial} = {found}"
        self.check(found is not POISON, what)
        if found is POISON:
            return
        self.check((found - number) % (1 << bits) == 0, what)
        self.check(not form.signed or found == number, what + " (signed)")
        self.check(not form.unsigned or found == number % (1 << bits), what + " (unsigned)")

    def moved(self, source: BasicBlock, target: BasicBlock) -> None:
        loop = self.facts.loops.loop_of[source]
        while loop is not None and target not in loop:
            self.left(loop)
            loop = loop.parent
        inner = self.facts.loops.loop_of[target]
        if inner is not None and inner.header is target:
            self.iterations[inner] = self.iterations[inner] + 1 if source in inner else 0
            limit = self.facts.trip_count(inner).maximum
            count = self.iterations[inner]
            self.check(limit is None or count <= limit, f"loop {target.name}: {count} back edges, maximum {limit}")

    def left(self, loop: Loop) -> None:
        exact = self.facts.trip_count(loop).exact
        if exact is not None:
            count, said = self.iterations[loop], self.evaluate(exact)
            self.check(said == count, f"loop {loop.header.name}: {count} back edges, but {exact} = {said}")

    def check(self, holds: bool, complaint: str) -> None:
        if not holds:
            self.complaints.append(complaint)


def analyse(function: Function) -> Recurrences:
    cfg = Cfg(function)
    return Recurrences(function, Loops(cfg, Dominators(cfg)))


def prepared(text: str, optimise: bool) -> Function:
    """The program in SSA form, as simple as that or as LLVM's -O2 leaves it; every value named."""
    module = parse(text)
    module = passes.optimise(module) if optimise else passes.run(module, ["sroa"])
    module = passes.run(module, ["loop-simplify", "lcssa", "instnamer"])
    return module.functions["f"]


def leaves_are_at_hand(function: Function, facts: Recurrences) -> None:
    """A value's closed form is in iteration numbers of loops around it, and in values that dominate it."""
    home = facts.block_of
    for value in function.instructions():
        if value not in home or not isinstance(value.type, T.IntType) or home[value] not in facts.cfg.index:
            continue
        polynomial = facts.form(value).polynomial
        for atom in () if polynomial.is_atom(facts.leaf(value)) else polynomial.atoms:
            if isinstance(atom, Iteration):
                assert home[value] in atom.loop
            elif isinstance(atom.value, I.Instruction):
                assert facts.dominators.dominates(home[atom.value], home[value])
                assert home[atom.value] is not home[value] or before(atom.value, value, home[value])


def before(a: I.Instruction, b: I.Instruction, block: BasicBlock) -> bool:
    return block.instructions.index(a) < block.instructions.index(b)


@pytest.mark.parametrize("optimise", [False, True], ids=["ssa", "O2"])
@settings(suppress_health_check=list(HealthCheck))
@given(text=programs(), arguments=st.lists(st.tuples(st.integers(-3, 12), st.integers(-3, 12)), min_size=3, max_size=3))
def test_facts_hold(optimise: bool, text: str, arguments: list[tuple[int, int]]) -> None:
    function = prepared(text, optimise)
    facts = analyse(function)
    leaves_are_at_hand(function, facts)
    watch = Watch(function, facts)
    for pair in arguments:
        watch.go(list(pair))
