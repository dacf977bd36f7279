"""Runs the tests nearest to what changed, for two minutes at most: `make quick`.

Files that differ from the branch `main`, or that are not committed, are followed through the imports to the test files
that use them; the fewer imports in between, the sooner a test runs. A fixed set comes first where nothing changed, last
otherwise. Tests marked `slow` are left out. What time does not allow for is counted, and named as left out.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import grimp

ROOT = Path(__file__).parent.parent.parent
SECONDS = 110
FIXED = (
    "tests/ir", "tests/signature", "tests/analysis", "tests/rules/test_table.py", "tests/transform/test_fixtures.py",
    "tests/jax/test_reverse_mode.py",
)  # fmt: skip
"""Short ones, of every layer."""


def main() -> int:
    changed = _changed()
    files = list(dict.fromkeys([*_nearest(changed), *(f for f in FIXED if (ROOT / f).exists())]))
    print(f"{len(changed)} changed files lead to {len(files)} test files and folders", flush=True)
    command = [sys.executable, "-m", "pytest", "-q", "-n", "auto", "--dist", "worksteal", "-m", "not slow"]
    ran = subprocess.run([*command, f"--seconds={SECONDS}", *files, *sys.argv[1:]], cwd=ROOT)
    return ran.returncode


def _changed() -> list[str]:
    base = _git("merge-base", "HEAD", "main") or ["HEAD"]
    return [*_git("diff", "--name-only", base[0]), *_git("ls-files", "--others", "--exclude-standard")]


def _git(*words: str) -> list[str]:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout.split()


def _nearest(changed: Iterable[str]) -> list[str]:
    """The test files that import what changed, directly or not, nearest first."""
    graph = grimp.build_graph("jax_enzyme", "tests", cache_dir=None)
    distance: dict[str, int] = {}
    ring = [m for m in map(_module, changed) if m in graph.modules]
    steps = 0
    while ring:
        distance.update(dict.fromkeys(ring, steps))
        steps += 1
        ring = [i for m in ring for i in graph.find_modules_that_directly_import(m) if i not in distance]
    tests = [m for m in distance if m.startswith("tests.") and m.rpartition(".")[2].startswith("test_")]
    return [f"{m.replace('.', '/')}.py" for m in sorted(tests, key=lambda m: (distance[m], m))]


def _module(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


if __name__ == "__main__":
    sys.exit(main())
