"""The report on a kernel: what it says is what the engine does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jax_enzyme.codegen import derived
from jax_enzyme.codegen.inspection import Report, inspect
from jax_enzyme.frontends import load
from jax_enzyme.signature import Binding, parse

_SOURCE = """
#include <math.h>

void chain(int n, double *x, const double *a, double *y) {
    double s = 0;
    for (int i = 0; i < n; i++) {
        s = sin(s) * x[i];
        x[i] = s * a[i];
    }
    *y = s;
}

double until(int n, const double *x, double tol) {
    double s = 1;
    while (s > tol)
        s *= cos(x[(int)(s * 100) % n]);
    return s;
}

extern double elsewhere(double);

double lost(double x) {
    return elsewhere(x) * x;
}
"""
_CHAIN = "n: i32, inout x: f64[n], a: f64[n], out y: f64[]"


def report(symbol: str, signature: str, n: int | None = None, wrt: tuple[str, ...] | None = None) -> Report:
    binding = Binding.of({} if n is None else {"n": n}, {})
    return inspect(load(_SOURCE, symbol, "c"), parse(signature), binding, wrt=wrt)


def test_a_static_tape_by_line() -> None:
    found = report("chain", _CHAIN, 100)
    assert found.functions == ("primal", "jvp", "augmented", "pullback")
    reverse = found.reverse
    assert reverse is not None and reverse.splits and not reverse.arena
    program, signature = load(_SOURCE, "chain", "c"), parse(_CHAIN)
    masks = ((True, True, False), (True, False, True))
    buffers = derived.layout(program, signature, Binding.of({"n": 100}, {}), (derived.Augmented(*masks),))
    assert reverse.tape_bytes == sum(b.nbytes for b in buffers if b.role == "tape")
    assert sum(k.nbytes for k in reverse.kept) <= reverse.tape_bytes
    assert {line.partition(":")[0] for line, _ in reverse.tape_by_line} == {"kernel.c"}
    by_line = dict(reverse.tape_by_line)
    assert by_line["kernel.c:7"] >= 100 * 8
    assert all(k.why for k in reverse.kept)
    assert [loop.trips for loop in reverse.loops] == ["100"]
    assert {a.memory for a in reverse.accumulations} == {"`x`", "`a`"}
    assert {m.name for m in reverse.memory if m.active} == {"x", "a", "y"}


def test_only_what_is_asked_for_is_active() -> None:
    nothing = report("until", "n: i32, x: f64[n], tol: f64 -> f64", 4, wrt=("tol",)).reverse
    assert nothing is not None and nothing.active_values == 0 and not nothing.kept
    both = report("until", "n: i32, x: f64[n], tol: f64 -> f64", 4).reverse
    assert both is not None and both.active_values > 0


def test_a_loop_without_bound_uses_the_arena() -> None:
    found = report("until", "n: i32, x: f64[n], tol: f64 -> f64", 4)
    reverse = found.reverse
    assert reverse is not None and not reverse.splits and reverse.arena
    assert found.functions == ("primal", "jvp", "augmented", "pullback")
    assert any(k.per_iteration for k in reverse.kept)
    assert "in an arena" in str(found)


def test_refusals_are_part_of_the_report() -> None:
    found = report("lost", "x: f64 -> f64")
    assert found.reverse is None and found.functions == ("primal",)
    for text in (found.forward, found.refusal, str(found)):
        assert text is not None and "`elsewhere`" in text and "kernel.c:23" in text
    assert [c.verdict for c in found.calls] == ["no rule"]


@pytest.mark.parametrize("symbol", ["chain", "until", "lost"])
def test_it_prints_on_two_screens(symbol: str) -> None:
    signature = {"chain": _CHAIN, "until": "n: i32, x: f64[n], tol: f64 -> f64", "lost": "x: f64 -> f64"}[symbol]
    text = str(report(symbol, signature, None if symbol == "lost" else 6))
    assert len(text.splitlines()) <= 80
    assert max(map(len, text.splitlines())) <= 120


def test_html_is_escaped() -> None:
    found = report("chain", _CHAIN, 3)
    markup = replace(found, name="a<b>c & d")._repr_html_()
    assert markup.startswith("<b>kernel a&lt;b&gt;c &amp; d, kernel.c") and "<table>" in markup
    assert "`load`" in markup and "report.ir(name)" in markup


@pytest.mark.parametrize("optimised", [False, True])
def test_every_function_has_its_ir(optimised: bool) -> None:
    found = report("chain", _CHAIN, 3)
    for name in found.functions:
        assert "define" in found.ir(name, optimised=optimised)
    with pytest.raises(KeyError, match="there is no function 'vjp'"):
        found.ir("vjp")
