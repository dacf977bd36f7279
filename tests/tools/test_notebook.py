"""Kernels in notebook cells, and what a notebook shows of them."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from xml.etree import ElementTree

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

import jax_enzyme as je

ENERGY = """\
void energy(int n, const double *x, double k, double *e) {
    *e = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            *e += k * x[i] * x[j] * *e + x[i];
}
"""
LINE = "c energy n: i32, x: f64[n], k: f64, out e: f64[]"


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    made = InteractiveShell(colors="nocolor")
    with jax.enable_x64(True):
        made.run_line_magic("load_ext", "jax_enzyme")
        yield made
        made.run_line_magic("unload_ext", "jax_enzyme")


def run(shell: InteractiveShell, line: str, source: str) -> BaseException | None:
    return shell.run_cell(f"%%kernel {line}\n{source}").error_in_exec


def test_a_cell_is_a_kernel(shell: InteractiveShell) -> None:
    assert run(shell, LINE, ENERGY) is None
    x = jnp.arange(1.0, 4.0)
    gradient = jax.grad(shell.user_ns["energy"])(x, 0.5)
    step = 1e-6
    ahead, back = (shell.user_ns["energy"](x.at[1].add(d), 0.5) for d in (step, -step))
    np.testing.assert_allclose(gradient[1], (ahead - back) / (2 * step), rtol=1e-6)


def test_quotes_flags_and_another_name(shell: InteractiveShell) -> None:
    source = "void scale(int n, double *x) { for (int i = 0; i < n; i++) x[i] *= FACTOR; }\n"
    line = '--flags "-DFACTOR=3" --as tripled c scale "n: i32, inout x: f64[n]"'
    assert run(shell, line, source) is None
    np.testing.assert_array_equal(shell.user_ns["tripled"](jnp.ones(2)), [3.0, 3.0])
    assert "scale" not in shell.user_ns


def test_a_name_that_no_variable_can_have(shell: InteractiveShell) -> None:
    with capture_output() as shown:
        assert run(shell, f"--as 2x {LINE}", ENERGY) is not None
    assert "'2x' cannot be" in shown.stdout + shown.stderr


def test_a_cell_without_a_signature(shell: InteractiveShell) -> None:
    assert run(shell, "c square", "double square(double x) { return x * x; }\n") is None
    assert jax.grad(shell.user_ns["square"])(3.0) == 6.0


def test_a_function_value_and_fortran(shell: InteractiveShell) -> None:
    source = "function square(x) bind(c)\n  use iso_c_binding\n  real(c_double), value :: x\n" + (
        "  real(c_double) :: square\n  square = x * x\nend function\n"
    )
    assert run(shell, "fortran square x: f64 -> f64", source) is None
    assert shell.user_ns["square"](3.0) == 9.0


def test_a_wrong_source_shows_its_line_and_no_traceback(shell: InteractiveShell) -> None:
    with capture_output() as shown:
        error = run(shell, LINE, ENERGY.replace("*e = 0;", "*e = nothing;"))
    assert isinstance(error, je.CompileError)
    assert "energy.c:2" in shown.stdout and "^" in shown.stdout
    assert "Traceback" not in shown.stdout
    assert "energy" not in shell.user_ns


def test_a_wrong_language(shell: InteractiveShell) -> None:
    with capture_output() as shown:
        error = run(shell, LINE.replace("c ", "cobol ", 1), ENERGY)
    assert error is not None and "cobol" in shown.stdout + shown.stderr


def test_running_a_cell_again_frees_the_kernel_before(shell: InteractiveShell) -> None:
    assert run(shell, LINE, ENERGY) is None
    before = weakref.ref(shell.user_ns["energy"])
    shell.user_ns["energy"](jnp.ones(3), 1.0)
    assert run(shell, LINE, ENERGY.replace("+ x[i]", "- x[i]")) is None
    gc.collect()
    assert before() is None


def test_the_page_of_a_kernel(shell: InteractiveShell) -> None:
    run(shell, LINE, ENERGY)
    page = shell.user_ns["energy"]._repr_html_()
    assert page.count("<tr>") == 3
    assert "f64[n]" in page and "Kernel energy(x, k) -&gt; e" in page


def test_the_page_of_a_report_has_the_source_beside_what_is_taped(shell: InteractiveShell) -> None:
    run(shell, LINE, ENERGY)
    report = shell.user_ns["energy"].inspect(jnp.ones(50), 1.0)
    page = report._repr_html_()
    line = next(row for row in page.splitlines() if "*e += k" in row)
    assert ">5<" in line and "tape" in line
    assert page.count("<details>") == len(report.functions)


def test_pictures(shell: InteractiveShell) -> None:
    run(shell, LINE, ENERGY)
    report = shell.user_ns["energy"].inspect(jnp.ones(50), 1.0)
    for picture in (report.control_flow(), report.control_flow("pullback"), report.tape()):
        ElementTree.fromstring(picture._repr_svg_())
    loops = report.control_flow().svg.count("#c0392b")
    assert loops == 2
    with pytest.raises(KeyError, match="primal"):
        report.control_flow("nothing")
