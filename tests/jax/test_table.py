"""The table of transformations: its rows name tests that exist, and what stands in the pages is what it says."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.jax import table
from tests.jax.rows import Row


def _declared() -> set[str]:
    """All tests of this folder as "module::test", and the modules."""
    found: set[str] = set()
    for path in Path(__file__).parent.glob("test_*.py"):
        names = [n.name for n in ast.parse(path.read_text()).body if isinstance(n, ast.FunctionDef)]
        found |= {path.stem, *(f"{path.stem}::{name}" for name in names if name.startswith("test_"))}
    return found


def test_every_row_names_tests_that_exist() -> None:
    named = {test for row in table.rows() for test in row.tests.split()}
    assert not named - _declared()


def test_rows_have_names_of_their_own() -> None:
    names = [row.name for row in table.rows()]
    assert len(names) == len(set(names))


def test_the_pages_have_these_rows_and_no_gap() -> None:
    verdicts = {row.name: "yes" for row in table.rows()}
    assert table.PAGE.read_text() == table.page(verdicts)
    assert table.README.read_text() == table.readme(verdicts)


def test_what_fails_or_is_missing_is_a_gap(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    case = '<testcase classname="tests.jax.test_m" name="test_a[1]">{}</testcase>'
    row = Row("a", "test_m::test_a")
    for inside, expected in (
        ("", "yes"),
        ("<failure/>", "**not tested** (test_m::test_a)"),
        ("<skipped/>", "**not tested**"),
    ):
        report.write_text(f"<testsuites><testsuite>{case.format(inside)}</testsuite></testsuites>")
        assert table.ours(row, table.outcomes(report)).startswith(expected)
    both = case.format("") + case.format("<failure/>")
    report.write_text(f"<testsuites><testsuite>{both}</testsuite></testsuites>")
    assert table.ours(row, table.outcomes(report)) == "**fails** (test_m::test_a)"
    assert table.ours(Row("b", "test_m::test_b"), table.outcomes(report)) == "**not tested** (test_m::test_b)"
