"""Long blocks become several for the code generator, in loops and behind local variables too."""

from __future__ import annotations

from itertools import pairwise

from jax_enzyme.codegen.long_blocks import are_cut, in_pieces, long_blocks, settings
from jax_enzyme.ir.instructions import Alloca
from jax_enzyme.ir.native import native_from_text
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.writer import to_text


def _lines(count: int, start: str, name: str) -> str:
    """So many sums, each of the one before."""
    names = [start, *(f"%{name}{i}" for i in range(count))]
    return "\n".join(f"{new} = fadd double {old}, 1.0" for old, new in pairwise(names))


_CODE = f"""
define double @f(ptr %p, i64 %n) {{
entry:
{_lines(2500, "0.5", "a")}
  %local = alloca double
  store double %a2499, ptr %local
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %s = phi double [ %a2499, %entry ], [ %b4999, %loop ]
{_lines(5000, "%s", "b")}
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  %result = phi double [ %b4999, %loop ]
  ret double %result
}}
"""


def test_long_blocks_become_several() -> None:
    native = native_from_text(_CODE)
    found = long_blocks(parse(str(native)))
    assert len(found) == 2 and not are_cut(found)  # what they save is less than what it takes to make them
    module = in_pieces(native)
    assert long_blocks(module) == [module.functions["f"].entry]
    native_from_text(to_text(module)).verify()
    function = module.functions["f"]
    # Local variables stay in the entry, and so does all in front of them.
    assert sum(isinstance(i, Alloca) for i in function.entry.instructions) == 1
    assert len(function.blocks) == 3 + 9


def test_very_long_blocks_are_cut() -> None:
    body = f"define double @f() {{\nentry:\n{_lines(16_500, '0.5', 'a')}\n  ret double %a16499\n}}\n"
    module = parse(body)
    assert are_cut(long_blocks(module)) and len(settings(module)) == 3
