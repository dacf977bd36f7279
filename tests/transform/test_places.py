"""Debug information without types and variables: places stay."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jax_enzyme.frontends import load
from jax_enzyme.ir import reader
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.debug import function_location, location
from jax_enzyme.ir.metadata import MDNode
from jax_enzyme.ir.nodes import of_kind
from jax_enzyme.ir.reader import parse, parse_printed
from jax_enzyme.ir.writer import to_text
from jax_enzyme.transform.places import keep_places
from jax_enzyme.transform.prototype import prototype
from tests.support.verified import verify

SOURCE = """
#include <map>
struct Point { double x, y; double norm() const { return x * x + y * y; } };
static std::map<int, double> table;
double f(double x) {
  Point p{x, 2 * x};
  table[1] = p.norm();
  return table[1];
}
"""


def test_places_stay_and_types_go() -> None:
    module = parse(load(SOURCE, "_Z1fd", "c++").ir)
    whole, kernel = len(module.metadata), module.functions["_Z1fd"]
    before = [location(module, i) for f in module.functions.values() for i in f.instructions()]
    line = function_location(module, kernel)
    keep_places(module)
    verify(module)
    assert [location(module, i) for f in module.functions.values() for i in f.instructions()] == before
    assert function_location(module, kernel) == line
    assert not any(i.records for f in module.functions.values() for i in f.instructions())
    kinds = {node.kind for node in module.metadata.values()}
    assert kinds & {"DILocation", "DISubprogram"} and not kinds & {"DICompositeType", "DILocalVariable"}
    assert len(module.metadata) < whole / 2


def test_types_that_nobody_asks_for_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    ir = load(SOURCE, "_Z1fd", "c++").ir
    whole = parse(ir)
    classes = len(list(of_kind(whole.metadata, "DICompositeType")))
    read = list[MDNode]()
    monkeypatch.setattr(reader.MetadataReader, "node", _counted(reader.MetadataReader.node, read))
    module = clone(parse_printed(ir))
    assert prototype(module, module.functions["_Z1fd"]) == prototype(whole, whole.functions["_Z1fd"])
    keep_places(module)
    assert 0 < len([node for node in read if node.kind == "DICompositeType"]) < classes / 2
    keep_places(whole)
    assert to_text(module) == to_text(whole)


def _counted(node: Callable[[reader.MetadataReader], MDNode], read: list[MDNode]) -> object:
    def counted(self: reader.MetadataReader) -> MDNode:
        read.append(node(self))
        return read[-1]

    return counted
