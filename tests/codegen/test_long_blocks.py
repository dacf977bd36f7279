"""Long blocks become several for the code generator, in loops and behind local variables too."""

from __future__ import annotations

from itertools import pairwise

from jax_enzyme.codegen.long_blocks import are_cut, in_pieces, long_blocks, settings
from jax_enzyme.ir.instructions import Alloca
from jax_enzyme.ir.native import native_from_text
from jax_enzyme.ir.reader import parse


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
    whole = parse(str(native))
    found = long_blocks(whole)
    assert len(settings(whole)) == 3 and len(found) == 2 and are_cut(found) and not are_cut(found[:1])
    text = in_pieces(native)
    native_from_text(text).verify()
    module = parse(text)
    assert long_blocks(module) == [module.functions["f"].entry]
    function = module.functions["f"]
    # Local variables stay in the entry, and so does all in front of them.
    assert sum(isinstance(i, Alloca) for i in function.entry.instructions) == 1
    assert len(function.blocks) == 3 + 9


def test_control_goes_on_from_the_last_piece_of_blocks_without_names_and_with_odd_ones() -> None:
    local = "  %local = alloca double\n  store double %a2499, ptr %local\n"
    code = _CODE.replace(local, "").replace("entry:\n", "").replace("%entry", "%0").replace("ptr %p, i64 %n", "i64 %n")
    text = in_pieces(native_from_text(code.replace("loop:", '"a loop":').replace("%loop", '%"a loop"')))
    native_from_text(text).verify()
    blocks = parse(text).functions["f"].blocks
    assert len(blocks) == 3 + 9 + 4 and [b.name for b in blocks if "piece" not in b.name] == ["entry", "a loop", "end"]
