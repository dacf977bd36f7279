"""`fixtures/*.ll`: functions, each file followed by what the analyses print about them, as comments after `; ---`.

`UPDATE_FIXTURES=1 pytest tests/analysis/test_facts.py` writes the comments anew; the change is then reviewed as a diff.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.dominators import Dominators
from jax_enzyme.analysis.extents import room
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loops import Loops
from jax_enzyme.analysis.objects import MemoryObject
from jax_enzyme.analysis.offsets import values_of_counter
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.reader import parse

FIXTURES = sorted((Path(__file__).parent / "fixtures").glob("*.ll"))
MARK = "; ---\n"


def describe(module: Module) -> str:
    lines: list[str] = []
    for function in module.functions.values():
        if function.is_declaration:
            continue
        cfg = Cfg(function)
        loops = Loops(cfg, Dominators(cfg))
        lines += [f"@{function.name}", *str(loops).splitlines()]
        lines += str(Recurrences(function, loops, module)).splitlines()
    return "".join(f"; {line}\n" for line in lines)


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_facts(path: Path) -> None:
    source, _, expected = path.read_text().partition(MARK)
    found = describe(parse(source))
    if os.environ.get("UPDATE_FIXTURES"):
        path.write_text(source + MARK + found)
    else:
        assert found == expected


def test_nobody_knows_how_large_what_another_module_completes_is() -> None:
    module = parse("%t = type opaque\n@open = external global %t\n@known = external global [3 x double]")
    found = [room(DataLayout(module), MemoryObject("global", g)) for g in module.globals.values()]
    assert found == [None, 24]


_COUNTERS = """
define void @f(ptr %p) {
entry:
  br label %up
up:
  %i = phi i64 [ 0, %entry ], [ %j, %up ]
  %j = add i64 %i, 1
  %left = load i1, ptr %p
  %in = icmp TEST
  %on = select i1 %left, i1 %in, i1 false
  br i1 %on, label %up, label %behind
behind:
  %last = phi i64 [ %i, %up ]
  br label %down
down:
  %k = phi i64 [ %last, %behind ], [ %l, %down ]
  %l = add i64 %k, -1
  %end = icmp eq i64 %k, 0
  br i1 %end, label %done, label %down
done:
  ret void
}"""


@pytest.mark.parametrize(
    ("test", "most"),
    [("ult i64 %i, 11", 11), ("slt i64 %j, 11", 10), ("ne i64 %i, 11", 11), ("ugt i64 %i, 11", None)],
)
def test_values_of_counters_whose_loops_may_be_left_early(test: str, most: int | None) -> None:
    """And of those that go back from there, as in the reverse sweep."""
    blocks = parse(_COUNTERS.replace("TEST", test)).functions["f"].blocks
    for block in (blocks[1], blocks[3]):
        (counter,) = (i for i in block.instructions if isinstance(i, I.Phi))
        found = values_of_counter(counter)
        assert (found and [c.span for c in found]) == (None if most is None else [(0, most)])
