"""Kernels as an optimising compiler leaves them: LLVM IR at a level from -O0 to -O3, vectorised from -O2 on."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from tests.kernels.case import Case

LEVELS = ("-O0", "-O1", "-O2", "-O3", "-O3 -mcpu=x86_64_v3")


def at_level(row: Case, level: str, folder: Path) -> Case:
    """The case with its C source compiled to IR beforehand."""
    target = folder / f"{row.name}{level.replace(' ', '')}.ll"
    command = [sys.executable, "-m", "ziglang", "cc", "-S", "-emit-llvm", "-g0", "-fno-sanitize=all", "-UNDEBUG"]
    command += [*row.flags, *level.split(), str(row.path), "-o", str(target)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return replace(row, file=str(target), flags=())
