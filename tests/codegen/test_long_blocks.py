"""Long blocks become several for the code generator, in loops and behind local variables too."""

from __future__ import annotations

from itertools import pairwise

import pytest

from jax_enzyme.codegen.long_blocks import cut, long_blocks, settings, to_cut
from jax_enzyme.codegen.optimise import optimised_text
from jax_enzyme.ir.instructions import Alloca, CallBr
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.values import BasicBlock
from jax_enzyme.ir.verify import parse_checked


def _lines(count: int, start: str, name: str) -> str:
    """So many sums, each of the one before."""
    names = [start, *(f"%{name}{i}" for i in range(count))]
    return "\n".join(f"{new} = fadd double {old}, 1.0" for old, new in pairwise(names))


def _code(count: int = 2500) -> str:
    last = f"%a{count - 1}"
    return f"""
define double @f(ptr %p, i64 %n) {{
entry:
{_lines(count, "0.5", "a")}
  %local = alloca double
  store double {last}, ptr %local
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %s = phi double [ {last}, %entry ], [ %b4999, %loop ]
{_lines(5000, "%s", "b")}
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  %result = phi double [ %b4999, %loop ]
  ret double %result
}}
"""


def _pieces(module: Module, name: str = "f") -> list[BasicBlock]:
    return [b for b in module.functions[name].blocks if isinstance(b.terminator, CallBr)]


def test_long_blocks_become_several() -> None:
    module = parse(_code())
    straight, looping = to_cut(module)
    loop = module.functions["f"].blocks[1]
    assert len(settings(module)) == 2 and len(long_blocks(module)) == 2
    assert straight == [] and looping == [(module.functions["f"], loop)]
    cut(looping)
    parse_checked(module)
    assert len(_pieces(module)) == 9 and long_blocks(module) == [module.functions["f"].entry]


def test_local_variables_stay_in_the_entry_and_so_does_all_in_front_of_them() -> None:
    module = parse(_code(4500))
    straight, looping = to_cut(module)
    cut(straight)
    parse_checked(module)
    entry = module.functions["f"].entry
    assert len(looping) == 1 and _pieces(module) == [] and any(isinstance(i, Alloca) for i in entry.instructions)


def test_control_goes_on_from_the_last_piece_of_blocks_without_names_and_with_odd_ones() -> None:
    code = _code(4500).replace("entry:\n", "").replace("%entry", "%0").replace("ptr %p, i64 %n", "i64 %n")
    code = code.replace("  %local = alloca double\n  store double %a4499, ptr %local\n", "")
    module = parse(code.replace("loop:", '"a loop":').replace("%loop", '%"a loop"'))
    for places in to_cut(module):
        cut(places)
    parse_checked(module)
    assert len(_pieces(module)) == 9 + 8


@pytest.mark.parametrize("end", ["ret double %a5999", "%end = call double @sin(double %a5999)\n  ret double %end"])
def test_pieces_stay_apart_where_they_are_optimised(end: str) -> None:
    """Behind the vectorisers of calls as well, where LLVM simplifies once more."""
    code = f"define double @f(double %x) {{\n{_lines(6000, '%x', 'a')}\n  {end}\n}}\ndeclare double @sin(double)\n"
    module = parse(optimised_text(parse(code)))
    assert len(_pieces(module)) == 11
    assert max(len(b.instructions) for b in module.functions["f"].blocks) < 1200


def test_blocks_of_loops_are_cut_when_those_are_optimised() -> None:
    module = parse(optimised_text(parse(_code())))
    assert max(len(b.instructions) for b in module.functions["f"].blocks if b.name != "entry") < 1200
