"""What asks whether two objects overlap is answered: they lie apart.

    before    %d = sub i64 ptrtoint (%a), ptrtoint (%b)             after    false
              %c = icmp ult i64 (add i64 %d, 63), 127               where %a and %b are objects of 64 bytes each

So asks who copies one array to another whether a copy in between is needed, as Fortran's assignments do, also that of
`lastprivate`. LLVM, to which addresses are any numbers, keeps that copy, and a pointer to one or the other.
"""

from __future__ import annotations

from jax_enzyme.analysis.extents import argument_size, extent
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.objects import MemoryObject
from jax_enzyme.analysis.polynomials import Leaf, Polynomial, TooComplex
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.builder import const_int
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.values import Argument, Value, int_value
from jax_enzyme.transform.rewriting import on_copy, replace_values


def tell_distances(function: ArrayFunction) -> ArrayFunction:
    """The array function with such answers, in a copy of the module; the function itself where nothing asks."""
    root = function.module.functions[function.symbol]
    return on_copy(function, _tell) if any(map(_may_ask, root.instructions())) else function


def _tell(module: Module, root: Function) -> bool:
    facts, layout = Recurrences.of(root, module), DataLayout(module)
    asked = [i for i in root.instructions() if isinstance(i, I.Compare) and _may_ask(i)]
    found = ((i, _answer(facts, layout, i)) for i in asked)
    answers: dict[Value, Value] = {i: const_int(T.I1, answer) for i, answer in found if answer is not None}
    replace_values(root, answers)
    return bool(answers)


def _may_ask(instruction: I.Instruction) -> bool:
    """Is something that was computed compared with a constant, without sign?"""
    if not isinstance(instruction, I.Compare) or instruction.predicate not in ("ult", "ugt"):
        return False
    value, limit = instruction.operands
    return isinstance(value, I.BinaryOp) and value.type == T.I64 and int_value(limit) is not None


def _answer(facts: Recurrences, layout: DataLayout, asked: I.Compare) -> int | None:
    """What a comparison of the distance of two objects with a constant says."""
    value, limit = asked.operands
    block = facts.block_of.get(asked)
    if block is None:
        return None
    try:
        distance = facts.form_at(value, block).polynomial
        for atom in distance.atoms:
            # An address as a number: where it points to.
            if isinstance(atom, Leaf) and isinstance(atom.value, I.Cast) and atom.value.opcode == "ptrtoint":
                factor = distance.terms.get(((atom, 1),), 0)
                place = facts.form_at(atom.value.operands[0], block).polynomial
                distance += (place - Polynomial.atom(atom)).scale(factor)
    except TooComplex:
        return None
    sides = {f: m[0][0] for m, f in distance.terms.items() if len(m) == 1 and m[0][1] == 1}
    if set(sides) != {1, -1} or len(distance.terms) - (() in distance.terms) != 2:
        return None
    sizes = [_size(layout, atom.value) if isinstance(atom, Leaf) else None for atom in (sides[-1], sides[1])]
    if None in sizes:
        return None
    # One object begins behind the end of the other one, or ends before that begins.
    shift, most = distance.terms.get((), 0), (int_value(limit) or 0) % (1 << 64) - (asked.predicate == "ult")
    below, above = (size for size in sizes if size is not None)
    return int(asked.predicate == "ugt") if -above < -shift and most - shift < below else None


def _size(layout: DataLayout, site: Value) -> int | None:
    """The bytes of an object, by what makes it, that lies where nothing else does."""
    match site:
        case Argument():
            return argument_size(site) if "noalias" in site.attributes else None
        case I.Alloca():
            return extent(layout, MemoryObject("stack", site))
        case I.Call():
            return extent(layout, MemoryObject("heap", site))
        case _:
            return None
