"""Debug information without types and variables: places stay."""

from __future__ import annotations

from jax_enzyme.frontends import load
from jax_enzyme.ir.debug import function_location, location
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.verify import verify
from jax_enzyme.transform.places import keep_places

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
