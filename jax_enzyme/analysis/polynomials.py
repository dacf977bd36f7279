"""Integer-valued polynomials in the iteration numbers of loops and in opaque values: the closed forms of integers.

A polynomial is a sum of terms `c * C(a, i) * C(b, j) ...` with integer coefficients, where `C(a, i)` is the binomial
coefficient "a choose i" of an *atom*, and an atom is

    Iteration(loop)   how many times the loop's back edge was taken since the loop was entered: 0, 1, 2 ...
    Leaf(value)       an SSA value with no closed form of its own, read as a signed integer (a pointer: as an address)

Products of binomials are the natural basis here: every polynomial with integer values has integer coefficients in it
(i*(i+1)/2 is `C(i,2) + i`), a sum over the iterations of a loop only shifts a degree (the sum of `C(t,j)` over t < k is
`C(k,j+1)`), and the terms of a chain {a,+,b,+,c}<loop> are just the coefficients of 1, C(k,1), C(k,2).

**Meaning.** A closed form of a value `v` of `w` bits says `v = P (mod 2**w)` with P computed over the integers. Whether
v *equals* P as a signed or unsigned integer is a separate fact (`Form.signed`, `Form.unsigned` in `recurrences`).

**Emission.** `emit` computes in i64, modulo 2**64. Coefficients and atoms of degree 1 need no care. `C(x,2)` is
`(x >> 1) * ((x - 1) | 1)`: one of x, x-1 is even, the shift halves it (x even: x/2 times x-1; x odd: (x-1)/2 times x),
so that nothing overflows before the division. `C(x,3) = C(x,2) * (x-2) / 3`, where dividing by 3 is multiplying by its
inverse modulo 2**64, exact because the product over the integers is a multiple of 3. Higher degrees are not formed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from math import comb, prod
from operator import attrgetter

from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.ranges import Interval
from jax_enzyme.classes import dataclass, field
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.values import Value

MAX_DEGREE = 3
MAX_TERMS = 48
_INVERSE_OF_3 = pow(3, -1, 1 << 64)
_RANK = attrgetter("rank")


class TooComplex(Exception):
    """A polynomial grew beyond `MAX_DEGREE` in one atom, or beyond `MAX_TERMS`. Whoever asks for it then knows nothing:
    a value is an atom, a trip count unknown, a place anywhere, a condition silent."""


@dataclass(frozen=True, slots=True)
class Iteration:
    """The iteration number of a loop. `rank` orders atoms within a monomial and plays no part in comparison."""

    loop: Loop
    rank: int = field(default=0, compare=False)

    def __hash__(self) -> int:
        return hash(self.loop)

    def __str__(self) -> str:
        return _atom_text(self, _own_name)


@dataclass(frozen=True, slots=True)
class Leaf:
    """An SSA value taken as it is."""

    value: Value
    rank: int = field(default=0, compare=False)

    def __hash__(self) -> int:
        return hash(self.value)

    def __str__(self) -> str:
        return _atom_text(self, _own_name)


Atom = Iteration | Leaf
Monomial = tuple[tuple[Atom, int], ...]


@dataclass(frozen=True)
class Polynomial:
    """An immutable polynomial; `terms` maps a monomial (atoms and degrees, by rank) to its coefficient, never 0."""

    terms: Mapping[Monomial, int]

    @staticmethod
    def constant(value: int) -> Polynomial:
        return Polynomial({(): value} if value else {})

    @staticmethod
    def atom(atom: Atom) -> Polynomial:
        return Polynomial({((atom, 1),): 1})

    @property
    def value(self) -> int | None:
        """The integer that it is, if it has no atoms."""
        if not self.terms:
            return 0
        return self.terms[()] if len(self.terms) == 1 and () in self.terms else None

    @property
    def constant_term(self) -> int:
        return self.terms.get((), 0)

    @property
    def atoms(self) -> tuple[Atom, ...]:
        """Its atoms, by rank."""
        found = {atom: None for monomial in self.terms for atom, _ in monomial}
        return tuple(sorted(found, key=_RANK) if len(found) > 1 else found)

    @property
    def linear(self) -> dict[Atom, int] | None:
        """The factors of its atoms, where it is a sum of multiples of them, and of the constant term."""
        found = {m[0][0]: c for m, c in self.terms.items() if len(m) == 1 and m[0][1] == 1}
        return found if len(found) + (() in self.terms) == len(self.terms) else None

    def is_atom(self, atom: Atom) -> bool:
        return self.terms == {((atom, 1),): 1}

    def contains(self, atom: Atom) -> bool:
        return any(a == atom for monomial in self.terms for a, _ in monomial)

    def __add__(self, other: Polynomial) -> Polynomial:
        if not self.terms or not other.terms:
            return self if self.terms else other
        return _collect([*self.terms.items(), *other.terms.items()])

    def __neg__(self) -> Polynomial:
        return self.scale(-1)

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self + -other

    def __mul__(self, other: Polynomial) -> Polynomial:
        return _collect(
            (monomial, c * x * y)
            for a, x in self.terms.items()
            for b, y in other.terms.items()
            for monomial, c in _multiply(a, b)
        )

    def scale(self, factor: int) -> Polynomial:
        return Polynomial({m: c * factor for m, c in self.terms.items()} if factor else {})

    def modulo(self, bits: int) -> Polynomial:
        """A polynomial congruent to this one modulo 2**bits, with the smallest factors."""
        half = 1 << (bits - 1)
        factors = {m: (c + half) % (2 * half) - half for m, c in self.terms.items()}
        return Polynomial({m: c for m, c in factors.items() if c})

    def add_constant(self, constant: int) -> Polynomial:
        return self + Polynomial.constant(constant)

    def divide(self, divisor: int) -> Polynomial | None:
        """The quotient, if every coefficient is a multiple of the divisor."""
        if any(c % divisor for c in self.terms.values()):
            return None
        return Polynomial({m: c // divisor for m, c in self.terms.items()})

    def coefficients(self, atom: Atom) -> list[Polynomial]:
        """`[p0, p1, ...]` with self = sum of `pj * C(atom, j)` and no `pj` containing the atom; never empty."""
        if not self.contains(atom):
            return [self]
        parts: list[dict[Monomial, int]] = [{}]
        for monomial, c in self.terms.items():
            degree = next((d for a, d in monomial if a == atom), 0)
            parts.extend({} for _ in range(degree + 1 - len(parts)))
            parts[degree][tuple(f for f in monomial if f[0] != atom)] = c
        return [Polynomial(part) for part in parts]

    def summed(self, atom: Atom) -> Polynomial:
        """The sum of self over atom = 0, 1 ... atom-1: every degree in the atom goes up by one."""
        result = Polynomial({})
        for degree, part in enumerate(self.coefficients(atom)):
            if degree + 1 > MAX_DEGREE and part.terms:
                raise TooComplex
            result += part * Polynomial({((atom, degree + 1),): 1})
        return result

    def choose(self, degree: int) -> Polynomial:
        """C(self, degree), by Vandermonde's identity over the terms."""
        if degree <= 1:
            return self if degree else Polynomial.constant(1)
        parts = [Polynomial.constant(1)] + [Polynomial({})] * degree
        for monomial, c in self.terms.items():
            powers = [_choose_term(monomial, c, d) for d in range(degree + 1)]
            mixed: list[Polynomial] = []
            for d in range(degree + 1):
                total = Polynomial({})
                for i in range(d + 1):
                    total += parts[i] * powers[d - i]
                mixed.append(total)
            parts = mixed
        return parts[degree]

    def substitute(self, atom: Atom, replacement: Polynomial) -> Polynomial:
        """Self with the atom replaced."""
        if not self.contains(atom):
            return self
        result = Polynomial({})
        for degree, part in enumerate(self.coefficients(atom)):
            if part.terms:
                result += part * replacement.choose(degree)
        return result

    def evaluate(self, value_of: Callable[[Atom], int]) -> int:
        """Its integer value, given those of its atoms."""
        return sum(c * prod(choose(value_of(a), d) for a, d in m) for m, c in self.terms.items())

    def interval(self, range_of: Callable[[Atom], Interval]) -> Interval:
        """An interval that contains its value, given those of its atoms."""
        total = Interval(0, 0)
        for monomial, c in self.terms.items():
            term = Interval(c, c)
            for atom, degree in monomial:
                term = term * _choose_interval(range_of(atom), degree)
            total = total + term
        return total

    def __str__(self) -> str:
        return self.text(_own_name)

    def text(self, name_of: Callable[[Value], str]) -> str:
        """For reading; `name_of` says how a value or block is called, with its sigil."""
        if not self.terms:
            return "0"
        ordered = sorted(self.terms.items(), key=lambda t: (sum(d for _, d in t[0]), [(a.rank, d) for a, d in t[0]]))
        text = ""
        for monomial, c in ordered:
            named = [(_atom_text(a, name_of), d) for a, d in monomial]
            factors = [a if d == 1 else f"C({a},{d})" for a, d in named]
            if abs(c) != 1 or not factors:
                factors.insert(0, str(abs(c)))
            sign = ("-" if c < 0 else "") if not text else (" - " if c < 0 else " + ")
            text += sign + "*".join(factors)
        return text


