"""The command `jax-enzyme`: text in, text out, errors in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from jax_enzyme.ir.reader import parse
from jax_enzyme.tools.main import main
from jax_enzyme.tools.passes import OURS, PASSES

_SOURCE = """
static double square(double x) { return x * x; }
void f(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) y[i] = square(x[i]);
}
"""
_IR = """
define internal double @square(double %x) {
  %r = fmul double %x, %x
  ret double %r
}
define void @f(ptr %x) {
  %p = alloca double
  store double 3.0, ptr %p
  %a = load double, ptr %p
  %b = call double @square(double %a)
  store double %b, ptr %x
  ret void
}
"""


@pytest.fixture
def ir(tmp_path: Path) -> str:
    path = tmp_path / "f.ll"
    path.write_text(_IR)
    return str(path)


@pytest.fixture
def source(tmp_path: Path) -> str:
    path = tmp_path / "f.c"
    path.write_text(_SOURCE)
    return str(path)


def test_passes_run_in_order(ir: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["opt", ir, "--pass", "inline", "sroa", "instcombine"]) == 0
    text = capsys.readouterr().out
    assert "call" not in text and "alloca" not in text
    assert "store double 9.0" in text


def test_print_after_all(ir: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "out.ll"
    assert main(["opt", ir, "--pass", "inline", "sroa", "--print-after-all", "-o", str(output)]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.index("after inline") < captured.err.index("after sroa")
    assert "f" in parse(output.read_text()).functions


@pytest.mark.parametrize("name", [p.name for p in OURS] + ["O1", "O2", "O3", "loop-simplify", "strip"])
def test_every_pass_of_ours_keeps_a_valid_module(name: str, ir: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["opt", ir, "--pass", name]) == 0
    assert "define void @f(" in capsys.readouterr().out


def test_list_names_every_pass(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["opt", "--list"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert listed == list(PASSES)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--pass", "sora"], "did you mean sroa?"),
        (["--pass", "x!"], "--list"),
        (["-o", "/no/such/folder/out.ll"], "cannot write"),
    ],
)
def test_errors_of_opt(arguments: list[str], message: str, ir: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["opt", ir, *arguments]) == 1
    assert message in capsys.readouterr().err


def test_a_file_that_is_no_ir(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "broken.ll"
    path.write_text("define void @f( {")
    assert main(["opt", str(path)]) == 1
    assert main(["opt", str(tmp_path / "absent.ll")]) == 1
    error = capsys.readouterr().err
    assert "broken.ll" in error and "cannot read" in error


def test_explain(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", source, "n: i32, x: f64[n], out y: f64[n]", "--symbol", "f", "--set", "n=9", "--ir"]) == 0
    text = capsys.readouterr().out
    assert "in      x: f64[9] (72 bytes)" in text
    assert "iterations 9" in text
    assert "forward: one function" in text
    assert "define noundef i64 @je.primal" in text


@pytest.mark.parametrize(
    ("settings", "message"),
    [([], "--set n=100"), (["--set", "n=four"], "NAME=INTEGER"), (["--set", "n=4", "m=3"], "`m` is no parameter")],
)
def test_errors_of_explain(settings: list[str], message: str, source: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", source, "n: i32, x: f64[n], out y: f64[n]", *settings]) == 1
    assert message in capsys.readouterr().err
