"""Loops that constants drive: looked at together, they come to what they come to one step after the other."""

from __future__ import annotations

import itertools

import pytest

from jax_enzyme.analysis import folding, simulation
from jax_enzyme.analysis.counters import repeats
from jax_enzyme.analysis.folding import compared
from jax_enzyme.analysis.loops import Loops
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.reader import parse

LOOP = """
define void @f() {{
entry:
  br label %loop
loop:
  %i = phi i{bits} [ {start}, %entry ], [ %next, %loop ]
  %j = phi i{bits} [ 7, %entry ], [ %less, %loop ]
  %next = add i{bits} %i, {step}
  %less = sub i{bits} %j, 3
  {test}
  br i1 %end, label %exit, label %loop
exit:
  ret void
}}
"""
TESTS = (
    "%end = icmp eq i{bits} %next, {limit}",
    "%end = icmp sgt i{bits} %next, {limit}",
    "%end = icmp ult i{bits} %i, {limit}",
    "%end = icmp uge i{bits} %i, {limit}",
    "%d = udiv i{bits} {limit}, %i\n  %end = icmp ult i{bits} %d, 2",  # no number where i is 0
    "%m = mul i{bits} %i, %i\n  %s = xor i{bits} %m, %j\n  %end = icmp slt i{bits} %s, -5",
)


@pytest.mark.parametrize("bits", [8, 33, 63, 64])
@pytest.mark.parametrize("test", TESTS)
def test_columns_and_steps_agree(bits: int, test: str, monkeypatch: pytest.MonkeyPatch) -> None:
    half = 1 << (bits - 1)
    found: list[list[object]] = []
    for alone in (False, True):
        if alone:
            monkeypatch.setattr(simulation, "_strides", lambda *_: None)
        found.append([])
        for start, step, limit in [(0, 1, 100), (1, 2, 99), (half - 9, 3, -half), (60, -1, 0), (-half, 1, 7 - half)]:
            text = LOOP.format(bits=bits, start=start, step=step, test=test.format(bits=bits, limit=limit))
            facts = Recurrences.of(parse(text).functions["f"])
            (loop,) = facts.loops
            run = simulation.simulate(facts, loop, loop.header)
            phis = [i for i in loop.header.instructions if isinstance(i, I.Phi)]
            found[-1].append(run and (run.count, [run.ranges.get(phi) for phi in phis]))
    assert found[0] == found[1]
    assert any(found[0])


def test_counters_between_constants_are_counted_as_they_run() -> None:
    """Whatever a loop compares its counter with: where a number is told, it is that of the run, wrapped or not."""
    told = 0
    steps = list(itertools.product((-128, 0, 5), (1, 2, -1, -3), (-2, 5, 127)))
    predicates = "eq ne slt sle sgt sge ult ule ugt uge".split()
    for predicate, tested, bits in itertools.product(predicates, ("%i", "%next"), (8, 32)):
        for start, step, limit in steps:
            test = f"%wide = sext i8 {tested} to i32\n  %end = icmp {predicate} i{bits} "
            test += f"{tested if bits == 8 else '%wide'}, {limit}"
            (loop,) = Loops.of(parse(LOOP.format(bits=8, start=start, step=step, test=test)).functions["f"]).all
            count = repeats(loop, loop.header)
            numbers = ((start + step * k + (step if tested == "%next" else 0) + 128) % 256 - 128 for k in range(257))
            left = next((k for k, x in enumerate(numbers) if compared(predicate, x, limit, bits)), None)
            assert count in (None, left)
            told += count is not None
    assert told > 300


def test_long_loops_are_not_run_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    folded: list[object] = []

    def noted(*given: object) -> object:
        folded.append(given)
        return fold(*given)  # type: ignore[arg-type]

    fold = folding.folded
    monkeypatch.setattr(folding, "folded", noted)
    for steps in (100, 4000):
        folded.clear()
        test = f"%end = icmp eq i32 %next, {steps}"
        facts = Recurrences.of(parse(LOOP.format(bits=32, start=0, step=1, test=test)).functions["f"])
        (loop,) = facts.loops
        run = simulation.simulate(facts, loop, loop.header)
        assert run is not None
        assert run.count == steps - 1
        assert len(folded) <= 4