def _own_name(value: Value) -> str:
    return f"%{value.name}"


def _atom_text(atom: Atom, name_of: Callable[[Value], str]) -> str:
    return f"it({name_of(atom.loop.header)})" if isinstance(atom, Iteration) else name_of(atom.value)


def choose(x: int, degree: int) -> int:
    """The binomial coefficient as a polynomial in x: defined for negative x too."""
    return comb(x, degree) if x >= 0 else (-1) ** degree * comb(degree - x - 1, degree)


def _collect(terms: Iterable[tuple[Monomial, int]]) -> Polynomial:
    result: dict[Monomial, int] = {}
    for monomial, c in terms:
        result[monomial] = result.get(monomial, 0) + c
    result = {m: c for m, c in result.items() if c}
    if len(result) > MAX_TERMS:
        raise TooComplex
    return Polynomial(result)


def _multiply(a: Monomial, b: Monomial) -> Iterator[tuple[Monomial, int]]:
    """The product of two monomials. For a shared atom, C(x,m) C(x,n) is the sum over k of
    C(k,m) C(m,k-n) C(x,k), for k from max(m,n) to m+n."""
    if not a or not b:
        yield a or b, 1
        return
    degrees = dict(a)
    options: list[list[tuple[Atom, int, int]]] = []
    for atom, n in b:
        m = degrees.pop(atom, 0)
        if m + n > MAX_DEGREE:
            raise TooComplex
        options.append([(atom, k, comb(k, m) * comb(m, k - n)) for k in range(max(m, n), m + n + 1)])
    for chosen in product(*options):
        factors = [*degrees.items(), *((atom, k) for atom, k, _ in chosen)]
        factors.sort(key=lambda f: f[0].rank)
        yield tuple(factors), prod(c for _, _, c in chosen)


