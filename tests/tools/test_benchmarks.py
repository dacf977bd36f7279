"""The benchmark's adjoints by hand are right, and the page of what was measured shows what is kept."""

from __future__ import annotations

import pytest

from benchmarks.gradients import Gradient, Problem
from benchmarks.native import adjoint
from benchmarks.problems import small
from benchmarks.report import DOCS, page


@pytest.mark.filterwarnings("ignore::jax_enzyme.errors.ShortcutWarning")  # bundle adjustment, of a rotation by nothing
@pytest.mark.parametrize("problem", small(), ids=lambda problem: problem.name)
def test_adjoint_by_hand_is_the_gradient(problem: Problem) -> None:
    ours = Gradient(problem)
    ours.compare(adjoint(problem, ours.seeds)[1], "by hand")


def test_page_of_what_was_measured_is_up_to_date() -> None:
    assert (DOCS / "measured.md").read_text("utf-8") == page(), "run python -m benchmarks.report"
