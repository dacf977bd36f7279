"""The three ways agree on programs that Hypothesis writes: C with the memory of real code, and LLVM IR.

A short fixed sequence in every run; `make fuzz` draws many more. A failure prints the smallest program that shows it.
"""

from __future__ import annotations

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tests.support.examples import few
from tests.support.ir_programs import IrProgram, ir_programs
from tests.support.program_check import check
from tests.support.wild_programs import WildProgram, wild_programs

pytestmark = pytest.mark.slow


@few(5)
@given(wild_programs(), st.integers(0, 2**16))
def test_c(program: WildProgram, seed: int) -> None:
    event(check(program, seed))


@few(5)
@given(ir_programs(), st.integers(0, 2**16))
def test_ir(program: IrProgram, seed: int) -> None:
    event(check(program, seed))
