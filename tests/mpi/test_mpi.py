"""Kernels that call MPI, under mpiexec, with as many processes as it takes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.mpi.program import WHOLE
from tests.support.tools import need

ROOT = Path(__file__).parents[2]
PREFIX = Path(sys.prefix)
LIBRARY = "libmpi.so"  # a text for linkers, which names the library beside it


@dataclass(frozen=True)
class Ran:
    code: int
    out: str

    def right(self, name: str) -> int:
        """On how many processes it was."""
        return len(re.findall(f"(?<![a-z_]){name} is right on ", self.out))


def run(count: int, how: str, *names: str) -> Ran:
    return launched(count, "-m", "tests.mpi.program", LIBRARY, str(PREFIX / "include"), how, *names)


def launched(count: int, *arguments: str) -> Ran:
    """By MPICH, as `pip install mpich` leaves it beside this Python."""
    ended = subprocess.run(
        [str(PREFIX / "bin" / "mpiexec"), "-n", str(count), sys.executable, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
        timeout=400,
        check=False,
        # A process that waits gives its core to those it waits for: there may be more of them than cores.
        env={**os.environ, "JAX_PLATFORMS": "cpu", "MPIR_CVAR_POLLS_BEFORE_YIELD": "0"},
    )
    return Ran(ended.returncode, ended.stdout)


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """All kernels are in the disk cache once one process has compiled them; what has no derivative is refused there."""
    need("mpiexec of `pip install mpich`", (PREFIX / "lib" / LIBRARY).exists())
    need("flang-22")
    first = run(1, "compile", *WHOLE, "transformations", "fails", "crossed", "refused")
    assert first.code == 0 and first.right("refused") == 1, first.out


@pytest.mark.parametrize(
    ("count", "names"),
    [
        (2, [*sorted(WHOLE.keys() - {"uneven", "exchanged", "heat", "begun_parts"}), "transformations"]),
        (3, ["uneven", "exchanged", "heat", "begun_parts"]),
    ],
    ids=lambda p: p if isinstance(p, int) else "",
)
def test_derivatives_are_those_of_one_process(count: int, names: list[str]) -> None:
    ran = run(count, "run", *names)
    assert ran.code == 0, ran.out
    assert [ran.right(name) for name in names] == [count] * len(names), ran.out


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fails", "a kernel failed on process 1 of 2, with status 7"),
        ("error", "of one process"),
        ("crossed", "are waited for in the order in which they are begun"),
    ],
)
def test_who_fails_ends_all(name: str, message: str) -> None:
    ran = run(2, "run", name)
    assert ran.code != 0 and message in ran.out and not ran.right(name), ran.out


def test_heat_example() -> None:
    ran = launched(2, "examples/mpi_heat/heat.py")
    assert ran.code == 0 and ran.out.count("its part of the gradient is that of one process") == 2, ran.out
