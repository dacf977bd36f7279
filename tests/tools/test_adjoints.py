"""The adjoints written by hand that the benchmark times are the gradients of their functions."""

from __future__ import annotations

import pytest

from benchmarks.adjoints.comparison import compare
from benchmarks.adjoints.problems import HandWritten, hand_written


@pytest.mark.filterwarnings("ignore::jax_enzyme.errors.ShortcutWarning")  # bundle adjustment, of a rotation by nothing
@pytest.mark.parametrize("row", hand_written(small=True), ids=lambda row: row.problem.name)
def test_adjoint_by_hand_is_the_gradient(row: HandWritten) -> None:
    compare(row)
