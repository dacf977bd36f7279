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
from jax_enzyme.analysis.recurrences import Recurrences
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
