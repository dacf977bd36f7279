"""What the tests of the IR share."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import llvmlite.binding as llvm

HERE = Path(__file__).parent
FIXTURES = sorted((HERE / "fixtures").glob("*.ll"))
SOURCES = sorted((HERE / "sources").iterdir())


def printed_by_llvm(text: str) -> str:
    """How LLVM prints a text, but for the comment that names the module."""
    lines = str(llvm.parse_assembly(text, llvm.create_context())).splitlines()
    return "\n".join(line for line in lines if not line.startswith("; ModuleID"))


def compiled(source: Path, folder: Path, *flags: str) -> str:
    """The IR that clang makes of a C or C++ file."""
    language = ["c++", "-std=c++17"] if source.suffix == ".cpp" else ["cc"]
    out = folder / f"{source.name}.ll"
    command = [sys.executable, "-m", "ziglang", *language, *flags, "-S", "-emit-llvm", str(source), "-o", str(out)]
    subprocess.run(command, check=True, capture_output=True)
    return out.read_text()
