"""Reading and writing lose nothing: LLVM prints our text as it prints the original."""

from __future__ import annotations

from pathlib import Path

import pytest

from jax_enzyme.ir import passes
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.reader import parse, parse_printed, read
from jax_enzyme.ir.writer import to_text
from tests.ir.support import FIXTURES, SOURCES, compiled, compiled_elsewhere, printed_by_llvm
from tests.support.pairwise import pairwise
from tests.support.verified import verify


def _assert_identity(text: str) -> None:
    module = parse(text)
    ours = to_text(module)
    assert printed_by_llvm(ours) == printed_by_llvm(text)
    assert to_text(parse(ours)) == ours
    assert to_text(clone(module)) == ours
    partly = parse_printed(text)
    assert to_text(clone(partly)) == to_text(partly) == ours


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_fixture(path: Path) -> None:
    text = path.read_text()
    _assert_identity(text)
    _assert_identity(printed_by_llvm(text))
    verify(parse(text))


@pytest.mark.parametrize(
    ("source", "level", "debug"),
    pairwise([s for s in SOURCES if s.suffix == ".c"], ["-O0", "-O1", "-O2", "-O3"], ["-g", "-g0"]),
    ids=lambda value: getattr(value, "name", value),
)
def test_c(source: Path, level: str, debug: str, tmp_path: Path) -> None:
    text = compiled(source, tmp_path, level, debug)
    _assert_identity(printed_by_llvm(text))
    verify(read(text))


@pytest.mark.parametrize("flags", [("-O0", "-g0"), ("-O2", "-g")], ids=" ".join)
@pytest.mark.parametrize("source", [s for s in SOURCES if s.suffix == ".cpp"], ids=lambda path: path.name)
def test_cpp(source: Path, flags: tuple[str, ...], tmp_path: Path) -> None:
    text = printed_by_llvm(compiled(source, tmp_path, *flags))
    _assert_identity(text)
    verify(parse(text))


@pytest.mark.parametrize(
    ("source", "level"),
    [(s, level) for s in SOURCES for level in {".f90": (0, 2), ".rs": (0,)}.get(s.suffix, ())],
    ids=lambda value: getattr(value, "name", value),
)
def test_fortran_and_rust(source: Path, level: int, tmp_path: Path) -> None:
    text = printed_by_llvm(compiled_elsewhere(source, tmp_path, level))
    _assert_identity(text)
    verify(parse(text))


@pytest.mark.parametrize("level", [1, 2, 3])
def test_vectorised(level: int, tmp_path: Path) -> None:
    """What LLVM's vectorisers and unroller make of unoptimised code."""
    source = tmp_path / "kernel.c"
    source.write_text(
        """
        void axpy(double *restrict y, const double *restrict x, int n) {
            for (int i = 0; i < n; i++) y[i] += 2 * x[i];
        }
        float dot(const float *x, const float *y, int n) {
            #pragma clang fp reassociate(on)
            float s = 0;
            for (int i = 0; i < n; i++) s += x[i] > 0 ? x[i] * y[i] : 0;
            return s;
        }
        """
    )
    module = read(compiled(source, tmp_path, "-O2", "-Xclang", "-disable-llvm-passes"))
    optimised = passes.optimise(module, level, vectorise=True, unroll=True)
    assert "vector.body" in to_text(optimised)
    _assert_identity(to_text(optimised))