def _choose_term(monomial: Monomial, c: int, degree: int) -> Polynomial:
    """C(c * monomial, degree): its forward differences at 0 in every atom are the coefficients (Newton)."""
    if degree == 0:
        return Polynomial.constant(1)
    if degree == 1:
        return Polynomial({monomial: c})
    tops = [d * degree for _, d in monomial]
    if any(top > MAX_DEGREE for top in tops):
        raise TooComplex
    terms: list[tuple[Monomial, int]] = []
    for orders in product(*(range(top + 1) for top in tops)):
        difference = 0
        for point in product(*(range(order + 1) for order in orders)):
            weight = prod((-1) ** (m - i) * comb(m, i) for m, i in zip(orders, point, strict=True))
            value = c * prod(comb(i, d) for i, (_, d) in zip(point, monomial, strict=True))
            difference += weight * choose(value, degree)
        terms.append((tuple((a, m) for m, (a, _) in zip(orders, monomial, strict=True) if m), difference))
    return _collect(terms)


def _choose_interval(x: Interval, degree: int) -> Interval:
    """C(x, degree) is monotone on x >= 0 and on x < 0, and 0 at 0."""
    if degree == 1:
        return x
    ends = [choose(x.low, degree), choose(x.high, degree)]
    if x.low < 0 <= x.high:
        ends.append(0)
    return Interval(min(ends), max(ends))


def emit(builder: Builder, polynomial: Polynomial, type_: T.IntType, operand: Callable[[Atom], Value]) -> Value:
    """Instructions that compute the polynomial modulo 2**bits of `type_` (at most 64 bits).

    `operand(atom)` gives an integer value of any width up to 64 for each atom: for an Iteration the loop's iteration
    number (non-negative when read as signed), for a Leaf the value itself.
    """
    wide: dict[Atom, Value] = {}
    factors: dict[tuple[Atom, int], Value] = {}

    def factor(atom: Atom, degree: int) -> Value:
        if (atom, degree) not in factors:
            if atom not in wide:
                x = operand(atom)
                wide[atom] = x if x.type == T.I64 else builder.cast("sext", x, T.I64)
            factors[atom, degree] = _emit_choose(builder, wide[atom], degree)
        return factors[atom, degree]

    total: Value | None = None
    constant = 0
    for monomial, c in polynomial.terms.items():
        if not monomial:
            constant = c
            continue
        term: Value | None = None
        for atom, degree in monomial:
            x = factor(atom, degree)
            term = x if term is None else builder.binary("mul", term, x)
        assert term is not None
        if c != 1:
            term = builder.binary("mul", term, const_int(T.I64, c))
        total = term if total is None else builder.binary("add", total, term)
    if total is None:
        return const_int(type_, constant)
    if constant:
        total = builder.binary("add", total, const_int(T.I64, constant))
    return builder.narrow(total, type_)


def _emit_choose(builder: Builder, x: Value, degree: int) -> Value:
    """C(x, degree) modulo 2**64; see the module's section on emission."""
    if degree == 1:
        return x
    half = builder.binary("ashr", x, const_int(T.I64, 1))
    odd = builder.binary("or", builder.binary("add", x, const_int(T.I64, -1)), const_int(T.I64, 1))
    two = builder.binary("mul", half, odd)
    if degree == 2:
        return two
    assert degree == 3, "no polynomial of a higher degree is formed"
    triple = builder.binary("mul", two, builder.binary("add", x, const_int(T.I64, -2)))
    return builder.binary("mul", triple, const_int(T.I64, _INVERSE_OF_3))
