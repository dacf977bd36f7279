"""How much of each parameter's memory a function touches, and in which order: guesses for a signature.

    for (i = 0; i < n; i++) y[i] = a * x[i];        x: read, 0 to 8 n;        y: written, 0 to 8 n

Places are polynomials in the iteration numbers of loops and in the function's integers. A *root* is memory that a
parameter leads to: itself, what a pointer in its structure leads to (with the pointer's offset), or the rows of an
array of pointers.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from fractions import Fraction

from jax_enzyme.analysis.accesses import direct
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.polynomials import Iteration, Leaf, Polynomial, TooComplex
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.classes import dataclass, field
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function, Module, callee_name
from jax_enzyme.ir.values import Argument, BasicBlock, Value, int_value

ROWS = "rows"


@dataclass(frozen=True)
class Root:
    """Parameter number `index`, and the way from there: offsets of pointers, or ROWS."""

    index: int
    path: tuple[int | str, ...] = ()


Terms = dict[tuple[Root, ...], Fraction]
"""A sum of products of integers of the function."""


@dataclass(frozen=True)
class Size:
    """The bytes that are touched, as sums of products: coefficient by integers of the function (their roots, with an
    offset where they lie in a structure); `strides` are those of the integers by which rows are apart, in bytes."""

    terms: Mapping[tuple[Root, ...], int]
    strides: tuple[tuple[tuple[tuple[Root, ...], int], ...], ...] = ()

    @property
    def constant(self) -> int | None:
        return self.terms.get((), 0) if set(self.terms) <= {()} else None


@dataclass
class Touched:
    """What happens to one root: it is neither read nor written where nothing but the pointer to it is read. `is_exact`:
    every place that is touched is in `sizes`."""

    reads: bool = False
    writes: bool = False
    written_first: bool = True
    sizes: list[Size] = field(default_factory=list[Size])
    is_exact: bool = True


def touched(module: Module, function: Function, roots: Mapping[int, Root]) -> dict[Root, Touched]:
    """What a function does to the memory of its parameters, as far as it does so itself. `roots`: which its arguments
    are, by number; others are not looked at."""
    return _Touching(module, function, roots).run()


@dataclass(frozen=True)
class _Place:
    instruction: I.Instruction
    block: BasicBlock
    address: Polynomial | None
    writes: bool


class _Touching:
    def __init__(self, module: Module, function: Function, roots: Mapping[int, Root]) -> None:
        self.function, self.roots = function, roots
        self.facts = Recurrences.of(function, module)
        self.loops = self.facts.loops
        self.layout = DataLayout(module)
        self.found: dict[Root, Touched] = {}
        self.places: dict[Root, list[_Place]] = {}

    def run(self) -> dict[Root, Touched]:
        for block in self.function.blocks:
            for instruction in block.instructions:
                if isinstance(instruction, I.Load | I.Store | I.CallBase):
                    self._visit(instruction, block)
        for root, places in self.places.items():
            self.found[root].written_first = self._written_first(places)
        for block in self.function.blocks:
            for load in block.instructions:
                for root in self._followed(load) if isinstance(load, I.Load) and load.type == T.PTR else ():
                    self.found.setdefault(root, Touched(is_exact=False))
        return self.found

    def _visit(self, instruction: I.Load | I.Store | I.CallBase, block: BasicBlock) -> None:
        """A callee may touch anything of what it is given."""
        found = direct(instruction, self.layout)
        for pointer, size, writes in found:
            length = Polynomial.constant(size) if isinstance(size, int) else self.facts.form(size).polynomial
            self._touch(instruction, block, pointer, length, writes)
        if found or callee_name(instruction).startswith(("llvm.lifetime", "llvm.assume", "llvm.dbg")):
            return
        assert isinstance(instruction, I.CallBase)
        for argument in instruction.arguments:
            root = self._touch(instruction, block, argument, None, True) if argument.type == T.PTR else None
            if root is not None:
                self.found[root].reads = True

    def _touch(
        self, instruction: I.Instruction, block: BasicBlock, pointer: Value, length: Polynomial | None, writes: bool
    ) -> Root | None:
        """So many bytes behind a pointer are touched (None: nobody knows which)."""
        address = self.facts.form(pointer).polynomial
        split = self._split(address)
        if split is None:
            return None
        root, offset = split
        self._note(root, instruction, block, address, writes)
        size = None if length is None else self._size(offset + length)
        if size is None:
            self.found[root].is_exact = False
        elif size not in self.found[root].sizes:
            self.found[root].sizes.append(size)
        return root

    def _note(
        self, root: Root, instruction: I.Instruction, block: BasicBlock, address: Polynomial | None, writes: bool
    ) -> None:
        known = self.found.setdefault(root, Touched())
        known.writes |= writes
        known.reads |= not writes
        self.places.setdefault(root, []).append(_Place(instruction, block, address, writes))

    # -- where

    def _split(self, address: Polynomial) -> tuple[Root, Polynomial] | None:
        """The root of an address, and how far behind it."""
        for atom in address.atoms:
            root = self._root(atom.value) if isinstance(atom, Leaf) and atom.value.type == T.PTR else None
            if root is not None and address.terms.get(((atom, 1),)) == 1:
                return root, address + -Polynomial.atom(atom)
        return None

    def _root(self, pointer: Value) -> Root | None:
        if isinstance(pointer, Argument):
            return self.roots.get(pointer.index)
        if not isinstance(pointer, I.Load):
            return None
        split = self._split(self.facts.form(pointer.operands[0]).polynomial)
        if split is None:
            return None
        root, offset = split
        return Root(root.index, (*root.path, ROWS if offset.value is None else offset.value))

    def _followed(self, load: I.Load) -> Iterator[Root]:
        """What a pointer may lead to that is read, also from one of several nodes (`p = p->next`)."""
        address = self.facts.form(load.operands[0]).polynomial
        for atom in address.atoms:
            if isinstance(atom, Leaf) and atom.value.type == T.PTR and address.terms.get(((atom, 1),)) == 1:
                offset = (address + -Polynomial.atom(atom)).value
                for root in self._origins(atom.value, set()):
                    yield Root(root.index, (*root.path, ROWS if offset is None else offset))

    def _origins(self, pointer: Value, seen: set[Value]) -> Iterator[Root]:
        root = self._root(pointer)
        if root is not None:
            yield root
        elif isinstance(pointer, I.Phi | I.Select) and pointer not in seen:
            seen.add(pointer)
            for incoming in pointer.operands:
                if incoming.type == T.PTR:
                    yield from self._origins(incoming, seen)

    def _integers(self, value: Value) -> Terms | None:
        """An integer of the function, or a sum of products of such; None where it is something else."""
        root = self.roots.get(value.index) if isinstance(value, Argument) else None
        match value:
            case I.Load():
                root = self._root(value)
            case I.Cast() | I.Freeze():
                return self._integers(value.operands[0])
            case I.Select():
                left, right = value.operands[1:]
                return self._integers(right if int_value(left) is not None else left)
            case I.CallBase() if "max." in callee_name(value):
                return self._integers(value.arguments[0])
            case I.BinaryOp():
                form = self.facts.form(value).polynomial
                return None if Leaf(value) in form.atoms else self._terms(form)
            case _:
                pass
        return None if root is None else {(root,): Fraction(1)}

    def _size(self, end: Polynomial) -> Size | None:
        strides: list[tuple[tuple[tuple[Root, ...], int], ...]] = []
        for atom in reversed(end.atoms):
            if isinstance(atom, Iteration):
                step = end.coefficients(atom)
                falls = {_falls(part) for part in step[1:] if part.terms}
                back = Polynomial.constant(0) if falls <= {True} else self.facts.trip_count(atom.loop).exact
                if back is None or len(falls) > 1 or None in falls:
                    return None  # the last place is that of no iteration that is known
                if len(step) > 1 and (named := self._named(step[1])) is not None:
                    strides.append(tuple(sorted(named.items(), key=str)))
                try:
                    end = end.substitute(atom, back)
                except TooComplex:
                    return None
        named = self._named(end)
        return None if named is None else Size(named, tuple(strides))

    def _named(self, polynomial: Polynomial) -> dict[tuple[Root, ...], int] | None:
        terms = self._terms(polynomial)
        if terms is None or any(value.denominator > 1 for value in terms.values()):
            return None
        return {key: int(value) for key, value in terms.items() if value}

    def _terms(self, polynomial: Polynomial) -> Terms | None:
        found: Terms = {}
        for monomial, coefficient in polynomial.terms.items():
            product: Terms = {(): Fraction(coefficient)}
            for atom, degree in monomial:
                factor = self._integers(atom.value) if isinstance(atom, Leaf) else None
                if factor is None:
                    return None
                product = _product(product, _chosen(factor, degree))
            for key, value in product.items():
                found[key] = found.get(key, Fraction(0)) + value
        return found

    # -- when

    def _written_first(self, places: list[_Place]) -> bool:
        writes = [place for place in places if place.writes]
        return all(any(self._before(w, r) for w in writes) for r in places if not r.writes)

    def _before(self, write: _Place, read: _Place) -> bool:
        if not self.loops.precedes(write.instruction, read.instruction):
            return False
        if write.address == read.address:
            return True
        around = any(read.block in loop for loop in self.loops.roots if write.block in loop)
        return write.block is not read.block and not around


def _falls(step: Polynomial) -> bool | None:
    """Whether something is below zero where the function's integers are large; None where that depends on which is."""
    degrees = {monomial: sum(degree for _, degree in monomial) for monomial in step.terms}
    most = max(degrees.values(), default=0)
    signs = {step.terms[monomial] < 0 for monomial, degree in degrees.items() if degree == most}
    return signs.pop() if len(signs) == 1 else None


def _product(left: Terms, right: Terms) -> Terms:
    found: Terms = {}
    for (a, value), (b, factor) in itertools.product(left.items(), right.items()):
        key = tuple(sorted((*a, *b), key=str))
        found[key] = found.get(key, Fraction(0)) + value * factor
    return found


def _chosen(terms: Terms, degree: int) -> Terms:
    """The binomial coefficient of a sum over `degree`."""
    found: Terms = {(): Fraction(1)}
    for k in range(degree):
        less = {**terms, (): terms.get((), Fraction(0)) - k}
        found = _product(found, {key: value / (k + 1) for key, value in less.items()})
    return found
