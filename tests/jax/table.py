"""The table of transformations, from what the tests found.

    make table

runs the tests of this folder and writes docs/transformations.md and the table in README.md from their results; it fails
where our column has a gap. Continuous integration runs the tests anyway, and compares:

    python -m tests.jax.table --check build/tests.xml
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

from tests.jax.rows import GROUPS, Row

PAGE = Path(__file__).resolve().parents[2] / "docs" / "transformations.md"
README = PAGE.parents[1] / "README.md"
BEGIN, END = "<!-- transformations -->", "<!-- /transformations -->"


TEXT = """# What JAX can do to a kernel

Written by `make table` from the results of the tests in `tests/jax`, and compared with them in every run of continuous
integration. *yes* means that all tests of the row pass, which run over kernels with a tape and without, with a
run-time trip count, inout and integer arguments, several results, in f32, f64 and complex numbers; the list below says
which tests those are.

The other columns are what we measured or read of other ways to call foreign code: Enzyme-JAX 0.0.16 `cpp_call`
(measured), NVIDIA Warp 1.19 `jax_kernel(enable_backward=True)` on the CPU (measured), jax-triton (read: it raises on
derivatives and on vmap), and a `jax.custom_vjp` around `jax.ffi.ffi_call` with the adjoint written by hand (measured).
A dot says that we know nothing.
"""


def rows() -> list[Row]:
    return [row for group in GROUPS for row in group.rows]


def outcomes(report: Path) -> dict[str, Counter[str]]:
    """How the tests of each "module::test" came out."""
    found: dict[str, Counter[str]] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        module = case.attrib["classname"].rsplit(".", 1)[-1]
        test = case.attrib["name"].split("[")[0]
        verdict = next((c.tag for c in case if c.tag in ("failure", "error", "skipped")), "passed")
        if case.attrib["classname"].startswith("tests.jax."):
            found.setdefault(f"{module}::{test}", Counter())[verdict] += 1
    return found


def ours(row: Row, found: dict[str, Counter[str]]) -> str:
    """Our column: "yes", or what is missing."""
    for wanted in row.tests.split():
        matching = [counts for name, counts in found.items() if name == wanted or name.split("::")[0] == wanted]
        if not any(counts["passed"] for counts in matching):
            return f"**not tested** ({wanted})"
        if any(counts["failure"] + counts["error"] for counts in matching):
            return f"**fails** ({wanted})"
    return "yes"


def table(verdicts: dict[str, str]) -> str:
    """The table, with our column by the names of rows."""
    lines = ["| | jax_enzyme | Enzyme-JAX | Warp | jax-triton | custom_vjp by hand |", "|---|---|---|---|---|---|"]
    for group in GROUPS:
        lines.append(f"| **{group.name}** | | | | | |")
        for row in group.rows:
            cells = (row.name, verdicts[row.name], row.enzyme_jax, row.warp, row.triton, row.by_hand)
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def page(verdicts: dict[str, str]) -> str:
    """docs/transformations.md."""
    parts = [f"- {row.name}: {', '.join(f'`{t}`' for t in row.tests.split())}\n" for row in rows()]
    return f"{TEXT}\n{table(verdicts)}\n## The tests of each row\n\n{''.join(parts)}"


def readme(verdicts: dict[str, str]) -> str:
    """README.md with the table in its place."""
    before, _, rest = README.read_text().partition(BEGIN)
    return f"{before}{BEGIN}\n\n{table(verdicts)}\n{END}{rest.partition(END)[2]}"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.jax.table", description=__doc__)
    parser.add_argument("report", type=Path, help="what pytest --junitxml wrote")
    parser.add_argument("--check", action="store_true", help="compare the pages with the results, and write nothing")
    chosen = parser.parse_args(arguments)
    found = outcomes(chosen.report)
    verdicts = {row.name: ours(row, found) for row in rows()}
    gaps = [f"{name}: {verdict}" for name, verdict in verdicts.items() if verdict != "yes"]
    stale: list[str] = []
    for path, text in ((PAGE, page(verdicts)), (README, readme(verdicts))):
        if not chosen.check:
            path.write_text(text)
        elif path.read_text() != text:
            stale.append(f"{path.name} is not what the tests say: run `make table`")
    print("\n".join([*gaps, *stale]) or "the table of transformations has no gap")
    return 1 if gaps or stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
